"""The front with a real hub, a runner, fake CLIs and the Bot API server: prompts and questions."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck.client.calls import HubRefused
from quarterdeck.fronts.http import Role
from quarterdeck.fronts.telegram import messenger
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.telegram_house import Guest, TelegramHouse
from support.telegram_questions import answers, asked, asking, bash, form, planned
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.process]


# --- prompts -------------------------------------------------------------------------------------


async def test_a_message_is_a_prompt_and_its_answer_is_a_reply(ada: Guest) -> None:
    sent = ada.type("hello")
    answer = await ada.hears("echo: hello")
    assert answer.reply_to_message is not None
    assert answer.reply_to_message.message_id == sent.message_id
    (session,) = await ada.sessions()
    assert session.by == ada.name


async def test_the_next_message_continues_the_session(ada: Guest) -> None:
    ada.type("one")
    await ada.hears("echo: one")
    ada.type("two")
    await ada.hears("echo: two")
    (session,) = await ada.until(lambda found: found[0].turns == 2)
    assert session.turns == 2


async def test_a_reply_goes_to_the_session_of_the_message(ada: Guest) -> None:
    ada.type("one")
    first = await ada.hears("echo: one")
    ada.type("/new two")
    await ada.hears("echo: two")
    ada.type("more of one", to=first.message_id)
    await ada.hears("echo: more of one")
    ada.type("more of two")
    await ada.hears("echo: more of two")
    found = await ada.until(lambda found: sum(shape.turns for shape in found) == 4)
    assert [shape.turns for shape in found] == [2, 2]


async def test_a_long_answer_is_split_and_a_very_long_one_is_a_file(ada: Guest) -> None:
    line = "A line of an answer that is repeated.\n\n"
    for count in (200, 2000):
        text = line * count
        ada.play(
            *asking(text=text)[:2], fake.say(fake.assistant(text), fake.result(text)), fake.Serve()
        )
        ada.type("/new go")
        if count == 200:
            first = await ada.hears("A line of an answer")
            second = await ada.hears("A line of an answer")
            assert first.message_id < second.message_id
        else:
            file = await ada.hears("The whole text")
            assert ada.house.sim.file(file.message_id, ada.user).decode() == text


async def test_the_file_of_a_long_answer_is_masked_and_says_if_it_was_cut(
    ada: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messenger, "LONGEST_FILE", 60_000)
    line = "A line of an answer, with password=hunter2222 in it.\n"
    for count, caption in ((1000, "The whole text."), (2000, "The web app has the whole text.")):
        text = line * count
        ada.play(
            *asking(text=text)[:2], fake.say(fake.assistant(text), fake.result(text)), fake.Serve()
        )
        ada.type("/new go")
        file = await ada.hears(caption)
        sent = ada.house.sim.file(file.message_id, ada.user).decode()
        assert "hunter" not in sent
        assert sent.count("password=…") == min(count, 60_000 // len(line))
    word = "x" * 100_000
    ada.play(
        *asking(text=word)[:2], fake.say(fake.assistant(word), fake.result(word)), fake.Serve()
    )
    await ada.tells("/new go", "The web app has the text")


async def test_secrets_in_an_answer_are_masked(ada: Guest) -> None:
    ada.type("the password=hunter2222 is known")
    answer = await ada.hears("echo: the password=")
    assert "hunter" not in answer.shown


async def test_pictures_documents_and_albums_become_a_part_of_the_prompt(
    ada: Guest, tmp_path: Path
) -> None:
    ada.play(fake.Initialize(), fake.Serve(), record=tmp_path / "record")
    sim = ada.house.sim
    sim.send_file(ada.user, "a.jpg", b"jpeg", kind="photo", caption="what is it?")
    await ada.hears("what is it?")
    sim.send_file(ada.user, "notes.txt", b"some notes", mime="text/plain", caption="read")
    await ada.hears("some notes")
    sim.send_file(ada.user, "paper.pdf", b"%PDF", mime="application/pdf", caption="and this")
    await ada.hears("and this")
    sim.send_file(ada.user, "x.bin", b"\xff\xfe\x00", caption="no")
    await ada.hears("⚠️ x.bin: only pictures")
    rows = [msgspec.json.decode(line) for line in (tmp_path / "record").read_bytes().splitlines()]
    prompts = [
        row["message"]["content"]
        for row in rows
        if isinstance(row, dict) and row.get("type") == "user"
    ]
    assert prompts[0][0]["source"]["data"] == base64.b64encode(b"jpeg").decode()
    assert prompts[1][0]["text"] == "File notes.txt:\n\nsome notes"
    assert prompts[2][0]["source"]["media_type"] == "application/pdf"


async def test_a_voice_note_needs_a_service(ada: Guest) -> None:
    ada.house.sim.send_file(ada.user, "v.ogg", b"ogg", kind="voice")
    await ada.hears("⚠️ voice notes need a service")


# --- progress ------------------------------------------------------------------------------------

BUSY = (
    fake.Initialize(),
    fake.Expect("user", polite=True),
    fake.say(
        fake.assistant(fake.tool_use("Bash", {"command": "sleep 60"}, "t1")),
        fake.assistant(fake.tool_use("Read", {"file_path": "/a/b.py"}, "t2")),
    ),
    fake.Expect("control_request", "interrupt", polite=True),
    fake.say(fake.answer(), fake.result("", subtype="error_during_execution", is_error=True)),
    fake.Serve(),
)


async def test_in_a_private_chat_progress_is_a_draft_and_stop_interrupts(ada: Guest) -> None:
    ada.play(*BUSY)
    ada.type("work")
    telegram = ada.house.telegram

    def look() -> bool:
        draft = ada.house.sim.draft(ada.user)
        return (
            draft is not None
            and "💻 … sleep 60" in draft.text
            and "🔧 … Read /a/b.py" in draft.text
        )

    await telegram.wait_for(look)
    ada.house.sim.stop(ada.user)
    await ada.hears("🛑 Interrupted")
    done = await ada.hears("❌ failed")
    assert "2 actions" in done.shown
    await ada.until(lambda found: found[0].state is SessionState.IDLE)


async def test_in_a_group_progress_is_one_message_that_is_edited(
    house: TelegramHouse, ada: Guest
) -> None:
    group = house.sim.add_group("team", [ada.user])
    ada.type(f"/ctx project {ada.project}", chat=group.id)
    await ada.hears("📌", chat=group.id)
    ada.play(*BUSY)
    sent = ada.type("work", chat=group.id)
    progress = await ada.hears("sleep 60", chat=group.id)
    assert progress.reply_to_message is not None
    assert progress.reply_to_message.message_id == sent.message_id
    ada.press(progress, "🛑 Stop", chat=group.id)
    await ada.hears("🛑 Interrupted", chat=group.id)
    ended = await ada.sees(progress.message_id, "❌ failed", chat=group.id)
    assert ended.reply_markup is None


async def test_a_turn_that_nobody_prompted_is_told_too(ada: Guest) -> None:
    ada.play(
        fake.Initialize(),
        fake.Serve(turns=1),
        fake.Wait(0.3),
        fake.say(
            fake.assistant(fake.tool_use("Bash", {"command": "ls"})),
            fake.tool_result("ok"),
            fake.assistant("The build is done."),
            fake.result("The build is done."),
        ),
        fake.Serve(),
    )
    ada.type("hello")
    await ada.hears("echo: hello")
    told = await ada.hears("The build is done.")
    assert told.reply_to_message is None


async def test_a_dead_agent_is_told_with_a_way_to_resume(ada: Guest) -> None:
    ada.play(fake.Initialize(), fake.Expect("user", polite=True), fake.Exit(3, "out of cheese"))
    ada.type("go")
    notice = await ada.hears("⚠️")
    assert "has ended" in notice.shown
    assert "▶️ Resume" in [button.text for button in notice.buttons]
    await ada.hears("❌ failed")
    ada.play(fake.Initialize(), fake.Serve())
    ada.press(notice, "▶️ Resume")
    await ada.hears("Messages here go to")


# --- questions -----------------------------------------------------------------------------------


async def test_a_permission_is_allowed_by_a_press_and_the_message_says_by_whom(
    ada: Guest, tmp_path: Path
) -> None:
    message = await asked(ada, tmp_path=tmp_path, text="asks to use Bash")
    assert "make test" in message.shown
    query = ada.press(message, "✅ Allow")
    closed = await ada.sees(message.message_id, f"✅ Allowed by {ada.name}")
    assert closed.reply_markup is None
    await ada.hears("Done.")
    assert ada.house.sim.query(query).answer == "Allow: sent"
    assert answers(tmp_path / "record")[-1]["behavior"] == "allow"


async def test_deny_with_a_reason_tells_the_agent(ada: Guest, tmp_path: Path) -> None:
    message = await asked(ada, tmp_path=tmp_path)
    ada.press(message, "Deny with reason…")
    request = await ada.hears("Reply with the reason")
    ada.type("use the other script", to=request.message_id)
    await ada.sees(message.message_id, f"❌ Denied by {ada.name}: use the other script")
    await ada.hears("Done.")
    answer = answers(tmp_path / "record")[-1]
    assert (answer["behavior"], "other script" in answer["message"]) == ("deny", True)


async def test_an_edited_command_is_what_runs(ada: Guest, tmp_path: Path) -> None:
    message = await asked(ada, tmp_path=tmp_path)
    ada.press(message, "✏️ Edit…")
    request = await ada.hears("Reply with the command")
    ada.type("make lint", to=request.message_id)
    await ada.sees(message.message_id, f"✅ Allowed, edited by {ada.name}")
    await ada.hears("Done.")
    assert answers(tmp_path / "record")[-1]["updatedInput"]["command"] == "make lint"


async def test_for_the_session_answers_the_next_one_by_itself(ada: Guest, tmp_path: Path) -> None:
    record = tmp_path / "record"
    first, second = bash(), bash(call="ask-2")
    ada.play(
        fake.Initialize(),
        fake.Expect("user", polite=True),
        fake.say(*first),
        fake.Expect("control_response", polite=True),
        fake.say(second[1]),
        fake.Expect("control_response", polite=True),
        fake.say(fake.assistant("Done."), fake.result("Done.")),
        fake.Serve(),
        record=record,
    )
    ada.type("go")
    message = await ada.hears("asks to use Bash")
    ada.press(message, "For the session")
    await ada.sees(message.message_id, f"✅ Allowed for the session by {ada.name}")
    await ada.hears("Done.")
    assert [answer["behavior"] for answer in answers(record)[-2:]] == ["allow", "allow"]
    cards = [one for one in ada.house.sim.from_bot(ada.user) if "🔐" in one.shown]
    assert cards == []


async def test_always_is_a_grant_for_owners_only(
    house: TelegramHouse, ada: Guest, tmp_path: Path
) -> None:
    message = await asked(ada, tmp_path=tmp_path)
    ada.press(message, "Always")
    await ada.sees(message.message_id, f"✅ Allowed always by {ada.name}")


async def test_deny_and_stop_ends_the_turn(ada: Guest, tmp_path: Path) -> None:
    message = await asked(ada, tmp_path=tmp_path)
    ada.press(message, "🛑 Deny and stop")
    await ada.sees(message.message_id, f"❌ Denied and stopped by {ada.name}")
    await ada.hears("Done.")
    assert answers(tmp_path / "record")[-1]["interrupt"] is True


async def test_the_contents_of_a_file_are_sent_when_a_person_asks_for_them(
    ada: Guest, tmp_path: Path
) -> None:
    given: fake.Line = {"file_path": "/a.py", "old_string": "one", "new_string": "two"}
    lines = fake.assistant(fake.tool_use("Edit", given)), fake.can_use_tool("Edit", given)
    message = await asked(ada, *lines, tmp_path=tmp_path)
    assert "+two" not in message.shown
    assert "✅ Allow" not in [button.text for button in message.buttons]
    ada.press(message, "👁 Show")
    shown = await ada.hears("/a.py")
    assert b"+two" in ada.house.sim.file(shown.message_id, ada.user)
    message = await ada.sees(message.message_id, button="✅ Allow")
    ada.press(message, "✅ Allow")
    await ada.sees(message.message_id, f"✅ Allowed by {ada.name}")


async def test_a_long_command_is_sent_as_a_file_with_a_summary(ada: Guest, tmp_path: Path) -> None:
    command = "echo " + "x" * 9000
    message = await asked(ada, *bash(command), tmp_path=tmp_path, text="🔐")
    file = await ada.hears("Bash, in full")
    assert ada.house.sim.file(file.message_id, ada.user).decode() == command
    assert file.message_id < message.message_id
    ada.press(message, "✅ Allow")
    await ada.hears("Done.")


@pytest.mark.parametrize(
    ("button", "verdict", "behavior"),
    [
        ("✅ Approve (accept edits)", "✅ Approved, edits accepted", "allow"),
        ("✅ Approve (ask me)", "✅ Approved, every call asked about", "allow"),
        ("⏸ Pause & outline plan", "💬 To be revised", "deny"),
        ("❌ Deny", "❌ Rejected", "deny"),
    ],
)
async def test_a_plan_is_decided_by_a_press(
    ada: Guest, tmp_path: Path, button: str, verdict: str, behavior: str
) -> None:
    message = await planned(ada, tmp_path)
    assert "Split the parser" in message.shown
    ada.press(message, button)
    await ada.sees(message.message_id, f"{verdict} by {ada.name}")
    await ada.hears("Done.")
    assert answers(tmp_path / "record")[-1]["behavior"] == behavior


async def test_a_plan_is_sent_back_with_a_reply(ada: Guest, tmp_path: Path) -> None:
    message = await planned(ada, tmp_path)
    ada.type("smaller steps, please", to=message.message_id)
    await ada.sees(message.message_id, "💬 To be revised")
    await ada.hears("Done.")
    assert "smaller steps" in answers(tmp_path / "record")[-1]["message"]


async def test_a_plan_is_carried_out_in_a_fresh_session(ada: Guest, tmp_path: Path) -> None:
    message = await planned(ada, tmp_path)
    ada.play(fake.Initialize(), fake.Serve())
    ada.press(message, "🆕 Fresh session")
    await ada.sees(message.message_id, "✅ Approved, in a fresh session")
    await ada.hears("Implement the following plan")


async def test_questions_are_answered_by_buttons_and_replies(ada: Guest, tmp_path: Path) -> None:
    questions = [
        {"question": "Which one?", "header": "One", "options": [{"label": "A"}, {"label": "B"}]},
        {
            "question": "Which ones?",
            "header": "Many",
            "multiSelect": True,
            "options": [{"label": "X"}, {"label": "Y"}],
        },
        {"question": "Why?", "header": "Why", "options": []},
    ]
    given: fake.Line = {"questions": questions}
    lines = (
        fake.assistant(fake.tool_use("AskUserQuestion", given)),
        fake.can_use_tool("AskUserQuestion", given),
    )
    message = await asked(ada, *lines, tmp_path=tmp_path, text="Which one?")
    ada.press(message, "B")
    message = await ada.sees(message.message_id, "Which ones?")
    ada.press(message, "☐ X")
    await ada.house.telegram.wait_for(
        lambda: [
            one
            for one in ada.house.sim.from_bot(ada.user)
            if "☑ X" in [b.text for b in one.buttons]
        ]
    )
    ada.press(message, "✅ Done")
    message = await ada.sees(message.message_id, "Why?")
    ada.type("Because.", to=message.message_id)
    closed = await ada.sees(message.message_id, f"✅ Answered by {ada.name}")
    assert "Which one? — B" in closed.shown
    await ada.hears("Done.")
    given_answers = answers(tmp_path / "record")[-1]["updatedInput"]["answers"]
    assert given_answers == {"Which one?": "B", "Which ones?": "X", "Why?": "Because."}


async def test_a_form_of_an_mcp_server_is_filled_in(ada: Guest, tmp_path: Path) -> None:
    message = await asked(ada, form(), tmp_path=tmp_path, text="Describe it.")
    ada.type("It breaks", to=message.message_id)
    message = await ada.sees(message.message_id, "2 of 2: kind")
    ada.press(message, "bug")
    message = await ada.sees(message.message_id, '"bug"')
    ada.press(message, "✅ Accept")
    await ada.sees(message.message_id, f"✅ Accepted by {ada.name}")
    await ada.hears("Done.")
    found = answers(tmp_path / "record")[-1]
    assert found == {"action": "accept", "content": {"title": "It breaks", "kind": "bug"}}


async def test_a_question_that_was_answered_in_the_deck_says_by_whom(
    ada: Guest, tmp_path: Path
) -> None:
    message = await asked(ada, tmp_path=tmp_path)
    (ask,) = await ada.asks()
    async with ada.hub() as hub:
        await hub.submit(cmd.AnswerAsk(ask=ask.opened.ask, answer=cmd.AllowAnswer()))
        closed = await ada.sees(message.message_id, "✅ Allowed by deck")
        assert closed.reply_markup is None
    await ada.hears("Done.")
    before = len(ada.house.sim.from_bot(ada.user))
    data = next(b.callback_data for b in message.buttons if b.text == "❌ Deny")
    assert data is not None
    query = ada.house.sim.press(ada.user, message.message_id, forge=data)
    await ada.tells("/ping", "pong")
    assert len(ada.house.sim.from_bot(ada.user)) == before + 1
    assert ada.house.sim.query(query).answer is None


async def test_of_two_who_answer_one_wins_and_both_see_who(
    house: TelegramHouse, ada: Guest, tmp_path: Path
) -> None:
    message = await asked(ada, tmp_path=tmp_path)
    (ask,) = await ada.asks()
    ada.press(message, "✅ Allow")
    async with ada.hub() as hub:
        winner = "deck"
        try:
            await hub.submit(cmd.AnswerAsk(ask=ask.opened.ask, answer=cmd.AllowAnswer()))
        except HubRefused:
            winner = ada.name
    await ada.sees(message.message_id, f"✅ Allowed by {winner}")
    await ada.hears("Done.")
    assert len(answers(tmp_path / "record")) >= 1


async def test_several_questions_are_open_at_once_in_one_chat(ada: Guest) -> None:
    first, second = bash("make one", "ask-1"), bash("make two", "ask-2")
    ada.play(
        fake.Initialize(),
        fake.Expect("user", polite=True),
        fake.say(*first, second[1]),
        fake.Expect("control_response", polite=True),
        fake.Expect("control_response", polite=True),
        fake.say(fake.assistant("Done."), fake.result("Done.")),
        fake.Serve(),
    )
    ada.type("go")
    one, two = await ada.hears("make one"), await ada.hears("make two")
    ada.press(two, "❌ Deny")
    await ada.sees(two.message_id, "❌ Denied")
    ada.press(one, "✅ Allow")
    await ada.sees(one.message_id, "✅ Allowed")
    await ada.hears("Done.")


async def test_a_place_that_follows_all_gets_the_questions_of_others(
    house: TelegramHouse, ada: Guest, tmp_path: Path
) -> None:
    grace = await house.person(Role.OPERATOR)
    await grace.tells("/config follow all", "follow: all by this chat")
    message = await asked(ada, tmp_path=tmp_path)
    other = await grace.hears("asks to use Bash")
    grace.press(other, "✅ Allow")
    await ada.sees(message.message_id, f"✅ Allowed by {grace.name}")
    await grace.sees(other.message_id, f"✅ Allowed by {grace.name}")
    await grace.tells("/config follow own", "follow: own")


# --- who may talk --------------------------------------------------------------------------------


async def test_a_stranger_gets_nothing_and_one_line_in_the_log(
    house: TelegramHouse, ada: Guest, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house.sim.add_user(666, "Mallory")
    message = await asked(ada, tmp_path=tmp_path)
    group = house.sim.add_group("team", [ada.user, 666])
    with caplog.at_level(logging.WARNING):
        for text in ("hello", "/help", "/pair X", "/start", "//x"):
            house.sim.type(666, text)
            house.sim.type(666, text, group.id)
        data = next(b.callback_data for b in message.buttons if b.text == "✅ Allow")
        assert data is not None
        pressed = house.sim.press(666, message.message_id, forge=data, chat=ada.user)
        await ada.tells("/ping", "pong")
    assert house.sim.from_bot(666) == []
    assert house.sim.from_bot(group.id) == []
    assert house.sim.query(pressed).answer is None
    assert len([row for row in caplog.messages if "666" in row]) == 1
    assert len(await ada.asks()) == 1
    ada.press(message, "❌ Deny")
    await ada.sees(message.message_id, "❌ Denied")


async def test_who_has_no_access_any_more_is_told_nothing(
    house: TelegramHouse, ada: Guest, tmp_path: Path
) -> None:
    message = await asked(ada, tmp_path=tmp_path)
    (grant,) = [
        grant.id for grant in house.service.access.grants() if grant.label == f"telegram:{ada.user}"
    ]
    house.service.access.revoke(grant)
    services = house.running.services
    assert services is not None
    with anyio.fail_after(SECONDS):
        await until(lambda: services.messenger.state.paired_person(ada.user) is None)
    before = len(house.sim.from_bot(ada.user))
    (ask,) = await ada.asks()
    async with ada.hub() as hub:
        await hub.submit(cmd.AnswerAsk(ask=ask.opened.ask, answer=cmd.AllowAnswer()))
    await ada.sees(message.message_id, "✅ Allowed by deck")
    await ada.until(lambda found: found[0].turns == 1)
    other = await house.person()
    await other.tells("/ping", "pong")
    assert len(house.sim.from_bot(ada.user)) == before


async def test_a_user_who_is_taken_out_of_the_settings_is_not_heard_any_more(
    house: TelegramHouse, ada: Guest
) -> None:
    grace = await house.person()
    options = house.front().options
    without = msgspec.structs.replace(options, users=options.users - {grace.user})
    before = len(house.sim.from_bot(grace.user))
    house.running.change(without)
    grace.type("/ping")
    await ada.tells("/ping", "pong")
    assert len(house.sim.from_bot(grace.user)) == before
    house.running.change(options)
    await grace.tells("/ping", "pong")


async def test_forged_and_borrowed_callback_data_does_nothing(
    house: TelegramHouse, ada: Guest, tmp_path: Path
) -> None:
    message = await asked(ada, tmp_path=tmp_path)
    grace = await house.person()
    hello = await grace.tells("/ping", "pong")
    data = next(b.callback_data for b in message.buttons if b.text == "✅ Allow")
    assert data is not None
    assert len(data.encode()) <= 64
    for forged in (data, data[:-1] + "x", "allow", "0", "run:/stop", "x" * 64):
        query = house.sim.press(grace.user, hello.message_id, forge=forged)
        await grace.tells("/ping", "pong")
        assert house.sim.query(query).answer is None
    assert len(await ada.asks()) == 1
    ada.press(message, "✅ Allow")
    await ada.hears("Done.")


async def test_an_administrator_who_hides_who_they_are_is_not_heard(
    house: TelegramHouse, ada: Guest
) -> None:
    group = house.sim.add_group("team", [ada.user])
    update = {
        "message": {
            "message_id": 900,
            "date": 1,
            "chat": {"id": group.id, "type": "supergroup"},
            "from": {"id": ada.user, "is_bot": False, "first_name": "x"},
            "sender_chat": {"id": group.id, "type": "supergroup"},
            "text": "/ping",
        }
    }
    house.sim.raw_update(update)
    await ada.tells("/ping", "pong")
    assert house.sim.from_bot(group.id) == []


async def test_updates_that_come_again_are_not_done_again(house: TelegramHouse, ada: Guest) -> None:
    ada.type("hello")
    await ada.hears("echo: hello")
    house.sim.redeliver(3)
    await ada.tells("/ping", "pong")
    (session,) = await ada.sessions()
    assert session.turns == 1
    echoes = [one for one in house.sim.from_bot(ada.user) if "echo: hello" in one.shown]
    assert len(echoes) == 1


# --- several chats -------------------------------------------------------------------------------


async def test_two_topics_and_two_chats_do_not_mix(house: TelegramHouse, ada: Guest) -> None:
    grace = await house.person()
    forum = house.sim.add_group("forum", [ada.user, grace.user], forum=True)
    threads = [house.sim.add_topic(forum.id, name, ada.user) for name in ("one", "two")]
    for guest in (ada, grace):
        guest.play(*asking(*bash(f"make {guest.user}"), text=f"Done by {guest.user}."))
    for guest, thread in zip((ada, grace), threads, strict=True):
        guest.type(f"/ctx project {guest.project}", chat=forum.id, thread=thread)
        await guest.hears("📌", chat=forum.id, thread=thread)
    for guest, thread in zip((ada, grace), threads, strict=True):
        guest.type("go", chat=forum.id, thread=thread)
        guest.type("go")
    places = [
        (guest, chat, inside)
        for guest, thread in zip((ada, grace), threads, strict=True)
        for chat, inside in ((forum.id, thread), (guest.user, None))
    ]
    cards = [await guest.hears("🔐", chat=chat, thread=inside) for guest, chat, inside in places]
    assert len(await ada.asks()) == 2
    assert len(await grace.asks()) == 2
    for (guest, chat, inside), card in zip(places, cards, strict=True):
        assert f"make {guest.user}" in card.shown
        guest.press(card, "✅ Allow", chat=chat)
        await guest.hears(f"Done by {guest.user}.", chat=chat, thread=inside)
    for topic, guest in zip(threads, (ada, grace), strict=True):
        texts = [one.shown for one in house.sim.from_bot(forum.id, topic)]
        assert any(str(guest.user) in text for text in texts)
        other = grace if guest is ada else ada
        assert not any(f"Done by {other.user}" in text for text in texts)


async def test_in_a_group_only_mentions_are_prompts_where_that_is_set(
    house: TelegramHouse, ada: Guest
) -> None:
    group = house.sim.add_group("team", [ada.user])
    for line in (f"/ctx project {ada.project}", "/config trigger mentions"):
        ada.type(line, chat=group.id)
    await ada.hears("trigger: mentions", chat=group.id)
    ada.type("just talking", chat=group.id)
    ada.type("@test_bot hello", chat=group.id)
    await ada.hears("echo: hello", chat=group.id)
    ada.type("/ping@other_bot", chat=group.id)
    ada.type("/ping@test_bot", chat=group.id)
    await ada.hears("pong", chat=group.id)
    (session,) = await ada.sessions()
    assert session.turns == 1
