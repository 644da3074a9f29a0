"""`decide`: what becomes of a tool call before anybody is asked.

A pure function of the call and the rules: no clock, no disk, no event loop. It says yes or no only
where a rule says so outright; everything else is a question for a person. The verdict carries its
reasons, for the card that a person sees and for the audit log.
"""

from __future__ import annotations

from msgspec import Raw

from quarterdeck.domain.structs import Fact
from quarterdeck.policy.behavior import Behavior as Behavior

FOR_PEOPLE = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that ask a person something. No rule can answer in a person's place."""


class Call(Fact):
    """A tool call, as far as a decision needs to know it."""

    tool: str
    input: Raw
    mode: str = "default"
    agent: str | None = None
    cli_asks: bool = False
    """The CLI itself wants a person to be asked; without it, it would have let the call pass."""


class Rules(Fact):
    """What holds for a session."""

    auto_approve: tuple[str, ...] = ()
    skip_permissions: bool = False


class Verdict(Fact):
    """What becomes of a call, and why."""

    behavior: Behavior
    reasons: tuple[str, ...]


def decide(call: Call, rules: Rules) -> Verdict:
    """Decide about a call. Total: whatever it is given, it gives a verdict."""
    if call.tool in FOR_PEOPLE:
        return Verdict(behavior=Behavior.ASK, reasons=(f"{call.tool} is a question to a person",))
    if call.tool in rules.auto_approve:
        return Verdict(
            behavior=Behavior.ALLOW, reasons=(f"{call.tool} is on the session's auto-approve list",)
        )
    if rules.skip_permissions:
        return Verdict(
            behavior=Behavior.ALLOW,
            reasons=("the session was started by a person with permissions skipped",),
        )
    if call.cli_asks:
        return Verdict(behavior=Behavior.ASK, reasons=("no rule decides it, and the CLI asks",))
    return Verdict(
        behavior=Behavior.ALLOW,
        reasons=(f"no rule decides it, and the CLI allows it in mode {call.mode!r}",),
    )
