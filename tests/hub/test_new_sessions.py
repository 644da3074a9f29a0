"""Where a new session takes its conversation from, and what its spec may not be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, LinkRefused, NotFound, UsageError
from quarterdeck.hub.hub import Hub
from quarterdeck.protocol.commands import CreateSession, ForkSession
from quarterdeck.protocol.events import Decided, TurnEnded
from quarterdeck.protocol.machine_requests import MACHINE_REQUESTS, SeeCliSessions
from quarterdeck.protocol.runner_frames import Header, Hello, MachineRequest, Reply
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runner.cli_sessions import see_cli_sessions
from quarterdeck.transcripts.layout import project_folder_name
from support import lines
from support.hub_machines import TestMachines

pytestmark = pytest.mark.anyio
SPEC = SessionSpec(directory="/work")


def transcript(config: Path, directory: Path, age: int) -> str:
    """A conversation of the CLI in a folder, as many seconds old."""
    session = str(uuid4())
    folder = config / "projects" / project_folder_name(str(directory.resolve()))
    folder.mkdir(parents=True, exist_ok=True)
    line = {
        "type": "user",
        "uuid": str(uuid4()),
        "sessionId": session,
        "cwd": str(directory),
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {"role": "user", "content": "hello"},
    }
    file = folder / f"{session}.jsonl"
    file.write_text(json.dumps(line) + "\n")
    os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))
    return session


async def test_the_newest_conversation_of_the_folder_goes_on(
    deck: tuple[Hub, TestMachines], tmp_path: Path
) -> None:
    hub, machines = deck
    config, work = tmp_path / "config", tmp_path / "work"
    work.mkdir()
    spec = SessionSpec(directory=str(work), env={"CLAUDE_CONFIG_DIR": str(config)})
    with pytest.raises(NotFound, match="conversation in"):
        await hub.submit(CreateSession(spec=spec, cli_latest=True))
    transcript(config, work, age=100)
    newest = transcript(config, work, age=10)
    await hub.submit(CreateSession(spec=spec, cli_latest=True))
    assert machines.started[-1][1] == Origin(cli_session=newest)
    # The first session has it now: a second one may only have a copy.
    with pytest.raises(Conflict):
        await hub.submit(CreateSession(spec=spec, cli_latest=True))
    await hub.submit(CreateSession(spec=spec, cli_latest=True, cli_fork=True))
    assert machines.started[-1][1] == Origin(cli_session=newest, fork=True)


async def test_the_newest_conversation_is_looked_for_on_the_sessions_own_machine(
    deck: tuple[Hub, TestMachines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, machines = deck
    here, there, work = tmp_path / "here", tmp_path / "there", tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(here))
    transcript(here, work, age=1)
    far = hub.runners.requests
    hello = Hello(
        machine="far", runner="r", version="1", protocol=1, pid=1, can=(MACHINE_REQUESTS,)
    )

    def tell(machine: str, header: Header, /, *asked: bytes) -> None:
        """The far machine does what it is asked for."""
        assert machine == "far"
        assert isinstance(header, MachineRequest)
        found = see_cli_sessions(msgspec.json.decode(asked[0], type=SeeCliSessions))
        far.take_reply(machine, Reply(request=header.request), [msgspec.json.encode(found)])

    monkeypatch.setattr(far, "_send", tell)
    spec = SessionSpec(directory=str(work), machine="far", env={"HOME": str(there)})
    command = CreateSession(spec=spec, cli_latest=True)
    with pytest.raises(LinkRefused, match="not connected"):
        await hub.submit(command)
    monkeypatch.setattr(far, "_hello", lambda _: hello)
    with pytest.raises(NotFound, match="conversation in"):
        await hub.submit(command)
    newest = transcript(there / ".claude", work, age=10)
    transcript(there / ".claude", work, age=20)
    await hub.submit(command)
    assert machines.started[-1][1] == Origin(cli_session=newest)


async def test_a_conversation_of_the_cli_goes_on_in_a_copy(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    for command in (
        CreateSession(spec=SPEC, cli_session="c", cli_fork=True),
        CreateSession(spec=SPEC, cli_session="c", cli_at="m"),
    ):
        await hub.submit(command)
    assert [origin for _, origin in machines.started] == [
        Origin(cli_session="c", fork=True),
        Origin(cli_session="c", fork=True, at="m"),
    ]


@pytest.mark.parametrize(
    "command",
    [
        CreateSession(spec=SPEC, cli_fork=True),
        CreateSession(spec=SPEC, cli_at="m"),
        CreateSession(spec=SPEC, cli_latest=True, cli_session="c"),
        CreateSession(spec=replace(SPEC, worktree="new"), cli_latest=True),
        CreateSession(spec=replace(SPEC, env={"CLAUDE_CODE_SIMPLE": "1"})),
        CreateSession(
            spec=replace(SPEC, extra_args={"Managed-Settings": '{"disableAllHooks":true}'})
        ),
        CreateSession(spec=replace(SPEC, extra_args={"cloud": None})),
        CreateSession(spec=replace(SPEC, mode="bypassPermissions")),
        CreateSession(
            spec=replace(
                SPEC,
                subagents={
                    "a": Raw(
                        b'{"description":"d","prompt":"p","permissionMode":"bypassPermissions"}'
                    )
                },
            )
        ),
    ],
)
async def test_what_cannot_be_begun_is_refused_and_makes_no_session(
    deck: tuple[Hub, TestMachines], command: CreateSession
) -> None:
    hub, machines = deck
    with pytest.raises(UsageError):
        await hub.submit(command)
    assert await hub.sessions() == []
    assert machines.runs == []


async def test_a_fork_with_an_id_of_the_callers_choice_is_made_once(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = (await hub.submit(CreateSession(spec=SPEC, prompt=Raw(b'"go"')))).session
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.result("r", structured_output={"done": True}))
    for repeated in (False, True):
        outcome = await hub.submit(ForkSession(session=session, copy="mine", name="copy"))
        assert (outcome.session, outcome.repeated) == ("mine", repeated)
    with pytest.raises(UsageError, match="dot"):
        await hub.submit(ForkSession(session=session, copy="a.b"))
    (ended,) = [e.event for e in await hub.events(session) if isinstance(e.event, TurnEnded)]
    assert json.loads(bytes(ended.structured)) == {"done": True}


async def test_what_only_initialize_can_say_is_in_it(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    spec = replace(SPEC, skills=("review",), agent_progress_summaries=True)
    await hub.submit(CreateSession(spec=spec))
    (run,) = machines.runs
    await run.greet()
    (greeting,) = [
        line["request"]
        for line in map(json.loads, run.written.values())
        if line.get("request", {}).get("subtype") == "initialize"
    ]
    assert (greeting["skills"], greeting["agentProgressSummaries"]) == (["review"], True)


async def test_an_agent_cannot_change_what_its_cli_is_started_with(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    spec = replace(
        SPEC,
        plugin_dirs=("/work/plugin",),
        system_prompt_file="/work/prompt.md",
        skip_permissions=True,
        auto_approve=("Write",),
    )
    session = (await hub.submit(CreateSession(spec=spec, prompt=Raw(b'"go"')))).session
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    for number, path in enumerate(("/work/plugin/hooks/h.json", "/work/prompt.md", "/work/x")):
        tool_input = {"file_path": path, "content": "evil"}
        await run.say(lines.asks_permission(f"q{number}", "Write", **tool_input))
    verdicts = [
        (each.event.verdict, each.event.by)
        for each in await hub.audit(session=session)
        if isinstance(each.event, Decided)
    ]
    assert verdicts == [("deny", "policy"), ("deny", "policy"), ("allow", "policy")]
