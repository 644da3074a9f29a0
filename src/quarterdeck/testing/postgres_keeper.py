"""Keeps a PostgreSQL server for tests: a program of its own, of the standard library only.

Owns the server's folder and process. It obeys lines on its input (`start`, `kill`, `stop`), answers
each with one line, and ends with its input: then the server is stopped and the folder removed. So a
test run that is killed leaves no server behind. Started by `quarterdeck.testing.postgres`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 60.0


class Keeper:
    """The server of one folder."""

    def __init__(self, programs: Path, folder: Path, user: int | None, settings: list[str]) -> None:
        self._programs = programs
        self._folder = folder
        self._user = user
        self._settings = settings
        self._server: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """Make the folder of the server."""
        if self._user is not None:
            os.chown(self._folder, self._user, -1)
        self._run(
            "initdb", "--pgdata", str(self._folder / "data"), "--username", "quarterdeck",
            "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync",
            "--no-instructions",
        )  # fmt: skip

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        options = [part for setting in self._settings for part in ("-c", setting)]
        with (self._folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [
                    str(self._programs / "postgres"),
                    *("-D", str(self._folder / "data"), "-k", str(self._folder)),
                    *("-c", "listen_addresses=", *options),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self._folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + SECONDS
        status = self._folder / "data" / "postmaster.pid"
        while time.monotonic() < deadline and self._server.poll() is None:
            lines = status.read_text().splitlines() if status.exists() else []
            ready = len(lines) > 7 and lines[7].strip() in {"ready", "standby"}
            if ready and int(lines[0]) == self._server.pid:
                return
            time.sleep(0.02)
        raise RuntimeError(f"PostgreSQL does not start: {self._last_words()}")

    def stop(self, how: int = signal.SIGQUIT) -> None:
        """End the server and wait. SIGKILL: with all that it started, as if the power failed."""
        if self._server is None:
            return
        children: list[int] = []
        if how == signal.SIGKILL:
            _signal(self._server.pid, signal.SIGSTOP)  # it starts no other one meanwhile
            children = _children(self._server.pid)
            for pid in children:
                _signal(pid, signal.SIGKILL)
        _signal(self._server.pid, how)
        self._server.wait(SECONDS)
        deadline = time.monotonic() + SECONDS
        while any(map(_runs, children)) and time.monotonic() < deadline:
            time.sleep(0.005)
        self._server = None
        if how == signal.SIGKILL:  # of the dead server, for a dead process id
            (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            check=False,
            capture_output=True,
            user=self._user,
            cwd=self._folder,
            timeout=SECONDS,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')}")

    def _last_words(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-2000:]


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(each) for each in text.split()]


def _runs(pid: int) -> bool:
    """Whether it still has its memory: a zombie has none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def main(arguments: list[str]) -> None:
    """Serve until the input ends."""
    programs, folder, user, *settings = arguments
    keeper = Keeper(Path(programs), Path(folder), int(user) if user else None, settings)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    steps: dict[str, Callable[[], None]] = {
        "make": keeper.make,
        "start": keeper.start,
        "stop": keeper.stop,
        "kill": lambda: keeper.stop(signal.SIGKILL),
    }
    try:
        for line in sys.stdin:
            try:
                steps[line.strip()]()
                answer = "ok"
            except Exception as error:  # noqa: BLE001 - the caller shows it
                answer = repr(error)
            print(answer, flush=True)  # noqa: T201 - the answer
    finally:
        keeper.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
