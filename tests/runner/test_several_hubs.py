"""A runner that knows several hubs: where it goes when one is lost, and its runs with it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.protocol.runner_frames import PROTOCOL, Welcome
from quarterdeck.runner import Limits, Runner
from quarterdeck.runner.hublink import Hub
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.runners import QUICK, TIMES, spec_of
from support.scripted_hub import TOKEN, scripted_hub

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_runs_leave_a_hub_that_their_machine_has_left_also_if_it_says_nothing(
    tmp_path: Path,
) -> None:
    """MACHINE-14"""
    async with scripted_hub() as a, scripted_hub() as b, anyio.create_task_group() as group:
        b.welcome = Welcome(hub="hub-2", protocol=PROTOCOL)
        runner = Runner(
            tmp_path / "home",
            [a.url, b.url],
            TOKEN,
            "a-machine",
            limits=Limits(memory_floor=0),
            times=TIMES,
            redial=QUICK,
        )
        group.start_soon(runner.run)
        await a.start("one", spec_of(tmp_path, [fake.Serve()]))
        await a.started("one")
        first = a.runs["one"].socket
        assert first is not None
        assert a.machine is not None
        await a.machine.close(4410)
        # The first hub keeps the run's socket open; the runner closes it.
        hello = await b.met()
        assert [report.run for report in hello.runs] == ["one"]
        await b.started("one")
        with anyio.fail_after(SECONDS):
            await first.wait_closed()
        # The second one is gone, and the first one is there again: it is dialled next.
        assert b.machine is not None
        await b.machine.close(1012)
        await a.until(lambda: len(a.hellos) == 2)
        await a.until(lambda: a.runs["one"].connections == 2)
        await a.stop("one")
        await a.ended("one")
        runner.stop()
        with anyio.fail_after(SECONDS):
            await runner.ended.wait()


async def test_a_hub_that_starts_anew_is_another_one_and_the_same_is_not() -> None:
    hub = Hub(["http://127.0.0.1:1", "https://x.example"], "t")
    assert hub.url == "ws://127.0.0.1:1"
    first = hub.moved
    for _ in range(2):
        hub.note_hello("a")
        assert hub.moved is first
    hub.note_hello("b")
    assert first.is_set()
    assert not hub.moved.is_set()
    assert not hub.next_address()
    assert hub.url == "wss://x.example"
    assert hub.next_address()
    assert replace(hub.redial).base == 1.0, "one that is far has the longer pauses"
    with pytest.raises(UsageError):
        Hub([], "t")
