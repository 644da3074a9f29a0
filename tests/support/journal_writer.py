"""Appends to a journal for ever, and says what was acknowledged: to be killed at any moment.

`python -m support.journal_writer PATH SEED`. A line of its stdout is an acknowledged append: the
session, the first number, how many, and what the text of all its events begins with.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys

from quarterdeck.journal import SqliteJournal
from quarterdeck.protocol.events import Noted


async def main(path: str, seed: int) -> None:
    async with await SqliteJournal.open(path) as journal:
        os.write(1, b"open\n")
        chance = random.Random(seed)

        async def write(session: str, own: random.Random) -> None:
            turn = 0
            while True:
                turn += 1
                count = own.randrange(1, 6)
                name = f"{seed}.{session}.{turn}"
                note = Noted(level=str(count), text=f"{name} {'x' * own.randrange(2000)}")
                stored = await journal.append(session, [note] * count)
                os.write(1, f"{session} {stored[0].seq} {count} {name}\n".encode())

        await asyncio.gather(*(write(f"s{n}", random.Random(chance.random())) for n in range(4)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
