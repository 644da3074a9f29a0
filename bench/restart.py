"""Row 14: a hub that starts again beside a running session of any length, and the runner's end.

A hub in this process takes the lines of one run, until its journal has so many events, and is then
given up as a killed one is: without a stop. `quarterdeck serve` is started on the same data folder.
Measured are the time to its first answer, the time until a command to that session is done, and its
largest resident memory. Then the run's machine comes back and tells that its runner was killed, as
the next runner does: measured is the time until a follower has the end of the run.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import anyio
import msgspec
from msgspec import Raw
from websockets.asyncio.client import ClientConnection, connect

from bench.machine import NAME
from bench.served import Served, quiet, start, stop
from bench.table import Bar, Kind, Measure, Sample, paired
from quarterdeck.domain.exits import RUNNER_KILLED
from quarterdeck.fronts.http import Access, Role
from quarterdeck.history.texts import texts_of
from quarterdeck.hub.hub import Hub
from quarterdeck.hub.session_process import ProcessEvents
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.journal.sqlite.search import SearchIndex
from quarterdeck.protocol.commands import CreateSession
from quarterdeck.protocol.runner_frames import (
    PROTOCOL,
    Ack,
    Ended,
    Header,
    Hello,
    RunReport,
    Started,
    Transcript,
    TranscriptQuery,
    Written,
    frame,
    read_hub_frame,
)
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.service.local_hub import live_hub

EVENTS = (10_000, 100_000, 1_000_000)
BATCH = 200
TURN = 2000
"""Calls of a turn."""
HOOKS = 50
"""Every so many calls are shown to the hub's hook first."""
SESSION = "long"
CLI_SESSION = "5f0c2f5e-7a53-4c2d-9a63-0d8f3c1b2a47"
PATIENCE = 300.0


