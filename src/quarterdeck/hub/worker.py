"""The program of a worker process: reads calls from stdin, does them, writes what came of it.

Above is `workers`, which starts it and kills it. It trusts its stdin, which only the hub has: a
call is a pickle, and names a function of this package. Between two calls it keeps nothing.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple

from quarterdeck.domain.errors import UsageError

HEADER = struct.Struct("!Q")
"""The length of a pickle, before it."""

PRELOADED = ("quarterdeck.hub.permissions.trials", "quarterdeck.history.export.html")
"""Where the functions of calls are. They are loaded by name in the worker process only: the hub
reads this module, and does not need them."""

MORE_SECONDS = 3
"""Of processor time beyond a call's limit, until the kernel ends the process. By then the hub has
killed it, unless the hub was killed."""


class Feed(NamedTuple):
    """Items for the next call."""

    items: tuple[object, ...]


class Call(NamedTuple):
    """A function of this package, and what it is called with."""

    function: Callable[..., object]
    args: tuple[object, ...]
    named: dict[str, object]
    seconds: float
    fed: bool = False
    """Whether it gets the items before its arguments, as a list."""


class Reply(NamedTuple):
    """What came of a call."""

    value: Any = None
    error: UsageError | RuntimeError | None = None
    limit: str = ""
    """Which limit it has met, in words; the process must not be used again."""


def main() -> None:
    """Do calls until stdin ends."""
    memory, longest = (int(word) for word in sys.argv[1:3])
    # What is printed by accident must not stand between two replies.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, memory)
    for name in PRELOADED:
        import_module(name)

    fed: list[object] = []
    _write(out, pickle.dumps(Reply()))
    while (message := _read(sys.stdin.buffer)) is not None:
        if isinstance(message, Feed):
            fed.extend(message.items)
        else:
            _write(out, _call_result(message, fed, longest))
            fed = []


def _call_result(call: Call, fed: list[object], longest: int) -> bytes:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + call.seconds + MORE_SECONDS
    _limit(resource.RLIMIT_CPU, int(seconds) + 1)
    try:
        args = (fed, *call.args) if call.fed else call.args
        data = pickle.dumps(Reply(value=call.function(*args, **call.named)))
    except MemoryError:
        return pickle.dumps(Reply(limit="it needs more memory than it may have"))
    except UsageError as error:
        return pickle.dumps(Reply(error=UsageError(str(error))))
    except Exception as error:  # noqa: BLE001 - the hub says so, and the process goes on
        return pickle.dumps(Reply(error=RuntimeError(f"{type(error).__name__}: {error}")))
    if len(data) > longest:
        return pickle.dumps(Reply(limit=f"the answer has more than {longest:,} bytes"))
    return data


def _limit(which: int, value: int) -> None:
    """Set a limit that can be raised again. Some systems do not have all of them."""
    hard = resource.getrlimit(which)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(which, (value, hard))


def _read(stream: BinaryIO) -> Call | Feed | None:
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    (length,) = HEADER.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        return None
    message: Call | Feed = pickle.loads(data)  # noqa: S301 - only the hub writes here
    return message


def _write(stream: BinaryIO, data: bytes) -> None:
    stream.write(HEADER.pack(len(data)) + data)
    stream.flush()
