"""One live run of a session: its state, and what is known of it that no journal has. No I/O.

Owns the number of the last line that was taken, and the text that is still being made: pieces of
text change nothing but the screen, and are not journalled. The state of the run is changed by
events only (`run_state`), and what is decided about it is in `decisions`.
"""

from __future__ import annotations

from quarterdeck.hub.deltas import DeltaReader
from quarterdeck.hub.run_state import RunState
from quarterdeck.hub.supervision.watchdog import Watch
from quarterdeck.protocol.events import Event, RunStarting
from quarterdeck.protocol.holds import Holds
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import Deltas
from quarterdeck.wire.messages import StreamEvent


class Run:
    """The CLI process of a session, as the hub sees it now."""

    def __init__(
        self,
        session: str,
        run: str,
        spec: SessionSpec,
        holds: Holds,
        *,
        state: RunState | None = None,
    ) -> None:
        """`state` is what is known of it already, from a snapshot."""
        self.state = state or RunState(session, run, spec)
        self.state.holds = holds
        self.said = self.state.said
        """The highest number of a line that was taken, pieces of text too."""
        self._reader = DeltaReader(session)

    @property
    def run(self) -> str:
        """Its id."""
        return self.state.run

    @property
    def spec(self) -> SessionSpec:
        """The session's spec."""
        return self.state.spec

    @property
    def idle(self) -> bool:
        """Whether a prompt would begin at once."""
        return self.state.idle

    @property
    def busy(self) -> bool:
        """Whether a turn is open or a question waits."""
        return self.state.busy

    @property
    def greeted(self) -> bool:
        """Whether `initialize` has been answered."""
        return self.state.greeted

    @property
    def link_down(self) -> bool:
        """Whether its CLI cannot be reached just now."""
        return self.state.link_down

    @property
    def watch(self) -> Watch:
        """The signs of life of its CLI."""
        return self.state.watch

    def said_at_root(self, uuid: str) -> bool:
        """Whether its CLI connected to the hub at `/`, and said a message with this uuid."""
        return self.state.at_root and self.state.peer.has_seen(uuid)

    # --- from the journal ------------------------------------------------------------------------

    def restore_event(self, event: Event, at: int) -> None:
        """Take the next event of this run from the journal, with its time."""
        self.state.evolve(event, at)

    def finish_restore(self, holds: Holds) -> None:
        """All events of the journal were taken."""
        self.state.holds = holds
        self.said = self.state.said

    def begin(self, starting: RunStarting, at: int) -> None:
        """Its first event has been journalled."""
        self.state.evolve(starting, at)

    # --- pieces of text --------------------------------------------------------------------------

    def receive_piece(self, number: int, line: bytes, at: int) -> tuple[Deltas, ...] | None:
        """Take a line that is a piece of text in a turn; None if it has to be read as a whole.

        Such a line changes nothing but the screen, and there are a hundred for each other one.
        """
        if self.state.inbound or number <= self.said or not self.state.peer.turns.in_turn:
            return None
        if (deltas := self._reader.read_piece(line)) is None:
            return None
        self.said = number
        self.state.watch.lives(at)
        return deltas

    def receive_stream(self, message: StreamEvent, at: int) -> tuple[Deltas, ...] | None:
        """Take a piece of a message. None: it came before."""
        peer = self.state.peer
        # 2.1.120 repeats all that it said when it dials again. A hub that was restarted does not
        # know the pieces; but no turn begins with one.
        if self.state.inbound and not (
            peer.turns.busy and (not message.uuid or peer.remember(message.uuid))
        ):
            return None
        self.state.evolve_piece(message, at)
        return self._reader.read(message)
