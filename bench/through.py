"""Rows 4 to 7: through the whole hub. An agent in a process of its own, the runner, the hub with
its journal, and clients of the stream.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import anyio

from bench import lines
from bench.client import Client, Counting
from bench.piped import newline_seconds
from bench.rounds import interleaved_async, percentile
from bench.served import AGENT, Served, prompt, served
from bench.table import Bar, Kind, Measure, Peer, Sample, paired

BURST = 20_000
FAN_EVENTS, FAN_FOLLOWERS = 3000, 100
SESSIONS, RATE, PACED_SECONDS = 50, 1000.0, 4.0
PACED_BEGIN_SECONDS = 2.0
"""In which fifty turns begin, on a machine that has nothing else to do."""
ASKS = 60
WORD = b'"total_tokens"'
"""Stands once in every durable line of the benchmarks."""


def write_lines(folder: Path, name: str, said: list[str]) -> Path:
    """A file with these lines."""
    path = folder / name
    path.write_text("".join(line + "\n" for line in said))
    return path


# --- row 4: a burst ------------------------------------------------------------------------------


async def burst(folder: Path, rounds: int) -> list[Measure]:
    """One agent that speaks as fast as it can, one client that reads all of it."""
    spoken = lines.talk_lines(BURST)
    text = "".join(text_of(line) for line in spoken)
    talk_file = write_lines(folder, "talk.ndjson", spoken)
    durable = write_lines(folder, "durable.ndjson", lines.progress_lines(BURST))
    for_limit = folder / "talk-and-result.ndjson"
    lines.write(spoken, for_limit)
    live: list[float] = []
    async with served(folder, name="burst") as deck, deck.client() as client:
        session = await ready_session(deck, client)

        async def stream() -> float:
            seconds, share = await talk(client, session, talk_file, text)
            live.append(share)
            return BURST / seconds

        async def kept() -> float:
            await client.prompt(session, prompt({"do": "send", "file": str(durable)}))
            return BURST / await until_counted(client, BURST)

        async def limit() -> float:
            return BURST / await asyncio.to_thread(newline_seconds, for_limit)

        found = await interleaved_async({"stream": stream, "kept": kept, "limit": limit}, rounds)
    least = Peer("count newlines from the pipe", Sample(tuple(found["limit"])))
    return [
        Measure(
            row=4,
            work=f"burst of {BURST:,} stream events, agent to hub to one client",
            unit="events/s",
            ours=Sample(tuple(found["stream"])),
            limit=least,
            bar=Bar(Kind.AT_LEAST, 100_000),
            note=f"every message came whole through the journal; {min(live):.0%} or more of the "
            "text was there before, live",
        ),
        Measure(
            row=4,
            work=f"the same with {BURST:,} events that are each journalled",
            unit="events/s",
            ours=Sample(tuple(found["kept"])),
            limit=least,
            bar=Bar(Kind.AT_LEAST, 60_000),
        ),
    ]


def text_of(line: str) -> str:
    """The text of a line that is a whole message."""
    body = json.loads(line)
    return str(body["message"]["content"][0]["text"]) if body["type"] == "assistant" else ""


async def ready_session(deck: Served, client: Client) -> str:
    """A session that is ready, and followed."""
    session = await client.create(deck.spec())
    await client.follow({session: 0})
    await client.prompt(session, prompt({"do": "nothing"}))
    await client.until("turn.ended", session)
    return session


async def talk(client: Client, session: str, file: Path, wanted: str) -> tuple[float, float]:
    """The seconds of a burst, and how much of its text came live."""
    await client.prompt(session, prompt({"do": "send", "file": str(file)}))
    blocks: dict[str, str] = {}
    whole: list[str] = []
    begun = 0
    async with asyncio.timeout(60):
        while True:
            frame = await client.frame()
            for delta in frame.get("deltas", ()):
                old = "" if frame.get("whole") else blocks.get(delta["message"], "")
                blocks[delta["message"]] = old + delta["text"]
            for stored in frame.get("events", ()):
                line = stored["event"].get("line", {})
                if line.get("type") == "assistant":
                    whole.append(line["message"]["content"][0]["text"])
                elif "@" in line.get("description", ""):
                    begun = int(line["description"].split("@")[1])
                elif stored["event"]["kind"] == "turn.ended":
                    seconds = (time.monotonic_ns() - begun) / 1e9
                    if "".join(whole) != wanted:
                        raise RuntimeError("text was lost; what was measured means nothing")
                    return seconds, sum(map(len, blocks.values())) / len(wanted)


async def until_counted(client: Client, wanted: int) -> float:
    """The seconds from the agent's first line to the end of a turn with so many events."""
    begun = seen = 0
    async with asyncio.timeout(60):
        while True:
            for stored in (await client.frame()).get("events", ()):
                line = stored["event"].get("line", {})
                if "@" in line.get("description", ""):
                    begun = int(line["description"].split("@")[1])
                elif line.get("subtype") == "task_progress":
                    seen += 1
                elif stored["event"]["kind"] == "turn.ended":
                    if seen != wanted:
                        raise RuntimeError(f"{seen} of {wanted} events came")
                    return (time.monotonic_ns() - begun) / 1e9


