"""The hub's views as the API gives them, with their secrets masked. Above are the routes."""

from __future__ import annotations

from quarterdeck.fronts.http.masks import masked_spec
from quarterdeck.protocol.accounts import AlarmView
from quarterdeck.protocol.coded_texts import act_text, coded_text
from quarterdeck.protocol.modes import chosen_mode
from quarterdeck.protocol.sandbox import NOT_RECORDED
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.views import AlarmShape, HoldsShape, SessionShape


def session_shape(view: SessionView, *, offers: bool = False) -> SessionShape:
    """A session as the API gives it; with its `offers` only where it is asked for alone."""
    return SessionShape(
        session=view.session,
        name=view.name,
        state=view.state,
        detail=view.detail,
        coded=view.coded,
        since=view.since,
        last_turn=view.last_turn,
        spec=masked_spec(view.spec),
        by=view.by,
        parent=view.parent,
        lineage=view.lineage,
        created=view.created,
        updated=view.updated,
        archived=view.archived,
        head=view.head,
        news=view.news,
        run=view.run,
        machine=view.machine,
        pid=view.pid,
        version=view.version,
        directory=view.directory,
        cli_session=view.cli_session,
        mode=view.mode or chosen_mode(view.spec),
        model=view.model or view.spec.model,
        effort=view.effort or view.spec.effort,
        thinking=view.thinking or view.spec.thinking,
        sandbox=view.sandbox or NOT_RECORDED,
        turns=view.turns,
        peer_prompts=view.peer_prompts,
        cost_usd=view.cost_usd,
        estimated_usd=view.account.estimated_usd,
        tokens=view.account.tokens,
        run_usd=view.account.run_usd,
        run_tokens=view.account.run_tokens,
        budgets=tuple(view.account.budgets.values()),
        alarms=tuple(_alarm(name, alarm) for name, alarm in view.account.alarms.items()),
        queued=len(view.queued),
        asks=len(view.asks),
        holds=HoldsShape(
            todos=view.holds.todos,
            tasks=view.holds.tasks,
            tools=view.holds.tools,
            mcp=view.holds.mcp,
            context=view.holds.context,
            limits=tuple(view.account.limits.values()),
            cut=view.holds.cut,
        ),
        offers=view.holds.offers if offers else None,
        crashed=view.crashed,
    )


def _alarm(name: str, alarm: AlarmView) -> AlarmShape:
    coded = alarm.coded
    return AlarmShape(
        alarm=name,
        text=alarm.text if coded is None else coded_text(coded),
        action=alarm.action if coded is None else act_text(alarm.act),
        at=alarm.at,
        coded=coded,
        act=alarm.act,
    )
