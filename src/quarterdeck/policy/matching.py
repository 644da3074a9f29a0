"""Which needs a rule hits. Pure: a rule, a request and its context in, the hits out."""

from __future__ import annotations

from enum import StrEnum

from quarterdeck.domain.structs import Fact
from quarterdeck.policy.needs import Context, Need, Request
from quarterdeck.policy.specifiers import Rule


class Sense(StrEnum):
    """What a match is for. To allow, a rule must name what is done; to stop, it need only fit."""

    ALLOW = "allow"
    STOP = "stop"


class Match(Fact):
    """A rule that hits, and the needs that it hits."""

    rule: Rule
    needs: tuple[Need, ...]


def match(rule: Rule, request: Request, context: Context, sense: Sense) -> Match | None:
    """Hold a rule against a request: the needs that it covers (ALLOW), or catches (STOP)."""
    if rule.tool != request.tool or rule.specifier is not None:
        return None
    return Match(rule=rule, needs=request.needs)
