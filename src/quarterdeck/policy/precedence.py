"""Allow rules that never take effect, because a stricter rule about the same always wins.

Conservative: it reports only what is certain from the text of both rules. It is about the parts of
a rule: each command, path, domain and tool that the rule lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.facts import FactConditions, NamePatterns
from quarterdeck.policy.parity import ClaudeRule
from quarterdeck.policy.paths import PathPattern
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.rules import CallConditions, Rule, Verb
from quarterdeck.policy.specifiers import EDITING, READING, Behavior
from quarterdeck.policy.specifiers import Rule as Specifier
from quarterdeck.policy.wildcards import Glob, fits

_WILD = frozenset("*?[")
_COMPARED = name_set("claude commands flags without paths keys domains")

MOST_COMPARED = 300_000
"""Pairs of names that are compared in one file. What is beyond that is not reported."""


class Subject(Value):
    """One thing that a rule is about. Without any condition: every call of the tool."""

    tool: str
    words: tuple[str, ...] | None = None
    exact: bool = False
    """The words are the whole command; otherwise, more may follow."""
    path: PathPattern | None = None
    domain: str | None = None
    name: str | None = None
    tools: Glob | None = None
    """The MCP tools that it means besides `tool`."""
    key: str = ""
    """Where it is written: the key of the rule, and its place in the list."""
    place: int = 0

    @property
    def size(self) -> int:
        """How many names it has, for the work of a comparison."""
        return 1 + len(self.words or ()) + len(self.path.names if self.path is not None else ())

    @property
    def whole(self) -> bool:
        """Whether it is every call of the tool."""
        return self.words is None and self.path is None and self.domain is None and not self.name


class Defeat(Value):
    """Something in an allow rule that a stricter rule always decides."""

    subject: Subject
    by: str
    """The stricter rule: its name and its place."""
    verdict: str


class _Stop(Value):
    """A rule that denies or asks."""

    name: str
    verdict: str
    subjects: tuple[Subject, ...]
    tools: NamePatterns | None = None
    servers: NamePatterns | None = None
    what: CallConditions = CallConditions()
    where: FactConditions = FactConditions()
    everything: bool = False
    """It has no condition on the call: every call of `tools` and `servers`."""
    size: int = 1


class Stops:
    """The rules of a policy that deny or ask, to be compared with those that allow."""

    def __init__(self, policy: Policy, own: str) -> None:
        """`own` is the name of the file, for the text."""
        self._by_command: dict[str, list[_Stop]] = {}
        self._others: list[_Stop] = []
        self._compared = 0
        for stop in _stops(policy, own):
            names = {each.words[0] if each.words else None for each in stop.subjects}
            plain = [name for name in names if name is not None and not _WILD & set(name)]
            if stop.everything or len(plain) < len(names):
                self._others.append(stop)
                continue
            for name in plain:
                self._by_command.setdefault(name, []).append(stop)

    def rule(self, rule: Rule) -> Iterator[Defeat]:
        """What an allow rule lists in vain."""
        if rule.verb is not Verb.ALLOW:
            return
        found: dict[tuple[str, int], list[Defeat | None]] = {}
        for subject in _subjects(rule):
            found.setdefault((subject.key, subject.place), []).append(self._defeat(subject, rule))
        for each in found.values():
            # A path means reads and edits. It is in vain only where both are stopped.
            if (first := each[0]) is not None and all(each):
                yield first

    def claude(self, placed: ClaudeRule) -> Defeat | None:
        """The same for an allow rule in Claude Code's syntax."""
        subject = _claude_subject(placed.rule)
        if placed.behavior is not Behavior.ALLOW or subject is None:
            return None
        return self._defeat(subject, Rule(name="", verb=Verb.ALLOW, source=""))

    def _defeat(self, subject: Subject, rule: Rule) -> Defeat | None:
        named = self._by_command.get(subject.words[0], []) if subject.words else []
        for stop in (*named, *self._others):
            self._compared += stop.size * subject.size
            if self._compared > MOST_COMPARED:
                return None
            if _beats(stop, subject, rule) and _wider_facts(stop.where, rule.where):
                return Defeat(subject=subject, by=stop.name, verdict=stop.verdict)
        return None


def _stops(policy: Policy, own: str) -> Iterator[_Stop]:
    """The strictest first."""
    for verdict in ("deny", "ask"):
        for rule in policy.rules:
            if rule.verb.value == verdict:
                place = f"line {rule.line}" if rule.source == own else rule.place
                subjects = tuple(_subjects(rule))
                yield _Stop(
                    name=f"the rule {rule.name!r} ({place})",
                    verdict=verdict,
                    subjects=subjects,
                    size=1 + sum(each.size for each in subjects),
                    tools=rule.tools,
                    servers=rule.servers,
                    what=rule.what,
                    where=rule.where,
                    everything=rule.what.any,
                )
        for placed in policy.stopping:
            subject = _claude_subject(placed.rule)
            if placed.behavior.value == verdict and subject is not None:
                name = f"{placed.rule.text} of [claude]"
                yield _Stop(name=name, verdict=verdict, subjects=(subject,))


