"""Grants: lasting permissions by people, as rules that can be listed and revoked.

A grant has rules in Claude Code's syntax, the folder in which it applies, and an expiry. Grants are
allow rules like any other: they do not override what a policy denies or asks about.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.policy.facts import FactConditions, NamePatterns
from quarterdeck.policy.needs import Context, NeedKind, needs_of
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.rules import CallConditions, Rule, Verb
from quarterdeck.policy.specifiers import RuleError, parse_rule

GRANTS = "grants"
"""The name of the policy that all grants make."""


class Grant(Value):
    """Something that a person allowed until further notice, or until a time."""

    id: str
    rules: tuple[str, ...]
    by: str
    at: int
    until: int | None = None
    """In ms since 1970. None: until it is revoked."""
    directory: str | None = None
    """Holds for sessions that were started in this folder. None: for all."""
    project: str | None = None
    session: str | None = None
    """Holds for this session only."""
    ask: str | None = None
    """The question that it was the answer to."""


def policy_of(grants: Iterable[Grant]) -> Policy | None:
    """The grants as a policy; None without grants. A grant that cannot be parsed allows nothing."""
    rules = [rule for grant in grants if (rule := _rule(grant)) is not None]
    return Policy(GRANTS, rules=rules) if rules else None


def _rule(grant: Grant) -> Rule | None:
    try:
        claude = tuple(parse_rule(text) for text in grant.rules)
    except RuleError:
        return None
    if not claude:
        return None
    return Rule(
        name=f"grant {grant.id} of {grant.by}",
        verb=Verb.ALLOW,
        source=GRANTS,
        what=CallConditions(claude=claude),
        where=FactConditions(
            directory=_exactly(grant.directory),
            project=_exactly(grant.project),
            until=grant.until,
        ),
    )


def _exactly(name: str | None) -> NamePatterns | None:
    """A folder may have letters that are wildcards elsewhere."""
    return None if name is None else NamePatterns(plain=frozenset({name}), text=(name,))


def narrowest(tool: str, given: Raw, context: Context) -> tuple[str, ...]:
    """The narrowest rules that allow this call; empty if there are none.

    A command with a wildcard cannot be named: the rule would allow more than the command.
    """
    request = needs_of(tool, given, context)
    if request.command is not None:
        command = request.command.strip()
        unnameable = not command or "*" in command or command.endswith(":") or "\\" in command
        return () if unnameable else (f"{request.tool}({command})",)
    rules: list[str] = []
    for need in request.needs:
        match need.kind:
            case NeedKind.READ if need.free and need.target is not None and need.target.glob:
                continue  # the reach of a search needs no rule
            case NeedKind.EDIT | NeedKind.READ if need.target is not None:
                word = "Edit" if need.kind is NeedKind.EDIT else "Read"
                paths = need.target.paths
                if not paths or any(
                    not path.startswith("/") or set(path) & set("*?[!()") for path in paths
                ):
                    return ()
                rules += [f"{word}(/{path})" for path in paths]
            case NeedKind.FETCH if need.host:
                rules.append(f"WebFetch(domain:{need.host})")
            case NeedKind.TOOL:
                rules.append(f"{tool}({request.name})" if request.name else tool)
            case _:
                return ()
    return tuple(dict.fromkeys(rules))


_decoder = msgspec.json.Decoder(tuple[Grant, ...])


def read_grants(data: bytes) -> tuple[Grant, ...]:
    """The grants in a file. Raises `msgspec.DecodeError`."""
    return _decoder.decode(data)
