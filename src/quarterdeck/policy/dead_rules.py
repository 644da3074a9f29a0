"""Rules that are valid, but never do what they say: warnings, each with its line.

A file with such a rule stays in force, because a newer CLI may have a tool that is not known here,
and a folder may really be called `etc`. `file` refuses what makes no sense at all.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.calls import ARGUMENT, input_of
from quarterdeck.policy.examples import CONTEXT
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.needs import needs_of
from quarterdeck.policy.parity import ClaudeRule
from quarterdeck.policy.patterns import Pattern
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.precedence import Defeat, Stops
from quarterdeck.policy.rules import AskSettings, CallConditions, Rule, Verb
from quarterdeck.policy.specifiers import EDITING, READING, Behavior
from quarterdeck.policy.specifiers import Rule as Specifier
from quarterdeck.policy.toml import Document, Flaw
from quarterdeck.protocol.roles import ROLE, may_answer

MCP = "mcp__"
"""The beginning of the names of MCP tools."""

KNOWN_TOOLS = name_set(
    "AskUserQuestion BashOutput Brief Config CronCreate CronDelete CronList EnterPlanMode "
    "EnterWorktree ExitPlanMode ExitWorktree KillShell ListAgents ListMcpResourcesTool LSP Monitor "
    "PowerShell PushNotification ReadMcpResourceTool RemoteTrigger REPL ScheduleWakeup SendMessage "
    "SendUserFile SendUserMessage Sleep SlashCommand StructuredOutput TaskCreate TaskGet TaskList "
    "TaskOutput TaskStop TaskUpdate TeamCreate TeamDelete TodoRead TodoWrite ToolSearch "
    "WaitForMcpServers WebBrowser Workflow"
) | frozenset(ARGUMENT)
"""The tools of the supported versions, 2.1.37 to 2.1.325, and of some older ones."""


def tool_problem(pattern: str) -> str | None:
    """Why a pattern for the names of tools matches none, as far as is known; None if it may."""
    if pattern.startswith(MCP):
        server, _, tool = pattern.removeprefix(MCP).partition("__")
        if tool or "*" in server or not server:
            return None
        return f'no tool has this name: for all tools of the server, write server = "{server}"'
    if any(fnmatchcase(name, pattern) for name in KNOWN_TOOLS):
        return None
    if pattern.endswith("*") and MCP.startswith(pattern[:-1]):
        return None
    close = get_close_matches(pattern, KNOWN_TOOLS, n=1, cutoff=0.7) or [
        name for name in sorted(KNOWN_TOOLS) if name.lower() == pattern.lower()
    ]
    hint = f": did you mean {close[0]!r}?" if close else "; names of MCP tools begin with mcp__"
    return f"Claude Code has no tool {pattern!r}{hint}"


MOST_WARNINGS = 100
"""The number of warnings that are reported for one file."""

# fmt: off
_ROOT_FOLDERS = frozenset({
    "Applications", "Library", "System", "Users", "Volumes", "bin", "boot", "dev", "etc", "home",
    "lib", "lib64", "media", "mnt", "opt", "private", "proc", "root", "run", "sbin", "srv", "sys",
    "tmp", "usr", "var",
})
# fmt: on
_NAMED = ("tool", "server", "machine", "project", "directory", "branch", "user", "mode", "origin")
_SHELLS = frozenset({"Bash", "Monitor"})
_WITH = {
    "command": _SHELLS | {"Edit", "Read", "WebFetch"},
    "path": _SHELLS | EDITING | READING,
    "domain": _SHELLS | {"WebFetch"},
}
"""The tools whose calls can match each condition."""
_WILD = frozenset("*?[")
_VARIABLE = re.compile(r"\$\{?\w")
_NO_PERSON = "nobody who has access to the hub is on this list, so nobody can allow it"
_CANNOT_ANSWER = frozenset({f"{ROLE}viewer"})


def dead_rules(document: Document, policy: Policy, own_rules: int) -> tuple[Flaw, ...]:
    """The warnings about a file, in its order. Its rules are those from the one numbered `own`."""
    found: list[Flaw] = []
    for flaw in _Warnings(document, policy, own_rules).all():
        found.append(flaw)
        if len(found) == MOST_WARNINGS:
            break
    return tuple(sorted(found, key=lambda flaw: flaw.line))


def unanswerable(policy: Policy, people: Iterable[tuple[str, str]]) -> tuple[Flaw, ...]:
    """Warnings about questions that none of these people, with their roles, may allow.

    Without people, there are none: then it is not known who has access.
    """
    known = [(name, role) for name, role in people if f"{ROLE}{role}" not in _CANNOT_ANSWER]
    general = policy.ask_settings.answered_by
    found: list[Flaw] = []
    if not known:
        return ()
    if general and not any(may_answer(general, *person) for person in known):
        found.append(Flaw(line=1, text=f"[ask] answered_by: {_NO_PERSON}"))
    for rule in policy.rules:
        own = rule.ask_settings.answered_by
        if own and not any(may_answer((*own, *general), *person) for person in known):
            found.append(Flaw(line=rule.line, text=f"answered_by: {_NO_PERSON}"))
    return tuple(found[:MOST_WARNINGS])


class _Warnings:
    """Looks at one file."""

    def __init__(self, document: Document, policy: Policy, own: int) -> None:
        self._document = document
        self._policy = policy
        self._rules = policy.rules[own:]
        self._tables = [each for each in _list(document.data.get("rule")) if isinstance(each, dict)]
        self._stops = Stops(policy, policy.name)

    def all(self) -> Iterator[Flaw]:
        yield from self._claude()
        yield from self._people("ask", None)
        for number, (table, rule) in enumerate(zip(self._tables, self._rules, strict=True)):
            at = ("rule", number)
            for key, place, text in self._of_rule(table, rule):
                yield self._flaw(text, *at, key, place)
            yield from self._people("rule", number)

    def _flaw(self, text: str, *path: str | int) -> Flaw:
        key = next((each for each in reversed(path) if isinstance(each, str)), "")
        shown = f"{key}: {text}" if key not in {"", "rule"} else text
        return Flaw(line=self._document.line(*path), text=shown)

    # --- a rule --------------------------------------------------------------------------------

    def _of_rule(self, table: dict[str, object], rule: Rule) -> Iterator[tuple[str, int, str]]:
        """Each warning with its key and the place in the key's list."""
        for key in _NAMED:
            texts = _texts(table.get(key))
            if texts and never_fits(texts):
                yield key, 0, "no name can match all of this, so the rule never applies"
        for place, name in enumerate(_texts(table.get("tool"))):
            if (why := tool_problem(name.removeprefix("!"))) is not None:
                yield "tool", place, why
        for place, name in enumerate(_texts(table.get("server"))):
            if (why := _server_problem(name.removeprefix("!"))) is not None:
                yield "server", place, why
        # The exceptions of a rule about commands are commands.
        for key in ("path",) if "command" in table else ("path", "except"):
            for place, path in enumerate(_texts(table.get(key))):
                if (why := path_problem(path)) is not None:
                    yield key, place, why
        for place, each in enumerate(rule.what.claude):
            if (why := _specifier_problem(each, allows=rule.verb is Verb.ALLOW)) is not None:
                yield "claude", place, why
        for place, pattern in enumerate(rule.what.commands):
            if (why := _command_problem(pattern, rule.verb)) is not None:
                yield "command", place, why
        yield from _misfits(table, rule)
        over, under = rule.where.cost_over, rule.where.cost_under
        if over is not None and under is not None and over >= under:
            yield "cost_under", 0, "no cost is over cost_over and under this: it never applies"
        for beaten in self._stops.rule(rule):
            yield beaten.subject.key, beaten.subject.place, _defeat_text(beaten)

    # --- the rest of the file ------------------------------------------------------------------

    def _claude(self) -> Iterator[Flaw]:
        section = self._document.data.get("claude")
        if not isinstance(section, dict):
            return
        placed = list(self._policy.claude)[-sum(len(_texts(each)) for each in section.values()) :]
        for each, (key, place) in zip(placed, _places(section), strict=False):
            allows = each.behavior is Behavior.ALLOW
            if (why := _specifier_problem(each.rule, allows=allows)) is not None:
                yield self._flaw(why, "claude", key, place)
            yield from self._defeat_warnings(each, key, place)

    def _defeat_warnings(self, placed: ClaudeRule, key: str, place: int) -> Iterator[Flaw]:
        if (beaten := self._stops.claude(placed)) is not None:
            yield self._flaw(f"{placed.rule.text}: {_defeat_text(beaten)}", "claude", key, place)

    def _people(self, section: str, number: int | None) -> Iterator[Flaw]:
        """Lists of people in which nobody may answer."""
        general = self._policy.ask_settings
        path: list[str | int]
        if number is None:
            settings, path = general, [section, "answered_by"]
        else:
            settings = self._rules[number].ask_settings
            path = [section, number, "answered_by"]
        for people in settings.answered_by:
            if set(people) <= _CANNOT_ANSWER:
                yield self._flaw("viewers may not answer, so nobody can allow it", *path)
            elif number is not None and _nobody(settings, general):
                text = "nobody is both on this list and on that of [ask], so nobody can allow it"
                yield self._flaw(text, *path)