def _subjects(rule: Rule) -> Iterator[Subject]:
    """What a rule is about. Nothing for a rule that is about any call but for its facts."""
    what = rule.what
    for place, each in enumerate(what.claude):
        if (subject := _claude_subject(each, key="claude", place=place)) is not None:
            yield subject
    for place, pattern in enumerate(what.commands):
        yield Subject(tool="Bash", words=pattern.words, key="command", place=place)
    if not what.commands:
        for index, each in enumerate(what.paths):
            # Two for each path: Edit and Read.
            yield Subject(tool=each.tool, path=each.path, key="path", place=index // 2)
    for place, each in enumerate(what.domains):
        yield Subject(tool="WebFetch", domain=each.domain, key="domain", place=place)
    if what.any and rule.servers is None and rule.tools is not None:
        for place, name in enumerate(rule.tools.text):
            if not name.startswith("!"):
                yield Subject(tool=name, key="tool", place=place)
    if what.any and rule.servers is not None and rule.tools is None:
        for place, name in enumerate(rule.servers.text):
            if not name.startswith("!"):
                yield Subject(tool=f"mcp__{name}__*", key="server", place=place)


def _claude_subject(rule: Specifier, *, key: str = "", place: int = 0) -> Subject | None:
    at = Subject(tool=rule.tool, key=key, place=place)
    tool = at.tool
    if rule.command is not None:
        pattern = rule.command
        text = pattern.text if pattern.exact else pattern.bare
        if text is None or not text.strip():
            return None
        words, exact = tuple(text.split()), pattern.exact
        return Subject(tool=tool, words=words, exact=exact, key=key, place=place)
    if rule.path is not None:
        family = "Edit" if tool in EDITING else "Read"
        return Subject(tool=family, path=rule.path, key=key, place=place)
    if rule.domain is not None:
        return Subject(tool=tool, domain=rule.domain, key=key, place=place)
    if rule.name is not None:
        return Subject(tool=tool, name=rule.specifier, key=key, place=place)
    return Subject(tool=tool, tools=rule.tools, key=key, place=place)


# --- which is wider -------------------------------------------------------------------------------


def _beats(stop: _Stop, subject: Subject, rule: Rule) -> bool:
    """Does a stricter rule hit every call about this that the allow rule allows?"""
    if not stop.everything and not any(_covers(each, subject) for each in stop.subjects):
        return False
    return _wider_tools(stop, subject.tool) and (
        stop.everything or _wider_conditions(stop.what, rule.what)
    )


def _wider_tools(stop: _Stop, tool: str) -> bool:
    """Does it apply to this tool, or to these tools, for certain?"""
    if stop.servers is not None and stop.tools is not None:
        return False
    patterns, names = stop.tools, _names(tool)
    if stop.servers is not None:
        patterns, names = stop.servers, [_server_of(tool)]
    if patterns is None:
        return True
    return any(
        name in patterns.text or (not _WILD & set(name) and patterns.fit(name))
        for name in names
        if name
    )


def _wider_conditions(stop: CallConditions, allow: CallConditions) -> bool:
    if stop.commands and stop.paths:
        return False
    if stop.flags and not (allow.flags and set(allow.flags) <= set(stop.flags)):
        return False
    if not set(stop.without) <= set(allow.without):
        return False
    # Conditions that are not compared here make the stricter rule narrower.
    others = set(CallConditions.__struct_fields__) - _COMPARED
    return all(getattr(stop, name) == getattr(CallConditions(), name) for name in others)


def _names(tool: str) -> list[str]:
    """The names by which a rule may mean a tool: Edit means everything that edits."""
    if tool in EDITING:
        return [tool, "Edit"]
    return [tool, "Read"] if tool in READING else [tool]


def _server_of(tool: str) -> str:
    return tool.split("__")[1] if tool.startswith("mcp__") and tool.count("__") > 1 else ""


def _wider_facts(stop: FactConditions, allow: FactConditions) -> bool:
    """Do the facts of the stricter rule hold whenever those of the allow rule do?"""
    return all(
        getattr(stop, name) in (None, getattr(allow, name))
        for name in FactConditions.__struct_fields__
    )


def _covers(stop: Subject, subject: Subject) -> bool:
    if stop.whole:
        named = stop.tool in _names(subject.tool)
        return named or (stop.tools is not None and stop.tools.matches(subject.tool))
    if stop.words is not None:
        return subject.words is not None and _covers_words(stop, subject)
    if stop.path is not None:
        return (
            subject.path is not None
            and subject.tool == stop.tool
            and _covers_path(stop.path, subject.path)
        )
    if stop.domain is not None:
        domain = subject.domain
        return domain is not None and (
            stop.domain == domain or ("*" not in domain and fits(stop.domain, domain))
        )
    return stop.name == subject.name and stop.tool == subject.tool


def _covers_words(stop: Subject, subject: Subject) -> bool:
    wide, narrow = stop.words or (), subject.words or ()
    if stop.exact and not (subject.exact and len(wide) == len(narrow)):
        return False
    return len(wide) <= len(narrow) and all(map(_covers_name, wide, narrow))


def _covers_name(wide: str, narrow: str) -> bool:
    return wide == narrow or (not _WILD & set(narrow) and fnmatchcase(narrow, wide))


def _covers_path(stop: PathPattern, subject: PathPattern) -> bool:
    if stop.base is not subject.base and not stop.anywhere:
        return False
    return _covers_names(stop.names, subject.names)


def _covers_names(stop: Sequence[str], subject: Sequence[str]) -> bool:
    """A pattern means everything below what it matches."""
    positions = {0}
    for name in stop:
        if name == "**":
            positions = set(range(min(positions), len(subject) + 1))
        else:
            positions = {
                at + 1
                for at in positions
                if at < len(subject) and subject[at] != "**" and _covers_name(name, subject[at])
            }
        if not positions:
            return False
    return True
