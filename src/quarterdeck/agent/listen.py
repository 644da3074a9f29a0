"""Links to CLIs that dial us.

A `Listener` is a WebSocket server for one CLI after another, up to 2.1.120 (newer ones refuse to
dial). The CLI is started elsewhere with `command`, or here with `launch`. The link is given to an
`Agent`::

    async with listen() as listener:
        print(shlex.join(listener.command()))
        async with Agent(link=await listener.accept()) as agent:
            ...
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

import anyio
import msgspec
from anyio.abc import TaskGroup

from quarterdeck.agent.options import Options
from quarterdeck.agent.start import start_link
from quarterdeck.claude.launch import ArgumentFiles, Launch, to_argv
from quarterdeck.domain.errors import LinkClosed, LinkRefused, UsageError
from quarterdeck.links.base import Dropped, Link, Resumed
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.links.websocket.accept import CliEndpoint, LinkAccess, serve_endpoint
from quarterdeck.links.websocket.link import WebSocketLink
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.wire import codec
from quarterdeck.wire.messages import Result
from quarterdeck.wire.versions import Version

ACCEPT_SECONDS = 60.0
"""How long a CLI that was started may take to dial; the slowest real one takes 2 s."""

_INPUT_SECONDS = 0.5
"""A CLI that dials does not read its stdin. It was told on the socket, and 2.1.37, which would dial
again, is not waited for."""

_STDOUT_TAIL = 4096

TOKEN_VARIABLE = "CLAUDE_CODE_SESSION_ACCESS_TOKEN"  # noqa: S105 - the variable's name


class Listener:
    """A server that CLIs dial. Each CLI has its own path and token."""

    def __init__(self, base: str, accesses: dict[str, LinkAccess], tasks: TaskGroup) -> None:
        self._base = base
        self._accesses = accesses
        self._tasks = tasks
        self._current = ""
        self._new_access()

    @property
    def url(self) -> str:
        """The `--sdk-url` of the next CLI."""
        return self._base + self._current

    @property
    def token(self) -> str:
        """The token of the next CLI, for `CLAUDE_CODE_SESSION_ACCESS_TOKEN`."""
        return self._accesses[self._current].token

    def command(self, options: Launch | None = None) -> list[str]:
        """The command line that makes a CLI dial here. The token goes in its environment.

        Raises `UsageError` for options that are not flags: set those of the process (`cwd`, `env`)
        where the command is run, and give the others to the `Agent`.
        """
        if isinstance(options, Options):
            if beyond := options.beyond_flags():
                raise UsageError(
                    f"not flags: {', '.join(beyond)}: give these options to the Agent, and set the"
                    " folder and the environment where the command is run"
                )
            options = options.as_flags()
        launch = msgspec.structs.replace(options or Launch(), sdk_url=self.url)
        return ["env", f"{TOKEN_VARIABLE}={self.token}", "claude", *to_argv(launch)]

    async def accept(self, *, timeout: float = ACCEPT_SECONDS) -> WebSocketLink:
        """Wait for the CLI at `url`. The next one gets another url and another token."""
        link = self._accesses[self._current].link
        with anyio.move_on_after(timeout):
            await link.wait_connected()
            self._new_access()
            return link
        raise LinkRefused(f"no CLI connected to {self.url} within {timeout:g} s")

    async def launch(
        self,
        options: Options,
        *,
        timeout: float = ACCEPT_SECONDS,
        stderr: Callable[[str], None] | None = None,
    ) -> Link:
        """Start a CLI here that dials us. Closing the link ends the process too.

        `stderr` gets each line that the process writes there. An `Agent` over this link knows the
        CLI's version from the start.
        """
        files = ArgumentFiles()
        dialling = msgspec.structs.replace(
            options,
            sdk_url=self.url,
            env={**options.env, TOKEN_VARIABLE: self.token},
            stop=msgspec.structs.replace(options.stop, input=_INPUT_SECONDS),
        )
        try:
            version, process = await start_link(dialling, files, stderr, hooked=True)
        except BaseException:
            files.close()
            raise
        link = _LaunchedLink(self._accesses[self._current].link, process, files, version)
        self._tasks.start_soon(link.watch)
        try:
            await self._accept_launched(link, timeout)
        except BaseException:
            await link.close()
            raise
        return link

    async def _accept_launched(self, link: _LaunchedLink, timeout: float) -> None:
        """Wait for our CLI to dial, but no longer than it runs."""
        accepted = False
        with anyio.CancelScope() as scope:
            link.when_ended(scope.cancel)
            await self.accept(timeout=timeout)
            accepted = True
        link.when_ended(None)
        if not accepted:
            # It may have connected and ended at once; either way this says why it ended.
            self._new_access()
            raise link.closed or LinkRefused("the CLI exited before it connected")

    def _new_access(self) -> None:
        self._current = f"/v1/ws/{uuid4()}"
        self._accesses[self._current] = LinkAccess(WebSocketLink(), secrets.token_urlsafe(32))


class _LaunchedLink:
    """A process that was started here and that dials us: its bytes come by socket."""

    def __init__(
        self,
        link: WebSocketLink,
        process: SubprocessLink,
        files: ArgumentFiles,
        version: Version | None,
    ) -> None:
        self.version = version
        self._link = link
        self._process = process
        self._files = files
        self._on_end: Callable[[], None] | None = None
        self.closed: LinkClosed | None = None

    @property
    def resumable(self) -> bool:
        return True

    async def receive(self) -> bytes | Dropped | Resumed:
        return await self._link.receive()

    async def send(self, data: bytes) -> None:
        await self._link.send(data)

    async def end_input(self) -> None:
        await self._link.end_input()

    async def close(self) -> None:
        await self._link.close()
        await self._process.close()
        self._files.close()

    async def watch(self) -> None:
        """Wait for the process to end, and end the link with it.

        Its stdout is read as well: start-up errors are written there as a result, and never to the
        socket.
        """
        said = b""
        try:
            while True:
                said = (said + await self._process.receive())[-_STDOUT_TAIL:]
        except LinkClosed as closed:
            text = _stdout_text(said)
            self.closed = closed.copy(text) if text else closed
            self._link.fail(self.closed)
            if self._on_end is not None:
                self._on_end()

    def when_ended(self, function: Callable[[], None] | None) -> None:
        """Call `function` when the process has ended, or now if it has; None calls nothing."""
        self._on_end = function
        if self.closed is not None and function is not None:
            function()


def _stdout_text(said: bytes) -> str:
    """The stdout of a CLI that dials: the errors of a result, or the text itself."""
    last = said.strip().rpartition(b"\n")[2]
    message = codec.from_cli(last) if last else None
    if isinstance(message, Result) and message.errors:
        return "; ".join(message.errors)
    text = said.decode("utf-8", "replace").strip()
    return f"Its output: {text}" if text else ""


@asynccontextmanager
async def listen(host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Listener]:
    """Listen for CLIs that dial while the block runs, on a free port by default."""
    accesses: dict[str, LinkAccess] = {}
    async with (
        background_tasks() as tasks,
        serve_endpoint(CliEndpoint(accesses.get), host, port) as bound,
    ):
        yield Listener(f"ws://{host}:{bound}", accesses, tasks)
