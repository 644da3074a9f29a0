"""`quarterdeck acp` driven by the client side of the `acp` package, with the newest real CLI."""

from __future__ import annotations

import json
import re
from typing import Any

import anyio
import anyio.to_thread
import pytest
from acp import RequestError, schema
from msgspec import Raw
from typer.core import TyperGroup
from typer.main import get_command

from quarterdeck.cli.app import app
from quarterdeck.client.calls import HubRefused
from quarterdeck.protocol.commands import AnswerAsk, Control, DenyAnswer
from quarterdeck.service.local_hub import person_here
from quarterdeck.testing import Gate, ScriptedModel, Text, ToolUse, play, reply
from support.acp_editor import Editor, editor
from support.acp_wire import MEGABYTES_10, Wire, shows
from support.bounds import SECONDS
from support.pages import page
from support.processes import Processes
from support.scenes import bash
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

QUESTIONS = ToolUse(
    "AskUserQuestion",
    {
        "questions": [
            {
                "question": "Which one?",
                "header": "One",
                "options": [
                    {"label": "red", "description": "like fire"},
                    {"label": "blue", "description": "like water"},
                ],
                "multiSelect": False,
            },
            {
                "question": "Which ones?",
                "header": "Some",
                "options": [
                    {"label": "a", "description": "first"},
                    {"label": "b", "description": "second"},
                    {"label": "c", "description": "third"},
                ],
                "multiSelect": True,
            },
        ]
    },
)


async def new(here: Editor, deck: ServedDeck) -> schema.NewSessionResponse:
    """A session in the editor's folder."""
    with anyio.fail_after(SECONDS):
        return await here.agent.new_session(cwd=str(deck.command.work), mcp_servers=[])


def values(options: Any) -> dict[str, str]:
    """The present values of config options."""
    return {option.id: option.current_value for option in options or ()}


