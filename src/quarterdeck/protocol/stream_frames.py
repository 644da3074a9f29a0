"""The frames of the stream, both ways. The normative page is `docs/reference/stream.md`.

A frame is one JSON object with its kind in `t`. The envelope is decoded first and a command's body
second, so that a command that makes no sense is still answered by its id.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Raw, field

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.problems import Problem
from quarterdeck.protocol.roles import Role
from quarterdeck.protocol.views import Deltas, EventShape, SessionShape

PROTOCOL = 1

FrameId = Annotated[str, Meta(min_length=1, max_length=128)]
Number = Annotated[int, Meta(ge=0, le=2**53)]


class Frame(Value, tag_field="t"):
    """The base of all frames."""


# --- client to server ----------------------------------------------------------------------------


class Follow(Frame, tag="follow", forbid_unknown_fields=True):
    """Follow these sessions, each after its number; with `all`, every other one from now on."""

    id: FrameId
    sessions: dict[str, Number] = field(default_factory=dict)
    all: bool = False
    epoch: str | None = None
    """The journal of the numbers. Required if one of them is above 0."""
    after: Number | None = None
    """With `all`: every session after this position, not from now on. It needs `epoch`. `all` is
    false in the answer if the position is not one of this journal; nothing is followed then."""
    live: bool = True
    """Whether to send text that is being generated."""
    views: bool = True
    """Whether to send the folded sessions."""
    pictures: bool = True
    """False: pictures and documents in events have a path in `url` instead of their data."""
    personal: bool = False
    """Whether to report when your preferences have changed on another device."""
    packed: bool = False
    """Whether a large `events` frame may come as a binary message: its JSON, compressed by gzip."""


class Unfollow(Frame, tag="unfollow", forbid_unknown_fields=True):
    """Stop following these sessions; with `all`, every session."""

    id: FrameId
    sessions: tuple[str, ...] = ()
    all: bool = False


class Order(Frame, tag="command", forbid_unknown_fields=True):
    """Execute a command. It is acknowledged by `done` or `failed`, with the same id."""

    id: FrameId
    command: Raw


class Beat(Frame, tag="beat"):
    """A heartbeat, in both directions."""


ClientFrame = Follow | Unfollow | Order | Beat


# --- server to client ----------------------------------------------------------------------------


class Limits(Value, omit_defaults=False):
    """The limits for a client."""

    frame_bytes: int
    sessions: int
    commands: int
    silence_seconds: float


class Hello(Frame, tag="hello", omit_defaults=False):
    """The first frame of the server."""

    protocol: int
    epoch: str
    name: str
    role: Role
    beat_seconds: float
    limits: Limits


class Place(Value):
    """Whether a session is followed.

    `gap`: the number is not of this journal (`epoch`), lies beyond its last event (`ahead`), or
    there is no such session (`unknown`). The session is then not followed.
    """

    status: Literal["ok", "gap"]
    reason: Literal["epoch", "ahead", "unknown"] | None = None
    head: int | None = None


class Following(Frame, tag="following", omit_defaults=False):
    """The answer to `follow` and `unfollow`."""

    id: str
    sessions: dict[str, Place]
    all: bool


class Events(Frame, tag="events"):
    """Events of one or several sessions; those of a session are in their order."""

    epoch: str
    events: tuple[EventShape, ...]


class Views(Frame, tag="views"):
    """Sessions that have changed, folded by the hub. `head` is the last event that is in one."""

    sessions: tuple[SessionShape, ...]


class Live(Frame, tag="live"):
    """Text that is being generated. `whole`: the whole text of its block so far; it replaces it."""

    deltas: tuple[Deltas, ...]
    whole: bool = False


class Personal(Frame, tag="personal"):
    """Your preferences have changed, on another device or on this one."""

    version: int
    """The newest version: `GET /api/preferences` has what is new after yours."""


class Done(Frame, tag="done"):
    """The command was executed."""

    id: str
    outcome: Outcome


class Failed(Frame, tag="failed"):
    """The command, or the frame with that id, was refused."""

    id: str
    problem: Problem


class Bad(Frame, tag="error"):
    """The frame could not be decoded; the connection is closed after it."""

    problem: Problem


ServerFrame = Hello | Following | Events | Views | Live | Personal | Done | Failed | Bad | Beat
