"""Why: which rules hit which part of a call, and which decided."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from quarterdeck.domain.structs import Value
from quarterdeck.policy.decide import Call, Matched, Rules, Verdict, decide
from quarterdeck.policy.matcher import Sense, match
from quarterdeck.policy.needs import Request, needs_of
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.readings import Unknown, unknown_in
from quarterdeck.policy.specifiers import Behavior


class PartExplained(Value):
    """One thing that must be allowed, and the rules that hit it."""

    kind: str
    what: str
    why: str = ""
    free: bool = False
    """It needs no rule."""
    rules: tuple[Matched, ...] = ()


class Explanation(Value, omit_defaults=False):
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
    unknown: tuple[Unknown, ...] = ()
    """What is not known before the call runs, and where: the reason for "may ask", "may deny"."""


def explain(call: Call, rules: Rules) -> Explanation:
    """Decide about a call, and say how that came about."""
    request = needs_of(call.tool, call.input, call.context)
    verdict = decide(call, rules, request)
    try:
        hits = [hit for policy in rules.policies for hit in _hits(policy, request, call)]
    except Exception:  # noqa: BLE001 - the verdict says what failed; an explanation never does
        hits = []
    return Explanation(
        tool=call.tool,
        verdict=verdict_code(verdict),
        rule=verdict.rule,
        source=verdict.source,
        reasons=verdict.reasons,
        message=verdict.message,
        rewritten=bytes(verdict.input).decode(errors="replace") if verdict.input else None,
        answered_by=verdict.ask_settings.answered_by,
        wait=verdict.ask_settings.wait,
        then=verdict.ask_settings.then,
        parts=tuple(
            PartExplained(
                kind=need.kind.value,
                what=need.what,
                why=need.why,
                free=need.free,
                rules=tuple(
                    replace(one, parts=(need.what,)) for one, ids in hits if id(need) in ids
                ),
            )
            for need in request.needs
        ),
        unknown=unknown_in(request),
    )


def verdict_code(verdict: Verdict) -> str:
    """A verdict as a code: `allow`, `ask`, `deny`, or `cli` if the CLI decides."""
    return verdict.behavior.value if verdict.ruled else "cli"


def _hits(policy: Policy, request: Request, call: Call) -> Iterator[tuple[Matched, set[int]]]:
    """Each rule of a policy that hits, with the needs that it hits: by their ids."""
    for hit in policy.hits(request, call.context, call.facts):
        one = Matched(
            rule=hit.rule.name,
            source=hit.rule.place,
            verdict=hit.rule.verb.value,
            parts=(),
            sure=hit.sure,
        )
        yield one, {id(need) for need in hit.needs}
    for placed in policy.claude:
        sense = Sense.ALLOW if placed.behavior is Behavior.ALLOW else Sense.STOP
        found = match(placed.rule, request, call.context, sense)
        if found is not None:
            verdict = placed.behavior.value
            one = Matched(
                rule=placed.rule.text,
                source=policy.name,
                verdict=verdict,
                parts=(),
                sure=found.sure,
            )
            yield one, {id(need) for need in found.needs}
