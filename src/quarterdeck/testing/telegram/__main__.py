"""`python -m quarterdeck.testing.telegram`: the server as a process of its own."""

from __future__ import annotations

import argparse
import signal
import sys

import anyio

from quarterdeck.runtime.clock import Clock
from quarterdeck.testing.telegram import NO_LIMITS, TOKEN, BotApiServer


async def _serve(options: argparse.Namespace) -> None:
    server = BotApiServer(
        token=options.token,
        port=options.port,
        limits=NO_LIMITS if options.no_limits else None,
        clock=Clock(speed=options.speed),
    )
    async with server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                break


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal comes; the first line of the output is the URL."""
    parser = argparse.ArgumentParser(prog="python -m quarterdeck.testing.telegram")
    parser.add_argument("--token", default=TOKEN, help="the token of the bot")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--no-limits", action="store_true", help="no flood control")
    parser.add_argument("--speed", type=float, default=1.0, help="how fast the server's time runs")
    anyio.run(_serve, parser.parse_args(arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
