"""Plain turns: what comes, in what order, and how it is accounted for."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck.wire.messages import Assistant, Result
from quarterdeck.wire.states import State
from quarterdeck.wire.system import Init
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_a_prompt_gives_init_then_the_answer_then_the_result(seat: Seat) -> None:
    async with seat.agent() as agent:
        with anyio.fail_after(30):
            messages = [message async for message in agent.query("hello")]
    kinds = [type(message) for message in messages]
    assert kinds.index(Init) < kinds.index(Assistant) < kinds.index(Result)
    assert kinds[-1] is Result
    assert [m.text for m in messages if isinstance(m, Assistant)] == ["echo: hello"]
    seat.found("plain turns")


async def test_a_second_prompt_goes_on_in_the_same_session(seat: Seat) -> None:
    async with seat.agent() as agent:
        with anyio.fail_after(30):
            first = await agent.query("one").finish()
            session = agent.session_id
            second = await agent.query("two").finish()
        assert agent.state is State.READY
        assert agent.session_id == session
    assert first.result is not None
    assert second.result is not None
    assert second.result.total_cost_usd >= first.result.total_cost_usd
    assert second.cost_usd == pytest.approx(
        second.result.total_cost_usd - first.result.total_cost_usd
    )
    seat.found("several turns in one process")
