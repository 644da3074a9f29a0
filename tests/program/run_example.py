"""Run an example of the official SDK as it is: `run_example.py EXAMPLE CLOCK PACKAGES ARGUMENT…`.

Where an example sleeps or bounds a wait with `asyncio.timeout`, the test decides when that time is
over: each such wait makes a file with its name in the folder CLOCK, and is over when a second one
is there. What an example prints would otherwise depend on how busy the machine is. A file with
`await` outside of functions runs as in IPython. With the variable FIRST the example ends when it
would start the CLI for the second time.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import itertools
import os
import runpy
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio

EXAMPLE, CLOCK, PACKAGES = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
_real_sleep = asyncio.sleep
_real_timeout = asyncio.timeout
_numbers = itertools.count()


async def _wait(name: str) -> None:
    number = next(_numbers)
    (CLOCK / f"{number}.begins").write_text(name)
    (CLOCK / f"{number}.begins").rename(CLOCK / f"{number}.begun")
    while not (CLOCK / f"{number}.over").exists():
        await _real_sleep(0.02)


def _name(seconds: float | None) -> str | None:
    """The name of a wait of the example: its function, and the seconds."""
    code = sys._getframe(2).f_code
    return f"{code.co_name} {seconds}" if code.co_filename == str(EXAMPLE) else None


def _sleep(seconds: float, result: Any = None) -> Any:
    name = _name(seconds)
    return _real_sleep(seconds, result) if name is None else _wait(name)


class _Timeout:
    """A bound that is reached when the test says so."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bound = _real_timeout(None)
        self._waits: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._bound.__aenter__()
        self._waits = asyncio.create_task(self._end())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._waits is not None
        self._waits.cancel()
        await self._bound.__aexit__(kind, error, trace)

    async def _end(self) -> None:
        await _wait(self._name)
        self._bound.reschedule(asyncio.get_running_loop().time())


def _timeout(seconds: float | None) -> Any:
    name = _name(seconds)
    return _real_timeout(seconds) if name is None else _Timeout(name)


def _start_once() -> None:
    """Have the example end when it starts the CLI again."""
    start = anyio.open_process
    started: list[object] = []

    async def open_process(*given: Any, **more: Any) -> Any:
        if started:
            sys.stdout.flush()
            os._exit(0)
        started.append(given)
        return await start(*given, **more)

    anyio.open_process = open_process


def main() -> None:
    if PACKAGES:
        sys.path.append(PACKAGES)
    if os.environ.pop("FIRST", ""):
        _start_once()
    asyncio.sleep = _sleep  # type: ignore[assignment]
    asyncio.timeout = _timeout  # type: ignore[assignment]
    sys.argv[:] = [str(EXAMPLE), *sys.argv[4:]]
    sys.path[0] = str(EXAMPLE.parent)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(EXAMPLE.read_text(), str(EXAMPLE), "exec", flags=flags)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, {"__name__": "__main__"}))
    else:
        runpy.run_path(str(EXAMPLE), run_name="__main__")


os.environ.pop("PYTHONPATH", None)
main()