# --- row 5: fan-out ------------------------------------------------------------------------------


async def fan_out(folder: Path, rounds: int) -> list[Measure]:
    """One agent, a hundred followers; beside it the same lines by `websockets.broadcast`."""
    file = write_lines(folder, "fan.ndjson", lines.progress_lines(FAN_EVENTS))
    async with served(folder, name="fan") as deck, deck.client() as client:
        session = await ready_session(deck, client)

        async def ours() -> float:
            head = (await _view(client, session))["head"]
            followers = await _followers(f"{deck.address}/api/stream", deck.token)
            for follower in followers:
                follower.follow(session, head, client.epoch)
            await anyio.sleep(0.2)
            await client.prompt(session, prompt({"do": "send", "file": str(file)}))
            rate = await _fanned(followers)
            await client.until("turn.ended", session)
            return rate

        async def peer() -> float:
            return await _beside("broadcast", file)

        async def limit() -> float:
            return await _beside("prebuilt", file)

        found = await interleaved_async({"ours": ours, "peer": peer, "limit": limit}, rounds)
    return [
        Measure(
            row=5,
            work=f"fan-out of {FAN_EVENTS:,} journalled events to {FAN_FOLLOWERS} followers",
            unit="deliveries/s",
            ours=Sample(tuple(found["ours"])),
            peer=Peer("websockets.broadcast", Sample(tuple(found["peer"]))),
            limit=Peer("a frame made once, written to each", Sample(tuple(found["limit"]))),
            ratio=paired(found["ours"], found["peer"]),
            bar=Bar(Kind.RATIO_AT_LEAST, 3.0),
            note="ours journals each event first; the peer and the limit keep nothing",
        )
    ]


async def _view(client: Client, session: str) -> dict[str, int]:
    answer = await client.ask(
        {"t": "follow", "sessions": {session: 2**52}, "live": False, "epoch": client.epoch}
    )
    place: dict[str, int] = answer["sessions"][session]
    return place


async def _followers(url: str, token: str) -> list[Counting]:
    # One more than the lines of the file: the agent begins with the time.
    return [
        await Counting.connected(url, token, WORD, FAN_EVENTS + 1) for _ in range(FAN_FOLLOWERS)
    ]


async def _fanned(followers: list[Counting]) -> float:
    """Deliveries a second, from the agent's first write to the last follower's last event."""
    try:
        async with asyncio.timeout(120):
            for follower in followers:
                await follower.done
        begun = min(follower.begun for follower in followers)
        seconds = (max(follower.ended for follower in followers) - begun) / 1e9
        return len(followers) * (FAN_EVENTS + 1) / seconds
    finally:
        for follower in followers:
            follower.close()


async def _beside(kind: str, file: Path) -> float:
    with _peer_server(kind, file) as address:
        followers = await _followers(address, "")
        followers[0].say({"go": True})
        return await _fanned(followers)


