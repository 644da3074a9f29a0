"""`attach` at a real terminal: text, questions and plans of a hub's session."""

from __future__ import annotations

import pytest

from quarterdeck.testing.clis import RealCli
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import Gate, Text, ToolUse, reply
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]
TOUCH = ToolUse("Bash", {"command": "touch made", "description": "make it"})


async def test_prompts_and_permissions_at_the_keyboard_and_what_others_do_meanwhile(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    await deck.serve()
    here = deck.command.at_terminal("new", "--api-billing", "--attach", "--name", "one", ".")
    await here.expect("attached to one")
    await here.expect("> ")
    half = reply(Text("half an answer "), Gate(), Text("and the rest"), TOUCH)
    model.enqueue(half, "fin", TOUCH, "so be it", when="begin")
    here.press("begin\n")
    await here.expect("half an answer")
    assert "and the rest" not in here.shown
    model.release()
    await here.expect("and the rest")
    await here.expect("┌ Permission command: ")
    await here.expect("│ command: touch made")
    await here.expect("\n? ")
    here.press("y\n")
    await here.expect("fin")
    await here.expect("done · $")
    assert (deck.command.work / "made").exists()
    assert here.rows.count("half an answer") == 1

    # Somebody else prompts, and answers a question that stands here too: it goes, and one is told.
    await deck("send", "one", "the second")
    await here.expect("> the second")
    await here.expect("┌ Permission command: ")
    await here.expect("\n? ")
    await deck("answer", "one", "deny", "--message", "not now")
    await here.expect(", elsewhere")
    await here.expect("so be it")

    here.press("\x04")
    await here.expect("left; the agent keeps running")
    assert await here.end() == 0
    (shape,) = deck.client.sessions()
    assert shape.pid is not None
    await deck("stop")
    assert await deck.ends() == 0


async def test_ctrl_c_interrupts_the_turn_and_twice_leaves_and_a_hub_that_comes_back_is_found(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    await deck.serve()
    model.enqueue(reply(Text("well "), Gate("never")), when="begin")
    session = await deck.new("begin")
    here = deck.command.at_terminal("attach", "--notify", session)
    await here.expect("well")
    assert here.rows.index("> begin") < here.rows.index("well")  # the history comes first
    here.interrupt()
    await here.expect("interrupting …")
    await here.expect("interrupted · $")
    await here.expect("\a")  # the turn is over, and whoever looks elsewhere hears it
    await deck.until_state(session, "idle")

    await deck("stop", "--hub-only")
    await deck.ends()
    await here.expect("waiting for the hub")
    await deck.serve()
    await deck.until_state(session, "idle")
    here.press("are you there?\n")
    await here.expect("echo: are you there?")
    await here.expect("done · $")

    here.interrupt()
    await here.expect("Ctrl-C again, Ctrl-D or /detach leaves")
    here.interrupt()
    await here.expect(f"quarterdeck attach {session}")
    assert await here.end() == 0
    assert (await deck.until_state(session, "idle")).pid is not None
    await deck("stop")
    assert await deck.ends() == 0


async def test_a_plan_is_revised_and_then_carried_out_in_a_new_conversation(
    deck: ServedDeck, model: ScriptedModel, clis: dict[str, RealCli]
) -> None:
    # This one tells the plan with its question; newer ones read it from a file, if there is one.
    deck.command.env["QUARTERDECK_CLAUDE"] = clis["2.1.120"].command[-1]
    plan = ToolUse("ExitPlanMode", {"plan": "# The plan\n\n1. Do it."})
    model.enqueue(plan, plan, when="think")
    model.enqueue("done as planned", when="Implement the following plan")
    await deck.serve()
    session = await deck.new("--mode", "plan", "think first")
    here = deck.command.at_terminal("attach", session)
    await here.expect("┌ Plan for review")
    await here.expect("f  execute it in a new conversation")
    await here.expect("\n? ")
    here.press("k make it shorter\n")
    await here.expect("┌ Plan for review")
    await here.expect("\n? ")
    here.press("f\n")
    await here.expect("done as planned")
    assert "make it shorter" in model.turns[1].last_text
    fresh = model.turns[-1]
    assert "1. Do it." in fresh.last_text
    assert len(fresh.messages) == 1
    here.press("/exit\n")
    assert await here.end() == 0
    await deck("stop")
    assert await deck.ends() == 0
