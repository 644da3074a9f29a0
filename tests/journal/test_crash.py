"""A process that writes a journal is killed: what it was told is stored is there, and whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import anyio
import pytest

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal import SqliteJournal, fold_all
from quarterdeck.protocol.events import Noted
from quarterdeck.protocol.stored_events import Stored
from support.bounds import SECONDS
from support.processes import Processes

ROUNDS = 20


class Writer:
    """A process that appends."""

    def __init__(self, path: Path, seed: int, processes: Processes) -> None:
        environment = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "support.journal_writer", str(path), str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # else what is read ahead here would be missing in `kill`
            env=environment,
        )
        processes.started(self.process.pid)

    def wait_until_open(self) -> None:
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), True)
        assert self.process.stdout.readline() == b"open\n", self._complaint()

    def acknowledged(self, times: int) -> list[str]:
        """Wait until so many appends are acknowledged; gives them."""
        assert self.process.stdout is not None
        return [self.process.stdout.readline().decode().rstrip("\n") for _ in range(times)]

    def kill(self) -> list[str]:
        """Kill it; gives what else it had acknowledged."""
        self.process.send_signal(signal.SIGKILL)
        out, _ = self.process.communicate(timeout=SECONDS)
        return out.decode().splitlines()

    def _complaint(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


async def everything(journal: SqliteJournal, session: str) -> list[Stored]:
    found: list[Stored] = []
    while page := await journal.read(session, after=found[-1].seq if found else 0):
        found += page
    return found


async def test_what_was_acknowledged_survives_a_kill_and_nothing_is_half_there(
    tmp_path: Path, processes: Processes
) -> None:
    path = tmp_path / "journal.db"
    start = int(os.environ.get("SEED") or random.randrange(10**6))
    sys.stdout.write(f"to repeat this: SEED={start}\n")
    acknowledged: dict[tuple[str, int], tuple[int, str]] = {}
    for seed in range(start, start + ROUNDS):
        writer = Writer(path, seed, processes)
        writer.wait_until_open()
        moment = random.Random(seed)
        lines = writer.acknowledged(moment.randint(1, 8))
        await anyio.sleep(moment.random() * 0.02)  # hopes for nothing: any moment will do
        for line in (*lines, *writer.kill()):
            if line.count(" ") == 3:  # the last may be cut
                session, seq, count, name = line.split(" ")
                acknowledged[session, int(seq)] = int(count), name
        async with await SqliteJournal.open(path) as journal:
            for session in ("s0", "s1", "s2", "s3"):
                stored = await everything(journal, session)
                assert [each.seq for each in stored] == list(range(1, len(stored) + 1))
                notes = [each.event for each in stored if isinstance(each.event, Noted)]
                for (count, _), group in groupby(notes, lambda note: (note.level, note.text)):
                    assert len(list(group)) == int(count), "half an append is there"
                assert await journal.head(session) == len(stored)
                assert await journal.summary(session) == fold_all(None, stored)
                for (of, first), (size, name) in acknowledged.items():
                    if of == session:
                        found = {note.text.split()[0] for note in notes[first - 1 :][:size]}
                        assert found == {name}
    assert len(acknowledged) >= ROUNDS


async def test_two_processes_cannot_have_one_journal(tmp_path: Path, processes: Processes) -> None:
    path = tmp_path / "journal.db"
    writer = Writer(path, 1, processes)
    writer.wait_until_open()
    try:
        with pytest.raises(JournalError, match=f"pid {writer.process.pid}") as caught:
            await SqliteJournal.open(path)
        assert caught.value.code == "busy"
    finally:
        writer.kill()
    async with await SqliteJournal.open(path) as journal:
        with pytest.raises(JournalError, match="in use by another process"):
            await SqliteJournal.open(path)
        await journal.append("a", [Noted(level="x", text="y")])
    async with await SqliteJournal.open(path) as journal:
        assert await journal.head("a") == 1
