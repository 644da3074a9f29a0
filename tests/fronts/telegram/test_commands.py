"""Every command of the bot, against a real hub with fake CLIs."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http import Role
from quarterdeck.fronts.telegram.commands.prompts import when
from quarterdeck.fronts.telegram.commands.table import COMMANDS, menu
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.testing import fake
from quarterdeck.testing.telegram.objects import Message
from support.telegram_house import Guest, TelegramHouse

pytestmark = [pytest.mark.anyio, pytest.mark.process]

WORKING = (
    fake.Expect("user", polite=True),
    fake.say(fake.assistant(fake.tool_use("Bash", {"command": "sleep 60"}))),
)
BUSY = (
    fake.Initialize(),
    *WORKING,
    fake.Expect("control_request", "interrupt", polite=True),
    fake.say(fake.answer(), fake.result("", subtype="error_during_execution", is_error=True)),
    fake.Serve(),
)
"""A turn that works until it is interrupted."""


def buttons(message: Message) -> list[str]:
    return [button.text for button in message.buttons]


async def busy(ada: Guest, *script: fake.Step) -> str:
    """Have a turn that works; gives its session."""
    ada.play(*(script or BUSY))
    ada.type("work")
    (session,) = await ada.until(
        lambda found: bool(found) and found[0].state is SessionState.WORKING
    )
    return session.session


async def idle(ada: Guest, prompt: str = "hello") -> str:
    """Have a session that is idle; gives its id."""
    ada.type(prompt)
    await ada.hears(f"echo: {prompt}")
    found = await ada.until(lambda found: found[0].state is SessionState.IDLE)
    return found[0].session


def controls(record: Path) -> list[dict[str, object]]:
    """The control requests that a fake CLI has read."""
    rows = [msgspec.json.decode(line) for line in record.read_bytes().splitlines()]
    return [
        row["request"]
        for row in rows
        if isinstance(row, dict) and row.get("type") == "control_request"
    ]


# --- help and pairing ----------------------------------------------------------------------------


async def test_help_has_every_command_and_so_has_the_menu(ada: Guest) -> None:
    ada.type("/help")
    text = (await ada.hears("A message is a prompt")).shown
    for command in COMMANDS.values():
        assert (f"/{command.name}" in text) is command.menu
    ada.type("/help budget")
    assert (await ada.hears("/budget")).shown.startswith("/budget")
    entries = await ada.house.telegram.wait_for(ada.house.sim.commands)
    assert [entry["command"] for entry in entries] == [entry.command for entry in menu()]


def test_every_command_has_a_test_here() -> None:
    here = Path(__file__)
    text = here.read_text() + here.with_name("test_automation.py").read_text()
    tested = set(re.findall(r'[f"\s]"?/(\w+)', text))
    assert COMMANDS.keys() - tested == set()


async def test_pair_gives_the_role_of_who_made_the_code_once(house: TelegramHouse) -> None:
    guest = await house.stranger()
    await guest.tells("hello", "You are not paired")
    await guest.tells("/pair", "make a code")
    await guest.tells("/pair 0000-0000-0000", "⚠️")
    code = house.service.access.make_pairing("grace", Role.VIEWER)
    await guest.tells(f"/pair {code}", "You are grace, viewer")
    await guest.tells("/ping", "You are grace, viewer")
    other = await house.stranger()
    await other.tells(f"/pair {code}", "⚠️")
    grants = [grant.label for grant in house.service.access.grants()]
    assert f"telegram:{guest.user}" in grants
    second = house.service.access.make_pairing("linus", Role.VIEWER)
    await guest.tells(f"/pair {second}", "You are linus, viewer")
    await guest.tells("/pair off", "The token that you had here has ended")
    await guest.tells("/ping", "You are not paired")
    await guest.tells("/pair off", "You are not paired any more")
    labels = [grant.label for grant in house.service.access.grants()]
    assert f"telegram:{guest.user}" not in labels


async def test_a_wrong_code_is_told_and_ends_no_pairing(house: TelegramHouse, ada: Guest) -> None:
    guest = await house.stranger()
    for person in (guest, ada):
        await person.tells("/pair 0000-0000-0000", "This code is wrong, was used already")
    await ada.tells("/ping", f"You are {ada.name}, owner")


async def test_start_greets_and_takes_a_code(house: TelegramHouse) -> None:
    guest = await house.stranger()
    await guest.tells("/start", "Hello. Make a code")
    code = house.service.access.make_pairing("linus", Role.OWNER)
    await guest.tells(f"/start {code.replace('-', '')}", "You are linus, owner")
    await guest.tells("/start", "Hello. Send a prompt")


@pytest.mark.parametrize("command", ["/pair", "/start", "/pair@test_bot"])
async def test_a_code_that_was_sent_in_a_group_pairs_nobody(
    house: TelegramHouse, ada: Guest, command: str
) -> None:
    mallory = await house.stranger("Mallory")
    group = house.sim.add_group("team", [ada.user, mallory.user])
    code = house.service.access.make_pairing("linus", Role.OWNER)
    ada.type(f"{command} {code}", chat=group.id)
    assert "private chat" in (await ada.hears("⚠️", chat=group.id)).shown
    await mallory.tells(f"/pair {code}", "This code is wrong, was used already")
    await ada.tells("/ping", f"You are {ada.name}, owner")


async def test_access_that_was_revoked_ends_here_too(house: TelegramHouse, ada: Guest) -> None:
    await ada.tells("/ping", "pong")
    (grant,) = [
        grant.id for grant in house.service.access.grants() if grant.label == f"telegram:{ada.user}"
    ]
    house.service.access.revoke(grant)
    await ada.tells("/ping", "has ended")
    await ada.tells("hello", "You are not paired")


async def test_a_role_holds_here_too(house: TelegramHouse) -> None:
    guest = await house.person(Role.VIEWER)
    answer = await guest.tells("hello", "⚠️")
    assert "may not manage" in answer.shown
    assert await guest.sessions() == []


# --- sessions ------------------------------------------------------------------------------------


async def test_new_begins_another_session(ada: Guest) -> None:
    first = await idle(ada, "one")
    await ada.tells("/new", "begins a new session")
    second = await idle(ada, "two")
    await ada.tells("/new three", "echo: three")
    found = await ada.sessions()
    assert len({first, second, *(shape.session for shape in found)}) == 3


async def test_cancel_interrupts_the_turn(ada: Guest) -> None:
    session = await busy(ada)
    await ada.tells("/cancel", "Interrupted")
    await ada.hears("failed")
    (shape,) = await ada.until(lambda found: found[0].state is SessionState.IDLE)
    assert shape.session == session
    assert shape.run is not None


async def test_stop_ends_the_process_and_a_prompt_starts_it_again(ada: Guest) -> None:
    session = await idle(ada)
    await ada.tells("/stop", "Stopped")
    await ada.until(lambda found: found[0].run is None)
    await ada.tells("/stop", "no process")
    ada.type("again")
    await ada.hears("echo: again")
    (shape,) = await ada.sessions()
    assert shape.session == session


async def test_resume_lists_sessions_and_continues_the_one_that_is_chosen(ada: Guest) -> None:
    first = await idle(ada, "one")
    await ada.tells("/stop", "Stopped")
    await ada.until(lambda found: found[0].run is None)
    await ada.tells("/new", "begins a new session")
    await idle(ada, "two")
    listed = await ada.tells("/resume", "Continue which session?")
    ada.press(listed, "one")
    await ada.hears("Messages here go to one")
    await ada.until(lambda found: all(shape.run is not None for shape in found))
    ada.type("more")
    await ada.hears("echo: more")
    found = await ada.until(lambda found: sum(shape.turns for shape in found) == 3)
    assert {shape.session: shape.turns for shape in found}[first] == 2
    await ada.tells(f"/resume {first[:12]}", "Messages here go to")
    await ada.tells("/resume nothing", "⚠️ there is no session")


async def test_continue_takes_the_newest_session_of_the_project(ada: Guest) -> None:
    session = await idle(ada, "one")
    await ada.tells("/new", "begins a new session")
    await ada.tells("/continue", "Messages here go to one")
    await ada.tells("/continue two", "echo: two")
    (shape,) = await ada.sessions()
    assert (shape.session, shape.turns) == (session, 2)


async def test_fork_continues_with_a_copy(ada: Guest) -> None:
    session = await idle(ada, "one")
    await ada.tells("/fork copy", "the copy copy")
    ada.type("two")
    await ada.hears("echo: two")
    found = await ada.sessions()
    assert {shape.session: shape.turns for shape in found} == {
        session: 1,
        next(shape.session for shape in found if shape.session != session): 1,
    }
    assert {shape.parent for shape in found} == {None, session}


async def test_rewind_offers_the_prompts_and_makes_a_copy_up_to_there(ada: Guest) -> None:
    await ada.tells("/rewind", "⚠️")
    await idle(ada, "one")
    await ada.tells("/rewind", "no prompt to go back to")
    await idle(ada, "two")
    listed = await ada.tells("/rewind", "before which prompt")
    assert buttons(listed) == ["⏪ two"]
    ada.press(listed, "⏪ two")
    await ada.hears("the copy")
    found = await ada.sessions()
    assert len(found) == 2
    assert found[0].parent == found[1].session


async def test_rewind_of_files_offers_all_prompts_and_asks_the_cli(
    ada: Guest, tmp_path: Path
) -> None:
    ada.play(fake.Initialize(), fake.Serve(), record=tmp_path / "record")
    await idle(ada, "one")
    listed = await ada.tells("/rewind files", "before which prompt")
    assert buttons(listed) == ["⏪ one"]
    await ada.tells("/rewind files some-uuid", "The files are as they were")
    request = controls(tmp_path / "record")[-1]
    assert request == {"subtype": "rewind_files", "user_message_id": "some-uuid"}


async def test_sessions_lists_what_there_is(ada: Guest) -> None:
    session = await idle(ada, "tidy up")
    listed = await ada.tells("/sessions", "Sessions, newest first")
    assert session[:8] in listed.shown
    assert "← here" in listed.shown
    assert "tidy up" in buttons(listed)


async def test_restart_starts_the_process_again(ada: Guest) -> None:
    await idle(ada)
    (before,) = await ada.sessions()
    await ada.tells("/restart", "Restarted")
    (after,) = await ada.until(lambda found: found[0].run not in {None, before.run})
    assert after.session == before.session


# --- prompts -------------------------------------------------------------------------------------


async def test_a_prompt_in_a_running_turn_is_queued_and_can_be_taken_back(ada: Guest) -> None:
    await busy(ada)
    ada.type("later")
    queued = await ada.hears("⏳ Queued")
    ada.type("latest")
    second = await ada.hears("⏳ Queued")
    listed = await ada.tells("/queue", "Prompts that wait")
    assert "1. later" in listed.shown
    assert "2. latest" in listed.shown
    ada.press(queued, "↩️ Take back")
    await ada.sees(queued.message_id, f"Taken back by {ada.name}")
    ada.press(listed, "↩️ Take back 2")
    await ada.sees(second.message_id, "Taken back")
    await ada.tells("/queue", "The queue is empty")
    await ada.tells("/cancel", "Interrupted")


async def test_a_queued_prompt_is_changed_by_changing_its_message(ada: Guest) -> None:
    await busy(ada)
    sent = ada.type("first thought")
    queued = await ada.hears("⏳ Queued")
    ada.house.sim.edit(ada.user, sent.message_id, "second thought")
    await ada.hears("The queued prompt is changed")
    ada.type("/cancel")
    await ada.hears("echo: second thought")
    await ada.sees(queued.message_id, "▶️ Started")


async def test_steer_tells_the_agent_something_while_it_works(ada: Guest, tmp_path: Path) -> None:
    record = tmp_path / "record"
    ada.play(
        fake.Initialize(),
        *WORKING,
        fake.Expect("user", polite=True),
        fake.say(fake.tool_result("ok"), fake.assistant("Noted."), fake.result("Noted.")),
        fake.Serve(),
        record=record,
    )
    ada.type("work")
    await ada.until(lambda found: bool(found) and found[0].state is SessionState.WORKING)
    ada.type("/steer mind the tests")
    await ada.hears("Sent into the running turn")
    await ada.hears("Noted.")
    assert b"mind the tests" in record.read_bytes()
    await ada.tells("/steer", "what should the agent know")


async def test_compact_and_unknown_commands_are_the_clis(ada: Guest) -> None:
    await ada.tells("/compact", "there is no session here yet")
    await idle(ada)
    await ada.tells("/compact the plan", "echo: /compact the plan")
    await ada.tells("/review the code", "echo: /review the code")
    await ada.tells("//help me", "echo: /help me")


async def test_a_prompt_for_later_is_sent_when_it_is_due(ada: Guest) -> None:
    await ada.tells("/at", "Nothing is planned")
    await ada.tells("/at 30s say hello", "⏰ Planned for")
    await ada.hears("echo: say hello")
    await ada.tells("/at 1d never", "⏰ Planned for")
    listed = await ada.tells("/at list", "Planned prompts")
    assert "never" in listed.shown
    (button,) = buttons(listed)
    ada.press(listed, button)
    await ada.hears("Taken back")
    await ada.tells("/at", "Nothing is planned")
    await ada.tells("/at soon x", "⚠️ when?")
    await ada.tells("/at 2h", "⚠️ what is to be done")
    await ada.tells("/at drop 999", "⚠️ there is no planned prompt")


@pytest.mark.parametrize(
    ("word", "later"),
    [
        ("08:30", timedelta(hours=22, minutes=30)),
        ("10:01", timedelta(minutes=1)),
        ("45m", timedelta(minutes=45)),
        ("+2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
    ],
)
def test_a_time_is_one_of_the_day_or_from_now(word: str, later: timedelta) -> None:
    now = datetime(2026, 1, 5, 10, 0, 0)
    assert when(word, now) - now == later


@pytest.mark.parametrize("word", ["24:00", "7:60", "soon", "0m", "99999d", "", "-1h"])
def test_a_time_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        when(word, datetime(2026, 1, 5))


# --- preferences ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "value", "wanted"),
    [
        ("/model", "opus", {"subtype": "set_model", "model": "opus"}),
        ("/mode", "acceptEdits", {"subtype": "set_permission_mode", "mode": "acceptEdits"}),
        (
            "/effort",
            "high",
            {"subtype": "apply_flag_settings", "settings": {"effortLevel": "high"}},
        ),
    ],
)
async def test_a_preference_holds_for_the_session_and_for_new_ones(
    ada: Guest, tmp_path: Path, command: str, value: str, wanted: dict[str, object]
) -> None:
    name = command[1:]
    ada.play(fake.Initialize(), fake.Serve(), record=tmp_path / "record")
    shown = await ada.tells(command, f"{name}: ")
    assert "by the default" in shown.shown
    await idle(ada)
    await ada.tells(f"{command} {value}", "works so from now on")
    assert wanted in controls(tmp_path / "record")
    await ada.tells(command, f"{value} by this chat")
    await ada.tells("/new", "begins a new session")
    await idle(ada, "again")
    found = await ada.sessions()
    assert getattr(found[0].spec, name) == value
    shown = await ada.tells(command, "by this chat")
    ada.press(shown, "↩️ Not set here")
    await ada.hears("by the default")


async def test_planmode_sets_the_mode_by_words_and_buttons(ada: Guest) -> None:
    shown = await ada.tells("/planmode show", "planmode: not set")
    ada.press(shown, "on")
    await ada.hears("mode: plan by this chat")
    await ada.tells("/planmode", "planmode: on")
    await ada.tells("/planmode auto", "mode: auto by this chat")
    await ada.tells("/planmode off", "mode: default by this chat")
    await ada.tells("/planmode clear", "by the default")
    await ada.tells("/planmode sometimes", "⚠️")


async def test_approve_lists_tools_that_need_no_question(ada: Guest) -> None:
    await ada.tells("/approve", "approve: ")
    await ada.tells("/approve Read, ExitPlanMode", "⚠️ approve: ExitPlanMode")
    await ada.tells("/approve Read, Grep", "approve: Read, Grep by this chat")
    await idle(ada)
    (shape,) = await ada.sessions()
    assert shape.spec.auto_approve == ("Read", "Grep")
    await ada.tells("/approve Read", "works so from now on")
    await ada.until(lambda found: found[0].spec.auto_approve == ("Read",))
    await ada.tells("/approve clear", "by the default")


async def test_only_those_who_may_create_sessions_set_what_agents_may_do(
    house: TelegramHouse, ada: Guest
) -> None:
    group = house.sim.add_group("team", [ada.user])
    ada.type(f"/ctx project {ada.project}", chat=group.id)
    await ada.hears("📌", chat=group.id)
    for role, lines in (
        (Role.OPERATOR, ("/mode acceptEdits", "/ctx clear", "/approve Bash", "/topic x")),
        (Role.VIEWER, ("/mode acceptEdits", "/new", "/config follow all", "/at 1h hello")),
    ):
        guest = await house.person(role)
        house.sim.set_status(group.id, guest.user, "member")
        for line in lines:
            guest.type(line, chat=group.id)
            refused = await guest.hears("may not", chat=group.id)
            assert "⚠️" in refused.shown
    ada.type("/config", chat=group.id)
    shown = await ada.hears("Preferences of this chat", chat=group.id)
    assert "by this chat" not in shown.shown


async def test_verbose_and_config_show_and_set_preferences(ada: Guest) -> None:
    await ada.tells("/verbose quiet", "verbose: quiet by this chat")
    shown = await ada.tells("/config", "Preferences of this chat")
    assert "verbose: quiet by this chat" in shown.shown
    ada.press(shown, "drafts: off")
    await ada.hears("drafts: off by this chat")
    await ada.tells("/config drafts clear", "drafts: on by the default")
    await ada.tells("/config follow all", "follow: all by this chat")
    await ada.tells("/config follow own", "follow: own by this chat")
    await ada.tells("/config model", "model: ")
    await ada.tells("/config nothing 1", "⚠️ there is no preference")
    await ada.tells("/config rich maybe", "⚠️ rich: on or off")
    await ada.tells("/mode bypassPermissions", "⚠️ mode: one of")


async def test_an_option_in_a_message_goes_before_the_chat(ada: Guest) -> None:
    await ada.tells("/model sonnet", "sonnet by this chat")
    ada.type("--model opus --plan think")
    await ada.hears("echo: think")
    (shape,) = await ada.sessions()
    assert (shape.spec.model, shape.spec.mode) == ("opus", "plan")


# --- where ---------------------------------------------------------------------------------------


async def test_ctx_shows_and_changes_where_sessions_work(ada: Guest) -> None:
    shown = await ada.tells("/ctx", f"Project {ada.project}")
    assert ada.project in buttons(shown)
    folder = ada.work / "inner"
    folder.mkdir()
    await ada.tells(f"/ctx dir {folder}", f"Folder {folder}")
    await idle(ada)
    async with ada.hub() as hub:
        found = [shape async for shape in hub.sessions() if shape.spec.directory == str(folder)]
    assert len(found) == 1
    await ada.tells("/ctx machine local", "Folder")
    await ada.tells("/ctx branch topic/x", "in the worktree of topic/x")
    await ada.tells("/ctx clear", "No project and no folder")
    await ada.tells("hello", "⚠️ this chat has no project yet")
    for wrong in ("project nothing", "dir relative", "machine nowhere", "sideways"):
        await ada.tells(f"/ctx {wrong}", "⚠️")


async def test_browse_leads_to_a_folder(house: TelegramHouse, ada: Guest) -> None:
    (ada.work / "inner").mkdir()
    roots = msgspec.structs.replace(house.settings.roots, directories=(str(ada.work),))
    house.settings = msgspec.structs.replace(house.settings, roots=roots)
    house.service.take(house.settings)
    shown = await ada.tells("/browse", "Folders")
    assert any(ada.work.name in text for text in buttons(shown))
    inner = await ada.tells(f"/browse {ada.work}", str(ada.work))
    ada.press(inner, "📁 inner")
    chosen = await ada.hears(str(ada.work / "inner"))
    ada.press(chosen, "✅ Work here")
    await ada.hears(f"Folder {ada.work / 'inner'}")
    await ada.tells("/browse /etc", "⚠️")


async def test_topic_makes_a_topic_with_a_project(house: TelegramHouse, ada: Guest) -> None:
    await ada.tells("/topic work", "in groups with topics only")
    group = house.sim.add_group("forum", [ada.user], forum=True)
    ada.type(f"/topic Tests | {ada.project}", chat=group.id)
    await ada.hears("The topic Tests is ready", chat=group.id)
    (created,) = [
        message for message in house.sim.messages(group.id) if message.forum_topic_created
    ]
    thread = created.message_thread_id
    assert thread is not None
    ada.type("hello", chat=group.id, thread=thread)
    await ada.hears("echo: hello", chat=group.id, thread=thread)
    ada.type("/topic", chat=group.id)
    await ada.hears("⚠️ /topic NAME", chat=group.id)


# --- what is told --------------------------------------------------------------------------------


async def test_context_tells_what_the_cli_knows(ada: Guest) -> None:
    usage: fake.Line = {"categories": [{"name": "Messages", "tokens": 1234}], "totalTokens": 1234}
    ada.play(
        fake.Initialize(),
        fake.Serve(turns=1),
        fake.Expect("control_request", "get_context_usage", polite=True),
        fake.say(fake.answer(usage)),
        fake.Serve(),
    )
    await idle(ada)
    shown = await ada.tells("/context", "🧠")
    assert "Messages: 1,234" in shown.shown


async def test_mcp_lists_servers_and_connects_them_again(ada: Guest, tmp_path: Path) -> None:
    servers = [{"name": "tracker", "status": "failed"}]
    init: fake.Line = {
        "type": "system",
        "subtype": "init",
        "mcp_servers": servers,
        "tools": [],
        "cwd": "/",
    }
    ada.play(
        fake.Initialize(),
        fake.Expect("user", polite=True),
        fake.say(
            init | {"session_id": "$session_id", "uuid": "$uuid", "model": "m"},
            fake.assistant("echo: hello"),
            fake.result("echo: hello"),
        ),
        fake.Serve(),
        record=tmp_path / "record",
    )
    await idle(ada)
    shown = await ada.tells("/mcp", "tracker: failed")
    ada.press(shown, "🔄 tracker")
    await ada.hears("tracker: connected again")
    await ada.tells("/mcp off tracker", "tracker is off")
    await ada.tells("/mcp on tracker", "tracker is on")
    await ada.tells("/mcp explode", "⚠️ /mcp")
    found = controls(tmp_path / "record")
    assert {"subtype": "mcp_reconnect", "serverName": "tracker"} in found
    assert {"subtype": "mcp_toggle", "serverName": "tracker", "enabled": False} in found


async def test_tasks_lists_what_runs_and_stops_it(ada: Guest, tmp_path: Path) -> None:
    given = {"command": "sleep 1", "run_in_background": True}
    ada.play(
        fake.Initialize(),
        fake.Expect("user", polite=True),
        fake.say(
            fake.assistant(fake.tool_use("Bash", given)),
            {
                "type": "system",
                "subtype": "task_started",
                "task_id": "b1",
                "tool_use_id": "toolu_fake",
                "description": "sleep 1",
                "task_type": "local_bash",
                "session_id": "$session_id",
                "uuid": "$uuid",
            },
            fake.assistant("echo: hello"),
            fake.result("echo: hello"),
        ),
        fake.Serve(),
        record=tmp_path / "record",
    )
    await idle(ada)
    shown = await ada.tells("/tasks", "Tasks that run")
    ada.press(shown, "🛑 Stop 1")
    await ada.hears("asked to stop")
    assert {"subtype": "stop_task", "task_id": "b1"} in controls(tmp_path / "record")


async def test_usage_stats_and_budget_tell_what_was_spent(ada: Guest) -> None:
    session = await idle(ada)
    await ada.tells("/usage", "Usage by day")
    await ada.tells("/usage project", "Usage by project")
    await ada.tells("/usage nothing", "⚠️")
    shown = await ada.tells("/stats", "1 turns")
    assert session in shown.shown
    await ada.tells("/budget", "no budget")
    await ada.tells("/budget 2.5", "session usd: 2.5")
    await ada.tells("/budget lift", "no budget")
    await ada.tells("/budget much", "⚠️")


async def test_ping_and_health_tell_who_is_there(ada: Guest) -> None:
    await ada.tells("/ping", f"You are {ada.name}, owner")
    shown = await ada.tells("/health", "Hub ")
    assert "local: connected" in shown.shown
    assert "@test_bot" in shown.shown


# --- files ---------------------------------------------------------------------------------------


async def test_a_file_is_sent_as_the_cli_may_read_it(ada: Guest) -> None:
    contents: fake.Line = {"contents": "aGVsbG8=", "encoding": "base64", "absPath": "/x/a.txt"}
    ada.play(
        fake.Initialize(),
        fake.Serve(turns=1),
        fake.Expect("control_request", "read_file", polite=True),
        fake.say(fake.answer(contents)),
        fake.Expect("control_request", "read_file", polite=True),
        fake.say(fake.refusal("permission denied")),
        fake.Serve(),
    )
    await idle(ada)
    sent = await ada.tells("/file get notes/a.txt", "notes/a.txt")
    assert ada.house.sim.file(sent.message_id, ada.user) == b"hello"
    await ada.tells("/file get /etc/shadow", "permission denied")
    await ada.tells("/file", "⚠️ /file get PATH")


async def test_a_document_is_stored_in_the_folder_of_the_session(ada: Guest) -> None:
    await idle(ada)
    sim = ada.house.sim
    sim.send_file(ada.user, "data.bin", b"\x00\x01", caption="/file put in/data.bin")
    await ada.hears("💾 Stored")
    assert (ada.work / "in" / "data.bin").read_bytes() == b"\x00\x01"
    sim.send_file(ada.user, "data.bin", b"other", caption="/file put in/data.bin")
    await ada.hears("⚠️ 'in/data.bin' is there already")
    sim.send_file(ada.user, "x", b"x", caption="/file put ../x")
    await ada.hears("⚠️ '../x' is not below")
    await ada.tells("/file put a", "⚠️ send a document")


async def test_export_sends_the_session_as_a_file(ada: Guest) -> None:
    await idle(ada, "tidy up")
    for form, ending in (("", "md"), ("html", "html"), ("json", "ndjson")):
        ada.type(f"/export {form}".strip())
        sent = await ada.hears("tidy up")
        assert sent.document is not None
        assert sent.document.file_name == f"tidy-up.{ending}"
        assert b"echo: tidy up" in ada.house.sim.file(sent.message_id, ada.user)
    await ada.tells("/export pdf", "⚠️ /export")
