"""A program, a CLI and a hub in the hand of the test: what happens to lines, and at the ends."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from msgspec import Raw

from quarterdeck.domain.coded import TextCode
from quarterdeck.domain.errors import LinkRefused
from quarterdeck.domain.ids import new_id
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.program.arguments import command_line
from quarterdeck.program.bridge import Bridge
from quarterdeck.program.hub_link import HubLink, Timeouts
from quarterdeck.protocol import runner_frames as frames
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, RawAnswer, StopSession
from quarterdeck.protocol.events import AskAnswered, Noted, ProgramActed, PromptQueued, Said
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.runner_frames import PROTOCOL, Program, program_session
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.runner.hublink import Hub as HubPlace
from quarterdeck.runner.limits import Bounds
from quarterdeck.runner.spool import Spool
from quarterdeck.testing import fake
from quarterdeck.testing.fake import Step, fake_cli_command
from support.bounds import SECONDS
from support.processes import running as running_process
from support.runner_sockets import Socket
from support.served_deck import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.process]

SDK = ("--output-format", "stream-json", "--input-format", "stream-json", "--verbose")
CALLBACK = (*SDK, "--permission-prompt-tool", "stdio")
INITIALIZE = {
    "type": "control_request",
    "request_id": "p1",
    "request": {"subtype": "initialize", "hooks": None},
}
PROMPT = {"type": "user", "message": {"role": "user", "content": "hello"}, "session_id": ""}
ALLOW = {"behavior": "allow", "updatedInput": {"command": "ls"}}
TAKEN = {
    "type": "user",
    "message": {"role": "user", "content": "hello"},
    "isReplay": True,
    "uuid": "$uuid",
    "session_id": "$session_id",
    "parent_tool_use_id": None,
}
ASKS: tuple[Step, ...] = (
    fake.Initialize(),
    fake.Expect("user"),
    fake.say(TAKEN),
    fake.say(fake.can_use_tool("Bash", {"command": "ls"})),
    fake.Expect("control_response"),
    fake.say(fake.assistant("done"), fake.result("done")),
    fake.ExpectEnd(),
)


class _Token:
    """Whose token it is."""

    def __init__(self, name: str, role: Role) -> None:
        self.name = name
        self.role = role


class World:
    """A hub that can go away and come back, with its journal; programs connect to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = MemoryJournal()
        self.tokens = {"right": _Token("nightly", Role.PROGRAM), "owner": _Token("ada", Role.OWNER)}
        self.port = free_port()
        self.hub = self._make()
        (folder / "policy.toml").write_text('default = "cli"\n')

    def _make(self) -> Hub:
        return Hub(
            self.journal,
            lambda _: None,
            check_program=self.tokens.get,
            policies=Policies(self.folder),
        )

    @asynccontextmanager
    async def up(self) -> AsyncIterator[Hub]:
        """The hub is there while the block runs: another one each time, at the same address."""
        self.hub = self._make()
        async with self.hub.run(), serve_endpoint(self.hub.programs, port=self.port):
            yield self.hub

    async def view(self, holds: Any = lambda view: True) -> SessionView:
        """The one session, when it is as wanted."""
        with anyio.fail_after(SECONDS):
            while True:
                for view in await self.hub.sessions():
                    if holds(view):
                        return view
                await anyio.sleep(0.01)


