"""The largest prompt goes through whole, and everybody else is answered; a larger one is refused.

Through a real hub and its runner, on each way in. How long it holds up the event loop is measured
by `python -m bench large`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from websockets.asyncio.client import ClientConnection

from quarterdeck.fronts.http.large_bodies import LARGE_BODY
from quarterdeck.service.local_hub import own_token
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.command_line import Quarterdeck
from support.forks import Forks
from support.processes import Processes
from support.served_deck import ServedDeck, until_true
from support.web_sockets import connect

pytestmark = [pytest.mark.process, pytest.mark.heavy]

Json = dict[str, Any]
Send = Callable[[ServedDeck, str, object], Awaitable[Json]]

ROOM = 1024
"""For the rest of a command."""
TOLD = "told"
"""What the agent keeps; in the folder that it may write to."""
MEANWHILE = 5
"""Answers that others get while a prompt is on its way, at least."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def deck(
    tmp_path: Path, processes: Processes, hubs_to_fork: Forks
) -> AsyncIterator[ServedDeck]:
    """A hub with the relay, and an agent that keeps what it is told."""
    command = Quarterdeck(tmp_path / "home", "http://127.0.0.1:9", ("false",), processes)
    turn = (fake.Expect("user", polite=True, timeout=SECONDS), fake.say(fake.result("done")))
    command.play_fake(fake.Initialize(), *turn * 4, fake.Hang(), record=command.work / TOLD)
    made = ServedDeck(command, processes, hubs_to_fork)
    made.data.mkdir(parents=True)
    (made.data / "quarterdeck.toml").write_text("relay.enabled = true\n")
    await made.serve()
    yield made
    await made("stop")
    await made.ends()
    await made.leave()


def prompt(size: int, beginning: str) -> list[Json]:
    """A text of many lines and an image, of this size in JSON."""
    text = beginning + 'né\n"' * 100_000
    image = {"type": "base64", "media_type": "image/png", "data": ""}
    blocks: list[Json] = [{"type": "text", "text": text}, {"type": "image", "source": image}]
    room = size - len(encoded(blocks))
    image["data"] = base64.b64encode(b"\x89PNG" * room)[: room // 4 * 4].decode()
    return blocks


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def bearer(deck: ServedDeck) -> dict[str, str]:
    return {"authorization": f"Bearer {own_token(deck.data)}"}


async def over_http(deck: ServedDeck, session: str, content: object) -> Json:
    """Gives the outcome, or the problem."""
    headers = bearer(deck) | {"content-type": "application/json"}
    async with httpx.AsyncClient(base_url=deck.address, timeout=SECONDS) as client:
        path = f"/api/sessions/{session}/prompts"
        answer = await client.post(path, content=encoded({"content": content}), headers=headers)
    found: Json = answer.json()
    return found


async def over_the_stream(deck: ServedDeck, session: str, content: object) -> Json:
    url = f"ws://127.0.0.1:{deck.port}/api/stream"
    async with connect(url, additional_headers=bearer(deck), max_size=None) as socket:
        order = {"command": "prompt.send", "session": session, "content": content}
        await socket.send(encoded({"t": "command", "id": "1", "command": order}).decode())
        answer = await heard(socket, lambda frame: frame.get("id") == "1")
        found: Json = answer.get("outcome") or answer["problem"]
        # The connection goes on, also after a refusal.
        await socket.send('{"t": "follow", "id": "2"}')
        await heard(socket, lambda frame: frame.get("id") == "2")
    return found


async def over_the_relay(deck: ServedDeck, session: str, content: object) -> Json:
    url = f"ws://127.0.0.1:{deck.port}/ws?session={session}&pieces=0"
    body = {"role": "user", "content": content}
    async with connect(url, additional_headers=bearer(deck), max_size=None) as socket:
        line = {"type": "user", "message": body, "session_id": "", "parent_tool_use_id": None}
        await socket.send(encoded(line).decode() + "\n")
        answer = await heard(
            socket,
            lambda frame: frame["type"] == "error" or len(json.dumps(frame)) > len(str(content)),
        )
    return answer.get("error") or {"session": session}


async def heard(socket: ClientConnection, wanted: Callable[[Json], bool]) -> Json:
    with anyio.fail_after(SECONDS):
        while True:
            frame: Json = json.loads(await socket.recv())
            if wanted(frame):
                return frame


def told(deck: ServedDeck) -> list[object]:
    """What the agent was told, prompt by prompt."""
    path = deck.command.work / TOLD
    data = path.read_bytes() if path.exists() else b""
    lines = data[: data.rfind(b"\n") + 1].splitlines()  # it may be writing
    found = [json.loads(line) for line in lines if line.startswith(b'{"type":"user"')]
    return [line["message"]["content"] for line in found]


async def test_the_largest_prompt_goes_through_whole_while_others_wait_for_nothing(
    deck: ServedDeck,
) -> None:
    session = await deck.new("begin")
    await until_true(lambda: len(told(deck)) == 1)
    await deck.until_state(session, "idle")
    content: object = None
    for number, send in enumerate((over_http, over_the_stream), 2):
        content = prompt(LARGE_BODY - ROOM, send.__name__)
        answers = 0
        async with (
            httpx.AsyncClient(
                base_url=deck.address, headers=bearer(deck), timeout=SECONDS
            ) as owner,
            anyio.create_task_group() as tasks,
        ):
            outcome: list[Json] = []

            async def deliver(send: Send = send, content: object = content) -> None:
                outcome.append(await send(deck, session, content))  # noqa: B023 - called here

            tasks.start_soon(deliver)
            with anyio.fail_after(SECONDS):
                while not outcome or answers < MEANWHILE:
                    answers += (await owner.get("/api/sessions")).status_code == 200
        assert outcome[0].get("session") == session, outcome
        await until_true(lambda: len(told(deck)) == number)  # noqa: B023 - called here
        assert told(deck)[-1] == content
        await deck.until_state(session, "idle")
    page = await _events(deck, session)
    assert [each for each in page if each.get("content") == content], "the journal has it"
    await refuse_larger_ones(deck, session)
    assert len(told(deck)) == 3, "nothing of them reached the agent"


async def _events(deck: ServedDeck, session: str) -> list[Json]:
    """All events of a session."""
    found: list[Json] = []
    async with httpx.AsyncClient(
        base_url=deck.address, headers=bearer(deck), timeout=SECONDS
    ) as client:
        after: int | None = 0
        while after is not None:
            path = f"/api/sessions/{session}/events?after={after}"
            page = (await client.get(path)).json()
            found += [each["event"] for each in page["events"]]
            after = page["next"]
    return found


async def refuse_larger_ones(deck: ServedDeck, session: str) -> None:
    """Over each way in, with the limit."""
    larger = prompt(LARGE_BODY + 100, "too much")
    for send in (over_http, over_the_stream, over_the_relay):
        refused = await send(deck, session, larger)
        assert refused["code"] == "too_large", refused
        assert str(LARGE_BODY) in str(refused), refused
    done = await deck("send", session, "-", stdin="x" * (LARGE_BODY + 100), code=2)
    assert "more than 16 MB: too long for a prompt" in done.err
