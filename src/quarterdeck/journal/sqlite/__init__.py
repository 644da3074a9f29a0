"""The journal in a file: SQLite with a write-ahead log, one writer thread, commits in groups.

`file` opens, checks and locks the file; `writer` is the writer thread; `reader` has the queries;
`journal` is the interface for the hub.
"""

from __future__ import annotations

from quarterdeck.journal.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
