"""The format of log lines: text for people, or JSON for machines, with secrets redacted.

The runner and the hub use it; they decide what is logged, and where.
"""

from __future__ import annotations

import logging
import time

import msgspec

from quarterdeck.domain.secrets import redact

LONGEST = 20_000
"""Letters of one entry: a traceback, and not the message of 10 MB that caused it."""

TEXT, JSON = "text", "json"


class TextLines(logging.Formatter):
    """`2026-01-31 12:00:00,000 INFO quarterdeck.hub: what happened`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        return redact(super().format(record)[:LONGEST])


class JsonLines(logging.Formatter):
    """One object a line: `at`, `level`, `logger`, `message`, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "at": f"{at}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()[:LONGEST]),
        }
        if record.exc_info:
            entry["exception"] = redact(self.formatException(record.exc_info)[:LONGEST])
        return msgspec.json.encode(
            {key: text.encode(errors="replace").decode() for key, text in entry.items()}
        ).decode()


def formatter(form: str) -> logging.Formatter:
    """The formatter for `text` or `json`."""
    return JsonLines() if form == JSON else TextLines()
