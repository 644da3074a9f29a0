"""The examples in a policy file: calls that a rule must or must not match, and calls with verdicts.

A policy that contradicts its examples is refused. An example of a rule tests the rule alone: facts
that it does not mention are taken to match. A `[[test]]` tests the whole policy, and facts that it
does not mention are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.policy.calls import input_of, short_call
from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.facts import SUBAGENT, Facts
from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.readings import unknown_in
from quarterdeck.policy.rules import Rule, Verb
from quarterdeck.policy.toml import Document, Flaw
from quarterdeck.policy.toml_values import Table
from quarterdeck.policy.trees import Tree

FACT_KEYS = {
    "machine",
    "project",
    "directory",
    "branch",
    "user",
    "mode",
    "origin",
    "cost",
    "at",
}
EXAMPLE_KEYS = {"call", "tool", "input", *FACT_KEYS}
TEST_KEYS = {*EXAMPLE_KEYS, "verdict"}
VERDICTS = ("allow", "ask", "deny", "cli")

MOST_UNKNOWN = 3
"""The number of unknown things that are named for one test."""

CONTEXT = Context(cwd="/project", home="/home/someone", below=lambda _: Tree())
"""Where the calls of examples are made: paths in them are in this folder, or absolute. A search
finds no files there that a rule is about."""


class Example(Value):
    """A call, with facts about its place and time."""

    tool: str
    input: Raw
    facts: Facts = Facts()

    @property
    def text(self) -> str:
        """For people."""
        members = msgspec.json.decode(self.input, type=dict[str, object])
        only = next(iter(members.values()), "") if len(members) == 1 else bytes(self.input).decode()
        return f"{self.tool} {only}".rstrip()


def check_examples(document: Document, rules: Sequence[Rule], own: int, flaws: list[Flaw]) -> int:
    """Check `match` and `not_match` of each rule from the one numbered `own` on; how many."""
    count = 0
    for number, rule in enumerate(rules[own:]):
        given = _list(document.data.get("rule"))[number]
        table = given if isinstance(given, dict) else {}
        for key, wanted in (("match", True), ("not_match", False)):
            for place, value in enumerate(_list(table.get(key))):
                count += 1
                path = ("rule", number, key, place)
                example = _example(document, path, value, flaws)
                if example is not None and _hits(rule, example) is not wanted:
                    text = f"{example.text}: the rule {rule.name!r} "
                    text += "does not match it" if wanted else "matches it"
                    flaws.append(Flaw(line=document.line(*path), text=text))
    return count


def check_tests(document: Document, policy: Policy, flaws: list[Flaw]) -> int:
    """Check each `[[test]]`; how many."""
    tests = _list(document.data.get("test"))
    for number, value in enumerate(tests):
        table = Table(document, ("test", number), value, flaws, keys=TEST_KEYS)
        before = len(flaws)
        if not table.has("verdict"):
            table.flaw("the verdict is missing")
        wanted = table.choice("verdict", VERDICTS, "ask")
        example = _from_table(table)
        if example is None or len(flaws) > before:
            continue
        call = Call(tool=example.tool, input=example.input, facts=example.facts, context=CONTEXT)
        verdict = decide(call, Rules(policies=(policy,)))
        found = verdict.behavior.value if verdict.ruled else "cli"
        if found != wanted:
            why = "; ".join((*verdict.reasons, *_unknown(call)))
            table.flaw(f"{example.text}: the verdict is {found}, not {wanted} ({why})")
    return len(tests)


def _unknown(call: Call) -> Iterator[str]:
    """What is not known of a call, which may be the reason for its verdict."""
    for each in unknown_in(needs_of(call.tool, call.input, call.context))[:MOST_UNKNOWN]:
        yield f"unknown is {each.what}: {each.why}"


def _list(value: object) -> list[object]:
    """One value or several, as several."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _hits(rule: Rule, example: Example) -> bool:
    request = needs_of(example.tool, example.input, CONTEXT)
    hit = rule.hit(request, CONTEXT, example.facts, assume=True)
    if hit is None or rule.verb is not Verb.ALLOW:
        return hit is not None
    covered = {id(need) for need in hit.needs}
    return all(id(need) in covered or need.free for need in request.needs)


def _example(
    document: Document, path: tuple[str | int, ...], value: object, flaws: list[Flaw]
) -> Example | None:
    if isinstance(value, str):
        try:
            tool, given = short_call(value)
        except UsageError as error:
            flaws.append(Flaw(line=document.line(*path), text=str(error)))
            return None
        return Example(tool=tool, input=given)
    return _from_table(Table(document, path, value, flaws, keys=EXAMPLE_KEYS))


def _from_table(table: Table) -> Example | None:
    try:
        tool, given = _call(table)
    except UsageError as error:
        table.flaw(str(error))
        return None
    return Example(tool=tool, input=given, facts=_facts(table))


def _call(table: Table) -> tuple[str, Raw]:
    if table.has("call") is table.has("tool"):
        raise UsageError('it needs a call, as in call = "git push", or a tool and its input')
    if table.has("call"):
        return short_call(table.text("call"))
    tool, given = table.text("tool"), table.get("input")
    if given is None or isinstance(given, str):
        return tool, input_of(tool, given or "")
    return tool, Raw(msgspec.json.encode(given))


def _facts(table: Table) -> Facts:
    def optional_text(key: str) -> str | None:
        return table.text(key) if table.has(key) else None

    moment = table.get("at")
    origin, _, agent = (optional_text("origin") or "").partition(":")
    if isinstance(moment, datetime) or moment is None:
        now = table.moment("at")
    else:
        now = None
        table.flaw("expected a time with its offset", "at")
    return Facts(
        now=now,
        machine=optional_text("machine"),
        project=optional_text("project"),
        directory=optional_text("directory"),
        branch=optional_text("branch"),
        user=optional_text("user"),
        mode=optional_text("mode"),
        origin=origin or None,
        agent=agent or None if origin == SUBAGENT else None,
        cost_usd=table.number("cost"),
    )
