"""Everything that a person does, through the API alone, with real CLIs, old and new."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.testing import Gate, RealCli, ScriptedModel, Text, ToolUse, play, reply
from support.api_client import ApiSeat, Json, Refusal, api_seat
from support.processes import Processes
from support.scenes import bash, write

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

SEATS = (("2.1.37", "runner"), ("2.1.120", "dialled"), ("2.1.325", "runner"))
"""The oldest and the newest, and one that dials. What a version does on each way is shown by
`tests/real_cli`; what a way does with each version, by `tests/hub` and `tests/runner`."""
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


async def test_everything_that_a_person_does_in_one_session(seat: ApiSeat) -> None:
    """Steered, rewound, resumed, forked, answered and planned with: four starts of the CLI."""
    session = await seat.create("remember ALPHA")
    await seat.turn_ended(session)
    await prompts_wait_and_a_turn_is_interrupted(seat, session)
    await the_model_and_the_mode_are_switched(seat, session)
    await the_cli_tells_about_itself_or_why_not(seat, session)
    await files_are_rewound(seat, session)

    first = await seat.stop(session)
    with pytest.raises(Refusal, match="resume it first") as refused:
        await seat.control(session, "mcp_status")
    assert refused.value.code == "not_running"
    if seat.dials:
        await seat.dial(session, resume=first["cli_session"])
    else:
        await seat.ada.post(f"sessions/{session}/resume")
    again = await seat.state(session, "idle")
    assert again["run"] != first["run"]
    assert (await seat.turn(session, "I am back"))["text"] == "I am back"
    assert "remember ALPHA" in seat.model.turns[-1].body.decode()

    await a_fork_goes_its_own_way(seat, session)
    await seat.control(session, "set_permission_mode", mode="default")
    await a_person_decides_about_every_call(seat, session)
    await a_plan_is_revised_and_done_here_or_in_a_fresh_conversation(seat, session)
    await seat.stop(session)
    await seat.check_history(session)
    await seat.ada.delete(f"sessions/{session}")
    with pytest.raises(Refusal) as refused:
        await seat.ada.get(f"sessions/{session}")
    assert refused.value.code == "not_found"


async def prompts_wait_and_a_turn_is_interrupted(seat: ApiSeat, session: str) -> None:
    await seat.send(session, reply(Gate("first"), "at last"))
    await seat.model.wait_at_gate("first")
    changed = await seat.send(session, "never said")
    content = play("what it was changed to")
    await seat.bob.patch(f"sessions/{session}/prompts/{changed}", content=content)
    taken_back = await seat.send(session, "never said either")
    queued = (await seat.bob.get(f"sessions/{session}/prompts"))["prompts"]
    assert [each["prompt"] for each in queued] == [changed, taken_back]
    await seat.bob.delete(f"sessions/{session}/prompts/{taken_back}")
    seat.model.release("first")
    assert (await seat.turn_ended(session))["text"] == "at last"
    assert (await seat.turn_ended(session))["text"] == "what it was changed to"

    # Live text is told while its block is made, and no event has it yet.
    await seat.send(session, Text("word ", times=10_000, delay=0.02))
    await seat.stream.until(lambda: "word word" in seat.stream.live_text(session) or None)
    lines = [said["line"] for said in seat.stream.of(session, "said")]
    assert not any("word " in str(line) for line in lines if line["type"] == "assistant")
    waiting = await seat.send(session, "next, please")
    await seat.ada.post(f"sessions/{session}/interrupt")
    assert (await seat.turn_ended(session))["failed"]
    following = await seat.turn_ended(session)
    assert following["prompts"] == [waiting]
    assert following["text"] == "next, please"


async def the_model_and_the_mode_are_switched(seat: ApiSeat, session: str) -> None:
    assert "haiku" not in seat.model.turns[-1].model
    await seat.control(session, "set_model", model="haiku")
    await seat.turn(session, "who am I?")
    assert "haiku" in seat.model.turns[-1].model

    made = seat.work / "made"
    await seat.control(session, "set_permission_mode", mode="acceptEdits")
    await seat.turn(session, write(made), "written")
    assert made.exists()
    assert seat.asked(session) == 0
    await seat.control(session, "set_permission_mode", mode="default")
    await seat.send(session, write(seat.work / "more"), "a pity")
    await seat.answer(await seat.ask(session), "deny")
    await seat.turn_ended(session)
    assert not (seat.work / "more").exists()
    assert await seat.verdicts(session, "Write") == [("cli", "allow"), ("ada", "deny")]
    told = await seat.bob.get(f"sessions/{session}")
    assert told["mode"] == told["spec"]["mode"] == "default"
    assert told["spec"]["model"] == "haiku"
    assert "haiku" in told["model"]

    with pytest.raises(Refusal) as refused:
        await seat.control(session, "set_permission_mode", mode="bypassPermissions")
    assert refused.value.code == "bad_request"


async def the_cli_tells_about_itself_or_why_not(seat: ApiSeat, session: str) -> None:
    assert (await seat.control(session, "mcp_status"))["mcpServers"] == []
    newer = {
        "get_context_usage": (92, {}, "totalTokens"),
        "get_settings": (92, {}, "effective"),
        "generate_session_title": (92, {"description": "a test of titles"}, "title"),
        "list_models": (200, {}, "models"),
    }
    for subtype, (since, more, member) in newer.items():
        if seat.has(since):
            assert (await seat.control(session, subtype, **more))[member]
            continue
        with pytest.raises(Refusal, match=subtype) as refused:
            await seat.control(session, subtype, **more)
        assert refused.value.code == "unsupported"
        assert refused.value.problem["status"] == 422


async def files_are_rewound(seat: ApiSeat, session: str) -> None:
    await seat.control(session, "set_permission_mode", mode="acceptEdits")
    kept, extra = seat.work / "kept", seat.work / "extra"
    kept.write_text("old\n")
    edit = ToolUse("Edit", {"file_path": str(kept), "old_string": "old", "new_string": "new"})
    read = ToolUse("Read", {"file_path": str(kept)})
    prompt = str(uuid4())
    await seat.turn(session, read, edit, write(extra), "changed", prompt=prompt)
    assert kept.read_text() == "new\n"
    assert extra.exists()

    would = await seat.control(session, "rewind_files", user_message_id=prompt, dry_run=True)
    assert would["canRewind"]
    assert set(would["filesChanged"]) == {str(kept), str(extra)}
    assert extra.exists()
    assert (await seat.control(session, "rewind_files", user_message_id=prompt))["canRewind"]
    assert kept.read_text() == "old\n"
    assert not extra.exists()
    with pytest.raises(Refusal, match="No file checkpoint found") as refused:
        await seat.control(session, "rewind_files", user_message_id=str(uuid4()))
    assert refused.value.code == "cli_refused"


def asked_with(seat: ApiSeat, text: str) -> str:
    """The last request to the model with this text in it; two CLIs talk to it here."""
    bodies = (turn.body.decode() for turn in reversed(seat.model.turns))
    return next(body for body in bodies if text in body)


async def a_fork_goes_its_own_way(seat: ApiSeat, session: str) -> None:
    parent = await seat.ada.get(f"sessions/{session}")
    body: Json = {"name": "another"}
    if not seat.dials:  # there a copy up to its first answer, here of the whole
        lines = [said["line"] for said in seat.stream.of(session, "said")]
        body["at"] = next(line["uuid"] for line in lines if line["type"] == "assistant")
    fork = str((await seat.ada.post(f"sessions/{session}/fork", **body))["session"])
    assert (await seat.turn(fork, "I am a fork"))["text"] == "I am a fork"
    told = await seat.ada.get(f"sessions/{fork}")
    assert (told["name"], told["parent"]) == ("another", session)
    assert told["directory"] == str(seat.work)
    assert told["cli_session"] != parent["cli_session"]
    known = asked_with(seat, "I am a fork")
    assert "remember ALPHA" in known
    assert ("I am back" in known) is seat.dials
    ended = await seat.turn(session, "I am not")
    assert ended["text"] == "I am not", seat.stream.of(session, "turn.ended")
    assert "I am a fork" not in asked_with(seat, "I am not")
    await seat.stop(fork)
    await seat.check_history(fork)


async def a_person_decides_about_every_call(seat: ApiSeat, session: str) -> None:
    await seat.send(session, bash("touch one"), "done")
    card = await seat.ask(session)
    assert (card["ask_kind"], card["tool"]) == ("tool", "Bash")
    assert not (seat.work / "one").exists()
    assert (await seat.state(session, "waiting"))["asks"] == 1
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


async def a_plan_is_revised_and_done_here_or_in_a_fresh_conversation(
    seat: ApiSeat, session: str
) -> None:
    written = len(await seat.verdicts(session, "Write"))
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
    assert after["directory"] == str(seat.work)
    assert PLAN.strip() in seat.model.turns[-1].first_prompt
    assert "and the tests?" not in seat.model.turns[-1].body.decode()

    assert seat.asked(session) == 0
    decided = [("ada", "deny"), *[("ada", "allow")] * 3]
    assert await seat.verdicts(session, "ExitPlanMode") == decided
    assert (await seat.verdicts(session, "Write"))[written:] == [
        ("cli", "allow"),
        ("ada", "allow"),
        ("cli", "allow"),
        ("cli", "allow"),
    ]
