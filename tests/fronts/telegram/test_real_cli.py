"""A day's work from Telegram with the newest real CLI and a scripted model."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import Gate, RealCli, ScriptedModel, ToolUse, isolated_env, play, reply
from quarterdeck.testing.telegram.objects import Message
from support.scenes import bash, read, write
from support.telegram_house import Guest, TelegramHouse

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

NEWEST = "2.1.325"


class Real:
    """Makes people whose CLI is real."""

    def __init__(self, house: TelegramHouse, model: ScriptedModel, claude: str) -> None:
        self.house = house
        self.model = model
        self._claude = claude

    async def person(self) -> Guest:
        guest = await self.house.person()
        home = self.house.folder / f"home-{guest.user}"
        home.mkdir()
        settings = '{"enableAllProjectMcpServers": true}'
        guest.use_real(self._claude, isolated_env(home, self.model.url), settings)
        return guest


@pytest.fixture
async def real(
    house: TelegramHouse, model: ScriptedModel, clis: dict[str, RealCli]
) -> AsyncIterator[Real]:
    yield Real(house, model, clis[NEWEST].command[-1])
    await house.clear()


@pytest.fixture
async def ada(real: Real) -> Guest:
    return await real.person()


def touch(path: Path) -> ToolUse:
    """A command that leaves a trace, and that no rule knows."""
    return bash(f"touch {path}")


async def asked(ada: Guest, text: str = "🔐") -> Message:
    return await ada.hears(text)


async def idle(ada: Guest) -> None:
    await ada.until(lambda found: all(shape.state is SessionState.IDLE for shape in found))


async def test_commands_are_allowed_denied_edited_and_granted(ada: Guest) -> None:
    one, two, three = (ada.work / name for name in ("one", "two", "three"))
    ada.type(play(touch(one), "It is done."))
    card = await asked(ada)
    assert f"touch {one}" in card.shown
    ada.press(card, "✅ Allow")
    await ada.sees(card.message_id, f"✅ Allowed by {ada.name}")
    await ada.hears("It is done.")
    assert one.exists()

    ada.type(play(touch(two), "So be it."))
    card = await asked(ada)
    ada.press(card, "Deny with reason…")
    request = await ada.hears("Reply with the reason")
    ada.type("not that file", to=request.message_id)
    await ada.sees(card.message_id, f"❌ Denied by {ada.name}: not that file")
    await ada.hears("So be it.")
    assert not two.exists()

    ada.type(play(touch(two), "Another one."))
    card = await asked(ada)
    ada.press(card, "✏️ Edit…")
    request = await ada.hears("Reply with the command")
    ada.type(f"touch {three}", to=request.message_id)
    await ada.sees(card.message_id, f"✅ Allowed, edited by {ada.name}")
    await ada.hears("Another one.")
    assert three.exists()
    assert not two.exists()

    ada.type(play(touch(two), "Granted."))
    card = await asked(ada)
    ada.press(card, "Always")
    await ada.sees(card.message_id, f"✅ Allowed always by {ada.name}")
    await ada.hears("Granted.")
    two.unlink()
    ada.type(play(touch(two), "Without a question."))
    await ada.hears("Without a question.")
    assert two.exists()

    three.unlink()
    ada.type(play(touch(three), "Never said."))
    card = await asked(ada)
    ada.press(card, "🛑 Deny and stop")
    await ada.sees(card.message_id, f"❌ Denied and stopped by {ada.name}")
    await idle(ada)
    assert not three.exists()


async def test_progress_is_a_draft_and_stop_interrupts_the_turn(ada: Guest, real: Real) -> None:
    ada.type(play(reply("A long story.", Gate("story"))))
    ada.type("the next one")
    queued = await ada.hears("⏳ Queued")

    def look() -> bool:
        draft = ada.house.sim.draft(ada.user)
        return draft is not None and "A long story." in draft.text

    await ada.house.telegram.wait_for(look, 60)
    ada.house.sim.stop(ada.user)
    await ada.hears("🛑 Interrupted")
    real.model.release("story")
    await ada.hears("❌ failed")
    await ada.sees(queued.message_id, "▶️ Started")
    await ada.hears("the next one")
    await idle(ada)


PLAN = "# Plan\n\n1. Make the file."


@pytest.mark.parametrize(
    ("button", "verdict"),
    [
        ("✅ Approve (accept edits)", "✅ Approved, edits accepted"),
        ("✅ Approve (ask me)", "✅ Approved, every call asked about"),
        ("⏸ Pause & outline plan", "💬 To be revised"),
        ("💬 Keep planning…", "💬 To be revised"),
        ("❌ Deny", "❌ Rejected"),
        ("🆕 Fresh session", "✅ Approved, in a fresh session"),
    ],
)
async def test_a_plan_is_decided_in_each_way(
    ada: Guest, real: Real, button: str, verdict: str
) -> None:
    ada.type(f"--plan {play(ToolUse('ExitPlanMode', {'plan': PLAN}), 'As you wish.')}")
    card = await asked(ada, "has a plan")
    assert "Make the file" in card.shown
    ada.press(card, button)
    if button.startswith("💬"):
        request = await ada.hears("Reply with what to change")
        ada.type("smaller steps", to=request.message_id)
    await ada.sees(card.message_id, f"{verdict} by {ada.name}")
    if "fresh" in verdict:
        await ada.hears("Implement the following plan")
    elif "Rejected" not in verdict:
        await ada.hears("As you wish.")
    await idle(ada)


async def test_questions_of_each_kind_are_answered(ada: Guest, real: Real) -> None:
    options = [{"label": "A", "description": "first"}, {"label": "B", "description": "second"}]
    questions = [
        {"question": "Which one?", "header": "One", "multiSelect": False, "options": options},
        {"question": "Which ones?", "header": "Many", "multiSelect": True, "options": options},
        {"question": "And why?", "header": "Why", "multiSelect": False, "options": options},
        {"question": "Skipped?", "header": "Skip", "multiSelect": False, "options": options},
    ]
    ada.type(play(ToolUse("AskUserQuestion", {"questions": questions}), "Thank you."))
    card = await asked(ada, "Which one?")
    ada.press(card, "B")
    card = await ada.sees(card.message_id, "Which ones?")
    ada.press(card, "☐ A")
    await ada.house.telegram.wait_for(
        lambda: [
            one
            for one in ada.house.sim.from_bot(ada.user)
            if "☑ A" in [button.text for button in one.buttons]
        ],
        60,
    )
    ada.press(card, "✅ Done")
    card = await ada.sees(card.message_id, "And why?")
    ada.type("because", to=card.message_id)
    card = await ada.sees(card.message_id, "Skipped?")
    ada.press(card, "Skip")
    await ada.sees(card.message_id, f"✅ Answered by {ada.name}")
    await ada.hears("Thank you.")
    assert b"because" in real.model.turns[-1].body


ASKING_SERVER = """
import json, sys

