"""The tables of the journal in PostgreSQL, and their versions.

Owns the schema `quarterdeck` of the database. A rolling upgrade works as follows: the newest hub
migrates at its start, under a lock, in one transaction. `journal.compatible` is the oldest version
of a program that can still work with the tables; a migration that only adds leaves it, so an older
hub goes on beside the new one. Every transaction that writes begins with `begin_writing`: it holds
the lock together with other writers, so that no migration runs beside it, and it is refused when
the tables are too new for this program.

Every statement names the schema: nothing depends on a setting of a connection, so that a pooler may
give each transaction another one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

import psycopg

from quarterdeck.domain.errors import JournalError
from quarterdeck.domain.ids import new_id
from quarterdeck.journal.chain import genesis
from quarterdeck.journal.postgres.address import OLDEST_SERVER, Address, Connection, is_supported

IDLE_MS = 2000
"""How long the server waits for the next statement of a transaction before it gives up its locks: a
hub that is stopped must not hold up the others."""

MIGRATION_MS = 10_000
"""How long a migration waits for a table."""

POOLED_MS = 60_000
"""How long a transaction that writes may take behind a pooler."""

NOT_IDLE = f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}"

LOCK = 0x51444A4C
"""The number of the advisory lock under which tables are made. Who writes holds it as shared."""

_BEGIN_WRITING = f"""
BEGIN ISOLATION LEVEL READ COMMITTED;
{NOT_IDLE};
SELECT pg_advisory_xact_lock_shared({LOCK});
SELECT version, compatible, CASE WHEN current_setting('synchronous_commit') = 'off'
  THEN set_config('synchronous_commit', 'on', true) END
