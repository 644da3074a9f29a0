"""Limits and structured output: when a turn must end, and answers in a shape of one's own."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck import Agent, Query
from quarterdeck.domain.errors import LinkClosed, TurnFailed
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.reports import ResultSubtype
from quarterdeck.wire.versions import flags_all_errors, release
from support.bounds import SECONDS
from support.meddling import Meddler
from support.scenes import read
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


LOOK = read(Path("nothing-here"))
GOOD = ToolUse("StructuredOutput", {"city": "Bern", "degrees": 21})


class Weather(msgspec.Struct):
    """What is asked for."""

    city: str
    degrees: int


@pytest.mark.between("2.1.120 stdio")  # the exit code
async def test_turns_end_at_their_limits_and_in_the_shape_that_is_wanted(seat: Seat) -> None:
    meddler = Meddler()
    async with seat.agent(
        output_type=Weather, max_turns=8, max_budget_usd=0.006, meddler=meddler
    ) as agent:
        with anyio.fail_after(SECONDS):
            await structured_output_is_typed_or_a_failure(seat, agent)
            await the_model_has_so_many_turns(seat, agent)
            await a_session_may_cost_so_much(seat, agent)
            if seat.transport == "stdio":
                # The exit code is that of the last turn, as the CLI itself sees it.
                await meddler.end_input()
                with pytest.raises(LinkClosed) as caught:
                    await agent.query("and again").finish()
                assert caught.value.exit_code == (1 if flags_all_errors(seat.version) else 0)


async def structured_output_is_typed_or_a_failure(seat: Seat, agent: Agent) -> None:
    bad = ToolUse("StructuredOutput", {"city": "Bern"})
    newest = seat.version >= release(325)
    # The first try does not fit, and the model is told so.
    weather = await agent.query(play(bad, GOOD, "there")).output(Weather)
    assert weather == Weather("Bern", 21)
    # The newest ends the turn with it, others let the model go on.
    assert len(seat.model.turns) == (2 if newest else 3)
    seat.found("Structured output")

    # Up to 2.1.120 a model that gave none yet is asked for it again and again, for ever.
    asked = len(seat.model.turns)
    with pytest.raises(TurnFailed, match="no structured output"):
        await agent.query("only words").output(Weather)
    assert len(seat.model.turns) == asked + (2 if newest else 1)
    seat.found(
        "Structured output that is forgotten", "is asked for once" if newest else "is missing"
    )

    turn = await agent.query(play(*[bad] * 8)).finish()
    assert turn.result is not None
    assert turn.result.subtype is ResultSubtype.ERROR_MAX_STRUCTURED_OUTPUT_RETRIES
    with pytest.raises(TurnFailed):
        Query.check(turn)
    seat.found("Structured output that never fits", "a failed turn")


async def the_model_has_so_many_turns(seat: Seat, agent: Agent) -> None:
    asked = len(seat.model.turns)
    turn = await agent.query(play(*[LOOK] * 12, "never")).finish()
    assert turn.failed
    assert turn.result is not None
    assert turn.result.subtype is ResultSubtype.ERROR_MAX_TURNS
    # Old ones say that it is no error. We do not believe them.
    flagged = flags_all_errors(seat.version)
    assert turn.result.is_error is flagged
    assert turn.result.errors == (("Reached maximum number of turns (8)",) if flagged else ())
    assert turn.result.num_turns == 9
    assert len(seat.model.turns) == asked + 8
    assert not (await agent.query(play(GOOD, "counted anew")).finish()).failed
    seat.found("A limit for the turns of the model")


async def a_session_may_cost_so_much(seat: Seat, agent: Agent) -> None:
    # Every answer costs about a thirtieth of what may be spent.
    spend = play(*[LOOK] * 4, GOOD, "spent")
    while not (over := await agent.query(spend).finish()).failed:
        assert len(seat.model.turns) < 60
    turns = [over, await agent.query("again").finish()]
    for turn in turns:
        assert turn.failed
        assert turn.result is not None
        assert turn.result.subtype is ResultSubtype.ERROR_MAX_BUDGET_USD
        assert turn.result.is_error is flags_all_errors(seat.version)
    assert turns[1].cost_usd == 0
    seat.found("A limit for what a session may cost")