FORM = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {"type": "string", "title": "Title"},
        "kind": {"type": "string", "enum": ["bug", "idea"]},
    },
}
calls = {}
for line in sys.stdin:
    asked = json.loads(line)
    said = None
    match asked.get("method"):
        case "initialize":
            version = asked["params"]["protocolVersion"]
            info = {"name": "tracker", "version": "1"}
            said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            said = {"tools": [{"name": "report", "inputSchema": {"type": "object"}}]}
        case "tools/call":
            calls["form"] = asked["id"]
            params = {"message": "Describe it.", "requestedSchema": FORM}
            request = {"jsonrpc": "2.0", "id": "form", "method": "elicitation/create"}
            print(json.dumps({**request, "params": params}), flush=True)
        case None if asked.get("id") == "form":
            text = json.dumps(asked.get("result"))
            said = {"content": [{"type": "text", "text": f"The form: {text}"}]}
            asked["id"] = calls.pop("form")
        case _:
            said = {}
    if said is not None and "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""


def add_tracker(ada: Guest) -> None:
    """Have an MCP server."""
    program = ada.work / "tracker.py"
    program.write_text(ASKING_SERVER)
    server = {"command": sys.executable, "args": [str(program)]}
    (ada.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"tracker": server}}))


async def test_a_form_of_an_mcp_server_is_filled_in(ada: Guest, real: Real) -> None:
    add_tracker(ada)
    ada.type(play(ToolUse("mcp__tracker__report", {}), "It is reported."))
    card = await asked(ada)
    ada.press(card, "✅ Allow")
    form = await asked(ada, "Describe it.")
    ada.type("It breaks", to=form.message_id)
    form = await ada.sees(form.message_id, "2 of 2")
    ada.press(form, "bug")
    form = await ada.sees(form.message_id, '"bug"')
    ada.press(form, "✅ Accept")
    await ada.sees(form.message_id, f"✅ Accepted by {ada.name}")
    await ada.hears("It is reported.")
    assert b"It breaks" in real.model.turns[-1].body


async def test_mcp_servers_are_listed_turned_off_and_on_and_connected_again(ada: Guest) -> None:
    add_tracker(ada)
    ada.type("hello")
    await ada.hears("hello")
    listed = await ada.tells("/mcp", "tracker: connected")
    ada.press(listed, "Off: tracker")
    await ada.hears("tracker is off")
    listed = await ada.tells("/mcp", "tracker: disabled")
    ada.press(listed, "On: tracker")
    await ada.hears("tracker is on")
    listed = await ada.tells("/mcp", "tracker: connected")
    ada.press(listed, "🔄 tracker")
    await ada.hears("tracker: connected again")
    await ada.tells("/mcp reconnect nobody", "⚠️")


