"""The transport: the SDK's six methods over a `Link`.

Converts between the SDK's strings and dicts and the link's bytes, and raises errors that are
also the SDK's, so that a program's handlers still work. It answers no request and changes no
message.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.to_thread
from claude_agent_sdk import ClaudeAgentOptions, Transport

from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import LaunchError, LinkClosed
from quarterdeck.links.base import Dropped, Link, Resumed
from quarterdeck.links.subprocess import StopSteps, SubprocessLink
from quarterdeck.sdk_transport.errors import CliFailed, ConnectionLost, NotFoundError, StartError
from quarterdeck.sdk_transport.launch import SdkLaunch
from quarterdeck.sdk_transport.reconnect import ReconnectState
from quarterdeck.sdk_transport.threads import ThreadedLink, from_loop, is_asyncio
from quarterdeck.wire.line_reader import DEFAULT_MAX_LINE, Line, LineReader, OversizedLine

CLOSE_SECONDS = 30.0
"""The SDK shields the close from cancellation, so it must be bounded. A link's own steps take about
17 s at worst."""

QUIET_SECONDS = 1.0
"""On a link without an end of input: how long after a result no turn may begin for the run to be
over. A prompt that was queued begins its turn within milliseconds."""

SDK_LINE = 1024 * 1024
"""The SDK's default of `max_buffer_size`, which also bounds a line of stderr."""

_log = logging.getLogger(__name__)


