"""The append-only truth about all sessions, and what it comes to.

- `base` says what a journal can do; `memory` and `sqlite` are the engines.
- `views` are pure folds over the events: a session's state, its open questions, its cost.

Above it stands the hub; below it only `domain`. It knows nothing of the CLI's protocol.
"""

from __future__ import annotations

from quarterdeck.journal.base import AskRecord, Follower, Journal, Log, Overview
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.journal.stored import Passage, Stored
from quarterdeck.journal.views import (
    AskView,
    PromptStage,
    PromptView,
    SessionView,
    fold,
    fold_all,
)

__all__ = [
    "AskRecord",
    "AskView",
    "Follower",
    "Journal",
    "Log",
    "MemoryJournal",
    "Overview",
    "Passage",
    "PromptStage",
    "PromptView",
    "SessionView",
    "SqliteJournal",
    "Stored",
    "fold",
    "fold_all",
]
