"""The format of log lines: text for people, or JSON for machines, with secrets redacted.

The runner and the hub use it; they decide what is logged, and where. A message may quote what an
agent, a client or a program wrote: invisible and control characters are marked, so that a log that
is read in a terminal controls nothing, and no line of a message looks like another entry.
"""

from __future__ import annotations

import logging
import time

import msgspec

from quarterdeck.domain.marks import mark_invisible
from quarterdeck.domain.secrets import redact

LONGEST = 20_000
"""Letters of one entry: a traceback, and not the message of 10 MB that caused it."""

TEXT, JSON = "text", "json"


class TextLines(logging.Formatter):
    """`2026-01-31 12:00:00,000 INFO quarterdeck.hub: what happened`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One entry. Further lines are indented."""
        return _escape(super().format(record)).replace("\n", "\n    ")


class JsonLines(logging.Formatter):
    """One object a line: `at`, `level`, `logger`, `message`, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "at": f"{at}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _escape(record.getMessage()),
        }
        if record.exc_info:
            entry["exception"] = _escape(self.formatException(record.exc_info))
        return msgspec.json.encode(
            {key: text.encode(errors="replace").decode() for key, text in entry.items()}
        ).decode()


def _escape(text: str) -> str:
    return mark_invisible(redact(text[:LONGEST]))


def formatter(form: str) -> logging.Formatter:
    """The formatter for `text` or `json`."""
    return JsonLines() if form == JSON else TextLines()
