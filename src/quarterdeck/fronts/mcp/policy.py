"""What becomes of a call at `/mcp` by the policy, and what the audit log keeps of it. Pure.

An agent is asked about by its CLI, before it calls. Nobody can be asked about a person's call: a
model is at the other end, and the person may not even look. So what a rule would ask about is
refused there.
"""

from __future__ import annotations

from collections import deque

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, Forbidden
from quarterdeck.hub.api import Behavior, Verdict
from quarterdeck.protocol.events import Decided
from quarterdeck.wire.tools import one_line

TITLE = 200
MOST_REFUSED, REFUSED_SECONDS = 60, 3600.0
"""So many refused calls of one caller are kept in such a time, and so many that only read: the
journal must not fill."""
NOBODY_ANSWERS = (
    "the policy asks about this call, and nobody can be asked at /mcp: do it in the web app or the"
    " terminal, or have a rule allow it"
)


def check_person(verdict: Verdict) -> None:
    """Raise `Forbidden` unless the rules let a person's call pass."""
    match verdict.behavior:
        case Behavior.DENY:
            raise Forbidden(verdict.message or f"the policy denies this: {_why(verdict)}")
        case Behavior.ASK:
            raise Forbidden(f"{NOBODY_ANSWERS} ({_why(verdict)})")
        case Behavior.ALLOW:
            pass


def _why(verdict: Verdict) -> str:
    return verdict.reasons[0] if verdict.reasons else "a rule"


def entry(
    tool: str, given: bytes, caller: str, verdict: Verdict | None, refused: str | None = None
) -> Decided:
    """The audit entry of a call. Without a verdict something else than a rule has refused it."""
    decided = verdict if verdict is not None and verdict.ruled else None
    why = decided.coded if decided is not None else ()
    if refused is not None:
        why = (CodedText(code=TextCode.CALL_REFUSED, detail=refused),)
    return Decided(
        tool=tool,
        title=one_line(given.decode(errors="replace"), TITLE) or tool,
        verdict="allow" if refused is None else "deny",
        by="policy" if decided is not None or refused is not None else caller,
        coded=(*why, CodedText(code=TextCode.CALLED_AT_MCP, name=caller)),
        rule=decided.rule if decided is not None else None,
        source=decided.source if decided is not None else None,
        rewritten=verdict is not None and bool(verdict.input),
        caller=caller,
    )


class RefusedCalls:
    """Counts the refused calls of each caller. Times are in seconds."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def admit(self, caller: str, now: float) -> None:
        """Raise `Conflict` for a call of one who had too many refused lately."""
        times = self._times.get(caller)
        while times and now - times[0] >= REFUSED_SECONDS:
            times.popleft()
        if times is not None and not times:
            del self._times[caller]
        elif times is not None and len(times) >= MOST_REFUSED:
            raise Conflict(
                "agents_refused", f"{MOST_REFUSED} calls of this caller were refused within an hour"
            )

    def add(self, caller: str, now: float) -> None:
        """One more was refused."""
        self._times.setdefault(caller, deque()).append(now)


class RecentEntries:
    """Which entries the audit log has of the last hour, by caller. Times are in seconds."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, float]] = {}

    def is_new(self, caller: str, entry: str, now: float) -> bool:
        """Whether to keep an entry: not the same one twice, and not too many of one caller."""
        for other in [each for each, times in self._of.items() if _is_over(times, now)]:
            del self._of[other]
        times = {
            each: at for each, at in self._of.get(caller, {}).items() if now - at < REFUSED_SECONDS
        }
        self._of[caller] = times
        if entry in times or len(times) >= MOST_REFUSED:
            return False
        times[entry] = now
        return True


def _is_over(times: dict[str, float], now: float) -> bool:
    return all(now - at >= REFUSED_SECONDS for at in times.values())
