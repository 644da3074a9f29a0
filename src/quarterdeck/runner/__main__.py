"""`python -m quarterdeck.runner`: a runner as a process, with its log and its signals.

Started by `spawn_runner`, or by a person on another machine; below it is the `Runner`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import logging.handlers
import os
import signal
import sys
from pathlib import Path

from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.runner.home import LOG
from quarterdeck.runner.limits import Limits, Times
from quarterdeck.runner.runner import Runner
from quarterdeck.runtime.allocator import bound_free_memory
from quarterdeck.runtime.log_format import JSON, TEXT, formatter

log = logging.getLogger("quarterdeck.runner")

LOG_BYTES, LOGS_KEPT = 1024 * 1024, 2


def main(arguments: list[str] | None = None) -> int:
    """Run a runner to its end; returns the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        runner = _runner(asked)
    except QuarterdeckError as error:  # while stderr is still a terminal
        sys.stderr.write(f"{error}\n")
        return 2
    if asked.detach:
        _detach()
    _set_up_log(asked)
    bound_free_memory()
    try:
        asyncio.run(_serve(runner))
    except QuarterdeckError as error:
        log.error("%s", error)
        return 3
    return 0


def _runner(asked: argparse.Namespace) -> Runner:
    return Runner(
        asked.home,
        asked.hub,
        asked.token_file,
        asked.machine,
        limits=Limits(
            runs=asked.max_runs,
            memory_floor=asked.memory_floor * 1024 * 1024,
            claude=asked.claude,
        ),
        times=Times(idle=asked.idle),
        closed=tuple(asked.closed),
        ca_file=asked.ca_file,
    )


async def _serve(runner: Runner) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, runner.stop)
    # The terminal that it was started in may close: the agents keep running.
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    await runner.run()


def _detach() -> None:
    """Continue in the background, in a session of its own; the pid goes to stdout."""
    if (pid := os.fork()) > 0:
        os.write(1, f"{pid}\n".encode())
        os._exit(0)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _set_up_log(asked: argparse.Namespace) -> None:
    asked.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    handlers: list[logging.Handler] = [
        logging.handlers.RotatingFileHandler(
            asked.home / LOG, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8"
        )
    ]
    if not asked.detach:
        handlers.append(logging.StreamHandler())
    for handler in handlers:
        handler.setFormatter(formatter(asked.log_format))
    logging.basicConfig(level=asked.log_level.upper(), handlers=handlers)
    # At «info» this library logs every connection; our own log says why one was lost.
    logging.getLogger("websockets").setLevel(logging.WARNING)


def _parser() -> argparse.ArgumentParser:
    limits, times = Limits(), Times()
    parser = argparse.ArgumentParser(
        prog="python -m quarterdeck.runner",
        description="Run the Claude Code processes of this machine for a hub.",
    )
    parser.add_argument("--home", type=Path, required=True, help="the runner's folder")
    parser.add_argument(
        "--hub",
        required=True,
        action="append",
        help="the hub's address, as http://127.0.0.1:8765; given again: that of another hub",
    )
    parser.add_argument(
        "--token-file", type=Path, required=True, help="the file with the runner's token"
    )
    parser.add_argument("--ca-file", type=Path, help="the only certificate authority to trust")
    parser.add_argument("--machine", help="a name for this machine; by default its host name")
    parser.add_argument("--claude", help="the only CLI to start, whatever a session names")
    parser.add_argument("--max-runs", type=int, default=limits.runs, help="the most CLIs at a time")
    parser.add_argument(
        "--memory-floor",
        type=int,
        default=limits.memory_floor >> 20,
        metavar="MIB",
        help="start no CLI with less memory available",
    )
    parser.add_argument(
        "--idle",
        type=float,
        default=times.idle,
        metavar="SECONDS",
        help="exit after so long without a run and without a hub",
    )
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info"
    )
    parser.add_argument("--log-format", choices=(TEXT, JSON), default=TEXT)
    parser.add_argument(
        "--closed",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="one more folder that agents must not touch",
    )
    parser.add_argument("--detach", action="store_true", help="run in the background")
    return parser


if __name__ == "__main__":
    sys.exit(main())
