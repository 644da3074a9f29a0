"""Sizes: large answers, large prompts, and tools that print much."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Allow, User
from quarterdeck.testing import Text, ToolUse, play, reply
from quarterdeck.wire.versions import release
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

MEGABYTE = 1024 * 1024


async def test_large_messages_come_and_go_whole(seat: Seat) -> None:
    async with seat.agent(decide=lambda _: Allow()) as agent:
        with anyio.fail_after(60):
            answer = play(reply(Text("0123456789abcdef" * 1024, times=96)))
            assert len(await agent.query(answer).text()) == 1.5 * MEGABYTE
            seat.found("Answers of 1.5 MB")

            print_much = {"command": f"head -c {5 * MEGABYTE} /dev/zero | tr '\\0' x"}
            query = agent.query(play(ToolUse("Bash", {**print_much}), "printed"))
            results = [m.tool_use_result async for m in query if isinstance(m, User)]
            largest = max(len(bytes(result)) for result in results)
            whole = seat.version < release(62)
            assert (largest > 5 * MEGABYTE) is whole
            answer = "comes in one line of 5 MB" if whole else "is kept in a file"
            seat.found("Tool output of 5 MB", answer)

            long = "a long prompt " * (2 * MEGABYTE // 14)
            assert not (await agent.query(long).finish()).failed
    assert any(len(request.body) > 2 * MEGABYTE for request in seat.model.requests)
    seat.found("Prompts of 2 MB")
