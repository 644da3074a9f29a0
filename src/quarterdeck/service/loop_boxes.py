"""The sandbox of a loop's processes on this machine: its local agents, and its commands.

Owns what belongs to one such sandbox: a folder for temporary files, which goes with it. The rules
decide what is asked for (`hub.permissions.sandbox`), and it is made as for every session.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from quarterdeck import sandbox as kinds
from quarterdeck.domain.errors import LaunchError
from quarterdeck.loop.boxes import Box, Boxed
from quarterdeck.protocol.sandbox import OFF, STRICT, SandboxRequest
from quarterdeck.runner.launch import Prepared
from quarterdeck.runner.sandbox import (
    OwnPaths,
    remove_temporary,
    spec_for,
    with_paths,
)

log = logging.getLogger(__name__)

TEMPORARY_PREFIX = "quarterdeck-run-"
"""As the runner names such folders: `remove_temporary` takes no others."""


def sandboxes(loop: str, wanted: Callable[[], Awaitable[SandboxRequest]]) -> Box:
    """A sandbox for each process of a loop, as `wanted` says when it is started.

    The first one removes what was left when the loop was killed: only who holds the lock of the
    loop may use it.
    """
    prefix = f"{TEMPORARY_PREFIX}{loop}-"
    used = False

    @asynccontextmanager
    async def box(
        command: tuple[str, ...], env: dict[str, str], directory: str
    ) -> AsyncIterator[Boxed]:
        nonlocal used
        if not used:
            await anyio.to_thread.run_sync(_remove_left, prefix)
            used = True
        request = await wanted()
        if request.mode == OFF:
            yield Boxed(command=command, env=env)
            return
        temporary = await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, prefix=prefix))
        try:
            ready = Prepared(
                command=command, argv=(), env=env, directory=directory, version=None, mark=""
            )
            spec = await anyio.to_thread.run_sync(_spec, request, ready, temporary)
            kind = await anyio.to_thread.run_sync(kinds.choose, spec)
            if kind is None:
                await anyio.to_thread.run_sync(_refuse_without, request)
                yield Boxed(command=command, env=env)
                return
            made = await kinds.open_sandbox(
                spec, command, env, cwd=directory, kind=kind, on_connection=_note_connection
            )
            try:
                yield Boxed(command=made.command, env=made.env, sandbox=request.mode)
            finally:
                made.close()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(remove_temporary, temporary)

    return box


def _remove_left(prefix: str) -> None:
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        remove_temporary(str(left))


def _spec(request: SandboxRequest, ready: Prepared, temporary: str) -> kinds.SandboxSpec:
    known, _ = with_paths(request, ready.directory)
    return spec_for(known, ready, OwnPaths(), temporary)


def _refuse_without(request: SandboxRequest) -> None:
    """Raise `LaunchError` if there must be a sandbox: this machine cannot make one."""
    why = "; ".join(f"{each.kind.value}: {each.why}" for each in kinds.probe())
    limited = request.options.network not in {None, "all"}
    if request.mode == STRICT or limited:
        raise LaunchError(
            "sandbox: the loop must have one, and this machine cannot make it"
            f" ({why or 'there is no kind for this system'}). Install bubblewrap, see `quarterdeck"
            " doctor`, or use another mode."
        )
    log.warning("a process of a loop has no sandbox: this machine cannot make one (%s)", why)


def _note_connection(made: kinds.Connection) -> None:
    if not made.allowed:
        log.info("the sandbox refused a connection to %s:%s", made.host, made.port)
