"""What a person, or nobody, answers to a rule's question holds on real CLIs that do not ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Control,
    DenyAnswer,
    Interrupt,
    PlanAnswer,
    QuestionsAnswer,
    SendPrompt,
)
from quarterdeck.protocol.events import AskAnswered, AskKind, AskOpened, AskWithdrawn, Decided
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import AskView
from quarterdeck.testing import RealCli, ScriptedModel
from quarterdeck.testing.script import Text, ToolUse, play
from support.hub_house import House, PolicedHouse, house, real_spec
from support.processes import Processes

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

HOLDING = ("2.1.37", "2.1.52", "2.1.92")
"""Versions in which the hook itself waits for the answer."""
EVERYTHING = '[[rule]]\nname = "all"\nverdict = "ask"\ntool = "*"\n'

POLICY = """
[[rule]]
name = "ask about touch"
verdict = "ask"
command = "touch"

[[rule]]
name = "ask about echo"
verdict = "ask"
command = "echo"

[[rule]]
name = "ask about secrets"
verdict = "ask"
path = "./secret*"

[[rule]]
name = "not for long"
verdict = "ask"
command = "mkdir"
wait = "1s"
then = "deny"
"""


def bash(command: str) -> ToolUse:
    return ToolUse("Bash", {"command": command})


def prompt_of(*steps: ToolUse | Text) -> bytes:
    return json.dumps(play(*steps)).encode()


HELLO = b'"hello"'
Spec = Callable[..., SessionSpec]


@pytest.fixture
def spec(tmp_path: Path, model: ScriptedModel, extra_clis: dict[str, RealCli]) -> Spec:
    """A session of a version in an empty folder."""

    def make(version: str, folder: str, **more: Any) -> SessionSpec:
        return real_spec(tmp_path, extra_clis[version], model, work=folder, **more)

    return make


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("[!.]*"))


def titles(view: SessionView) -> list[str]:
    return [card.opened.title for card in view.asks.values()]


async def events_of(home: House, session: str, after: int = 0) -> list[object]:
    return [stored.event for stored in await home.hub.events(session, after=after, limit=5000)]


async def asked_about(home: House, session: str, title: str) -> AskView:
    """Wait for the question with this title; there is no other one beside it."""
    card = await home.ask(session)
    assert card.opened.title == title
    return card


def only(kind: type[Any], events: Sequence[object]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def send(home: House, session: str, *steps: ToolUse | Text) -> None:
    view = await home.hub.session(session)
    prompt = f"p{view.head}"
    content = Raw(prompt_of(*steps))
    await home.hub.submit(SendPrompt(session=session, prompt=prompt, content=content))


async def switch(home: House, session: str, mode: str) -> None:
    request = Raw(json.dumps({"subtype": "set_permission_mode", "mode": mode}).encode())
    await home.hub.submit(Control(session=session, request=request, by="ada"))


@pytest.mark.parametrize("version", HOLDING)
async def test_each_answer_holds_and_is_asked_for_once_in_every_mode(
    version: str, spec: Spec, model: ScriptedModel, policed: PolicedHouse
) -> None:
    """One CLI that skips permissions and then accepts edits, and one that does neither."""
    await policed.rule(POLICY)
    session = await policed.home.new(spec(version, "skipped", skip_permissions=True), HELLO)
    await policed.home.until(session, lambda view: view.turns == 1)
    assert (await policed.home.hub.session(session)).mode == "bypassPermissions"
    await each_answer_holds(policed.home, session, model)
    await switch(policed.home, session, "acceptEdits")
    await each_answer_holds(policed.home, session, model)

    plain = spec(version, "plain")
    # With these settings, 2.1.92 asks once more about what a hook has allowed.
    settings = {"permissions": {"ask": ["Bash(touch:*)"]}}
    claude = Path(plain.directory) / ".claude"
    claude.mkdir()
    (claude / "settings.json").write_text(json.dumps(settings))
    session = await policed.home.new(plain, HELLO)
    await policed.home.until(session, lambda view: view.turns == 1)
    await each_answer_holds(policed.home, session, model)
    await policed.rule(EVERYTHING)
    await switch(policed.home, session, "plan")
    await questions_and_plans_are_asked_once_and_by_the_cli(policed.home, session, model)


async def each_answer_holds(home: House, session: str, model: ScriptedModel) -> None:
    view = await home.hub.session(session)
    work, turns, head, requests = Path(view.spec.directory), view.turns, view.head, len(model.turns)
    secret = work / "secret.txt"
    if not secret.exists():  # old CLIs tell the model what changes in a file that it asked for
        secret.write_text("the-hidden-word")
    for name in ("edited", "once"):
        (work / name).unlink(missing_ok=True)
    edited = AllowAnswer(input=Raw(b'{"command": "touch edited"}'))
    await send(
        home,
        session,
        bash("touch denied"),
        bash("mkdir late"),
        bash("echo one"),
        ToolUse("Read", {"file_path": str(secret)}),
        bash("touch original"),
        bash("touch once"),
        Text("done"),
    )
    card = await asked_about(home, session, "touch denied")
    await home.answer(card, DenyAnswer(message=f"Ada says no, {turns}."), by="ada")
    # Nobody answers about mkdir: its card goes by itself.
    await home.until(session, lambda view: titles(view) == ["echo one"])
    card = await asked_about(home, session, "echo one")
    await home.answer(card, DenyAnswer(), by="ada")
    card = await asked_about(home, session, f"Read {secret}")
    await home.answer(card, DenyAnswer(), by="ada")
    card = await asked_about(home, session, "touch original")
    await home.answer(card, edited, by="ada")
    card = await asked_about(home, session, "touch once")
    await home.answer(card, AllowAnswer(), by="ada")
    await home.until(session, lambda view: view.turns == turns + 1)
    events = await events_of(home, session, head)

    assert files_in(work) == ["edited", "once", "secret.txt"]
    told = [turn.body.decode() for turn in model.turns[requests:]]
    assert f"Ada says no, {turns}." in told[-1]
    late = "Nobody answered in time."
    assert told[-1].count(late) > told[0].count(late)
    assert not any("the-hidden-word" in each for each in told)

    opened = only(AskOpened, events)
    assert len(opened) == len({card.tool_use_id for card in opened}) == 6
    decided = only(Decided, events)
    assert [(one.title, one.verdict, one.by) for one in decided] == [
        ("touch denied", "deny", "ada"),
        ("mkdir late", "deny", "time limit"),
        ("echo one", "deny", "ada"),
        (f"Read {secret}", "deny", "ada"),
        ("touch edited", "allow", "ada"),
        ("touch once", "allow", "ada"),
    ]
    assert [one.title for one in decided if one.rewritten] == ["touch edited"]
    assert [one.ask for one in decided] == [one.ask for one in only(AskAnswered, events)]
    assert [one.allowed for one in only(AskAnswered, events)] == [False] * 4 + [True] * 2


async def questions_and_plans_are_asked_once_and_by_the_cli(
    home: House, session: str, model: ScriptedModel
) -> None:
    options = [{"label": name, "description": name} for name in ("red", "blue")]
    question = {"question": "Which?", "header": "W", "options": options, "multiSelect": False}
    view = await home.hub.session(session)
    turns, head = view.turns, view.head
    await send(
        home,
        session,
        ToolUse("AskUserQuestion", {"questions": [question]}),
        ToolUse("ExitPlanMode", {"plan": "1. think"}),
        Text("done"),
    )
    card = await home.ask(session)
    assert (card.opened.ask_kind, card.opened.rule) == (AskKind.QUESTIONS, "all")
    await home.answer(card, QuestionsAnswer(answers={"Which?": "blue"}), by="ada")
    await home.until(session, lambda view: bool(view.asks) and [*view.asks] != [card.opened.ask])
    card = await home.ask(session)
    assert (card.opened.ask_kind, card.opened.rule) == (AskKind.PLAN, "all")
    await home.answer(card, PlanAnswer(choice="auto"), by="ada")
    await home.until(session, lambda view: view.turns == turns + 1)
    events = await events_of(home, session, head)

    assert len(only(AskOpened, events)) == 2
    assert [one.verdict for one in only(Decided, events)] == ["allow", "allow"]
    assert '\\"Which?\\"=\\"blue\\"' in model.turns[-1].body.decode()


async def test_a_question_that_outlives_the_hub_is_answered_as_its_hook_needs_it(
    spec: Spec, tmp_path: Path, processes: Processes
) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    session_spec = spec("2.1.62", "work", skip_permissions=True)
    calls = prompt_of(bash("touch denied"), bash("touch original"), bash("touch cut"), Text("done"))
    edited = AllowAnswer(input=Raw(b'{"command": "touch edited"}'))
    async with house(tmp_path, processes, Policies(tmp_path)) as home:
        session = await home.new(session_spec, calls)
        await asked_about(home, session, "touch denied")
        await home.restart_hub()
        card = await asked_about(home, session, "touch denied")
        await home.answer(card, DenyAnswer(), by="ada")
        await asked_about(home, session, "touch original")
        await home.restart_hub()
        card = await asked_about(home, session, "touch original")
        await home.answer(card, edited, by="ada")
        # What the CLI does not want to know any more is withdrawn, also by the next hub.
        card = await asked_about(home, session, "touch cut")
        await home.restart_hub()
        await home.hub.submit(Interrupt(session=session))
        view = await home.until(session, lambda view: view.turns == 1)
        assert view.asks == {}
        with pytest.raises(Conflict, match="withdrawn"):
            await home.answer(card, AllowAnswer(), by="ada")
        events = await events_of(home, session)

    assert files_in(Path(session_spec.directory)) == ["edited"]
    assert len(only(AskOpened, events)) == 3
    assert [one.ask for one in only(AskWithdrawn, events)] == [card.opened.ask]
    assert [(one.verdict, one.by) for one in only(Decided, events)] == [
        ("deny", "ada"),
        ("allow", "ada"),
    ]
