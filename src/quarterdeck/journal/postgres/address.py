"""The address of a database, its connections, and the meaning of PostgreSQL's errors.

Owns the password: it is in the address that connections are made with, and in no text. It loads
psycopg, the extra `quarterdeck[postgres]`, and says so where it is missing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from quarterdeck.domain.errors import JournalError, QuarterdeckError, UsageError

try:
    import psycopg
    from psycopg import errors
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

    from quarterdeck.journal.postgres.arrays import DUMPERS
except ImportError as _error:  # pragma: no cover - the tests have the extra
    raise UsageError(
        "a journal in PostgreSQL needs the extra: install quarterdeck[postgres]"
    ) from _error


SCHEMES = ("postgresql://", "postgres://")
_DEFAULTS = {
    "application_name": "quarterdeck",
    "connect_timeout": "10",
    # A link that is cut without a word is noticed within about ten seconds.
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""What an address may say otherwise."""
OLDEST_SERVER = 14
"""The oldest major version of PostgreSQL that is supported."""

Connection = psycopg.Connection[tuple[Any, ...]]


class Address:
    """Where a journal is. `str` gives it without the password."""

    def __init__(self, url: str, password: str | None = None) -> None:
        """Raises `UsageError` for an invalid address, without repeating it."""
        if not url.startswith(SCHEMES):
            raise UsageError("journal: url: must begin with postgresql://")
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error:
            raise UsageError(
                "journal: url: not a valid address: postgresql://USER@HOST:PORT/DATABASE is wanted"
            ) from None
        if password is not None:
            parts["password"] = password
        for name, value in _DEFAULTS.items():
            parts.setdefault(name, value)
        parts["client_encoding"] = "UTF8"  # whatever the environment says
        self._info = make_conninfo("", **parts)
        user = f"{parts['user']}@" if parts.get("user") else ""
        port = f":{parts['port']}" if parts.get("port") else ""
        host = parts.get("host") or parts.get("hostaddr") or ""
        self._label = f"postgresql://{user}{host}{port}/{parts.get('dbname') or ''}"

    def __str__(self) -> str:
        return self._label

    def __repr__(self) -> str:
        return f"Address({self._label})"

    def connect(self) -> Connection:
        """A connection without transactions of its own. Raises `psycopg.Error`."""
        connection = psycopg.connect(self._info, autocommit=True, prepare_threshold=None)
        # What is set in the server must not change what a transaction sees.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        # All numbers of one size: a statement that is repeated has the same types, and is prepared.
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        for kind, dumper in DUMPERS:
            connection.adapters.register_dumper(kind, dumper)
        try:
            # Each statement is prepared before its values are sent: see `rows`. A pooler may give
            # the next transaction another server process.
            if is_supported(connection) and not is_pooled(connection):
                connection.prepare_threshold = 0
        except BaseException:
            connection.close()
            raise
        return connection


def is_supported(connection: Connection) -> bool:
    """Whether the server is new enough."""
    return connection.info.server_version >= OLDEST_SERVER * 10000


def backend(connection: Connection) -> int:
    """The server process that answers now."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return -1 if row is None else int(row[0])


def is_pooled(connection: Connection) -> bool:
    """Whether a pooler is in between: its greeting names another process than the server does."""
    return backend(connection) != connection.info.backend_pid


@contextlib.contextmanager
def explained_errors(address: Address) -> Iterator[None]:
    """Turn errors of PostgreSQL into a `JournalError` that says what to do."""
    try:
        yield
    except QuarterdeckError:
        raise
    except psycopg.Error as error:
        raise explain_error(error, address) from error
    except OSError as error:
        raise JournalError(f"the journal {address}: {error}") from error


def is_lost(error: psycopg.Error, connection: Connection | None) -> bool:
    """Whether the connection is gone, and another one may work."""
    ended = (
        errors.AdminShutdown,
        errors.CrashShutdown,
        errors.CannotConnectNow,
        errors.IdleInTransactionSessionTimeout,
        errors.IdleSessionTimeout,
        errors.ConnectionException,
    )
    if isinstance(error, ended) or (connection is not None and connection.closed):
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def is_transient(error: psycopg.Error) -> bool:
    """Whether the same transaction may succeed when it is tried again."""
    again = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
    return isinstance(error, again)


def explain_error(error: psycopg.Error, address: Address) -> JournalError:
    """What an error means, without the password: PostgreSQL does not repeat it."""
    text = " ".join(str(error).split())
    match error:
        case errors.InvalidPassword() | errors.InvalidAuthorizationSpecification():
            return JournalError(
                f"the journal {address}: the database refuses this user or password: look at "
                "the address, and at the file or variable with the password",
                code="refused",
            )
        case errors.InvalidCatalogName():
            return JournalError(
                f"the journal {address}: there is no such database: create it", code="refused"
            )
        case errors.InsufficientPrivilege():
            return JournalError(
                f"the journal {address}: the user has not the rights: it must own the schema "
                f"quarterdeck, or may create it in the database ({text})",
                code="refused",
            )
        case errors.DiskFull() | errors.OutOfMemory():
            return JournalError(
                f"the disk of the journal {address} is full: make room; nothing was stored",
                code="full",
            )
        case errors.LockNotAvailable():
            return JournalError(
                f"the journal {address} is in use by a long transaction, such as a backup: try "
                f"again when that has ended ({text})",
                code="busy",
            )
        case errors.ReadOnlySqlTransaction():
            return JournalError(
                f"the journal {address} is read-only: it is on a standby, or was made read-only; "
                "name the primary server",
                code="refused",
            )
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return JournalError(
                f"the journal {address} is damaged ({text}): restore a backup", code="damaged"
            )
    if (why := _refusal(text)) is not None:
        return JournalError(f"the journal {address}: {why} ({text})", code="refused")
    if is_lost(error, None):
        return JournalError(
            f"the journal {address}: the database does not answer ({text}): look at the server "
            "and the way to it",
            code="away",
        )
    return JournalError(f"the journal {address}: {text}")


_REFUSALS = (
    (r"password authentication failed", "the database refuses this user or password"),
    (r"no password supplied", "the database wants a password: see journal.password_file"),
    (r'role ".*" does not exist', "there is no such user: create it"),
    (r'database ".*" does not exist', "there is no such database: create it"),
    (r"pg_hba\.conf", "the database refuses connections from this host or user"),
    (r"not currently accepting connections", "the database accepts no connections"),
    (r"permission denied for database", "the user may not connect to this database"),
    (
        r"certificate|does not support SSL",
        "the connection with TLS fails: look at sslmode and sslrootcert",
    ),
)
"""What libpq says of a connection that is refused for good. It has no code for that."""


def _refusal(text: str) -> str | None:
    """What to say of a refused connection; None if it was not refused."""
    if not text.startswith("connection "):
        return None  # of an open connection
    return next((why for pattern, why in _REFUSALS if re.search(pattern, text)), None)
