"""What is wrong with a line of a frontend, and where. Below everything here."""

from __future__ import annotations

import logging

from quarterdeck.domain.errors import (
    Conflict,
    Forbidden,
    JournalError,
    NotFound,
    QuarterdeckError,
    RequestTimeout,
    UsageError,
)

log = logging.getLogger(__name__)


class BadLine(UsageError):
    """A line that nothing is done about. `code` is stable, for programs; `where` is a member."""

    def __init__(self, code: str, text: str, where: str = "") -> None:
        self.code = code
        self.where = where
        super().__init__(text)


def reason_of(error: Exception) -> tuple[str, str]:
    """The code and the text of an error. An unexpected one is logged, and its text kept back."""
    match error:
        case BadLine(code=code) | Conflict(code=code):
            return code, str(error)
        case Forbidden():
            return "forbidden", str(error)
        case NotFound():
            return "not_found", str(error)
        case UsageError():
            return "bad_line", str(error)
        case RequestTimeout():
            return "cli_timeout", str(error)
        case JournalError():
            return "journal_unavailable", str(error)
        case QuarterdeckError():
            return "failed", str(error)
        case _:
            log.error("a line of a frontend could not be carried out", exc_info=error)
            return "internal", "an unexpected error; the hub has logged it"
