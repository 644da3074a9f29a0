"""What the Telegram bot costs a hub that has nothing to do: memory and processor time.

Two hubs, with and without a bot, side by side; the bot polls the Bot API server of
`quarterdeck.testing` on loopback, by TLS. What is wanted: at most 5 MB, and no processor time. How
many calls a turn makes is tested by counts (`tests/fronts/telegram/test_storm.py`).
"""

from __future__ import annotations

import asyncio
import statistics
from pathlib import Path

from bench.encrypted import encrypted
from bench.served import Served, own_bytes, quiet, served
from quarterdeck.testing.telegram import BotApiServer

GOAL_MB = 5.0
IDLE_SECONDS = 20.0
USER = 11
MB = 1e6
SECTION = """
[telegram]
token_file = "{token}"
users = [{user}]
api = "{api}"
"""


def run_idle_bot(folder: Path, rounds: int) -> None:
    """Measure and print."""
    asyncio.run(_run(folder, min(rounds, 5)))


async def _run(folder: Path, rounds: int) -> None:
    memory, busy = [], []
    for number in range(rounds):
        async with BotApiServer() as server:
            server.sim.add_user(USER)
            token = folder / "bot-token"
            token.write_text(server.token)
            async with (
                encrypted(server.url, folder) as api,
                served(folder, name=f"without-{number}", runner=False) as plain,
                served(
                    folder,
                    name=f"with-{number}",
                    runner=False,
                    more=SECTION.format(token=token, user=USER, api=api.url),
                    variables=api.variables,
                ) as deck,
            ):
                await server.wait_for(lambda: server.calls_of("setMyCommands"), 60)
                await quiet(deck.pid)
                await quiet(plain.pid)
                memory.append((own_bytes(deck.pid) - own_bytes(plain.pid)) / MB)
                busy.append(await _busy(deck) - await _busy(plain))
    print(
        f"an idle Telegram bot: {statistics.median(memory):.1f} MB"
        f" ({min(memory):.1f} to {max(memory):.1f}), at most {GOAL_MB:g} MB;"
        f" processor: {statistics.median(busy) * 1000:.1f} ms in {IDLE_SECONDS:g} s"
        f" ({min(busy) * 1000:.1f} to {max(busy) * 1000:.1f})"
    )


async def _busy(deck: Served) -> float:
    before = deck.cpu_seconds()
    await asyncio.sleep(IDLE_SECONDS)
    return deck.cpu_seconds() - before
