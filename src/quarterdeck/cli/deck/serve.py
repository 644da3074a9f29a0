"""`quarterdeck serve`: the whole service in one process, put together here and nowhere else.

Journal, hub, HTTP and the local runner. The runner is a process of its own and outlives us: agents
work on while the hub is stopped, killed or upgraded, and the next hub finds them again.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import msgspec

from quarterdeck import __version__
from quarterdeck.domain.structs import Fact
from quarterdeck.fronts.http import Access, Listen, Role, data_home, login_link, make_app, serve
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.runners import LOCAL
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.runner import spawn_runner

HUB_FILE = "hub.json"
RUNNER_FOLDER = "runner"
RUNNER_TOKEN = "runner.token"  # noqa: S105 - a file's name
STARTED_LINE = "Quarterdeck is at"


class HubState(Fact):
    """Where the hub is, for the commands on this machine."""

    pid: int
    address: str
    version: str


def run_serve(host: str, port: int, certificate: Path | None, key: Path | None) -> int:
    """Serve until a signal comes; gives the exit code."""
    listen = Listen(host=host, port=port, certificate=certificate, key=key)
    anyio.run(_serve, data_home(), listen)
    return 0


async def _serve(home: Path, listen: Listen) -> None:
    access = Access(home)
    journal = await SqliteJournal.open(home / "journal.db")
    try:
        hub = Hub(journal, access.runner_named)
        app = make_app(hub, access, runner_endpoint=hub.runners)
        async with hub.running(), serve(app, listen) as address:
            token = runner_token(home, access)
            state = HubState(pid=os.getpid(), address=address, version=__version__)
            _write_private(home / HUB_FILE, msgspec.json.encode(state))
            await anyio.to_thread.run_sync(
                lambda: spawn_runner(home / RUNNER_FOLDER, _socket(address), token, machine=LOCAL)
            )
            _say_where(address, access)
            await _until_signal()
            going_on = sum(machine.runs for machine in await hub.machines())
    finally:
        await journal.close()
        (home / HUB_FILE).unlink(missing_ok=True)
    _say_goodbye(going_on)


def runner_token(home: Path, access: Access) -> Path:
    """The file with the local runner's token, made when it is not there."""
    file = home / RUNNER_TOKEN
    if not file.exists() or access.runner_named(file.read_text().strip()) is None:
        _write_private(file, access.make_token(LOCAL, Role.RUNNER).encode())
    return file


def _socket(address: str) -> str:
    return "ws" + address.removeprefix("http")


def _write_private(file: Path, data: bytes) -> None:
    """Write a file that only its user can read, all of it or nothing."""
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(data)
    fresh.replace(file)


async def _until_signal() -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            return


def _say_where(address: str, access: Access) -> None:
    sys.stdout.write(f"{STARTED_LINE} {address}\n")
    if not access.has_owner:
        sys.stdout.write(
            f"Log in once, within ten minutes: {login_link(address, access.make_code())}\n"
        )
    sys.stdout.write("Ctrl-C stops the hub; agents go on without it.\n")
    sys.stdout.flush()


def _say_goodbye(going_on: int) -> None:
    agents = "agent goes" if going_on == 1 else "agents go"
    text = f"The hub has stopped. {going_on} {agents} on; `quarterdeck stop` ends them.\n"
    sys.stdout.write(text if going_on else "The hub has stopped. No agent runs.\n")
    sys.stdout.flush()
