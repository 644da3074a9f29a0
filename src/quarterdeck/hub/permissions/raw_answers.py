"""Answers in the CLI's own form, as programs give them. Pure.

Owns their members and what is refused of them. `answers` makes the reply, and `edits` has the rules
decide about another input.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, field

from quarterdeck.agent.asks import Allow, AnyAsk, Decision, Deny, ToolAsk
from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Forbidden, UsageError
from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS, Value
from quarterdeck.protocol.commands import Scope
from quarterdeck.protocol.roles import RIGHTS, Right, Role
from quarterdeck.wire.permissions import suggestions


class RawBody(Value):
    """What an answer says. Members that are not here are ignored, as the CLI does."""

    behavior: Literal["allow", "deny"]
    updated_input: Raw = field(name="updatedInput", default=ABSENT)
    updated_permissions: tuple[Raw, ...] | None = field(name="updatedPermissions", default=None)
    message: str = ""
    interrupt: bool = False


def read_raw(body: Raw) -> RawBody:
    """The members of an answer. Raises `UsageError`."""
    try:
        found = msgspec.json.decode(body, type=RawBody)
    except DECODE_ERRORS as error:
        raise UsageError(f"body: this is no answer to a permission request: {error}") from error
    if bytes(found.updated_input) == b"null":
        return msgspec.structs.replace(found, updated_input=ABSENT)
    return found


def raw_decision(ask: AnyAsk, body: Raw, edited: Raw | None) -> tuple[Decision, CodedText]:
    """The decision in an answer, and what was answered. `edited` is an input that may run."""
    read = read_raw(body)
    if read.behavior == "deny":
        denied = CodedText(code=TextCode.ANSWER_DENIED, detail=read.message)
        return Deny(read.message or Deny().message, read.interrupt), denied
    given: Raw | None = edited
    if not isinstance(ask, ToolAsk):
        given = read.updated_input or None
    updates = suggestions(read.updated_permissions or ())
    code = TextCode.ANSWER_ALLOWED if edited is None else TextCode.ANSWER_EDITED
    return Allow(input=given, updates=updates), CodedText(code=code, name=Scope.ONCE.value)


def check_raw(body: Raw, role: str) -> None:
    """Raise `Forbidden` if this role may not change what the CLI asks about.

    A program may, for its own agent: it has also chosen the agent's rules and mode.
    """
    if not read_raw(body).updated_permissions or role == Role.PROGRAM:
        return
    if role not in set(Role) or Right.MANAGE not in RIGHTS[Role(role)]:
        raise Forbidden("only an owner may change the permissions of the CLI")
