"""The sandbox around a process of a loop: an agent's CLI, or a command that checks the work.

Owns the words only. `service` makes sandboxes by the configuration and the policy; without one, a
process is started as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from quarterdeck.domain.structs import Value

OFF = "off"


class Boxed(Value):
    """A command that is ready to start, with its whole environment."""

    command: tuple[str, ...]
    env: dict[str, str]
    sandbox: str = OFF
    """The mode of the sandbox that it runs in."""


Box = Callable[[tuple[str, ...], dict[str, str], str], AbstractAsyncContextManager[Boxed]]
"""Puts a command, with this environment and in this folder, into a sandbox. The block is left when
its process has ended. Raises `LaunchError` if there must be a sandbox and cannot be one."""


@asynccontextmanager
async def no_box(
    command: tuple[str, ...], env: dict[str, str], directory: str
) -> AsyncIterator[Boxed]:
    """No sandbox."""
    del directory
    yield Boxed(command=command, env=env)
