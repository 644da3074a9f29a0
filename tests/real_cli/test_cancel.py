"""Cancelled requests: the CLI's, which it withdraws, and ours."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck.agent.asks import Allow, AnyAsk
from quarterdeck.domain.errors import RequestTimeout
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.commands import McpStatus
from quarterdeck.wire.control import ControlCancel
from quarterdeck.wire.states import State
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_a_request_that_is_withdrawn_ends_and_harms_nobody(seat: Seat) -> None:
    waiting, withdrawn = anyio.Event(), anyio.Event()
    heard: list[str] = []

    async def decide(_: AnyAsk) -> Allow:
        waiting.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()
        return Allow()

    async with seat.agent(decide=decide) as agent, anyio.create_task_group() as tasks:

        async def overhear() -> None:
            async for message in agent.messages():
                match message:
                    case ControlCancel(request_id=request_id):
                        heard.append(request_id)
                    case _:
                        pass

        tasks.start_soon(overhear)
        with anyio.fail_after(30):
            query = await agent.prompt(play(ToolUse("Bash", {"command": "touch made"}), "ok"))
            await waiting.wait()
            open_before = [ask.request_id for ask in agent.asks]
            await agent.interrupt()
            await withdrawn.wait()
            turn = await query.finish()
        assert turn.failed
        assert not agent.asks
        assert not (seat.cwd / "made").exists()
        assert heard == open_before
        assert len(heard) == 1
        seat.found("Questions are withdrawn when nobody needs the answer")

        # We stop waiting for an answer. The oldest would end if we told it so.
        with pytest.raises(RequestTimeout):
            await agent.request(McpStatus(), timeout=0)
        with anyio.fail_after(30):
            assert await agent.query(play("still here")).text() == "still here"
        assert agent.state is State.READY
        seat.found("A request of ours can be given up")
        tasks.cancel_scope.cancel()
