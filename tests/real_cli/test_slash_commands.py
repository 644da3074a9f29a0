"""Slash commands: they end like any other prompt, with or without an echo or a model."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Query
from quarterdeck.testing import Purpose
from quarterdeck.wire.base import Message
from quarterdeck.wire.messages import Assistant, User
from quarterdeck.wire.states import State
from quarterdeck.wire.system import CompactBoundary, Status
from quarterdeck.wire.versions import release
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def said(messages: list[Message]) -> str:
    """What a command told the person."""
    return "\n".join(m.text for m in messages if isinstance(m, Assistant | User))


async def test_commands_end_as_every_prompt_does(seat: Seat) -> None:
    commands = seat.cwd / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "hey.md").write_text("Say hey to $ARGUMENTS.")
    async with seat.agent() as agent:
        with anyio.fail_after(30):
            query = agent.query("/cost")
            text = said([message async for message in query])
            assert "Total cost" in text
            assert not seat.model.turns
            assert query.result is not None
            in_result = "Total cost" in (query.result.result or "")
            assert in_result is (seat.version >= release(62))
            seat.found("Slash commands of the CLI", "yes" if in_result else "yes, as a message")

            unknown = Query.check(await agent.query("/nosuch thing").finish()).result or ""
            if seat.version >= release(325):
                assert unknown == "echo: /nosuch thing"
                seat.found("Unknown slash commands", "go to the model")
            else:
                word = "command: /nosuch" if seat.version >= release(120) else "skill: nosuch"
                assert unknown == f"Unknown {word}"
                seat.found("Unknown slash commands", "said to be unknown")

            for_screens = Query.check(await agent.query("/help").finish()).result or ""
            newer = seat.version >= release(120)
            word = "isn't available in this environment" if newer else "Unknown skill: help"
            assert word in for_screens
            seat.found(
                "Slash commands for the screen",
                "said not to be available" if newer else "said to be unknown",
            )

            assert await agent.query("/hey you").text() == "echo: Say hey to you."
            assert agent.init is not None
            assert "hey" in agent.init.slash_commands
            seat.found("Slash commands of the project")

            messages = [message async for message in agent.query("/compact")]
            kinds = [type(message) for message in messages]
            assert kinds.index(Status) < kinds.index(CompactBoundary)
            assert any(request.purpose is Purpose.SUMMARY for request in seat.model.requests)
            seat.found("Compact the conversation")

            session = agent.session_id
            spent = (await agent.query("remember alpha").finish()).cost_usd
            await agent.query("/clear").finish()
            cleared = await agent.query("after").finish()
            renamed = agent.session_id != session
            forgotten = "remember alpha" not in seat.model.turns[-1].body.decode()
            assert renamed is (seat.version >= release(120))
            # 2.1.120 begins another session and sends the model the old one all the same.
            assert forgotten is (seat.version >= release(325))
            # The cost of a turn is its own, also where the totals began anew.
            assert cleared.cost_usd == pytest.approx(spent)
        assert agent.state is State.READY
    answer = "yes" if forgotten else "a new session that remembers the old" if renamed else "no"
    seat.found("Clear the conversation", answer)
