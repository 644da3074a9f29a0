"""What may be large, and how large bodies and frames are decoded in bounded time."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from websockets.exceptions import ConnectionClosed

from quarterdeck.domain.errors import QuarterdeckError, UsageError
from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.large_bodies import (
    LARGE_BODY,
    LARGE_MEMBERS,
    SMALL_BODY,
    SMALL_FRAME,
)
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.routes.handlers import decode_command, decode_struct
from quarterdeck.hub.hub import Hub
from quarterdeck.journal import MemoryJournal
from quarterdeck.protocol.command_table import ROWS
from quarterdeck.protocol.commands import CreateSession, SendPrompt
from support.bounds import SECONDS
from support.front import Front, front
from support.hostile_requests import routes

LONG = "x" * SMALL_BODY
SPEC = {"directory": "/work"}
LARGE_ROUTES = {
    ("POST", "/api/sessions"),
    ("POST", "/api/sessions/{session_id}/prompts"),
    ("PATCH", "/api/sessions/{session_id}/prompts/{prompt_id}"),
    ("POST", "/api/sessions/{session_id}/files"),
}
TEXT_ROUTES = {("POST", f"/api/policy/{name}") for name in ("check", "explain", "replay")} | {
    ("PUT", "/api/policy/files/{name}")
}

Decode = Callable[[str, dict[str, Any]], object]


def as_command(tag: str, members: dict[str, Any]) -> object:
    return decode_command(Raw(json.dumps({"command": tag, **members}).encode()))


def as_body(tag: str, members: dict[str, Any]) -> object:
    command = {each.__struct_config__.tag: each for each in LARGE_MEMBERS}[tag]
    body = ROWS[command].body  # type: ignore[index]
    assert body is not None
    given = {name: value for name, value in members.items() if name != "session"}
    return decode_struct(json.dumps(given).encode(), body, LARGE_MEMBERS[command])


@pytest.mark.parametrize("decode", [as_command, as_body])
@pytest.mark.parametrize("length", [10, SMALL_BODY])
def test_a_prompt_is_the_same_whatever_its_size(decode: Decode, length: int) -> None:
    content = [{"type": "text", "text": "é" * length}, {"type": "text", "text": "\n"}]
    sent = decode("prompt.send", {"session": "s", "prompt": "p1", "content": content})
    assert json.loads(bytes(sent.content)) == content  # type: ignore[attr-defined]
    assert sent.prompt == "p1"  # type: ignore[attr-defined]
    made = decode("session.create", {"spec": SPEC, "prompt": content, "prompt_id": "p1"})
    assert json.loads(bytes(made.prompt)) == content  # type: ignore[attr-defined]
    assert made.spec.directory == "/work"  # type: ignore[attr-defined]


@pytest.mark.parametrize("decode", [as_command, as_body])
@pytest.mark.parametrize(
    ("tag", "members", "error", "says"),
    [
        (
            "session.create",
            {"spec": {"directory": 1}, "prompt": LONG},
            UsageError,
            "spec.directory",
        ),
        ("session.create", {"spec": SPEC, "prompt": LONG, "x": 1}, UsageError, "x: unknown field"),
        ("session.create", {"prompt": LONG}, UsageError, "spec: missing"),
        (
            "session.create",
            {"spec": {**SPEC, "env": {f"N{n}": "" for n in range(200_000)}}, "prompt": LONG},
            Refused,
            "besides prompt",
        ),
        ("prompt.send", {"session": "s", "prompt": LONG, "content": "hi"}, Refused, "besides"),
        ("prompt.send", {"session": "s", "content": LONG, "steer": 2}, UsageError, "steer"),
    ],
    ids=[
        "wrong member",
        "unknown member",
        "missing member",
        "large spec",
        "large id",
        "wrong type",
    ],
)
def test_a_large_body_is_checked_as_a_small_one(
    decode: Decode, tag: str, members: dict[str, Any], error: type[QuarterdeckError], says: str
) -> None:
    with pytest.raises(error, match=says):
        decode(tag, members)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b'{"command":"prompt.send","session":"s"}' + b" " * SMALL_BODY, "content: missing"),
        (b'{"command":"prompt.send","session":"s","content":"' + b"x" * SMALL_BODY, "not JSON"),
        (b'{"command":"nothing","content":"' + b"x" * SMALL_BODY + b'"}', "nothing"),
        (b'{"command":"prompt.send","content":' + b"[" * SMALL_BODY, "nested too deeply"),
        (b"[1" + b",1" * SMALL_BODY + b"]", "expected an object"),
    ],
    ids=["blanks", "cut off", "no such command", "deep", "a list"],
)
def test_a_large_command_that_makes_no_sense_is_refused(data: bytes, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        decode_command(Raw(data))


def test_a_command_that_is_no_prompt_is_small() -> None:
    answers = {f"question {n}": "" for n in range(200_000)}
    answer = {"answer": "questions", "answers": answers}
    with pytest.raises(Refused) as refused:
        as_command("ask.answer", {"ask": "a", "answer": answer})
    assert refused.value.problem.code == "too_large"


def test_only_prompts_are_large_commands() -> None:
    assert {CreateSession, SendPrompt} <= LARGE_MEMBERS.keys()
    for command, member in LARGE_MEMBERS.items():
        kinds = {field.name: field.type for field in msgspec.structs.fields(command)}
        assert kinds[member] is Raw, "it is passed on undecoded"


async def test_a_route_takes_no_more_than_it_needs(tmp_path: Path) -> None:
    service = Hub(MemoryJournal(), lambda token: None).worktree_service
    answers: dict[int, set[tuple[str, str]]] = {}
    async with front(tmp_path, worktree_service=service) as hub, hub.client() as client:
        session = await hub.deck.have_session()
        client.timeout = SECONDS
        for route in routes((await client.get("/openapi.json")).json()):
            if not route.schema or route.path == "/login":
                continue  # a login has a limit of its own
            path = route.path.replace("{session_id}", session).replace("{", "").replace("}", "")
            limit = 2 * SMALL_BODY if (route.method, route.path) in TEXT_ROUTES else SMALL_BODY
            found = await client.request(
                route.method,
                path,
                content=b" " * (limit + 1),
                headers={"content-type": "application/json"},
            )
            answers.setdefault(found.status_code, set()).add((route.method, route.path))
    assert len(answers[413]) > 10
    assert answers.pop(400) == LARGE_ROUTES
    answers.pop(404, None)  # of services that this front does not have
    assert answers.keys() == {413}


@pytest.mark.parametrize("place", [30, SMALL_BODY - 1, SMALL_BODY + 1024 * 1024])
async def test_a_body_that_is_not_utf_8_is_refused_wherever_it_is_not(
    hub: Front, place: int
) -> None:
    text = b"x" * (2 * SMALL_BODY)
    body = b'{"content": "' + text[:place] + b"\xff" + text[place:] + b'"}'
    path = f"/api/sessions/{await hub.deck.have_session()}/prompts"
    async with hub.client() as client:
        json_type = {"content-type": "application/json"}
        refused = await client.post(path, content=body, headers=json_type)
        assert (refused.status_code, "not UTF-8" in refused.json()["detail"]) == (400, True)
        halves = "é" * SMALL_BODY  # each slice ends within one of them, or between two
        for more in ("", "x"):
            sent = await client.post(path, json={"content": more + halves})
            assert sent.status_code == 200


async def test_a_viewer_has_no_use_for_large_frames(hub: Front) -> None:
    async with hub.stream(Role.VIEWER) as talk:
        assert talk.greeting["limits"]["frame_bytes"] == SMALL_FRAME
        with suppress(ConnectionClosed):
            await talk.socket.send("x" * (SMALL_FRAME + 1))
        assert await talk.closed() == 1009


async def test_a_large_frame_is_a_command(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.stream(Role.OPERATOR) as talk:
        assert talk.greeting["limits"]["frame_bytes"] == LARGE_BODY
        command = {"command": "prompt.send", "session": session, "content": LONG}
        await talk.say(t="command", id="1", command=command)
        assert (await talk.hear("done", "failed"))["t"] == "done"
        await talk.say(t="follow", id="2", sessions={f"s{n}": 0 for n in range(30_000)})
        assert (await talk.hear("error"))["problem"]["detail"].startswith("frame: ")
        assert await talk.closed() == 4400
