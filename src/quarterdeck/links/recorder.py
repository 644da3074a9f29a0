"""Record the traffic of a link as readable NDJSON.

Owns the format of a recording; `replay` reads it back. It splits bytes at newlines and does not
look into lines.

One object per line, in the order of events, `t` in milliseconds since the start::

    {"dir":"in","t":12,"line":"…"}       one line towards the CLI, without its newline
    {"dir":"out","t":57,"line":"…"}      one line from the CLI
    {"dir":"out","t":60,"base64":"…"}    … that was not UTF-8
    {"dir":"out","t":61,"line":"…","partial":true}    … that ended, or was cut, without a newline
    {"dir":"meta","t":0,"event":"start"}   also: dropped, resumed, end_input,
                                           closed, close
"""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from quarterdeck.domain.errors import LinkClosed
from quarterdeck.links.base import Closing, Dropped, Link, Resumed, check_whole_lines

# A line without an end must not fill the memory: from here on it is recorded in parts.
LONGEST_LINE = 64 * 1024 * 1024

Event = Literal["start", "dropped", "resumed", "end_input", "closed", "close"]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a recording."""

    dir: Literal["in", "out", "meta"]
    t: int
    line: str | None = None
    base64: str | None = None
    partial: bool = False
    event: Event | None = None
    last_request_id: str | None = None
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    close_code: int | None = None


class RecordingLink(Closing):
    """A link that records its traffic, and otherwise behaves like the link inside it.

    `file` is a path, which is overwritten, or a file open for writing bytes, which stays open. Each
    line is handed to the operating system at once, so a crash leaves complete lines.
    """

    def __init__(self, inner: Link, file: str | Path | BinaryIO) -> None:
        self._inner = inner
        self._own_file = isinstance(file, str | Path)
        self._file = _open(file)
        self._began = time.monotonic()
        self._encoder = msgspec.json.Encoder()
        self._rest = bytearray()
        self._ended = False
        self._meta("start")

    @property
    def resumable(self) -> bool:
        """As the link inside."""
        return self._inner.resumable

    async def receive(self) -> bytes | Dropped | Resumed:
        """Like the link inside; data is recorded before it is returned."""
        try:
            item = await self._inner.receive()
        except LinkClosed as closed:
            self._record_end(closed)
            raise
        match item:
            case bytes():
                self._record_output(item)
            case Dropped(reason=reason, close_code=close_code):
                self._flush_rest()
                self._meta("dropped", reason=reason, close_code=close_code)
            case Resumed(last_request_id=last_request_id):
                self._flush_rest()
                self._meta("resumed", last_request_id=last_request_id)
        return item

    async def send(self, data: bytes) -> None:
        """Like the link inside; data is recorded first, so that no answer precedes its question."""
        check_whole_lines(data)
        if not data:
            return
        for line in data.removesuffix(b"\n").split(b"\n"):
            self._record("in", line)
        await self._inner.send(data)

    async def end_input(self) -> None:
        """As the link inside."""
        self._meta("end_input")
        await self._inner.end_input()

    async def close(self) -> None:
        """Close the link inside, and the file if it is ours."""
        try:
            await self._inner.close()
        finally:
            if not self._file.closed:
                self._flush_rest()
                if not self._ended:
                    self._meta("close")
                if self._own_file:
                    self._file.close()

    def _record_output(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._record("out", bytes(self._rest) + line if self._rest else line)
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > LONGEST_LINE:
            self._flush_rest()

    def _flush_rest(self) -> None:
        if self._rest:
            self._record("out", bytes(self._rest), partial=True)
            self._rest.clear()

    def _record_end(self, closed: LinkClosed) -> None:
        if not self._ended:
            self._ended = True
            self._flush_rest()
            self._meta(
                "closed",
                reason=closed.reason,
                exit_code=closed.exit_code,
                signal=closed.signal,
                close_code=closed.close_code,
            )

    def _record(self, way: Literal["in", "out"], line: bytes, *, partial: bool = False) -> None:
        try:
            record = Record(dir=way, t=self._now(), line=line.decode(), partial=partial)
        except UnicodeDecodeError:
            text = base64.b64encode(line).decode()
            record = Record(dir=way, t=self._now(), base64=text, partial=partial)
        self._write(record)

    def _meta(
        self,
        event: Event,
        *,
        last_request_id: str | None = None,
        reason: str | None = None,
        exit_code: int | None = None,
        signal: int | None = None,
        close_code: int | None = None,
    ) -> None:
        self._write(
            Record(
                dir="meta",
                t=self._now(),
                event=event,
                last_request_id=last_request_id,
                reason=reason,
                exit_code=exit_code,
                signal=signal,
                close_code=close_code,
            )
        )

    def _now(self) -> int:
        return round((time.monotonic() - self._began) * 1000)

    def _write(self, record: Record) -> None:
        if not self._file.closed:
            self._file.write(self._encoder.encode(record) + b"\n")
            self._file.flush()


def _open(file: str | Path | BinaryIO) -> BinaryIO:
    if not isinstance(file, str | Path):
        return file
    return Path(file).open("wb")
