"""The server's end of a WebSocket: uvicorn's own, which is read on while few messages wait.

uvicorn stops reading a socket with every message and begins again when the message is taken: two
system calls for each, as much as it takes to read it. Here that is done when messages pile up. What
an app has not taken is bounded all the same, by number and by size. Above is `embedded`.
"""

from __future__ import annotations

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

WAITING_MESSAGES = 16
WAITING_BYTES = 64 * 1024
"""So many messages may wait for the app, and none larger than that, before reading stops."""


class PatientProtocol(WebSocketsSansIOProtocol):
    """One connection."""

    def send_receive_event_to_app(self) -> None:
        """A message is whole: let the app have it, and stop reading if it is one too many."""
        small = sum(map(len, self.frames)) <= WAITING_BYTES
        if self.read_paused or not small or self.queue.qsize() >= WAITING_MESSAGES:
            super().send_receive_event_to_app()
            return
        # What is paused already is not paused again.
        self.read_paused = True
        try:
            super().send_receive_event_to_app()
        finally:
            self.read_paused = False
