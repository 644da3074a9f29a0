"""Masks secrets: values of environments, of MCP servers' env and headers, tokens.

A session's spec holds what its CLI is started with, and the journal stores all of it. This front
masks it for every reader, whatever their role.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from quarterdeck.domain.secrets import mask_tokens_in
from quarterdeck.journal.base import Stored
from quarterdeck.protocol.events import SessionCreated, SpecChanged
from quarterdeck.protocol.sessions import SessionSpec

MASK = "…"
_SECRET_MEMBERS = frozenset({"env", "headers"})


def masked_spec(spec: SessionSpec) -> SessionSpec:
    """The spec with its secrets masked; itself when it has none."""
    if spec.env or spec.mcp_servers:
        spec = msgspec.structs.replace(
            spec,
            env=dict.fromkeys(spec.env, MASK),
            mcp_servers={name: _masked_server(server) for name, server in spec.mcp_servers.items()},
        )
    data = msgspec.json.encode(spec)
    plain = mask_tokens_in(data)
    return spec if plain is data else msgspec.json.decode(plain, type=SessionSpec)


def masked_json(stored: Stored) -> bytes:
    """The JSON of an event: its stored bytes, unless there is something to mask."""
    event = stored.event
    if not isinstance(event, SessionCreated | SpecChanged):
        return stored.json
    spec = masked_spec(event.spec)
    if spec is event.spec:
        return stored.json
    return msgspec.json.encode(msgspec.structs.replace(event, spec=spec))


def _masked_server(server: Raw) -> Raw:
    try:
        members = msgspec.json.decode(server, type=dict[str, Raw])
    except msgspec.DecodeError:
        return Raw(msgspec.json.encode(MASK))  # not what it should be: nothing of it is shown
    for name in _SECRET_MEMBERS & members.keys():
        try:
            names = msgspec.json.decode(members[name], type=dict[str, Raw])
            members[name] = Raw(msgspec.json.encode(dict.fromkeys(names, MASK)))
        except msgspec.DecodeError:
            members[name] = Raw(msgspec.json.encode(MASK))
    return Raw(msgspec.json.encode(members))
