"""`RuleSet.weigh`: what Claude Code's own rules make of a call. Deny over ask over allow.

Rules of all sources count alike: a deny of the project is not lifted by an allow of the user.
Strict where the CLI is lax: an allow must cover every need. The reference says where that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quarterdeck.domain.structs import Value
from quarterdeck.policy.indexes import WordIndex
from quarterdeck.policy.matcher import Match, Sense, first_spellings, match
from quarterdeck.policy.needs import Context, Need, NeedKind, Request
from quarterdeck.policy.specifiers import Behavior, Rule, Source


class ClaudeRule(Value):
    """A rule in Claude Code's syntax, its behavior, and its source."""

    rule: Rule
    behavior: Behavior
    source: Source = Source.USER


class Outcome(Value):
    """The result of the rules. Without a behavior they decide nothing."""

    behavior: Behavior | None
    decided: tuple[tuple[ClaudeRule, Match], ...] = ()
    """The rules that decided, and their matches."""

    open: tuple[Need, ...] = ()
    """The needs that no allow rule covers, where nothing was denied or asked."""


class _Words(NamedTuple):
    """The words by which a rule may match a command or a part of it."""

    firsts: set[str]
    seconds: set[str] | None
    """None: a part has none, or it is not known."""


class _Index:
    """The rules of one behavior, by the first two words of their commands."""

    def __init__(self, rules: Iterable[ClaudeRule]) -> None:
        found = [(_first_word(each.rule), (_second_word(each.rule), each)) for each in rules]
        self._all = WordIndex(found)
        self._without_files = WordIndex(pair for pair in found if pair[1][1].rule.path is None)

    def candidates(self, words: _Words, files: bool) -> list[ClaudeRule]:
        """The rules that may hit a call with such commands, or with files, in their order."""
        index = self._all if files else self._without_files
        seconds = words.seconds
        return [
            each
            for second, each in index.candidates(words.firsts)
            if seconds is None or second is None or second in seconds
        ]


class RuleSet:
    """Rules made ready for many calls."""

    def __init__(self, rules: tuple[ClaudeRule, ...]) -> None:
        self.rules = rules
        self._indexes = {
            behavior: _Index(each for each in rules if each.behavior is behavior)
            for behavior in Behavior
        }
        self._stopping = {
            each.rule.tool
            for each in rules
            if each.behavior is not Behavior.ALLOW and each.rule.specifier is not None
        }

    def weigh(self, request: Request, context: Context) -> Outcome:
        """Hold every rule against a call that may hit it."""
        words = _words(request)
        files = any(need.target is not None for need in request.needs)
        stopping: list[tuple[ClaudeRule, Match]] = []
        for behavior in (Behavior.DENY, Behavior.ASK):
            hits = self._hits(behavior, request, context, Sense.STOP, words, files)
            if any(hit.sure for _, hit in hits):
                sure = tuple(each for each in hits if each[1].sure)
                return Outcome(behavior=behavior, decided=sure)
            stopping += hits
        if stopping:
            # It is not known whether the rule applies: then it asks.
            return Outcome(behavior=Behavior.ASK, decided=tuple(stopping))
        hits = self._hits(Behavior.ALLOW, request, context, Sense.ALLOW, words, files)
        covered = {id(need) for _, hit in hits for need in hit.needs}
        if self._stopping.intersection((request.tool, "Read", "Edit")):
            # An unreadable part may hide what a rule would stop: then a rule for the whole tool
            # does not allow it.
            covered -= {id(need) for need in request.needs if need.kind is NeedKind.UNKNOWN}
            covered |= {
                id(need)
                for _, hit in hits
                if names_exactly(hit.rule, request)
                for need in hit.needs
            }
        left = tuple(need for need in request.needs if not need.free and id(need) not in covered)
        if left or not hits:
            return Outcome(behavior=None, open=left)
        return Outcome(behavior=Behavior.ALLOW, decided=hits)

    def _hits(
        self,
        behavior: Behavior,
        request: Request,
        context: Context,
        sense: Sense,
        words: _Words,
        files: bool,
    ) -> tuple[tuple[ClaudeRule, Match], ...]:
        found = []
        for placed in self._indexes[behavior].candidates(words, files):
            hit = match(placed.rule, request, context, sense)
            if hit is not None:
                found.append((placed, hit))
        return tuple(found)


def names_exactly(rule: Rule, request: Request) -> bool:
    """Whether a rule names this command, letter by letter."""
    command = rule.command
    return (
        command is not None
        and request.command is not None
        and (command.exact and command.text == request.command.strip())
    )


def _first_word(rule: Rule) -> str | None:
    return None if rule.command is None else rule.command.first_word


def _second_word(rule: Rule) -> str | None:
    # An option may be anywhere in a command.
    second = None if rule.command is None else rule.command.second_word
    return None if second is None or second[0] == "-" else second


def _words(request: Request) -> _Words:
    """The words of all texts by which a rule may know a command or its parts."""
    texts = [] if request.command is None else [request.command]
    firsts: set[str] = set()
    seconds: set[str] = set()
    known = True
    for part in request.script.parts if request.script is not None else ():
        texts += [form.text for form in part.forms]
        firsts |= first_spellings(part)
        known = known and (part.subcommand is not None or not part.words)
        for other in (part.called, *part.same):
            seconds.update(other[1:2])
            seconds.update([each for each in other[2:] if other[1][:1] == "-" != each[:1]][:1])
        if part.subcommand is not None:
            seconds.add(part.subcommand)
    for text in texts:
        words = text.split(None, 2)
        firsts.update(words[:1])
        seconds.update(words[1:2])
    return _Words(firsts, seconds if known else None)
