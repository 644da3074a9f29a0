"""Run the whole suite again and again under bad conditions: `python tools/repeat_suite.py`.

A suite that fails because the machine is busy is a suite that nobody believes. It runs `make test`

- ten times with two busy processes and a disk writer beside it (`load`),
- three times as a job in the background, with SIGINT ignored (`background`),
- three times with the tests in a random order (`random`),
- once with `HOME`, `TMPDIR` and the checkout on paths with spaces (`spaces`),

and writes one line of a Markdown table for each run. `python tools/repeat_suite.py load=2 random=1`
runs a part, and `load+random=3` runs with both conditions at once. The logs are kept under
.cache/repeat. It ends with 1 if any run failed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".cache" / "repeat"
RUNS = {"load": 10, "background": 3, "random": 3, "spaces": 1}
BUSY = "while True: pass"
WRITING = """
import os, sys
data = os.urandom(1 << 20)
while True:
    with open(sys.argv[1], "wb") as file:
        for _ in range(64):
            file.write(data)
        os.fsync(file.fileno())
"""
_SUMMARY = re.compile(r"^=* ?((?:\d+ [a-z]+(?:, )?)+) in ([\d.]+)s", re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Run what was asked for, or everything; gives the exit code."""
    wanted = dict(RUNS) if not arguments else _asked(arguments)
    LOGS.mkdir(parents=True, exist_ok=True)
    print(
        "| condition | run | result | seconds | load at the end |\n|---|---|---|---|---|",
        flush=True,
    )
    failed = 0
    for condition, times in wanted.items():
        for number in range(1, times + 1):
            failed += not _run(condition, number)
    return 1 if failed else 0


def _asked(arguments: list[str]) -> dict[str, int]:
    wanted: dict[str, int] = {}
    for argument in arguments:
        names, _, times = argument.partition("=")
        if not set(names.split("+")) <= set(RUNS) or not (times or "1").isdigit():
            sys.exit(f"{argument}: one or more of {', '.join(RUNS)}: load=2 or load+random=3")
        wanted[names] = int(times or "1")
    return wanted


def _run(condition: str, number: int) -> bool:
    log = LOGS / f"{condition}-{number}.log"
    began = time.monotonic()
    names = set(condition.split("+"))
    command = ["make", "test"]
    if "random" in names:
        order = f"-p randomly -p no:cacheprovider --randomly-seed={number}"
        command.append(f"PYTEST_ADDOPTS={order}")
    with ExitStack() as stack, log.open("wb") as output:
        folder = ROOT
        variables: dict[str, str] = {}
        if "spaces" in names:
            folder, variables = stack.enter_context(_paths_with_spaces())
        if "load" in names:
            stack.enter_context(_load())
        code = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            preexec_fn=_ignore_interrupts if "background" in names else None,
        ).returncode
    seconds = time.monotonic() - began
    found = _SUMMARY.findall(log.read_text(errors="replace"))
    told = found[-1][0] if found else "no summary"
    result = told if code == 0 else f"**failed ({code})**: {told}"
    load = os.getloadavg()[0]
    print(f"| {condition} | {number} | {result} | {seconds:.0f} | {load:.1f} |", flush=True)
    return code == 0


@contextmanager
def _load() -> Iterator[None]:
    """Two busy processes and one that writes to the disk, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="repeat-") as folder:
        busy = [[sys.executable, "-c", BUSY]] * 2
        writing = [sys.executable, "-c", WRITING, f"{folder}/file"]
        beside = [subprocess.Popen(each) for each in (*busy, writing)]
        try:
            yield
        finally:
            for process in beside:
                process.kill()
                process.wait()


@contextmanager
def _paths_with_spaces() -> Iterator[tuple[Path, dict[str, str]]]:
    """A clone of the checkout, and variables, where every path has a space."""
    with tempfile.TemporaryDirectory(prefix="repeat with spaces ") as folder:
        checkout, home, temporary = (Path(folder) / n for n in ("a checkout", "a home", "tmp x"))
        home.mkdir()
        temporary.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(checkout)], check=True)
        yield checkout, {"HOME": str(home), "TMPDIR": str(temporary)}


def _ignore_interrupts() -> None:
    """As a shell does it for a job in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