class Started:
    """`quarterdeck-claude` in this process, and the program at its pipes."""

    def __init__(self, world: World, script: tuple[Step, ...], argv: tuple[str, ...]) -> None:
        self.world = world
        self.command = fake_cli_command(script, folder=world.folder)
        self.line = command_line(argv, dict(os.environ))
        self.code: int | None = None
        self.error: LinkRefused | None = None
        self.lines: list[dict[str, Any]] = []
        self.ended = anyio.Event()

    async def run(
        self,
        token: str = "right",
        timeouts: Timeouts | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        inner_in, self._to = os.pipe()
        self._from, inner_out = os.pipe()
        began = 1_790_000_000.0
        program = Program(
            protocol=PROTOCOL,
            session=program_session(began, "key"),
            run=new_id(),
            key="key",
            began=began,
            name="a program",
            directory=str(self.world.folder),
        )
        spool = Spool.create(self.world.folder / f"spool-{new_id()}", bounds or Bounds())
        bridge = Bridge(self.line, inner_in, inner_out)
        place = f"http://127.0.0.1:{self.world.port}"
        hub = HubLink(
            lambda: HubPlace(place, token), program, spool, bridge.take_hub, bridge.stop, timeouts
        )
        try:
            self.code = await bridge.run(self.command, hub)
        except LinkRefused as error:
            self.error = error
        finally:
            spool.remove()
            for descriptor in (inner_in, inner_out):
                with suppress(OSError):
                    os.close(descriptor)
            self.ended.set()

    def say(self, *lines: dict[str, Any]) -> None:
        """The program writes lines."""
        os.write(self._to, b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    def end_input(self) -> None:
        os.close(self._to)

    def stop_reading(self) -> None:
        os.close(self._from)

    async def hear(self, kind: str) -> dict[str, Any]:
        """The next line of this type that the program gets."""
        with anyio.fail_after(SECONDS):
            while True:
                line: dict[str, Any] = json.loads(await anyio.to_thread.run_sync(self._line))
                self.lines.append(line)
                if line["type"] == kind:
                    return line

    def _line(self) -> bytes:
        data = b""
        while not data.endswith(b"\n"):
            piece = os.read(self._from, 1)
            if not piece:
                raise AssertionError(f"the output has ended: {self.lines}")
            data += piece
        return data

    def close(self) -> None:
        for descriptor in (self._to, self._from):
            with suppress(OSError):
                os.close(descriptor)


@asynccontextmanager
async def running(
    world: World,
    script: tuple[Step, ...] = ASKS,
    argv: tuple[str, ...] = CALLBACK,
    **how: Any,
) -> AsyncIterator[Started]:
    started = Started(world, script, argv)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: started.run(**how))
        with anyio.fail_after(SECONDS):
            while not hasattr(started, "_from"):  # noqa: ASYNC110
                await anyio.sleep(0.001)
        try:
            yield started
        finally:
            tasks.cancel_scope.cancel()
    started.close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _success(request_id: str, body: object) -> dict[str, Any]:
    response = {"subtype": "success", "request_id": request_id, "response": body}
    return {"type": "control_response", "response": response}


async def _ended(started: Started) -> None:
    with anyio.fail_after(SECONDS):
        await started.ended.wait()


async def test_the_programs_answer_is_one_by_the_program_and_the_end_is_told(world: World) -> None:
    async with world.up() as hub, running(world) as program:
        program.say(INITIALIZE, PROMPT)
        asked = await program.hear("control_request")
        program.say(_success(asked["request_id"], ALLOW))
        assert (await program.hear("result"))["result"] == "done"
        program.end_input()
        await _ended(program)
        assert program.code == 0
        view = await world.view(lambda view: view.state == "ended")
        events = [each.event for each in await hub.events(view.session)]
        (prompt,) = [each for each in events if isinstance(each, PromptQueued)]
        assert (prompt.by, bytes(prompt.content)) == ("program nightly", b'"hello"')
        assert view.unsent == ()
        assert (view.name, view.spec.directory) == ("a program", str(world.folder))
        (decided,) = [each.event for each in await hub.audit() if hasattr(each.event, "by")][-1:]
        assert getattr(decided, "by", "") == "program nightly"


async def test_a_question_that_neither_program_nor_person_answers_is_denied_in_time(
    world: World,
) -> None:
    async with world.up() as hub:
        hub.program_ask_seconds = 0.01
        async with running(world) as program:
            program.say(INITIALIZE, PROMPT)
            await program.hear("control_request")  # and no answer
            assert (await program.hear("result"))["result"] == "done"
            view = await world.view()
            events = [each.event for each in await hub.events(view.session)]
            (answered,) = [each for each in events if isinstance(each, AskAnswered)]
            assert (answered.by, answered.allowed) == ("time limit", False)
            program.end_input()
            await _ended(program)


async def test_while_the_hub_is_away_the_program_waits_and_then_goes_on(world: World) -> None:
    async with running(world, timeouts=Timeouts(start=SECONDS)) as program:
        async with world.up():
            program.say(INITIALIZE, PROMPT)
            await world.view(lambda view: view.asks)
        # The hub is gone; the answer of the program waits for the next one.
        asked = await program.hear("control_request")
        program.say(_success(asked["request_id"], ALLOW))
        # So does what the audit log is to have.
        settings = {"env": {"CLAUDE_CODE_SIMPLE": "1"}}
        request = {"subtype": "apply_flag_settings", "settings": settings}
        program.say({"type": "control_request", "request_id": "p9", "request": request})
        variables = {"type": "update_environment_variables", "variables": settings["env"]}
        program.say(variables)
        refused = (await program.hear("control_response"))["response"]
        assert (refused["request_id"], refused["subtype"]) == ("p9", "error")
        async with world.up() as hub:
            assert (await program.hear("result"))["result"] == "done"
            program.end_input()
            await _ended(program)
            assert program.code == 0
            view = await world.view(lambda view: view.state == "ended")
            events = [each.event for each in await hub.audit(session=view.session)]
            acts = [each for each in events if isinstance(each, ProgramActed)]
            assert [(act.by, act.what, act.refused) for act in acts] == [
                ("program nightly", "apply_flag_settings", True),
                ("program nightly", "update_environment_variables", True),
            ]
            assert (await hub.policy.verify()).good
    assert len(await world.journal.summaries()) == 1


async def test_a_person_answers_in_the_clis_own_form_and_the_program_hears_it(world: World) -> None:
    async with world.up() as hub, running(world) as program:
        program.say(INITIALIZE, PROMPT)
        await program.hear("control_request")
        view = await world.view(lambda view: view.asks)
        (ask,) = view.asks
        body = Raw(b'{"behavior":"deny","message":"not now"}')
        await hub.submit(AnswerAsk(ask=ask, answer=RawAnswer(body=body), by="ada", role="owner"))
        assert (await program.hear("control_cancel_request"))["request_id"] == "ask-1"
        program.say(_success("ask-1", ALLOW))
        await program.hear("result")


async def test_an_answer_of_the_program_that_a_rule_does_not_want_does_not_count(
    world: World,
) -> None:
    (world.folder / "policy.toml").write_text(
        'default = "cli"\n[[rule]]\nname = "look"\nverdict = "ask"\ncommand = "ls"\n'
        'answered_by = ["role:owner"]\n'
    )
    async with world.up() as hub, running(world) as program:
        program.say(INITIALIZE, PROMPT)
        await program.hear("control_request")
        program.say(_success("ask-1", ALLOW))
        view = await world.view(lambda view: view.asks)
        with anyio.fail_after(SECONDS):
            while True:
                events = [each.event for each in await hub.events(view.session)]
                codes = [
                    each.coded.code for each in events if isinstance(each, Noted) and each.coded
                ]
                if TextCode.ANSWER_IGNORED in codes:
                    break
                await anyio.sleep(0.01)
        (ask,) = view.asks
        await hub.submit(AnswerAsk(ask=ask, answer=AllowAnswer(), by="ada", role="owner"))
        await program.hear("result")


async def test_a_session_that_is_stopped_ends_the_cli(world: World) -> None:
    script = (fake.Initialize(), fake.Expect("user"), fake.say(fake.assistant("x")), fake.Serve())
    async with world.up() as hub, running(world, script) as program:
        program.say(INITIALIZE, PROMPT)
        await program.hear("assistant")
        view = await world.view()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hub.submit, StopSession(session=view.session, by="ada"))
            await _ended(program)
        await world.view(lambda view: view.state == "ended")


