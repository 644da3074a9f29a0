"""`quarterdeck demo`: the whole deck without an account, and without a trace.

A scripted model on loopback, a data folder that goes when it ends, the real CLI if one is found and
else the fake one, and a session that asks for a permission. Everything else is what `serve` runs.
"""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import Raw

from quarterdeck.cli.deck.output import print_line
from quarterdeck.cli.deck.place import RUNNER
from quarterdeck.cli.deck.serve import Deck, Serving, running_deck, until_signal
from quarterdeck.cli.deck.stop import end_runner
from quarterdeck.domain.commands import CreateSession
from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.sessions import SessionSpec
from quarterdeck.fronts.http import Listen, login_link
from quarterdeck.links.locate import find_claude
from quarterdeck.testing import ScriptedModel, fake, isolated_env
from quarterdeck.testing.fake import fake_cli_command
from quarterdeck.testing.script import Reply, Text, ToolUse, reply

PROMPT = "Write a greeting into hello.txt."
COMMAND = "echo 'Hello from the quarterdeck.' > hello.txt"
NAME = "demo"
DAY = 86400.0


def run_demo(port: int, *, use_fake: bool) -> int:
    """Show the deck until a signal comes; gives the exit code."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-demo-") as folder:
        anyio.run(_demo, Path(folder), port, use_fake)
    return 0


async def _demo(folder: Path, port: int, use_fake: bool) -> None:
    home, work = folder / "data", folder / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    async with ScriptedModel() as model:
        model.enqueue(*_replies(), when=PROMPT)
        cli = None if use_fake else _real_cli()
        spec = SessionSpec(
            directory=str(work),
            name=NAME,
            claude=cli or _fake_cli(folder),
            env=isolated_env(folder / "home", model.url),
        )
        try:
            async with running_deck(home, Serving(listen=Listen(port=port))) as deck:
                prompt = Raw(msgspec.json.encode(PROMPT))
                command = CreateSession(spec=spec, prompt=prompt, by="demo")
                await deck.hub.submit(command)
                _say(deck, cli)
                await until_signal()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end_runner, home / RUNNER)
    print_line("The demo has ended, and all that it made is gone.")


def _replies() -> list[Reply]:
    call = ToolUse("Bash", {"command": COMMAND, "description": "Write the greeting"})
    return [
        reply(Text("I will write it with a shell command, if you let me.\n"), call),
        reply(Text("It is there. From here on I only echo what you say: I am scripted.")),
    ]


def _real_cli() -> str | None:
    try:
        return find_claude(None)[-1]
    except LaunchError:
        return None


def _fake_cli(folder: Path) -> str:
    """A program that plays what the real one would do."""
    call: fake.Line = {"command": COMMAND, "description": "Write the greeting"}
    script = (
        fake.Initialize(),
        fake.Expect("user", timeout=DAY),
        fake.say(fake.assistant("I would write it with a shell command, if I were real.")),
        fake.say(fake.assistant(fake.tool_use("Bash", call))),
        fake.say(fake.can_use_tool("Bash", call)),
        fake.Expect("control_response", timeout=DAY),
        fake.say(fake.tool_result("")),
        fake.say(fake.assistant("So be it. I only play this scene: from here on I echo.")),
        fake.say(fake.result("So be it.")),
        fake.Serve(),
    )
    program = folder / "claude"
    command = fake_cli_command(script, folder=folder, lifetime=DAY)
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    program.chmod(0o700)
    return str(program)


def _say(deck: Deck, cli: str | None) -> None:
    link = login_link(deck.address, deck.access.make_code())
    print_line(
        f"The demo is at {deck.address}, with a scripted model and {cli or 'a fake CLI'}.\n"
        f"Open it: {link}\n"
        "Its session asks for a permission. Answer it in another terminal:\n"
        f"  export QUARTERDECK_HOME={shlex.quote(str(deck.home))}\n"
        f"  quarterdeck attach {NAME}\n"
        "Ctrl-C ends all of it."
    )