@contextmanager
def _peer_server(kind: str, file: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.fanning", kind, str(file)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
    finally:
        process.terminate()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()


# --- row 6: many sessions, at a steady pace ------------------------------------------------------


async def paced(folder: Path, rounds: int) -> list[Measure]:
    """Fifty agents that each say something now and then, one follower each."""
    medians: list[float] = []
    tails: list[float] = []
    each = RATE / SESSIONS
    async with served(folder, name="paced") as deck, deck.client() as client:
        sessions = await paced_sessions(deck, client)
        for _ in range(rounds):
            delays = await paced_round(deck, client, sessions, each)
            medians.append(statistics.median(delays))
            tails.append(percentile(delays, 0.99))
        limit = await asyncio.to_thread(_least_delay, folder, rounds)
    work = f"{SESSIONS} sessions, {RATE:,.0f} journalled events/s, one follower each: delay"
    return [
        Measure(
            row=6,
            work=f"{work}, p50",
            unit="ms",
            ours=Sample(tuple(medians)),
            limit=Peer("write and fdatasync one line", limit),
            bar=Bar(Kind.AT_MOST, 4),
        ),
        Measure(
            row=6,
            work=f"{work}, p99",
            unit="ms",
            ours=Sample(tuple(tails)),
            bar=Bar(Kind.AT_MOST, 20),
        ),
    ]


async def paced_sessions(deck: Served, client: Client, count: int = SESSIONS) -> list[str]:
    """Fifty sessions that are ready."""
    sessions = [await client.create(deck.spec()) for _ in range(count)]
    for session in sessions:
        await client.follow({session: 0}, live=False)
        await client.prompt(session, prompt({"do": "nothing"}))
    await _turns(client, set(sessions))
    await client.unfollow()  # one follower each is what is measured, and not two
    return sessions


async def _turns(client: Client, sessions: set[str]) -> None:
    """Wait for the end of a turn in each of them."""
    async with asyncio.timeout(120):
        while sessions:
            for stored in (await client.frame()).get("events", ()):
                if stored["event"]["kind"] == "turn.ended":
                    sessions.discard(stored["session"])


async def paced_round(
    deck: Served, client: Client, sessions: list[str], each: float
) -> list[float]:
    """The delays of all events, in milliseconds, when each agent says so many a second.

    The sessions are followed at `deck`, which may be another hub than that of `client`.
    """
    wanted = int(each * PACED_SECONDS)
    followers: list[Counting] = []
    heads = {session: (await _view(client, session))["head"] for session in sessions}
    for session, head in heads.items():
        url = f"{deck.address}/api/stream"
        follower = await Counting.connected(url, deck.token, WORD, wanted, times=True)
        follower.follow(session, head, client.epoch)
        followers.append(follower)
    # All turns have begun before the first line is timed: a steady pace is what is measured.
    todo = {"do": "pace", "rate": each, "seconds": PACED_SECONDS}
    begin = time.monotonic() + PACED_BEGIN_SECONDS
    for session in sessions:
        await client.prompt(session, prompt({**todo, "at": begin}))
    try:
        async with asyncio.timeout(PACED_SECONDS + 60):
            for follower in followers:
                await follower.done
        await client.follow(heads, live=False)
        await _turns(client, set(sessions))
        await client.unfollow()
        return [delay for follower in followers for delay in follower.delays]
    finally:
        for follower in followers:
            follower.close()


def _least_delay(folder: Path, rounds: int) -> Sample:
    found: list[float] = []
    line = b"x" * 300
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(rounds):
            took: list[float] = []
            for _ in range(200):
                start = time.perf_counter()
                file.write(line)
                os.fdatasync(file.fileno())
                took.append((time.perf_counter() - start) * 1000)
            found.append(statistics.median(took))
    return Sample(tuple(found))


# --- row 7: a question and its answer ------------------------------------------------------------


async def permission(folder: Path, rounds: int) -> list[Measure]:
    """An agent asks, a client answers at once: through the hub, and over direct stdio."""
    async with served(folder, name="asking") as deck, AsyncExitStack() as stack:
        client = await stack.enter_async_context(deck.client())
        session = await ready_session(deck, client)

        async def ours() -> float:
            await client.prompt(session, prompt({"do": "ask", "times": ASKS}))
            return statistics.median(await answering(client))

        async def peer() -> float:
            return statistics.median(await _direct())

        async def limit() -> float:
            return statistics.median(await asyncio.to_thread(_bare))

        found = await interleaved_async({"ours": ours, "peer": peer, "limit": limit}, rounds)
    over = tuple(a - b for a, b in zip(found["ours"], found["peer"], strict=True))
    return [
        Measure(
            row=7,
            work="permission round trip through runner, hub and WebSocket",
            unit="ms",
            ours=Sample(tuple(found["ours"])),
            peer=Peer("Agent on direct stdio", Sample(tuple(found["peer"]))),
            limit=Peer("a bare pipe", Sample(tuple(found["limit"]))),
            ratio=paired(found["ours"], found["peer"]),
        ),
        Measure(
            row=7,
            work="what the hub adds to it",
            unit="ms",
            ours=Sample(over),
            bar=Bar(Kind.AT_MOST, 2.5),
        ),
    ]


async def answering(client: Client) -> list[float]:
    """Allow each call at once; gives what the agent measured."""
    async with asyncio.timeout(120):
        while True:
            for stored in (await client.frame()).get("events", ()):
                event = stored["event"]
                if event["kind"] == "ask.opened":
                    answer = {"answer": "allow"}
                    command = {"command": "ask.answer", "ask": event["ask"], "answer": answer}
                    await client.send({"t": "command", "command": command})
                elif event.get("line", {}).get("type") == "result":
                    return [float(each) for each in json.loads(event["line"]["result"])]


async def _direct() -> list[float]:
    from quarterdeck import Agent, Options
    from quarterdeck.agent.asks import AnyAsk, Decision, ToolAsk
    from quarterdeck.wire.result import Result

    async def allow(ask: AnyAsk) -> Decision:
        assert isinstance(ask, ToolAsk)
        return ask.allow()

    command = (sys.executable, "-S", "-E", str(AGENT))
    async with Agent(Options(claude=command), decide=allow) as agent:
        async for message in agent.query(prompt({"do": "ask", "times": ASKS})):
            if isinstance(message, Result):
                return [float(each) for each in json.loads(str(message.result))]
    raise RuntimeError("the agent gave no result")


def _bare() -> list[float]:
    """Who answers knows nothing but where the id stands."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", str(AGENT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        say = {"message": {"content": prompt({"do": "ask", "times": ASKS})}, "type": "user"}
        process.stdin.write(json.dumps(say).encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            body = json.loads(line)
            if body["type"] == "result":
                process.stdin.close()
                return [float(each) for each in json.loads(body["result"])]
            if body["type"] == "control_request":
                answer = {"subtype": "success", "request_id": body["request_id"], "response": {}}
                said = {"type": "control_response", "response": answer}
                process.stdin.write(json.dumps(said).encode() + b"\n")
                process.stdin.flush()
    raise RuntimeError("the agent gave no result")
