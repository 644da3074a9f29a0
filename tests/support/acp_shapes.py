"""Sessions, people and events, as the hub would give them to the front for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.fronts.acp.v1.settings import Known
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.holds import ContextUse, OfferedCommand, OfferedModel, Offers
from quarterdeck.protocol.roles import RIGHTS, Role
from quarterdeck.protocol.sandbox import SandboxState
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.shapes import Me
from quarterdeck.protocol.views import EventShape, HoldsShape, SessionShape

OFFERS = Offers(
    commands=(
        OfferedCommand(name="compact", description="Make room", hint="[what to keep]"),
        OfferedCommand(name="plain"),
    ),
    models=(
        OfferedModel(
            model="default", name="Default", resolved="claude-big", efforts=("low", "high")
        ),
        OfferedModel(model="small", name="Small", description="quick"),
    ),
)


def me(role: Role = Role.OWNER, name: str = "ada") -> Me:
    """A person."""
    return Me(name=name, role=role, rights=tuple(sorted(RIGHTS[role])), expires=None)


def session(**more: Any) -> SessionShape:
    """A session that is idle."""
    holds = HoldsShape(
        todos=(), tasks=(), tools=(), mcp=(), context=ContextUse(), limits=(), cut={}
    )
    shape = SessionShape(
        session="s1", name="", state=SessionState.IDLE, detail="", coded=None, since=0,
        last_turn=None,
        spec=SessionSpec(directory="/work"), by="ada", parent=None, lineage=(), created=0,
        updated=1_000, archived=False, head=3, news=3, run="r1", machine="here", pid=1,
        version="2.1.325", directory=None, cli_session=None, mode=None, model=None, effort=None,
        thinking=None, sandbox=SandboxState(), turns=0, peer_prompts=0, cost_usd=0.0,
        estimated_usd=0.0, tokens=0, run_usd=0.0, run_tokens=0, budgets=(), alarms=(), queued=0,
        asks=0, holds=holds, offers=OFFERS,
    )  # fmt: skip
    return replace(shape, **more)


def known(role: Role = Role.OWNER, **more: Any) -> Known:
    """What is known of such a session."""
    return Known(session(**more), me(role))


def happened(event: Any, seq: int = 4) -> EventShape:
    """An event with its number."""
    return EventShape(session="s1", seq=seq, position=seq, at=1_000, event=event)


def assistant(*blocks: Mapping[str, object], parent: str | None = None) -> EventShape:
    """A message of the model."""
    line = {
        "type": "assistant",
        "uuid": "u1",
        "session_id": "c1",
        "parent_tool_use_id": parent,
        "message": {"id": "m1", "role": "assistant", "content": blocks},
    }
    return happened(ev.Said(run="r1", number=1, line=Raw(msgspec.json.encode(line))))


def text(words: str) -> dict[str, object]:
    """A block of text."""
    return {"type": "text", "text": words}


def call(tool: str, **given: object) -> dict[str, object]:
    """A tool call."""
    return {"type": "tool_use", "id": "t1", "name": tool, "input": given}


def result(output: str, id_: str = "t1", *, failed: bool = False) -> EventShape:
    """The result of a tool call."""
    block = {"type": "tool_result", "tool_use_id": id_, "content": output, "is_error": failed}
    line = {
        "type": "user",
        "uuid": "u2",
        "session_id": "c1",
        "message": {"role": "user", "content": [block]},
    }
    return happened(ev.Said(run="r1", number=2, line=Raw(msgspec.json.encode(line))))


def opened(
    tool: str = "Bash", kind: ev.AskKind = ev.AskKind.TOOL, given: object = None, **more: Any
) -> ev.AskOpened:
    """A question about a call."""
    request = {
        "subtype": "can_use_tool",
        "tool_name": tool,
        "input": {"command": "make"} if given is None else given,
        "tool_use_id": "t1",
    }
    return ev.AskOpened(
        **{
            "ask": "s1.a1",
            "run": "r1",
            "request_id": "q1",
            "ask_kind": kind,
            "tool": tool,
            "title": "make",
            "request": Raw(msgspec.json.encode(request)),
            "tool_use_id": "t1",
            "narrowest": ("Bash(make)",),
            **more,
        }
    )


def form(schema: object, **more: object) -> ev.AskOpened:
    """A form of an MCP server."""
    request = {
        "subtype": "elicitation",
        "mcp_server_name": "shop",
        "message": "Your size?",
        "requested_schema": schema,
        **more,
    }
    return opened(
        "shop", ev.AskKind.ELICITATION, request=Raw(msgspec.json.encode(request)), tool_use_id=None
    )
