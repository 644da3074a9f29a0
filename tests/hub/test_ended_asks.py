"""R16: a question whose CLI was killed is listed until it is answered or the session goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.protocol.commands import (
    AllowAnswer,
    AnswerAsk,
    ArchiveSession,
    CreateSession,
    ResumeSession,
)
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.testing import RealCli, ScriptedModel
from quarterdeck.testing.script import ToolUse, play
from support import lines
from support.hub_house import House, real_spec
from support.hub_machines import TestMachines

pytestmark = pytest.mark.anyio


async def killed_while_it_asks(hub: Hub, machines: TestMachines) -> tuple[str, str]:
    """A session whose CLI ended with a question, and the question."""
    command = CreateSession(spec=SessionSpec(directory="/work"), prompt=Raw(b'"hello"'), by="ada")
    session = (await hub.submit(command)).session
    run = machines.runs[-1]
    await run.greet()
    await run.take_prompt()
    await run.say(lines.asks_permission("q1", command="touch x"))
    ((card,), ended) = await hub.asks(session=session), await hub.asks(ended=True)
    assert [each.ended for each in ended if each.session == session] == [False]
    await run.end("It was killed.", signal=9)
    return session, card.opened.ask


async def test_a_question_whose_agent_has_ended_is_listed_on_request_and_marked(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, ask = await killed_while_it_asks(hub, machines)
    other, _ = await killed_while_it_asks(hub, machines)
    assert await hub.asks() == []
    assert [(each.session, each.ended) for each in await hub.asks(ended=True)] == [
        (session, True),
        (other, True),
    ]
    (card,) = await hub.asks(session=session, ended=True)
    assert card.opened.ask == ask


async def test_it_is_answered_once_and_then_gone(deck: tuple[Hub, TestMachines]) -> None:
    hub, machines = deck
    session, ask = await killed_while_it_asks(hub, machines)
    await hub.submit(AnswerAsk(ask=ask, answer=AllowAnswer(), by="bob"))
    assert await hub.asks(ended=True) == []
    await machines.runs[-1].end("It was killed.")
    assert await hub.asks(session=session, ended=True) == [], "it was answered"


async def test_a_session_that_goes_on_or_is_archived_leaves_its_questions_behind(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, _ = await killed_while_it_asks(hub, machines)
    other, _ = await killed_while_it_asks(hub, machines)
    await hub.submit(ResumeSession(session=session))
    await hub.submit(ArchiveSession(session=other, by="ada"))
    assert await hub.asks(ended=True) == []
    await machines.runs[-1].end("It was killed.")
    assert await hub.asks(ended=True) == []


@pytest.mark.real_cli
@pytest.mark.parametrize("version", ["2.1.92", "2.1.325"])
async def test_a_question_of_a_real_cli_that_was_killed_is_listed_and_its_answer_resumes_it(
    version: str,
    extra_clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    home: House,
) -> None:
    spec = real_spec(tmp_path, extra_clis[version], model, sandbox="off")
    script = play(ToolUse("Bash", {"command": "touch asked"}))
    session = await home.new(spec, b'"' + script.replace('"', '\\"').encode() + b'"')
    ask = (await home.ask(session)).opened.ask
    pid = (await home.hub.session(session)).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await home.until(session, lambda view: view.state is SessionState.ENDED)
    (card,) = await home.hub.asks(ended=True)
    assert (card.opened.ask, card.opened.tool, card.ended) == (ask, "Bash", True)
    await home.answer(card, AllowAnswer())
    await home.until(session, lambda view: view.turns == 1)
    assert await home.hub.asks(ended=True) == []
