"""Why: which rules hit which part of a call, and which decided."""

from __future__ import annotations

from quarterdeck.domain.structs import Fact
from quarterdeck.policy.behavior import Behavior
from quarterdeck.policy.decide import Call, Matched, Rules, Verdict, decide
from quarterdeck.policy.matching import Sense, match
from quarterdeck.policy.needs import Need, Request, needs_of
from quarterdeck.policy.policy import Policy


class PartExplained(Fact):
    """One thing that must be allowed, and the rules that hit it."""

    kind: str
    what: str
    why: str = ""
    free: bool = False
    """It needs no rule."""
    rules: tuple[Matched, ...] = ()


class Explanation(Fact, omit_defaults=False):
    """A verdict, taken apart."""

    tool: str
    verdict: str
    """`allow`, `ask`, `deny`, or `cli`: left to the CLI."""
    rule: str | None
    source: str | None
    reasons: tuple[str, ...]
    message: str
    rewritten: str | None
    """The input that would run instead."""
    answered_by: tuple[tuple[str, ...], ...]
    wait: float | None
    then: str
    parts: tuple[PartExplained, ...]


def explain(call: Call, rules: Rules) -> Explanation:
    """Decide about a call, and say how that came about."""
    verdict = decide(call, rules)
    request = needs_of(call.tool, call.input, call.context)
    return Explanation(
        tool=call.tool,
        verdict=told(verdict),
        rule=verdict.rule,
        source=verdict.source,
        reasons=verdict.reasons,
        message=verdict.message,
        rewritten=bytes(verdict.input).decode(errors="replace") if verdict.input else None,
        answered_by=verdict.asking.answered_by,
        wait=verdict.asking.wait,
        then=verdict.asking.then,
        parts=tuple(
            PartExplained(
                kind=need.kind.value,
                what=need.what,
                why=need.why,
                free=need.free,
                rules=tuple(_rules(need, request, call, rules)),
            )
            for need in request.needs
        ),
    )


def told(verdict: Verdict) -> str:
    """A verdict as a word: what a rule says, or `cli`."""
    return verdict.behavior.value if verdict.ruled else "cli"


def _rules(need: Need, request: Request, call: Call, rules: Rules) -> list[Matched]:
    found: list[Matched] = []
    for policy in rules.policies:
        found += [
            Matched(
                rule=hit.rule.name,
                source=hit.rule.place,
                verdict=hit.rule.verb.value,
                parts=(need.what,),
                sure=hit.sure,
            )
            for hit in policy.hits(request, call.context, call.facts)
            if any(each is need for each in hit.needs)
        ]
        found += _claude(policy, need, request, call)
    return found


def _claude(policy: Policy, need: Need, request: Request, call: Call) -> list[Matched]:
    found: list[Matched] = []
    for placed in policy.claude:
        sense = Sense.ALLOW if placed.behavior is Behavior.ALLOW else Sense.STOP
        hit = match(placed.rule, request, call.context, sense)
        if hit is not None and any(each is need for each in hit.needs):
            verdict = placed.behavior.value
            one = Matched(
                rule=placed.rule.text, source=policy.name, verdict=verdict, parts=(need.what,)
            )
            found.append(one)
    return found
