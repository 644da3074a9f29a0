"""A runner as a process for the tests of faults: the real one, in more of a hurry to dial again."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from quarterdeck.runner import Limits, Runner, Times
from support.runners import QUICK, STOP


async def main(home: Path, urls: str, token_file: Path, name: str = "local") -> None:
    times = Times(idle=60.0, retry=0.05, farewell=1.0, stop=STOP)
    limits = Limits(memory_floor=0)
    runner = Runner(home, urls.split(), token_file, name, limits=limits, times=times, redial=QUICK)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, runner.stop)
    await runner.run()
