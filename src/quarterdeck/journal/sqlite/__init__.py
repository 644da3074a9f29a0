"""The journal in a file: SQLite with a write-ahead log, one writer thread, commits in groups.

`file` opens, checks and locks the file; `writer` is the thread that writes; `reader` has the
queries; `journal` is the face that the hub sees.
"""

from __future__ import annotations

from quarterdeck.journal.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
