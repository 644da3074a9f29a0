"""`quarterdeck demo`: the hub without an account, leaving nothing behind.

A temporary data folder, and six sessions in different states (`demo_scenes`). Every agent of the
demo is a scripted program: no real CLI is started, even if a visitor starts a session or names a
CLI, so no account is used and nothing is spent. Everything else is what `serve` runs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import Raw

from quarterdeck.cli.hub import demo_scenes as scenes
from quarterdeck.cli.terminal.output import print_line
from quarterdeck.fronts.http import Listen, login_link
from quarterdeck.protocol.commands import AnswerAsk, CreateSession, PlanAnswer
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.service.local_hub import RUNNER, end_runner
from quarterdeck.service.service import ServeOptions, Service, run_service, until_signal, web_hint
from quarterdeck.testing import fake
from quarterdeck.testing.fake import fake_cli_command

VISITOR = "ada"
SCENE = "QUARTERDECK_DEMO_SCENE"
"""The variable that tells the scripted program which scene it plays."""
MODULES = 24
SETTLED = 20.0
"""Seconds that a scene may take until it stands; a slower machine shows it a little later."""
_STANDING = (SessionState.WAITING, SessionState.ENDED)


def run_demo(port: int) -> int:
    """Run the demo until a signal comes; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-demo-") as folder:
        anyio.run(_demo, Path(folder), port)
    return 0


async def _demo(folder: Path, port: int) -> None:
    async with running_scenes(folder, port) as service:
        _print_address(service)
        await until_signal()
    print_line("The demo has ended, and its data is deleted.")


@asynccontextmanager
async def running_scenes(
    folder: Path, port: int, played: Sequence[scenes.Scene] = scenes.SCENES
) -> AsyncIterator[Service]:
    """The service with these sessions, all of it below this folder."""
    home, work = folder / "data", folder / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    cli = _scripted_cli(folder, played)
    try:
        async with run_service(home, ServeOptions(listen=Listen(port=port), claude=cli)) as service:
            for scene in played:
                await _start(service, work, scene)
            yield service
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(end_runner, home / RUNNER)


async def _start(service: Service, work: Path, scene: scenes.Scene) -> None:
    place = work / scene.folder
    place.mkdir(exist_ok=True)
    if scene.changes:
        await anyio.to_thread.run_sync(_make_repository, place)
    spec = SessionSpec(
        directory=str(place), name=scene.name, mode=scene.mode, env={SCENE: scene.session}
    )
    prompt = Raw(msgspec.json.encode(scene.prompt))
    await service.hub.submit(
        CreateSession(spec=spec, session=scene.session, prompt=prompt, by=VISITOR)
    )
    with anyio.move_on_after(SETTLED):
        await _until_it_stands(service, scene.session)
        if scene.comments:
            await _send_back(service, scene)
    if scene.changes:
        await anyio.to_thread.run_sync(_change_files, place)


async def _until_it_stands(service: Service, session: str) -> None:
    """Wait until the scene waits for a person, is over, or shows its to-dos."""
    while True:
        shown = service.hub.view(session)
        # It is idle also before its first turn.
        if shown is not None and (
            shown.state in _STANDING or shown.holds.todos or shown.last_turn is not None
        ):
            return
        await anyio.sleep(0.02)


async def _send_back(service: Service, scene: scenes.Scene) -> None:
    """Send the first plan back with comments, and wait for the second."""
    answer = PlanAnswer(choice="revise", feedback=scene.comments)
    (first,) = await _asks_of(service, scene)
    await service.hub.submit(AnswerAsk(ask=first, answer=answer, by=VISITOR))
    while True:
        if await _asks_of(service, scene) not in ([], [first]):
            return
        await anyio.sleep(0.02)


async def _asks_of(service: Service, scene: scenes.Scene) -> list[str]:
    return [ask.opened.ask for ask in await service.hub.asks() if ask.session == scene.session]


def _make_repository(place: Path) -> None:
    """A git repository with modules, as they were before the agent changed them."""
    (place / "prices").mkdir()
    for number in range(1, MODULES + 1):
        (place / "prices" / f"group_{number}.py").write_text(scenes.module_before(number))
    git = shutil.which("git")
    if git is None:
        return  # then there is nothing to compare with, and the files are only there
    # No settings of the visitor: they may sign commits, or run hooks.
    nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "Prices")):
        subprocess.run([git, *who, *words], cwd=place, env={**os.environ, **nothing}, check=True)


def _change_files(place: Path) -> None:
    for number in range(1, MODULES + 1):
        (place / "prices" / f"group_{number}.py").write_text(scenes.module_after(number))
    (place / "prices" / "rounding.py").write_text(scenes.ROUNDING)


def _scripted_cli(folder: Path, played: Sequence[scenes.Scene]) -> str:
    """A program that behaves like the real CLI, and plays the scene that its environment names."""
    plays = "".join(
        f"  {scene.session}) exec {_command(folder, scene.steps)} ;;\n" for scene in played
    )
    program = folder / "claude"
    program.write_text(
        f'#!/bin/sh\ncase "${{{SCENE}:-}}" in\n{plays}'
        f"  *) exec {_command(folder, scenes.OTHER)} ;;\nesac\n"
    )
    program.chmod(0o700)
    return str(program)


def _command(folder: Path, script: tuple[fake.Step, ...]) -> str:
    """The command of a scene. Each process is a conversation of its own, as with the real CLI."""
    fresh = "import uuid; print(uuid.uuid4())"
    own_id = f'"$({shlex.join([sys.executable, "-I", "-c", fresh])})"'
    command = fake_cli_command(script, folder=folder, lifetime=scenes.DAY)
    return f'{shlex.join(command)} "$@" --session-id {own_id}'


def _print_address(service: Service) -> None:
    link = login_link(service.address, service.access.make_code(VISITOR))
    # As it was started: the command may not be on the PATH.
    program = shutil.which(sys.argv[0])
    start = [sys.executable, "-m", "quarterdeck.cli"] if program is None else [program]
    attach = [*start, "attach", scenes.CHECKOUT.name]
    print_line(
        f"The demo is at {service.address}, with six scripted agents.\n"
        f"Open it, with a tour: {link.replace('/login#', '/login?tour#')}\n"
        f"{web_hint()}"
        "Three of them wait for you. Answer there, or in another terminal:\n"
        f"  export QUARTERDECK_HOME={shlex.quote(str(service.home))}\n"
        f"  {shlex.join(attach)}\n"
        "Ctrl-C ends the demo."
    )
