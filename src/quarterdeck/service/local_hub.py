"""The data folder, as the commands on this machine use it: the hub, the runner, their tokens.

Owns the names of the shared files, the lock of the hub, and the token of this machine's commands.
The hub keeps that token valid: it may run for longer, and clients cannot make one. `serve`, `stop`,
`status` and `target` are above; it starts nothing.

    hub.lock      locked while a hub serves from this folder
    hub.json      the address of that hub
    journal.db    the journal; search.db is its index, and can be rebuilt
    cli.token     the token of this user's commands
    cli.secret    derives the tokens of CLIs that dial the hub themselves
    cli-tokens.json  which of them were used, and which were revoked
    runner.token  the token of the local runner
    program.token the token of this user's programs (`quarterdeck-claude`)
    tls/          the certificate authority of this machine, with `serve --tls auto`
    runner/       the local runner's folder
    far-runner/   the folder of a runner for a hub elsewhere
"""

from __future__ import annotations

import fcntl
import getpass
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck.domain.errors import Conflict, Forbidden
from quarterdeck.policy.facts import Private
from quarterdeck.runtime.agent_process import refuse_agents
from quarterdeck.runtime.files import lock_file, replace_file
from quarterdeck.runtime.local_hub import (
    CLI_TOKEN,
    HUB_FILE,
    HUB_LOCK,
    HubState,
    live_hub,
    read_state,
)
from quarterdeck.runtime.processes import ProcessId, still_alive

__all__ = [
    "CLI_SECRET",
    "CLI_TOKEN",
    "CLI_TOKENS",
    "FAR_RUNNER",
    "HUB_FILE",
    "HUB_LOCK",
    "JOURNAL",
    "RUNNER",
    "RUNNER_TOKEN",
    "SEARCH",
    "TLS_FOLDER",
    "HubState",
    "agents_in",
    "end_process",
    "end_runner",
    "hub_lock",
    "live_hub",
    "own_token",
    "person_here",
    "private_in",
]

CLI_SECRET, RUNNER_TOKEN = "cli.secret", "runner.token"
CLI_TOKENS = "cli-tokens.json"
TOKEN_SECONDS = 30 * 86400.0
"""How long the token of this machine's commands is valid. Commands renew it before it ends."""
RENEW_SECONDS = 7 * 86400.0
JOURNAL, SEARCH = "journal.db", "search.db"
RUNNER, FAR_RUNNER = "runner", "far-runner"
TLS_FOLDER = "tls"
GENTLY_SECONDS = 20.0
"""A CLI needs a few seconds to end its shells and to finish its transcript."""
HURRY_SECONDS = 10.0


def private_in(home: Path, *fixed: Path) -> Private:
    """What agents must not touch: the data folder, by its name and behind links.

    Worktrees are in it, and agents work there. `fixed` are files that they may only read.
    """
    places = dict.fromkeys((home.absolute(), home.resolve()))
    return Private(
        folders=tuple(str(place) for place in places),
        open=tuple(
            str(place / runner / "worktrees") for place in places for runner in (RUNNER, FAR_RUNNER)
        ),
        fixed=tuple(str(file.absolute()) for file in fixed),
    )


@contextmanager
def hub_lock(home: Path) -> Iterator[None]:
    """Serve from this folder. Raises `Conflict` when another hub does."""
    file = os.open(home / HUB_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not lock_file(file, fcntl.LOCK_EX):
            state = read_state(home)
            where = f" at {state.address}, process {state.pid}" if state else ""
            raise Conflict("hub_is_there", f"a hub already serves from {home}{where}")
        try:
            yield
        finally:
            (home / HUB_FILE).unlink(missing_ok=True)
    finally:
        os.close(file)


def agents_in(folder: Path) -> list[ProcessId]:
    """The living CLI processes of a runner's folder."""
    from quarterdeck.runner.home import Home  # most commands do not need the runner

    left = Home(folder).leftover_runs()
    return sorted(
        still_alive(ProcessId(record.pid, record.born) for record in left if record.born),
        key=lambda process: process.pid,
    )


def own_token(home: Path) -> str:
    """The token of this machine's commands; created if it is missing, invalid or about to expire.

    Raises `AgentRefused` in an agent's process: the token belongs to a person.
    """
    refuse_agents("the token of this machine's commands")
    from quarterdeck.fronts.http.tokens import Kind, TokenFile
    from quarterdeck.protocol.roles import Role

    tokens = TokenFile(home)
    file = home / CLI_TOKEN
    if file.exists():
        token = file.read_text().strip()
        # A token contains the id of its grant: qd_GRANT_SECRET.
        known = next((grant for grant in tokens.grants() if f"_{grant.id}_" in token), None)
        soon = time.time() + RENEW_SECONDS
        if known is not None and known.expires is not None and known.expires > soon:
            return token
        if known is not None and known.expires is None:
            tokens.revoke(known.id)  # one of an older version, which would never end
    token = tokens.make(person_here(), Role.OWNER, Kind.TOKEN, seconds=TOKEN_SECONDS)
    replace_file(file, token.encode())
    return token


def person_here() -> str:
    """The name of this user's commands in the journal."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        return "terminal"
    return name[:40] if name.isprintable() and name.strip() else "terminal"


def end_runner(folder: Path) -> bool:
    """End the runner of a folder with all its agents; False if it did not end. Blocks."""
    from quarterdeck.runner.home import live_runner

    living = live_runner(folder)
    return living is None or end_process(living.pid, lambda: live_runner(folder) is None)


def end_process(pid: int, gone: Callable[[], bool]) -> bool:
    """Send SIGTERM, and once more after a while; False if the process did not end. Blocks."""
    for seconds in (GENTLY_SECONDS, HURRY_SECONDS):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if gone():
                return True
            time.sleep(0.05)
    return gone()


CHECK_SECONDS = 86400.0

log = logging.getLogger(__name__)


async def have_own_token(home: Path) -> None:
    """Have a valid token in the data folder, before others find the hub."""
    try:
        await anyio.to_thread.run_sync(own_token, home)
    except (Forbidden, OSError) as error:
        log.warning("there is no token for programs on this machine: %s", error)


async def keep_own_token(home: Path) -> None:
    """Have one, until it is cancelled."""
    while True:
        await anyio.sleep(CHECK_SECONDS)
        await have_own_token(home)
