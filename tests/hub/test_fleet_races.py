"""Races of a machine that moves between hubs, each as it can happen."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from quarterdeck.domain.errors import StaleFence
from quarterdeck.hub.runners import MOVED
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Hello,
    Lines,
    RunReport,
    Welcome,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.stored_events import Stored
from support import lines
from support.bounds import SECONDS
from support.fleets import create, machine, two_hubs
from support.runner_sockets import Socket

pytestmark = pytest.mark.anyio


async def test_a_hello_of_long_ago_ends_no_run_that_its_machine_has_since() -> None:
    """It lay in the socket of a hub that stood still, while the runner was at another one."""
    async with two_hubs() as (a, b), machine() as box, machine() as then:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        run = await box.greeted(a, start.run)
        then.socket = Socket()
        async with then.socket.on(b.hub.runners, "/runner", box.token):
            then.socket.say(Hello(machine="box", runner="r", protocol=PROTOCOL, version="0", pid=1))
            assert isinstance(await then.socket.hear(), Welcome)
        assert b.fleet.holds_machine("box")
        # The old hub learns of it, and the runner comes to the new one, with its run.
        run.say(Lines(first=2), lines.init("2.1.325", uuid="u").rstrip(b"\n"))
        assert await run.closed() == MOVED
        box.runs = [RunReport(run=start.run, session="s", said=2, written=1)]
        await box.dial(b)
        again = await box.run(b, start.run, written=1)
        assert await again.hear() == Ack(upto=1)
        again.say(Lines(first=2), lines.init("2.1.325", uuid="u").rstrip(b"\n"))
        await box.journalled(b, "s", 2)
        assert (await b.hub.session("s")).run == start.run
        # One that its runner does not know when it is here is gone.
        box.runs = []
        await box.dial(b)
        with anyio.fail_after(SECONDS):
            while (await b.hub.session("s")).run is not None:  # noqa: ASYNC110
                await anyio.sleep(0.005)


async def test_a_refusal_of_before_takes_no_machine_that_has_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        run = await box.greeted(a, start.run)
        box.runs = [RunReport(run=start.run, session="s", said=1, written=1)]
        append = a.journal.append

        there, left, back = anyio.Event(), anyio.Event(), anyio.Event()

        async def late(*given: Any, **more: Any) -> list[Stored]:
            """Refused while the machine was at the other hub, and told when it is back."""
            if not given[1]:  # what waits for appends before it
                return await append(*given, **more)
            monkeypatch.setattr(a.journal, "append", append)
            there.set()
            await left.wait()
            try:
                return await append(*given, **more)
            finally:
                await back.wait()

        monkeypatch.setattr(a.journal, "append", late)
        run.say(Lines(first=2), lines.init("2.1.325", uuid="u").rstrip(b"\n"))
        with anyio.fail_after(SECONDS):
            await there.wait()
        await box.dial(b)
        left.set()
        await box.dial(a)
        back.set()
        assert await run.closed() == MOVED
        assert a.fleet.holds_machine("box")
        again = await box.run(a, start.run, written=1)
        assert await again.hear() == Ack(upto=1)


async def test_a_run_that_was_begun_just_before_its_machine_left_is_the_other_hubs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        append = a.journal.append

        async def late(*given: Any, **more: Any) -> list[Stored]:
            """Stored, and told when the machine has left and this hub knows it."""
            if not given[1]:  # what waits for appends before it
                return await append(*given, **more)
            monkeypatch.setattr(a.journal, "append", append)
            stored = await append(*given, **more)
            await box.dial(b)
            await a.fleet.look()
            return stored

        monkeypatch.setattr(a.journal, "append", late)
        outcome = await a.hub.submit(create())
        assert (outcome.session, outcome.repeated) == ("s", True)
        start = await box.take_start()
        assert (await b.hub.session("s")).run == start.run
        assert not [each for each in a.hub.machines_here() if each.runs]
        assert a.hub.runners._starting == {}


async def test_a_machine_that_is_lost_while_its_sessions_are_loaded_is_not_held() -> None:
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        await box.take_start()

        async def load() -> None:
            await a.journal.raise_fence("box", "a")
            await b.fleet.look()

        with pytest.raises(StaleFence):
            await b.fleet.take("box", load)
        assert not b.fleet.holds_machine("box")


async def test_a_session_that_is_looked_up_while_it_leaves_is_loaded_when_it_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The object that had been taken from this hub was kept again, and could do nothing more."""
    async with two_hubs() as (a, b), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        await box.greeted(a, start.run)
        box.runs = [RunReport(run=start.run, session="s", said=1, written=1)]
        await box.dial(b)
        summary, there, left = a.journal.summary, anyio.Event(), anyio.Event()

        async def late(session: str) -> SessionView | None:
            monkeypatch.setattr(a.journal, "summary", summary)
            there.set()
            await left.wait()
            return await summary(session)

        async with anyio.create_task_group() as tasks:
            a.fleet.lose("box")  # it knows already that it does not hold the machine
            monkeypatch.setattr(a.journal, "summary", late)
            tasks.start_soon(a.hub._find, "s")
            with anyio.fail_after(SECONDS):
                await there.wait()
            a.hub._disown("box", None)
            left.set()
        await box.dial(a)
        again = await box.run(a, start.run, written=1)
        assert await again.hear() == Ack(upto=1)
        again.say(Lines(first=2), lines.init("2.1.325", uuid="u").rstrip(b"\n"))
        await box.journalled(a, "s", 2)


async def test_a_run_that_only_the_journal_knows_is_not_ended() -> None:
    """Seed 61: to end it would have lost what its runner had not told yet."""
    async with two_hubs() as (a, _), machine() as box:
        await box.dial(a)
        await a.hub.submit(create())
        start = await box.take_start()
        await box.greeted(a, start.run)
        a.hub._sessions.forget("s")  # memory lacks it, whatever the reason
        a.hub.runners._ports.clear()
        report = RunReport(run=start.run, session="s", said=1, written=1)
        hello = Hello(
            machine="box", runner="r", protocol=PROTOCOL, version="0", pid=1, runs=(report,)
        )
        socket = Socket()
        async with socket.on(a.hub.runners, "/runner", box.token):
            socket.say(hello)
            assert await socket.closed() == MOVED
        # It dials again, and its session is loaded.
        box.runs = [report]
        await box.dial(a)
        again = await box.run(a, start.run, written=1)
        assert await again.hear() == Ack(upto=1)
        again.say(Lines(first=2), lines.init("2.1.325", uuid="u").rstrip(b"\n"))
        await box.journalled(a, "s", 2)
        assert (await a.hub.session("s")).run == start.run