@shows(
    "Python",
    "new",
    "prompt",
    "cancel",
    "close",
    "permissions",
    "lasting ones",
    "mode",
    "model",
    "effort",
    "plan",
    "usage",
    "commands",
    "a new title",
)
async def test_an_editor_prompts_answers_switches_and_cancels(
    deck: ServedDeck, model: ScriptedModel, processes: Processes, wire: Wire
) -> None:
    """new, prompt, permissions, plan, usage, commands, info, config options, cancel, close."""
    await deck.serve()
    async with editor(deck, processes, wire, "--env", "CLAUDE_CODE_ENABLE_TODO_TOOLS=1") as here:
        made = await new(here, deck)
        session = made.session_id
        assert values(made.config_options) == {
            "mode": "default",
            "model": "default",
            "effort": "auto",
        }
        assert made.modes is not None
        assert made.modes.current_mode_id == "default"
        await here.until(lambda: here.of("available_commands_update"))
        commands = here.of("available_commands_update")[-1]
        assert "compact" in {command.name for command in commands.available_commands}

        # Text as it is generated, once; a call that is allowed here; tokens.
        here.choices = ["allow"]
        begin = reply(Text("half "), Gate(), Text("and more"), bash("touch made"))
        async with anyio.create_task_group() as tasks:
            done: list[schema.PromptResponse] = []

            async def prompt() -> None:
                done.append(await here.say(session, play(begin, "fin")))

            tasks.start_soon(prompt)
            await here.until(lambda: here.text() == "half ")
            model.release()
        assert here.text() == "half and morefin"
        assert done[0].stop_reason == "end_turn"
        assert done[0].usage is not None
        assert done[0].usage.output_tokens > 0
        assert (deck.command.work / "made").exists()
        (ask,) = here.asked
        assert ask.tool_call.title == "touch made"
        assert ask.tool_call.kind == "execute"
        offered = {option.option_id: option for option in ask.options}
        assert list(offered) == ["allow", "session", "always", "deny", "stop"]
        assert offered["session"].name == "Allow Bash(touch made) in this session"
        assert offered["allow"].kind == "allow_once"
        (call,) = here.of("tool_call")
        assert call.tool_call_id == ask.tool_call.tool_call_id
        statuses = [update.status for update in here.of("tool_call_update")]
        assert statuses == ["in_progress", "completed"]
        assert here.of("user_message_chunk") == []  # an editor shows its own prompts itself
        await here.until(lambda: here.of("usage_update"))
        assert here.of("usage_update")[-1].size in {200_000, 1_000_000}
        assert here.of("usage_update")[-1].cost.amount > 0

        # A grant holds for just this, and the next such call is not asked about.
        here.choices = ["session"]
        await here.say(session, play(bash("touch two"), bash("touch two"), "again"))
        assert len(here.asked) == 2
        (grant,) = deck.client.policy_grants()
        assert (grant.rules, grant.session) == (("Bash(touch two)",), session)

        # To-dos.
        await here.say(
            session,
            play(
                ToolUse("TaskCreate", {"subject": "one", "description": "do one"}),
                ToolUse("TaskUpdate", {"taskId": "1", "status": "in_progress"}),
                "listed",
            ),
        )
        assert [entry.status for entry in here.of("plan")[-1].entries] == ["in_progress"]
        assert [entry.content for entry in here.of("plan")[-1].entries] == ["one"]

        await switches(here, deck, session)

        # A name that is given elsewhere.
        await deck("rename", session, "the new name")
        await here.until(
            lambda: [u for u in here.of("session_info_update") if u.title == "the new name"]
        )

        # Cancelled in the middle of a turn, with a dialogue open.
        here.asked.clear()
        async with anyio.create_task_group() as tasks:
            done = []
            tasks.start_soon(prompt_into, here, session, play(bash("touch never"), "no"), done)
            await here.until(lambda: here.asked)
            await here.agent.cancel(session_id=session)
        assert done[0].stop_reason == "cancelled"
        assert not (deck.command.work / "never").exists()
        await here.until(lambda: here.cancelled, "the dialogue was cancelled")

        # Closed: the turn goes on in the hub.
        async with anyio.create_task_group() as tasks:
            done = []
            long = play(reply(Text("slow "), Gate("end"), Text("end")))
            tasks.start_soon(prompt_into, here, session, long, done)
            await model.wait_at_gate("end")
            with anyio.fail_after(SECONDS):
                await here.agent.close_session(session_id=session)
        assert done[0].stop_reason == "cancelled"
        model.release("end")
        shape = await deck.until(session, lambda shape: shape.turns >= 5 and shape.state == "idle")
        assert shape.pid is not None
        with pytest.raises(RequestError, match="not open here"):
            await here.say(session, "are you there?")
        # Nothing of the editor was used.
        assert {line["method"] for line in here.lines if "method" in line} == {
            "session/update",
            "session/request_permission",
            "$/cancel_request",
        }
    await deck("stop")
    await deck.ends()


async def prompt_into(
    here: Editor, session: str, text: str, done: list[schema.PromptResponse]
) -> None:
    """Send a prompt; its response goes into a list."""
    done.append(await here.say(session, text))


async def switches(here: Editor, deck: ServedDeck, session: str) -> None:
    """Mode, model and effort: from the editor, from elsewhere, and what is not offered."""
    changed = await here.agent.set_config_option("model", session, "haiku")
    assert changed is not None
    assert values(changed.config_options)["model"] == "haiku"
    await deck.until(session, lambda shape: shape.spec.model == "haiku")
    changed = await here.agent.set_config_option("model", session, "opus")
    changed = await here.agent.set_config_option("effort", session, "high")
    assert changed is not None
    assert values(changed.config_options)["effort"] == "high"
    await deck.until(session, lambda shape: shape.effort == "high")
    await here.agent.set_session_mode(session_id=session, mode_id="acceptEdits")
    await deck.until(session, lambda shape: shape.mode == "acceptEdits")
    with pytest.raises(RequestError, match="mode: one of"):
        await here.agent.set_session_mode(session_id=session, mode_id="bypassPermissions")
    with pytest.raises(RequestError, match="there is no option"):
        await here.agent.set_config_option("sandbox", session, "off")
    here.updates.clear()
    request = Raw(b'{"subtype": "set_permission_mode", "mode": "default"}')
    deck.client.submit(Control(session=session, request=request))
    await here.until(lambda: here.of("current_mode_update"))
    assert here.of("current_mode_update")[-1].current_mode_id == "default"
    assert values(here.of("config_option_update")[-1].config_options)["mode"] == "default"


