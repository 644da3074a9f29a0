"""Answers that hold for longer than one call: what they grant, where, and for how long. Pure.

A grant is a rule of ours; the CLI is told of this call only. Changes that the CLI suggests (another
mode, a folder, rules in its settings) are separate: each one is taken only if the answer names it.
The shell stores the grant before the CLI is answered.
"""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Forbidden, UsageError
from quarterdeck.domain.ids import derived_id
from quarterdeck.policy.grants import Grant
from quarterdeck.policy.specifiers import RuleError, parse_rule
from quarterdeck.protocol.commands import AllowAnswer, Scope
from quarterdeck.protocol.roles import RIGHTS, Right, Role
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire.permissions import (
    AddDirectories,
    AddRules,
    RemoveDirectories,
    RemoveRules,
    ReplaceRules,
    SetMode,
    Suggestion,
)


def check_lasting(answer: AllowAnswer, role: str) -> None:
    """Check what an answer grants, as far as that is possible without the call.

    Raises `UsageError` for what is not a rule, and `Forbidden` for what only an owner may do by the
    API: grant something beyond the session, and change the mode, folders or settings of the CLI.
    """
    if answer.updates and not _may_manage(role):
        raise Forbidden("only an owner may take over what the CLI suggests to change")
    if answer.scope is Scope.ONCE:
        if answer.rules or answer.seconds is not None:
            raise UsageError("rules, seconds: an answer for one call grants nothing")
        return
    for text in answer.rules:
        try:
            parse_rule(text)
        except RuleError as error:
            raise UsageError(f"rules: {error}") from error
    if answer.scope is not Scope.SESSION and not _may_manage(role):
        raise Forbidden("only an owner may grant something beyond the session")


def _may_manage(role: str) -> bool:
    return role in set(Role) and Right.MANAGE in RIGHTS[Role(role)]


def grant_of(
    answer: AllowAnswer,
    rules: tuple[str, ...],
    *,
    session: str,
    spec: SessionSpec,
    by: str,
    now: int,
    ask: str,
) -> Grant:
    """The grant that an answer makes, at a time in ms."""
    nearby = answer.scope is Scope.ALWAYS
    return Grant(
        id=derived_id(now / 1000, session, ask),
        rules=rules,
        by=by,
        at=now,
        until=None if answer.seconds is None else now + int(answer.seconds * 1000),
        session=session if answer.scope is Scope.SESSION else None,
        directory=spec.directory if nearby and not spec.project else None,
        project=spec.project if nearby else None,
        ask=ask,
    )


def grant_text(grant: Grant) -> CodedText:
    """Exactly what was granted, for the audit log."""
    where = "all"
    if grant.session is not None:
        where = "session"
    elif grant.project is not None:
        where = "project"
    elif grant.directory is not None:
        where = "folder"
    return CodedText(
        code=TextCode.GRANTED,
        names=grant.rules,
        verb=where,
        other=grant.project or "",
        path=grant.directory or "",
        seconds=0 if grant.until is None else (grant.until - grant.at) / 1000,
        ref=grant.id,
    )


def chosen_updates(
    suggestions: tuple[Suggestion, ...], chosen: Iterable[int]
) -> tuple[Suggestion, ...]:
    """The suggestions of the CLI that an answer takes. Raises `UsageError`."""
    found: list[Suggestion] = []
    for index in dict.fromkeys(chosen):
        if not 0 <= index < len(suggestions):
            raise UsageError(f"updates: the CLI has made {len(suggestions)} suggestions")
        found.append(suggestions[index])
    return tuple(found)


def update_text(update: Suggestion) -> str:
    """Exactly what the CLI is told to change, for the audit log."""
    match update:
        case SetMode():
            return f"setMode {update.mode.value} ({update.destination.value})"
        case AddDirectories() | RemoveDirectories():
            verb = "addDirectories" if isinstance(update, AddDirectories) else "removeDirectories"
            return f"{verb} {', '.join(update.directories)} ({update.destination.value})"
        case AddRules() | ReplaceRules() | RemoveRules():
            verbs = {AddRules: "addRules", ReplaceRules: "replaceRules"}
            verb = verbs.get(type(update), "removeRules")
            rules = ", ".join(str(rule) for rule in update.rules)
            return f"{verb} {update.behavior.value} {rules} ({update.destination.value})"
        case unknown:
            return unknown.kind