def _places(section: dict[str, object]) -> Iterator[tuple[str, int]]:
    """The places of the rules of `[claude]`, in the order in which `file` reads them."""
    for key in sorted(section):
        for place in range(len(_texts(section[key]))):
            yield key, place


def _nobody(one: AskSettings, other: AskSettings) -> bool:
    """Do two lists of people have nobody in common? A role may belong to any person."""
    for first in one.answered_by:
        for second in other.answered_by:
            names = {*first, *second}
            if not any(name.startswith(ROLE) for name in names) and not set(first) & set(second):
                return True
    return False


# --- one value ------------------------------------------------------------------------------------


def never_fits(patterns: list[str]) -> bool:
    """Whether no name fits all of these: `main` and `!main`."""
    wanted = [each for each in patterns if not each.startswith("!")]
    unwanted = [each[1:] for each in patterns if each.startswith("!")]
    if not wanted:
        return "*" in unwanted
    return all(any(_excludes(one, name) for one in unwanted) for name in wanted)


def _excludes(unwanted: str, name: str) -> bool:
    if unwanted in {"*", name}:
        return True
    return not _WILD & set(name) and fnmatchcase(name, unwanted)


def _server_problem(name: str) -> str | None:
    if not name.startswith(MCP):
        return None
    server, _, tool = name.removeprefix(MCP).partition("__")
    if tool and tool != "*":
        return f'a server has a plain name: write server = "{server}", or tool = "{name}"'
    return f'a server has a plain name: write "{server}"'


