"""A real PgBouncer in front of the PostgreSQL of the tests.

It is installed by `tools/install_pgbouncer.py`; a test is skipped where that is not possible. For
root it is started as `nobody`, since it refuses to run as root.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from support.bounds import SECONDS

ROOT = Path(__file__).resolve().parents[2]
NO_PACKAGE = 3
PORT = 6432
"""The name of its socket: it is in a folder of its own."""
CONFIG = """
[databases]
{database} = host={server} user=quarterdeck
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = {mode}
ignore_startup_parameters = extra_float_digits
"""


@cache
def find_pgbouncer() -> Path:
    """The program, which is installed if it is missing."""
    install = [sys.executable, str(ROOT / "tools" / "install_pgbouncer.py")]
    done = subprocess.run(install, check=False, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode == NO_PACKAGE:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@contextmanager
def real_pooler(server: Path, database: str, *, by_transaction: bool) -> Iterator[str]:
    """The address of a database of the server in this folder, through PgBouncer."""
    program = find_pgbouncer()
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    with TemporaryDirectory(prefix="quarterdeck-pool-") as name:
        folder = Path(name)
        mode = "transaction" if by_transaction else "session"
        config = folder / "pgbouncer.ini"
        config.write_text(
            CONFIG.format(database=database, server=server, port=PORT, folder=folder, mode=mode)
        )
        folder.chmod(0o777)
        libraries = ":".join(map(str, program.parents[1].glob("lib/*-linux-gnu")))
        process = subprocess.Popen(
            [str(program), "--quiet", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={"LD_LIBRARY_PATH": libraries},
            user=user,
        )
        try:
            url = f"postgresql://quarterdeck@/{database}?host={folder}&port={PORT}"
            _wait_for(url, process)
            yield url
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                assert process.stderr is not None
                pytest.fail(process.stderr.read().decode())
            time.sleep(0.02)
