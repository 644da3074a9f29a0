import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UnsupportedError, UsageError
from quarterdeck.wire import versions
from quarterdeck.wire.command_base import Command, UnknownCommand
from quarterdeck.wire.commands import (
    ApplyFlagSettings,
    EndSession,
    GetPlan,
    GetStatus,
    Initialize,
    Interrupt,
    ListDirectory,
    McpCall,
    McpStatus,
    SetColor,
    SetMcpPermissionModeOverride,
    SetPermissionMode,
    StopTask,
)
from quarterdeck.wire.hooks import HookMatcher
from quarterdeck.wire.info import AgentDefinition
from quarterdeck.wire.outbound import Prompt
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.versions import (
    TRAITS,
    Version,
    accepts_mode,
    check,
    check_prompt,
    permits,
    reconnect_seconds,
    release,
)

V37, V62, V120, V325 = (release(patch) for patch in (37, 62, 120, 325))
REAL = (V37, V62, V120, V325)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.1.325", Version(2, 1, 325)),
        ("2.1.325 (Claude Code)\n", Version(2, 1, 325)),
        ("v2.1.37", Version(2, 1, 37)),
        ("2.1.400-beta.1", Version(2, 1, 400)),
        ("", None),
        ("claude", None),
        ("2.1", None),
        ("2.1.3.4", None),
        ("2.1." + "9" * 50, None),
    ],
)
def test_a_version_is_read_from_what_the_cli_says(text: str, version: Version | None) -> None:
    assert Version.parse(text) == version


def test_versions_are_ordered_by_number() -> None:
    assert V37 < V62 < V120 < V325 < Version(2, 2, 0) < Version(3, 0, 0)
    assert str(V120) == "2.1.120"


TRAITS_OF_REAL_VERSIONS = [
    # What each of 2.1.37, 2.1.62, 2.1.120 and 2.1.325 does, and what to think of one unknown.
    ("may_send_cancel", (False, True, True, True), False),
    ("survives_unknown_types", (False, True, True, True), False),
    ("answers_unknown_subtypes", (False, True, True, True), False),
    ("initialize_repeatable", (False, False, False, True), False),
    ("needs_updated_input", (True, True, True, False), True),
    ("accepts_unknown_updates", (False, False, True, True), False),
    ("guards_bypass", (False, False, True, True), False),
    ("checks_modes", (False, False, False, True), False),
    ("can_dial", (True, True, True, False), False),
    ("replays_after_reconnect", (False, False, True, True), True),
    ("joins_queued_prompts", (False, False, True, True), True),
    ("honours_priority", (False, False, True, True), False),
    ("starts_turns_itself", (False, True, True, True), True),
    ("marks_own_turns", (False, False, False, True), False),
    ("has_command_lifecycle", (False, False, False, True), False),
    ("has_interrupt_receipt", (False, False, False, True), False),
    ("announces_mode_changes", (False, False, True, True), False),
    ("flags_all_errors", (False, False, True, True), False),
    ("environment_reaches_tools", (True, True, True, False), False),
    ("kills_children_on_term", (False, False, False, True), False),
]


@pytest.mark.parametrize(("trait", "real", "unknown"), TRAITS_OF_REAL_VERSIONS)
def test_the_traits_are_those_of_the_real_versions(
    trait: str, real: tuple[bool, ...], unknown: bool
) -> None:
    found = TRAITS[trait]

    assert tuple(found(version) for version in REAL) == real
    assert found(None) is unknown
    assert getattr(versions, trait) is found


def test_every_trait_has_a_reason_and_was_looked_at_on_the_real_versions() -> None:
    assert {trait for trait, _, _ in TRAITS_OF_REAL_VERSIONS} == set(TRAITS)
    assert all(trait.why for trait in TRAITS.values())


def test_the_last_version_that_dials_is_120() -> None:
    assert versions.can_dial(release(120))
    assert not versions.can_dial(release(121))


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"])
def test_every_version_has_the_common_modes(mode: str) -> None:
    assert all(accepts_mode(version, PermissionMode(mode)) for version in (*REAL, None))


def test_some_versions_have_other_modes() -> None:
    auto, delegate = PermissionMode.AUTO, PermissionMode.DELEGATE

    assert [accepts_mode(version, auto) for version in (*REAL, None)] == [
        False,
        False,
        True,
        True,
        False,
    ]
    assert [accepts_mode(version, delegate) for version in (*REAL, None)] == [
        True,
        False,
        False,
        False,
        False,
    ]


def test_no_version_has_a_mode_that_we_do_not_know() -> None:
    assert not any(accepts_mode(version, PermissionMode("nonsense")) for version in (*REAL, None))


def test_the_first_versions_give_up_soon_when_their_link_breaks() -> None:
    assert reconnect_seconds(V37) == reconnect_seconds(None) == 5
    assert reconnect_seconds(V62) == reconnect_seconds(V120) == 600


