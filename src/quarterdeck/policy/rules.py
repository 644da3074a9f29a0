"""Rules: conditions, a verdict, and their matches in a call.

A call is split into needs (`needs`), and a rule is compared with each. To allow, it must certainly
cover a need; to stop, it only has to fit, and where it is unknown whether it fits, a person is
asked. Commands and paths are compared by the same code as Claude Code's rules: `command` here is a
rule `Bash(… :*)` there. Flags in any order, and options before a subcommand, are accepted for
stopping only.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from typing import Literal

from quarterdeck.domain.structs import Value
from quarterdeck.policy import specifiers
from quarterdeck.policy.facts import FactConditions, Facts, NamePatterns, Tri
from quarterdeck.policy.flags import has_flag
from quarterdeck.policy.indexes import KeyIndex, WordIndex
from quarterdeck.policy.matcher import Sense, match
from quarterdeck.policy.needs import Context, Need, NeedKind, Request
from quarterdeck.policy.path_names import names_in
from quarterdeck.policy.patterns import Pattern, is_plain
from quarterdeck.policy.place_conditions import PlaceConditions
from quarterdeck.policy.rewrite import Rewrite
from quarterdeck.policy.shell import Part


class AskSettings(Value):
    """What holds for a question."""

    answered_by: tuple[tuple[str, ...], ...] = ()
    """Lists of people and roles (`ada`, `role:owner`). An answer is accepted from people who are on
    every list; without a list, from everyone with the right to answer."""
    wait: float | None = None
    """Seconds. None: no limit, or the session's limit."""
    then: Literal["deny", "allow"] = "deny"
    """The decision after the wait. Never `allow` unless a rule says so."""


def strictest(asked: Iterable[AskSettings]) -> AskSettings:
    """What holds when several rules ask: the strictest of each."""
    found = tuple(asked)
    waits = [one for one in found if one.wait is not None]
    wait = min((one.wait for one in waits if one.wait is not None), default=None)
    allowed = bool(waits) and all(one.then == "allow" for one in found)
    return AskSettings(
        answered_by=tuple(dict.fromkeys(each for one in found for each in one.answered_by)),
        wait=wait,
        then="allow" if allowed else "deny",
    )


class Verb(StrEnum):
    """The verdict of a rule, strictest first."""

    DENY = "deny"
    ASK = "ask"
    REWRITE = "rewrite"
    ALLOW = "allow"


FAMILY = {NeedKind.EDIT: "Edit", NeedKind.READ: "Read", NeedKind.FETCH: "WebFetch"}
"""Kinds of needs that belong to a tool, whichever tool causes them: a redirection in Bash is an
edit."""


