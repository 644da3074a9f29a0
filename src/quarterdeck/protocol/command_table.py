"""The table of commands: the right that each needs, and its HTTP method and path.

The HTTP front makes its routes from this table, the stream checks rights by it, and the client
sends commands by it. A new command needs its struct, a row here, and a handler in the hub.

The body of a request is the command itself without the members that its path gives, and without
those that the server sets from the login. It knows neither a web framework nor an HTTP library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args
from urllib.parse import quote

import msgspec
from msgspec import NODEFAULT, UNSET, Struct, UnsetType
from msgspec.structs import FieldInfo

from quarterdeck.domain.structs import Value
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import AnyCommand, Command
from quarterdeck.protocol.roles import Right

API = "/api"
"""Every path of the table is below this one."""
SET_BY_SERVER = frozenset({"by", "role"})
"""Members that no request sets: they come from the login."""

Method = Literal["POST", "PATCH", "DELETE"]


class CommandRow(Value):
    """A command: who may send it, and how it is sent over HTTP."""

    command: type[Command]
    right: Right
    method: Method
    path: str
    """Names in braces are members of the command."""
    body: type[Struct] | None = None
    """The members that neither the path nor the login gives; None if there are none."""
    body_optional: bool = False
    """All members of the body have a default."""
    shared: bool = False
    """The path is shared with other commands: `PATCH /sessions/{session}` makes several."""

    @property
    def in_path(self) -> tuple[str, ...]:
        """The members that the path gives."""
        return _names(self.path)

    def parse(self, path: Mapping[str, str], body: Struct | None) -> AnyCommand:
        """The command from the parts of its path and its body."""
        given = {} if body is None else {name: getattr(body, name) for name in _fields(body)}
        made_here = {field.name for field in msgspec.structs.fields(self.command) if _makes(field)}
        given = {
            name: value
            for name, value in given.items()
            if name not in made_here or value not in {None, UNSET}
        }
        made = self.command(**given, **path)
        assert isinstance(made, AnyCommand)
        return made

    def request(self, command: AnyCommand) -> tuple[str, bytes | None]:
        """The path and the body that a client sends for a command."""
        path = re.sub(
            r"{(\w+)}", lambda found: quote(str(getattr(command, found[1])), safe=""), self.path
        )
        if self.body is None:
            return API + path, None
        members = {name: getattr(command, name) for name in _fields(self.body)}
        if self.shared:  # what is left out is not changed
            given = {name: value for name, value in members.items() if value is not None}
            return API + path, msgspec.json.encode(given)
        return API + path, msgspec.json.encode(self.body(**members))


def row_of(command: AnyCommand) -> CommandRow:
    """The row of a command."""
    return ROWS[type(command)]


def right_for(command: AnyCommand) -> Right:
    """The right that a command needs."""
    return row_of(command).right


def _row(
    command: type[Command], right: Right, method: Method, path: str, *, shared: bool = False
) -> CommandRow:
    body = _body_of(command, _names(path))
    return CommandRow(
        command=command,
        right=right,
        method=method,
        path=path,
        body=body,
        body_optional=body is not None
        and not any(field.required for field in msgspec.structs.fields(body)),
        shared=shared,
    )


def _body_of(command: type[Command], in_path: tuple[str, ...]) -> type[Struct] | None:
    """The struct of the body, derived from the command."""
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for field in msgspec.structs.fields(command):
        if field.name in SET_BY_SERVER or field.name in in_path:
            continue
        if _makes(field):
            # The command makes it where a client gives none, or null.
            fields.append((field.name, field.type | None | UnsetType, UNSET))
        elif field.default is not NODEFAULT:
            fields.append((field.name, field.type, field.default))
        else:
            fields.append((field.name, field.type))
    if not fields:
        return None
    made = msgspec.defstruct(
        f"{command.__name__}Body",
        fields,
        frozen=True,
        kw_only=True,
        omit_defaults=True,
        forbid_unknown_fields=True,
        module=__name__,
    )
    made.__doc__ = command.__doc__
    return made


def _makes(field: FieldInfo) -> bool:
    """Whether a command makes a member that nobody gives."""
    return field.default_factory is not NODEFAULT


def _names(path: str) -> tuple[str, ...]:
    return tuple(re.findall(r"{(\w+)}", path))


def _fields(struct: Struct | type[Struct]) -> tuple[str, ...]:
    return struct.__struct_fields__


REPEATED_HEADER = "Quarterdeck-Repeated"
"""Of the route that several commands share: its body is the session, not the outcome."""

_SESSION = "/sessions/{session}"

TABLE: tuple[CommandRow, ...] = (
    _row(cmd.CreateSession, Right.MANAGE, "POST", "/sessions"),
    _row(cmd.RenameSession, Right.STEER, "PATCH", _SESSION, shared=True),
    _row(cmd.ChangeSession, Right.MANAGE, "PATCH", _SESSION, shared=True),
    _row(cmd.ArchiveSession, Right.STEER, "PATCH", _SESSION, shared=True),
    _row(cmd.DeleteSession, Right.MANAGE, "DELETE", _SESSION),
    _row(cmd.StopSession, Right.STEER, "POST", f"{_SESSION}/stop"),
    _row(cmd.ResumeSession, Right.STEER, "POST", f"{_SESSION}/resume"),
    _row(cmd.MoveSession, Right.MANAGE, "POST", f"{_SESSION}/move"),
    _row(cmd.ForkSession, Right.MANAGE, "POST", f"{_SESSION}/fork"),
    _row(cmd.RewindSession, Right.STEER, "POST", f"{_SESSION}/rewind"),
    _row(cmd.Interrupt, Right.STEER, "POST", f"{_SESSION}/interrupt"),
    _row(cmd.Control, Right.MANAGE, "POST", f"{_SESSION}/control"),
    _row(cmd.SendPrompt, Right.STEER, "POST", f"{_SESSION}/prompts"),
    _row(cmd.ChangePrompt, Right.STEER, "PATCH", f"{_SESSION}/prompts/{{prompt}}"),
    _row(cmd.CancelPrompt, Right.STEER, "DELETE", f"{_SESSION}/prompts/{{prompt}}"),
    _row(cmd.AnswerAsk, Right.STEER, "POST", "/asks/{ask}/answer"),
)

ROWS: dict[type[Command], CommandRow] = {row.command: row for row in TABLE}

assert ROWS.keys() == set(get_args(AnyCommand)), "every command has a row"