@pytest.mark.parametrize(
    ("command", "since"),
    [
        (Interrupt(), 37),
        (McpStatus(), 37),
        (StopTask(task_id="t"), 52),
        (EndSession(), 92),
        (McpCall(tool="t"), 120),
        (GetPlan(), 200),
        (GetStatus(), 325),
    ],
)
def test_a_command_goes_to_versions_that_answer_it(command: Command[object], since: int) -> None:
    check(command, release(since))
    assert permits(release(since), command)
    assert permits(None, command) is (since == 37)
    if since > 37:
        with pytest.raises(UnsupportedError) as caught:
            check(command, release(since - 1))
        assert caught.value.what == command.subtype
        assert caught.value.since == f"2.1.{since}"


@pytest.mark.parametrize("command", [SetColor(color="blue"), ListDirectory(path=".")])
def test_a_command_that_no_version_answers_goes_to_none(command: Command[object]) -> None:
    with pytest.raises(UnsupportedError):
        check(command, V325)


def test_a_new_command_does_not_go_to_the_version_that_would_not_answer() -> None:
    command = UnknownCommand(name="new", json=Raw(b'{"subtype":"new"}'))

    check(command, V62)
    with pytest.raises(UnsupportedError):
        check(command, V37)
    with pytest.raises(UnsupportedError):
        check(command, None)


def test_a_known_command_of_the_wrong_shape_goes_to_none() -> None:
    deafening = UnknownCommand(
        name="initialize", json=Raw(b'{"subtype":"initialize"}'), error="odd"
    )

    with pytest.raises(UsageError, match="odd"):
        check(deafening, V325)


@pytest.mark.parametrize("version", [*REAL, None])
def test_bypass_needs_leave_in_every_version(version: Version | None) -> None:
    command = SetPermissionMode(mode=PermissionMode.BYPASS_PERMISSIONS)

    with pytest.raises(UsageError, match="permission to bypass"):
        check(command, version)
    check(command, version, bypass_allowed=True)


def test_bypass_is_not_slipped_in_by_other_ways() -> None:
    with pytest.raises(UsageError, match="permission to bypass"):
        check(
            ApplyFlagSettings(settings=Raw(b'{"permissions":{"defaultMode":"bypassPermissions"}}')),
            V325,
        )
    with pytest.raises(UsageError, match="permission to bypass"):
        check(
            SetMcpPermissionModeOverride(server_name="s", mode=PermissionMode.BYPASS_PERMISSIONS),
            V325,
        )
    check(SetMcpPermissionModeOverride(server_name="s", mode=None), V325)


def test_a_mode_is_checked_by_us_because_old_versions_take_any() -> None:
    with pytest.raises(UsageError, match="not a permission mode"):
        check(SetPermissionMode(mode=PermissionMode("nonsense")), V62)
    with pytest.raises(UnsupportedError, match="auto"):
        check(SetPermissionMode(mode=PermissionMode.AUTO), V62)
    with pytest.raises(UnsupportedError, match="delegate"):
        check(SetPermissionMode(mode=PermissionMode.DELEGATE), V62)


def test_members_that_an_old_version_would_ignore_are_refused() -> None:
    check(McpCall(tool="t", check_permissions=True), V325)
    with pytest.raises(UnsupportedError, match="check_permissions"):
        check(McpCall(tool="t", check_permissions=True), V120)
    with pytest.raises(UnsupportedError, match="cancel_queued"):
        check(Interrupt(cancel_queued=True), V120)


def test_a_hook_that_blocks_on_failure_needs_a_version_that_does() -> None:
    command = Initialize(
        hooks={"PreToolUse": (HookMatcher(hook_callback_ids=("h",), on_failure="block"),)}
    )

    check(command, V325)
    with pytest.raises(UnsupportedError, match="PreToolUse"):
        check(command, V120)


def test_a_subagents_model_is_one_of_four_words_on_old_versions() -> None:
    def agents(model: str) -> Initialize:
        return Initialize(agents={"a": AgentDefinition(description="d", prompt="p", model=model)})

    check(agents("claude-opus-4-5"), V120)
    check(agents("haiku"), V37)
    with pytest.raises(UnsupportedError, match="claude-opus-4-5"):
        check(agents("claude-opus-4-5"), V62)


def test_a_prompt_that_would_mean_something_else_is_refused() -> None:
    check_prompt(Prompt.of("x"), V37)
    check_prompt(Prompt.of("x", should_query=False, client_composed=True), V325)
    with pytest.raises(UnsupportedError):
        check_prompt(Prompt.of("x", should_query=False), V62)
    with pytest.raises(UnsupportedError):
        check_prompt(Prompt.of("/x", client_composed=True), V120)
