"""Run the whole suite again and again under bad conditions: `python tools/repeat_suite.py`.

A suite that fails because the machine is busy is a suite that nobody believes. It runs `make test`

- ten times with two busy processes and a disk writer beside it (`load`),
- three times as a job in the background, with SIGINT ignored (`background`),
- three times with the tests in a random order (`random`),
- once with `HOME`, `TMPDIR` and the checkout on paths with spaces (`spaces`),

and writes one line of a Markdown table for each run. `python tools/repeat_suite.py load=2 random=1`
runs a part, and `load+random=3` runs with both conditions at once. `at-once=2` runs two suites
beside each other, each in a clone of its own: each is more load for the other, and the whole takes
less time. The logs are kept under .cache/repeat. It ends with 1 if any run failed.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

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
    wanted, at_once = _asked(arguments)
    LOGS.mkdir(parents=True, exist_ok=True)
    print(
        "| condition | run | result | seconds | load at the end |\n|---|---|---|---|---|",
        flush=True,
    )
    folders: SimpleQueue[Path] = SimpleQueue()
    for number in range(at_once):
        folders.put(ROOT if at_once == 1 else _clone(LOGS / f"clone-{number}"))

    def one(condition: str, number: int) -> bool:
        folder = folders.get()
        try:
            return _run(condition, number, folder)
        finally:
            folders.put(folder)

    with ThreadPoolExecutor(at_once) as threads:
        runs = [
            threads.submit(one, condition, number)
            for condition, times in wanted.items()
            for number in range(1, times + 1)
        ]
        return 0 if all(run.result() for run in runs) else 1


def _asked(arguments: list[str]) -> tuple[dict[str, int], int]:
    wanted: dict[str, int] = {}
    at_once = 1
    for argument in arguments:
        names, _, times = argument.partition("=")
        number = int(times) if times.isdigit() and times != "0" else 1
        if names == "at-once":
            at_once = number
        elif set(names.split("+")) <= set(RUNS) and (times or "1") == str(number):
            wanted[names] = number
        else:
            known = ", ".join(RUNS)
            sys.exit(f"{argument}: one or more of {known}: load=2 or load+random=3; or at-once=2")
    return wanted or dict(RUNS), at_once


def _run(condition: str, number: int, folder: Path) -> bool:
    log = LOGS / f"{condition}-{number}.log"
    began = time.monotonic()
    names = set(condition.split("+"))
    command = ["make", "test"]
    if "random" in names:
        order = f"-p randomly -p no:cacheprovider --randomly-seed={number}"
        command.append(f"PYTEST_ADDOPTS={order}")
    with ExitStack() as stack, log.open("wb") as output:
        variables: dict[str, str] = {}
        if "spaces" in names:
            folder, variables = stack.enter_context(_paths_with_spaces())
        if "load" in names:
            stack.enter_context(LOAD)
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


class _Load:
    """Two busy processes and one that writes to the disk, as long as a run wants them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._wanted = 0
        self._stack = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._wanted += 1
            if self._wanted == 1:
                self._stack.enter_context(_busy_machine())

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._wanted -= 1
            if not self._wanted:
                self._stack.close()


LOAD = _Load()


@contextmanager
def _busy_machine() -> Iterator[None]:
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


def _clone(folder: Path) -> Path:
    """A clone of what is committed, which keeps what an earlier run has set up in it."""
    if not folder.exists():
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    for step in (["fetch", "--quiet"], ["reset", "--quiet", "--hard", "FETCH_HEAD"]):
        subprocess.run(["git", "-C", str(folder), *step], check=True)
    return folder


def _ignore_interrupts() -> None:
    """As a shell does it for a job in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
