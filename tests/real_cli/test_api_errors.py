"""API errors: the turn fails or is tried again, and the session lives on."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Assistant
from quarterdeck.domain.errors import TurnFailed
from quarterdeck.testing import ApiError, Stop, Text, play, reply
from quarterdeck.wire.messages import AssistantError
from quarterdeck.wire.result import ResultSubtype
from quarterdeck.wire.states import State
from quarterdeck.wire.system import ApiRetry
from quarterdeck.wire.versions import release
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


async def test_an_api_error_fails_the_turn_and_not_the_session(seat: Seat) -> None:
    newer = seat.version >= release(120)
    async with seat.agent() as agent:
        with anyio.fail_after(30):
            query = agent.query(play(ApiError(403, "no entry", times=9)))
            said = [m for m in [m async for m in query] if isinstance(m, Assistant)]
            assert said[-1].error is AssistantError.AUTHENTICATION_FAILED
            result = query.result
            assert result is not None
            # It says success, and it is none.
            assert (result.subtype, result.is_error) == (ResultSubtype.SUCCESS, True)
            assert result.failed
            assert result.api_error_status == (403 if newer else None)
            with pytest.raises(TurnFailed):
                query.check(await query.finish())
            assert agent.state is State.READY
            seat.found("An API error fails the turn", "yes, with its status" if newer else "yes")

            query = agent.query(play(reply(ApiError(529, "busy"), Text("at last"))))
            messages = [message async for message in query]
            assert query.result is not None
            assert query.result.result == "at last"
            retries = [m for m in messages if isinstance(m, ApiRetry)]
            assert [retry.error_status for retry in retries] == ([529] if newer else [])
            seat.found("Retries of the API are told", "yes" if newer else "no")

            cut = play(reply("half", Stop("max_tokens")), " and half")
            asked = len(seat.model.turns)
            assert not (await agent.query(cut).finish()).failed
            assert len(seat.model.turns) == asked + 2
            assert agent.state is State.READY
    seat.found("An answer that is too long goes on in the same turn")