async def test_a_program_that_is_gone_takes_the_cli_with_it(world: World, tmp_path: Path) -> None:
    child = tmp_path / "child.pid"
    script = (
        fake.Initialize(),
        fake.Expect("user"),
        fake.SpawnChild(str(child)),
        fake.say(fake.assistant("x")),
        fake.Hang(),
    )
    async with world.up(), running(world, script) as program:
        program.say(INITIALIZE, PROMPT)
        await program.hear("assistant")
        program.stop_reading()
        await _ended(program)
        assert program.code in (-15, 143)
        await world.view(lambda view: view.state == "ended")
        assert not running_process(int(child.read_text()))


async def test_a_wrong_token_or_no_hub_runs_nothing(world: World) -> None:
    async with world.up(), running(world, token="wrong") as program:
        await _ended(program)
        assert program.code is None
        assert "403" in str(program.error)
        assert await world.hub.sessions() == []
    async with running(world, timeouts=Timeouts(start=0.2)) as program:
        await _ended(program)
        assert program.error is not None


async def test_a_revoked_token_ends_the_agent(world: World) -> None:
    script = (fake.Initialize(), fake.Expect("user"), fake.say(fake.assistant("x")), fake.Serve())
    timeouts = Timeouts(refused=0.0, farewell=0.1)
    async with world.up() as hub, running(world, script, timeouts=timeouts) as program:
        program.say(INITIALIZE, PROMPT)
        await program.hear("assistant")
        world.tokens.clear()
        (port,) = hub.programs._ports.values()
        assert port.wire is not None
        port.wire.close(4401)
        view = await world.view(lambda view: view.state == "ended")
        assert view.run is None
        await _ended(program)


