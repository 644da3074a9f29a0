"""The hub's log: its destination, level and format, which can change while it runs.

Owns the root logger of the process. `service` is above it; `runtime.log_format` formats the lines.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
from pathlib import Path

from quarterdeck.config.settings import LogSettings
from quarterdeck.domain.errors import UsageError
from quarterdeck.runtime.log_format import formatter

FILE_BYTES, FILES_KEPT = 10 * 1024 * 1024, 5
OURS = "quarterdeck"


class Logs:
    """The log of this process. Nothing is logged before the first `change`."""

    def __init__(self) -> None:
        self._handler: logging.Handler | None = None
        self._where: Path | None = None

    def change(self, settings: LogSettings) -> None:
        """Use these settings from now on. Raises `UsageError` if the file cannot be written."""
        where = None if settings.file is None else Path(settings.file)
        handler = self._handler
        if handler is None or where != self._where:
            handler = _handler(where)
        handler.setFormatter(formatter(settings.format))
        root = logging.getLogger()
        if handler is not self._handler:
            root.addHandler(handler)
            self.close()
            self._handler, self._where = handler, where
        # At «info», libraries log every connection.
        root.setLevel(logging.WARNING)
        logging.getLogger(OURS).setLevel(settings.level.upper())

    def close(self) -> None:
        """Stop logging."""
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
            self._handler.close()
            self._handler = None


def _handler(where: Path | None) -> logging.Handler:
    if where is None:
        return logging.StreamHandler(sys.stderr)
    try:
        where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        where.touch(mode=0o600)
        return logging.handlers.RotatingFileHandler(
            where, maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8"
        )
    except OSError as error:
        raise UsageError(f"log.file: cannot write {where}: {error.strerror}") from error
