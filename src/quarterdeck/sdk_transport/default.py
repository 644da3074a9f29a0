"""The SDK's default transport, replaced: programs of the SDK run over our links unchanged.

Owns `install()` and `uninstall()`. The class is a subclass of the SDK's, since the SDK and programs
look at its type; what it does with a process is `transport`'s. It changes no message and no option.
"""

# ruff: noqa: SLF001  (private to the SDK, as in `launch`)

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk._internal import client as _client
from claude_agent_sdk._internal.transport import subprocess_cli as _subprocess_cli

from quarterdeck.domain.errors import UnsupportedError
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.sdk_transport.errors import ConnectionLost
from quarterdeck.sdk_transport.launch import SDK_TRANSPORT, SdkLaunch
from quarterdeck.sdk_transport.threads import ThreadedLink
from quarterdeck.sdk_transport.transport import QuarterdeckTransport

if TYPE_CHECKING:
    from anyio.abc import Process

_NAME = "SubprocessCLITransport"
_PLACES: tuple[ModuleType, ...] = (_client, _subprocess_cli)
_USED = (
    *(
        "_build_command",
        "_find_cli",
        "_reject_windows_batch_cli",
        "_find_bundled_cli",
        "_derive_client_app",
        "_check_claude_version",
    ),
    *("connect", "close", "write", "end_input", "read_messages", "is_ready"),
)


class _Child:
    """The process, as far as the SDK looks at one: it ends those that are left when Python exits,
    and programs read the number.
    """

    def __init__(self, link: SubprocessLink) -> None:
        self._link = link
        self.pid = link.pid

    @property
    def returncode(self) -> int | None:
        return self._link.exit_code

    def send_signal(self, number: int) -> None:
        """Send a signal to the CLI and what it has started, while it runs."""
        if self.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


class DefaultTransport(SDK_TRANSPORT):
    """What the SDK makes for itself after `install()`."""

    def __init__(
        self, prompt: str | AsyncIterable[dict[str, Any]], options: ClaudeAgentOptions
    ) -> None:
        super().__init__(prompt, options)
        self._ours: QuarterdeckTransport | None = None

    async def connect(self) -> None:
        """Start the CLI, once."""
        if self._ours is None:
            ours = QuarterdeckTransport.for_launch(SdkLaunch(self), parent_env=os.environ)
            try:
                await ours.connect()
            except BaseException:
                await ours.close()
                raise
            self._ours = ours
            link = ours.link.inner if isinstance(ours.link, ThreadedLink) else ours.link
            if isinstance(link, SubprocessLink):
                self._process = cast("Process", _Child(link))
                _subprocess_cli._ACTIVE_CHILDREN.add(self._process)

    def is_ready(self) -> bool:
        """Whether lines can be written."""
        return self._ours is not None and self._ours.is_ready()

    async def write(self, data: str) -> None:
        """Send whole lines."""
        if self._ours is None:
            raise ConnectionLost("The transport is not ready for writing: it is not connected.")
        await self._ours.write(data)

    async def end_input(self) -> None:
        """End the CLI's input. Does nothing when it is not connected."""
        if self._ours is not None:
            await self._ours.end_input()

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Every message until the CLI's end."""
        if self._ours is None:
            raise ConnectionLost("Not connected.")
        return self._ours.read_messages()

    async def close(self) -> None:
        """End the CLI and its descendants."""
        if self._ours is not None:
            await self._ours.close()
            self._ours = None
            if self._process is not None and self._process.returncode is not None:
                _subprocess_cli._ACTIVE_CHILDREN.discard(self._process)
            self._process = None


def install() -> None:
    """Make this the SDK's default transport, for this process, from now on.

    `query()` and `ClaudeSDKClient` without a `transport` then use it. Safe to call twice. Raises
    `UnsupportedError` if the installed SDK is built in another way.
    """
    lacking = [name for name in _USED if not hasattr(SDK_TRANSPORT, name)]
    lacking += [place.__name__ for place in _PLACES if not hasattr(place, _NAME)]
    if lacking:
        raise UnsupportedError(
            f"install() ({', '.join(lacking)} of claude-agent-sdk {claude_agent_sdk.__version__})"
        )
    for place in _PLACES:
        vars(place)[_NAME] = DefaultTransport


def uninstall() -> None:
    """Give the SDK its own default transport back. Clients that are connected keep theirs."""
    for place in _PLACES:
        vars(place)[_NAME] = SDK_TRANSPORT
