"""The journal against what the CLIs wrote and read: nothing missing, doubled or out of order.

Pure comparing: events on one side, the records of `fault_cli` on the other. Each finding is a
sentence; no finding is what a schedule wants.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from quarterdeck.protocol.events import (
    AnyEvent,
    AskAnswered,
    AskOpened,
    AskWithdrawn,
    PromptSent,
    PromptTaken,
    Recalled,
    RunEnded,
    RunStarted,
    RunStarting,
    Said,
    SaidBroken,
    Sent,
)


class Life(msgspec.Struct):
    """A run, as the journal tells it."""

    run: str
    pid: int | None = None
    ended: RunEnded | None = None
    said: list[tuple[int, str]] = msgspec.field(default_factory=list)
    recalled: list[str] = msgspec.field(default_factory=list)
    sent: list[tuple[int, bytes]] = msgspec.field(default_factory=list)


def lives(events: Sequence[AnyEvent]) -> dict[str, Life]:
    """The runs in these events."""
    found: dict[str, Life] = {}
    for event in events:
        match event:
            case RunStarting(run=run):
                found[run] = Life(run)
            case RunStarted(run=run, pid=pid):
                found[run].pid = pid
            case RunEnded(run=run):
                found[run].ended = event
            case Said(run=run, number=number, line=line):
                found[run].said.append((number, bytes(line).decode()))
            case SaidBroken(run=run, number=number, text=text):
                found[run].said.append((number, text))
            case Recalled(run=run, line=line):
                found[run].recalled.append(bytes(line).decode())
            case Sent(run=run, number=number, line=line):
                found[run].sent.append((number, bytes(line)))
            case _:
                pass
    return found


def with_records(known: dict[str, Life], records: Path) -> dict[str, Life]:
    """The same, where the process numbers are those of the records.

    A CLI in a sandbox does not know its own. Its record is the one that begins with the first line
    that its run has sent: no other run has sent that.
    """
    firsts = {lines[0]: int(path.stem) for path in records.glob("*.in") if (lines := _lines(path))}
    for life in known.values():
        if life.pid is not None and not (records / f"{life.pid}.in").exists():
            life.pid = firsts.get(life.sent[0][1]) if life.sent else None
    return known


def wrote(records: Path, pid: int) -> list[str]:
    """The durable lines that a CLI wrote."""
    return [
        line.decode("utf-8", "replace")
        for line in _lines(records / f"{pid}.out")
        if not line.startswith(b'{"type": "stream_event"')
    ]


def read(records: Path, pid: int) -> list[bytes]:
    """The lines that a CLI read."""
    return _lines(records / f"{pid}.in")


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def find(events: Sequence[AnyEvent], records: Path, runner_killed: set[str]) -> list[str]:
    """What is wrong with a session all of whose runs have ended.

    `runner_killed` are the runs whose runner was killed: of what lay unread in their pipes there
    are the messages, from the CLI's transcript.
    """
    found: list[str] = []
    known = with_records(lives(events), records)
    for life in known.values():
        found += _numbers(life)
        if life.pid is None:
            continue
        found += _said(life, records, life.run in runner_killed)
        found += _messages(life, records)
        found += _sent(life, read(records, life.pid))
    pids = {life.pid for life in known.values()}
    for path in records.glob("*.in"):
        if int(path.stem) not in pids and _lines(path):
            found.append(f"the CLI {path.stem} was written to, and no run knows it")
    found += [f"the CLI {at.decode()} ran beside another one" for at in _lines(records / "alone")]
    return found + _asks(events) + _prompts(events, known, records)


def _numbers(life: Life) -> list[str]:
    found: list[str] = []
    said = [number for number, _ in life.said]
    if said != sorted(set(said)):
        found.append(f"run {life.run}: lines are doubled or out of order: {said}")
    sent = [number for number, _ in life.sent]
    if sent != list(range(1, len(sent) + 1)):
        found.append(f"run {life.run}: lines for the CLI are not numbered in a row: {sent}")
    return found


def _said(life: Life, records: Path, runner_killed: bool) -> list[str]:
    pid = life.pid or 0
    record, last = wrote(records, pid), _lines(records / f"{pid}.out")[-1:]
    said = [line for _, line in life.said]
    same = 0
    while same < min(len(said), len(record)) and said[same] == record[same]:
        same += 1
    rest, missing = said[same:], record[same:]
    killed = life.ended is not None and not life.ended.clean
    if killed and len(rest) == 1 and last[0].startswith(rest[0].rstrip("\ufffd").encode()):
        # Killed in the midst of a line, perhaps of a delta: what it wrote of it is kept.
        rest, missing = [], missing[1:]
    elif life.ended is not None and life.ended.signal is not None and len(missing) == 1:
        missing = []  # killed after it had put the line down, and before it had written it
    if rest:
        return [f"run {life.run}: line {same} is {rest[0][:200]!r}, not {missing[:1]!r:.200}"]
    if missing and not runner_killed:
        return [f"run {life.run}: {len(missing)} lines are missing, from {missing[0][:200]!r}"]
    return []


def _messages(life: Life, records: Path) -> list[str]:
    """What people read of a run, said or recalled, is what its CLI wrote."""
    wanted = _of_people(wrote(records, life.pid or 0))
    said, recalled = _of_people([line for _, line in life.said]), _of_people(life.recalled)
    found = said + recalled
    if found == wanted:
        return []
    if life.ended is not None and not life.ended.clean and found == wanted[:-1]:
        return []  # killed after it had put the line down, and before it was in the transcript
    counts = f"{len(wanted)} messages written, {len(said)} heard, {len(recalled)} recalled"
    return [f"run {life.run}: {counts}, and they are not the same"]


def _of_people(lines: list[str]) -> list[tuple[object, object]]:
    """The messages among these lines: their uuids, and what they say."""
    found: list[tuple[object, object]] = []
    for line in lines:
        try:
            match json.loads(line):
                case {"type": "user" | "assistant", "uuid": uuid, "message": message}:
                    found.append((uuid, message))
                case _:
                    pass
        except ValueError:
            pass
    return found


def _sent(life: Life, record: list[bytes]) -> list[str]:
    sent = [line for _, line in life.sent]
    if record != sent[: len(record)]:
        at = next(i for i, line in enumerate(record) if sent[i : i + 1] != [line])
        return [
            f"run {life.run}: the CLI read {record[at][:200]!r}, not {sent[at : at + 1]!r:.200}"
        ]
    return []


def _asks(events: Sequence[AnyEvent]) -> list[str]:
    """Every question ended once, while its run was there; after that it may be answered, once."""
    found: list[str] = []
    opened: dict[str, str] = {}
    ended: Counter[str] = Counter()
    late: Counter[str] = Counter()
    over: set[str] = set()
    for event in events:
        match event:
            case AskOpened(ask=ask, run=run):
                if ask in opened:
                    found.append(f"the question {ask} was opened twice")
                opened[ask] = run
            case AskAnswered(ask=ask) | AskWithdrawn(ask=ask):
                (late if opened.get(ask) in over else ended)[ask] += 1
                if ask not in opened:
                    found.append(f"the question {ask} ended before it was asked")
            case RunEnded(run=run):
                over.add(run)
            case _:
                pass
    found += [f"the question {ask} ended {ended[ask]} times" for ask in opened if ended[ask] != 1]
    found += [f"the question {ask} was answered late {n} times" for ask, n in late.items() if n > 1]
    return found


def _prompts(events: Sequence[AnyEvent], known: dict[str, Life], records: Path) -> list[str]:
    """No prompt runs twice: it is given again only where the CLI before had not taken it."""
    found: list[str] = []
    taken: dict[str, str] = {}
    given: dict[str, list[PromptSent]] = {}
    for event in events:
        match event:
            case PromptSent(prompt=prompt):
                if prompt in taken:
                    found.append(f"the prompt {prompt} was given again after it had been taken")
                given.setdefault(prompt, []).append(event)
            case PromptTaken(prompt=prompt):
                taken[prompt] = given[prompt][-1].run
            case _:
                pass
    for prompt, times in given.items():
        runs = [sent.run for sent in times]
        if len(set(runs)) != len(runs):
            found.append(f"the prompt {prompt} was given to a run twice: {runs}")
        # What a CLI echoed it has taken, whatever the journal says. (The last line of its record
        # may never have been written: it is put down before.)
        echoed = [
            sent.run
            for sent in times
            if (pid := known[sent.run].pid) is not None
            and any(_echoes(line, sent.uuid or prompt) for line in wrote(records, pid)[:-1])
        ]
        if len(echoed) > 1:
            found.append(f"the prompt {prompt} ran in several runs: {echoed}")
    return found


def _echoes(line: str, uuid: str) -> bool:
    if '"isReplay"' not in line:
        return False
    return bool(json.loads(line)["uuid"] == uuid)
