"""The append-only record of all sessions, and the views folded from it.

- `base` is the interface of a journal; `memory`, `sqlite` and `postgres` are the engines, and
  `open_journal` opens the one that an address names.
- `views` are pure folds over the events: a session's state, its open questions, its cost.

Above it is the hub; below it are `protocol` and `domain`. It does not know the CLI's protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quarterdeck.later import load_later

if TYPE_CHECKING:
    from quarterdeck.journal.base import (
        AskRecord,
        Follower,
        Journal,
        Log,
        Overview,
    )
    from quarterdeck.journal.engines import open_journal
    from quarterdeck.journal.memory import MemoryJournal
    from quarterdeck.journal.sqlite import SqliteJournal
    from quarterdeck.journal.views import fold, fold_all
    from quarterdeck.protocol.session_view import PromptStage, SessionView
    from quarterdeck.protocol.stored_events import RawEvents, Stored
    from quarterdeck.protocol.views import AskView, PromptView

__all__ = [
    "AskRecord",
    "AskView",
    "Follower",
    "Journal",
    "Log",
    "MemoryJournal",
    "Overview",
    "PromptStage",
    "PromptView",
    "RawEvents",
    "SessionView",
    "SqliteJournal",
    "Stored",
    "fold",
    "fold_all",
    "open_journal",
]

__getattr__ = load_later(
    __name__,
    {
        "base": ("AskRecord", "Follower", "Journal", "Log", "Overview"),
        "engines": ("open_journal",),
        "memory": ("MemoryJournal",),
        "sqlite": ("SqliteJournal",),
        "event_codec": ("RawEvents", "Stored"),
        "views": ("AskView", "PromptStage", "PromptView", "SessionView", "fold", "fold_all"),
    },
)
