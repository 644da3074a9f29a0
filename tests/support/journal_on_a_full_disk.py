"""Fills a journal up to a limit that stands for a full disk, makes room, and goes on.

`python -m support.journal_on_a_full_disk PATH`. In a process of its own, since the limit holds for
the whole process. Its stdout tells how it went: how many appends were stored before and after.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal import SqliteJournal
from quarterdeck.protocol.events import Noted

LIMIT = 300_000


async def main(path: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    events = [Noted(level="info", text="x" * 5000)] * 5
    async with await SqliteJournal.open(path) as journal:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, most))
        stored = refused = 0
        while refused < 3:
            results = await asyncio.gather(
                *(journal.append("a", events) for _ in range(3)), return_exceptions=True
            )
            for result in results:
                if isinstance(result, JournalError):
                    refused += 1
                elif isinstance(result, BaseException):
                    raise result
                else:
                    stored += 1
        assert len(await journal.read("a", limit=5000)) == stored * 5
        assert await journal.head("a") == stored * 5
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        (more,) = await journal.append("a", events[:1])
        assert more.seq == stored * 5 + 1
        sys.stdout.write(f"{stored} {more.seq}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
