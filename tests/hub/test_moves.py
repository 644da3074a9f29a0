"""A session goes on on another machine: what is brought there, and that it has one run only."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, JournalError, LinkRefused, UsageError
from quarterdeck.hub import moves
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.machine_requests import MachineRequests
from quarterdeck.hub.moves import Moves
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import CreateSession, MoveSession
from quarterdeck.protocol.events import (
    AskWithdrawn,
    Noted,
    RunEnded,
    RunStarting,
    SpecChanged,
)
from quarterdeck.protocol.machine_requests import (
    MACHINE_REQUESTS,
    MachineRequestRefused,
    PutTranscript,
    read_machine_request,
)
from quarterdeck.protocol.runner_frames import (
    Header,
    Hello,
    Lines,
    MachineRequest,
    Reply,
    RunReport,
    Start,
    Stop,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.runner.restores import Restores
from quarterdeck.transcripts.layout import project_folder_name
from quarterdeck.worktrees import requests as answering
from quarterdeck.worktrees.starts import Starts
from quarterdeck.worktrees.worktrees import Worktrees
from support import lines
from support.bounds import SECONDS
from support.fleets import Machine, Side, machine, two_hubs
from support.hub_machines import TestMachines, TestRun, hub_with
from support.waiting import until

pytestmark = pytest.mark.anyio

PROMPT = "00000000-0000-4000-8000-000000000001"
ID = lines.SESSION
HOME = "/far/.claude/projects/-far-work"


def entry(uuid: str, parent: str | None = None, text: str = "") -> dict[str, object]:
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "text": text}


def mirror(*entries: dict[str, object], path: str = f"{HOME}/{ID}.jsonl") -> bytes:
    return lines.line(type="transcript_mirror", filePath=path, entries=list(entries))


def disk(folder: Path) -> answering.MachineRequests:
    """The part of a runner that answers requests, with a disk of its own."""
    (folder / "work").mkdir(parents=True)
    restores = Restores(folder / "restores")

    def unused(_: object) -> None:
        raise AssertionError("nobody asks for this")

    return answering.MachineRequests(
        Worktrees(folder / "worktrees", SECONDS),
        lambda *_: False,
        Starts(folder / "starts"),
        answering.CliFiles(
            see_sessions=unused,  # type: ignore[arg-type]
            see_tool_output=unused,  # type: ignore[arg-type]
            put_transcript=restores.put,
            place_transcript=restores.place,
        ),
    )


def transcript(folder: Path) -> Path:
    """Where the CLI of the machine in this folder looks for the conversation."""
    name = project_folder_name(str(folder / "work"))
    return folder / "home" / ".claude" / "projects" / name / f"{ID}.jsonl"


class World:
    """A hub with machines of a test; `two` has a disk, and `one` can be away."""

    def __init__(self, hub: Hub, machines: TestMachines, folder: Path) -> None:
        self.hub, self.machines, self.folder = hub, machines, folder
        self.connected = {"one", "two"}
        self.asked: list[bytes] = []
        self.refusal: MachineRequestRefused | None = None
        self._disk = disk(folder)
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests = MachineRequests(self._tell, self._hello)
        hub._moves = Moves(
            hub._journal, self._requests, self.connected.__contains__, lambda: "local"
        )

    def _hello(self, name: str) -> Hello | None:
        if name not in self.connected:
            return None
        can = (MACHINE_REQUESTS,)
        return Hello(machine=name, runner="r", protocol=1, version="0", pid=1, can=can)

    def _tell(self, name: str, header: Header, /, *given: bytes) -> None:
        assert isinstance(header, MachineRequest)
        self.asked += given
        task = asyncio.get_running_loop().create_task(self._answer(name, header, list(given)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, name: str, header: MachineRequest, given: list[bytes]) -> None:
        refused, line = await self._disk.do(given)
        if self.refusal is not None:
            refused, line = True, msgspec.json.encode(self.refusal)
        self._requests.take_reply(name, Reply(request=header.request, refused=refused), [line])

    async def begin(self, **more: object) -> TestRun:
        """A session on `one`, in a turn."""
        spec = SessionSpec(
            directory=str(self.folder / "work"),
            machine="one",
            session_mirror=True,
            env={"HOME": str(self.folder / "home")},
            **more,  # type: ignore[arg-type]
        )
        await self.hub.submit(
            CreateSession(spec=spec, session="s", prompt=Raw(b'"go"'), prompt_id=PROMPT)
        )
        run = self.machines.runs[-1]
        await run.greet()
        await run.take_prompt()
        return run

    async def move(self, name: str = "two", directory: str | None = None) -> bool:
        command = MoveSession(session="s", machine=name, directory=directory, by="ann")
        return (await self.hub.submit(command)).repeated

    async def events(self) -> list[object]:
        return [each.event for each in await self.hub.events("s")]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    hub, machines = hub_with(MemoryJournal())
    async with hub.run():
        yield World(hub, machines, tmp_path)


async def test_the_run_of_a_machine_that_is_away_ends_as_the_next_one_begins(world: World) -> None:
    run = await world.begin(mode="plan", model="opus")
    agent = f"{HOME}/{ID}/subagents/agent-a.jsonl"
    await run.say(
        mirror(entry("a"), entry("b", "a")),
        mirror(entry("s"), path=agent),
        lines.asks_permission("r1"),
        mirror(entry("c", "b")),
    )
    world.connected.discard("one")
    assert await world.move() is False
    events = await world.events()
    ended = next(at for at, each in enumerate(events) if isinstance(each, RunEnded))
    first, *_, last = events[ended : ended + 4]
    assert isinstance(first, RunEnded)
    assert first.cut_off
    assert first.coded == CodedText(code=TextCode.MOVED_AWAY, name="one", other="two")
    assert isinstance(last, RunStarting)
    assert (last.machine, last.origin) == ("two", Origin(cli_session=ID))
    assert any(isinstance(each, AskWithdrawn) for each in events)
    (changed,) = [each for each in events if isinstance(each, SpecChanged)]
    assert (changed.spec.machine, changed.by) == ("two", "ann")
    (note,) = [each for each in events if isinstance(each, Noted)]
    assert note.coded is not None
    assert (note.coded.code, note.coded.count) == (TextCode.CONTINUES_WITH_LINES, 3)
    assert run.forgotten
    spec, _ = world.machines.started[-1]
    assert (spec.mode, spec.model, spec.machine) == ("plan", "opus", "two")
    assert spec.session_mirror
    written = transcript(world.folder).read_text().splitlines()
    assert [json.loads(line)["uuid"] for line in written] == ["a", "b", "c"]
    inner = transcript(world.folder).with_suffix("") / "subagents" / "agent-a.jsonl"
    assert json.loads(inner.read_text())["uuid"] == "s"
    # What the old process still says is nobody's.
    head = (await world.hub.session("s")).head
    await run.owner.run_said(run.run, run.said + 1, [lines.assistant("late", "l").rstrip()])
    await run.owner.run_lost(run.run, CodedText(code=TextCode.MACHINE_LOST))
    assert (await world.hub.session("s")).head == head
    # Once more is nothing more.
    assert await world.move() is True
    assert (await world.hub.session("s")).head == head


async def test_a_session_that_has_ended_goes_on_elsewhere_in_another_folder(world: World) -> None:
    run = await world.begin()
    await run.say(mirror(entry("a")), lines.result("r"))
    await run.end(clean=True)
    other = world.folder / "other"
    other.mkdir()
    await world.move(directory=str(other))
    view = await world.hub.session("s")
    assert (view.machine, view.spec.directory) == ("two", str(other))
    projects = world.folder / "home" / ".claude" / "projects"
    assert [path.parent.name for path in projects.glob("*/*.jsonl")] == [
        project_folder_name(str(other))
    ]


async def test_a_process_that_can_be_reached_is_stopped_by_a_person_first(world: World) -> None:
    run = await world.begin()
    await run.say(mirror(entry("a")))
    with pytest.raises(Conflict, match="stop it first") as caught:
        await world.move()
    assert caught.value.code == "running"
    world.connected.discard("one")
    with pytest.raises(Conflict, match="not connected"):
        await world.move("one")
    assert world.asked == []


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ((), "only sessions that were started with"),
        ((mirror(entry("z"), path=f"{HOME}/{PROMPT}.jsonl"),), "only sessions"),
        ((mirror(entry("c", "b"), entry("d", "c")),), "1 messages are missing"),
    ],
)
async def test_without_the_whole_transcript_nothing_is_moved(
    world: World, said: tuple[bytes, ...], text: str
) -> None:
    run = await world.begin()
    await run.say(*said) if said else None
    world.connected.discard("one")
    with pytest.raises(Conflict, match=text) as caught:
        await world.move()
    assert caught.value.code == "not_mirrored"
    view = await world.hub.session("s")
    assert (view.run, view.spec.machine) == (run.run, "one")
    assert not transcript(world.folder).exists()


async def test_a_session_without_a_conversation_begins_one_elsewhere(world: World) -> None:
    spec = SessionSpec(directory=str(world.folder / "work"), machine="one")
    await world.hub.submit(CreateSession(spec=spec, session="s", prompt=Raw(b'"go"')))
    world.connected.discard("one")
    await world.move()
    assert world.machines.started[-1][1] == Origin()
    assert [each.run for each in (await world.hub.session("s")).unsent] == [None]


async def test_a_long_transcript_is_sent_in_parts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "PART", 2000)
    monkeypatch.setattr(moves, "PAGE", 3)
    run = await world.begin()
    texts = {f"u{number}": "x" * (300 if number % 7 else 5000) for number in range(40)}
    for uuid, text in texts.items():
        await run.say(mirror(entry(uuid, text=text)), lines.assistant("a", f"m-{uuid}"))
    world.connected.discard("one")
    await world.move()
    sent = [read_machine_request(line) for line in world.asked]
    sizes = [
        [len(bytes(line)) for line in each.lines]
        for each in sent
        if isinstance(each, PutTranscript)
    ]
    assert all(sum(size) <= 2000 or len(size) == 1 for size in sizes)
    assert len(sizes) > 6
    written = [json.loads(line) for line in transcript(world.folder).read_text().splitlines()]
    assert {line["uuid"]: line["text"] for line in written} == texts


async def test_what_the_machine_had_is_kept_and_the_session_says_so(world: World) -> None:
    run = await world.begin()
    await run.say(mirror(entry("a")))
    file = transcript(world.folder)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(entry("only here")) + "\n")
    os.utime(file, (1, 1))
    world.connected.discard("one")
    await world.move()
    notes = [with_texts(each).text for each in await world.events() if isinstance(each, Noted)]
    assert "had 1 messages that the journal does not have" in notes[1]


@pytest.mark.process
async def test_a_machine_that_cannot_is_told_in_words(world: World) -> None:
    run = await world.begin(worktree="fix")
    await run.say(mirror(entry("a")))
    world.connected.discard("one")
    with pytest.raises(UsageError, match="absolute path"):
        await world.move(directory="work")
    with pytest.raises(UsageError, match="it must have a runner"):
        await world.move("dialled")
    with pytest.raises(LinkRefused, match="'three' is not connected"):
        await world.move("three")
    with pytest.raises(Conflict, match="not a folder on this machine"):
        await world.move(directory="/nowhere")
    with pytest.raises(Conflict, match="not a git repository"):
        await world.move()
    world.refusal = MachineRequestRefused(code="unknown", text="this runner does not know it")
    with pytest.raises(Conflict, match="too old") as caught:
        await world.move()
    assert caught.value.code == "old_runner"
    assert (await world.hub.session("s")).run == run.run


async def test_a_session_that_changes_while_it_is_brought_stays(world: World) -> None:
    run = await world.begin()
    await run.say(mirror(entry("a")))
    world.connected.discard("one")
    answer, came = world._answer, anyio.Event()

    async def slowly(name: str, header: MachineRequest, given: list[bytes]) -> None:
        await came.wait()
        await answer(name, header, given)

    world._answer = slowly  # type: ignore[method-assign]
    async with anyio.create_task_group() as tasks:

        async def moving() -> None:
            with pytest.raises(Conflict, match="try again"):
                await world.move()

        tasks.start_soon(moving)
        with anyio.fail_after(SECONDS):
            await until(lambda: bool(world.asked))
        await run.end("It was there all the time.")
        came.set()
    assert (await world.hub.session("s")).spec.machine == "one"


async def test_what_is_not_journalled_is_not_moved(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await world.begin()
    await run.say(mirror(entry("a")))
    world.connected.discard("one")
    journal = world.hub._journal
    real = journal.append

    async def full(session: str, events: object, **more: object) -> object:
        if events:
            raise JournalError("there is no room", code="full")
        return await real(session, events, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(journal, "append", full)
        with pytest.raises(JournalError):
            await world.move()
    assert not run.forgotten
    assert (await world.hub.session("s")).run == run.run
    await world.move()
    assert (await world.hub.session("s")).machine == "two"


# --- with several hubs ---------------------------------------------------------------------------


@asynccontextmanager
async def served(box: Machine, folder: Path) -> AsyncIterator[list[Start]]:
    """A machine whose runner answers requests, and keeps what it is to start."""
    starts: list[Start] = []
    answers = disk(folder)

    async def serve() -> None:
        while True:
            header, given = await box.socket.hear_frame()
            match header:
                case MachineRequest(request=request):
                    refused, line = await answers.do(given)
                    box.socket.say(Reply(request=request, refused=refused), line)
                case Start():
                    starts.append(header)
                case _:
                    raise AssertionError(header)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        yield starts
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def dying(folder: Path) -> AsyncIterator[tuple[Side, Side, Machine, str]]:
    """Two hubs: `box` was at the first, with a session, and is gone; `far` is at the second."""
    async with two_hubs() as (a, b), machine("far", "other") as far:
        async with machine() as box:
            await box.dial(a)
            spec = SessionSpec(
                directory=str(folder / "work"),
                machine="box",
                env={"HOME": str(folder / "home")},
                session_mirror=True,
            )
            await a.hub.submit(CreateSession(spec=spec, session="s", by="ada"))
            start = await box.take_start()
            run = await box.greeted(a, start.run)
            run.say(
                Lines(first=2),
                lines.init().rstrip(b"\n"),
                mirror(entry("a"), entry("b", "a")).rstrip(b"\n"),
            )
            await box.journalled(a, "s", 3)
        with anyio.fail_after(SECONDS):
            await until(lambda: not a.hub.runners.is_connected("box"))
        await far.dial(b)
        yield a, b, far, start.run


@pytest.mark.parametrize("gone", [False, True])
async def test_any_hub_moves_a_session_to_a_machine_of_another_one(
    tmp_path: Path, gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.hub.fleet.PAUSES", (0.0,) * 7)
    async with AsyncExitStack() as stack:
        a, b, far, run = await stack.enter_async_context(dying(tmp_path))
        starts = await stack.enter_async_context(served(far, tmp_path))
        move = MoveSession(session="s", machine="far", by="ann")
        if gone:  # the hub of the dead machine is gone with it
            a.up = False
            await b.hub.submit(move)
        else:
            await a.hub.submit(move)
        with anyio.fail_after(SECONDS):
            await until(lambda: bool(starts))
        assert [each.origin for each in starts] == [Origin(cli_session=ID)]
        view = await b.hub.session("s")
        assert (view.machine, view.run) == ("far", starts[0].run)
        written = transcript(tmp_path).read_text().splitlines()
        assert [json.loads(line)["uuid"] for line in written] == ["a", "b"]
        owner = await b.journal.owner("s")
        assert owner is not None
        assert owner.hub == "b"
        # The machine comes back, to either hub: its run is ended, and nothing of it is taken.
        a.up = True
        back = await stack.enter_async_context(machine())
        back.runs = [RunReport(run=run, session="s", said=9, written=9)]
        await back.dial(a)
        assert await back.socket.hear() == Stop(run=run, force=True)
        head = (await b.hub.session("s")).head
        late = await back.run(a, run, written=9)
        assert await late.closed() == 4400
        assert (await b.hub.session("s")).head == head
        events = [each.event for each in await b.hub.events("s")]
        assert sum(isinstance(each, RunEnded) for each in events) == 1
        assert sum(isinstance(each, RunStarting) for each in events) == 2
