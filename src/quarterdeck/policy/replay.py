"""What a policy would have decided for past calls, compared with what was decided. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.policy.calls import ARGUMENT
from quarterdeck.policy.decide import Behavior, Call, Rules, decide
from quarterdeck.policy.policy import Policy

MOST_CHANGES = 500
"""The number of differences that are listed; all are counted."""
MOST_SHOWN = 200
"""Characters of a call."""


class PastCall(Value):
    """A past call, and its outcome."""

    session: str
    at: int
    call: Call
    done: str
    """`allow` or `deny`; empty if unknown: it was still open, or the CLI had ended."""
    by: str = ""
    """A person, `policy`, or `cli`."""
    asked: bool = False
    """Whether a person was asked."""
    rule: str | None = None
    auto_approve: tuple[str, ...] = ()
    skip_permissions: bool = False

    @property
    def then(self) -> str:
        """The outcome: `allowed`, `denied`, `asked, allowed`, `asked, denied`."""
        word = {"allow": "allowed", "deny": "denied"}.get(self.done, "left open")
        return f"asked, {word}" if self.asked else word

    @property
    def by_person(self) -> bool:
        """Whether a person decided it."""
        return self.asked and bool(self.done) and self.by not in {"", "policy", "cli", "time limit"}

    @property
    def text(self) -> str:
        """The call in short."""
        return describe_call(self.call)


class Change(Value):
    """A call that this policy would have treated otherwise."""

    session: str
    at: int
    tool: str
    call: str
    then: str
    now: str
    by: str
    reasons: tuple[str, ...] = ()


class Replay(Value, omit_defaults=False):
    """The result of a replay."""

    calls: int
    same: int
    counts: dict[str, int]
    """How often each outcome would have become which verdict: `asked, allowed → allow`."""
    changes: tuple[Change, ...]
    """The calls that differ, those first that a person denied and that would now pass."""
    truncated: bool = False
    """There were more calls than the limit: the oldest are not included."""


_DONE = {Behavior.ALLOW: "allowed", Behavior.DENY: "denied", Behavior.ASK: "asked"}


def replay(policy: Policy, calls: Iterable[PastCall], *, truncated: bool = False) -> Replay:
    """Hold a policy against calls of the past."""
    counts: Counter[str] = Counter()
    changes: list[Change] = []
    total = same = 0
    for past in calls:
        total += 1
        rules = Rules(
            policies=(policy,),
            auto_approve=past.auto_approve,
            skip_permissions=past.skip_permissions,
        )
        verdict = decide(past.call, rules)
        now = verdict.behavior.value
        counts[f"{past.then} → {now}"] += 1
        if past.then.startswith(_DONE[verdict.behavior]) or past.then == "left open":
            same += 1
            continue
        changes.append(
            Change(
                session=past.session,
                at=past.at,
                tool=past.call.tool,
                call=past.text,
                then=past.then,
                now=now,
                by=past.by,
                reasons=verdict.reasons,
            )
        )
    changes.sort(key=lambda change: (_weight(change), -change.at))
    return Replay(
        calls=total,
        same=same,
        counts=dict(sorted(counts.items())),
        changes=tuple(changes[:MOST_CHANGES]),
        truncated=truncated,
    )


def _weight(change: Change) -> int:
    """What matters most comes first."""
    if change.now == "allow":
        return 0 if "denied" in change.then else 2
    return 1 if change.now == "deny" else 3


def describe_call(call: Call) -> str:
    """A call in short: its one argument, or its input."""
    text = bytes(call.input).decode(errors="replace")
    try:
        members = msgspec.json.decode(call.input, type=dict[str, object])
        value = members.get(ARGUMENT.get(call.tool, ""), None)
        text = value if isinstance(value, str) else text
    except DECODE_ERRORS:
        pass
    text = " ".join(text.split())
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
