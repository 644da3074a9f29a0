"""A hub in a process of its own, and programs of the official SDK beside it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process

from quarterdeck.testing.clis import RealCli
from quarterdeck.testing.model import ScriptedModel
from support.bounds import SECONDS
from support.command_line import Quarterdeck
from support.forks import Forks
from support.processes import Processes
from support.served_deck import ServedDeck

PROGRAMS = Path(__file__).parent / "programs"
OURS = Path(sys.executable).parent / "quarterdeck-claude"


class Running:
    """A program that runs."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.said = ""

    async def hear(self, text: str) -> None:
        """Read what it prints, up to this text."""
        assert self.process.stdout is not None
        with anyio.fail_after(SECONDS):
            while text not in self.said:
                try:
                    self.said += (await self.process.stdout.receive()).decode()
                except anyio.EndOfStream:
                    raise AssertionError(f"no {text!r} in {self.said!r}") from None

    async def end(self, seconds: float = SECONDS) -> str:
        """Wait for its end; gives what it printed."""
        assert self.process.stdout is not None
        with anyio.fail_after(seconds):
            with suppress(anyio.EndOfStream):
                while True:
                    self.said += (await self.process.stdout.receive()).decode()
            await self.process.wait()
        return self.said


class Programs:
    """Starts programs: each with a folder of its own, as a fork that has loaded the SDK."""

    def __init__(self, deck: ServedDeck, claude: str, processes: Processes, forks: Forks) -> None:
        self.deck = deck
        self.claude = claude
        self._forks = forks
        self._processes = processes
        self._started: list[Process] = []

    async def start(self, *words: str, cli: str | None = str(OURS), **env: str) -> Running:
        """Start a program of the folder `programs`, with the CLI that is named."""
        name, *arguments = words
        return await self.run([str(PROGRAMS / name), *arguments], cli=cli, folder=None, **env)

    async def run(
        self,
        command: list[str],
        *,
        cli: str | None = str(OURS),
        folder: Path | None = None,
        **env: str,
    ) -> Running:
        """Start any program of Python, in a folder of its own."""
        if folder is None:
            folder = self.deck.command.work / f"program-{len(self._started)}"
            folder.mkdir(parents=True)
        process = await self._forks.start(
            command,
            cwd=folder,
            merged=True,
            env={
                **self.deck.command.env,
                "PYTHONPATH": str(PROGRAMS.parents[1]),
                "PYTHONUNBUFFERED": "1",
                "CLI_UNDER_TEST": cli or "",
                "QUARTERDECK_CLAUDE": self.claude,
                "PATH": os.pathsep.join([str(OURS.parent), self.deck.command.env["PATH"]]),
                **env,
            },
        )
        self._processes.started(process.pid)
        self._started.append(process)
        return Running(process)

    async def close(self) -> None:
        """Nothing goes on."""
        for process in self._started:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.terminate()
            with anyio.fail_after(SECONDS):
                await process.aclose()


def deny_by_policy(programs: Programs, command: str, message: str) -> None:
    """Have the hub deny a command. Call it before the hub is started."""
    policy = programs.deck.command.home / "policy.toml"
    policy.write_text(
        'default = "cli"\n[[rule]]\nname = "denied"\nverdict = "deny"\n'
        f"command = {json.dumps(command)}\nmessage = {json.dumps(message)}\n"
    )
    programs.deck.command.env["QUARTERDECK_POLICY_FILE"] = str(policy)


def deny_by_hook(programs: Programs, command: str, said: str, message: str) -> None:
    """Have the CLI alone deny a command from now on, as a policy did: by a hook of its user.

    `said` is what a program printed of that; the hook gives the same reason.
    """
    found = re.search(rf"{message} \(denied \(policy\.toml:\d+\): [^)]*\)", said)
    assert found is not None, said
    home = programs.deck.command.home
    denial = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": found[0],
    }
    (home / "denial.json").write_text(json.dumps({"hookSpecificOutput": denial}))
    script = f"grep -qF {shlex.quote(command)} && cat {home}/denial.json; exit 0"
    hook = {"type": "command", "command": script}
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}
    settings.write_text(json.dumps({"hooks": hooks}))


@pytest.fixture
async def programs(
    tmp_path: Path,
    model: ScriptedModel,
    clis: dict[str, RealCli],
    processes: Processes,
    hubs_to_fork: Forks,
    programs_to_fork: Forks,
) -> AsyncIterator[Programs]:
    """Programs, and a hub that is not started yet."""
    newest = clis["2.1.325"].command
    command = Quarterdeck(tmp_path, model.url, newest, processes)
    deck = ServedDeck(command, processes, hubs_to_fork)
    made = Programs(deck, newest[-1], processes, programs_to_fork)
    yield made
    await made.close()
    await deck.leave()
    command.close()
