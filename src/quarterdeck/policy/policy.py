"""A policy: rules prepared for many calls.

Owns which rules are candidates: of five hundred rules about commands, those about the commands of
the call. It compares each candidate with the call; `decide` draws the conclusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from quarterdeck.policy.facts import Facts
from quarterdeck.policy.needs import Context, NeedKind, Request
from quarterdeck.policy.parity import ClaudeRule, Outcome, RuleSet
from quarterdeck.policy.rules import AskSettings, Hit, Rule
from quarterdeck.policy.specifiers import Behavior

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
    ) -> None:
        self.name = name
        self.rules = tuple(rules)
        self.claude = tuple(claude)
        self.default: Default = default
        self.ask_settings = ask_settings or AskSettings()
        self.stopping = tuple(each for each in self.claude if each.behavior is not Behavior.ALLOW)
        self._claude = RuleSet(self.claude) if self.claude else None
        self._by_command: dict[str, list[int]] = {}
        self._by_kind: dict[NeedKind, list[int]] = {}
        self._others: list[int] = []
        for index, rule in enumerate(self.rules):
            names, kinds = _commands(rule), _kinds(rule)
            for name_ in names or ():
                self._by_command.setdefault(name_, []).append(index)
            for kind in kinds or ():
                self._by_kind.setdefault(kind, []).append(index)
            if names is None and kinds is None:
                self._others.append(index)

    def hits(self, request: Request, context: Context, facts: Facts) -> Iterator[Hit]:
        """The matches of its own rules, in their order."""
        for rule in self._candidates(request):
            hit = rule.hit(request, context, facts)
            if hit is not None:
                yield hit

    def weigh(self, request: Request, context: Context) -> Outcome | None:
        """The result of its rules in Claude Code's syntax; None if it has none."""
        return self._claude.weigh(request, context) if self._claude is not None else None

    def _candidates(self, request: Request) -> Iterable[Rule]:
        names: set[str] = set()
        kinds: set[NeedKind] = set()
        for need in request.needs:
            if need.kind is NeedKind.UNKNOWN:
                return self.rules
            kinds.add(need.kind)
            if need.part is not None:
                if (name := need.part.name) is None:
                    return self.rules
                names.add(name)
                names.add(need.part.words[0].literal or name)
                names.update(need.part.called[:1])
        found = list(self._others)
        for name in names:
            found += self._by_command.get(name, ())
        for kind in kinds:
            found += self._by_kind.get(kind, ())
        return [self.rules[index] for index in sorted(set(found))]


def _commands(rule: Rule) -> list[str] | None:
    """The names of the only commands that a rule can match; None if it may match others."""
    what = rule.what
    if not what.commands or what.claude or what.domains:
        return None
    names = [pattern.words[0] for pattern in what.commands]
    return None if any(set(name) & set("*?[") for name in names) else names


def _kinds(rule: Rule) -> tuple[NeedKind, ...] | None:
    """The kinds of needs that a rule about paths, or about domains, can hit; None for others."""
    what = rule.what
    if what.commands or what.claude or what.flags or what.without:
        return None
    if what.paths and not what.domains:
        return (NeedKind.EDIT, NeedKind.READ)
    if what.domains and not what.paths:
        return (NeedKind.FETCH,)
    if what.places.given and not what.domains:
        return (NeedKind.EDIT, NeedKind.READ, NeedKind.FETCH)
    return None
