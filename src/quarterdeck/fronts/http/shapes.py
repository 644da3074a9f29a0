"""The hub's views as the API gives them, with their secrets masked. Above are the routes."""

from __future__ import annotations

from quarterdeck.fronts.http.masking import masked_spec
from quarterdeck.hub.permissions.modes import chosen_mode
from quarterdeck.journal.views import SessionView
from quarterdeck.protocol.views import AlarmShape, SessionShape


def session_shape(view: SessionView) -> SessionShape:
    """A session as the API gives it."""
    return SessionShape(
        session=view.session,
        name=view.name,
        state=view.state,
        detail=view.detail,
        spec=masked_spec(view.spec),
        by=view.by,
        parent=view.parent,
        created=view.created,
        updated=view.updated,
        archived=view.archived,
        head=view.head,
        run=view.run,
        machine=view.machine,
        pid=view.pid,
        version=view.version,
        directory=view.directory,
        cli_session=view.cli_session,
        mode=view.mode or chosen_mode(view.spec),
        model=view.model or view.spec.model,
        turns=view.turns,
        cost_usd=view.cost_usd,
        estimated_usd=view.account.estimated_usd,
        tokens=view.account.tokens,
        budgets=tuple(view.account.budgets.values()),
        alarms=tuple(
            AlarmShape(alarm=name, text=alarm.text, action=alarm.action, at=alarm.at)
            for name, alarm in view.account.alarms.items()
        ),
        queued=len(view.queued),
        asks=len(view.asks),
    )
