"""How a session stands, by what its CLI does: its state, and the CLI's id. Pure; below `run`.

Owns the translation of the wire's states into the words that people read, and which of them was
told last: only a change is an event.
"""

from __future__ import annotations

from quarterdeck.domain.events import CliSession, Event, StateChanged
from quarterdeck.domain.sessions import SessionState
from quarterdeck.wire.base import Message
from quarterdeck.wire.peer import Peer
from quarterdeck.wire.states import State
from quarterdeck.wire.system import ApiRetry

_STATES = {
    State.NEW: SessionState.STARTING,
    State.INITIALIZING: SessionState.STARTING,
    State.READY: SessionState.IDLE,
    State.WORKING: SessionState.WORKING,
    State.WAITING: SessionState.WAITING,
    State.COMPACTING: SessionState.COMPACTING,
    State.RETRYING: SessionState.RETRYING,
    State.DOWN: SessionState.DISCONNECTED,
    State.CLOSED: SessionState.ENDED,
}


class Standing:
    """What was told of a session as a whole."""

    def __init__(self) -> None:
        self._state: SessionState | None = None
        self._cli_session: str | None = None

    def restore(self, event: StateChanged | CliSession) -> None:
        """It was told before."""
        match event:
            case StateChanged(state=state):
                self._state = state
            case CliSession(cli_session=cli_session):
                self._cli_session = cli_session

    def changes(self, peer: Peer, message: Message | None) -> list[Event]:
        """What is to be told now, after a message of the CLI or something that we did."""
        events: list[Event] = []
        if peer.session_id and peer.session_id != self._cli_session:
            self._cli_session = peer.session_id
            events.append(CliSession(cli_session=self._cli_session))
        state = _STATES[peer.state]
        if state is SessionState.IDLE and not peer.initialized:
            state = SessionState.STARTING  # a link that was lost and is back makes no greeting
        if state is not self._state:
            self._state = state
            detail = ""
            if isinstance(message, ApiRetry):
                detail = f"{message.error} ({message.attempt} of {message.max_retries})"
            events.append(StateChanged(state=state, detail=detail))
        return events
