"""Work that may take long: in processes that can be killed, one turn at a time for each person."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable

import anyio
import pytest

from quarterdeck.domain.errors import UsageError, WorkLimit
from quarterdeck.hub.permissions import trials
from quarterdeck.hub.worker import MORE_SECONDS
from quarterdeck.hub.workers import BATCH, REPLY_BYTES, WAITING, Workers
from support.bounds import SECONDS
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]

LONG = 60.0
"""Seconds that no test here waits for."""


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    made = Workers()
    yield made
    await made.close()


def gone(pid: int) -> bool:
    """Whether a process is no more, or only its parent has not yet heard of its end."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return b") Z " in file.read()
    except FileNotFoundError:
        return True


async def soon(holds: Callable[[], bool]) -> None:
    """Wait for a condition, and not for ever."""
    with anyio.fail_after(SECONDS):
        await until(holds)


async def test_a_process_starts_with_the_first_call_and_is_kept_for_the_next(
    workers: Workers,
) -> None:
    async with workers.turn("ada"):
        pass
    assert not workers.idle
    pids: list[int] = []
    for _ in range(3):
        async with workers.turn("ada") as turn:
            pids.append(await turn.call(LONG, os.getpid))
    assert len(set(pids)) == 1
    assert list(workers.idle) == pids[:1]
    assert pids[0] != os.getpid()


async def test_what_a_function_raises_is_raised_here_and_the_process_goes_on(
    workers: Workers,
) -> None:
    async with workers.turn("ada") as turn:
        with pytest.raises(UsageError, match="the policy is wrong"):
            await turn.call(LONG, trials.replay_calls, (), "x = 1", False, 1.0)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            await turn.call(LONG, divmod, 1, 0)
        assert await turn.call(LONG, divmod, 7, 2) == (3, 1)
    assert len(workers.idle) == 1


async def test_what_is_fed_comes_first_and_is_forgotten_after_the_call(workers: Workers) -> None:
    async with workers.turn("ada") as turn:
        await turn.feed(range(2 * BATCH + 1))
        assert await turn.call(LONG, len) == 2 * BATCH + 1
        await turn.feed([])
        assert await turn.call(LONG, len) == 0
        assert await turn.call(LONG, len, "abc") == 3


async def test_over_its_time_a_process_is_killed_also_within_one_step_of_the_interpreter(
    workers: Workers,
) -> None:
    async with workers.turn("ada") as turn:
        pid = await turn.call(LONG, os.getpid)
        with pytest.raises(WorkLimit, match=r"longer than the 0.3 s") as caught:
            await turn.call(0.3, re.fullmatch, r"(a+)+b", "a" * 64)
    assert caught.value.code == "took_too_long"
    assert gone(pid)
    async with workers.turn("ada") as turn:
        assert await turn.call(LONG, os.getpid) != pid


async def test_over_its_memory_a_call_fails_and_its_process_is_not_used_again(
    workers: Workers,
) -> None:
    async with workers.turn("ada") as turn:
        pid = await turn.call(LONG, os.getpid)
        with pytest.raises(WorkLimit, match="more memory than it may"):
            await turn.call(LONG, bytearray, 8 * 1024**3)
    assert gone(pid)


async def test_an_answer_that_is_too_large_is_not_taken(workers: Workers) -> None:
    async with workers.turn("ada") as turn:
        with pytest.raises(WorkLimit, match="more than 8,388,608 bytes"):
            await turn.call(LONG, bytes, REPLY_BYTES + 1)


async def test_a_process_that_dies_fails_its_call_and_another_takes_its_place(
    workers: Workers,
) -> None:
    async with workers.turn("ada") as turn:
        with pytest.raises(WorkLimit) as caught:
            await turn.call(LONG, os._exit, 3)
    assert caught.value.code == "took_too_long"
    async with workers.turn("ada") as turn:
        pid = await turn.call(LONG, os.getpid)
    os.kill(pid, signal.SIGKILL)
    await soon(lambda: gone(pid))
    async with workers.turn("ada") as turn:
        with pytest.raises(WorkLimit):
            await turn.call(LONG, os.getpid)
    async with workers.turn("ada") as turn:
        assert await turn.call(LONG, os.getpid) != pid


