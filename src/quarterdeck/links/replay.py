"""Play a recording back as a link: the CLI's side of it.

Owns the order and the pace of a replay, for an `Agent`, a test or `quarterdeck replay`. Of a sent
line it reads only what a replay needs: whether it is a request or a prompt, and its id.

The rule: output that the CLI wrote after it had received n lines is given once n lines have been
sent. So an answer never precedes its question, and the same program gets the same replay each time.

Ids are new in each run. The k-th request that is sent corresponds to the k-th request of the
recording, and the k-th prompt with a uuid to the k-th such prompt. Recorded ids in the CLI's output
are replaced by the new ones, as text between quotes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

import anyio
import msgspec

from quarterdeck.domain.errors import LinkClosed, RecordingError
from quarterdeck.links.base import Dropped, Resumed, check_whole_lines
from quarterdeck.links.recorder import Record

Kind = Literal["control_request", "user"]


class _Sent(msgspec.Struct, frozen=True):
    """The fields of a sent line that identify it in the recording."""

    type: str = ""
    request_id: str = ""
    uuid: str = ""


class _Step(msgspec.Struct, frozen=True):
    """One item of the link: bytes, a report about the connection, or the end.

    `after` is the number of lines that must have been sent before.
    """

    what: bytes | Dropped | Resumed | LinkClosed
    after: int
    gap: float


class ReplayLink:
    """A link that repeats a recorded one. Open it with `ReplayLink.open`.

    `speed` None gives every item as soon as it is due; 1.0 keeps the recorded pauses, 2.0 halves
    them.
    """

    def __init__(self, records: Iterable[Record], *, speed: float | None = None) -> None:
        self._speed = speed
        self._recorded: dict[Kind, list[str]] = {"control_request": [], "user": []}
        self._steps = deque(self._plan(records))
        self._resumable = any(isinstance(step.what, Dropped | Resumed) for step in self._steps)
        self._renamed: dict[bytes, bytes] = {}
        self._counted: dict[Kind, int] = {"control_request": 0, "user": 0}
        self._sent = 0
        self._input_ended = False
        self._closed = False
        self._changed = asyncio.Event()

    @classmethod
    async def open(cls, path: str | Path, *, speed: float | None = None) -> Self:
        """Read a recording. Raises `RecordingError`, with the line number, if it is not valid."""
        try:
            text = await anyio.Path(path).read_bytes()
        except OSError as error:
            raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
        return cls(read_records(text, name=str(path)), speed=speed)

    @property
    def resumable(self) -> bool:
        """Whether the recorded link lost its connection somewhere."""
        return self._resumable

    async def receive(self) -> bytes | Dropped | Resumed:
        """The next line of the recording, when its turn has come."""
        while True:
            if self._closed:
                raise LinkClosed("The replay was closed.")
            if not self._steps:
                raise LinkClosed("The recording has ended.", exit_code=0)
            step = self._steps[0]
            if self._sent >= step.after:
                break
            await self._changed.wait()
            self._changed.clear()
        if self._speed is not None and step.gap > 0:
            with anyio.move_on_after(step.gap / self._speed):  # a close ends the pause
                while not self._closed:
                    await self._changed.wait()
                    self._changed.clear()
            if self._closed:
                raise LinkClosed("The replay was closed.")
        if isinstance(step.what, LinkClosed):
            raise step.what.copy()
        self._steps.popleft()
        return self._rename(step.what) if isinstance(step.what, bytes) else step.what

    async def send(self, data: bytes) -> None:
        """Count the lines, and note the ids that take the place of recorded ones."""
        check_whole_lines(data)
        if not data:
            return
        if self._closed or self._input_ended:
            raise LinkClosed("Nothing more can be sent: the replay's input has ended.")
        for line in data.removesuffix(b"\n").split(b"\n"):
            for kind, identity in _identities(line):
                self._note(kind, identity)
            self._sent += 1
        self._changed.set()

    async def end_input(self) -> None:
        """From here on nothing waits for more to be sent: the rest of the recording follows."""
        self._input_ended = True
        self._sent = max([self._sent, *(step.after for step in self._steps)])
        self._changed.set()

    async def close(self) -> None:
        """End the replay, wherever it is."""
        self._closed = True
        self._changed.set()

    def _plan(self, records: Iterable[Record]) -> Iterable[_Step]:
        """The items to give, each with the number of lines that must have been sent before."""
        after, last = 0, 0
        for record in records:
            gap, last = max(record.t - last, 0) / 1000, record.t
            match record:
                case Record(dir="in"):
                    after += 1
                    for kind, identity in _identities(_content(record)):
                        self._recorded[kind].append(identity)
                case Record(dir="out"):
                    ending = b"" if record.partial else b"\n"
                    yield _Step(_content(record) + ending, after, gap)
                case Record(event="dropped"):
                    reason = record.reason or "The recorded link lost its connection."
                    yield _Step(Dropped(reason, record.close_code), after, gap)
                case Record(event="resumed"):
                    yield _Step(Resumed(record.last_request_id), after, gap)
                case Record(event="end_input"):
                    after += 1  # later items wait for `end_input`
                case Record(event="closed"):
                    closed = LinkClosed(
                        record.reason or "The recorded link has ended.",
                        exit_code=record.exit_code,
                        signal=record.signal,
                        close_code=record.close_code,
                    )
                    yield _Step(closed, after, gap)
                case _:
                    pass

    def _note(self, kind: Kind, identity: str) -> None:
        number = self._counted[kind]
        self._counted[kind] += 1
        if number < len(self._recorded[kind]):
            recorded = self._recorded[kind][number]
            if recorded != identity:
                self._renamed[_quote(recorded)] = _quote(identity)

    def _rename(self, data: bytes) -> bytes:
        # All at once: a new id may be the same text as another recorded one.
        if not self._renamed:
            return data
        pattern = b"|".join(re.escape(recorded) for recorded in self._renamed)
        return re.sub(pattern, lambda found: self._renamed[found.group()], data)


def read_records(text: bytes, *, name: str = "the recording") -> list[Record]:
    """Every record of a recording's bytes; a malformed line is a `RecordingError` that names it."""
    decoder = msgspec.json.Decoder(Record)
    records: list[Record] = []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RecordingError(f"{name}, line {number}: {error}") from error
        if (problem := _problem(record)) is not None:
            raise RecordingError(f"{name}, line {number}: {problem}")
        records.append(record)
    if not records:
        raise RecordingError(f"{name} is empty")
    return records


def _problem(record: Record) -> str | None:
    if record.dir == "meta":
        return None if record.event else "a meta record needs an event"
    if (record.line is None) == (record.base64 is None):
        return "it needs either a line or base64"
    if record.line is not None and "\n" in record.line:
        return "a line contains a newline"
    if record.base64 is not None:
        try:
            base64.b64decode(record.base64, validate=True)
        except (binascii.Error, ValueError) as error:
            return f"its base64 cannot be read: {error}"
    return None


def _content(record: Record) -> bytes:
    return (
        record.line.encode() if record.line is not None else base64.b64decode(record.base64 or "")
    )


def _identities(line: bytes) -> list[tuple[Kind, str]]:
    """The id that a sent line brings with it, if it brings one."""
    try:
        sent = msgspec.json.decode(line, type=_Sent)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    match sent:
        case _Sent(type="control_request", request_id=identity) if identity:
            return [("control_request", identity)]
        case _Sent(type="user", uuid=identity) if identity:
            return [("user", identity)]
        case _:
            return []


def _quote(identity: str) -> bytes:
    return msgspec.json.encode(identity)
