"""NDJSON framing: any chunks in, whole lines out.

Owns splitting a byte stream into lines; `codec` decodes the lines. Chunks may end anywhere, also
inside a character, because only the byte 0x0A ends a line and UTF-8 never has it inside a
character.

The cost is linear in the size of a line. The result depends on the stream alone, not on how it was
split.
"""

from __future__ import annotations

from io import BytesIO

from msgspec import Struct

DEFAULT_MAX_LINE = 256 * 1024 * 1024
"""Bytes. Real lines reach 6 MB (a tool's whole output); images and exports may be far larger. The
limit keeps a faulty peer from filling the memory."""

KEPT_OF_OVERSIZED = 4096
"""Bytes that are kept of a line over the limit, to identify it."""


class OversizedLine(Struct, frozen=True):
    """A line longer than the limit: its size, and its head."""

    size: int
    head: bytes


Line = bytes | OversizedLine


class LineReader:
    """Cuts a stream into lines. A CR before the LF is taken off; blank lines are dropped."""

    def __init__(self, max_line: int = DEFAULT_MAX_LINE) -> None:
        if max_line < 1:
            raise ValueError("max_line must be at least 1 byte")
        self.max_line = max_line
        # A `BytesIO` grows in place and returns its contents without a copy. A list of pieces would
        # hold a long line twice, which takes longer than reading it.
        self._unfinished = BytesIO()
        self._size = 0

    def feed(self, chunk: bytes) -> list[Line]:
        """Take the next bytes; return the lines that they complete, in order."""
        if b"\n" not in chunk:  # inside a long line: nothing else to do
            if chunk:
                self._keep(chunk)
            return []
        lines = chunk.split(b"\n")
        rest = lines.pop()
        odd = len(chunk) > self.max_line or b"\r" in chunk
        begun: OversizedLine | None = None
        if lines and self._size:
            first = self._complete(lines[0])
            if isinstance(first, OversizedLine):
                begun = first
                del lines[0]
            else:
                lines[0] = first
                odd = odd or first.endswith(b"\r")
        if rest:
            self._keep(rest)
        # A JSON object begins with "{", and blanks sort before it: one pass in C finds blank lines.
        if odd or (lines and min(lines) < b"{"):
            return ([begun] if begun else []) + self._tidy(lines)
        return [begun, *lines] if begun else [*lines]

    def end(self) -> Line | None:
        """The stream has ended: return the line that was begun and not finished, if any."""
        if not self._size:
            return None
        last = self._complete(b"")
        if isinstance(last, OversizedLine):
            return last
        tidied = self._tidy([last])
        return tidied[0] if tidied else None

    def _keep(self, piece: bytes) -> None:
        before, self._size = self._size, self._size + len(piece)
        if self._size <= self.max_line:
            self._unfinished.write(piece)
        elif before <= max(self.max_line, KEPT_OF_OVERSIZED):
            # Over the limit: only the head is kept, and the size is counted.
            head = self._unfinished.getvalue()[:KEPT_OF_OVERSIZED]
            self._unfinished = BytesIO()
            self._unfinished.write((head + piece[:KEPT_OF_OVERSIZED])[:KEPT_OF_OVERSIZED])

    def _complete(self, last: bytes) -> Line:
        self._keep(last)
        line, size = self._unfinished.getvalue(), self._size
        self._unfinished = BytesIO()
        self._size = 0
        return line if size <= self.max_line else OversizedLine(size, line)

    def _tidy(self, lines: list[bytes]) -> list[Line]:
        tidied: list[Line] = []
        for line in lines:
            if len(line) > self.max_line:
                tidied.append(OversizedLine(len(line), line[:KEPT_OF_OVERSIZED]))
                continue
            text = line.removesuffix(b"\r")
            if text and not text.isspace():
                tidied.append(text)
        return tidied
