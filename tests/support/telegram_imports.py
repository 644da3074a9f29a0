"""A hub with a bot in a process of its own, which says what its event loop had to load.

`python -m support.telegram_imports FOLDER` starts it, pairs a user, has a prompt answered, and
prints the modules that were loaded in the event loop's thread, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import anyio

from quarterdeck.config import Settings
from quarterdeck.config.settings import SandboxDefaults, TelegramSettings
from quarterdeck.fronts.http import Listen, Role
from quarterdeck.protocol.projects import Project
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.service.local_hub import RUNNER, end_runner
from quarterdeck.service.service import ServeOptions, run_service
from quarterdeck.testing import fake
from quarterdeck.testing.fake import fake_cli_command
from quarterdeck.testing.telegram import BotApiServer
from support.bounds import SECONDS

USER = 11


class ImportLog:
    """The modules that are loaded in the thread that made this."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._thread = threading.get_ident()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "import" and threading.get_ident() == self._thread:
            self.names.append(given[0])


async def run(folder: Path) -> list[str]:
    """The modules that the bot's work loaded in the event loop's thread."""
    home = folder / "data"
    make_private(home)
    async with BotApiServer() as server:
        server.sim.add_user(USER)
        options = ServeOptions(
            listen=Listen(host="127.0.0.1", port=0), settings=_settings(folder, server)
        )
        log = ImportLog()
        try:
            async with run_service(home, options) as service:
                await server.wait_for(lambda: server.calls_of("setMyCommands"), SECONDS)
                code = service.access.make_pairing("ada", Role.OWNER)
                server.sim.type(USER, f"/pair {code}")
                await server.wait_for_message(USER, "🤝", timeout=SECONDS)
                server.sim.type(USER, "a **bold** word")
                await server.wait_for_message(USER, "echo: a bold word", timeout=SECONDS)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end_runner, home / RUNNER)
    return log.names


def _settings(folder: Path, server: BotApiServer) -> Settings:
    work, claude, token = folder / "work", folder / "claude", folder / "token"
    work.mkdir()
    token.write_text(server.token)
    command = fake_cli_command([fake.Initialize(), fake.Serve()], folder=folder)
    claude.write_text("#!/bin/sh\nexec " + " ".join(f"'{part}'" for part in command) + ' "$@"\n')
    claude.chmod(0o755)
    return Settings(
        sandbox=SandboxDefaults(mode="off"),
        telegram=TelegramSettings(
            token_file=str(token), users=(USER,), api=server.url, project="web"
        ),
        projects={"web": Project(directory=str(work), claude=str(claude), api_billing=True)},
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(anyio.run(run, Path(sys.argv[1]))))
