"""Hostile commands: never allowed by a rule that does not name what they do.

One test for a group of them: a thousand tests of a millisecond each would cost a minute.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.parity import ClaudeRule, RuleSet
from quarterdeck.policy.shell import LIMIT
from quarterdeck.policy.specifiers import Behavior, parse_rule

CONTEXT = Context(cwd="/project", home="/home/someone")

MADE = {
    "@long": "echo " + "a" * LIMIT + "; rm -rf x",
    "@deep-substitution": "echo " + "$(echo " * 300 + "$(rm -rf x)" + ")" * 300,
    "@deep-subshell": "(" * 300 + "rm -rf x" + ")" * 300,
    "@deep-scripts": "eval " * 40 + "rm -rf x",
    "@many": "; ".join(["echo x"] * 2_030) + "; rm x",
}
"""Commands that are too long to be written down."""


class Group(Value):
    """Commands, and the rules that they are held against."""

    name: str
    allow: tuple[str, ...]
    hostile: tuple[str, ...]
    fine: tuple[str, ...]
    deny: tuple[str, ...] = ()

    @property
    def rules(self) -> RuleSet:
        """The rules, ready."""
        placed = [(text, Behavior.ALLOW) for text in self.allow]
        placed += [(text, Behavior.DENY) for text in self.deny]
        return RuleSet(
            tuple(ClaudeRule(rule=parse_rule(text), behavior=verb) for text, verb in placed)
        )


def groups() -> list[Group]:
    text = (Path(__file__).parent / "hostile.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["group"], type=list[Group], strict=True)


def passes(rules: RuleSet, command: str) -> bool:
    """Would it run without a question: because rules allow it, or because it needs none?"""
    given = Raw(json.dumps({"command": MADE.get(command, command)}).encode())
    outcome = rules.weigh(needs_of("Bash", given, CONTEXT), CONTEXT)
    return outcome.behavior is Behavior.ALLOW or (outcome.behavior is None and not outcome.open)


@pytest.mark.parametrize("group", groups(), ids=lambda group: group.name)
def test_no_hostile_command_passes(group: Group) -> None:
    assert group.hostile
    assert [command for command in group.hostile if passes(group.rules, command)] == []


@pytest.mark.parametrize("group", groups(), ids=lambda group: group.name)
def test_what_the_same_rules_do_name_passes(group: Group) -> None:
    assert group.fine
    assert [command for command in group.fine if not passes(group.rules, command)] == []
