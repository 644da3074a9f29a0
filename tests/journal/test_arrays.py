"""Arrays in PostgreSQL's binary form: what the server reads is what was given."""

from __future__ import annotations

from quarterdeck.journal.postgres.address import Address
from quarterdeck.journal.postgres.arrays import byteas, int4s, int8s

_QUERY = "SELECT %b::int[], %b::bigint[], %b::bytea[]"


def test_the_server_reads_arrays_as_they_were_given(postgres_url: str) -> None:
    cases: list[tuple[list[int], list[int], list[bytes | None]]] = [
        ([], [], []),
        ([0], [-1], [None]),
        ([1, -(2**31), 2**31 - 1], [2**63 - 1, -(2**63), 7], [b"", b"\x00\xff", b"{}" * 40_000]),
        (list(range(5000)), list(range(5000)), [b"a", None] * 2500),
    ]
    with Address(postgres_url).connect() as connection:
        for numbers, large, lines in cases:
            values = (int4s(numbers), int8s(large), byteas(lines))
            for binary in (True, False):
                row = connection.execute(_QUERY, values, binary=binary).fetchone()
                assert row == (numbers, large, lines)
