"""Text that is being generated, for one client: transient, merged, and bounded.

A client that does not keep up loses pieces here, and then gets the whole text so far instead.
Above is the connection; the hub has the text so far.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas, merge_deltas

MOST_CHARACTERS = 64 * 1024
"""What waits for one client: some seconds of several agents that write."""

_PIECES = 4096


class LiveText:
    """The pieces for one client that it has not been sent yet."""

    def __init__(self, so_far: Callable[[str], tuple[Deltas, ...]]) -> None:
        self._so_far = so_far
        self._pieces: list[Deltas] = []
        self._size = 0
        self._wholes: set[str] = set()
        self.bell = asyncio.Event()

    def receive(self, delta: Deltas) -> None:
        """There is another piece."""
        self.bell.set()
        if delta.session in self._wholes:
            return  # the text so far will have it
        self._pieces.append(delta)
        self._size += len(delta.text)
        if self._size > MOST_CHARACTERS or len(self._pieces) > _PIECES:
            self.begin({piece.session for piece in self._pieces})

    def begin(self, sessions: Collection[str]) -> None:
        """Send the whole text so far of these sessions, and then what follows."""
        self._wholes.update(sessions)
        self._pieces = [piece for piece in self._pieces if piece.session not in self._wholes]
        self._size = sum(len(piece.text) for piece in self._pieces)
        self.bell.set()

    def take(self) -> list[Live]:
        """The frames to send now. It does not wait, so that no piece is lost in between."""
        self.bell.clear()
        wholes = tuple(delta for session in sorted(self._wholes) for delta in self._so_far(session))
        pieces, self._pieces, self._size = self._pieces, [], 0
        self._wholes.clear()
        frames = [Live(deltas=wholes, whole=True)] if wholes else []
        return [*frames, Live(deltas=tuple(merge_deltas(pieces)))] if pieces else frames
