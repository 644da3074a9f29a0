"""`quarterdeck telegram`: the bot for a hub elsewhere, and codes that pair people with it."""

from __future__ import annotations

from pathlib import Path

import anyio

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub.target import Target, address_of, connect
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import print_line
from quarterdeck.client.calls import send
from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.roles import Role
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.local_hub import person_here
from quarterdeck.service.logs import Logs

ELSEWHERE = "telegram-elsewhere.db"
PEOPLE = (Role.OWNER, Role.OPERATOR, Role.VIEWER)


class _Code(Value):
    code: str
    name: str
    role: str


def run_pair(name: str | None, role: str, target: Target) -> int:
    """Print a code for `/pair`."""
    if target.is_here:
        from quarterdeck.fronts.http import Access

        if role not in PEOPLE:
            raise UsageError(f"--role: one of {', '.join(PEOPLE)}")
        person = name or person_here()
        code = Access(data_home()).make_pairing(person, Role(role))
    else:
        if name is not None or role != Role.OWNER:
            raise UsageError("--name and --role are for the hub of this machine")
        made = connect(target).call(send("POST", "/api/pairing/code", _Code))
        code, person, role = made.code, made.name, made.role
    print_line(code)
    hint = f"For {person}, {role}. Within ten minutes send the bot: /pair {code}"
    consoles.stderr().print(hint, highlight=False, markup=False)
    return Exit.SUCCESS


def run_telegram(target: Target, state: Path | None, config: Path | None) -> int:
    """Run the bot until a signal comes; returns the exit code."""
    if target.is_here:
        raise UsageError(
            "--hub is missing. The hub of this machine runs its bot itself: set token_file and"
            " users in the section [telegram] of its configuration"
        )
    configuration = Configuration(config)
    logs = Logs()
    logs.change(configuration.loaded.settings.log)
    try:
        anyio.run(_run, target, state, configuration)
    finally:
        logs.close()
    return Exit.SUCCESS


async def _run(target: Target, state: Path | None, configuration: Configuration) -> None:
    from quarterdeck.fronts.telegram.front import RunningFront, run_front
    from quarterdeck.fronts.telegram.jobs import Health
    from quarterdeck.fronts.telegram.supervision import keep_running
    from quarterdeck.runtime.clock import Clock
    from quarterdeck.service.service import until_signal
    from quarterdeck.service.telegram import front_settings

    front = front_settings(configuration.loaded.settings, state or data_home() / ELSEWHERE)
    where = address_of(target)
    clock, running = Clock(), RunningFront(health=Health())

    async def run_once() -> None:
        await run_front(where, front, clock=clock, running=running)

    def note_failure(part: str, error: Exception) -> None:
        running.health.note_failure(part, error, clock.now())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_running, "the bot", run_once, clock, note_failure)
        print_line(f"The bot works for {where.base}. Ctrl-C stops it.")
        await until_signal()
        tasks.cancel_scope.cancel()
