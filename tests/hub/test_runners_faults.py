"""The runners' end at the hub, with sockets in the hand of the test: machines that come and go."""

from __future__ import annotations

import anyio
import pytest
from msgspec import Raw

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.errors import JournalError
from quarterdeck.hub.ports import RunEnd
from quarterdeck.hub.run_sockets import ACK_LINES
from quarterdeck.hub.runners import BAD_FRAME, FORBIDDEN, TRY_AGAIN, Runners
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Connection,
    Forget,
    Hello,
    Lines,
    ProgramAct,
    RunReport,
    Start,
    Started,
    Stop,
    Welcome,
    Write,
    Written,
)
from quarterdeck.protocol.sandbox import SandboxReport
from quarterdeck.protocol.sessions import Origin, SessionSpec
from support.bounds import SECONDS
from support.runner_sockets import Socket
from support.waiting import until

pytestmark = pytest.mark.anyio

SPEC = SessionSpec(directory="/work")


class Owner:
    """A session that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.full = False
        self.ending: anyio.Event | None = None
        """While set, an end takes until then to be journalled."""

    async def run_started(
        self,
        run: str,
        pid: int | None,
        version: str | None,
        directory: str | None,
        sandbox: SandboxReport | None = None,
    ) -> None:
        self.told.append(("started", run))

    async def run_connected(self, run: str, connection: Connection) -> None:
        self.told.append(("connected", connection.host))

    async def run_said(self, run: str, first: int, lines: list[bytes]) -> None:
        if self.full:
            raise JournalError("there is no room", code="full")
        self.told += [("said", line.decode()) for line in lines]

    async def run_ended(self, run: str, ending: RunEnd) -> None:
        if self.ending is not None:
            await self.ending.wait()
        self.told.append(("ended", run))

    async def run_transcript(
        self, run: str, cli_session: str | None, lines: list[bytes], *, last: bool
    ) -> None:
        self.told += [("recalled", line.decode()) for line in lines]

    async def run_earlier(self, run: str, lines: list[bytes]) -> None:
        self.told += [("earlier", line.decode()) for line in lines]

    async def run_lost(self, run: str, why: CodedText) -> None:
        if self.full:
            raise JournalError("there is no room", code="full")
        self.told.append(("lost", run))

    async def run_found(self, run: str) -> None:
        self.told.append(("found", run))

    async def run_resumed(self, run: str, last: str | None) -> None:
        self.told.append(("resumed", run))

    async def run_acted(self, run: str, act: ProgramAct, by: str) -> None:
        raise AssertionError("no program is here")

    async def run_answered(self, run: str, request_id: str, response: Raw, by: str) -> bool:
        self.told.append(("answered", run))
        return True


def hello(*runs: str) -> Hello:
    """What a runner says first."""
    reports = tuple(RunReport(run=run, session="mine", said=0, written=0) for run in runs)
    return Hello(machine="local", runner="r", protocol=PROTOCOL, version="1", pid=1, runs=reports)


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def runners(owner: Owner) -> Runners:
    return Runners(lambda session: owner, lambda token: "local" if token == "right" else None)


async def test_a_wrong_token_and_a_wrong_frame_are_refused(runners: Runners) -> None:
    stranger, clumsy = Socket(), Socket()
    async with stranger.on(runners, "/runner", token="wrong"):
        assert await stranger.closed() == FORBIDDEN
    async with clumsy.on(runners, "/runner"):
        clumsy.say_bytes(b"\xff{")
        assert await clumsy.closed() == BAD_FRAME


async def test_a_stop_that_a_machine_could_not_hear_is_told_when_it_is_back(
    runners: Runners,
) -> None:
    port = runners.attach("run1", "mine", "local", said=0)
    port.stop()
    machine = Socket()
    async with machine.on(runners, "/runner"):
        machine.say(hello("run1"))
        assert isinstance(await machine.hear(), Welcome)
        assert await machine.hear() == Stop(run="run1")


async def test_a_run_that_starts_while_another_is_found_dead_is_not_dead(
    runners: Runners, owner: Owner
) -> None:
    runners.attach("dead", "mine", "local", said=0)
    runners.start("young", "mine", SPEC, Origin())
    owner.ending = anyio.Event()
    machine, young = Socket(), Socket()
    async with machine.on(runners, "/runner"), young.on(runners, "/runner/runs/young"):
        machine.say(hello())
        assert isinstance(await machine.hear(), Welcome)
        assert isinstance(await machine.hear(), Start)
        # It is started, and says so, while the end of the other is still being journalled.
        young.say(Started(pid=2))
        young.say(Lines(first=1), b"{}")
        with anyio.fail_after(SECONDS):
            await until(lambda: ("said", "{}") in owner.told)
        owner.ending.set()
        with anyio.fail_after(SECONDS):
            await until(lambda: ("ended", "dead") in owner.told)
        assert ("ended", "young") not in owner.told


async def test_runs_that_nobody_wants_are_ended_and_forgotten(runners: Runners) -> None:
    machine = Socket()
    async with machine.on(runners, "/runner"):
        machine.say(hello("old"))
        assert isinstance(await machine.hear(), Welcome)
        assert await machine.hear() == Stop(run="old", force=True)
        assert await machine.hear() == Forget(run="old")


async def test_what_cannot_be_journalled_is_not_acknowledged_and_the_runner_comes_again(
    runners: Runners, owner: Owner
) -> None:
    port = runners.attach("run1", "mine", "local", said=3)
    owner.full = True
    first, second = Socket(), Socket()
    async with first.on(runners, "/runner/runs/run1"):
        first.say(Started(pid=2))
        assert await first.hear() == Ack(upto=3)
        first.say(Lines(first=4), b"{}")
        assert await first.closed() == TRY_AGAIN
    owner.full = False
    async with second.on(runners, "/runner/runs/run1"):
        second.say(Started(pid=2))
        assert await second.hear() == Ack(upto=3)
        second.say(Lines(first=4), b"{}")
        with anyio.fail_after(SECONDS):
            await until(lambda: ("said", "{}") in owner.told)
    assert port.upto == 3  # that is the session's to say


async def test_lines_are_acknowledged_several_at_once_and_soon(runners: Runners) -> None:
    port = runners.attach("run1", "mine", "local", said=0)
    run, again = Socket(), Socket()
    async with run.on(runners, "/runner/runs/run1"):
        run.say(Started(pid=2))
        assert await run.hear() == Ack(upto=0)
        for number in (1, 2, 3):
            port.acknowledge(number)
        assert await run.hear() == Ack(upto=3)  # when some time has passed
        port.acknowledge(4)
        port.acknowledge(4 + ACK_LINES)
        assert await run.hear() == Ack(upto=4 + ACK_LINES)
        port.acknowledge(5 + ACK_LINES)
        port.forget()
        assert await run.hear() == Ack(upto=5 + ACK_LINES)
    port = runners.attach("run2", "mine", "local", said=0)
    port.acknowledge(7)  # nobody is there to be told
    async with again.on(runners, "/runner/runs/run2"):
        again.say(Started(pid=2))
        assert await again.hear() == Ack(upto=7)
        port.acknowledge(8)
        assert await again.hear() == Ack(upto=8)


async def test_lines_for_a_cli_go_once_and_again_only_when_they_were_not_written(
    runners: Runners,
) -> None:
    port = runners.attach("run1", "mine", "local", said=0)
    for number in (1, 2, 3, 2, 1):
        port.write(number, b'{"n":%d}' % number)
    first, second = Socket(), Socket()
    async with first.on(runners, "/runner/runs/run1"):
        first.say(Started(pid=2))
        assert await first.hear() == Ack(upto=0)
        first.say(Written(upto=1))
        assert [await first.hear() for _ in range(2)] == [Write(number=2), Write(number=3)]
        first.say(Written(upto=2))
        port.write(4, b"{}")
        assert await first.hear() == Write(number=4)
    async with second.on(runners, "/runner/runs/run1"):
        second.say(Started(pid=2))
        assert await second.hear() == Ack(upto=0)
        second.say(Written(upto=3))
        assert await second.hear() == Write(number=4)


async def test_who_does_not_begin_as_a_run_does_takes_nobodys_place(
    runners: Runners, owner: Owner
) -> None:
    port = runners.attach("run1", "mine", "local", said=0)
    run, stranger = Socket(), Socket()
    async with run.on(runners, "/runner/runs/run1"):
        run.say(Started(pid=2))
        assert await run.hear() == Ack(upto=0)
        async with stranger.on(runners, "/runner/runs/run1"):
            stranger.say(Lines(first=1), b"no line of this run")
            assert await stranger.closed() == BAD_FRAME
        run.say(Written(upto=0))
        port.write(1, b"{}")
        assert await run.hear() == Write(number=1)
    assert owner.told == [("found", "run1"), ("started", "run1"), ("lost", "run1")]
