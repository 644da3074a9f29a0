"""A hub in a process of its own, with a data folder of its own, and the commands around it."""

from __future__ import annotations

import json
import secrets
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import Process

from quarterdeck.cli.hub.policy_client import PolicyClient
from quarterdeck.client.calls import HubAddress
from quarterdeck.protocol.views import SessionShape
from quarterdeck.runner import live_runner
from quarterdeck.service.local_hub import live_hub, own_token
from support.bounds import SECONDS
from support.command_line import Done, Quarterdeck
from support.forks import WORKER, Forks
from support.processes import Processes

TESTS = Path(__file__).parent.parent


class ServedDeck:
    """`quarterdeck serve`, started and stopped as a person would; and the other commands."""

    def __init__(
        self, command: Quarterdeck, processes: Processes, forks: Forks | None = None
    ) -> None:
        self.command = command
        self.forks = forks
        """What hubs are forked from; without it each is a process that loads everything."""
        self.data = command.home / "data"
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.hub: Process | None = None
        self.said = ""
        self._processes = processes
        self._worker: Process | None = None
        command.env |= {"QUARTERDECK_HOME": str(self.data), "PYTHONUNBUFFERED": "1"}

    async def __call__(self, *arguments: str, stdin: str = "", code: int = 0) -> Done:
        """Run a command to its end."""
        if self._worker is None:
            self._worker = await self._start_worker()
            self._processes.started(self._worker.pid)
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        request = json.dumps({"arguments": arguments, "stdin": stdin})
        answer = b""
        with anyio.fail_after(SECONDS):
            await self._worker.stdin.send(request.encode() + b"\n")
            while not answer.endswith(b"\n"):
                answer += await self._worker.stdout.receive()
        found, out, err = json.loads(answer)
        assert found == code, (arguments, out, err)
        assert "Traceback" not in err, err
        return Done(found, out.encode(), err.encode())

    async def _start_worker(self) -> Process:
        if self.forks is not None:
            return await self.forks.start(WORKER, self.command.env, self.command.work)
        return await anyio.open_process(
            [sys.executable, "-m", "support.command_worker"],
            env=self.command.env | {"PYTHONPATH": str(TESTS)},
            cwd=self.command.work,
            stderr=None,
        )

    async def leave(self) -> None:
        """The test is over: nothing of ours goes on."""
        self.adopt()
        for process in self.command.left_running:  # also those that a test has killed
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.terminate()
            with anyio.fail_after(SECONDS):
                await process.aclose()
        if self._worker is not None:
            assert self._worker.stdin is not None
            await self._worker.stdin.aclose()
            with anyio.fail_after(SECONDS):
                await self._worker.wait()
            await self._worker.aclose()

    async def serve(self, *arguments: str) -> str:
        """Start the hub; gives what it said until it was there."""
        line = ("serve", "--port", str(self.port), *arguments)
        if self.forks is None:
            self.hub = await self.command.start(*line)
        else:
            self.hub = await self.forks.start(line, self.command.env, self.command.work)
            self._processes.started(self.hub.pid)
            self.command.left_running.append(self.hub)
        self.said = ""
        await self.hear("Ctrl-C stops the hub")
        self.adopt()
        return self.said

    def adopt(self, folder: str = "runner") -> int | None:
        """Remember the runner of a folder, so that it is ended with the test; gives its pid."""
        state = live_runner(self.data / folder)
        return None if state is None else self._processes.started(state.pid)

    async def hear(self, text: str) -> None:
        """Read what the hub prints, up to this text."""
        assert self.hub is not None
        assert self.hub.stdout is not None
        with anyio.fail_after(SECONDS):
            while text not in self.said:
                try:
                    self.said += (await self.hub.stdout.receive()).decode()
                except anyio.EndOfStream:
                    raise AssertionError(f"no {text!r} in {self.said!r}") from None

    async def ends(self) -> int:
        """Wait for the end of the hub; its last words are in `said`."""
        assert self.hub is not None
        assert self.hub.stdout is not None
        with anyio.fail_after(SECONDS):
            async for chunk in self.hub.stdout:
                self.said += chunk.decode()
            return await self.hub.wait()

    async def new(self, *arguments: str) -> str:
        """Make a session with the real CLI; gives its id."""
        done = await self("new", "--api-billing", str(self.command.work), *arguments)
        return done.out.strip()

    @property
    def client(self) -> PolicyClient:
        """The API, as the commands of this user see it; with what it says of the policy."""
        state = live_hub(self.data)
        assert state is not None
        return PolicyClient(HubAddress(address=state.address, token=own_token(self.data)))

    async def until(self, session: str, wanted: Callable[[SessionShape], bool]) -> SessionShape:
        """Wait until a session is as wanted; gives it."""
        client = self.client
        with anyio.fail_after(SECONDS):
            while True:
                shape = await anyio.to_thread.run_sync(client.session, session)
                if wanted(shape):
                    return shape
                await anyio.sleep(0.05)

    async def until_state(self, session: str, state: str) -> SessionShape:
        """Wait until a session is in a state; gives it."""
        return await self.until(session, lambda shape: shape.state == state)


async def until_true(condition: Callable[[], bool]) -> None:
    """Look again and again until something has become true."""
    with anyio.fail_after(SECONDS):
        while not condition():  # noqa: ASYNC110 - other processes make it true
            await anyio.sleep(0.02)


OFFERED = range(20_000, 32_000)
"""Ports that the system gives to no client, which could take one before the hub has it."""


def free_port() -> int:
    """A port that nobody listens on."""
    for port in secrets.SystemRandom().sample(OFFERED, 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")