async def test_a_cli_that_cannot_be_started_ends_the_session(world: World) -> None:
    async with world.up():
        started = Started(world, ASKS, CALLBACK)
        started.command = (str(world.folder / "none"),)
        await started.run()
        started.close()
        assert started.code == 1
        view = await world.view(lambda view: view.state == "ended")
        assert view.ended is not None
        assert "was not started" in view.detail


async def test_a_hub_that_is_away_long_gets_all_but_the_oldest_pieces(world: World) -> None:
    script = (
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(fake.assistant("begun")),
        fake.Stream(3000, text="word " * 20),
        fake.say(fake.assistant("whole"), fake.result("whole")),
        fake.ExpectEnd(),
    )
    bounds = Bounds(memory=20_000, disk=60_000, segment=10_000)
    timeouts = Timeouts(start=SECONDS, farewell=SECONDS)
    async with running(world, script, timeouts=timeouts, bounds=bounds) as program:
        async with world.up():
            program.say(INITIALIZE)
            await program.hear("control_response")
        program.say(PROMPT)
        assert (await program.hear("result"))["result"] == "whole"
        program.end_input()
        async with world.up() as hub:
            await _ended(program)
            view = await world.view(lambda view: view.state == "ended")
            said = [each.event for each in await hub.events(view.session)]
            lines = [json.loads(bytes(each.line)) for each in said if isinstance(each, Said)]
            assert [each["type"] for each in lines].count("assistant") == 2
            assert [each["type"] for each in lines].count("result") == 1


# --- frames that a program should not send --------------------------------------------------------


def _hello(key: str = "key", session: str = "") -> Program:
    began = 1_790_000_000.0
    return Program(
        protocol=PROTOCOL,
        session=session or program_session(began, key),
        run="01m7nn85vya5ccaykksfj7ypr3",
        key=key,
        began=began,
        name="x",
        directory="/",
    )


async def test_a_program_cannot_have_the_session_of_another(world: World) -> None:
    hub = world.hub
    async with hub.run():
        first = Socket()
        async with first.on(hub.programs, "/program"):
            first.say(_hello())
            assert isinstance(await first.hear(), frames.Ack)
            thief = Socket()
            async with thief.on(hub.programs, "/program"):
                thief.say(_hello("other key", session=program_session(1_790_000_000.0, "key")))
                assert await thief.closed() == 4400
            other = Socket()
            async with other.on(hub.programs, "/program"):
                other.say(_hello("other key"))
                # It names the run of another, and gets a session of its own.
                assert isinstance(await other.hear(), frames.Ack)
            assert len(await hub.sessions()) == 2
            first.say(frames.Vitals(runs=1, memory_available=1, load=0.0))
            assert await first.closed() == 4400


async def test_a_token_does_not_begin_countless_sessions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = world.hub
    hub.programs.most_new = 2

    async def take(key: str, token: str = "right") -> None:
        socket = Socket()
        async with socket.on(hub.programs, "/program", token=token):
            socket.say(_hello(key))
            assert isinstance(await socket.hear(), frames.Ack)

    async with hub.run():
        await take("one")
        await take("two")
        third = Socket()
        async with third.on(hub.programs, "/program"):
            third.say(_hello("three"))
            assert await third.closed() == 1013, "it may dial again"
        await take("two")  # it has its session, and comes back
        await take("four", token="owner")
        assert len(await hub.sessions()) == 3
        monkeypatch.setattr("quarterdeck.hub.programs.NEW_SECONDS", 0.0)
        await take("three")


async def test_a_program_that_stays_away_has_ended(world: World) -> None:
    hub = world.hub
    async with hub.run():
        socket = Socket()
        async with socket.on(hub.programs, "/program", token="owner"):
            socket.say(_hello())
            await socket.hear()
            socket.say(frames.Started(pid=1, directory="/"))
            socket.say(frames.Written(upto=0))
            assert (await socket.hear()) == frames.Write(number=1)
        await world.view(lambda view: view.link_lost is not None)
        hub.programs.return_seconds = 0.0
        view = await world.view(lambda view: view.state == "ended")
        again = Socket()
        async with again.on(hub.programs, "/program", token="owner"):
            again.say(_hello())
            assert isinstance(await again.hear(), frames.Stop), "its run is over"
        assert view.spec.restart == "never"
