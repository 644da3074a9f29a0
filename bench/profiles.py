"""Where the time goes: the hub under each load, and `Agent` at a pipe, by the standard profiler.

The profiler makes everything slower, calls of Python most of all: what it shows is where to look,
and not how long something takes. Of the hub it sees the event loop's thread; the journal's thread
is told apart by what the system counts for each thread.
"""

from __future__ import annotations

import asyncio
import io
import pstats
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench import docs, lines, through
from bench.client import Client
from bench.served import TICKS, Served, prompt, served

LINES = 14
Load = Callable[[Served, Client, str, Path], Awaitable[None]]


def write(page: Path = docs.PAGE) -> None:
    """Measure the profiles, print them, and write them into the page."""
    parts = [_agent()]
    for title, load in (
        ("The hub, 60,000 stream events (row 4)", _stream),
        ("The hub, 60,000 journalled events (rows 4 and 5)", _durable),
        ("The hub, 50 sessions, 12,000 journalled events at 1,000/s (row 6)", _paced),
        ("The hub, 300 permissions (row 7)", _asks),
    ):
        parts.append(asyncio.run(_hub(title, load)))
    text = "\n\n".join(parts)
    print(text)
    docs.replace(page, "profiles", text)


async def _stream(_: Served, client: Client, session: str, folder: Path) -> None:
    said = lines.talk_lines(20_000)
    file = through.write_lines(folder, "talk", said)
    text = "".join(map(through.text_of, said))
    for _round in range(3):
        await through.talk(client, session, file, text)


async def _durable(_: Served, client: Client, session: str, folder: Path) -> None:
    file = through.write_lines(folder, "durable", lines.progress_lines(20_000))
    for _round in range(3):
        await client.prompt(session, prompt({"do": "send", "file": str(file)}))
        await through.until_counted(client, 20_000)


async def _paced(deck: Served, client: Client, _: str, __: Path) -> None:
    sessions = await through.paced_sessions(deck, client)
    for _round in range(3):
        await through.paced_round(deck, client, sessions, through.RATE / through.SESSIONS)


async def _asks(_: Served, client: Client, session: str, __: Path) -> None:
    for _round in range(3):
        await client.prompt(session, prompt({"do": "ask", "times": 100}))
        await through.answering(client)


async def _hub(title: str, load: Load) -> str:
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as place:
        folder = Path(place)
        profile = folder / "hub.prof"
        async with served(folder, profile=profile) as deck, deck.client() as client:
            session = await through.ready_session(deck, client)
            before = _threads(deck.pid)
            await load(deck, client, session, folder)
            after = _threads(deck.pid)
        used = sorted((after[name] - before.get(name, 0.0) for name in after), reverse=True)
        shares = ", ".join(f"{seconds:.2f} s" for seconds in used if seconds >= 0.01)
        return f"### {title}\n\nProcessor time by thread: {shares}.\n\n{_summary(profile)}"


def _agent() -> str:
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as place:
        folder = Path(place)
        file, profile = folder / "stream.ndjson", folder / "agent.prof"
        lines.write(lines.stream_lines(200_000), file)
        command = ["-m", "cProfile", "-o", str(profile), "-m", "bench.worker", "ours", str(file)]
        subprocess.run([sys.executable, *command], check=True, capture_output=True, timeout=120)
        return f"### `Agent`, 200,000 stream events (row 1)\n\n{_summary(profile)}"


def _threads(pid: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        found[task.name] = (int(fields[11]) + int(fields[12])) / TICKS
    return found


def _summary(profile: Path) -> str:
    """The functions with the most time of their own, without what only starting takes."""
    out = io.StringIO()
    stats = pstats.Stats(str(profile), stream=out).strip_dirs().sort_stats("tottime")
    stats.print_stats(40)
    skipped = ("marshal", "compile", "importlib", "__build_class__", "posix", "exec", "io.open")
    rows = [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]
    head = next(at for at, line in enumerate(rows) if "ncalls" in line)
    body = [row for row in rows[head + 1 :] if not any(word in row for word in skipped)]
    return "\n".join(("```text", rows[head], *body[:LINES], "```"))