FROM quarterdeck.journal
"""  # noqa: S608 - numbers of this module
"""One round trip. The version is read when the lock is held. A commit is on the disk when it
returns, whatever is set in the server."""

MIGRATIONS: Sequence[tuple[str, bool]] = (
    (
        """
        CREATE TABLE quarterdeck.sessions (
          number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          session text COLLATE "C" NOT NULL UNIQUE,
          head bigint NOT NULL DEFAULT 0,
          updated bigint NOT NULL DEFAULT 0,
          said bigint NOT NULL DEFAULT 0,
          sent bigint NOT NULL DEFAULT 0,
          archived boolean NOT NULL DEFAULT false,
          deleted boolean NOT NULL DEFAULT false,
          folded int NOT NULL DEFAULT 0,
          run_machine text COLLATE "C",
          owner text COLLATE "C" NOT NULL DEFAULT '',
          fence bigint NOT NULL DEFAULT 0,
          view bytea
        ) WITH (fillfactor = 70);
        CREATE INDEX ON quarterdeck.sessions (run_machine) WHERE run_machine IS NOT NULL;

        -- The last position, the last seal of the audit log, the last number of fences and
        -- versions. Each writer locks this row last: positions are in the order of
        -- commits, and have no gap.
        CREATE TABLE quarterdeck.ticket (
          position bigint NOT NULL, seal bytea NOT NULL, tick bigint NOT NULL
        ) WITH (fillfactor = 10);

        -- A line of more than 1 MiB is in `blobs`.
        CREATE TABLE quarterdeck.events (
          position bigint PRIMARY KEY,
          session int NOT NULL,
          seq bigint NOT NULL,
          at bigint NOT NULL,
          size int NOT NULL,
          json bytea
        );
        CREATE UNIQUE INDEX ON quarterdeck.events (session, seq);
        CREATE TABLE quarterdeck.blobs (position bigint PRIMARY KEY, json bytea NOT NULL);
        ALTER TABLE quarterdeck.blobs ALTER COLUMN json SET STORAGE EXTERNAL;

        CREATE TABLE quarterdeck.asks (
          opened bigint NOT NULL,
          session int NOT NULL,
          ask text COLLATE "C" NOT NULL,
          settled bigint
        );
        CREATE INDEX ON quarterdeck.asks (ask);
        CREATE INDEX ON quarterdeck.asks (opened);
        CREATE INDEX ON quarterdeck.asks (session);
        CREATE INDEX ON quarterdeck.asks (opened) WHERE settled IS NULL;

        CREATE TABLE quarterdeck.audit (position bigint PRIMARY KEY, session int NOT NULL);
        CREATE INDEX ON quarterdeck.audit (session, position);
        CREATE TABLE quarterdeck.chain (
          position bigint PRIMARY KEY, session int NOT NULL, digest bytea NOT NULL,
          seal bytea NOT NULL
        );
        CREATE TABLE quarterdeck.prompts (
          session int NOT NULL, prompt text COLLATE "C" NOT NULL, PRIMARY KEY (session, prompt)
        );
        CREATE TABLE quarterdeck.snapshots (
          session int PRIMARY KEY, seq bigint NOT NULL, data bytea NOT NULL
        );
        CREATE TABLE quarterdeck.usage (
          slot bigint NOT NULL,
          session int NOT NULL,
          project text COLLATE "C" NOT NULL,
          machine text COLLATE "C" NOT NULL,
          model text COLLATE "C" NOT NULL,
          cost_usd double precision NOT NULL,
          estimated_usd double precision NOT NULL,
          input bigint NOT NULL,
          output bigint NOT NULL,
          cache_read bigint NOT NULL,
          cache_write bigint NOT NULL,
          turns bigint NOT NULL,
          failed bigint NOT NULL,
          tool_calls bigint NOT NULL,
          asks bigint NOT NULL,
          waiting_ms bigint NOT NULL,
          PRIMARY KEY (slot, session, project, machine, model)
        );
        CREATE INDEX ON quarterdeck.usage (session);
        CREATE TABLE quarterdeck.account_limits (
          machine text COLLATE "C" NOT NULL,
          name text COLLATE "C" NOT NULL,
          status text NOT NULL,
          at bigint NOT NULL,
          resets_at bigint,
          used double precision,
          session text NOT NULL,
          PRIMARY KEY (machine, name)
        );

        CREATE TABLE quarterdeck.hubs (
          hub text COLLATE "C" PRIMARY KEY, url text NOT NULL, at bigint NOT NULL
        );
        CREATE TABLE quarterdeck.machines (
          machine text COLLATE "C" PRIMARY KEY, hub text NOT NULL, generation bigint NOT NULL
        );
        CREATE TABLE quarterdeck.leases (
          name text COLLATE "C" PRIMARY KEY, holder text NOT NULL, fence bigint NOT NULL,
          until timestamptz NOT NULL
        );
        CREATE TABLE quarterdeck.shared (
          namespace text COLLATE "C" NOT NULL,
          key text COLLATE "C" NOT NULL,
          value bytea,
          version bigint NOT NULL,
          PRIMARY KEY (namespace, key)
        );

        -- What a group of appends begins with, in one statement: new sessions get their rows, all
        -- rows are locked in their order, the ticket last. A view is sent where the writer has
        -- another one. The last row is the ticket's.
        CREATE FUNCTION quarterdeck.begin_group(
          fresh text[], names text[], heads bigint[], fold int
        ) RETURNS TABLE (
          name text, number int, head bigint, deleted boolean, owner text, fence bigint,
          updated bigint, said bigint, sent bigint, folded int, view bytea,
          last bigint, seal bytea, tick bigint
        ) LANGUAGE plpgsql AS $body$
        BEGIN
          IF fresh <> '{}' THEN
            INSERT INTO quarterdeck.sessions (session)
            SELECT DISTINCT f FROM unnest(fresh) f ORDER BY f ON CONFLICT DO NOTHING;
          END IF;
          RETURN QUERY
          SELECT s.session, s.number, s.head, s.deleted, s.owner, s.fence, s.updated, s.said,
            s.sent, s.folded,
            CASE WHEN s.head <> w.known OR s.folded <> fold THEN s.view END,
            NULL::bigint, NULL::bytea, NULL::bigint
          FROM unnest(names, heads) w (name, known)
          JOIN quarterdeck.sessions s ON s.session = w.name
          ORDER BY s.number FOR UPDATE OF s;
          RETURN QUERY
          SELECT NULL::text, NULL::int, NULL::bigint, NULL::boolean, NULL::text, NULL::bigint,
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::int, NULL::bytea,
            t.position, t.seal, t.tick
          FROM quarterdeck.ticket t FOR UPDATE;
        END
        $body$;
        """,
        True,
    ),
    (
        """
        -- Hubs ask a few times a second what was changed in a namespace.
        CREATE INDEX shared_by_version ON quarterdeck.shared (namespace, version);
        """,
        False,
    ),
)
"""Each entry makes a version from the one before, and tells whether older programs must end first.

