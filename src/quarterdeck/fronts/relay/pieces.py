"""Pieces of messages on their way to one frontend: in order, in bounded memory.

Pieces are not journalled. A frontend gets those of a message from its start on, or none; each after
the journalled lines that precede it and before those that follow. A frontend that reads too slowly
misses pieces, and nothing else: the whole message follows as a line.
"""

from __future__ import annotations

from collections import deque

import anyio
import msgspec
from msgspec import Struct

from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.protocol.views import Piece

MOST_BYTES = 1024 * 1024
"""What waits for one frontend. It is dropped when it is more."""


class _Event(Struct):
    type: str


class _Line(Struct):
    type: str
    event: _Event
    parent_tool_use_id: str | None = None


_lines = msgspec.json.Decoder(_Line)


class Pieces:
    """The pieces that wait for one frontend."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.bell = anyio.Event()
        """Set when a piece comes."""
        self._most_bytes = most_bytes
        self._waiting: dict[str, deque[Piece]] = {}
        """By session."""
        self._bytes = 0
        self._begun: dict[str, set[str | None]] = {}
        """By session: the messages of which all pieces were passed on, by who makes them."""
        self._last: dict[str, tuple[str, int]] = {}

    def add(self, piece: Piece) -> None:
        """Take a piece, in the order of its session."""
        try:
            line = _lines.decode(piece.line)
        except DECODE_ERRORS:
            return
        if line.type != "stream_event":
            return  # of two members with a name the last counts, and the hub went by the first
        run, number = self._last.get(piece.session, ("", 0))
        if run == piece.run and piece.number <= number:
            return  # it came before: the hub could not journal its batch, and got it again
        self._last[piece.session] = (piece.run, piece.number)
        begun = self._begun.setdefault(piece.session, set())
        if run != piece.run:
            begun.clear()
        maker = line.parent_tool_use_id
        if line.event.type == "message_start":
            begun.add(maker)
        if maker not in begun:
            return
        if line.event.type == "message_stop":
            begun.discard(maker)
        self._waiting.setdefault(piece.session, deque()).append(piece)
        self._bytes += len(piece.line)
        if self._bytes > self._most_bytes:
            self._waiting.clear()
            self._begun.clear()
            self._bytes = 0
        self.bell.set()

    def take(self, session: str, run: str | None, said: int, before: int | None) -> list[Piece]:
        """The pieces that come next in a session whose line `said` was told last.

        `before` is the number of the journalled line that is told next, if it is known.
        """
        waiting = self._waiting.get(session)
        found: list[Piece] = []
        while waiting and waiting[0].run == run:
            first = waiting[0]
            if not (first.after <= said if before is None else first.number < before):
                break
            found.append(waiting.popleft())
            self._bytes -= len(first.line)
        if waiting is not None and not waiting:
            del self._waiting[session]
        return found

    def sessions(self) -> list[str]:
        """The sessions of which pieces wait. The bell is silent until the next comes."""
        self.bell = anyio.Event()
        return list(self._waiting)

    def forget(self, session: str, run: str) -> None:
        """A run of the session has ended."""
        left = deque(piece for piece in self._waiting.pop(session, ()) if piece.run != run)
        if left:
            self._waiting[session] = left
        self._bytes = sum(len(piece.line) for each in self._waiting.values() for piece in each)
        if self._last.get(session, ("", 0))[0] == run:
            del self._last[session]
            self._begun.pop(session, None)
