"""The journal in PostgreSQL, for several hubs: the extra `quarterdeck[postgres]`.

`address` connects and explains errors; `schema` has the tables; `writer` is the writer thread,
`staging` its transactions, and `rows` what they write; `reader` has the queries; `shared_records`
what hubs share; `signals` wakes other hubs; `refold` folds views of other versions again; `journal`
is the interface for the hub.
"""

from __future__ import annotations

# First of all: it says what is missing when the extra is.
from quarterdeck.journal.postgres.address import Address  # isort: skip
from quarterdeck.journal.postgres.journal import PostgresJournal

__all__ = ["Address", "PostgresJournal"]
