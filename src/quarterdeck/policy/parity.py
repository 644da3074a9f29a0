"""`weigh`: what Claude Code's own rules make of a call. Deny over ask over allow.

Strict where the CLI is lax, never the other way: an allow must cover every need.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Fact
from quarterdeck.policy.behavior import Behavior
from quarterdeck.policy.matching import Match, Sense, match
from quarterdeck.policy.needs import Context, Need, Request
from quarterdeck.policy.specifiers import Rule, Source


class Placed(Fact):
    """A rule, what it is for, and where it comes from."""

    rule: Rule
    behavior: Behavior
    source: Source = Source.USER


class Outcome(Fact):
    """What the rules say. No behavior: they leave it open."""

    behavior: Behavior | None
    decided: tuple[tuple[Placed, Match], ...] = ()
    """The rules that decided, and what they hit."""

    open: tuple[Need, ...] = ()
    """The needs that no allow rule covers, where nothing was denied or asked."""


class RuleSet:
    """Rules made ready for many calls."""

    def __init__(self, rules: tuple[Placed, ...]) -> None:
        self.rules = rules

    def weigh(self, request: Request, context: Context) -> Outcome:
        """Hold every rule against a call."""
        for behavior in (Behavior.DENY, Behavior.ASK):
            hits = self._hits(behavior, request, context, Sense.STOP)
            if hits:
                return Outcome(behavior=behavior, decided=hits)
        hits = self._hits(Behavior.ALLOW, request, context, Sense.ALLOW)
        covered = {id(need) for _, hit in hits for need in hit.needs}
        left = tuple(need for need in request.needs if id(need) not in covered)
        if left or not request.needs:
            return Outcome(behavior=None, open=left)
        return Outcome(behavior=Behavior.ALLOW, decided=hits)

    def _hits(
        self, behavior: Behavior, request: Request, context: Context, sense: Sense
    ) -> tuple[tuple[Placed, Match], ...]:
        found = []
        for placed in self.rules:
            if placed.behavior is behavior:
                hit = match(placed.rule, request, context, sense)
                if hit is not None:
                    found.append((placed, hit))
        return tuple(found)
