"""The state of a run as bytes, for the journal, and back. Pure; beside `run_state`.

Owns the form of a snapshot. A hub that starts reads the last one and folds only the events after
it, so that a start takes as long for a run of a million events as for a short one. The events stay
the truth: a snapshot of another version, or one that cannot be read, is ignored, and the run is
folded from its beginning.

What is stored is masked as events are: a card or a line in memory may have a token of the hub in
it that the journal does not have. The spec is not masked, as it is not in events.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
from msgspec import Raw, field

from quarterdeck import __version__
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.domain.secrets import mask_tokens_in
from quarterdeck.domain.structs import DECODE_ERRORS, Mutable, Value
from quarterdeck.hub.permissions.gate import PermissionGate
from quarterdeck.hub.permissions.open_asks import OpenAsks
from quarterdeck.hub.run_state import RunState
from quarterdeck.hub.status import StatusTracker
from quarterdeck.hub.supervision.meter import Meter
from quarterdeck.hub.supervision.watchdog import Watch
from quarterdeck.hub.switches import Switches
from quarterdeck.hub.turns import LostTurn, Turns
from quarterdeck.protocol.events import SandboxStarted
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored, stored_size
from quarterdeck.wire.exchange import RecentIds
from quarterdeck.wire.peer import PeerState

log = logging.getLogger(__name__)

FORM = 2
"""Changes with the state of a run and with the meaning of events for it, between two releases."""
VERSION = f"{__version__}/{FORM}"
"""Snapshots of another version are ignored."""


EVENTS = 2000
"""A snapshot is stored after so many events: to fold them takes less than a tenth of a second."""
SHARE = 3
"""And not before they are so many times larger than the last snapshot: the disk is for events."""
LARGEST = 8 * 1024 * 1024
"""A larger snapshot is not stored. Only a CLI that leaves thousands of requests open has one."""
WORTH_IT = 100
"""Events after which one is stored all the same when the run is idle, or the hub stops."""


class SnapshotPace(Mutable):
    """When the next snapshot of a run is due."""

    events: int = 0
    size: int = 0
    last: int = 0
    """The size of the last one, stored or not."""

    def note(self, stored: Sequence[Stored]) -> None:
        """Events were journalled."""
        self.events += len(stored)
        self.size += sum(map(stored_size, stored))

    def note_taken(self, data: bytes | None) -> bytes | None:
        """A snapshot was made, or cannot be; returns it if it is to be stored."""
        self.events, self.size, self.last = 0, 0, len(data or b"")
        return data if self.last <= LARGEST else None

    @property
    def due(self) -> bool:
        """Whether the next events are to be stored with one."""
        return self.events >= EVENTS and self.size >= SHARE * self.last

    @property
    def worth_it(self) -> bool:
        """Whether one is worth a commit of its own."""
        return self.events >= WORTH_IT


class _Envelope(Value):
    version: str
    run: str
    spec: Raw
    state: Raw


class _State(Value):
    """All of a `RunState` but its spec, and `holds`, which is in the session's view."""

    said: int
    sent: int
    greeting: bool
    peer: PeerState
    asks: OpenAsks
    asked_at: dict[str, int]
    status: StatusTracker
    switches: Switches
    turns: Turns
    gate: PermissionGate
    lost_turn: LostTurn
    meter: Meter
    watch: Watch
    received: RecentIds = field(name="heard")
    peers: RecentIds
    inbound: bool = field(name="dialled")  # the name in snapshots that are stored already
    program: bool
    unknown_place: bool
    at_root: bool
    stopped_at: int
    sandbox: SandboxStarted | None
    unwritten: dict[int, Raw] = field(default_factory=dict)


_AS_THEY_ARE = tuple(set(_State.__struct_fields__) - {"peer", "unwritten"})
_envelopes = msgspec.json.Decoder(_Envelope)
_states = msgspec.json.Decoder(_State)
_specs = msgspec.json.Decoder(SessionSpec)


def snapshot(state: RunState, unwritten: dict[int, bytes]) -> bytes | None:
    """The state of a run; None if it cannot be stored.

    `unwritten` are the lines that its machine may not have yet.
    """
    try:
        return _encode_state(state, unwritten)
    except (msgspec.EncodeError, TypeError, ValueError) as error:  # as text with half a character
        log.warning("no snapshot of run %s: %s", state.run, error)
        return None


def _encode_state(state: RunState, unwritten: dict[int, bytes]) -> bytes:
    stored = _State(
        peer=state.peer.snapshot(),
        unwritten={number: Raw(line) for number, line in unwritten.items()},
        **{name: getattr(state, name) for name in _AS_THEY_ARE},
    )
    return msgspec.json.encode(
        _Envelope(
            version=VERSION,
            run=state.run,
            spec=Raw(msgspec.json.encode(state.spec)),
            state=Raw(mask_tokens_in(msgspec.json.encode(stored))),
        )
    )


def is_current(data: bytes, run: str) -> bool:
    """Whether this is a snapshot of that run, made by this version."""
    try:
        envelope = _envelopes.decode(data)
    except DECODE_ERRORS:
        return False
    return envelope.version == VERSION and envelope.run == run


def restore_state(data: bytes, session: str, run: str) -> tuple[RunState, dict[int, bytes]] | None:
    """The state of a run, and the lines that its machine may not have.

    None for a snapshot of another run or version, or one that cannot be read.
    """
    try:
        envelope = _envelopes.decode(data)
        if envelope.version != VERSION or envelope.run != run:
            return None
        stored = _states.decode(envelope.state)
        state = RunState(session, run, _specs.decode(envelope.spec))
        state.peer = state.new_peer(bypass_allowed=stored.gate.started_with_bypass)
        state.peer.resume(stored.peer)
    except (*DECODE_ERRORS, QuarterdeckError, ValueError) as error:
        log.warning("the snapshot of run %s is ignored: %s", run, error)
        return None
    for name in _AS_THEY_ARE:
        setattr(state, name, getattr(stored, name))
    return state, {number: bytes(line) for number, line in stored.unwritten.items()}
