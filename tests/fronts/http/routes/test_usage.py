"""What was used, over HTTP."""

from __future__ import annotations

import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.routes.usage import moment
from quarterdeck.protocol.commands import ChangeSession
from quarterdeck.protocol.events import Alarmed, BudgetReached, ModelTokens, RateLimited, TurnEnded
from quarterdeck.protocol.sessions import Budget
from support.front import Front


def turn(cost: float, tokens: int) -> TurnEnded:
    used = ModelTokens(model="opus", cost_usd=cost, output=tokens)
    return TurnEnded(
        prompts=(), failed=False, outcome="completed", cost_usd=cost, models=(used,), tool_calls=2
    )


async def test_usage_is_told_by_what_is_asked_for_with_its_total_and_the_limits(hub: Front) -> None:
    one = await hub.deck.have_session(directory="/x")
    two = await hub.deck.have_session(directory="/y")
    await hub.deck.journal.append(one, [turn(0.5, 10), RateLimited(status="allowed", used=0.25)])
    await hub.deck.journal.append(two, [turn(0.25, 5)])
    async with hub.client(Role.VIEWER) as client:
        found = (await client.get("/api/usage", params={"by": "project"})).json()
        days = (await client.get("/api/usage")).json()
        later = (await client.get("/api/usage", params={"since": "2999-01-01"})).json()
    assert [(row["key"], row["used"]["cost_usd"]) for row in found["rows"]] == [
        ("/x", 0.5),
        ("/y", 0.25),
    ]
    assert (found["total"]["output"], found["total"]["tool_calls"]) == (15, 4)
    assert [(limit["status"], limit["used"]) for limit in found["limits"]] == [("allowed", 0.25)]
    assert (days["by"], days["total"]) == ("day", found["total"])
    assert later["rows"] == []


@pytest.mark.parametrize("given", [{"by": "mood"}, {"since": "soon"}, {"until": "2026-13-01"}])
async def test_what_is_no_day_is_refused(hub: Front, given: dict[str, str]) -> None:
    async with hub.client(Role.VIEWER) as client:
        answer = await client.get("/api/usage", params=given)
    assert answer.status_code == 400
    assert next(iter(given)) in answer.json()["detail"]


def test_until_a_day_means_until_its_end() -> None:
    since, until = moment("2026-03-01", "since"), moment("2026-03-01", "until")
    assert since is not None
    assert until is not None
    assert until - since == 24 * 3_600_000
    assert moment("2026-03-01T00:00:00+00:00", "until") == 1_772_323_200_000


async def test_a_session_shows_its_budgets_and_alarms_and_its_budget_can_be_raised(
    hub: Front,
) -> None:
    session = await hub.deck.have_session()
    reached = BudgetReached(scope="session", unit="usd", limit=1.0, spent=1.25)
    alarm = Alarmed(alarm="no_result", text="Nothing comes.", action="the turn was interrupted")
    await hub.deck.journal.append(session, [turn(1.25, 7), reached, alarm])
    async with hub.client(Role.OWNER) as client:
        shown = (await client.get(f"/api/sessions/{session}")).json()
        raised = await client.patch(f"/api/sessions/{session}", json={"budget": {"run_usd": 5}})
        wrong = await client.patch(f"/api/sessions/{session}", json={"budget": {"run_usd": -5}})
    assert (shown["cost_usd"], shown["tokens"]) == (1.25, 7)
    assert [(one["scope"], one["limit"]) for one in shown["budgets"]] == [("session", 1.0)]
    assert [one["action"] for one in shown["alarms"]] == ["the turn was interrupted"]
    assert raised.status_code == 200
    assert wrong.status_code == 400
    change = hub.deck.submitted[-1]
    assert isinstance(change, ChangeSession)
    assert change.budget == Budget(run_usd=5)
