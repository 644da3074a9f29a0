"""A viewer sends every size and shape to every route of a real hub; an owner does not notice.

The routes are those that the hub itself describes, so that a new one is attacked, too. The relay
is on. Meanwhile an owner reads from this hub and an idle one and answers questions of their agents,
which is measured side by side (`support.owner_watch`): the first may take 200 ms longer than the
second, and never more.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from quarterdeck.service.local_hub import live_hub, own_token
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.command_line import Quarterdeck
from support.forks import Forks
from support.hostile_requests import (
    MARKDOWN,
    Attack,
    Route,
    attacks,
    command_frames,
    frames,
    heaviest,
    largest,
    routes,
)
from support.owner_watch import ANSWER, STREAM_ANSWER
from support.processes import Processes
from support.served_deck import TESTS, ServedDeck
from support.web_sockets import connect

pytestmark = [pytest.mark.process, pytest.mark.heavy]

LONGEST = 0.2
"""How much longer than for an idle hub an owner may wait, in seconds."""
AT_ONCE = 12
MANY = 24
CROWD = 200
"""Requests at once: nearly as many as one person may have under way."""
LOG, WAITS = "hub.log", "waits.json"
QUESTIONS = 3_000
"""Of the agent, one after the other: more than an owner answers meanwhile."""
MANY_SECONDS = 5.0
"""How long an answer is waited for where many are asked for at once: a viewer waits for himself."""
HANG_SECONDS = 0.1
PATIENT = {"/api/sessions/{session_id}/events"}
"""An answer that never ends: it is left after its first bytes."""
NOT_TRIED = {("POST", "/api/logout"), ("DELETE", "/api/token")}
"""It ends the viewer's access: it is tried last."""
READ_BY_VIEWERS = {("POST", f"/api/policy/{name}") for name in ("check", "explain", "replay")}
CROWDED = {
    ("GET", "/api/sessions"),
    ("GET", "/api/sessions/{session_id}/events"),
    ("POST", "/api/policy/explain"),
}
"""What costs the most for each request, in the event loop itself."""
SOCKETS = ("/api/stream", "/", "/ws", "/runner", "/v1/ws/x", "/nowhere")


Json = dict[str, Any]
Work = Callable[[], Awaitable[None]]


class Watch:
    """The owner, in a process of its own: how long each answer took on both hubs."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self.rounds: list[tuple[str, float, float]] = []

    async def read(self) -> None:
        assert self._process.stdout is not None
        rest = b""
        async for chunk in self._process.stdout:
            *lines, rest = (rest + chunk).split(b"\n")
            self.rounds += [tuple(json.loads(line)) for line in lines]

    def worst(self) -> tuple[float, str]:
        """By how much the attacked hub was slower, at most, and for which request."""
        return max((mine - idle, path) for path, mine, idle in self.rounds)


@asynccontextmanager
async def watching(attacked: ServedDeck, idle: ServedDeck) -> AsyncIterator[Watch]:
    """An owner who asks while the block runs."""
    hubs = [[deck.port, own_token(deck.data), pid_of(deck)] for deck in (attacked, idle)]
    process = await anyio.open_process(
        [sys.executable, "-m", "support.owner_watch"],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stderr=None,
    )
    watch = Watch(process)
    assert process.stdin is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.read)
        await process.stdin.send(json.dumps(hubs).encode() + b"\n")
        await enough(watch, 12)
        watch.rounds.clear()  # the first requests of all load modules, on both
        try:
            yield watch
            await enough(watch, len(watch.rounds) + 12)
        finally:
            await process.stdin.aclose()
    with anyio.fail_after(SECONDS):
        assert await process.wait() == 0
    (attacked.data / WAITS).write_text(json.dumps(watch.rounds))  # for a closer look


async def enough(watch: Watch, rounds: int) -> None:
    with anyio.fail_after(SECONDS):
        while len(watch.rounds) < rounds:  # noqa: ASYNC110 - another process makes them
            await anyio.sleep(0.02)


def pid_of(deck: ServedDeck) -> int:
    state = live_hub(deck.data)
    assert state is not None
    return state.pid


@pytest.fixture
async def hubs(
    tmp_path: Path, processes: Processes, hubs_to_fork: Forks
) -> AsyncIterator[tuple[ServedDeck, ServedDeck, str]]:
    """A hub with a session whose agent says hostile things, an idle hub, and the session's id."""
    made = []
    for name in ("attacked", "idle"):
        command = Quarterdeck(tmp_path / name, "http://127.0.0.1:9", ("false",), processes)
        command.play_fake(
            fake.Initialize(),
            fake.Expect("user"),
            fake.say(
                *(fake.assistant(text) for text in (MARKDOWN, "| a " * 20_000, "*a_ " * 9_000))
            ),
            *(step for number in range(QUESTIONS) for step in question(number)),
            fake.Hang(),
        )
        made.append(ServedDeck(command, processes, hubs_to_fork))
        made[-1].data.mkdir(parents=True)
        (made[-1].data / "quarterdeck.toml").write_text(
            f"log.file = '{made[-1].data / LOG}'\nrelay.enabled = true\n"
        )
    attacked, idle = made
    sessions = [await with_a_question(deck) for deck in made]
    yield attacked, idle, sessions[0]
    await attacked("stop")
    await idle("stop")
    for deck in made:
        await deck.ends()
        await deck.leave()


