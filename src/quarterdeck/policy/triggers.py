"""Keys by which the rules are found that can concern a call at all.

A rule has a set of keys, and so has a call. A rule without a key of the call cannot hit it: a rule
about `git push` and `git remote` is not compared with `git status`. A rule without any keys is
compared with every call. If a part of a call is not known, every rule may mean it, and there are no
keys.
"""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.policy import specifiers
from quarterdeck.policy.needs import NeedKind, Request
from quarterdeck.policy.patterns import Pattern, is_plain
from quarterdeck.policy.rules import FAMILY, CallConditions, Rule, Verb
from quarterdeck.policy.shell import Part

Key = tuple[str, ...]
"""The sort of the key, and its words."""

_LOOKS: Key = ("looks",)
_RUNS_COMMAND: Key = ("command",)
_KINDS: dict[NeedKind, Key] = {kind: ("kind", kind.value) for kind in NeedKind}
_ANY = ""
"""In the place of a subcommand: it is not known, or there is an option before it."""


def keys_of_rule(rule: Rule) -> frozenset[Key] | None:
    """A call that the rule hits has one of these keys; None if it may be any call."""
    found = _keys_of_conditions(rule.what, allows=rule.verb is Verb.ALLOW)
    tools = _keys_of_tools(rule)
    if found is None or tools is None:
        return tools if found is None else found
    # A call must have a key of both: the shorter list leaves more calls out.
    return min(found, tools, key=len)


def _keys_of_conditions(what: CallConditions, *, allows: bool) -> frozenset[Key] | None:
    if what.any:
        return None
    if what.commands and not what.claude and not what.domains and not what.looks:
        return _all(key for each in what.commands for key in _keys_of_pattern(each, allows=allows))
    if what.commands or what.flags or what.without:
        return None
    if allows:
        keys = _all(_key_of_claude(each) for each in what.claude)
        if keys is None:
            return None
        keys |= {_KINDS[NeedKind.EDIT], _KINDS[NeedKind.READ]} if what.paths else set()
        keys |= {_KINDS[NeedKind.FETCH]} if what.domains else set()
        return keys | ({_LOOKS} if what.looks else set())
    if what.claude:
        return None
    if what.paths and not what.domains:
        return frozenset({_KINDS[NeedKind.EDIT], _KINDS[NeedKind.READ]})
    if what.domains and not what.paths:
        return frozenset({_KINDS[NeedKind.FETCH]})
    if what.places.given and not what.domains:
        kinds = (NeedKind.EDIT, NeedKind.READ, NeedKind.FETCH)
        return frozenset(_KINDS[kind] for kind in kinds)
    return None


def _all(found: Iterable[Key | None]) -> frozenset[Key] | None:
    keys = list(found)
    return None if None in keys else frozenset(key for key in keys if key is not None)


def _keys_of_pattern(pattern: Pattern, *, allows: bool) -> tuple[Key | None, ...]:
    first, *others = pattern.words
    if not is_plain(first):
        return (None,)
    if allows or not others or not is_plain(others[0]):
        return (("program", first),)
    return (("program", first, others[0]), ("program", first, _ANY))


def _key_of_claude(rule: specifiers.Rule) -> Key | None:
    """What a rule in Claude Code's syntax can allow."""
    if rule.command is not None:
        first = rule.command.first_word
        return None if first is None else ("begins", first)
    if rule.path is not None:
        return _KINDS[NeedKind.EDIT if rule.tool in specifiers.EDITING else NeedKind.READ]
    if rule.domain is not None:
        return _KINDS[NeedKind.FETCH]
    return None if rule.tools is not None else ("tool", rule.tool)


def _keys_of_tools(rule: Rule) -> frozenset[Key] | None:
    """For a rule without conditions on the call but its tools."""
    names = None if rule.tools is None else rule.tools.plain
    if names is None:
        return None
    found: set[Key] = {("tool", name) for name in names}
    found |= {_KINDS[kind] for kind, name in FAMILY.items() if name in names}
    return frozenset(found | ({_RUNS_COMMAND} if "Bash" in names else set()))


def keys_of_call(request: Request) -> set[Key] | None:
    """The keys of a call; None if every rule may concern it."""
    keys: set[Key] = {("tool", request.tool)}
    if request.command is not None:
        keys.add(_RUNS_COMMAND)
    seen: Part | None = None
    for need in request.needs:
        kind = need.kind
        if kind is NeedKind.UNKNOWN:
            return None
        keys.add(_KINDS[kind])
        part = need.part
        if part is None or part is seen:
            continue
        seen = part
        name = part.name
        if name is None:
            return None
        if part.looks:
            keys.add(_LOOKS)
        for form in part.forms:
            keys.update([("begins", word) for word in form.text.split(None, 1)[:1]])
        _add_program(part, name, keys)
    if request.command is not None:
        keys.update([("begins", word) for word in request.command.split(None, 1)[:1]])
    return keys


def _add_program(part: Part, name: str, keys: set[Key]) -> None:
    words, called, second = part.words, part.called, part.subcommand
    seconds = [_ANY] if second is None else [second, *called[1:2]]
    for each in {name, words[0].literal or name, *called[:1]}:
        keys.add(("program", each))
        for after in seconds:
            keys.add(("program", each, after))
    for other in part.same:
        keys.add(("program", other[0]))
        keys.add(("program", other[0], other[1] if len(other) > 1 else _ANY))
