"""Hints that the sandbox refused something: only for paths that it does refuse."""

from __future__ import annotations

import json

import pytest

from quarterdeck.hub.hub import Hub
from quarterdeck.hub.sandbox_hints import hints, rule_for, status_of
from quarterdeck.protocol import commands
from quarterdeck.protocol.events import SandboxRefused, SandboxStarted
from quarterdeck.protocol.holds import Holds, RunningTool
from quarterdeck.protocol.runner_frames import Connection
from quarterdeck.protocol.sandbox import SandboxPaths, SandboxReport, SandboxState
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire import codec
from support import lines
from support.hub_machines import TestMachines

PATHS = SandboxPaths(
    writable=("/home/ada/web", "/tmp/run"),
    read_only=("/home/ada/web/.git/hooks", "/home/ada/web/.git/config"),
    hidden=("/home/ada/.ssh", "/home/ada/web/secret"),
)
HOLDS = Holds(tools=(RunningTool(call="t1", tool="Bash"),))


def sandbox(kind: str = "bubblewrap", mode: str = "protect") -> SandboxStarted:
    state = SandboxState(mode=mode, kind=kind, wanted="protect")  # type: ignore[arg-type]
    return SandboxStarted(run="r", state=state, paths=PATHS)


def result(text: str, call: str = "t1") -> bytes:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": True}
    return json.dumps({"type": "user", "message": {"role": "user", "content": [block]}}).encode()


def found(text: str, in_: SandboxStarted | None) -> list[tuple[str, str]]:
    message = codec.from_cli(result(text))
    return [(hint.access, hint.target) for hint in hints(in_, HOLDS, message)]


KEY = "/home/ada/.ssh/id_rsa"
HOOK = "/home/ada/web/.git/hooks/pre-commit"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"bash: line 1: {HOOK}: Read-only file system", [("write", HOOK)]),
        ("bash: .git/hooks/pre-commit: Read-only file system", [("write", HOOK)]),
        (f"/bin/bash: line 1: {HOOK}: Read-only file system", [("write", HOOK)]),
        ("cp: cannot create '/opt/b': Read-only file system (see /opt/doc)", [("write", "/opt/b")]),
        ("touch: cannot touch '/opt/a b/x': Read-only file system", [("write", "/opt/a b/x")]),
        ("Error: EROFS: read-only file system, open '/opt/x'", [("write", "/opt/x")]),
        ("OSError: [Errno 30] Read-only file system: '/opt/x'", [("write", "/opt/x")]),
        (f"cat: {KEY}: No such file or directory", [("read", KEY)]),
        ("cat: secret/key: Permission denied", [("read", "/home/ada/web/secret/key")]),
        # Not what this sandbox refuses.
        ("cat: /etc/nothing: No such file or directory", []),
        ("bash: /home/ada/web/x: Read-only file system", []),
        ("cat: /etc/shadow: Permission denied", []),
        ("see https://example.org/x: Permission denied", []),
        ("Read-only file system", []),
        ("all is well with /opt/x", []),
    ],
)
def test_a_result_with_a_path_that_the_sandbox_refuses_is_a_hint(
    text: str, expected: list[tuple[str, str]]
) -> None:
    assert found(text, sandbox()) == expected


def test_landlock_says_permission_denied_for_a_write_and_readers_do_not_write() -> None:
    landlock = sandbox("landlock")
    assert found("bash: /opt/x: Permission denied", landlock) == [("write", "/opt/x")]
    assert found("cat: /etc/shadow: Permission denied", landlock) == []


@pytest.mark.parametrize("off", [None, sandbox(mode="off")])
def test_without_a_sandbox_there_is_no_hint(off: SandboxStarted | None) -> None:
    assert found("bash: /opt/x: Read-only file system", off) == []


def test_a_result_of_an_unknown_call_is_no_hint_and_many_are_few() -> None:
    text = "\n".join(f"bash: /opt/{n}: Read-only file system" for n in range(100))
    other = codec.from_cli(result(text, call="other"))
    assert list(hints(sandbox(), HOLDS, other)) == []
    assert len(found(text, sandbox())) == 3


def test_a_long_result_is_looked_at_at_both_ends() -> None:
    text = "x\n" * 1_000_000 + "bash: /opt/last/x: Read-only file system"
    assert found(text, sandbox()) == [("write", "/opt/last/x")]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/opt/out/x", "Edit(//opt/out/**)"),
        ("/opt/x", "Edit(//opt/x)"),
        ("/home/ada/notes", "Edit(//home/ada/notes)"),  # its folder has the project in it
        (HOOK, "Edit(//home/ada/web/.git/hooks)"),
        ("/opt/o*t/x", ""),
    ],
)
def test_the_rule_that_would_help_is_as_narrow_as_is_useful(path: str, rule: str) -> None:
    assert rule_for(path, PATHS) == rule


def test_the_deepest_folder_decides_what_a_path_is() -> None:
    paths = SandboxPaths(writable=("/a", "/a/b/c"), read_only=("/a/b",), hidden=("/a",))
    assert [status_of(path, paths) for path in ("/a/x", "/a/b/x", "/a/b/c/x", "/ab")] == [
        "hidden",
        "read_only",
        "writable",
        "other",
    ]


@pytest.mark.anyio
async def test_a_hint_and_a_refused_host_are_journalled_beside_the_call(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    created = commands.CreateSession(spec=SessionSpec(directory="/home/ada/web"), by="ada")
    session = (await hub.submit(created)).session
    (run,) = machines.runs
    report = SandboxReport(state=sandbox().state, paths=PATHS)
    await run.owner.run_started(run.run, 42, "2.1.325", "/home/ada/web", report)
    (greeting,) = run.read()
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    await run.say(
        lines.success_answer(greeting["request_id"]),
        lines.line(
            type="assistant",
            message={"role": "assistant", "content": [call], "model": "m", "id": "m1"},
            uuid="a1",
            session_id=lines.SESSION,
        ),
    )
    run.said += 1
    refused = Connection(number=run.said, host="evil.example", port=443, allowed=False)
    await run.owner.run_connected(run.run, refused)
    await run.say(result("make: /opt/out/x: Read-only file system"))
    hinted = [e.event for e in await hub.events(session) if isinstance(e.event, SandboxRefused)]
    assert hinted == [
        SandboxRefused(
            call="t1",
            tool="Bash",
            access="connect",
            target="evil.example",
            rule="WebFetch(domain:evil.example)",
        ),
        SandboxRefused(
            call="t1", tool="Bash", access="write", target="/opt/out/x", rule="Edit(//opt/out/**)"
        ),
    ]
    assert all(not isinstance(e.event, SandboxRefused) for e in await hub.audit(session=session))