Released entries never change.
"""

_MAKE = """
CREATE TABLE quarterdeck.journal (
  version int NOT NULL,
  compatible int NOT NULL,
  epoch text NOT NULL,
  made bigint NOT NULL,
  database text NOT NULL
)
"""


def set_up(
    connection: Connection, address: Address, migrations: Sequence[tuple[str, bool]] = MIGRATIONS
) -> str:
    """Make or migrate the tables, and return the epoch. Raises `JournalError`, `psycopg.Error`."""
    check_server(connection, address)
    if (epoch := _present_epoch(connection, len(migrations))) is not None:
        return epoch  # there is nothing to change, and no writer waits for the lock
    with connection.transaction():
        # All writers wait for the lock meanwhile, so a backup that runs is not waited for.
        connection.execute(f"SET LOCAL lock_timeout = {MIGRATION_MS}".encode())
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        if not _exists(connection, "journal"):
            _make(connection, address)
        version, compatible = _versions(connection, address)
        if compatible > len(migrations):
            raise too_old(address, version, len(migrations))
        for number, (script, breaking) in enumerate(migrations[version:], version + 1):
            connection.execute(script.encode(), prepare=False)
            compatible = number if breaking else compatible
            connection.execute(
                "UPDATE quarterdeck.journal SET version = %s, compatible = %s", (number, compatible)
            )
        epoch = _epoch(connection)
        if version == 0:
            connection.execute(
                "INSERT INTO quarterdeck.ticket VALUES (0, %s, 0)", (genesis(epoch),)
            )
        return epoch


def begin_writing(connection: Connection, address: Address) -> None:
    """Begin a transaction that writes. Raises `JournalError` if the tables are too new for this
    program, `psycopg.Error`.
    """
    with connection.cursor() as cursor:
        cursor.execute(_begin(connection), prepare=False)
        cursor.set_result(-1)
        row = cursor.fetchone()
    if row is None:
        raise _empty(address)
    if row[1] > len(MIGRATIONS):
        raise too_old(address, row[0], len(MIGRATIONS))


def _begin(connection: Connection) -> bytes:
    # Behind a pooler no statement is prepared. While one is sent in several messages, the limit
    # of `NOT_IDLE` does not hold, and only newer servers have another one.
    pooled = connection.prepare_threshold is None
    limited = pooled and connection.info.server_version >= 170000
    limit = f"SET LOCAL transaction_timeout = {POOLED_MS};" if limited else ""
    return _BEGIN_WRITING.replace("SELECT", f"{limit}SELECT", 1).encode()


@contextlib.contextmanager
def open_transaction(connection: Connection, address: Address) -> Iterator[None]:
    """A transaction that writes, around the block."""
    try:
        begin_writing(connection, address)
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise


def too_old(address: Address, version: int, known: int) -> JournalError:
    """The error of a program that is too old for the tables."""
    return JournalError(
        f"the journal {address} was changed by a newer Quarterdeck (schema {version}, this one "
        f"knows {known}): upgrade this hub, and start it again; it stores nothing any more",
        code="newer",
    )


def check_server(connection: Connection, address: Address) -> None:
    """Refuse a server that is too old or read-only, or has another encoding.

    Raises `JournalError`.
    """
    if not is_supported(connection):
        major = connection.info.server_version // 10000
        raise JournalError(
            f"the journal {address}: PostgreSQL {OLDEST_SERVER} or newer is needed, not {major}",
            code="refused",
        )
    row = connection.execute(
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',"
        " current_setting('server_encoding')"
    ).fetchone()
    standby, read_only, encoding = row or (False, False, "")
    if standby:
        raise JournalError(
            f"the journal {address} is on a standby, which is read-only: name the primary server",
            code="refused",
        )
    if read_only:
        raise JournalError(
            f"the journal {address} is read-only for this user: default_transaction_read_only is "
            "on in the server, for the database or for the user",
            code="refused",
        )
    if encoding != "UTF8":
        raise JournalError(
            f"the journal {address} is in a database with the encoding {encoding}, and UTF8 is "
            "needed: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
            code="refused",
        )


def identity(connection: Connection) -> str:
    """Which database this is: its system and timeline. A restored one, or one that took over from
    another, has another identity: events that were acknowledged may be missing there.
    """
    # The control file learns of a new timeline at the next checkpoint, so the log tells it. A
    # standby cannot name its place in the log; nothing can be stored there.
    row = connection.execute(
        "SELECT s.system_identifier || '.' || CASE WHEN pg_is_in_recovery() THEN c.timeline_id"
        " ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END"
        " || '.' || d.oid"
        " FROM pg_control_system() s, pg_control_checkpoint() c, pg_database d"
        " WHERE d.datname = current_database()"
    ).fetchone()
    return "" if row is None else str(row[0])


def _make(connection: Connection, address: Address) -> None:
    row = connection.execute("SELECT to_regnamespace('quarterdeck') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        connection.execute("CREATE SCHEMA quarterdeck")
    elif _exists(connection, "events"):
        raise JournalError(
            f"{address} has a schema quarterdeck of another program: choose another database",
            code="foreign",
        )
    connection.execute(_MAKE)
    connection.execute(
        "INSERT INTO quarterdeck.journal VALUES (0, 0, %s, %s, %s)",
        (new_id(), int(time.time() * 1000), identity(connection)),
    )


def _exists(connection: Connection, table: str) -> bool:
    row = connection.execute("SELECT to_regclass(%s)", (f"quarterdeck.{table}",)).fetchone()
    return row is not None and row[0] is not None


def _versions(connection: Connection, address: Address) -> tuple[int, int]:
    row = connection.execute("SELECT version, compatible FROM quarterdeck.journal").fetchone()
    if row is None:
        raise _empty(address)
    return row[0], row[1]


def _empty(address: Address) -> JournalError:
    return JournalError(
        f"the journal {address} is damaged: its table journal is empty; restore a backup",
        code="damaged",
    )


def _present_epoch(connection: Connection, known: int) -> str | None:
    """The epoch, if the tables are there, are new enough, and are in the same database."""
    if not _exists(connection, "journal"):
        return None
    row = connection.execute(
        "SELECT epoch, database FROM quarterdeck.journal WHERE version >= %s AND compatible <= %s",
        (known, known),
    ).fetchone()
    return str(row[0]) if row is not None and row[1] == identity(connection) else None


def _epoch(connection: Connection) -> str:
    """The epoch; a new one if this is another database than the one that was last used."""
    row = connection.execute("SELECT epoch, database FROM quarterdeck.journal").fetchone()
    epoch, database = ("", "") if row is None else (str(row[0]), str(row[1]))
    if (now := identity(connection)) != database:
        epoch = f"{epoch.partition('.')[0]}.{new_id()}"
        connection.execute("UPDATE quarterdeck.journal SET epoch = %s, database = %s", (epoch, now))
    return epoch
