"""Policy files: from TOML to a `Policy`, with a line for every flaw.

Owns how keys combine. A file with one flaw, or with one example that fails, is refused as a whole.
The reference page is `docs/reference/policy.md`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from quarterdeck.domain.structs import Value
from quarterdeck.policy import specifiers
from quarterdeck.policy.dead_rules import dead_rules
from quarterdeck.policy.examples import EXAMPLE_KEYS, TEST_KEYS, check_examples, check_tests
from quarterdeck.policy.facts import FactConditions
from quarterdeck.policy.parity import ClaudeRule
from quarterdeck.policy.path_names import key_of
from quarterdeck.policy.patterns import Pattern
from quarterdeck.policy.place_conditions import PlaceConditions
from quarterdeck.policy.policy import STRICTNESS, Default, Policy
from quarterdeck.policy.rewrite import Rewrite
from quarterdeck.policy.rules import AskSettings, CallConditions, Rule, Verb
from quarterdeck.policy.specifiers import Behavior
from quarterdeck.policy.toml import Document, Flaw, read_toml
from quarterdeck.policy.toml_values import MODES, MOST_FLAWS, Table, Then, TooManyFlaws, nearest
from quarterdeck.policy.wildcards import too_wild
from quarterdeck.protocol.roles import ROLE

__all__ = ["KEYS", "Loaded", "read_policy"]

TOP_KEYS = {"default", "extends", "ask", "agents", "claude", "rule", "test"}
ASK_KEYS = {"answered_by", "wait"}
CLAUDE_KEYS = {"allow", "ask", "deny"}
REWRITE_KEYS = {"set", "remove", "add_flags", "remove_flags", "replace_flags"}
RULE_KEYS = {
    "name",
    "verdict",
    "tool",
    "claude",
    "command",
    "looks",
    "flags",
    "without",
    "path",
    "except",
    "outside",
    "protected",
    "remote",
    "certain",
    "domain",
    "server",
    "machine",
    "project",
    "directory",
    "branch",
    "user",
    "days",
    "hours",
    "zone",
    "mode",
    "origin",
    "cost_over",
    "cost_under",
    "until",
    "message",
    "answered_by",
    "wait",
    "then",
    "rewrite",
    "match",
    "not_match",
}
KEYS = {
    "": TOP_KEYS,
    "ask": ASK_KEYS,
    "claude": CLAUDE_KEYS,
    "rule": RULE_KEYS,
    "rule.rewrite": REWRITE_KEYS,
    "rule.match": EXAMPLE_KEYS,
    "test": TEST_KEYS,
}
"""All keys, by their table."""

ROLES = ("owner", "operator", "viewer")
_ONLY_ASK = ("answered_by", "wait", "then")


class Loaded(Value):
    """The result of reading a file: a policy, or its flaws."""

    policy: Policy | None
    flaws: tuple[Flaw, ...] = ()
    warnings: tuple[Flaw, ...] = ()
    """Rules that never do what they say. They do not make a file invalid."""
    rules: int = 0
    examples: int = 0


def read_policy(
    text: str, name: str, *, preset: Callable[[str], Policy | None] = lambda _: None
) -> Loaded:
    """Read a policy. `preset` gives the policies that a file may extend, by their names."""
    document = read_toml(text)
    if isinstance(document, Flaw):
        return Loaded(policy=None, flaws=(document,))
    reader = _Reader(document, name, preset)
    try:
        return _check_document(reader, document)
    except TooManyFlaws:
        return _refusal(reader.flaws)


def _check_document(reader: _Reader, document: Document) -> Loaded:
    policy = reader.policy()
    if reader.flaws:
        return _refusal(reader.flaws)
    count = check_examples(document, policy.rules, reader.own, reader.flaws)
    count += check_tests(document, policy, reader.flaws)
    if reader.flaws:
        return _refusal(reader.flaws)
    return Loaded(
        policy=policy,
        warnings=dead_rules(document, policy, reader.own),
        rules=len(policy.rules) + len(policy.claude),
        examples=count,
    )


def _refusal(flaws: list[Flaw]) -> Loaded:
    first = sorted(flaws, key=lambda flaw: flaw.line)[:MOST_FLAWS]
    return Loaded(policy=None, flaws=tuple(first))


class _Reader:
    """Reads one document. Collects all flaws, so that a person sees them at once."""

    def __init__(
        self, document: Document, name: str, preset: Callable[[str], Policy | None]
    ) -> None:
        self.flaws: list[Flaw] = []
        self.own = 0
        """The first of the policy's rules that is of this file; those before are of presets."""
        self._document = document
        self._name = name
        self._preset = preset

    def policy(self) -> Policy:
        """The policy; valid only if there are no flaws."""
        top = self._table((), self._document.data, TOP_KEYS)
        extended = self._presets(top)
        rules = [rule for policy in extended for rule in policy.rules]
        claude = [placed for policy in extended for placed in policy.claude]
        default: Default = "cli"
        for policy in extended:
            default = max(default, policy.default, key=STRICTNESS.index)
        self.own = len(rules)
        given = self._tables(top, "rule")
        rules += [self._rule(table, number) for number, table in enumerate(given, 1)]
        self._check_names(rules[self.own :])
        return Policy(
            self._name,
            rules=rules,
            claude=[*claude, *self._claude(top)],
            default=top.choice("default", STRICTNESS, default),
            ask_settings=self._ask_settings(top),
            agents=top.truth("agents") or any(policy.agents for policy in extended),
        )

    def _table(self, path: tuple[str | int, ...], value: object, keys: set[str]) -> Table:
        return Table(self._document, path, value, self.flaws, keys=keys)

    def _tables(self, top: Table, key: str) -> list[Table]:
        value = top.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            top.flaw(f"write [[{key}]]: there may be several", key)
            return []
        keys = KEYS[key]
        return [self._table((key, number), each, keys) for number, each in enumerate(value)]

    def _presets(self, top: Table) -> list[Policy]:
        found: list[Policy] = []
        for number, name in enumerate(top.texts("extends")):
            policy = self._preset(name)
            if policy is None:
                top.flaw(f"there is no preset {name!r}", "extends", number)
            else:
                found.append(policy)
        return found

    def _ask_settings(self, top: Table) -> AskSettings:
        if not top.has("ask"):
            return AskSettings()
        table = self._table(("ask",), top.get("ask"), ASK_KEYS)
        people = self._people(table)
        return AskSettings(answered_by=(people,) if people else (), wait=table.duration("wait"))

    def _people(self, table: Table) -> tuple[str, ...]:
        people = table.texts("answered_by")
        for number, each in enumerate(people):
            role = each.removeprefix(ROLE)
            if each != role and role not in ROLES:
                table.flaw(
                    f"there is no role {role!r}{nearest(role, ROLES)}", "answered_by", number
                )
        return people

    def _claude(self, top: Table) -> list[ClaudeRule]:
        if not top.has("claude"):
            return []
        table = self._table(("claude",), top.get("claude"), CLAUDE_KEYS)
        return [
            ClaudeRule(rule=rule, behavior=Behavior(key), source=specifiers.Source.POLICY)
            for key in sorted(CLAUDE_KEYS)
            for rule in self._specifiers(table, key)
        ]

    def _specifiers(self, table: Table, key: str) -> list[specifiers.Rule]:
        found: list[specifiers.Rule] = []
        for number, text in enumerate(table.texts(key)):
            try:
                found.append(specifiers.parse_rule(text))
            except specifiers.RuleError as error:
                table.flaw(str(error), key, number)
        return found

    # --- a rule --------------------------------------------------------------------------------

    def _rule(self, table: Table, number: int) -> Rule:
        before = len(self.flaws)
        if not table.has("verdict"):
            table.flaw("the verdict is missing")
        verb = Verb(table.choice("verdict", tuple(each.value for each in Verb), "deny"))
        people = self._people(table)
        then: Then = table.choice("then", ("deny", "allow"), "deny")
        rule = Rule(
            name=table.text("name") or f"rule {number}",
            verb=verb,
            source=self._name,
            line=table.line,
            tools=table.words("tool"),
            servers=table.words("server"),
            what=self._what(table),
            where=self._where(table),
            certain=table.truth("certain"),
            message=table.text("message"),
            ask_settings=AskSettings(
                answered_by=(people,) if people else (), wait=table.duration("wait"), then=then
            ),
            rewrite=self._rewrite(table),
        )
        self._check(table, rule, complete=len(self.flaws) == before)
        return rule

    def _what(self, table: Table) -> CallConditions:
        paths = [
            self._specifier(table, "path", number, f"{tool}({path})")
            for number, path in enumerate(table.texts("path"))
            for tool in ("Edit", "Read")
        ]
        domains = [
            self._specifier(table, "domain", number, f"WebFetch(domain:{domain})")
            for number, domain in enumerate(table.texts("domain"))
        ]
        files = tuple(rule for rule in paths if rule is not None)
        return CallConditions(
            claude=tuple(self._specifiers(table, "claude")),
            commands=tuple(self._patterns(table, "command")),
            but=tuple(self._patterns(table, "except")) if table.has("command") else (),
            looks=table.truth("looks"),
            flags=table.flags("flags"),
            without=table.flags("without"),
            paths=files,
            keys=tuple(key_of(rule.path) for rule in files),
            domains=tuple(rule for rule in domains if rule is not None),
            places=self._places(table),
        )

    def _places(self, table: Table) -> PlaceConditions:
        exceptions = [
            self._specifier(table, "except", number, f"Read({path})")
            for number, path in enumerate(table.texts("except"))
            if not table.has("command")
        ]
        return PlaceConditions(
            outside=table.truth("outside"),
            protected=table.truth("protected"),
            remote=table.truth("remote"),
            exceptions=tuple(
                rule.path for rule in exceptions if rule is not None and rule.path is not None
            ),
        )

    def _specifier(self, table: Table, key: str, number: int, text: str) -> specifiers.Rule | None:
        try:
            return specifiers.parse_rule(text)
        except specifiers.RuleError as error:
            table.flaw(error.why, key, number)
            return None

    def _patterns(self, table: Table, key: str) -> list[Pattern]:
        found: list[Pattern] = []
        for number, text in enumerate(table.texts(key)):
            if (why := _foreign_syntax(text)) is not None:
                table.flaw(why, key, number)
                continue
            try:
                words = shlex.split(text)
            except ValueError as error:
                table.flaw(f"{text!r} cannot be parsed: {error}".lower(), key, number)
                continue
            if any(set(word) & set("|&;<>()$`\n") for word in words):
                table.flaw("write one simple command; each part is checked separately", key)
                continue
            if (why := too_wild(text, "*?[")) is not None:
                table.flaw(why, key, number)
                continue
            rule = self._specifier(table, key, number, f"Bash({' '.join(words)}:*)")
            if rule is not None:
                found.append(Pattern(words=tuple(words), rule=rule))
        return found

    def _where(self, table: Table) -> FactConditions:
        modes = table.texts("mode")
        for number, mode in enumerate(modes):
            if not set(mode) & set("*?[!") and mode not in MODES:
                table.flaw(f"there is no mode {mode!r}{nearest(mode, MODES)}", "mode", number)
        for number, origin in enumerate(table.texts("origin")):
            bare = origin.removeprefix("!").partition(":")[0]
            if bare not in {"main", "subagent"}:
                table.flaw("expected main, subagent or subagent:NAME", "origin", number)
        return FactConditions(
            machine=table.words("machine"),
            project=table.words("project"),
            directory=table.words("directory"),
            branch=table.words("branch"),
            user=table.words("user"),
            mode=table.words("mode"),
            origin=table.words("origin"),
            cost_over=table.number("cost_over"),
            cost_under=table.number("cost_under"),
            times=table.times(),
            until=table.moment("until"),
        )

    def _rewrite(self, table: Table) -> Rewrite | None:
        if not table.has("rewrite"):
            return None
        path = (*table.path, "rewrite")
        inner = self._table(path, table.get("rewrite"), REWRITE_KEYS)
        values, flags = inner.get("set"), inner.get("replace_flags")
        if values is not None and not isinstance(values, dict):
            inner.flaw("expected a table of members", "set")
        if flags is not None and not (
            isinstance(flags, dict) and all(isinstance(to, str) for to in flags.values())
        ):
            inner.flaw('expected a table of flags such as { "-f" = "--soft" }', "replace_flags")
            flags = None
        return Rewrite(
            set=values if isinstance(values, dict) else {},
            remove=inner.texts("remove"),
            add_flags=inner.flags("add_flags"),
            remove_flags=inner.flags("remove_flags"),
            replace_flags=flags if isinstance(flags, dict) else {},
        )

    def _check(self, table: Table, rule: Rule, *, complete: bool) -> None:
        """What makes no sense together. Not `complete`: some of its conditions have flaws."""
        what, verb = rule.what, rule.verb
        if (verb is Verb.REWRITE) is not (rule.rewrite is not None):
            table.flaw("the verdict rewrite and [rule.rewrite] need each other")
        elif rule.rewrite == Rewrite():
            table.flaw("it changes nothing", "rewrite")
        elif rule.rewrite is not None and rule.rewrite.edits_command and not what.commands:
            table.flaw("to change flags, it must name the command", "rewrite")
        if (what.flags or what.without) and not what.commands and verb is Verb.ALLOW:
            table.flaw("an allow with flags must name the command")
        if what.claude and (what.commands or what.paths or what.domains or what.flags):
            table.flaw("claude cannot be combined with command, path, domain or flags")
        files = what.paths or what.places.outside or what.places.protected
        files = files or (rule.tools is not None and rule.tools.text in {("Edit",), ("Read",)})
        if table.has("except") and bool(what.commands) is bool(files):
            table.flaw("it needs commands or files, and not both, to take these out of", "except")
        if what.looks and (verb is not Verb.ALLOW or what.commands or what.claude or what.paths):
            table.flaw("it is for an allow without command, path and claude", "looks")
        for key in ("outside", "protected", "remote", "certain"):
            if verb not in {Verb.DENY, Verb.ASK} and table.has(key):
                table.flaw("only a rule with the verdict deny or ask may have this", key)
        for key in _ONLY_ASK:
            if verb is not Verb.ASK and table.has(key):
                table.flaw("only a rule with the verdict ask may have this", key)
        if rule.ask_settings.then == "allow" and rule.ask_settings.wait is None:
            table.flaw("it needs wait: how long to ask before it is allowed", "then")
        if verb is Verb.ALLOW and table.has("message"):
            table.flaw("an allow has no message to the agent", "message")
        if (
            complete
            and verb is Verb.ALLOW
            and what.any
            and rule.tools is None
            and rule.servers is None
        ):
            table.flaw('it would allow everything: if that is intended, write tool = "*"')

    def _check_names(self, rules: list[Rule]) -> None:
        seen: dict[str, int] = {}
        for rule in rules:
            if (before := seen.setdefault(rule.name, rule.line)) != rule.line:
                text = f"the rule on line {before} has the same name, {rule.name!r}"
                self.flaws.append(Flaw(line=rule.line, text=text))


_TOOL_RULE = re.compile(r"\s*(Bash|PowerShell|Monitor)\((.*)\)\s*", re.DOTALL)


def _foreign_syntax(text: str) -> str | None:
    """What to write instead of a rule in Claude Code's syntax, where a command is expected."""
    found = _TOOL_RULE.fullmatch(text)
    inner = text if found is None else found[2]
    plain = inner.removesuffix(":*").rstrip()
    if found is None and plain == inner:
        return None
    said = f"{text!r} is Claude Code's syntax: write command = {plain!r}"
    said += ", with which any words may follow" if plain else ""
    return said + (f", or claude = [{text.strip()!r}]" if found is not None else "")
