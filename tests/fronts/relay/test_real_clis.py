"""The relay with real CLIs: two versions that dial it, and the newest by the runner."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from quarterdeck.config import Settings
from quarterdeck.config.settings import RelaySettings
from quarterdeck.fronts.http import Role
from quarterdeck.testing import Gate, RealCli, ScriptedModel, Text, play, reply
from support.api_client import ApiSeat, Refusal, api_seat
from support.frontends import Frontend, Json, frontend
from support.processes import Processes
from support.relay_shapes import SHAPES
from support.scenes import bash

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

RULES = """
[[rule]]
name = "these may be made"
verdict = "allow"
command = "touch"
match = ["touch by-rule"]
not_match = ["rm by-rule"]
"""
SEATS = (("2.1.62", "dialled"), ("2.1.120", "dialled"), ("2.1.325", "runner"))


@pytest.fixture(params=[pytest.param(seat, id="-".join(seat)) for seat in SEATS])
async def seat(
    request: pytest.FixtureRequest,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[ApiSeat]:
    """The whole service with the relay, for one version of the CLI on one way to it."""
    version, way = request.param
    async with api_seat(clis[version], way, model, tmp_path, processes, monkeypatch) as made:
        made.deck.take(Settings(relay=RelaySettings(enabled=True)))
        yield made


@pytest.fixture
async def all_versions(
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[dict[str, ApiSeat]]:
    """One service with the relay, and a seat of each version at it."""
    cli = clis["2.1.325"]
    async with api_seat(cli, "runner", model, tmp_path, processes, monkeypatch) as made:
        made.deck.take(Settings(relay=RelaySettings(enabled=True)))
        seats: dict[str, ApiSeat] = {}
        for version, way in SEATS:
            seats[version] = copy.copy(made)
            seats[version]._cli, seats[version].way = clis[version], way
        yield seats


def shapes_of(seat: ApiSeat) -> list[tuple[Json, Json]]:
    """The shapes of answers that are tried with a version: the first with all, others with one.

    What a shape means does not depend on the version (`test_answers` shows all of them), and what
    the CLI is sent does not depend on the shape.
    """
    place = [version for version, _ in SEATS].index(seat._cli.version)
    return [
        shape
        for number, shape in enumerate(SHAPES.values())
        if number == 0 or number % len(SEATS) == place
    ]


class Tables:
    """Frontends of a seat, each with a token of its own."""

    def __init__(self, seat: ApiSeat) -> None:
        self.seat = seat
        self.url = "ws" + seat.deck.address.removeprefix("http") + "/ws"

    def frontend(self, name: str, query: str = "", **options: Any) -> Any:
        token = self.seat.deck.access.make_token(name, Role.OWNER)
        return frontend(self.url + query, token=token, **options)


async def begin(seat: ApiSeat) -> str:
    """A session on the relay, dialled at `/` or started by the runner."""
    return await (seat.dial(None) if seat.dials else seat.create())


async def test_everything_that_frontends_do_with_one_cli(seat: ApiSeat) -> None:
    tables = Tables(seat)
    async with (
        tables.frontend("early") as early,
        tables.frontend("stopped", reading=False) as stopped,
    ):
        session = await begin(seat)
        await early.status("claude code connected")
        await seat.state(session, "idle")
        await a_turn_from_a_frontend(seat, early)
        await garbage_reaches_nobody(seat, session, early)
        await every_shape_allows_and_denies(seat, session, early)
        await the_web_app_and_a_frontend_answer_the_same_question(seat, session, early)
        async with tables.frontend("late", f"?session={session}") as late:
            await all_were_told_the_same(seat, early, stopped, late)
        if seat.has(120):
            await another_conversation_is_marked(early)
        await early.say(
            type="control_request", request_id="bye", request={"subtype": "end_session"}
        )
        await early.status("claude code disconnected")
        await seat.state(session, "ended")


async def a_turn_from_a_frontend(seat: ApiSeat, early: Frontend) -> None:
    """A prompt with a piece of text that is told while it is made."""
    await early.prompt(play(reply(Text("word ", times=20), Gate("middle"), "at last")))
    await seat.model.wait_at_gate("middle")
    await early.has("stream_event", 5)
    assert early.of("stream_event")[0]["event"]["type"] == "message_start"
    assert not early.of("result")
    seat.model.release("middle")
    result = await early.has("result")
    assert result["result"].endswith("at last")
    init = early.of("system")[0]
    assert init["session_id"] == result["session_id"]
    told = await early.request("init", "initialize")
    assert told["subtype"] == "success"
    assert told["response"]["commands"]


async def garbage_reaches_nobody(seat: ApiSeat, session: str, early: Frontend) -> None:
    """Each of these lines would end a CLI of some version, or make it hang."""
    lines = (
        "not JSON",
        "null",
        "\ufeff{}",
        '{"type":"frobnicate"}',
        '{"type":"user"}',
        '{"type":"user","message":{"role":"user","content":[]}}',
        '{"type":"user","message":{"role":"assistant","content":"x"}}',
        '{"type":"control_request","request_id":"x"}',
        '{"type":"control_response"}',
        '{"type":"update_environment_variables"}',
        '{"type":"control_response","response":{"subtype":"success","request_id":"none"}}',
    )
    sent = len(seat.stream.of(session, "sent"))
    known = len(early.of("error"))
    for line in lines:
        await early.socket.send(line)
    await early.error(known + len(lines))
    await early.prompt(play("still here"))
    await early.has("result", 2)
    assert early.of("result")[-1]["result"] == "still here"
    after = [each["line"] for each in seat.stream.of(session, "sent")[sent:]]
    assert [line["type"] for line in after if line["type"] == "user"] == ["user"]
    assert not [line for line in after if "frobnicate" in str(line)]


async def every_shape_allows_and_denies(seat: ApiSeat, session: str, early: Frontend) -> None:
    for number, (allow, deny) in enumerate(shapes_of(seat)):
        for verdict, shape in (("allowed", allow), ("denied", deny)):
            made = seat.work / f"{verdict}-{number}"
            asked = len(early.of("control_request"))
            ended = len(early.of("result"))
            await early.prompt(play(bash(f"touch {made.name}"), "done"))
            request = await early.has("control_request", asked + 1)
            assert request["request"]["input"]["command"] == f"touch {made.name}"
            assert request["session_id"] == early.of("result")[-1]["session_id"]
            await early.say(type="control_response", **with_id(shape, request["request_id"]))
            await early.has("result", ended + 1)
            assert made.exists() is (verdict == "allowed"), (shape, early.lines[-5:])
    verdicts = await seat.verdicts(session, "Bash")
    assert verdicts == [("early", "allow"), ("early", "deny")] * len(shapes_of(seat))
    assert not early.of("control_cancel_request")


def with_id(shape: Json, request_id: str) -> Json:
    """A shape of `SHAPES`, for another request."""

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: request_id
                if name == "request_id"
                else None
                if name == "updatedInput"
                else change(each)
                for name, each in value.items()
            }
        return value

    changed: Json = change(shape)
    return changed


async def the_web_app_and_a_frontend_answer_the_same_question(
    seat: ApiSeat, session: str, early: Frontend
) -> None:
    """Both answer at the same time, and one of them wins."""
    asked, ended = len(early.of("control_request")), len(early.of("result"))
    errors = len(early.of("error"))
    await early.prompt(play(bash("touch contested"), "done"))
    request = await early.has("control_request", asked + 1)
    card = seat.stream.of(session, "ask.opened")[-1]
    outcome: list[str] = []

    async def web_app() -> None:
        try:
            await seat.answer(card, "deny", message="no")
            outcome.append("web app")
        except Refusal as refused:
            outcome.append({"already_answered": "frontend"}[refused.code])

    answer = {"request_id": request["request_id"], "approved": True}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(web_app)
        await early.say(type="control_response", **answer)
    await early.has("result", ended + 1)
    (winner,) = outcome
    assert (seat.work / "contested").exists() is (winner == "frontend")
    if winner == "web app":
        assert "answered by ada" in (await early.error(errors + 1))["message"]
    assert len(seat.stream.of(session, "ask.answered")) == 2 * len(shapes_of(seat)) + 1


async def all_were_told_the_same(
    seat: ApiSeat, early: Frontend, stopped: Frontend, late: Frontend
) -> None:
    """One that did not read until now, and one that comes now, have all lines.

    The CLI may still say that it is idle: that line reaches one before another.
    """

    def whole(front: Frontend) -> list[str]:
        kinds = ("system", "assistant", "user", "result")
        return [
            message
            for message in front.messages
            if any(f'"type":"{kind}"' in message for kind in kinds)
            and '"type":"status"' not in message
        ]

    def has_all(front: Frontend) -> bool | None:
        return True if len(whole(front)) >= len(wanted) else None

    wanted = whole(early)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stopped.read)
        for front in (stopped, late):
            await front.until(partial(has_all, front))
        tasks.cancel_scope.cancel()
    assert whole(stopped)[: len(wanted)] == wanted
    assert whole(late)[: len(wanted)] == wanted
    assert len(early.of("result")) > 2 * len(shapes_of(seat))


async def another_conversation_is_marked(early: Frontend) -> None:
    before = early.of("result")[-1]["session_id"]
    ended = len(early.of("result"))
    await early.prompt("/clear")
    await early.prompt(play("all new"))
    await early.until(
        lambda: next((line for line in early.of("result") if line.get("result") == "all new"), None)
    )
    assert len(early.of("result")) > ended
    changed = await early.status("claude code session changed")
    after = early.of("result")[-1]["session_id"]
    assert (changed["previous_session_id"], changed["session_id"]) == (before, after)
    assert before != after
    first = next(
        at for at, line in enumerate(early.lines)
        if line.get("session_id") == after and line.get("type") != "status"
    )  # fmt: skip
    assert early.lines[first - 1] == changed


async def test_agents_of_three_versions_on_one_relay_are_told_apart(
    all_versions: dict[str, ApiSeat],
) -> None:
    seat = all_versions["2.1.325"]
    async with Tables(seat).frontend("ada") as front:
        sessions = {version: await begin(each) for version, each in all_versions.items()}
        await front.status("claude code connected", len(sessions))
        for version, session in sessions.items():
            await seat.state(session, "idle")
            # Before its first turn a CLI has told no id: the hub's own is in the status.
            script = play(bash(f"touch {version}"), f"I am {version}")
            await front.prompt(script, session_id=session)
        await front.has("control_request", len(sessions))
        for request in reversed(front.of("control_request")):
            body = {"behavior": "allow"}
            answer = {"subtype": "success", "request_id": request["request_id"], "response": body}
            await front.say(type="control_response", response=answer)
        await front.has("result", len(sessions))
        ids = {line["result"]: line["session_id"] for line in front.of("result")}
        assert set(ids) == {f"I am {version}" for version in sessions}
        assert len(set(ids.values())) == len(sessions)
        assert all((seat.work / version).exists() for version in sessions)
        for said, cli_session in ids.items():
            await front.prompt(play(f"{said}, again"), session_id=cli_session)
        await front.has("result", 2 * len(sessions))
        again = {line["result"]: line["session_id"] for line in front.of("result")[3:]}
        assert again == {f"{said}, again": cli_session for said, cli_session in ids.items()}

        # Only a rule approves without a person.
        (seat.deck.home / "policy.toml").write_text(RULES)
        (told,) = (await seat.ada.get("policy"))["files"]
        assert told["flaws"] == [], told
        for version, cli_session in zip(sessions, ids.values(), strict=True):
            made = f"by-rule-{version}"
            await front.prompt(play(bash(f"touch {made}"), "done"), session_id=cli_session)
        await front.has("result", 3 * len(sessions))
        assert all((seat.work / f"by-rule-{version}").exists() for version in sessions)
        assert len(front.of("control_request")) == len(sessions)
        assert not front.of("error")
        for session in sessions.values():
            await seat.stop(session)
