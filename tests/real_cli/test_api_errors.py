"""API errors: the turn fails or is tried again, and the session continues."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest

from quarterdeck import Agent, Assistant, Query
from quarterdeck.domain.errors import LinkClosed, TurnFailed
from quarterdeck.testing import (
    ApiError,
    CutConnection,
    Gate,
    MidStreamError,
    Stop,
    Text,
    play,
    reply,
)
from quarterdeck.wire.messages import AssistantError
from quarterdeck.wire.reports import ResultSubtype, TerminalReason
from quarterdeck.wire.states import State
from quarterdeck.wire.system import ApiRetry
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_api_errors_fail_the_turn_or_are_tried_again(seat: Seat) -> None:
    # It would try ten times, for minutes.
    async with seat.agent(env={"CLAUDE_CODE_MAX_RETRIES": "1"}) as agent:
        with anyio.fail_after(SECONDS):
            await an_answer_without_a_word_ends_the_turn(seat, agent)
            await an_error_fails_the_turn_and_not_the_session(seat, agent)
            await an_error_is_named_by_its_kind(seat, agent)
            await a_retry_is_told(seat, agent)
            await a_cut_answer_goes_on_in_the_same_turn(seat, agent)
            await a_refusal_ends_the_turn(seat, agent)
            await an_answer_may_break_off(seat, agent)
            assert agent.state is State.READY
            query = await leave_while_the_model_speaks(seat, agent)
    # Some have the time to say how the turn ended.
    with suppress(LinkClosed):
        assert (await query.finish()).failed
    seat.theme = "Endings"
    seat.found("End an agent while the model speaks")


async def an_error_fails_the_turn_and_not_the_session(seat: Seat, agent: Agent) -> None:
    newer = seat.version >= release(120)
    asked = len(seat.model.turns)
    query = agent.query(play(ApiError(403, "no entry", times=9)))
    said = [m for m in [m async for m in query] if isinstance(m, Assistant)]
    assert said[-1].error is AssistantError.AUTHENTICATION_FAILED
    # It would be no other the next time.
    assert len(seat.model.turns) == asked + 1
    result = query.result
    assert result is not None
    # It says success, and it is none.
    assert (result.subtype, result.is_error) == (ResultSubtype.SUCCESS, True)
    assert result.failed
    assert result.api_error_status == (403 if newer else None)
    named = result.terminal_reason is TerminalReason.API_ERROR
    assert named is (seat.version >= release(325))
    with pytest.raises(TurnFailed):
        query.check(await query.finish())
    assert agent.state is State.READY
    seat.found("An API error fails the turn", "yes, with its status" if newer else "yes")


async def an_error_is_named_by_its_kind(seat: Seat, agent: Agent) -> None:
    async def kind(error: ApiError) -> AssistantError | None:
        query = agent.query(play(error))
        said = [m async for m in query if isinstance(m, Assistant)]
        assert query.result is not None
        assert query.result.failed
        return said[-1].error

    assert await kind(ApiError(401, "who?")) is AssistantError.AUTHENTICATION_FAILED
    assert await kind(ApiError(400, "what is this?")) is AssistantError.NOT_KNOWN
    assert await kind(ApiError(400, "prompt is too long: 9 > 1")) is AssistantError.INVALID_REQUEST
    broke = "Your credit balance is too low"
    assert await kind(ApiError(400, broke)) is AssistantError.BILLING_ERROR
    named = seat.version >= release(120)
    limited, down = await kind(ApiError(429, "slow")), await kind(ApiError(500, "down"))
    assert limited is (AssistantError.RATE_LIMIT if named else AssistantError.NOT_KNOWN)
    assert down is (AssistantError.SERVER_ERROR if named else AssistantError.NOT_KNOWN)
    seat.found("Says whether it was a limit or the server", "yes" if named else "no")


async def a_retry_is_told(seat: Seat, agent: Agent) -> None:
    newer = seat.version >= release(120)
    query = agent.query(play(reply(ApiError(529, "busy"), Text("at last"))))
    messages = [message async for message in query]
    assert query.result is not None
    assert query.result.result == "at last"
    retries = [m for m in messages if isinstance(m, ApiRetry)]
    assert [retry.error_status for retry in retries] == ([529] if newer else [])
    word = "overloaded" if seat.version >= release(325) else "rate_limit"
    assert [(retry.attempt, retry.error) for retry in retries] == ([(1, word)] if newer else [])
    seat.found("Reports retries of the API", "yes" if newer else "no")


async def a_cut_answer_goes_on_in_the_same_turn(seat: Seat, agent: Agent) -> None:
    asked = len(seat.model.turns)
    cut = play(reply("half", Stop("max_tokens")), " and half")
    assert not (await agent.query(cut).finish()).failed
    assert len(seat.model.turns) == asked + 2
    assert agent.state is State.READY
    seat.found("An answer that is too long continues in the same turn")


async def an_answer_without_a_word_ends_the_turn(seat: Seat, agent: Agent) -> None:
    newest = seat.version >= release(325)
    turn = await agent.query(play(reply(), "here I am")).finish()
    assert turn.result is not None
    assert turn.failed is (seat.version < release(120))
    assert turn.failed or turn.result.result == ("here I am" if newest else "")
    assert len(seat.model.turns) == (2 if newest else 1)
    answer = "fails the turn" if turn.failed else "ends the turn"
    seat.found("An empty answer", "is requested again" if newest else answer)


async def a_refusal_ends_the_turn(seat: Seat, agent: Agent) -> None:
    goes_on = seat.version >= release(325)
    query = agent.query(play(reply("I", Stop("refusal")), "or rather"))
    turn = await query.finish()
    assert turn.result is not None
    assert turn.failed is not goes_on
    said = turn.result.result or ""
    assert said == "or rather" if goes_on else "Usage Policy" in said
    seat.found("A refusal of the model", "the model continues" if goes_on else "fails the turn")


async def an_answer_may_break_off(seat: Seat, agent: Agent) -> None:
    async def broken_by(fault: MidStreamError | CutConnection) -> tuple[bool, list[str]]:
        query = agent.query(play(reply("half an answer", fault), "the rest"))
        said = [message.text async for message in query if isinstance(message, Assistant)]
        assert query.result is not None
        return query.result.failed, said

    failed, said = await broken_by(MidStreamError())
    cut, said_before_the_cut = await broken_by(CutConnection())
    with_an_error, without_a_word = (
        f"An answer that breaks off {how}" for how in ("with an error", "without a word")
    )
    if seat.version < release(120):
        assert (failed, said) == (False, ["half an answer"] * 2)
        assert (cut, said_before_the_cut) == (failed, said)
        seat.found(with_an_error, "is requested again, and comes twice")
        seat.found(without_a_word, "is requested again, and comes twice")
    elif seat.version < release(325):
        assert failed
        seat.found(with_an_error, "fails the turn")
        # Which of the two depends on when it sees the cut.
        assert cut or said_before_the_cut == ["half an answer"]
        seat.found(without_a_word, "is requested again, or fails the turn")
    else:
        assert (failed, said) == (False, ["half an answer", "the rest"])
        seat.found(with_an_error, "the model continues")
        assert not cut
        seat.found(without_a_word, "is requested again")


async def leave_while_the_model_speaks(seat: Seat, agent: Agent) -> Query:
    query = await agent.prompt(play(reply("on ", Gate(), "and on")))
    await seat.model.wait_at_gate()
    return query