@shows("Python", "answered elsewhere")
async def test_an_ask_in_the_editor_and_in_the_hub_is_answered_once_and_both_are_told(
    deck: ServedDeck, model: ScriptedModel, processes: Processes, wire: Wire
) -> None:
    await deck.serve()
    async with editor(deck, processes, wire) as here:
        session = (await new(here, deck)).session_id
        done: list[schema.PromptResponse] = []

        # Elsewhere first: the dialogue is taken back, and the editor says who it was.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt_into, here, session, play(bash("touch one"), "so"), done)
            await here.until(lambda: here.asked)
            await deck("answer", session, "deny", "--message", "not now")
        await here.until(lambda: [n for n in here.notices if n.get("notice") == "ask.answered"])
        (told,) = [n for n in here.notices if n.get("notice") == "ask.answered"]
        assert told["allowed"] is False
        assert told["by"] == person_here()
        assert f"*Denied by {person_here()}, elsewhere: touch one.*" in here.text()
        assert len(here.cancelled) == 1
        here.choices = ["allow"]  # too late: nobody waits for it
        await here.until(lambda: not here.choices)
        assert not (deck.command.work / "one").exists()

        # At the same time: one wins, and the other is told.
        for number in range(4):
            here.asked.clear()
            here.updates.clear()
            refused: list[HubRefused] = []
            name = f"both{number}"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(prompt_into, here, session, play(bash(f"touch {name}"), "x"), done)
                await here.until(lambda: here.asked)
                (card,) = deck.client.asks(session)

                async def deny(ask: str = card.opened.ask) -> None:
                    try:
                        command = AnswerAsk(ask=ask, answer=DenyAnswer())
                        await anyio.to_thread.run_sync(deck.client.submit, command)
                    except HubRefused as error:
                        refused.append(error)  # noqa: B023 - of this round

                here.choices = ["allow"]
                tasks.start_soon(deny)
            made = (deck.command.work / name).exists()
            if refused:
                assert made
                assert refused[0].problem.code == "already_answered"
            else:
                assert not made
                await here.until(
                    lambda: [n for n in here.notices if n.get("notice") == "ask.answered"]
                )
                (told,) = [n for n in here.notices if n.get("notice") == "ask.answered"]
                assert (told["by"], told["allowed"]) == (person_here(), False)
            answers = [
                shape.event
                for shape in deck.client.events(session)
                if getattr(shape.event, "ask", None) == card.opened.ask
                and type(shape.event).__name__ == "AskAnswered"
            ]
            assert len(answers) == 1
            here.choices.clear()
    await deck("stop")
    await deck.ends()