def path_problem(path: str) -> str | None:
    """Why a path means something else than it seems to; None if it does not."""
    if path.startswith("!"):
        return "a path cannot be negated: list what is left out in except, or use outside = true"
    if _VARIABLE.match(path):
        return "variables are not expanded: write ~/ for the home folder, // for the root"
    if path.startswith("~") and path != "~" and not path.startswith("~/"):
        return "only ~/ is a home folder: write // and the whole path for that of another user"
    if ".." in path.split("/"):
        return "paths are compared without `..`, so this never matches: write the path itself"
    if path.startswith("/") and not path.startswith("//"):
        first = path[1:].split("/")[0]
        if first in _ROOT_FOLDERS or first in {"", "*", "**"}:
            return (
                f"{path} is in the project's folder: write /{path} for the root of the disk, or "
                f".{path} for the project"
            )
    return None


def _specifier_problem(rule: Specifier, *, allows: bool) -> str | None:
    """Why a rule in Claude Code's syntax does not do what it says."""
    why = None if rule.tool == "*" else tool_problem(rule.tool) if MCP not in rule.tool else None
    if why is None and rule.path is not None and rule.specifier is not None:
        why = path_problem(rule.specifier)
        if why is None and allows and rule.tool not in {"Edit", "Read"}:
            family = "Edit" if rule.tool in EDITING else "Read"
            why = f"allow paths with {family}({rule.specifier}): {rule.tool}(…) allows nothing"
    return f"{rule.text}: {why}" if why is not None else None


def _command_problem(pattern: Pattern, verb: Verb) -> str | None:
    words = pattern.words
    if len(words) < 2 or any(_WILD & set(word) for word in words[:-1]):
        return None
    shorter, last = shlex.join(words[:-1]), words[-1]
    if verb is Verb.ALLOW and last == "*":
        if not _matches(pattern, verb, f"{shorter} word"):
            return f"this does not match `{shorter} word`. Any words may follow: write {shorter!r}"
    elif verb in {Verb.DENY, Verb.ASK} and last.startswith("-") and not _WILD & set(last):
        later = f"{shorter} word {last}"
        if not _matches(pattern, verb, later):
            return f"this does not match `{later}`: write command = {shorter!r} and flags"
    return None


def _matches(pattern: Pattern, verb: Verb, command: str) -> bool:
    """Does a rule about this pattern alone match a command?"""
    rule = Rule(name="", verb=verb, source="", what=CallConditions(commands=(pattern,)))
    request = needs_of("Bash", input_of("Bash", command), CONTEXT)
    return rule.hit(request, CONTEXT, Facts()) is not None


def _misfits(table: dict[str, object], rule: Rule) -> Iterator[tuple[str, int, str]]:
    """Conditions on calls that no call of the rule's tools can meet."""
    tools = rule.tools.text if rule.tools is not None else ()
    if any(tool_problem(name.removeprefix("!")) for name in tools):
        return  # reported for itself
    for key, able in _WITH.items():
        if key not in table:
            continue
        if rule.servers is not None:
            yield key, 0, f"calls of an MCP server have no {key}, so the rule never matches"
        elif tools and not any(_may_be(name, able) for name in tools):
            yield key, 0, f"calls of {', '.join(tools)} have no {key}, so the rule never matches"


def _may_be(pattern: str, tools: frozenset[str]) -> bool:
    if pattern.startswith("!"):
        return True
    return any(fnmatchcase(name, pattern) for name in tools)


def _defeat_text(beaten: Defeat) -> str:
    does = "denies" if beaten.verdict == "deny" else "asks about"
    return f"this is never allowed: {beaten.by} {does} it, and the stricter rule wins"


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    many = value if isinstance(value, list) else [value]
    return [each for each in many if isinstance(each, str)]
