"""Opening a sandbox: from a spec and a command to the command that runs inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quarterdeck.domain.structs import Value
from quarterdeck.sandbox.spec import Kind, SandboxSpec


class Connection(Value):
    """A connection that was asked of the proxy."""

    host: str
    port: int
    allowed: bool


class Sandbox:
    """A sandbox for one process. Start `command` with `env` in the same folder, then `close`."""

    kind: Kind | None
    """None: the mode is `off`, and nothing is enforced."""
    command: tuple[str, ...]
    env: dict[str, str]
    spec: SandboxSpec
    """What is in force: without wildcards, and with the paths that exist."""
    not_enforced: tuple[str, ...]
    """Paths or patterns that this kind cannot enforce here, each with the reason."""

    def close(self) -> None:
        """End the proxy and remove what was made for the sandbox. Call it when the process has
        ended. Safe to call twice.
        """
        raise NotImplementedError


async def open_sandbox(
    spec: SandboxSpec,
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: str,
    kind: Kind | None = None,
    on_connection: Callable[[Connection], None] | None = None,
) -> Sandbox:
    """Prepare a sandbox for `command`. With `kind` None it is the best kind that works.

    `on_connection` is told of each connection if the network is limited, from the event loop.
    Raises `LaunchError` if no kind works here, or the kind cannot enforce the spec.
    """
    raise NotImplementedError


def signal_of(kind: Kind | None, exit_code: int) -> int | None:
    """The signal that ended the CLI, where a kind reports it as an exit code; else None."""
    raise NotImplementedError
