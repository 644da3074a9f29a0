"""With real CLIs: a budget ends a turn in its midst, and the numbers outlive hub and run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.commands import ChangeSession, SendPrompt
from quarterdeck.protocol.events import BudgetReached, Metered, TurnEnded
from quarterdeck.protocol.sessions import Budget, SessionState
from quarterdeck.protocol.usage import UsageBy
from quarterdeck.testing import RealCli, ScriptedModel
from quarterdeck.testing.script import Text, ToolUse, play
from support.hub_house import house, real_spec
from support.processes import Processes

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

CALLS = 30


@pytest.mark.parametrize(
    ("version", "budget"),
    [
        ("2.1.325", Budget(session_usd=0.0012)),
        ("2.1.62", Budget(session_tokens=80)),
    ],
)
async def test_a_budget_stops_a_run_in_the_middle_and_is_kept_over_a_restart_and_a_resume(
    version: str,
    budget: Budget,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
) -> None:
    spec = real_spec(tmp_path, clis[version], model, auto_approve=("Bash",), budget=budget)
    script = play(*(ToolUse("Bash", {"command": "true"}) for _ in range(CALLS)), Text("done"))
    async with house(tmp_path, processes) as home:
        # From another session's totals the hub learns what a token of this model costs.
        other = await home.new(spec)
        await home.until(other, lambda view: view.turns == 1)
        session = await home.new(spec, json.dumps(script).encode())
        view = await home.until(session, lambda view: view.turns == 1)
        events = [stored.event for stored in await home.hub.events(session, limit=5000)]
        (told,) = [event for event in events if isinstance(event, BudgetReached)]
        (ended,) = [event for event in events if isinstance(event, TurnEnded)]
        assert told.scope == "session"
        assert ended.failed
        assert 0 < ended.tool_calls < CALLS
        assert any(isinstance(event, Metered) for event in events)
        # What the CLI's own totals say is what is kept in the end.
        assert view.cost_usd == pytest.approx(ended.cost_usd)
        assert view.account.tokens == sum(each.input + each.output for each in ended.models) > 0
        assert view.account.estimated_usd == pytest.approx(0)
        with pytest.raises(Conflict, match="is used up"):
            await home.hub.submit(
                SendPrompt(session=session, prompt="again", content=Raw(b'"again"'))
            )
        before = view.account
    async with house(tmp_path, processes) as home:
        # The runner was stopped with the hub: the session is resumed, when it may be.
        view = await home.until(session, lambda view: view.state is SessionState.ENDED)
        assert (view.account.usd, view.account.tokens) == (before.usd, before.tokens)
        with pytest.raises(Conflict, match="is used up"):
            await home.hub.submit(
                SendPrompt(session=session, prompt="again", content=Raw(b'"again"'))
            )
        await home.hub.submit(ChangeSession(session=session, budget=Budget(session_usd=5)))
        await home.hub.submit(SendPrompt(session=session, prompt="more", content=Raw(b'"go on"')))
        view = await home.until(session, lambda view: view.turns == 2)
        assert view.account.usd > before.usd
        assert view.account.usd == pytest.approx(before.usd + view.account.run_usd)
        assert view.account.tokens == before.tokens + view.account.run_tokens
        rows = {row.key: row for row in (await home.hub.usage(UsageBy.SESSION)).rows}
        row = rows[session]
        assert row.used.cost_usd == pytest.approx(view.account.usd)
        assert (row.used.turns, row.used.tokens) == (2, view.account.tokens)
