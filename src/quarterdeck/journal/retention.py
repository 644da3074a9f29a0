"""Retention: which sessions are deleted, and why. Pure.

Owns the rule. Nothing is deleted unless a limit is set, and a session in use is never deleted: one
with a process, an open question or a queued prompt stays, whatever its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quarterdeck.protocol.retention import Leaving, Plan, Retention
from quarterdeck.protocol.session_view import SessionView

DAY = 86_400_000


def plan(rule: Retention, views: Iterable[SessionView], sizes: Mapping[str, int], now: int) -> Plan:
    """Apply the rule to these sessions, at a time in ms since 1970."""
    everything = list(views)
    total = sum(sizes.get(view.session, 0) for view in everything)
    # Archived sessions first, and the oldest of them first.
    free = sorted(
        (view for view in everything if _may_go(view, rule)),
        key=lambda view: (not view.archived, view.updated, view.session),
    )
    leaving: dict[str, Leaving] = {}
    if rule.days is not None:
        oldest = now - int(rule.days * DAY)
        for view in free:
            if view.updated < oldest:
                idle = (now - view.updated) // DAY
                leaving[view.session] = _plan_leave(view, sizes, f"nothing for {idle} days")
    if rule.bytes is not None:
        left = total - sum(each.bytes for each in leaving.values())
        for view in free:
            if left <= rule.bytes:
                break
            if view.session not in leaving:
                reason = f"all together have more than {rule.bytes} bytes"
                leaving[view.session] = _plan_leave(view, sizes, reason)
                left -= sizes.get(view.session, 0)
    return Plan(leaving=tuple(leaving.values()), sessions=len(everything), bytes=total)


def _may_go(view: SessionView, rule: Retention) -> bool:
    if view.run is not None or view.asks or view.unsent:
        return False
    return view.archived or not rule.archived_only


def _plan_leave(view: SessionView, sizes: Mapping[str, int], reason: str) -> Leaving:
    return Leaving(
        session=view.session,
        name=view.name,
        updated=view.updated,
        bytes=sizes.get(view.session, 0),
        archived=view.archived,
        reason=reason,
    )