@shows("Python", "questions as forms", "else as options", "plan review")
async def test_questions_and_plans_by_buttons_and_by_forms(
    deck: ServedDeck, model: ScriptedModel, processes: Processes, wire: Wire
) -> None:
    await deck.serve()
    async with editor(deck, processes, wire) as here:
        session = (await new(here, deck)).session_id
        here.choices = ["option1", "option0", "option2", "done"]
        await here.say(session, play(QUESTIONS, "thanks"))
        assert [ask.tool_call.title for ask in here.asked] == ["Which one?"] + ["Which ones?"] * 3
        assert [option.name for option in here.asked[0].options] == [
            "red: like fire",
            "blue: like water",
            "Skip the question",
        ]
        told = model.turns[-1].last_text
        assert '"Which one?"="blue"' in told
        assert '"Which ones?"="a, c"' in told

        await here.agent.set_session_mode(session_id=session, mode_id="plan")
        here.asked.clear()
        here.choices = ["manual"]
        plan = ToolUse("ExitPlanMode", {"plan": "# The plan\n\n1. Do it."})
        await here.say(session, play(plan, "done as planned"))
        offered = [option.option_id for option in here.asked[0].options]
        assert "revise" not in offered  # it needs a text, and this editor has no form
        assert {"auto", "manual", "reject"} <= set(offered)
        assert here.asked[0].tool_call.kind == "switch_mode"
        assert "done as planned" in here.text()
        await deck.until(session, lambda shape: shape.mode == "default")

    async with editor(deck, processes, wire, forms=True) as here:
        with anyio.fail_after(SECONDS):
            await here.agent.resume_session(session_id=session, cwd=str(deck.command.work))
        assert here.text() == ""
        here.choices = [{"content": {"other1": "green", "answer2": ["b", "not offered"]}}]
        await here.say(session, play(QUESTIONS, "thanks"))
        assert here.asked == []
        told = model.turns[-1].last_text
        assert '"Which one?"="green"' in told
        assert '"Which ones?"="b"' in told
        await here.agent.set_session_mode(session_id=session, mode_id="plan")
        here.choices = ["revise", {"content": {"feedback": "make it shorter"}}, "reject"]
        done = await here.say(session, play(plan, plan, "never said"))
        assert "make it shorter" in str(model.turns[-1].messages)
        assert done.stop_reason == "cancelled"
        assert "never said" not in here.text()
    await deck("stop")
    await deck.ends()


@shows("Python", "list", "load", "resume", "fork")
async def test_sessions_are_listed_loaded_resumed_and_forked(
    deck: ServedDeck, model: ScriptedModel, processes: Processes, wire: Wire
) -> None:
    await deck.serve()
    folder = str(deck.command.work)
    session = await deck.new("--name", "from elsewhere", play(bash("echo told"), "the answer"))
    await deck.until(session, lambda shape: shape.turns == 1 or shape.asks == 1)
    async with editor(deck, processes, wire) as here:
        listed = await here.agent.list_sessions(cwd=folder)
        assert [(each.session_id, each.title) for each in listed.sessions] == [
            (session, "from elsewhere")
        ]
        assert (await here.agent.list_sessions(cwd="/nowhere")).sessions == []

        here.choices = ["allow"]
        with anyio.fail_after(SECONDS):
            await here.agent.load_session(session_id=session, cwd=folder, mcp_servers=[])
        await deck.until(session, lambda shape: shape.turns == 1)
        await here.until(lambda: "the answer" in here.text())
        assert "PLAY" in here.text("user_message_chunk")
        kinds = [update.session_update for _, update in here.updates]
        assert kinds.index("user_message_chunk") < kinds.index("tool_call")
        assert here.text().count("the answer") == 1

        # What others prompt is shown, too, and what they are answered.
        await deck("send", session, play("for others"))
        await here.until(lambda: "for others" in here.text())

        with anyio.fail_after(SECONDS):
            fork = await here.agent.fork_session(session_id=session, cwd=folder)
        assert fork.session_id != session
        await here.say(fork.session_id, play("in the fork"))
        assert "the answer" in str(model.turns[-1].messages)
        assert here.of("agent_message_chunk", fork.session_id)

        # Stopped: it is resumed, or by the next prompt.
        await deck("stop", session)
        await deck.until_state(session, "ended")
        with anyio.fail_after(SECONDS):
            await here.agent.resume_session(session_id=session, cwd=folder)
        assert (await here.say(session, play("resumed"))).stop_reason == "end_turn"
        await deck("stop", session)
        await deck.until_state(session, "ended")
        assert (await here.say(session, play("by a prompt"))).stop_reason == "end_turn"
        assert "by a prompt" in here.text()
    await deck("stop")
    await deck.ends()


