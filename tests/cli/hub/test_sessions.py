"""The commands about sessions and questions, against a hub with the real CLI."""

from __future__ import annotations

import json

import pytest

from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import ToolUse, play
from support.served_deck import ServedDeck, until_true

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]
TOUCH = ToolUse("Bash", {"command": "touch made", "description": "make it"})


async def test_a_session_is_made_answered_prompted_forked_put_away_and_forgotten(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    await deck.serve()
    session = await deck.new("--name", "first", play(TOUCH, "it is done"))
    await deck.until_state(session, "waiting")

    asks = (await deck("asks")).out
    assert asks.startswith(f"{session[:8]}  first  tool  ")
    assert "Bash: touch made" in asks
    changed = json.dumps({"command": "touch other", "description": "another"})
    said = await deck("answer", session[:12], "allow", "--input", changed)
    assert said.err == "allowed once: Bash: touch made\n"
    await deck.until(session, lambda shape: shape.turns == 1)
    assert (deck.command.work / "other").exists()
    assert not (deck.command.work / "made").exists()
    late = await deck("answer", "first", "allow", code=1)
    assert late.err == "quarterdeck: there is no open question 'first'\n"

    listed = (await deck("ps")).out
    assert listed.startswith(f"{session[:8]}  idle")
    assert f"first  {deck.command.work}" in listed.replace("local:", "")

    prompt = (await deck("send", "first", "-", stdin="good evening")).out.strip()
    await deck.until(session, lambda shape: shape.turns == 2)
    log = (await deck("log", session)).out
    assert "• command      touch made  # make it\n" in log
    assert "~ asks: Bash: touch made" in log
    assert "it is done" in log
    assert "> good evening\n\necho: good evening" in log
    events = [json.loads(line) for line in (await deck("log", "first", "--json")).out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    queued = [e["event"] for e in events if e["event"]["kind"] == "prompt.queued"]
    assert queued[-1]["prompt"] == prompt
    audit = (await deck("audit", "--session", session)).out
    assert "allow  by " in audit
    assert "Bash: touch other  (allowed (once), with another input)" in audit

    fork = (await deck("fork", "first", "--name", "copy")).out.strip()
    await deck("rename", fork, "the copy")
    await deck("send", "the copy", "and here")
    await deck.until(fork, lambda shape: shape.turns == 1)
    assert len(model.turns[-1].messages) > 2

    refused = await deck("rm", "first", code=1)
    assert refused.err == "quarterdeck: the session has a process; stop it first\n"
    await deck("stop", "first")
    await deck.until_state(session, "ended")
    await deck("archive", "first")
    assert "first" not in (await deck("ps")).out
    assert "ended (archived)  " in (await deck("ps", "--all")).out
    needs = await deck("resume", session, "--directory", "/elsewhere", code=2)
    assert "--directory needs --machine" in needs.err
    away = await deck("resume", session, "--machine", "box", code=1)
    assert "does not have the transcript of this session" in away.err
    await deck("resume", session)
    await deck.until_state(session, "idle")
    await deck("rm", "--stop", session, fork)
    assert (await deck("ps", "--all")).out == ""
    await deck("stop")
    assert await deck.ends() == 0


async def test_a_turn_is_interrupted_and_a_question_is_answered_by_its_header(
    deck: ServedDeck, model: ScriptedModel
) -> None:
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    colour = {"question": "Which one?", "header": "Colour", "multiSelect": False}
    ask = ToolUse("AskUserQuestion", {"questions": [colour | {"options": options}]})
    await deck.serve()
    session = await deck.new(play(ask, TOUCH, "fin"))
    await deck.until_state(session, "waiting")
    assert "Which one? [Red | Blue]" in (await deck("asks", "--session", session)).out
    wrong = await deck("answer", session, "allow", "--plan", "auto", code=2)
    assert "give one of: allow, deny, skip, cancel, --plan, --answer" in wrong.err
    said = await deck("answer", session, "--answer", "Colour=Blue")
    assert said.err.startswith("answered: ")
    await until_true(lambda: any(card.opened.tool == "Bash" for card in deck.client.asks()))
    assert "Blue" in model.turns[1].last_text
    await deck("interrupt", session)
    await deck.until(session, lambda shape: shape.turns == 1)
    assert not (deck.command.work / "made").exists()
    await deck("stop")
    assert await deck.ends() == 0


async def test_what_cannot_be_right_is_one_clear_line(deck: ServedDeck) -> None:
    work = str(deck.command.work)
    assert "no hub runs on this machine" in (await deck("new", work, "hello", code=3)).err
    await deck.serve("--no-runner")
    nowhere = await deck("new", "/nowhere/at/all", "hello", code=2)
    assert nowhere.err == "quarterdeck: /nowhere/at/all is not a folder\n"
    unknown = await deck("send", "nobody", "hello", code=1)
    assert unknown.err == "quarterdeck: there is no session 'nobody'\n"
    machine = await deck("new", "--machine", "moon", "/tmp", "hello", code=1)
    assert machine.err == "quarterdeck: there is no machine 'moon'\n"
    bypass = await deck("new", "--mode", "bypassPermissions", work, "hello", code=1)
    assert bypass.err == (
        "quarterdeck: mode: bypassPermissions needs skip_permissions as well"
        " (--dangerously-skip-permissions)\n"
    )
    assert bypass.out == ""  # no id of a session that could do nothing
    assert "bypass" not in (await deck("ps", "--all")).out
    half = await deck("ps", "--hub", deck.address, code=2)
    assert "--hub needs --token-file" in half.err
    assert "is not of the form" in (await deck("new", work, "--env", "X", "hello", code=2)).err
    await deck("stop")
    assert await deck.ends() == 0
