from __future__ import annotations

import json
import stat
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest

from quarterdeck.claude.flags import ASKED, SINCE, TABLE, TESTED
from quarterdeck.claude.launch import ArgumentFiles, Launch, require_support, to_argv
from quarterdeck.domain.errors import UnsupportedError, UsageError
from quarterdeck.domain.launch_options import LONGEST_ARGUMENT, OPTIONS, SWITCHED_BY_US, Kind
from quarterdeck.testing.clis import RealCli, installed_clis, isolated_env, version_key
from support.bounds import SECONDS
from support.clis import EXTRA_VERSIONS, VERSIONS

FIXED = [
    *("--output-format", "stream-json", "--verbose", "--input-format", "stream-json"),
    *("--permission-prompt-tool", "stdio"),
]
INSTALLED = sorted(VERSIONS + EXTRA_VERSIONS, key=version_key)
UUID = "0b0e7b5c-92a1-4f0a-8a57-1d1f3a3b9c10"

# One sensible value for every option.
FULL: dict[str, object] = {
    "resume": UUID, "continue_": True, "fork_session": True, "session_id": UUID,
    "resume_session_at": UUID, "resume_drops_turn": UUID, "session_persistence": False,
    "name": "a name", "worktree": "tree", "model": "claude-x", "fallback_model": "claude-y",
    "effort": "high", "thinking": "adaptive", "thinking_display": "omitted",
    "max_thinking_tokens": 0, "max_turns": 3, "max_budget_usd": 0.5, "task_budget": 100,
    "betas": ("a", "b"), "system_prompt": "You are", "system_prompt_file": "p.txt",
    "append_system_prompt": "and", "append_system_prompt_file": Path("q.txt"),
    "exclude_dynamic_system_prompt_sections": True, "plan_mode_instructions": "plan",
    "tools": ("Bash", "Read"), "allowed_tools": ("Bash(ls:*)",), "disallowed_tools": ("Write",),
    "permission_mode": "plan", "dangerously_skip_permissions": True,
    "allow_dangerously_skip_permissions": True, "settings": "{}", "setting_sources": ("user",),
    "add_dirs": ("a", Path("b")), "mcp_config": ('{"mcpServers":{}}', "m.json"),
    "strict_mcp_config": True, "plugin_dirs": ("p",), "agent": "me", "agents": "{}",
    "disable_slash_commands": True, "bare": True, "safe_mode": True, "restricted": True,
    "include_partial_messages": True, "replay_user_messages": True, "include_hook_events": True,
    "forward_subagent_text": True, "prompt_suggestions": True, "session_mirror": True,
    "json_schema": "{}", "debug_file": "d.log", "sdk_url": "ws://127.0.0.1:9/x",
}  # fmt: skip

# Options that need another one beside them.
COMPANIONS: dict[str, dict[str, object]] = {
    "fork_session": {"continue_": True},
    "resume_session_at": {"resume": UUID},
    "resume_drops_turn": {"resume": UUID},
}


def launch_with(option: str) -> Launch:
    return make(**COMPANIONS.get(option, {}), **{option: FULL[option]})


def make(**options: object) -> Launch:
    """A launch whose options only the test run can check, not the type checker."""
    return msgspec.structs.replace(Launch(), **options)


def test_a_plain_launch_streams_both_ways_asks_for_permission_and_keeps_the_own_prompt() -> None:
    assert to_argv(Launch()) == [*FIXED, "--include-partial-messages", "--replay-user-messages"]


def test_streaming_replay_and_permission_prompts_can_be_switched_off() -> None:
    quiet = Launch(
        include_partial_messages=False, replay_user_messages=False, permission_prompts=False
    )
    assert to_argv(quiet) == FIXED[:-2]


def test_every_option_has_a_sample_here() -> None:
    assert {option.name for option in OPTIONS} == set(FULL)


@pytest.mark.parametrize("option", sorted(FULL))
def test_each_option_puts_its_own_flag_on_the_command_line(option: str) -> None:
    row = next(each for each in OPTIONS if each.name == option)
    mine = [argument for argument in to_argv(launch_with(option)) if _is(row.flag, argument)]
    value = FULL[option]
    match row.kind:
        case Kind.SWITCH | Kind.SWITCH_OFF:
            assert mine == [row.flag]
        case Kind.COMMAS | Kind.COMMAS_OR_NONE:
            assert isinstance(value, tuple)
            assert mine == [f"{row.flag}={','.join(value)}"]
        case Kind.EACH:
            assert isinstance(value, tuple)
            assert mine == [f"{row.flag}={item}" for item in value]
        case Kind.VALUE | Kind.NUMBER:
            assert mine == [f"{row.flag}={value}"]