@shows("Python", "lines of 10 MB")
async def test_ten_megabytes_pass_in_both_directions(
    deck: ServedDeck, model: ScriptedModel, processes: Processes, wire: Wire
) -> None:
    await deck.serve()
    async with editor(deck, processes, wire) as here:
        session = (await new(here, deck)).session_id
        # The CLI has it, and finds it too long for the model.
        with pytest.raises(RequestError, match="Prompt is too long"):
            await here.say(session, "x" * MEGABYTES_10)
        here.updates.clear()
        # Its answer is one line of 10 MB; the editor gets it in parts, as it is generated.
        done = await here.say(session, play(reply(Text("y" * 65_536, times=160))))
        assert done.stop_reason == "end_turn"
        assert here.text().endswith("y" * MEGABYTES_10)
        assert here.text().count("y" * MEGABYTES_10) == 1
        # A line of that size, with the history that an editor loads.
        here.updates.clear()
        with anyio.fail_after(SECONDS):
            await here.agent.load_session(
                session_id=session, cwd=str(deck.command.work), mcp_servers=[]
            )
        assert max(len(str(line)) for line in here.lines) > MEGABYTES_10
        assert "x" * MEGABYTES_10 in here.text("user_message_chunk")
        assert "y" * MEGABYTES_10 in here.text()
    await deck("stop")
    await deck.ends()


async def test_a_hub_that_is_killed_in_mid_turn_is_waited_for(
    deck: ServedDeck, model: ScriptedModel, processes: Processes, wire: Wire
) -> None:
    async with editor(deck, processes, wire) as here:
        with pytest.raises(RequestError, match="no hub runs on this machine"):
            await here.agent.list_sessions()
        await deck.serve()
        session = (await new(here, deck)).session_id
        done: list[schema.PromptResponse] = []
        async with anyio.create_task_group() as tasks:
            script = play(reply(Text("begun "), Gate(), Text("ended")))
            tasks.start_soon(prompt_into, here, session, script, done)
            await model.wait_at_gate()
            assert deck.hub is not None
            deck.hub.kill()
            await deck.ends()
            await here.until(lambda: "The hub is away" in here.text())
            model.release()
            await deck.serve()
        assert done[0].stop_reason == "end_turn"
        assert here.text().replace("begun ", "", 1).count("begun ") == 0
        assert "ended" in here.text()
        assert "The hub is there again" in here.text()
    await deck("stop")
    await deck.ends()


HOW_TO = page("docs/how-to/use-quarterdeck-from-an-editor.md")
COMMAND = re.compile(r'"quarterdeck"\W+(?:(?:args =|:command-params)\W+)?"acp"')
"""How the languages of editors write the command and its argument."""


def test_every_editor_of_the_how_to_has_a_configuration_that_the_command_accepts() -> None:
    sections = dict(part.split("\n", 1) for part in HOW_TO.text.split("\n## ")[1:])
    for editor_name, language, count in (
        ("Zed", "json", 1),
        ("JetBrains", "json", 1),
        ("Neovim", "lua", 2),
        ("Emacs", "elisp", 1),
    ):
        blocks = sections[editor_name].split(f"```{language}\n")[1:]
        assert len(blocks) == count, editor_name
        if language != "json":
            assert all(COMMAND.search(block) for block in blocks), editor_name
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    found = [json.loads(block.code)["agent_servers"] for block in HOW_TO.blocks("json")]
    servers = [server for each in found for server in each.values()]
    assert len(servers) == 3
    for server in servers:
        name, *options = server["args"]
        assert (server["command"], name) == ("quarterdeck", "acp")
        group.commands[name].make_context(name, options)  # ends the process if one is unknown
