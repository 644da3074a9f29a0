"""Large texts: in a thread where that is possible, otherwise one at a time."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest

from quarterdeck.runtime.off_loop import LARGE, large_turn, off_loop
from support.bounds import SECONDS


@pytest.mark.parametrize(("size", "here"), [(0, True), (LARGE - 1, True), (LARGE, False)])
async def test_what_is_large_is_done_in_a_thread(size: int, here: bool) -> None:
    thread = await off_loop(size, threading.get_ident)
    assert (thread == threading.get_ident()) is here


async def test_an_error_of_the_work_is_the_callers() -> None:
    for size in (1, LARGE):
        with pytest.raises(ZeroDivisionError):
            await off_loop(size, divmod, 1, 0)


async def test_others_go_on_while_a_large_text_is_worked_on() -> None:
    gone_on = threading.Event()
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(SECONDS):
            tasks.start_soon(anyio.sleep, 0)
            tasks.start_soon(_set, gone_on)
            assert await off_loop(LARGE, gone_on.wait, SECONDS)


async def _set(event: threading.Event) -> None:
    event.set()


async def test_of_many_that_do_something_large_one_does_so_in_a_round_of_the_loop() -> None:
    rounds = 0
    taken: list[int] = []
    over = False

    async def count() -> None:
        nonlocal rounds
        while not over:
            rounds += 1
            await anyio.lowlevel.checkpoint()

    async def large() -> None:
        await large_turn(LARGE)
        taken.append(rounds)

    async with anyio.create_task_group() as counting, anyio.create_task_group() as tasks:
        counting.start_soon(count)
        for _ in range(20):
            tasks.start_soon(large)
        tasks.start_soon(large_turn, 1)
        with anyio.fail_after(SECONDS):
            while len(taken) < 20:
                await anyio.lowlevel.checkpoint()
        over = True
    assert len(set(taken)) == 20


async def test_one_that_gave_up_lets_the_others_have_their_turn() -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(large_turn, LARGE)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    with anyio.fail_after(SECONDS):
        await large_turn(LARGE)
