"""Where the hub's journal is: the file in the data folder, or the database of the configuration.

Owns how the password is found. The address is a secret: it is in no text.
"""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from quarterdeck.config.settings import JournalSettings
from quarterdeck.domain.errors import ConfigError
from quarterdeck.journal.engines import open_journal
from quarterdeck.journal.journal_threads import ThreadedJournal
from quarterdeck.service.local_hub import JOURNAL

LONGEST_PASSWORD = 1024


async def open_configured(home: Path, settings: JournalSettings) -> ThreadedJournal:
    """Open the journal. Raises `JournalError`, `UsageError`."""
    if settings.url is None:
        return await open_journal(home / JOURNAL)
    password = await to_thread.run_sync(database_password, settings)
    return await open_journal(settings.url, password=password)


def database_password(settings: JournalSettings) -> str | None:
    """The password in the file of the settings; None without one. Raises `ConfigError`."""
    if settings.password_file is None:
        return None
    try:
        text = Path(settings.password_file).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError((f"journal.password_file: it cannot be read: {error}",)) from error
    password = text.strip("\r\n")
    if not password or "\0" in password or len(password) > LONGEST_PASSWORD:
        raise ConfigError(("journal.password_file: one line with the password is wanted",))
    return password
