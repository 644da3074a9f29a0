"""Git for worktrees and diffs: without a shell, bounded, and without the repository's programs.

Owns how git is started and ended. `worktrees`, `changes` and `settle` are above; it does not know
what a command means. An agent can write a repository's configuration and hooks: programs named
there are not run. The configuration of the machine's user (with LFS, for example) applies.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio

from quarterdeck.claude.environment import child_environment
from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.structs import Value

HARDENED = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.pager=cat",
    "-c", "core.editor=false",
    "-c", "commit.gpgSign=false",
    "-c", "submodule.recurse=false",
    "-c", "advice.addEmbeddedRepo=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
)  # fmt: skip

LARGEST = 64 * 1024 * 1024
"""The most output of one command: the names of a million files."""
_CHUNK = 64 * 1024
_OF_THE_REPOSITORY = {"local", "worktree"}
_PROGRAMS = r"^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver)$"


class GitResult(Value):
    """The result of a git command. `cut`: there was more output."""

    code: int
    out: bytes
    err: str
    cut: bool = False

    @property
    def text(self) -> str:
        """The output without its final newline; names that are not UTF-8 are preserved."""
        return self.out.decode(errors="surrogateescape").removesuffix("\n")

    @property
    def names(self) -> list[str]:
        """The output, split at NUL."""
        return [name for name in self.out.decode(errors="surrogateescape").split("\0") if name]


_T = TypeVar("_T")
_U = TypeVar("_U")


async def both(one: Awaitable[_T], other: Awaitable[_U]) -> tuple[_T, _U]:
    """Wait for two at the same time. If one fails, the other is cancelled, and its error raised."""
    first: list[_T] = []
    second: list[_U] = []

    async def wait_first() -> None:
        first.append(await one)

    async def wait_second() -> None:
        second.append(await other)

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(wait_first)
            group.start_soon(wait_second)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return first[0], second[0]


class Git:
    """Runs git commands, each with a time limit in seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def __call__(
        self,
        directory: str | Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limit: int = LARGEST,
        good: tuple[int, ...] = (0,),
    ) -> GitResult:
        """Run git there. Raises `LaunchError`, with git's error message if there is one."""
        argv = ("git", *HARDENED, "-C", os.fspath(directory), *arguments)
        result = await run_program(
            argv, self._seconds, env=_environment(env), stdin=stdin, limit=limit,
            name=" ".join(("git", *arguments[:2])),
        )  # fmt: skip
        if result.code not in good and not result.cut:
            name = " ".join(arguments[:2])
            raise LaunchError(f"`git {name}` failed: {result.err or f'code {result.code}'}")
        return result

    async def without_programs(self, directory: str | Path) -> dict[str, str]:
        """An environment in which the repository's own configuration names no program.

        Its filters do nothing, and its merge drivers fail, so that their files are conflicts.
        """
        listed = await self(
            directory, "config", "--show-scope", "-z", "--get-regexp", _PROGRAMS, good=(0, 1)
        )
        parts = listed.text.split("\0")
        names = {
            entry.partition("\n")[0]
            for scope, entry in zip(parts[::2], parts[1::2], strict=False)
            if scope in _OF_THE_REPOSITORY
        }
        env = {"GIT_CONFIG_COUNT": str(len(names))}
        for number, name in enumerate(sorted(names)):
            env[f"GIT_CONFIG_KEY_{number}"] = name
            env[f"GIT_CONFIG_VALUE_{number}"] = "false" if name.endswith(("driver", "ed")) else ""
        return env


async def run_program(
    argv: tuple[str, ...],
    seconds: float,
    *,
    env: Mapping[str, str],
    name: str,
    stdin: bytes | None = None,
    limit: int = LARGEST,
    directory: str | Path | None = None,
) -> GitResult:
    """Run a program without a shell, with a time limit. `name` is for messages.

    Raises `LaunchError` if it cannot be started or does not end.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env),
            cwd=directory,
            start_new_session=True,
        )
    except OSError as error:
        raise LaunchError(f"cannot start {argv[0]}: {error}") from error
    try:
        with anyio.fail_after(seconds):
            return await _read_output(process, stdin, limit)
    except TimeoutError:
        raise LaunchError(f"`{name}` did not end within {seconds:g} s") from None
    finally:
        with anyio.CancelScope(shield=True):
            await _kill(process)


def _environment(env: Mapping[str, str] | None) -> dict[str, str]:
    ours = {"GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1", "LC_ALL": "C"}
    return {**child_environment(), **ours, **(env or {})}


async def _read_output(
    process: asyncio.subprocess.Process, stdin: bytes | None, limit: int
) -> GitResult:
    """All output up to a limit; reading stops at the limit."""
    assert process.stdout is not None
    assert process.stderr is not None
    errors = bytearray()
    out = bytearray()
    async with anyio.create_task_group() as group:
        group.start_soon(_drain, process.stderr, errors)
        if stdin is not None:
            group.start_soon(_feed, process, stdin)
        while len(out) <= limit and (chunk := await process.stdout.read(_CHUNK)):
            out += chunk
        if cut := len(out) > limit:
            await _kill(process)
    await process.wait()
    error = errors.decode(errors="replace").strip()
    return GitResult(
        code=process.returncode or 0, out=bytes(out[:limit]), err=error[-2000:], cut=cut
    )


async def _drain(stream: asyncio.StreamReader, into: bytearray) -> None:
    while chunk := await stream.read(_CHUNK):
        into += chunk
        del into[:-_CHUNK]


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End git and its children, if they are still running: filters are in its process group."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with anyio.move_on_after(5):
            await process.wait()