class CallConditions(Value, dict=True):
    """Conditions on the call itself. All empty: every call of the tools."""

    claude: tuple[specifiers.Rule, ...] = ()
    commands: tuple[Pattern, ...] = ()
    but: tuple[Pattern, ...] = ()
    """Commands among them that the rule does not mean."""
    looks: bool = False
    """A command that only looks. To allow."""
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    paths: tuple[specifiers.Rule, ...] = ()
    """As `Edit(…)` and `Read(…)`, two for each path."""
    keys: tuple[str | None, ...] = ()
    """For each of these, a name that the paths have which it matches (`path_names`)."""
    domains: tuple[specifiers.Rule, ...] = ()
    """As `WebFetch(domain:…)`."""
    places: PlaceConditions = PlaceConditions()
    """On the file, in addition to the others."""

    @cached_property
    def any(self) -> bool:
        """Whether there is no condition."""
        return not (self._named or self.looks or self.places.given)

    @cached_property
    def _named(self) -> bool:
        """Whether commands, paths or domains are named."""
        return bool(
            self.claude or self.commands or self.flags or self.without or self.paths or self.domains
        )

    def covers(self, request: Request, context: Context) -> list[Need]:
        """The needs that certainly match: an allow rule allows these."""
        if self.any:
            return list(request.needs)
        found: list[Need] = []
        if self.looks:
            found += [need for need in request.needs if _looks(need)]
        firsts = _first_words(request) if self.claude or self.commands else frozenset()
        if self.claude:
            rules = self._claude_by_word.candidates(firsts)
            found += _allowed_needs(rules, request, context, Sense.ALLOW)
        if self.commands or self.flags or self.without:
            rules = self._commands_by_word.candidates(firsts)
            named = [
                need
                for need in _allowed_needs(rules, request, context, Sense.ALLOW)
                if need.part is not None
                and self._has_flags(need.part) is True
                and not any(pattern.fits(need.part) is not False for pattern in self.but)
                and (not self.paths or need.kind is NeedKind.COMMAND)
            ]
            found += named
            if self.paths:
                parts = {id(need.part) for need in named}
                inside = _allowed_needs(self.paths, request, context, Sense.ALLOW)
                found += [need for need in inside if id(need.part) in parts]
        elif self.paths:
            found += _allowed_needs(self.paths, request, context, Sense.ALLOW)
        if self.domains:
            found += _allowed_needs(self.domains, request, context, Sense.ALLOW)
        return [need for need in found if self.places.may_allow(need, context)]

    def catches(self, request: Request, context: Context) -> list[tuple[Need, bool]]:
        """The needs that match or may match: they stop a call. Each with whether it is certain."""
        if self.any:
            return [(need, True) for need in request.needs]
        caught: dict[int, tuple[Need, bool]] = {}
        for need in request.needs:
            if need.kind is NeedKind.UNKNOWN:
                caught[id(need)] = (need, False)
        others = (*self.claude, *self.domains)
        sure, perhaps = _stopped_needs(others, request, context) if others else ([], [])
        near = self._near(request, context) if self.paths else ()
        inside, may_be_inside = _stopped_needs(near, request, context) if near else ([], [])
        if self.commands or self.flags or self.without:
            among = {id(need) for need in inside}
            either = among | {id(need) for need in may_be_inside}
            parts = {id(need.part): need.part for need in request.needs if need.part is not None}
            fits = {key: self._command(part) for key, part in parts.items()}
            for need in request.needs:
                fit = fits.get(id(need.part), False)
                if fit is False or (self.paths and id(need) not in either):
                    continue
                certain = fit is True and (not self.paths or id(need) in among)
                caught.setdefault(id(need), (need, certain))
        else:
            sure += inside
            perhaps += may_be_inside
        for need in perhaps:
            caught.setdefault(id(need), (need, False))
        caught |= {id(need): (need, True) for need in sure}
        if not self.places.given:
            return list(caught.values())
        if not self._named:
            caught |= {id(need): (need, True) for need in self.places.candidates(request)}
        held = [
            (need, sure, self.places.hold(need, request, context)) for need, sure in caught.values()
        ]
        return [(need, sure and hold is True) for need, sure, hold in held if hold is not False]

    def _near(self, request: Request, context: Context) -> tuple[specifiers.Rule, ...]:
        """Those of its paths that can match at all."""
        if not self.paths or len(self.keys) != len(self.paths):
            return self.paths
        index = self._paths_by_key
        # Where all patterns are about certain folders, the disk may not have to be looked at.
        names = names_in(request, context.folders, look=index.anywhere)
        return self.paths if names is None else index.near(names)

    # Made once for each rule: which of its conditions can concern a call at all.

    @cached_property
    def _claude_by_word(self) -> WordIndex[specifiers.Rule]:
        return WordIndex((_first_word(each), each) for each in self.claude)

    @cached_property
    def _commands_by_word(self) -> WordIndex[specifiers.Rule]:
        return WordIndex((_first_word(each.rule), each.rule) for each in self.commands)

    @cached_property
    def _by_program(self) -> WordIndex[Pattern]:
        """Its commands by the names of their programs; one with wildcards may fit any."""
        return WordIndex(
            (each.words[0] if is_plain(each.words[0]) else None, each) for each in self.commands
        )

    @cached_property
    def _by_subcommand(self) -> WordIndex[Pattern]:
        """The same by their first two words, or by the first if the second may differ."""
        return WordIndex((_leading_words(each), each) for each in self.commands)

    @cached_property
    def _paths_by_key(self) -> KeyIndex[specifiers.Rule]:
        paired = zip(self.keys, self.paths, strict=True)
        return KeyIndex((key, rule.path, rule) for key, rule in paired)

    def _patterns_for(self, part: Part) -> Iterable[Pattern]:
        """Those of its commands that a part may be (`Pattern.fits`)."""
        if part.name is None:
            return self.commands
        names = {part.name, part.words[0].literal, *part.called[:1]}
        names.update([each[0] for each in part.same])
        second = part.subcommand
        if second is None:
            return self._by_program.candidates(names)
        # Most patterns are about another subcommand.
        seconds = {second, *part.called[1:2]}
        seconds.update([each[1] for each in part.same if len(each) > 1])
        pairs = {f"{name} {after}" for name in names for after in seconds}
        found = self._by_subcommand.candidates(names | pairs)
        return [each for each in found if len(each.words) == 1 or each.goes_on(seconds)]

    def _command(self, part: Part) -> Tri:
        fit: Tri = not self.commands
        for pattern in self._patterns_for(part):
            one = pattern.fits(part)
            if one is True:
                fit = True
                break
            fit = None if one is None else fit
        if fit is False:
            return False
        flagged = self._has_flags(part)
        if flagged is False or any(each.begins(part) for each in self.but):
            return False
        return None if fit is None or flagged is None else True

    def _has_flags(self, part: Part) -> Tri:
        wanted: Tri = not self.flags
        for flag in self.flags:
            one = has_flag(part, flag)
            if one is True:
                wanted = True
                break
            wanted = None if one is None else wanted
        if wanted is False:
            return False
        for flag in self.without:
            one = has_flag(part, flag)
            if one is True:
                return False
            wanted = None if one is None else wanted
        return wanted


