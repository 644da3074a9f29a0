"""Two hubs and a runner as processes, started with the commands of the page about several hubs.

The runner's CLI is a fake one that asks one question and then says `Done.`
"""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.command_line import Quarterdeck
from support.forks import Forks
from support.processes import Processes
from support.served_deck import ServedDeck, until_true

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-several-hubs.md"
MODEL = "http://127.0.0.1:9"
"""Where no model is: the fake CLI needs none."""
COMMAND = "make it"


class SeveralHubs:
    """The first hub, which has the runner, and the second one."""

    def __init__(self, first: ServedDeck, second: ServedDeck) -> None:
        self.first, self.second = first, second

    async def create(self) -> str:
        """A session at the runner's machine whose agent asks a question; the second hub passes the
        command to the first one."""
        folder = str(self.first.command.work)
        made = await self.second("new", "--machine", "box", folder, "hello")
        session = made.out.strip()
        await self.second.until(session, lambda shape: bool(shape.asks))
        return session

    async def kill_first(self) -> None:
        """Kill the hub that has the runner, and wait until that has come to the other one."""
        assert self.first.hub is not None
        self.first.hub.kill()
        await self.first.hub.wait()
        await until_true(lambda: any(each.connected for each in self.second.client.machines()))


def typed(command: str) -> str:
    """The line of the page that begins with this command."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    lines = {str(line) for block in blocks for line in block.splitlines()}
    (line,) = (line for line in lines if line.startswith(command))
    return line


@asynccontextmanager
async def several_hubs(
    folder: Path, journal: str, forks: Forks, processes: Processes
) -> AsyncIterator[SeveralHubs]:
    """Both hubs and the runner, with a journal at this address."""
    decks = [
        ServedDeck(Quarterdeck(folder / name, MODEL, ("claude",), processes), processes, forks)
        for name in "ab"
    ]
    first = decks[0]
    given: fake.Line = {"command": COMMAND}
    first.command.play_fake(
        fake.Initialize(),
        fake.Expect("user", polite=True, timeout=SECONDS),
        fake.say(
            fake.assistant(fake.tool_use("Bash", given)), fake.can_use_tool("Bash", given, "ask-1")
        ),
        fake.Expect("control_response", polite=True, timeout=SECONDS),
        fake.say(fake.assistant("Done."), fake.result("Done.")),
        fake.Serve(),
    )
    try:
        for deck in decks:
            await _serve(deck, journal)
        token = await _token(first)
        line = typed("quarterdeck runner").replace("box.token", str(token))
        for name, deck in zip("ab", decks, strict=True):
            line = line.replace(f"https://hub-{name}.example:8765", deck.address)
        runner = await forks.start(shlex.split(line)[1:], first.command.env, first.command.work)
        processes.started(runner.pid)
        try:
            await until_true(lambda: any(each.connected for each in first.client.machines()))
            yield SeveralHubs(*decks)
        finally:
            runner.terminate()
            await runner.aclose()
    finally:
        for deck in decks:
            await deck.leave()
            deck.command.close()


async def _serve(deck: ServedDeck, journal: str) -> None:
    """Start a hub as the page has it, but on loopback, where there is no TLS."""
    for name, said, here in (
        ("URL", "postgresql://deck@db.example/deck", journal),
        ("HUB_ADDRESS", "https://hub-a.example:8765", deck.address),
    ):
        variable = f"QUARTERDECK_JOURNAL_{name}"
        assert typed(f"export {variable}=") == f"export {variable}={said}"
        deck.command.env[variable] = here
    command = "quarterdeck serve --host 0.0.0.0 --certificate hub-a.pem"
    assert typed("quarterdeck serve") == command
    await deck.serve("--no-runner", "--no-login-link")


async def _token(deck: ServedDeck) -> Path:
    """The runner's token, in a file as compose.yaml has it."""
    command = shlex.split(typed("quarterdeck token --role runner"))
    assert command[-2:] == [">", "box.token"]
    secrets = deck.command.work / "secrets"
    secrets.mkdir(mode=0o700)
    token = secrets / "box.token"
    token.write_text((await deck(*command[1:-2])).out)
    token.chmod(0o444)
    return token