class _Port:
    """A port to a process that does not exist: what is written is with it at once."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.lines: list[bytes] = []
        self.numbers = 0

    def write(self, number: int, line: bytes) -> None:
        self.numbers = max(self.numbers, number)
        self.lines.append(line)

    def acknowledge(self, upto: int) -> None: ...

    def stop(self, *, force: bool = False) -> None: ...

    def forget(self) -> None: ...

    def unwritten(self) -> dict[int, bytes]:
        return {}

    def read_transcript(self, wanted: TranscriptQuery) -> None: ...


class _Machines:
    def __init__(self) -> None:
        self.ports: list[_Port] = []

    def start(self, run: str, session: str, spec: SessionSpec, origin: Origin) -> _Port:  # noqa: ARG002
        self.ports.append(_Port(run))
        return self.ports[-1]

    def attach(self, run: str, session: str, machine: str, *, said: int) -> _Port:  # noqa: ARG002
        raise RuntimeError("nothing runs yet")


def _line(**members: object) -> bytes:
    return json.dumps(members).encode()


def _uuid(kind: int, number: int) -> str:
    return f"{number:08x}-{kind:04x}-4000-8000-000000000000"


def said() -> Iterator[bytes]:
    """What a busy CLI says, for ever."""
    common = {"parent_tool_use_id": None, "session_id": CLI_SESSION}
    number = 0
    while True:
        yield _line(
            type="system",
            subtype="init",
            cwd="/tmp",
            session_id=CLI_SESSION,
            tools=["Read"],
            mcp_servers=[],
            model="claude-sonnet-4-6",
            permissionMode="default",
            slash_commands=[],
            apiKeySource="none",
            claude_code_version="2.1.325",
            uuid=_uuid(1, number),
        )
        for _ in range(TURN):
            number += 1
            call = f"toolu_{number}"
            given = {"file_path": f"/tmp/{number}.txt"}
            message = {
                "id": f"msg_{number}",
                "role": "assistant",
                "model": "claude-sonnet-4-6",
                "content": [{"type": "tool_use", "id": call, "name": "Write", "input": given}],
                "usage": {"input_tokens": 4, "output_tokens": 60},
            }
            yield _line(type="assistant", message=message, **common, uuid=_uuid(2, number))
            if number % HOOKS == 0:
                seen = {
                    "hook_event_name": "PreToolUse",
                    "cwd": "/tmp",
                    "permission_mode": "default",
                    "tool_name": "Write",
                    "tool_input": given,
                    "tool_use_id": call,
                }
                hook = {"subtype": "hook_callback", "callback_id": "quarterdeck-watch"}
                request = {**hook, "input": seen}
                yield _line(type="control_request", request_id=f"h-{number}", request=request)
            result = {"type": "tool_result", "tool_use_id": call, "content": "written " * 30}
            body = {"role": "user", "content": [result]}
            yield _line(type="user", message=body, **common, uuid=_uuid(3, number))
        yield _line(
            type="result",
            subtype="success",
            is_error=False,
            duration_ms=1,
            duration_api_ms=1,
            num_turns=1,
            result="done",
            session_id=CLI_SESSION,
            total_cost_usd=0.0,
            usage={"input_tokens": 1, "output_tokens": 1},
            modelUsage={},
            permission_denials=[],
            uuid=_uuid(4, number),
        )


async def fill(home: Path, events: int) -> tuple[str, int, int]:
    """A journal with one running session; gives its run, and the numbers of its last lines."""
    await anyio.Path(home).mkdir(mode=0o700)
    machines = _Machines()
    journal = await SqliteJournal.open(home / "journal.db")
    hub = Hub(journal, lambda _: None, machines=machines)
    first, lines = 1, said()
    async with hub.run():
        spec = SessionSpec(directory="/tmp", machine=NAME)
        hello = Raw(b'"go"')
        create = CreateSession(spec=spec, session=SESSION, prompt=hello, by="bench")
        await hub.submit(create)
        (port,) = machines.ports
        owner = ProcessEvents(hub._sessions[SESSION])  # noqa: SLF001 - the run's side of the hub
        await owner.run_started(port.run, 4_000_000, "2.1.325", "/tmp")
        greeting = json.loads(port.lines[-1])
        answer = {"subtype": "success", "request_id": greeting["request_id"], "response": {}}
        await owner.run_said(port.run, first, [_line(type="control_response", response=answer)])
        first += 1
        while await journal.head(SESSION) < events:
            batch = list(islice(lines, BATCH))
            await owner.run_said(port.run, first, batch)
            first += len(batch)
            port.lines.clear()
        last = await journal.read(SESSION, after=await journal.head(SESSION) - 1)
        # There is no word in these events to be found: the index need not look at each of them.
        index = SearchIndex(home / "search.db", journal.epoch, journal.position, texts_of)
        index.add(last)
        index.close()
        await journal.close()  # so this hub stops as a killed one does: nothing more is stored
    return port.run, first - 1, port.numbers


class Filled(msgspec.Struct):
    """A data folder with one running session, and what its machine knows of the run."""

    home: Path
    token: str
    report: RunReport


async def filled(folder: Path, events: int) -> Filled:
    """Fill a journal for a hub."""
    home = folder / f"restart-{events}"
    run, lines, written = await fill(home, events)
    (home / "quarterdeck.toml").write_text("")
    return Filled(
        home=home,
        token=Access(home).make_token(NAME, Role.RUNNER),
        report=RunReport(run=run, session=SESSION, said=lines, written=written, ended=True),
    )


class Restart(msgspec.Struct):
    """What was measured once."""

    answer: float
    command: float
    busy: float
    peak: float
    told: float = 0.0


async def restart(place: Filled, *, end: bool) -> Restart:
    """Start a hub; at the `end` its run ends."""
    home = place.home
    begun = time.perf_counter()
    process = start(home, "--no-runner")
    try:
        while live_hub(home) is None:
            if process.poll() is not None or time.perf_counter() - begun > PATIENCE:
                raise RuntimeError(f"the hub did not start: {(home / 'serve.log').read_text()}")
            await anyio.sleep(0.005)
        deck = Served(home, home, process)
        await asyncio.to_thread(_session, deck)
        answer = time.perf_counter() - begun
        async with deck.client() as client:
            rename = {"command": "session.rename", "session": SESSION, "name": "still there"}
            await client.do(rename)
            command = time.perf_counter() - begun
            busy = deck.cpu_seconds()
        told = await _killed(deck, place) if end else 0.0
        await quiet(deck.pid)
        peak = _peak(deck.pid)
        return Restart(answer=answer, command=command, busy=busy, peak=peak, told=told)
    finally:
        stop(process)


def _session(deck: Served) -> None:
    url = f"{deck.address}/api/sessions/{SESSION}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {deck.token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        if json.loads(answer.read())["session"] != SESSION:
            raise RuntimeError("this is no answer about the session")


async def _killed(deck: Served, place: Filled) -> float:
    """The machine is back with a new runner; gives the seconds until the end is told."""
    headers = {"Authorization": f"Bearer {place.token}"}
    url, report = f"ws{deck.address.removeprefix('http')}", place.report

    def dial(path: str) -> connect:
        return connect(
            url + path,
            additional_headers=headers,
            compression=None,
            max_size=None,
            proxy=None,
            ping_interval=None,
        )

    async def send(socket: ClientConnection, header: Header) -> None:
        await socket.send(frame(header))

    async with deck.client() as follower, dial("/runner") as machine:
        await follower.follow({SESSION: (await _head(deck))}, live=False)
        hello = Hello(
            machine=NAME, runner="b", protocol=PROTOCOL, version="0", pid=1, runs=(report,)
        )
        begun = time.perf_counter()
        await send(machine, hello)
        await machine.recv()  # its welcome
        async with dial(f"/runner/runs/{report.run}") as socket:
            await send(socket, Started(pid=4_000_000, version="2.1.325", directory="/tmp"))
            await send(socket, Written(upto=report.written))
            ended = False
            async for data in socket:
                assert isinstance(data, bytes)
                header, _ = read_hub_frame(data)
                if isinstance(header, Ack) and not ended:
                    ended = True
                    reason = "The runner was killed, and the CLI with it."
                    end = Ended(
                        number=report.said + 1, reason=reason, fault=RUNNER_KILLED, unheard=True
                    )
                    await send(socket, end)
                if isinstance(header, TranscriptQuery):
                    await send(socket, Transcript(last=True))
                    break
            await follower.until("run.ended", SESSION)
            return time.perf_counter() - begun


async def _head(deck: Served) -> int:
    def read() -> int:
        url = f"{deck.address}/api/sessions/{SESSION}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {deck.token}"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(json.loads(answer.read())["head"])

    return await asyncio.to_thread(read)


def _peak(pid: int) -> float:
    """The largest resident memory of a process so far, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc says nothing of the memory of {pid}")


