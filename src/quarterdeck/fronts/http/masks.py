"""Masks secrets: values of environments, of settings, of MCP servers, tokens.

A session's spec holds what its CLI is started with, and the journal stores all of it, as it does
with lines for the CLI. This front masks them for every reader, whatever their role.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Raw

from quarterdeck.domain.secrets import mask_tokens_in
from quarterdeck.protocol.events import Said, Sent, SessionCreated, SpecChanged
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import MIRROR, Stored, is_mirror, may_hold_secrets

MASK = "…"
_SECRET_MEMBERS = frozenset({"env", "headers", "variables"})
"""Members whose values are secrets, wherever they are."""
_SECRET_SETTINGS = frozenset({"apiKeyHelper", "awsAuthRefresh", "awsCredentialExport"})
"""Settings that are commands for secrets."""
_PLAIN_ARGUMENT = re.compile(
    r"-{1,2}[A-Za-z][\w-]*"  # an option without a value
    r"|@?[A-Za-z][\w.-]*/[\w./@-]+"  # a package with a scope, or a path
    r"|\.{0,2}/[\w./-]+"
    r"|[a-z][a-z.-]{0,39}"  # a short word
)


def masked_spec(spec: SessionSpec) -> SessionSpec:
    """The spec with its secrets masked; itself when it has none."""
    if spec.env or spec.mcp_servers or spec.settings or spec.subagents or spec.extra_args:
        spec = msgspec.structs.replace(
            spec,
            env=dict.fromkeys(spec.env, MASK),
            subagents={name: _masked_raw(agent) for name, agent in spec.subagents.items()},
            extra_args={
                name: value if value is None or _is_plain(value) else MASK
                for name, value in spec.extra_args.items()
            },
            mcp_servers={name: _masked_raw(server) for name, server in spec.mcp_servers.items()},
            settings=None if spec.settings is None else _masked_text(spec.settings),
        )
    data = msgspec.json.encode(spec)
    plain = mask_tokens_in(data)
    return spec if plain is data else msgspec.json.decode(plain, type=SessionSpec)


def masked_json(stored: Stored) -> bytes:
    """The JSON of an event: its stored bytes, unless there is something to mask."""
    event = stored.event
    match event:
        case SessionCreated() | SpecChanged():
            spec = masked_spec(event.spec)
            if spec is event.spec:
                return stored.json
            return msgspec.json.encode(msgspec.structs.replace(event, spec=spec))
        case Sent(line=line) if may_hold_secrets(stored.json):
            return msgspec.json.encode(msgspec.structs.replace(event, line=_masked_raw(line)))
        case Said(line=line) if is_mirror(stored.json):
            return msgspec.json.encode(msgspec.structs.replace(event, line=_without_entries(line)))
        case _:
            return stored.json


def _without_entries(line: Raw) -> Raw:
    """A part of the CLI's transcript, without its lines.

    The conversation is in other events. What only the transcript has is for the model: the files of
    instructions, the memory, what the CLI adds to a prompt.
    """
    try:
        members = msgspec.json.decode(line, type=dict[str, Raw])
    except msgspec.DecodeError:  # another line, which has the word in it
        return line
    if bytes(members.get("type", Raw(b""))) != MIRROR:
        return line
    return Raw(msgspec.json.encode({**members, "entries": Raw(b"[]")}))


def _masked_raw(json: Raw) -> Raw:
    try:
        found: object = msgspec.json.decode(json)
    except (msgspec.DecodeError, RecursionError):
        found = None  # not what it should be: nothing of it is shown
    masked = _mask_value(found) if isinstance(found, dict) else MASK
    return Raw(msgspec.json.encode(masked))


def _masked_text(settings: str) -> str:
    """Settings as JSON, or the path of a file."""
    if not settings.lstrip().startswith("{"):
        return settings
    return bytes(_masked_raw(Raw(settings.encode()))).decode()


def _mask_value(value: object) -> object:
    """A JSON value with the secrets in it masked, however deep."""
    match value:
        case dict():
            return {key: _masked_member(str(key), each) for key, each in value.items()}
        case list():
            return [_mask_value(each) for each in value]
        case _:
            return value


def _masked_member(name: str, value: object) -> object:
    match name, value:
        case _, dict() if name in _SECRET_MEMBERS:
            return dict.fromkeys(value, MASK)
        case _, _ if name in _SECRET_MEMBERS or name in _SECRET_SETTINGS:
            return MASK
        case "args", list():
            return [each if _is_plain(each) else MASK for each in value]
        case "url", str():
            return _masked_url(value)
        case "settings", str():
            return _masked_text(value)
        case _:
            return _mask_value(value)


def _is_plain(argument: object) -> bool:
    """Whether an argument of an MCP server's command is an option, a package or a path."""
    return isinstance(argument, str) and _PLAIN_ARGUMENT.fullmatch(argument) is not None


def _masked_url(url: str) -> str:
    """A URL without what may be a secret: a user, a query, a fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return MASK
    user = f"{MASK}@" if "@" in parts.netloc else ""
    query = MASK if parts.query else ""
    return urlunsplit((parts.scheme, user + host, parts.path, query, ""))
