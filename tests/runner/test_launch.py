"""What a session's specification means to the CLI."""

from __future__ import annotations

import msgspec
import pytest

from quarterdeck.claude.launch import to_argv
from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runner.launch import launch_of

PLAIN = SessionSpec(directory="/")


def flags(origin: Origin | None = None, **spec: object) -> set[str]:
    launch = launch_of(msgspec.structs.replace(PLAIN, **spec), origin or Origin())
    return set(to_argv(launch)) - set(to_argv(launch_of(PLAIN, Origin())))


def test_what_is_left_out_is_left_to_the_cli() -> None:
    argv = to_argv(launch_of(PLAIN, Origin()))
    assert argv[:5] == [
        "--output-format",
        "stream-json",
        "--verbose",
        "--input-format",
        "stream-json",
    ]
    assert not [
        flag for flag in argv if flag.startswith(("--model", "--resume", "--permission-mode"))
    ]


def test_every_option_of_a_session_becomes_a_flag() -> None:
    assert flags(
        model="opus",
        mode="plan",
        effort="high",
        system_prompt="S",
        append_system_prompt="A",
        allowed_tools=("Read", "Bash(git:*)"),
        disallowed_tools=("Write",),
        tools=(),
        add_dirs=("/a", "/b"),
        settings='{"x":1}',
        max_turns=3,
        max_budget_usd=0.5,
        mcp_servers={"one": msgspec.Raw(b'{"command":"x"}')},
    ) == {
        "--model=opus",
        "--permission-mode=plan",
        "--effort=high",
        "--system-prompt=S",
        "--append-system-prompt=A",
        "--allowedTools=Read,Bash(git:*)",
        "--disallowedTools=Write",
        "--tools=",
        "--add-dir=/a",
        "--add-dir=/b",
        '--settings={"x":1}',
        "--max-turns=3",
        "--max-budget-usd=0.5",
        '--mcp-config={"mcpServers":{"one":{"command":"x"}}}',
    }


def test_an_origin_is_resumed_forked_or_forked_at_a_message() -> None:
    assert flags(Origin(cli_session="x")) == {"--resume=x"}
    assert flags(Origin(cli_session="x", fork=True)) == {"--resume=x", "--fork-session"}
    assert flags(Origin(cli_session="x", at="m")) == {
        "--resume=x",
        "--fork-session",
        "--resume-session-at=m",
    }


def test_a_fork_of_nothing_is_refused() -> None:
    for origin in (Origin(fork=True), Origin(at="m")):
        with pytest.raises(UsageError, match="origin"):
            flags(origin)


def test_permissions_are_skipped_only_when_a_person_said_so() -> None:
    with pytest.raises(UsageError, match="skip_permissions"):
        flags(mode="bypassPermissions")
    assert "--dangerously-skip-permissions" in flags(skip_permissions=True)
    assert "--permission-mode=bypassPermissions" in flags(
        mode="bypassPermissions", skip_permissions=True
    )


def test_a_mode_beside_the_leave_to_skip_permissions_is_the_one_that_it_starts_in() -> None:
    for mode in ("default", "acceptEdits", "plan"):
        assert flags(mode=mode, skip_permissions=True) >= {
            f"--permission-mode={mode}",
            "--allow-dangerously-skip-permissions",
        }
        assert "--dangerously-skip-permissions" not in flags(mode=mode, skip_permissions=True)