async def test_a_caller_who_goes_away_takes_the_process_with_him(workers: Workers) -> None:
    async with workers.turn("ada") as turn:
        pid = await turn.call(LONG, os.getpid)

    async def sleep() -> None:
        async with workers.turn("ada") as turn:
            await turn.call(LONG, time.sleep, LONG)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleep)
        await soon(lambda: workers.busy == 1)
        tasks.cancel_scope.cancel()
    assert workers.busy == 0
    assert gone(pid)


async def test_one_person_has_one_turn_at_a_time_and_others_have_theirs(workers: Workers) -> None:
    refused: list[WorkLimit] = []
    done: list[str] = []

    async def sleep(person: str) -> None:
        try:
            async with workers.turn(person) as turn:
                await turn.call(LONG, time.sleep, LONG)
        except WorkLimit as error:
            refused.append(error)

    async def ask(person: str) -> None:
        async with workers.turn(person) as turn:
            await turn.call(LONG, os.getpid)
        done.append(person)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleep, "mallory")
        await soon(lambda: workers.busy == 1)
        for _ in range(WAITING + 20):
            tasks.start_soon(sleep, "mallory")
        await soon(lambda: len(refused) == 20)
        assert {error.code for error in refused} == {"busy"}
        assert workers.busy == 1
        await ask("ada")
        await ask("bob")
        assert done == ["ada", "bob"]
        tasks.cancel_scope.cancel()


async def test_who_waits_too_long_is_told_so() -> None:
    workers = Workers(processes=1, wait_seconds=0.2)

    async def sleep() -> None:
        async with workers.turn("mallory") as turn:
            await turn.call(LONG, time.sleep, LONG)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep)
            await soon(lambda: workers.busy == 1)
            for person, words in (("ada", "calls of others"), ("mallory", "another call")):
                with pytest.raises(WorkLimit, match=words) as caught:
                    async with workers.turn(person) as turn:
                        await turn.call(LONG, os.getpid)
                assert caught.value.code == "busy"
            tasks.cancel_scope.cancel()
    finally:
        await workers.close()


async def test_nothing_is_left_after_the_end(workers: Workers) -> None:
    async with workers.turn("ada") as turn, workers.turn("bob") as other:
        pids = (await turn.call(LONG, os.getpid), await other.call(LONG, os.getpid))
    await workers.close()
    assert all(gone(pid) for pid in pids)
    with pytest.raises(WorkLimit, match="the hub stops"):
        async with workers.turn("ada") as turn:
            await turn.call(LONG, os.getpid)


async def test_the_end_does_not_wait_for_a_call_that_is_under_way(workers: Workers) -> None:
    async with workers.turn("ada") as turn:
        pid = await turn.call(LONG, os.getpid)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(workers.close)
            with pytest.raises(WorkLimit):
                await turn.call(LONG, time.sleep, LONG)
    assert gone(pid)


async def test_the_kernel_ends_a_process_whose_hub_was_killed_while_it_worked(
    workers: Workers,
) -> None:
    async with workers.turn("ada") as turn:
        soft, _ = await turn.call(5, resource.getrlimit, resource.RLIMIT_CPU)
        used = await turn.call(5, time.process_time)
    assert 0 < soft <= used + 5 + MORE_SECONDS + 2


PARENT = """
import anyio, os, sys
from quarterdeck.hub.workers import Workers
async def main():
    workers = Workers()
    async with workers.turn("ada") as turn:
        print(await turn.call(60, os.getpid), flush=True)
    await anyio.sleep(600)
anyio.run(main)
"""


async def test_a_process_ends_with_a_hub_that_is_killed() -> None:
    async with await anyio.open_process([sys.executable, "-c", PARENT], stderr=None) as parent:
        try:
            assert parent.stdout is not None
            with anyio.fail_after(LONG):
                pid = int(await parent.stdout.receive())
            assert not gone(pid)
        finally:
            parent.kill()
        await soon(lambda: gone(pid))
