"""The command line that a program gives, and what the real CLI gets."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.domain.errors import UsageError
from quarterdeck.program.arguments import (
    Limits,
    command_line,
    prints_only,
    speaks_stream_json,
    with_settings,
)
from support.examples import examples

SDK = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")
ADDED = (
    "--permission-prompt-tool",
    "stdio",
    "--replay-user-messages",
    "--include-partial-messages",
)


def test_what_is_missing_is_added_in_front_and_the_rest_is_passed_on() -> None:
    line = command_line([*SDK, "--allowedTools", "Read", "Glob"], {})
    assert line.argv == (*ADDED, *SDK, "--allowedTools", "Read", "Glob")
    assert not line.given.replay
    assert not line.given.partial
    assert not line.given.callback


def test_what_the_program_asked_for_is_known_and_not_added_twice() -> None:
    argv = [
        *SDK,
        "--permission-prompt-tool=stdio",
        "--replay-user-messages",
        "--include-partial-messages",
        "--permission-mode",
        "acceptEdits",
        "--model=opus",
    ]
    line = command_line(argv, {})
    assert line.argv == tuple(argv)
    assert line.given.replay
    assert line.given.partial
    assert line.given.callback
    assert (line.given.mode, line.given.model) == ("acceptEdits", "opus")
    assert not line.given.skip_permissions


@pytest.mark.parametrize(
    "argv", [["--dangerously-skip-permissions"], ["--permission-mode", "bypassPermissions"]]
)
def test_bypassed_permissions_are_known(argv: list[str]) -> None:
    assert command_line([*SDK, *argv], {}).given.skip_permissions


def test_words_after_two_dashes_are_no_flags() -> None:
    line = command_line([*SDK, "--", "--replay-user-messages"], {})
    assert not line.given.replay


def test_another_tool_that_answers_permission_requests_is_refused() -> None:
    with pytest.raises(UsageError, match="mcp__own__ask"):
        command_line([*SDK, "--permission-prompt-tool", "mcp__own__ask"], {})


@pytest.mark.parametrize(
    ("argv", "streams"),
    [
        (SDK, True),
        (("--input-format=stream-json", "--output-format=stream-json"), True),
        (("-p", "What is this?"), False),
        (("-p", "--output-format", "stream-json", "What?"), False),
        (("--version",), False),
        (("--", *SDK), False),
    ],
)
def test_only_two_streams_are_served(argv: tuple[str, ...], streams: bool) -> None:
    assert speaks_stream_json(argv) is streams


def test_the_agent_gets_the_environment_without_what_is_ours() -> None:
    env = {"PATH": "/bin", "QUARTERDECK_TOKEN": "qd_x", "QUARTERDECK_RUN_1": "1"}
    line = command_line(SDK, env)
    assert line.env["PATH"] == "/bin"
    assert "QUARTERDECK_TOKEN" not in line.env
    assert line.env["QUARTERDECK_RUN_1"] == "1", "the mark of an agent stays"


def test_the_hub_needs_reports_of_the_state_and_the_program_gets_them_if_it_wants() -> None:
    assert command_line(SDK, {}).env["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"] == "1"
    assert not command_line(SDK, {}).given.states
    of_sdk = command_line(SDK, {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"})
    assert of_sdk.given.states
    assert "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS" not in of_sdk.env


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["--x", "--", "--settings", "a"], ["--settings=NEW", "--x", "--", "--settings", "a"]),
        (["--settings", "a.json", "--x"], ["--settings", "NEW", "--x"]),
        (['--settings={"a":"="}', "--x"], ["--settings=NEW", "--x"]),
        (["--settings", "a", "--settings=a"], ["--settings", "NEW", "--settings=NEW"]),
        (["--settings=a", "--settings", "a"], ["--settings=NEW", "--settings", "NEW"]),
        (["--settings", "--settings=odd"], ["--settings", "NEW"]),
        (["--settings", ""], ["--settings", "NEW"]),
        (["--resume", "--settings", "a"], ["--resume", "--settings", "NEW"]),
        (["--resume", "id", "--settings", "a"], ["--resume", "id", "--settings", "NEW"]),
        (["--x", "--settings"], ["--settings=NEW", "--x", "--settings"]),
        ([], ["--settings=NEW"]),
    ],
)
def test_the_settings_that_count_are_replaced_and_nothing_else(
    before: list[str], after: list[str]
) -> None:
    assert with_settings(before, "NEW") == tuple(after)


def test_the_settings_that_the_program_gave_are_known() -> None:
    given = command_line([*SDK, "--settings", "a", "--settings=a", "--managed-settings", "{}"], {})
    assert (given.given.settings, given.given.managed_settings) == ("a", "{}")
    assert command_line(SDK, {}).given.settings is None


@pytest.mark.parametrize("name", ["--settings", "--managed-settings"])
def test_of_several_settings_nobody_knows_which_ones_hold(name: str) -> None:
    """2.1.120 takes the first ones, and 2.1.325 the last ones (tried)."""
    with pytest.raises(UsageError, match="which one of several"):
        command_line([*SDK, name, "{}", f'{name}={{"env":{{}}}}'], {})


@pytest.mark.parametrize(
    ("argv", "env"),
    [(["--bare"], {}), ([], {"CLAUDE_CODE_SIMPLE": "1"}), ([], {"CLAUDE_CODE_SIMPLE": "true"})],
)
def test_a_program_does_not_switch_hooks_off(argv: list[str], env: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="the hub's rules would not hold"):
        command_line([*SDK, *argv], env)


@pytest.mark.parametrize(
    "argv",
    [
        ["--append-system-prompt", "--model", "--bare"],
        ["--append-system-prompt", "--", "--bare"],
        ["--append-system-prompt", "--bare"],
        ["--", "--bare"],
        ["--settings", "--bare"],
        ["-pn", "--bare"],
    ],
)
def test_hooks_are_not_switched_off_in_any_place(argv: list[str]) -> None:
    """Tried: with the first three both versions call no hooks, and 2.1.120 not with the fourth."""
    with pytest.raises(UsageError, match="the hub's rules would not hold"):
        command_line([*SDK, *argv], {})


@pytest.mark.parametrize(
    "argv",
    [
        ["--append-system-prompt", "--model", "--permission-prompt-tool", "mcp__x"],
        ["--append-system-prompt", "--permission-prompt-tool", "stdio"],
        ["--append-system-prompt", "--settings", "{}"],
        ["--append-system-prompt", "--", "--settings", "{}"],
        ["--allowedTools", "--settings", "{}"],
        ["--of-tomorrow", "--settings", "{}"],
        ["-pn", "--settings", "{}"],
        ["--", "--settings", "{}"],
        ["--append-system-prompt", "--"],
        ["--cloud"],
        ["--append-system-prompt", "--bg"],
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError):
        command_line([*SDK, *argv], {})


def test_values_that_look_like_other_options_are_no_options() -> None:
    words = ["--append-system-prompt", "--model", "--resume", "--verbose", "--name", "-r"]
    given = command_line([*SDK, *words, "--model", "opus"], {}).given
    assert (given.model, given.resume) == ("opus", "")
    line = command_line([*SDK, "--of-tomorrow", "--model", "opus"], {"CLAUDE_CODE_SIMPLE": "0"})
    assert line.given.model == "opus"


# --- what it forbids ------------------------------------------------------------------------------


def test_what_the_program_forbids_to_its_agent_is_told() -> None:
    argv = [
        *("--tools", "Bash,Read", "Edit", "--disallowedTools", "Bash(git push:*) WebFetch"),
        *("--disallowed-tools=Bash(rm -rf, always),Task", "Agent", "--setting-sources="),
        *("--strict-mcp-config", "--max-turns", "3", "--max-budget-usd=0.5", "--restricted"),
        *("--safe-mode", "--disable-slash-commands", "--model", "opus", "-n", "x", "--add-dir"),
        *("/a", "/b", "--allowedTools", "Read"),
    ]
    given = command_line([*SDK, *argv], {}).given
    assert given.limits == Limits(
        tools=("Bash", "Read", "Edit"),
        disallowed_tools=(
            *("Bash(git push:*)", "WebFetch", "Bash(rm -rf, always)", "Task", "Agent"),
        ),
        setting_sources=(),
        strict_mcp_config=True,
        disable_slash_commands=True,
        safe_mode=True,
        restricted=True,
        max_turns=3,
        max_budget_usd=0.5,
    )
    assert not given.own_options


def test_no_tools_and_the_usual_ones_are_told_apart() -> None:
    assert command_line([*SDK, "--tools", ""], {}).given.limits.tools == ()
    assert command_line([*SDK, "--tools", "default"], {}).given.limits.tools is None
    assert command_line(SDK, {}).given.limits == Limits()


@pytest.mark.parametrize(
    "argv",
    [
        ["--settings", '{"permissions":{"deny":["Bash"]}}'],
        ["--managed-settings", "{}"],
        ["--agent", "careful"],
        ["--plugin-dir", "/p"],
        ["--permission-prompts", "none"],
        ["--of-tomorrow"],
        ["-pn", "x"],
        ["--max-turns", "few"],
    ],
)
def test_what_may_forbid_more_is_told_to_be_there(argv: list[str]) -> None:
    assert command_line([*SDK, *argv], {}).given.own_options


# --- all readers ---------------------------------------------------------------------------------

NEEDS, MAY, ALONE = "needs", "may", "alone"
CLI = {
    "--append-system-prompt": NEEDS, "--system-prompt": NEEDS, "--allowedTools": NEEDS,
    "--tools": NEEDS, "--add-dir": NEEDS, "--mcp-config": NEEDS, "--model": NEEDS, "-n": NEEDS,
    "--settings": NEEDS, "--managed-settings": NEEDS, "--permission-prompt-tool": NEEDS,
    "--sdk-url": NEEDS, "--max-turns": NEEDS, "--debug-file": NEEDS, "--json-schema": NEEDS,
    "--input-format": NEEDS, "--output-format": NEEDS, "--plan-mode-instructions": NEEDS,
    "--workload": NEEDS, "--resume": MAY, "-r": MAY, "--debug": MAY, "--worktree": MAY,
    "--verbose": ALONE, "--print": ALONE, "-p": ALONE, "--bare": ALONE, "--continue": ALONE,
    "--replay-user-messages": ALONE, "--include-partial-messages": ALONE, "--safe-mode": ALONE,
}  # fmt: skip
"""Options of the CLI and whether they take a value, as it declares them."""
OTHERS = ("", "--", "-", "x", "stdio", "mcp__x", "{}", "-pn", "-px", "--bare=1", "--settings={}")


def commander(argv: Sequence[str]) -> list[tuple[str, str]]:
    """The options that Commander finds, with their values. Raises `IndexError` for a missing one,
    and `KeyError` for one that it does not know.
    """
    words, found = list(argv), list[tuple[str, str]]()
    while words:
        word = words.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            continue
        name, equals, value = word.partition("=")
        if word in CLI:
            takes = CLI[word] == NEEDS or (
                CLI[word] == MAY and bool(words) and not (words[0][:1] == "-" and words[0] != "-")
            )
            found.append((word, words.pop(0) if takes else ""))
        elif not word.startswith("--"):  # several short ones in one word
            takes = CLI[word[:2]] == NEEDS
            found.append((word[:2], word[2:] if takes else ""))
            if not takes:
                words.insert(0, f"-{word[2:]}")
        elif equals and CLI[name] != ALONE:
            found.append((name, value))
        else:
            raise KeyError(word)
    return found


def eager(argv: Sequence[str], name: str, skipped: Sequence[str]) -> list[str]:
    """The values that versions find which look for an option by themselves."""
    found, rest = list[str](), iter(range(len(argv)))
    for place in rest:
        if argv[place].startswith(f"{name}="):
            found.append(argv[place].partition("=")[2])
        elif argv[place] == name and place + 1 < len(argv):
            found.append(argv[next(rest)])
        elif argv[place] in skipped:
            next(rest, None)
    return found


@given(st.lists(st.sampled_from([*CLI, *OTHERS]), max_size=8))
@settings(max_examples=examples(600))
def test_no_reader_finds_an_option_that_the_hub_refuses(words: list[str]) -> None:
    try:
        line = command_line([*SDK, *words], {})
    except UsageError:
        return
    argv = with_settings(line.argv, "GUARDED")
    assert "--bare" not in argv
    try:
        found = commander(argv)
    except (KeyError, IndexError):
        return  # the CLI says what is wrong, and ends
    names = [name for name, _ in found]
    assert "--sdk-url" not in names
    assert {value for name, value in found if name == "--permission-prompt-tool"} == {"stdio"}
    # Which of several settings counts differs: all are guarded, for all.
    assert {value for name, value in found if name == "--settings"} == {"GUARDED"}
    before_end = argv[: argv.index("--")] if "--" in argv else argv
    for seen in (
        eager(argv, "--settings", ()),  # 2.1.37
        eager(before_end, "--settings", ("--managed-settings",)),  # 2.1.120
        eager(before_end, "--settings", [name for name in CLI if CLI[name] == NEEDS]),  # 2.1.325
    ):
        assert set(seen) == {"GUARDED"}
    managed = {value for name, value in found if name == "--managed-settings"}
    assert set(eager(argv, "--managed-settings", ())) == managed
    assert managed <= {line.given.managed_settings}


@pytest.mark.parametrize(
    ("argv", "prints"),
    [
        (("-p", "What is this?"), True),
        (("--print", "--output-format", "json"), True),
        (("-p", *SDK), False),
        (("--version",), False),
        (("--", "-p"), False),
    ],
)
def test_an_agent_that_only_prints_is_known(argv: tuple[str, ...], prints: bool) -> None:
    assert prints_only(argv) is prints
