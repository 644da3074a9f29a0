"""A hub as a process for the tests of faults: the real one, with its stdin and stdout for a front.

`python -m support.fault_hub JOURNAL PORT TOKEN_FILE`. A line on stdin is a `Question`, a line on
stdout a `Reply` to it, or (the first) the port. Questions are answered as they are done, in any
order: a process that is killed at any moment has promised nothing that it did not write down.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
import threading
from pathlib import Path

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.hub import session, snapshots
from quarterdeck.hub.hub import Hub
from quarterdeck.journal import SqliteJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol.commands import AnyCommand, Outcome
from quarterdeck.protocol.session_view import SessionView

LINE_LIMIT = 64 * 1024 * 1024


class Question(msgspec.Struct):
    """What a test asks: exactly one of its wishes is set."""

    id: int
    submit: AnyCommand | None = None
    view: str | None = None
    events: str | None = None
    after: int = 0
    disk_full: bool | None = None


class Row(msgspec.Struct):
    """An event as the journal has it."""

    seq: int
    position: int
    at: int
    event: Raw


class Reply(msgspec.Struct):
    """What came of it."""

    id: int
    outcome: Outcome | None = None
    view: SessionView | None = None
    rows: list[Row] | None = None
    error: str | None = None
    code: str = ""
    text: str = ""


async def answer(hub: Hub, journal: Path, question: Question) -> Reply:
    reply = Reply(question.id)
    try:
        if question.submit is not None:
            reply.outcome = await hub.submit(question.submit)
        elif question.view is not None:
            reply.view = await hub.session(question.view)
        elif question.events is not None:
            stored = await hub.events(question.events, after=question.after, limit=2000)
            reply.rows = [Row(s.seq, s.position, s.at, Raw(s.json)) for s in stored]
        elif question.disk_full is not None:
            fill_disk(journal, full=question.disk_full)
    except QuarterdeckError as error:
        reply.error = type(error).__name__
        reply.code = str(getattr(error, "code", ""))
        reply.text = str(error)
    return reply


def fill_disk(journal: Path, *, full: bool) -> None:
    """Let no file of this process grow, or let it again: what a full disk does."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = journal.with_name(journal.name + "-wal")
    size = log.stat().st_size if log.exists() else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (size if full else most, most))


def hurry() -> None:
    """Have in a schedule of seconds what otherwise takes thousands of events, or minutes."""
    snapshots.EVENTS, snapshots.SHARE, snapshots.WORTH_IT = 10, 0, 5
    session.REST_SECONDS = 0.5


async def main(journal_file: Path, port: int, token: str) -> None:
    hurry()
    journal = await SqliteJournal.open(journal_file)
    hub = Hub(journal, lambda given: "local" if given == token else None)
    loop = asyncio.get_running_loop()
    questions = asyncio.StreamReader(limit=LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(questions), sys.stdin)

    async def serve_one(line: bytes) -> None:
        question = msgspec.json.decode(line, type=Question)
        reply = await answer(hub, journal_file, question)
        data = msgspec.json.encode(reply) + b"\n"
        await anyio.to_thread.run_sync(write_all, data)

    try:
        async with hub.run(), serve_endpoint(hub.runners, port=port) as bound:
            write_all(f"{bound}\n".encode())
            async with anyio.create_task_group() as tasks:
                loop.add_signal_handler(signal.SIGTERM, tasks.cancel_scope.cancel)
                while line := await questions.readline():
                    tasks.start_soon(serve_one, line)
                tasks.cancel_scope.cancel()
    finally:
        await journal.close()


_one_at_a_time = threading.Lock()


def write_all(data: bytes) -> None:
    with _one_at_a_time:
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).read_text()))
