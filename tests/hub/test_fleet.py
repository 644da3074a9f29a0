"""Several hubs on one journal: a machine's runner decides whose its sessions are."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import anyio.lowlevel
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, NotFound, StaleLease
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.agent_tokens import agent_token
from quarterdeck.hub.decisions.inputs import Note
from quarterdeck.hub.fleet import PeerOffline
from quarterdeck.hub.hub import ORPHANS
from quarterdeck.hub.runners import MOVED
from quarterdeck.hub.shell import record
from quarterdeck.journal.ownership import hold_lease
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    ArchiveSession,
    DeleteSession,
    ForkSession,
    RenameSession,
    ResumeSession,
    SendPrompt,
)
from quarterdeck.protocol.events import (
    AskAnswered,
    Noted,
    RunStarting,
    Said,
    SessionCreated,
    SessionRenamed,
)
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Ended,
    Forget,
    Lines,
    MachineRequest,
    Program,
    Reply,
    RunReport,
    Started,
    Write,
    program_session,
)
from quarterdeck.protocol.sessions import INBOUND, SessionSpec
from support import lines
from support.bounds import SECONDS
from support.fleets import PROMPT, Side, create, machine, two_hubs
from support.runner_sockets import Socket
from support.waiting import until

pytestmark = pytest.mark.anyio


async def test_a_machine_that_moves_takes_its_sessions_with_it_and_the_old_hub_writes_nothing() -> (
    None
):
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        run = await box.greeted(a, start.run)
        before = (await a.hub.session("s")).head
        old = box.socket
        box.runs = [RunReport(run=start.run, session="s", said=1, written=1)]
        await box.dial(b)
        new = await box.run(b, start.run, written=1)
        assert await new.hear() == Ack(upto=1)
        # What comes by the old way is not stored, and the old hub closes all of that machine.
        run.say(Lines(first=2), lines.init("2.1.325", uuid="old").rstrip(b"\n"))
        assert await run.closed() == MOVED
        assert await old.closed() == MOVED
        assert a.hub.view("s") is None
        new.say(Lines(first=2), lines.init("2.1.325", uuid="new").rstrip(b"\n"))
        await box.journalled(a, "s", 2)
        events = await b.journal.read("s", after=before)
        assert sum(b'"new"' in bytes(getattr(e.event, "line", b"")) for e in events) == 1
        assert not [e for e in events if b'"old"' in bytes(getattr(e.event, "line", b""))]
        assert [m.name for m in a.hub.machines_here() if m.connected] == []
        # A command at the old hub goes to the new one, and is told there.
        outcome = await a.hub.submit(
            SendPrompt(session="s", prompt=PROMPT.format(1), content=Raw(b'"go"'), by="ada")
        )
        assert outcome.prompt == PROMPT.format(1)
        assert len(a.passed) == 1
        assert [each.prompt for each in (await a.hub.session("s")).unsent] == [PROMPT.format(1)]


async def test_a_session_that_has_a_run_is_restored_before_anything_is_done_to_it() -> None:
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        await box.greeted(a, start.run)
        box.runs = [RunReport(run=start.run, session="s", said=1, written=1)]
        await box.dial(b)
        b.hub._sessions.forget("s")  # as a command finds it that comes before it is loaded
        await b.hub.submit(
            SendPrompt(session="s", prompt=PROMPT.format(1), content=Raw(b'"go"'), by="ada")
        )
        with pytest.raises(Conflict):
            await b.hub.submit(ResumeSession(session="s", by="ada"))
        starts = [e for e in await b.journal.read("s") if isinstance(e.event, RunStarting)]
        assert len(starts) == 1


async def test_a_note_of_any_hub_is_journalled_and_its_owner_goes_on_behind_it() -> None:
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        run = await box.greeted(a, start.run)
        await record(
            await b.hub._find("s"), Note(level="info", coded=CodedText(code=TextCode.TURN_END_LOST))
        )
        # What the owner had in memory is behind: it stores nothing before it has read the note.
        run.say(Lines(first=2), lines.init("2.1.325", uuid="u").rstrip(b"\n"))
        await run.closed()
        again = await box.run(a, start.run, written=1)
        assert await again.hear() == Ack(upto=1)
        again.say(Lines(first=2), lines.init("2.1.325", uuid="u").rstrip(b"\n"))
        await box.journalled(b, "s", 2)
        events = [e.event for e in await a.journal.read("s")]
        assert sum(isinstance(e, Noted) for e in events) == 1
        assert [e.number for e in events if isinstance(e, Said)] == [1, 2]


async def test_a_run_that_was_never_told_to_its_machine_starts_when_that_comes_to_another_hub() -> (
    None
):
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        box.socket._out._queue.clear()  # type: ignore[attr-defined]  # it hears nothing any more
        await a.hub.submit(create())
        a.up = False
        await box.dial(b)
        start = await box.take_start()
        assert start.session == "s"
        assert len([e for e in await b.journal.read("s") if isinstance(e.event, RunStarting)]) == 1


async def test_sessions_without_a_run_are_written_by_whoever_gets_the_command() -> None:
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        run = await box.greeted(a, start.run)
        run.say(Ended(number=2, reason="It exited.", clean=True))
        with anyio.fail_after(SECONDS):
            while (await b.hub.session("s")).run is not None:  # noqa: ASYNC110
                await anyio.sleep(0.005)
        box.runs = []
        for number, side in enumerate((a, b) * 5):
            await side.hub.submit(RenameSession(session="s", name=f"n{number}", by="ada"))
            for each in (a, b):
                assert (await each.hub.session("s")).name == f"n{number}"
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                for side in (a, b):
                    command = RenameSession(session="s", name=f"m{number}", by="ada")
                    tasks.start_soon(side.hub.submit, command)
        renamed = [e for e in await a.journal.read("s") if isinstance(e.event, SessionRenamed)]
        assert len(renamed) == 30
        assert not a.passed
        assert not b.passed
        # What needs the machine goes where that is.
        await b.hub.submit(ResumeSession(session="s", by="ada"))
        assert [type(command).__name__ for command, _ in b.passed] == ["ResumeSession"]
        assert (await box.socket.hear()).__class__ is Forget
        assert (await box.take_start()).session == "s"
        with pytest.raises(Conflict):
            await b.hub.submit(DeleteSession(session="s", by="ada"))


async def test_of_two_hubs_that_answer_the_same_late_question_one_wins_and_the_other_is_told() -> (
    None
):
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        run = await box.greeted(a, start.run)
        await a.hub.submit(
            SendPrompt(session="s", prompt=PROMPT.format(1), content=Raw(b'"go"'), by="ada")
        )
        said = [lines.init("2.1.325", uuid="i"), lines.echo(PROMPT.format(1))]
        said.append(lines.asks_permission("q"))
        run.say(Lines(first=2), *(line.rstrip(b"\n") for line in said))
        await box.journalled(b, "s", 4)
        (card,) = await b.hub.asks()
        told: list[str] = []
        won: list[str] = []

        async def answer(side: Side, by: str) -> None:
            command = AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by=by)
            try:
                await side.hub.submit(command)
                won.append(by)
            except Conflict as error:
                told.append(str(error))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(answer, a, f"ada{number}")
                tasks.start_soon(answer, b, f"bob{number}")
        assert len(won) == 1
        assert told == [f"already answered by {won[0]}"] * 9
        answered = [e for e in await b.journal.read("s") if isinstance(e.event, AskAnswered)]
        assert len(answered) == 1


async def test_an_owner_that_is_gone_is_told_and_its_sessions_go_on_when_their_runner_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quarterdeck.hub.fleet.PAUSES", (0.0,) * 8)
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        await box.greeted(a, start.run)
        a.up = False
        command = RenameSession(session="s", name="x", by="ada")
        with pytest.raises(PeerOffline) as away:
            await b.hub.submit(command)
        assert away.value.code == "owner_away"
        assert (await b.hub.session("s")).name == ""
        box.runs = [RunReport(run=start.run, session="s", said=1, written=1)]
        await box.dial(b)
        await b.hub.submit(command)
        assert (await b.hub.session("s")).name == "x"


async def test_a_machine_that_flaps_between_hubs_loses_and_doubles_nothing() -> None:
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        await box.greeted(a, start.run)
        said = 1
        for number in range(12):
            side = (a, b)[number % 2] if number % 3 else (b, a)[number % 2]
            box.runs = [RunReport(run=start.run, session="s", said=said, written=1)]
            await box.dial(side)
            run = await box.run(side, start.run, written=1)
            ack = await run.hear()
            assert isinstance(ack, Ack)
            for n in range(ack.upto + 1, said + 2):
                run.say(Lines(first=n), lines.init("2.1.325", uuid=f"u{n}").rstrip(b"\n"))
            said += 1
            await box.journalled(a, "s", said)
        events = await a.journal.read("s")
        numbers = [e.event.number for e in events if isinstance(e.event, Said)]
        assert numbers == list(range(1, said + 1))
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        owners = await a.journal.owner("s")
        assert owners is not None
        holding = [side for side in (a, b) if side.fleet.holds_machine("box")]
        with anyio.fail_after(SECONDS):  # the clock of the other one notices it
            await until(lambda: sum(s.fleet.holds_machine("box") for s in (a, b)) == 1)
        assert holding


async def test_a_hub_shows_the_machines_of_all_and_has_them_do_what_is_asked() -> None:
    async with two_hubs() as (a, b), machine() as box, machine("far", "other") as far:
        await box.dial(a)
        await far.dial(b)
        with anyio.fail_after(SECONDS):
            while len(await a.hub.machines()) < 2:  # noqa: ASYNC110
                await anyio.sleep(0.005)
        assert {m.name for m in await b.hub.machines()} == {"box", "far"}
        answers: list[tuple[bool, bytes]] = []

        async def ask() -> None:
            answers.append(await a.hub.runners.requests.ask("far", Raw(b'{"errand":"x"}')))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            wanted = await far.socket.hear()
            assert isinstance(wanted, MachineRequest)
            far.socket.say(Reply(request=wanted.request), b'{"ok":1}')
        assert answers == [(False, b'{"ok":1}')]
        with pytest.raises(Exception, match="is not connected"):
            await a.hub.runners.requests.ask("nowhere", Raw(b"{}"))


async def test_a_session_that_names_no_machine_starts_on_one_that_is_there_at_any_hub() -> None:
    async with two_hubs() as (a, b), machine() as box:
        with pytest.raises(NotFound):
            await a.hub.submit(create("t"))
        await box.dial(b)
        await anyio.lowlevel.checkpoint()
        with anyio.fail_after(SECONDS):
            while not await a.hub.machines():  # noqa: ASYNC110
                await anyio.sleep(0.005)
        await a.hub.submit(create(name=None))
        assert (await box.take_start()).session == "s"
        assert (await a.hub.session("s")).spec.machine == "box"
        assert [type(command).__name__ for command, _ in a.passed] == ["CreateSession"]
        with pytest.raises(Conflict):
            await a.hub.submit(ForkSession(session="s", by="ada"))  # nothing was said yet
        await a.hub.submit(ArchiveSession(session="s", archived=True, by="ada"))
        assert (await b.hub.session("s")).archived


async def test_a_program_that_comes_to_another_hub_takes_its_session_with_it() -> None:
    session = program_session(1.0, "key")
    program = Program(
        protocol=PROTOCOL,
        session=session,
        run=new_id(),
        key="key",
        began=1.0,
        name="nightly",
        directory="/work",
    )
    async with two_hubs() as (a, b), AsyncExitStack() as stack:
        sockets = []
        for side in (a, b):
            socket = Socket()
            await stack.enter_async_context(socket.on(side.hub.programs, "/program"))
            socket.say(program)
            assert isinstance(await socket.hear(), Ack)
            owner = await side.journal.owner(session)
            assert owner is not None
            assert owner.hub == side.fleet.id
            sockets.append(socket)
        old, new = sockets
        new.say(Started(pid=7, version="2.1.325", directory="/work"))
        new.say(Lines(first=1), lines.init("2.1.325", uuid="new").rstrip(b"\n"))
        with anyio.fail_after(SECONDS):
            while (await a.hub.session(session)).said < 1:  # noqa: ASYNC110
                await anyio.sleep(0.005)
        # The old hub stores nothing of it any more, and sends it away.
        old.say(Lines(first=1), lines.init("2.1.325", uuid="old").rstrip(b"\n"))
        await old.closed()
        assert a.hub.view(session) is None
        assert b.hub.view(session) is not None
        events = [e.event for e in await a.journal.read(session)]
        assert [e.number for e in events if isinstance(e, Said)] == [1]
        assert sum(isinstance(e, RunStarting) for e in events) == 1
        await a.hub.submit(RenameSession(session=session, name="mine", by="ada"))
        assert [type(command).__name__ for command, _ in a.passed] == ["RenameSession"]


async def test_sessions_without_a_hub_are_looked_after_by_one_until_their_runner_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quarterdeck.hub.hub.CLOCK_SECONDS", 0.02)
    monkeypatch.setattr("quarterdeck.hub.hub.ORPHAN_SECONDS", 0.02)
    async with two_hubs() as (a, b), machine() as box:
        monkeypatch.setattr(a.hub, "_tick_sessions", anyio.lowlevel.checkpoint)  # it stands still
        await box.dial(a)
        spec = replace(create().spec, ask_timeout=0.01)
        await a.hub.submit(replace(create(), spec=spec))
        start = await box.take_start()
        run = await box.greeted(a, start.run)
        await a.hub.submit(
            SendPrompt(session="s", prompt=PROMPT.format(1), content=Raw(b'"go"'), by="ada")
        )
        said = [lines.init("2.1.325", uuid="i"), lines.echo(PROMPT.format(1))]
        said.append(lines.asks_permission("q"))
        run.say(Lines(first=2), *(line.rstrip(b"\n") for line in said))
        await box.journalled(b, "s", 4)
        lease = await b.journal.take_lease(ORPHANS, "b", 60)
        assert lease is not None
        generation = (await b.journal.machine_owners())["box"].fence

        async def never(_: str) -> None:
            raise AssertionError("its hub is there")

        for _ in range(3):  # while a hub shows itself, nothing is taken from it
            await b.journal.announce("a", "http://a")
            await b.fleet.adopt(never, lease)
        await b.journal.forget_hub("a")
        await b.fleet.adopt(never, lease)  # it may have just begun
        await b.journal.release_lease(lease)
        with pytest.raises(StaleLease):  # a hub that lost the lease meanwhile takes nothing
            await b.fleet.adopt(never, lease)
        taken = await b.journal.take_lease(ORPHANS, "b", 60)
        assert taken is not None
        async with anyio.create_task_group() as tasks:
            with hold_lease(taken):
                tasks.start_soon(b.hub.keep_orphans)
            with anyio.fail_after(SECONDS):
                while await b.hub.asks():  # noqa: ASYNC110 - the other hub's clock
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        (answered,) = [
            each.event for each in await b.journal.read("s") if isinstance(each.event, AskAnswered)
        ]
        assert answered.by == "time limit"
        assert (await b.journal.machine_owners())["box"].fence > generation
        # The hub that stood still writes nothing more, and its runner dials again.
        monkeypatch.undo()
        await a.fleet.look()
        assert a.hub.view("s") is None
        box.runs = [RunReport(run=start.run, session="s", said=4, written=2)]
        await box.dial(b)
        new = await box.run(b, start.run, written=2)
        assert await new.hear() == Ack(upto=4)
        told = await new.hear()
        assert isinstance(told, Write)


async def test_an_agents_token_is_known_at_every_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_hubs() as (a, b), machine() as box:
        monkeypatch.setattr(b.hub, "_secret", a.hub._secret)  # the shared file
        await box.dial(a)
        spec = replace(create().spec, agents=True)
        await a.hub.submit(replace(create(), spec=spec))
        start = await box.take_start()
        await box.greeted(a, start.run)
        token = agent_token(a.hub._secret, "s", start.run)
        assert a.hub.agent_of(token) is not None
        assert b.hub.agent_of(token) is None
        owner = await b.hub.remote_agent(token)
        assert owner is not None
        assert owner.owner.hub == "a"
        assert await a.hub.remote_agent(token) is None, "it is here"
        for wrong in (
            agent_token(b"x" * 32, "s", start.run),
            agent_token(a.hub._secret, "s", "another run"),
            agent_token(a.hub._secret, "nobody", start.run),
            "qd_" + "0" * 12 + "_" + "x" * 40,
            "",
        ):
            assert await b.hub.remote_agent(wrong) is None


async def test_a_cli_at_the_root_is_known_again_at_another_hub() -> None:
    async with two_hubs() as (a, b):
        b.hub.inbound.tokens.secret = a.hub.inbound.tokens.secret  # the shared file
        spec = SessionSpec(directory="/")
        for name, at_root in (("rooted", True), ("own", False)):
            line = Raw(b'{"type":"x","uuid":"u-%s"}' % name.encode())
            await a.journal.append(
                name,
                [
                    SessionCreated(spec=spec, by="cli"),
                    RunStarting(run=f"r-{name}", machine=INBOUND, at_root=at_root),
                    Said(run=f"r-{name}", number=2, line=Raw(b"[1]")),
                    Said(run=f"r-{name}", number=1, line=line),
                ],
                claim="a",
            )

        async def comes(last: str, token: str) -> str:
            headers = [
                (b"authorization", f"Bearer {token}".encode()),
                (b"x-last-request-id", last.encode()),
            ]
            scope = {"type": "websocket", "path": "/", "headers": headers, "client": ("::1", 1)}
            return str((await b.hub.inbound._place(scope))["path"])

        token = b.hub.inbound.tokens.token("/")
        assert await comes("u-rooted", "wrong") == "/"
        # One that took its own path, a message that nobody said, and none: a new session.
        for last in ("u-own", "u-nobody"):
            assert (await comes(last, token)).rpartition("/")[2] not in {"rooted", "own"}
        assert (await comes("u-rooted", token)).endswith("/rooted")
        owner = await b.journal.owner("rooted")
        assert owner is not None
        assert owner.hub == "b"
        view = b.hub.view("rooted")
        assert view is not None
        assert view.run == "r-rooted"
