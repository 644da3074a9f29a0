"""Pictures for tests, made here: nothing of anybody's is in the repository."""

from __future__ import annotations

import struct
import zlib


def png(side: int = 40, *, level: int = -1) -> bytes:
    """A small picture: one colour, and a valid file; with `level` 0 it is not compressed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\x0a\x62\x85" * side) * side
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, level)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
