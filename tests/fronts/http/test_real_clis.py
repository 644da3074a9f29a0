"""Everything that a person does, through the API alone, with the real CLI of every version."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.testing import Gate, RealCli, ScriptedModel, Text, ToolUse
from support.api_client import ApiSeat, Json, Refusal, api_seat
from support.clis import DIALLING, VERSIONS
from support.processes import Processes
from support.scenes import bash, write

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

SEATS = [(version, "runner") for version in VERSIONS] + [(each, "dialled") for each in DIALLING]
COLOUR = "Which colour?"
PLAN = "# The plan\n1. work\n"


@pytest.fixture(params=[pytest.param(seat, id="-".join(seat)) for seat in SEATS])
async def seat(
    request: pytest.FixtureRequest,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[ApiSeat]:
    """The whole service, for one version of the CLI on one way to it."""
    version, way = request.param
    async with api_seat(clis[version], way, model, tmp_path, processes, monkeypatch) as made:
        yield made


async def test_a_person_decides_about_every_call(seat: ApiSeat) -> None:
    session = await seat.create(bash("touch one"), "done")
    card = await seat.ask(session)
    assert (card["ask_kind"], card["tool"]) == ("tool", "Bash")
    assert not (seat.work / "one").exists()
    assert (await seat.state(session, "waiting for you"))["asks"] == 1
    await seat.answer(card, "allow")
    assert (await seat.turn_ended(session))["text"] == "done"
    assert (seat.work / "one").exists()
    with pytest.raises(Refusal, match="already answered by ada") as refused:
        await seat.bob.post(f"asks/{card['ask']}/answer", answer={"answer": "deny"})
    assert refused.value.code == "already_answered"

    await seat.send(session, bash("touch two"), "a pity")
    await seat.answer(await seat.ask(session), "deny", message="rather not two")
    assert (await seat.turn_ended(session))["text"] == "a pity"
    assert not (seat.work / "two").exists()
    assert "rather not two" in seat.model.turns[-1].last_text

    await seat.send(session, bash("touch three"), "never said")
    await seat.answer(await seat.ask(session), "deny", stop=True)
    assert (await seat.turn_ended(session))["failed"]

    await seat.send(session, bash("touch four"), "changed")
    await seat.answer(await seat.ask(session), "allow", input={"command": "touch five"})
    assert (await seat.turn_ended(session))["text"] == "changed"
    assert (seat.work / "five").exists()
    assert not (seat.work / "four").exists()

    await questions_are_answered(seat, session)

    assert await seat.verdicts(session, "Bash") == [
        ("ada", "allow"),
        ("ada", "deny"),
        ("ada", "deny"),
        ("ada", "allow"),
    ]
    await seat.check_history(session)


async def questions_are_answered(seat: ApiSeat, session: str) -> None:
    options = [{"label": each, "description": each} for each in ("Red", "Blue")]
    question = {
        "header": "Colour",
        "question": COLOUR,
        "multiSelect": False,
        "options": options,
    }
    call = ToolUse("AskUserQuestion", {"questions": [question]})
    for given in ("Blue", "as the sea"):
        await seat.send(session, call, "I see")
        card = await seat.ask(session)
        assert card["ask_kind"] == "questions"
        await seat.answer(card, "questions", answers={COLOUR: given})
        assert (await seat.turn_ended(session))["text"] == "I see"
        assert f'"{COLOUR}"="{given}"' in seat.model.turns[-1].last_text
    await seat.send(session, call, "I see")
    await seat.answer(await seat.ask(session), "skip", message="ask me tomorrow")
    await seat.turn_ended(session)
    assert "ask me tomorrow" in seat.model.turns[-1].last_text


async def test_a_plan_is_revised_and_done_here_or_in_a_fresh_conversation(seat: ApiSeat) -> None:
    session = await seat.create("hello")
    await seat.turn_ended(session)
    await seat.control(session, "set_permission_mode", mode="plan")
    await seat.turn(session, "I look")
    told = re.search(rb"/[^\s\"`\\]+/plans/[\w-]+\.md", seat.model.turns[-1].body)
    assert told is not None
    file = Path(told.group().decode())

    async def planned(*replies: str | ToolUse) -> Json:
        await seat.send(session, *replies)
        card = await seat.ask(session)
        assert (card["ask_kind"], card["plan"]) == ("plan", PLAN)
        return card

    leave = ToolUse("ExitPlanMode")
    card = await planned(write(file, PLAN), leave, "I see")
    await seat.answer(card, "plan", choice="revise", feedback="and the tests?")
    assert (await seat.turn_ended(session))["text"] == "I see"
    assert "and the tests?" in seat.model.turns[-1].last_text

    by_hand = seat.work / "by-hand"
    card = await planned(leave, write(by_hand), "done")
    await seat.answer(card, "plan", choice="manual")
    card = await seat.ask(session)
    assert card["tool"] == "Write"
    assert not by_hand.exists()
    await seat.answer(card, "allow")
    assert (await seat.turn_ended(session))["text"] == "done"
    assert by_hand.exists()

    by_itself = seat.work / "by-itself"
    await seat.control(session, "set_permission_mode", mode="plan")
    await seat.answer(await planned(leave, write(by_itself), "done"), "plan", choice="auto")
    assert (await seat.turn_ended(session))["text"] == "done"
    assert by_itself.exists()

    afresh = seat.work / "afresh"
    before = await seat.ada.get(f"sessions/{session}")
    await seat.control(session, "set_permission_mode", mode="plan")
    seat.model.enqueue(write(afresh), "all new", when="Implement the following plan")
    await seat.answer(await planned(leave, "never said"), "plan", choice="fresh")
    await seat.turn_ended(session)  # the planning, which is ended
    assert (await seat.turn_ended(session))["text"] == "all new"
    assert afresh.exists()
    after = await seat.ada.get(f"sessions/{session}")
    assert after["run"] != before["run"]
    assert after["cli_session"] != before["cli_session"]
    assert PLAN.strip() in seat.model.turns[-1].first_prompt
    assert "and the tests?" not in seat.model.turns[-1].body.decode()

    assert seat.asked(session) == 0
    decided = [("ada", "deny"), *[("ada", "allow")] * 3]
    assert await seat.verdicts(session, "ExitPlanMode") == decided
    assert await seat.verdicts(session, "Write") == [
        ("cli", "allow"),
        ("ada", "allow"),
        ("cli", "allow"),
        ("cli", "allow"),
    ]
    await seat.check_history(session)
