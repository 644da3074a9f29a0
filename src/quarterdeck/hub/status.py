"""How a session stands, by what its CLI says: state, limits, the CLI's id. Pure; below `run`.

Owns the translation of the wire's states into those that people read, and which of them was
journalled last: only a change is an event. The loss of the link to its machine has events of its
own.
"""

from __future__ import annotations

from msgspec import field

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.structs import Mutable
from quarterdeck.hub.clip import count_of, text_of
from quarterdeck.protocol.events import CliSession, Event, RateLimited, StateChanged
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.wire.base import Message
from quarterdeck.wire.messages import Assistant, RateLimitEvent
from quarterdeck.wire.peer import Peer
from quarterdeck.wire.reports import RateLimitInfo, RateLimitStatus
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
    State.CLOSED: SessionState.ENDED,
}
_WHILE_LIMITED = frozenset({SessionState.IDLE, SessionState.WORKING, SessionState.RETRYING})
"""Where a limit is what matters most; an open question can still be answered."""
INTERRUPTED = "interrupted"
"""The problem of a turn that a person has ended."""
MOST_LIMITS = 50
"""Kinds of limits; an account has a handful."""
_END_OF_TIME = 253_402_300_800
"""The year 10,000, in seconds."""
_NO_MODEL = "<synthetic>"
"""The model of a message that the CLI wrote itself: that it is limited, for instance."""


class StatusTracker(Mutable):
    """The state, limits and CLI session id of one run."""

    _state: SessionState | None = None
    _cli_session: str | None = None
    _limits: dict[str, RateLimited] = field(default_factory=dict)
    """By kind; the oldest first."""
    _limited: RateLimited | None = None
    _coded: CodedText | None = None
    problem: str = ""
    """Why the open turn will fail, if it does: `interrupted`, or the CLI's code of why the model
    did not answer."""

    def limit_is_over(self, now: int) -> bool:
        """Whether a limit held the CLI up until a time in ms."""
        return self._limited is not None and self._limit_at(now) is None

    def _limit_at(self, now: int) -> RateLimited | None:
        limited = self._limited
        if limited is None or (limited.resets_at is not None and limited.resets_at <= now):
            return None
        return limited

    def evolve(self, event: StateChanged | CliSession | RateLimited) -> None:
        """An event was journalled."""
        match event:
            case RateLimited(limit=limit):
                self._limits[limit or ""] = event
                if len(self._limits) > MOST_LIMITS:
                    del self._limits[next(iter(self._limits))]
            case StateChanged(state=state, coded=coded):
                self._state = state
                self._coded = coded
            case CliSession(cli_session=cli_session):
                self._cli_session = cli_session

    def receive(self, message: Message) -> list[Event]:
        """Whether the account's limits hold the CLI up; an event for each change of one."""
        match message:
            case RateLimitEvent(rate_limit_info=info):
                return self._limit_events(info)
            case Assistant(error=None) if message.message.model != _NO_MODEL:
                self._limited = None  # the turn goes on
                if self.problem != INTERRUPTED:
                    self.problem = ""
            case Assistant(error=error) if error is not None and self.problem != INTERRUPTED:
                self.problem = str(error)
            case _:
                pass
        return []

    def _limit_events(self, info: RateLimitInfo) -> list[Event]:
        limit = RateLimited(
            status=str(info.status),
            limit=info.rate_limit_type,
            resets_at=_milliseconds(info.resets_at),
            used=None if info.utilization is None else float(info.utilization),
        )
        paid = info.is_using_overage or info.overage_in_use
        if info.status == RateLimitStatus.REJECTED and not paid:
            self._limited = limit
        elif self._limited is not None and self._limited.limit == limit.limit:
            self._limited = None
        return [] if self._limits.get(limit.limit or "") == limit else [limit]

    def note_interrupt(self) -> None:
        """The CLI was asked to end the open turn."""
        self.problem = INTERRUPTED

    def turn_ended(self) -> None:
        """A turn has ended: its problem is not that of the next."""
        self.problem = ""

    def changes(
        self, peer: Peer, message: Message | None, now: int, *, over: bool = False
    ) -> list[Event]:
        """What has changed, after a message of the CLI or something that we did.

        `over`: its process is gone.
        """
        if self._is_unchanged(peer, message, over=over):
            return []
        events: list[Event] = []
        if peer.session_id and peer.session_id != self._cli_session:
            events.append(CliSession(cli_session=peer.session_id))
        state = _STATES.get(State.CLOSED if over else peer.state)
        if state is SessionState.IDLE and not peer.initialized:
            state = SessionState.STARTING  # a link that was lost and is back makes no greeting
        limited = self._limit_at(now)
        if limited is not None and state in _WHILE_LIMITED:
            state = SessionState.LIMITED
        if state is None:
            return events
        coded = _state_text(state, message, limited)
        again = isinstance(message, ApiRetry) and coded != self._coded
        if state is not self._state or again:
            events.append(StateChanged(state=state, coded=coded))
        return events

    def _is_unchanged(self, peer: Peer, message: Message | None, *, over: bool) -> bool:
        """Whether it is plain that nothing has changed, as after most messages of a turn."""
        return (
            peer.state is State.WORKING
            and self._state is SessionState.WORKING
            and self._limited is None
            and peer.session_id == self._cli_session
            and not over
            and type(message) is not ApiRetry
        )


def _state_text(
    state: SessionState, message: Message | None, limited: RateLimited | None
) -> CodedText | None:
    if state is SessionState.LIMITED and limited is not None:
        until = limited.resets_at
        return CodedText(code=TextCode.LIMIT_REACHED, name=limited.limit or "", until=until)
    if isinstance(message, ApiRetry):
        return CodedText(
            code=TextCode.API_RETRY,
            detail=text_of(str(message.error)),
            count=count_of(message.attempt),
            most=count_of(message.max_retries),
        )
    return None


def _milliseconds(seconds: float | None) -> int | None:
    """A time that a calendar has; the CLI tells seconds."""
    if seconds is None or not 0 <= seconds < _END_OF_TIME:
        return None
    return int(seconds * 1000)