async def with_a_question(deck: ServedDeck) -> str:
    """Serve a hub whose agent asks; gives the session."""
    await deck.serve()
    session = await deck.new("Say it.")
    await deck.until_state(session, "waiting")
    return session


def question(number: int) -> tuple[fake.Step, ...]:
    """The agent asks, and waits for the answer."""
    request = fake.can_use_tool("Bash", {"command": "make test"}, f"ask-{number}")
    return fake.say(request), fake.Expect("control_response", timeout=SECONDS)


async def send(port: int, attack: Attack, *, leave_early: bool) -> int | None:
    """Send a request; gives the status of the answer, or None where there is none."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await stream.send(attack.head)
            for part in in_pieces(attack.body, attack.pieces):
                await stream.send(part)
                if attack.pieces > 1:
                    await anyio.sleep(HANG_SECONDS / attack.pieces)
        if attack.hangs:
            with anyio.move_on_after(HANG_SECONDS):
                return await status_in(stream, to_the_end=False)
            return None
        with anyio.fail_after(SECONDS):
            return await status_in(stream, to_the_end=not leave_early)


async def status_in(stream: SocketStream, *, to_the_end: bool) -> int | None:
    got = b""
    try:
        while b"\r\n" not in got:
            got += await stream.receive()
        if to_the_end:
            while True:
                await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        pass
    found = re.match(rb"HTTP/1\.1 (\d+) ", got)
    return None if found is None else int(found[1])


def in_pieces(body: bytes, count: int) -> Iterable[bytes]:
    size = max(1, -(-len(body) // count))
    return (body[at : at + size] for at in range(0, len(body), size))


async def each(work: Iterable[Work], at_once: int = AT_ONCE) -> None:
    """Await all, a few at a time."""
    waiting = iter(work)

    async def one_after_another() -> None:
        for call in waiting:
            await call()

    async with anyio.create_task_group() as tasks:
        for _ in range(at_once):
            tasks.start_soon(one_after_another)


def held_up(deck: ServedDeck) -> list[str]:
    """What the hub itself noticed, for the report of a failure."""
    log = (deck.data / LOG).read_text()
    return [line for line in log.splitlines() if "held up" in line]


async def talk(port: int, path: str, token: str, message: str | bytes | list[str]) -> None:
    """Open a WebSocket, say one thing, listen for a moment, and leave."""
    headers = {"authorization": f"Bearer {token}"}
    with suppress(InvalidHandshake, ConnectionClosed, OSError):
        async with connect(
            f"ws://127.0.0.1:{port}{path}", additional_headers=headers, max_size=None
        ) as socket:
            await socket.send(message)
            with anyio.move_on_after(HANG_SECONDS):
                while True:
                    await socket.recv()


async def order(port: int, token: str, session: str) -> list[Json]:
    """Send every command as frames of the stream, as fast as they are answered; their answers."""
    headers = {"authorization": f"Bearer {token}"}
    answers: list[Json] = []
    url = f"ws://127.0.0.1:{port}/api/stream"
    async with connect(url, additional_headers=headers, max_size=None) as socket:
        for frame in command_frames(session):
            await socket.send(frame)
            with anyio.fail_after(SECONDS):
                while (answer := json.loads(await socket.recv()))["t"] not in {"done", "failed"}:
                    pass
            answers.append(answer)
    return answers


async def test_the_watch_notices_a_hub_that_is_held_up(
    hubs: tuple[ServedDeck, ServedDeck, str],
) -> None:
    attacked, idle, _ = hubs
    async with watching(attacked, idle) as watch:
        quiet = watch.worst() if watch.rounds else (0.0, "")
        os.kill(pid_of(attacked), signal.SIGSTOP)
        await anyio.sleep(2 * LONGEST)
        os.kill(pid_of(attacked), signal.SIGCONT)
    assert quiet[0] < LONGEST
    assert watch.worst()[0] > LONGEST


async def test_an_owner_is_answered_while_a_viewer_sends_everything_to_every_route(
    hubs: tuple[ServedDeck, ServedDeck, str],
) -> None:
    attacked, idle, session = hubs
    port = attacked.port
    token = (await attacked("token", "--role", "viewer", "--name", "mallory")).out.strip()
    headers = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS) as client:
        found = routes((await client.get("/openapi.json")).json())
    assert len(found) > 45
    tried = [route for route in found if (route.method, route.path) not in NOT_TRIED]
    answers: Counter[int | None] = Counter()
    failed: list[str] = []

    def filled(route: Route) -> str:
        path = route.path.replace("{session_id}", session).replace("{machine}", "local")
        return re.sub(r"\{[^}]*\}", "01jzzzzzzzzzzzzzzzzzzzzzzz", path)

    async def attempt(route: Route, attack: Attack) -> None:
        try:
            status = await send(port, attack, leave_early=route.path in PATIENT)
        except TimeoutError:
            failed.append(f"{attack.name}: no answer")
            return
        answers[status] += 1
        if status is not None and status >= 500 and status != 503:
            failed.append(f"{attack.name}: {status}")

    def of_routes() -> Iterator[Work]:
        for route in tried:
            for attack in attacks(route, filled(route), headers.encode()):
                yield partial(attempt, route, attack)

    def of_sizes() -> Iterator[Work]:
        for route in tried:
            if route.schema:
                for attack in largest(route, filled(route), headers.encode()):
                    yield partial(attempt, route, attack)

    async def begin(route: Route, attack: Attack) -> None:
        with anyio.move_on_after(MANY_SECONDS):
            await attempt(route, attack)

    def of_one_route_many_times(count: int, chosen: Iterable[Route]) -> Iterator[Work]:
        for route in chosen:
            for attack in heaviest(route, filled(route), headers.encode()):
                yield from [partial(begin, route, attack)] * count

    read = [
        route
        for route in tried
        if (route.method, route.path) in READ_BY_VIEWERS or route.method == "GET"
    ]
    crowded = [route for route in tried if (route.method, route.path) in CROWDED]
    assert len(crowded) == len(CROWDED)

    async def give_orders() -> None:
        ordered.extend(await order(port, token, session))

    ordered: list[Json] = []
    async with watching(attacked, idle) as watch:
        await each(of_routes())
        await each([give_orders] * 4)
        await each(of_sizes(), at_once=2)
        await each(of_one_route_many_times(MANY, read), at_once=MANY)
        await each(of_one_route_many_times(CROWD, crowded), at_once=CROWD)
        await each(
            partial(talk, port, path, token, message) for path in SOCKETS for _, message in frames()
        )
    assert failed == []
    assert answers[200] > 50, "most of it was not simply refused"
    assert answers[400] > 200
    assert answers[413] > 0
    assert answers[429] < sum(answers.values()) / 20
    assert len(watch.rounds) > 60
    ways = {path for path, *_ in watch.rounds}
    assert {ANSWER, STREAM_ANSWER} <= ways, "an owner answers over HTTP and over the stream"
    assert {each["t"] for each in ordered} == {"failed"}
    codes = Counter(each["problem"]["code"] for each in ordered)
    assert codes.keys() <= {"forbidden", "bad_request"}, codes
    assert codes["forbidden"] > 0
    longer, path = watch.worst()
    assert longer < LONGEST, (path, held_up(attacked))
    bearer = {"authorization": f"Bearer {own_token(attacked.data)}"}
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers=bearer, timeout=SECONDS
    ) as owner:
        grants = (await owner.get("/api/tokens")).json()
        made = [each for each in grants["tokens"] if each["name"] == "mallory"]
        left = (await owner.delete(f"/api/tokens/{made[0]['id']}")).json()["tokens"]
        assert not [each for each in left if each["name"] == "mallory"]
        assert (await owner.get(f"/api/sessions/{session}")).json()["state"] == "waiting"