def _is(flag: str, argument: str) -> bool:
    return argument == flag or argument.startswith(f"{flag}=")


def test_no_tools_and_no_settings_files_are_said_with_an_empty_value() -> None:
    argv = to_argv(Launch(tools=(), setting_sources=()))
    assert "--tools=" in argv
    assert "--setting-sources=" in argv


def test_an_empty_system_prompt_is_passed_because_it_means_none_at_all() -> None:
    assert "--system-prompt=" in to_argv(Launch(system_prompt=""))


def test_a_value_that_looks_like_a_flag_stays_a_value() -> None:
    argv = to_argv(Launch(append_system_prompt="--dangerously-skip-permissions"))
    assert "--append-system-prompt=--dangerously-skip-permissions" in argv
    assert "--dangerously-skip-permissions" not in argv


def test_over_a_websocket_the_prompt_tool_is_not_needed() -> None:
    argv = to_argv(Launch(sdk_url="ws://127.0.0.1:1/v1/ws/s"))
    assert "--permission-prompt-tool" not in argv
    assert "--sdk-url=ws://127.0.0.1:1/v1/ws/s" in argv


def test_extra_args_come_last_and_as_given() -> None:
    argv = to_argv(Launch(extra_args={"brand-new": None, "level": "-3"}))
    assert argv[-2:] == ["--brand-new", "--level=-3"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"resume": UUID, "continue_": True}, "continue_"),
        ({"fork_session": True}, "fork_session"),
        ({"session_id": "seven"}, "session_id"),
        ({"session_id": UUID, "resume": UUID}, "session_id"),
        ({"resume_session_at": UUID}, "resume_session_at"),
        ({"resume_drops_turn": UUID}, "resume_drops_turn"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": True}, "max_turns"),
        ({"max_turns": "3"}, "max_turns"),
        ({"max_budget_usd": float("nan")}, "max_budget_usd"),
        ({"max_budget_usd": -1}, "max_budget_usd"),
        ({"model": ""}, "model"),
        ({"model": "-p"}, "model"),
        ({"model": 5}, "model"),
        ({"model": "a", "fallback_model": "a"}, "fallback_model"),
        ({"permission_mode": "no such mode"}, "permission_mode"),
        ({"allowed_tools": "Bash"}, "allowed_tools"),
        ({"allowed_tools": ("",)}, "allowed_tools"),
        ({"append_system_prompt": "a\0b"}, "append_system_prompt"),
        ({"system_prompt": "a", "system_prompt_file": "b"}, "system_prompt_file"),
        ({"thinking": "adaptive", "max_thinking_tokens": 5}, "max_thinking_tokens"),
        ({"settings": '{"broken'}, "settings"),
        ({"mcp_config": ('{"broken',)}, "mcp_config"),
        ({"agents": "[]"}, "agents"),
        ({"json_schema": "nonsense"}, "json_schema"),
        ({"sdk_url": "http://127.0.0.1/"}, "sdk_url"),
        ({"extra_args": {"--debug": None}}, "--debug"),
        ({"extra_args": {"verbose": None}}, "--verbose"),
        ({"extra_args": {"model": "x"}}, "model"),
        ({"extra_args": {"new": "a\0"}}, "--new"),
        ({"extra_args": {"new": "a" * 130_000}}, "--new"),
    ],
)
def test_nonsense_is_refused_with_the_name_of_the_option(
    options: dict[str, object], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        make(**options)


@pytest.mark.parametrize("option", ["system_prompt", "append_system_prompt"])
def test_a_long_prompt_goes_to_a_private_file_that_ends_with_the_spill(option: str) -> None:
    text = "é" * LONGEST_ARGUMENT
    with ArgumentFiles() as spill:
        argv = to_argv(make(**{option: text}), spill)
        prefix = f"--{option.replace('_', '-')}-file="
        (path,) = [
            Path(argument[len(prefix) :]) for argument in argv if argument.startswith(prefix)
        ]
        assert path.read_text(encoding="utf-8") == text
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


def test_long_settings_and_mcp_servers_go_to_files_under_the_same_flag() -> None:
    long = json.dumps({"mcpServers": {}, "pad": "x" * LONGEST_ARGUMENT})
    with ArgumentFiles() as spill:
        argv = to_argv(Launch(settings=long, mcp_config=("short.json", long, long)), spill)
        servers = [argument.partition("=")[2] for argument in argv if _is("--mcp-config", argument)]
        assert servers[0] == "short.json"
        assert servers[1] != servers[2]
        assert [Path(path).read_text() for path in servers[1:]] == [long, long]
        (settings,) = [argument for argument in argv if _is("--settings", argument)]
        assert Path(settings.partition("=")[2]).read_text() == long


def test_a_long_value_with_nowhere_to_go_is_refused() -> None:
    long = json.dumps({"pad": "x" * LONGEST_ARGUMENT})
    with ArgumentFiles() as spill, pytest.raises(UsageError, match="agents"):
        to_argv(Launch(agents=long), spill)
    with pytest.raises(UsageError, match="system_prompt"):
        to_argv(Launch(system_prompt=long))


@pytest.mark.parametrize("option", sorted(SINCE))
def test_an_option_is_refused_up_to_the_version_before_its_flag_and_not_from_there_on(
    option: str,
) -> None:
    """R15: the CLI itself would have said «unknown option», after its start."""
    since, launch = SINCE[option], launch_with(option)
    older = [version for version in ASKED if version_key(version) < version_key(since)]
    flag = next(each.flag for each in OPTIONS if each.name == option)
    for version in older:
        with pytest.raises(UnsupportedError) as refused:
            require_support(launch, version)
        named = f"{option} ({flag}) is not supported by Claude Code {version}"
        assert str(refused.value) == f"{named}; it needs {since} or newer"
        assert (refused.value.version, refused.value.since) == (version, since)
    for version in (*ASKED[len(older) :], "2.1.9999", "3.0.0"):
        require_support(launch, version)


def test_a_version_between_those_that_were_asked_is_known_too() -> None:
    """The table is made by bisection: both neighbours of every bound were asked."""
    launch = Launch(thinking_display="omitted")
    with pytest.raises(UnsupportedError, match=r"2\.1\.92; it needs 2\.1\."):
        require_support(launch, "2.1.92")
    require_support(launch, "2.1.120")


def test_a_long_value_is_supported_where_its_file_is() -> None:
    files = {option.file_flag for option in OPTIONS if option.file_flag}
    assert not files & flag_versions().keys()
    long = json.dumps({"pad": "x" * 2 * LONGEST_ARGUMENT})
    require_support(Launch(system_prompt=long, mcp_config=(long,)), "2.1.37")


def flag_versions() -> dict[str, str]:
    """The bounds of the generated file, by flag."""
    found = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {**found["since"], **found["until"]}


def test_the_generated_table_names_flags_that_there_are() -> None:
    known = {option.flag for option in OPTIONS} | SWITCHED_BY_US
    assert flag_versions().keys() <= known
    assert not SWITCHED_BY_US & flag_versions().keys(), "every start needs these"
    assert list(ASKED) == sorted(set(ASKED), key=version_key)
    assert ASKED[0] == TESTED[0]
    assert version_key(ASKED[-1]) >= version_key(TESTED[-1])


def test_what_is_on_by_default_works_on_every_version() -> None:
    for version in TESTED:
        require_support(Launch(), version)
    switches = {each.name for each in OPTIONS if getattr(Launch(), each.name) is True}
    assert not switches & SINCE.keys()


def test_dialling_is_refused_from_the_version_on_that_no_longer_does() -> None:
    launch = Launch(sdk_url="ws://127.0.0.1:1/")
    require_support(launch, "2.1.120")
    with pytest.raises(UnsupportedError, match="sdk_url"):
        require_support(launch, "2.1.121")


@pytest.mark.real_cli
@pytest.mark.parametrize("version", INSTALLED)
def test_the_real_cli_knows_the_flags_that_the_table_says_it_knows(
    version: str, tmp_path: Path
) -> None:
    cli = installed_clis()[version]
    known: list[str] = []
    unknown: list[str] = []
    for option in OPTIONS:
        has = version_key(SINCE.get(option.name, "0")) <= version_key(version)
        argv = to_argv(launch_with(option.name))
        (known if has else unknown).extend(a for a in argv if _is(option.flag, a))
    # The parser complains of the first flag that it does not know.
    assert "--no-such-flag" in _complaint(cli, [*known, "--no-such-flag"], tmp_path)
    slow = len(cli.command) > 1  # a start of Node for each flag would take half a minute
    for argument in unknown[:2] if slow else unknown:
        assert argument in _complaint(cli, [argument, "--no-such-flag"], tmp_path)


def _complaint(cli: RealCli, argv: list[str], home: Path) -> str:
    done = subprocess.run(
        [*cli.command, *argv],
        env=isolated_env(home, "http://127.0.0.1:9"),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("version", ["2.1.90", "2.1.92", "2.1.100"])
def test_continue_is_refused_where_it_would_begin_a_new_conversation(version: str) -> None:
    with pytest.raises(UnsupportedError, match="continue_"):
        require_support(Launch(continue_=True), version)


@pytest.mark.parametrize("version", ["2.1.37", "2.1.89", "2.1.101", "2.1.325"])
def test_continue_is_passed_on_where_it_works(version: str) -> None:
    require_support(Launch(continue_=True), version)
