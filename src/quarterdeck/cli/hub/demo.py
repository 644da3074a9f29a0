"""`quarterdeck demo`: the hub without an account, leaving nothing behind.

A temporary data folder, and a session that asks for a permission. Every agent of the demo is a
scripted program: no real CLI is started, even if a visitor starts a session or names a CLI, so no
account is used and nothing is spent. Everything else is what `serve` runs.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import Raw

from quarterdeck.cli.terminal.output import print_line
from quarterdeck.fronts.http import Listen, login_link
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.service.local_hub import RUNNER, end_runner
from quarterdeck.service.service import ServeOptions, Service, run_service, until_signal, web_hint
from quarterdeck.testing import fake
from quarterdeck.testing.fake import fake_cli_command

PROMPT = "Write a greeting into hello.txt."
COMMAND = "echo 'Hello from the quarterdeck.' > hello.txt"
NAME = "demo"
DAY = 86400.0


def run_demo(port: int) -> int:
    """Run the demo until a signal comes; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-demo-") as folder:
        anyio.run(_demo, Path(folder), port)
    return 0


async def _demo(folder: Path, port: int) -> None:
    home, work = folder / "data", folder / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    cli = _scripted_cli(folder)
    spec = SessionSpec(directory=str(work), name=NAME)
    try:
        async with run_service(home, ServeOptions(listen=Listen(port=port), claude=cli)) as service:
            prompt = Raw(msgspec.json.encode(PROMPT))
            await service.hub.submit(CreateSession(spec=spec, prompt=prompt, by="demo"))
            _print_address(service)
            await until_signal()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(end_runner, home / RUNNER)
    print_line("The demo has ended, and its data is deleted.")


def _scripted_cli(folder: Path) -> str:
    """A program that behaves like the real CLI, asks for a permission once, and then echoes."""
    call: fake.Line = {"command": COMMAND, "description": "Write the greeting"}
    script = (
        fake.Initialize(),
        fake.Expect("user", timeout=DAY, polite=True),
        fake.say(
            fake.assistant(
                "I am a scripted agent: whatever you ask, I play this one scene. I would now run"
                " a shell command, and need your permission."
            )
        ),
        fake.say(fake.assistant(fake.tool_use("Bash", call))),
        fake.say(fake.can_use_tool("Bash", call)),
        fake.Expect("control_response", timeout=DAY, polite=True),
        fake.say(fake.tool_result("")),
        fake.say(fake.assistant("Thank you. I ran nothing, and from here on I only echo.")),
        fake.say(fake.result("Thank you.")),
        fake.Serve(),
    )
    program = folder / "claude"
    command = fake_cli_command(script, folder=folder, lifetime=DAY)
    # Each process is a conversation of its own, as with the real CLI.
    fresh = "import uuid; print(uuid.uuid4())"
    own_id = f'"$({shlex.join([sys.executable, "-I", "-c", fresh])})"'
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@" --session-id {own_id}\n')
    program.chmod(0o700)
    return str(program)


def _print_address(service: Service) -> None:
    link = login_link(service.address, service.access.make_code())
    program = Path(sys.argv[0])
    attach = [str(program) if program.is_file() else "quarterdeck", "attach", NAME]
    print_line(
        f"The demo is at {service.address}, with a scripted agent.\n"
        f"Open it: {link}\n"
        f"{web_hint()}"
        "Its session asks for a permission. Answer it there, or in another terminal:\n"
        f"  export QUARTERDECK_HOME={shlex.quote(str(service.home))}\n"
        f"  {shlex.join(attach)}\n"
        "Ctrl-C ends the demo."
    )
