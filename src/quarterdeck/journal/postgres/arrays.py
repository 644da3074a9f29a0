"""Arrays of numbers and lines in PostgreSQL's binary form, for the statement that writes events.

Owns the encoding. psycopg encodes an array element by element, which takes a third of the time of
an append; these arrays have one type and one dimension, and are joined at once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import repeat

from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

_HEAD = struct.Struct(">iiIii")
"""The number of dimensions, whether there are nulls, the type, the length, the first index."""
_LENGTH = struct.Struct(">i")
_INT4 = struct.Struct(">ii")
_INT8 = struct.Struct(">iq")
_NULL = _LENGTH.pack(-1)

_OIDS = {"int4": (23, 1007), "int8": (20, 1016), "bytea": (17, 1001)}
"""PostgreSQL's number of each type, and of arrays of it. They never change."""


class Packed:
    """An array that is encoded already."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class Int4Array(Packed):
    """Numbers of four bytes."""


class Int8Array(Packed):
    """Numbers of eight bytes."""


class ByteaArray(Packed):
    """Lines; None is a null."""


def int4s(values: Sequence[int]) -> Int4Array:
    """Numbers as an array of `int`."""
    return Int4Array(_pack("int4", len(values), map(_INT4.pack, repeat(4), values)))


def int8s(values: Sequence[int]) -> Int8Array:
    """Numbers as an array of `bigint`."""
    return Int8Array(_pack("int8", len(values), map(_INT8.pack, repeat(8), values)))


def byteas(lines: Sequence[bytes | None]) -> ByteaArray:
    """Lines as an array of `bytea`."""
    parts: list[bytes] = [b""] * (2 * len(lines))
    parts[::2] = [_NULL if line is None else _LENGTH.pack(len(line)) for line in lines]
    parts[1::2] = [line or b"" for line in lines]
    return ByteaArray(_pack("bytea", len(lines), parts, nulls=None in lines))


def _pack(kind: str, count: int, parts: Iterable[bytes], *, nulls: bool = False) -> bytes:
    dimensions = 1 if count else 0
    head = _HEAD.pack(dimensions, nulls, _OIDS[kind][0], count, 1)
    return head[:12] if not count else b"".join((head, *parts))


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Packed) -> Buffer | None:
        return obj.data


class _Int4ArrayDumper(_PackedDumper):
    oid = _OIDS["int4"][1]


class _Int8ArrayDumper(_PackedDumper):
    oid = _OIDS["int8"][1]


class _ByteaArrayDumper(_PackedDumper):
    oid = _OIDS["bytea"][1]


DUMPERS: tuple[tuple[type[Packed], type[Dumper]], ...] = (
    (Int4Array, _Int4ArrayDumper),
    (Int8Array, _Int8ArrayDumper),
    (ByteaArray, _ByteaArrayDumper),
)
"""For the adapters of a connection."""