async def test_files_are_as_they_were_before_a_prompt(ada: Guest) -> None:
    file = ada.work / "notes.txt"
    for text in ("one", "two"):
        ada.type(play(read(file), write(file, text), f"It is {text}."))
        card = await asked(ada)
        ada.press(card, "👁 Show")
        card = await ada.sees(card.message_id, button="✅ Allow")
        ada.press(card, "✅ Allow")
        await ada.hears(f"It is {text}.")
        assert file.read_text() == text
    listed = await ada.tells("/rewind files", "before which prompt")
    second, first = (button.callback_data or "" for button in listed.buttons)
    ada.house.sim.press(ada.user, listed.message_id, forge=second)
    await ada.hears("The files are as they were before that prompt")
    assert file.read_text() == "one"
    ada.house.sim.press(ada.user, listed.message_id, forge=first)
    await ada.hears("The files are as they were before that prompt")
    assert not file.exists()
    await ada.tells("/rewind files 00000000-0000-4000-8000-000000000000", "⚠️")


async def test_a_task_in_the_background_is_stopped(ada: Guest) -> None:
    trace = ada.work / "trace"
    command = f"touch {trace}; sleep 1000"
    given = {"command": command, "description": "wait", "run_in_background": True}
    ada.type(play(ToolUse("Bash", given), "It runs."))
    card = await asked(ada)
    ada.press(card, "✅ Allow")
    await ada.hears("It runs.")
    await ada.until(lambda found: len(found[0].holds.tasks) == 1)
    listed = await ada.tells("/tasks", "Tasks that run")
    ada.press(listed, "🛑 Stop 1")
    await ada.hears("The task was asked to stop")
    await ada.until(lambda found: not found[0].holds.tasks)
    await ada.tells("/tasks", "Nothing runs in the background")


async def test_a_prompt_is_queued_and_another_steers_the_turn(ada: Guest, real: Real) -> None:
    trace = ada.work / "trace"
    ada.type(play(touch(trace), "The first is done."))
    card = await asked(ada)
    ada.type("the second")
    queued = await ada.hears("⏳ Queued")
    ada.type("/steer mind the gap")
    await ada.hears("Sent into the running turn")
    ada.press(card, "✅ Allow")
    await ada.hears("The first is done.")
    await ada.sees(queued.message_id, "▶️ Started")
    await idle(ada)
    told = b"".join(turn.body for turn in real.model.turns)
    assert b"mind the gap" in told
    assert b"the second" in told


async def test_files_go_both_ways(ada: Guest, real: Real) -> None:
    ada.type("hello")
    await ada.hears("hello")
    ada.house.sim.send_file(ada.user, "in.bin", b"\x00\x01\x02", caption="/file put in.bin")
    await ada.hears("💾 Stored")
    assert (ada.work / "in.bin").read_bytes() == b"\x00\x01\x02"
    (ada.work / "out.txt").write_text("a file of the agent\n")
    ada.type("/file get out.txt")
    sent = await ada.hears("out.txt")
    assert ada.house.sim.file(sent.message_id, ada.user) == b"a file of the agent\n"
    ada.house.sim.send_file(
        ada.user, "notes.txt", b"the notes", mime="text/plain", caption="look at the notes"
    )
    await ada.hears("look at the notes")


async def test_questions_are_open_in_two_chats_and_two_topics_at_once(
    house: TelegramHouse, real: Real
) -> None:
    people = [await real.person(), await real.person()]
    forum = house.sim.add_group("forum", [person.user for person in people], forum=True)
    threads = [house.sim.add_topic(forum.id, person.name, person.user) for person in people]
    for person, thread in zip(people, threads, strict=True):
        person.type(f"/ctx project {person.project}", chat=forum.id, thread=thread)
        await person.hears("📌", chat=forum.id, thread=thread)
    places = [
        (person, chat, inside)
        for person, thread in zip(people, threads, strict=True)
        for chat, inside in ((forum.id, thread), (person.user, None))
    ]
    for number, (person, chat, inside) in enumerate(places):
        trace = person.work / f"trace-{number}"
        person.type(play(touch(trace), f"Number {number}."), chat=chat, thread=inside)
    cards = [await person.hears("🔐", chat=chat, thread=inside) for person, chat, inside in places]
    assert [len(await person.asks()) for person in people] == [2, 2]
    for number, ((person, chat, inside), card) in enumerate(zip(places, cards, strict=True)):
        assert f"trace-{number}" in card.shown
        person.press(card, "✅ Allow", chat=chat)
        await person.hears(f"Number {number}.", chat=chat, thread=inside)
        assert (person.work / f"trace-{number}").exists()


async def test_a_question_answered_in_the_deck_is_closed_here(ada: Guest) -> None:
    trace = ada.work / "trace"
    ada.type(play(touch(trace), "From the deck."))
    card = await asked(ada)
    (ask,) = await ada.asks()
    async with ada.hub() as hub:
        await hub.submit(cmd.AnswerAsk(ask=ask.opened.ask, answer=cmd.AllowAnswer()))
    closed = await ada.sees(card.message_id, "✅ Allowed by deck")
    assert closed.reply_markup is None
    await ada.hears("From the deck.")
    assert trace.exists()
