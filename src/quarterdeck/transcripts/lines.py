"""The lines of a session file, also of a damaged one.

Owns opening, splitting into lines, and repair. A session file grows while it is read; its last line
may be cut, others may be garbage, and a name that looks like a session may belong to a pipe. It
does not know what a line means.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

CHUNK = 64 * 1024
"""How much of a file's head and tail a listing reads: the CLI keeps the needed entries in there."""

LONGEST_LINE = 256 * 1024 * 1024
"""A longer line is damage and not a message: it is skipped, so that memory stays bounded."""

BLOCK = 1024 * 1024
OVERLAP = 256
MARGIN = 8 * 1024 * 1024
"""How a file is searched from its end: so much at once, and so far before what was found, since
lines may be a little out of order."""
_UUID = re.compile(rb'"uuid" ?: ?"([^"]{1,100})"')
"""A nested text has its quotes escaped, and does not match."""

_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"  # a pair: one character
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|.)",
    re.DOTALL,
)

T = TypeVar("T")


def open_regular(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading without blocking: a named pipe would block forever."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    stream = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(f"not a regular file: {path}")
    return stream


def lines_of(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each line with its offset; overlong lines are skipped."""
    start = 0
    while line := stream.readline(LONGEST_LINE):
        length = len(line)
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while rest := stream.readline(LONGEST_LINE):
                length += len(rest)
                if rest.endswith(b"\n"):
                    break
        elif not line.isspace():
            yield start, line
        start += length


def start_of(stream: BinaryIO, uuids: Collection[str]) -> int:
    """The offset of the first line with one of these uuids, which are near the end; 0 if none is.

    The file is searched from its end on, and no further than `MARGIN` before one of them: a session
    file may have gigabytes.
    """
    wanted = {uuid.encode() for uuid in uuids}
    end = stream.seek(0, os.SEEK_END)
    found: int | None = None
    while end > 0 and (found is None or found - end < MARGIN):
        begin = max(0, end - BLOCK)
        stream.seek(begin)
        # A little of the block after it: a uuid may be on the border of two.
        block = stream.read(end - begin + OVERLAP)
        hits = (match.start() for match in _UUID.finditer(block) if match[1] in wanted)
        if (first := next(hits, None)) is not None:
            found = begin + first
        end = begin
    return 0 if found is None else _line_start(stream, found)


def _line_start(stream: BinaryIO, offset: int) -> int:
    while offset > 0:
        begin = max(0, offset - BLOCK)
        stream.seek(begin)
        newline = stream.read(offset - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        offset = begin
    return 0


def decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T | None:
    """The decoded line, repaired if necessary; None if it is garbage."""
    try:
        return decoder.decode(line)
    except (ValueError, RecursionError):
        pass  # mostly a cut line; few can be repaired
    try:
        return decoder.decode(repair(line))
    except (ValueError, RecursionError):
        return None


def repair(line: bytes) -> bytes:
    r"""Make `line` decodable where only its characters are wrong.

    The CLI cuts texts by UTF-16 units and so writes halves of characters (`"\ud83d"`), which are
    no Unicode; a damaged disk writes anything. Both become the replacement character.
    """
    try:
        line.decode()
    except UnicodeDecodeError:
        line = line.decode(errors="replace").encode()
    if b"\\ud" in line or b"\\uD" in line:
        line = _ESCAPE.sub(lambda found: b"\\ufffd" if found[2] else found[0], line)
    return line


def text(value: object) -> str | None:
    """`value` if it is a text with something in it."""
    return value if isinstance(value, str) and value else None
