"""A policy: rules prepared for many calls.

Owns which rules are candidates: of five hundred rules about commands, those about the commands of
the call. It compares each candidate with the call; `decide` draws the conclusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from quarterdeck.policy.facts import Facts
from quarterdeck.policy.needs import Context, Request
from quarterdeck.policy.parity import ClaudeRule, Outcome, RuleSet
from quarterdeck.policy.rules import AskSettings, Hit, Rule
from quarterdeck.policy.specifiers import Behavior
from quarterdeck.policy.triggers import Key, keys_of_call, keys_of_rule

Default = Literal["cli", "ask", "deny"]
"""The decision on a call without a matching rule: by the CLI, ask, or deny."""

STRICTNESS: tuple[Default, ...] = ("cli", "ask", "deny")


class Policy:
    """Rules with a name, and what holds where none of them decides."""

    def __init__(
        self,
        name: str,
        *,
        rules: Iterable[Rule] = (),
        claude: Iterable[ClaudeRule] = (),
        default: Default = "cli",
        ask_settings: AskSettings | None = None,
        agents: bool = False,
    ) -> None:
        """`agents`: the sessions that it holds for may start other sessions."""
        self.name = name
        self.agents = agents
        self.rules = tuple(rules)
        self.claude = tuple(claude)
        self.default: Default = default
        self.ask_settings = ask_settings or AskSettings()
        self.stopping = tuple(each for each in self.claude if each.behavior is not Behavior.ALLOW)
        self._claude = RuleSet(self.claude) if self.claude else None
        self._by_key: dict[Key, list[int]] = {}
        self._always: list[int] = []
        for index, rule in enumerate(self.rules):
            keys = keys_of_rule(rule)
            if keys is None:
                self._always.append(index)
            for key in keys or ():
                self._by_key.setdefault(key, []).append(index)

    def hits(self, request: Request, context: Context, facts: Facts) -> Iterator[Hit]:
        """The matches of its own rules, in their order."""
        for rule in self.candidates(request):
            hit = rule.hit(request, context, facts)
            if hit is not None:
                yield hit

    def weigh(self, request: Request, context: Context) -> Outcome | None:
        """The result of its rules in Claude Code's syntax; None if it has none."""
        return self._claude.weigh(request, context) if self._claude is not None else None

    def candidates(self, request: Request) -> Iterable[Rule]:
        """Its own rules that can hit a call, in their order."""
        keys = keys_of_call(request) if self._by_key else None
        if keys is None:
            return self.rules
        found = set(self._always)
        for key in self._by_key.keys() & keys:
            found.update(self._by_key[key])
        return [self.rules[index] for index in sorted(found)]