def _leading_words(pattern: Pattern) -> str | None:
    """The first two words of a pattern, without a second that has wildcards; None if the first one
    has.
    """
    first, *others = pattern.words[:2]
    if not is_plain(first):
        return None
    return f"{first} {others[0]}" if others and is_plain(others[0]) else first


def _first_words(request: Request) -> frozenset[str]:
    """The first words of all texts by which a rule may allow a command or its parts."""
    texts = [form.text for need in request.needs if need.part for form in need.part.forms]
    return frozenset(
        first for text in (request.command or "", *texts) for first in text.split(None, 1)[:1]
    )


def _first_word(rule: specifiers.Rule) -> str | None:
    return None if rule.command is None else rule.command.first_word


def _looks(need: Need) -> bool:
    return need.kind is NeedKind.COMMAND and need.part is not None and need.part.looks


def _allowed_needs(
    rules: tuple[specifiers.Rule, ...] | list[specifiers.Rule],
    request: Request,
    context: Context,
    sense: Sense,
) -> list[Need]:
    found: list[Need] = []
    for rule in rules:
        hit = match(rule, request, context, sense)
        if hit is not None:
            found += hit.needs
    return found


def _stopped_needs(
    rules: tuple[specifiers.Rule, ...], request: Request, context: Context
) -> tuple[list[Need], list[Need]]:
    """The needs that rules certainly stop, and those that they may stop."""
    sure: list[Need] = []
    perhaps: list[Need] = []
    for rule in rules:
        hit = match(rule, request, context, Sense.STOP)
        if hit is not None:
            (sure if hit.sure else perhaps).extend(hit.needs)
    return sure, perhaps


class Rule(Value):
    """A rule of a policy."""

    name: str
    verb: Verb
    source: str
    """The name of its policy."""
    line: int = 0
    tools: NamePatterns | None = None
    servers: NamePatterns | None = None
    """MCP servers."""
    what: CallConditions = CallConditions()
    where: FactConditions = FactConditions()
    certain: bool = False
    """Only where it certainly applies: it does not ask about what is unknown."""
    message: str = ""
    """For the agent."""
    ask_settings: AskSettings = AskSettings()
    rewrite: Rewrite | None = None

    @property
    def key(self) -> tuple[str, int, str]:
        """Identifies the rule."""
        return (self.source, self.line, self.name)

    @property
    def place(self) -> str:
        """Its place, for people."""
        return f"{self.source}:{self.line}" if self.line else self.source

    def hit(
        self, request: Request, context: Context, facts: Facts, *, assume: bool = False
    ) -> Hit | None:
        """Its match in a call, if any."""
        if not self._concerns(request):
            return None
        holds = self.where.hold(facts, assume=assume)
        if holds is False:
            return None
        if self.verb is Verb.ALLOW:
            if holds is None:
                return None
            needs = [n for n in self.what.covers(request, context) if self._is_tool(request, n)]
            return Hit(rule=self, needs=tuple(needs)) if needs else None
        caught = [
            (need, sure)
            for need, sure in self.what.catches(request, context)
            if self._is_tool(request, need)
        ]
        if not caught:
            return None
        certain = [need for need, sure in caught if sure]
        sure = bool(certain) and holds is True
        if self.certain and not sure:
            return None
        return Hit(rule=self, needs=tuple(certain or [need for need, _ in caught]), sure=sure)

    def _concerns(self, request: Request) -> bool:
        if self.servers is not None:
            server = server_of(request.tool)
            if server is None or not self.servers.fit(server):
                return False
        return True

    def _is_tool(self, request: Request, need: Need) -> bool:
        """A rule for Bash applies to everything that a command does; one for Edit to every edit."""
        if self.tools is None or self.tools.fit(request.tool):
            return True
        if self.verb is not Verb.ALLOW and request.command is not None and self.tools.fit("Bash"):
            return True  # another tool that runs a command
        family = FAMILY.get(need.kind)
        return family is not None and bool(self.tools.fit(family))


class Hit(Value):
    """A rule, and the needs that it matches. Not `sure`: it is unknown whether it does."""

    rule: Rule
    needs: tuple[Need, ...]
    sure: bool = True


def server_of(tool: str) -> str | None:
    """The MCP server of a tool; None for the CLI's own."""
    if not tool.startswith("mcp__"):
        return None
    return tool.split("__")[1] or None