async def restarts(folder: Path, rounds: int) -> list[Measure]:
    """Row 14. To fill the longest journal takes a minute."""
    places = {events: await filled(folder, events) for events in EVENTS}
    found: dict[int, list[Restart]] = {events: [] for events in EVENTS}
    for number in range(rounds):
        for events in EVENTS:
            found[events].append(await restart(places[events], end=number == rounds - 1))
    return [
        _measure(found, events, name, work, unit, most)
        for events in EVENTS
        for name, work, unit, most in (
            ("answer", "first answer", "s", 2.0),
            ("command", "first command to it done", "s", 2.0),
            ("busy", "processor time until then", "s", 2.0),
            ("peak", "largest memory", "MB", 150.0),
            ("told", "runner killed: its end told after", "s", 2.0),
        )
    ]


def _measure(
    found: dict[int, list[Restart]], events: int, name: str, work: str, unit: str, most: float
) -> Measure:
    ours, first = (
        [value for each in found[size] if (value := float(getattr(each, name)))]
        for size in (events, EVENTS[0])
    )
    return Measure(
        row=14,
        work=f"hub started beside a run of {events:,} events: {work}",
        unit=unit,
        ours=Sample(tuple(ours)),
        ratio=paired(ours, first),
        bar=Bar(Kind.AT_MOST, most),
    )
