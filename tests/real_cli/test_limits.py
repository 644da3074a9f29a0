"""Limits and structured output: when a turn must end, and answers in a shape of one's own."""

from __future__ import annotations

import anyio
import msgspec
import pytest

from quarterdeck import Query
from quarterdeck.domain.errors import LinkClosed, TurnFailed
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.result import ResultSubtype
from quarterdeck.wire.versions import flags_all_errors
from support.meddling import Meddler
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


class Weather(msgspec.Struct):
    """What is asked for."""

    city: str
    degrees: int


async def test_structured_output_is_typed_or_a_failure(seat: Seat) -> None:
    good = ToolUse("StructuredOutput", {"city": "Bern", "degrees": 21})
    bad = ToolUse("StructuredOutput", {"city": "Bern"})
    async with seat.agent(output_type=Weather) as agent:
        with anyio.fail_after(30):
            # The first try does not fit, and the model is told so.
            weather = await agent.query(play(bad, good, "there")).output(Weather)
            assert weather == Weather("Bern", 21)
            seat.found("Structured output")
            # Up to 2.1.120 a model that gave none yet is asked for it again and again, for ever.
            with pytest.raises(TurnFailed, match="no structured output"):
                await agent.query("only words").output(Weather)
            turn = await agent.query(play(*[bad] * 8)).finish()
            assert turn.result is not None
            assert turn.result.subtype is ResultSubtype.ERROR_MAX_STRUCTURED_OUTPUT_RETRIES
            with pytest.raises(TurnFailed):
                Query.check(turn)
    seat.found("Structured output that never fits", "a failed turn")


async def test_turns_and_budgets_have_limits(seat: Seat) -> None:
    look = ToolUse("Bash", {"command": "echo hi"})
    meddler = Meddler()
    async with seat.agent(max_turns=2, max_budget_usd=0.001, meddler=meddler) as agent:
        with anyio.fail_after(30):
            turn = await agent.query(play(*[look] * 5, "never")).finish()
            assert turn.failed
            assert turn.result is not None
            assert turn.result.subtype is ResultSubtype.ERROR_MAX_TURNS
            # Old ones say that it is no error. We do not believe them.
            assert turn.result.is_error is flags_all_errors(seat.version)
            assert len(seat.model.turns) == 2
            assert not (await agent.query(play("counted anew")).finish()).failed
            seat.found("A limit for the turns of the model")

            # Every answer costs about a tenth of what may be spent.
            while not (over := await agent.query("hello").finish()).failed:
                assert len(seat.model.turns) < 20
            turns = [over, await agent.query("again").finish()]
            if seat.transport == "stdio":
                # The exit code is that of the last turn, as the CLI itself sees it.
                await meddler.end_input()
                with pytest.raises(LinkClosed) as caught:
                    await agent.query("and again").finish()
                assert caught.value.exit_code == (1 if flags_all_errors(seat.version) else 0)
    for turn in turns:
        assert turn.failed
        assert turn.result is not None
        assert turn.result.subtype is ResultSubtype.ERROR_MAX_BUDGET_USD
        assert turn.result.is_error is flags_all_errors(seat.version)
    assert turns[1].cost_usd == 0
    seat.found("A limit for what a session may cost")