class QuarterdeckTransport(Transport):
    """Give it to `query(transport=…)` or `ClaudeSDKClient(transport=…)`; one for each."""

    def __init__(
        self, link: Link | Callable[[], Awaitable[Link]], *, max_line: int = DEFAULT_MAX_LINE
    ) -> None:
        """Use a connected link, or a function that connects one when the SDK connects.

        The transport closes the link when the SDK is done. Options that are flags have no effect on
        a CLI that runs already. `can_use_tool` needs `--permission-prompt-tool stdio` there (stdio
        only), and in-process MCP servers need an `sdk` entry in its `--mcp-config`.
        """
        self._source = link
        self._max_line = max_line
        self._link: Link | None = None
        self._files: ArgumentFiles | None = None
        self._launch: SdkLaunch | None = None
        self._reconnect: ReconnectState | None = None
        self._closed = False
        self._input_ended = False
        self._turn_over = False

    @classmethod
    def for_options(
        cls,
        options: ClaudeAgentOptions,
        *,
        parent_env: Mapping[str, str] | None = None,
        steps: StopSteps | None = None,
    ) -> Self:
        """Start a CLI for these options when the SDK connects; give the SDK the same options.

        The CLI inherits `parent_env`, by default all of this process's environment, because with
        the SDK's own transport it does. Raises `OptionError` for options that it cannot keep, and
        what the SDK raises for those that cannot be right.
        """
        launch = SdkLaunch.for_options(options)
        launch.check()  # report invalid options here, not when the SDK connects
        return cls.for_launch(
            launch, parent_env=os.environ if parent_env is None else parent_env, steps=steps
        )

    @classmethod
    def for_launch(
        cls, launch: SdkLaunch, *, parent_env: Mapping[str, str], steps: StopSteps | None = None
    ) -> Self:
        """Start a CLI for a prepared launch when the SDK connects."""
        files = ArgumentFiles()
        start = partial(_start, launch, parent_env, steps, files)
        size = launch.options.max_buffer_size or 0
        transport = cls(start, max_line=max(DEFAULT_MAX_LINE, size))
        transport._files = files
        transport._launch = launch
        return transport

    @property
    def link(self) -> Link | None:
        """The link, once it is connected."""
        return self._link

    async def connect(self) -> None:
        """Connect the link, if that is not done. Raises the SDK's connection errors."""
        if self._closed:
            raise ConnectionLost("This transport was closed; make a new one.")
        if self._link is None:
            if self._launch is None and not is_asyncio():
                raise ConnectionLost(
                    "A link that is connected already needs asyncio. On trio, use for_options() or"
                    " install()."
                )
            self._link = await self._source() if callable(self._source) else self._source
            self._reconnect = ReconnectState() if self._link.resumable else None

    def is_ready(self) -> bool:
        """Whether lines can be written."""
        return self._link is not None and not self._closed and not self._input_ended

    async def write(self, data: str) -> None:
        """Send whole lines."""
        link = self._require_link()
        if self._input_ended:
            raise ConnectionLost("Nothing more can be sent: the input has ended.")
        if self._reconnect:
            data = self._reconnect.note_outgoing(data)
        if '"user"' in data:
            self._turn_over = False
        try:
            await link.send(data.encode("utf-8", "surrogatepass"))
        except LinkClosed as closed:
            raise ConnectionLost(str(closed)) from closed

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Every message, in order, until the CLI has ended as requested.

        Any other end raises, so that callers that wait for the CLI fail at once: `ProcessError`
        when the CLI failed, else `CLIConnectionError`.

        A line that is not a JSON object is logged and skipped. The SDK's own transport raises for
        some of them. But no known CLI writes a broken message, while other programs do write to a
        CLI's output, and that should not end a session.
        """
        link = self._require_link()
        lines = LineReader(self._max_line)
        while True:
            try:
                received = await self._receive(link)
            except LinkClosed as closed:
                if (last := lines.end()) is not None:
                    for message in self._messages(last):
                        yield message
                if error := self._error(closed):
                    raise error from closed
                return
            if received is None:
                return
            if isinstance(received, Dropped):
                continue  # the link keeps what the program writes now
            if isinstance(received, Resumed):
                # The unfinished line of the old connection is void.
                lines = LineReader(self._max_line)
                await self._resume(link)
                continue
            for line in lines.feed(received):
                for message in self._messages(line):
                    yield message

    async def end_input(self) -> None:
        """Tell the CLI that nothing more will come. Safe to call twice."""
        if self._link is not None and not self._input_ended:
            self._input_ended = True
            if not self._link.resumable:
                await self._link.end_input()
            # The CLI would not see it, and the link could not ask for what a drop has lost.

    async def close(self) -> None:
        """End the link, in bounded time."""
        self._closed = True
        self._input_ended = True
        if self._link is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True) as scope:
                await self._link.close()
            if scope.cancelled_caught:
                _log.warning("the link did not close within %g s", CLOSE_SECONDS)
        if self._files is not None:
            self._files.close()

    def _require_link(self) -> Link:
        if self._link is None or self._closed:
            raise ConnectionLost("The transport is not connected.")
        return self._link

    async def _receive(self, link: Link) -> bytes | Dropped | Resumed | None:
        """The link's next item; None when the run is over on a link that does not end by itself.

        A CLI that connected itself does not see the end of its input, so it would never exit.
        """
        if not (link.resumable and self._input_ended and self._turn_over):
            return await link.receive()
        with anyio.move_on_after(QUIET_SECONDS):
            return await link.receive()
        return None

    def _messages(self, line: Line) -> list[dict[str, Any]]:
        message = _decode(line)
        if message is None:
            return []
        # Duplicates are dropped first: the result of an old turn does not end this one.
        messages = self._reconnect.filter_incoming(message) if self._reconnect else [message]
        for each in messages:
            if self._launch is not None:
                self._launch.warn_of_version(each)
            match each.get("type"):
                case "result":
                    self._turn_over = True
                case "assistant" | "stream_event" | "user":
                    self._turn_over = False
        return messages

    async def _resume(self, link: Link) -> None:
        if self._reconnect:
            try:
                await link.send(self._reconnect.lines_to_resend().encode())
            except LinkClosed:
                _log.debug("the link ended again; its next receive reports why")

    def _error(self, closed: LinkClosed) -> Exception | None:
        if self._input_ended and (self._closed or closed.clean):
            return None
        code = -closed.signal if closed.signal else closed.exit_code
        if code:
            return CliFailed(closed, code)
        return ConnectionLost(f"The CLI exited unexpectedly. {closed}")


async def _start(
    launch: SdkLaunch, parent: Mapping[str, str], steps: StopSteps | None, files: ArgumentFiles
) -> Link:
    options = launch.options
    env = await launch.environment(parent)
    if launch.has_path:  # no thread: one that is left keeps a program from exiting
        program, *argv = launch.command(env, files)
    else:
        program, *argv = await anyio.to_thread.run_sync(launch.command, env, files)
    callback = None if options.stderr is None else from_loop(_lines_for(options.stderr))

    async def start() -> Link:
        return await SubprocessLink.start(
            (program,),
            argv,
            cwd=options.cwd or None,
            env=env,
            steps=steps,
            on_stderr=callback,
            longest_stderr_line=options.max_buffer_size or SDK_LINE,
            inherit_stderr=callback is None,
            user=options.user,
        )

    try:
        return await start() if is_asyncio() else await ThreadedLink.start(start)
    except LaunchError as error:
        raise _start_error(program, options.cwd, error) from error


def _start_error(
    program: str, folder: str | os.PathLike[str] | None, error: LaunchError
) -> StartError | NotFoundError:
    if folder and not Path(folder).is_dir():
        return StartError(f"Working directory does not exist: {folder}")
    if shutil.which(program, os.F_OK) is None:
        return NotFoundError(f"There is no {program}.")
    return StartError(f"Failed to start Claude Code: {error}")


def _lines_for(callback: Callable[[str], object]) -> Callable[[str], object]:
    """The program's callback as the SDK calls it: an error in it does not end the lines."""

    def call(line: str) -> None:
        try:
            callback(line.rstrip())
        except Exception:  # noqa: BLE001  (the program's own)
            _log.debug("the stderr callback raised", exc_info=True)

    return call


def _decode(line: Line) -> dict[str, Any] | None:
    if isinstance(line, OversizedLine):
        _log.warning("skipped a line of %d bytes that begins %r", line.size, line.head[:80])
        return None
    try:
        # Not msgspec: the SDK accepts odd JSON (lone surrogates), and so must this.
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        _log.warning("skipped a line that is not a message: %r", line[:80])
        return None
    return message
