"""What a person, or nobody, answers to a rule's question holds on real CLIs that do not ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from quarterdeck.domain import commands as wish
from quarterdeck.domain.errors import Conflict
from quarterdeck.domain.events import AskAnswered, AskKind, AskOpened, AskWithdrawn, Decided
from quarterdeck.domain.sessions import SessionSpec
from quarterdeck.hub.policies import Policies
from quarterdeck.journal.views import AskView, SessionView
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Text, ToolUse, play
from support.hub_house import House, house
from support.processes import Processes

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

HOLDING = ("2.1.37", "2.1.62", "2.1.92")
"""Versions in which the hook itself waits for the answer."""
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "acceptEdits": {"mode": "acceptEdits"},
    "skipped": {"skip_permissions": True},
}

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


Spec = Callable[..., SessionSpec]


@pytest.fixture
def spec(tmp_path: Path, model: ScriptedModel, extra_clis: dict[str, RealCli]) -> Spec:
    """A session of a version in an empty folder, with a policy that asks."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "policy.toml").write_text(POLICY)

    def make(version: str, **more: Any) -> SessionSpec:
        return SessionSpec(
            directory=str(tmp_path / "work"),
            claude=extra_clis[version].command[-1],
            env=isolated_env(tmp_path / "home", model.url),
            **more,
        )

    return make


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("[!.]*"))


def titles(view: SessionView) -> list[str]:
    return [card.opened.title for card in view.asks.values()]


async def events_of(home: House, session: str) -> list[object]:
    return [stored.event for stored in await home.hub.events(session)]


async def asked_about(home: House, session: str, title: str) -> AskView:
    """Wait for the question with this title; there is no other one beside it."""
    card = await home.ask(session)
    assert card.opened.title == title
    return card


def only(kind: type[Any], events: Sequence[object]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", HOLDING)
async def test_each_answer_holds_and_is_asked_for_once_in_every_mode(
    version: str,
    mode: str,
    spec: Spec,
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
) -> None:
    session_spec = spec(version, **MODES[mode])
    work = Path(session_spec.directory)
    if mode == "default":  # with these, 2.1.92 asks once more about what a hook has allowed
        settings = {"permissions": {"ask": ["Bash(touch:*)"]}}
        (work / ".claude").mkdir()
        (work / ".claude" / "settings.json").write_text(json.dumps(settings))
    secret = work / "secret.txt"
    secret.write_text("the-hidden-word")
    calls = prompt_of(
        bash("touch denied"),
        bash("mkdir late"),
        bash("echo one"),
        ToolUse("Read", {"file_path": str(secret)}),
        bash("touch original"),
        bash("touch once"),
        Text("done"),
    )
    edited = wish.AllowAnswer(input=Raw(b'{"command": "touch edited"}'))
    async with house(tmp_path, processes, Policies(tmp_path)) as home:
        session = await home.new(session_spec, calls)
        card = await asked_about(home, session, "touch denied")
        await home.answer(card, wish.DenyAnswer(message="Ada says no."), by="ada")
        # Nobody answers about mkdir: its card goes by itself.
        await home.until(session, lambda view: titles(view) == ["echo one"])
        card = await asked_about(home, session, "echo one")
        await home.answer(card, wish.DenyAnswer(), by="ada")
        card = await asked_about(home, session, f"Read {secret}")
        await home.answer(card, wish.DenyAnswer(), by="ada")
        card = await asked_about(home, session, "touch original")
        await home.answer(card, edited, by="ada")
        card = await asked_about(home, session, "touch once")
        await home.answer(card, wish.AllowAnswer(), by="ada")
        await home.until(session, lambda view: view.turns == 1)
        events = await events_of(home, session)

    assert files_in(work) == ["edited", "once", "secret.txt"]
    told = " ".join(turn.body.decode() for turn in model.turns)
    assert "Ada says no." in told
    assert "Nobody answered in time." in told
    assert "the-hidden-word" not in told

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


async def test_a_question_that_outlives_the_hub_is_answered_as_its_hook_needs_it(
    spec: Spec, tmp_path: Path, processes: Processes
) -> None:
    session_spec = spec("2.1.62", skip_permissions=True)
    calls = prompt_of(bash("touch denied"), bash("touch original"), bash("touch cut"), Text("done"))
    edited = wish.AllowAnswer(input=Raw(b'{"command": "touch edited"}'))
    async with house(tmp_path, processes, Policies(tmp_path)) as home:
        session = await home.new(session_spec, calls)
        await asked_about(home, session, "touch denied")
        await home.restart_hub()
        card = await asked_about(home, session, "touch denied")
        await home.answer(card, wish.DenyAnswer(), by="ada")
        await asked_about(home, session, "touch original")
        await home.restart_hub()
        card = await asked_about(home, session, "touch original")
        await home.answer(card, edited, by="ada")
        # What the CLI does not want to know any more is withdrawn, also by the next hub.
        card = await asked_about(home, session, "touch cut")
        await home.restart_hub()
        await home.hub.submit(wish.Interrupt(session=session))
        view = await home.until(session, lambda view: view.turns == 1)
        assert view.asks == {}
        with pytest.raises(Conflict, match="withdrawn"):
            await home.answer(card, wish.AllowAnswer(), by="ada")
        events = await events_of(home, session)

    assert files_in(Path(session_spec.directory)) == ["edited"]
    assert len(only(AskOpened, events)) == 3
    assert [one.ask for one in only(AskWithdrawn, events)] == [card.opened.ask]
    assert [(one.verdict, one.by) for one in only(Decided, events)] == [
        ("deny", "ada"),
        ("allow", "ada"),
    ]


@pytest.mark.parametrize("version", HOLDING)
async def test_questions_and_plans_that_a_rule_asks_about_are_asked_once_and_by_the_cli(
    version: str, spec: Spec, model: ScriptedModel, tmp_path: Path, processes: Processes
) -> None:
    (tmp_path / "policy.toml").write_text('[[rule]]\nname = "all"\nverdict = "ask"\ntool = "*"\n')
    options = [{"label": name, "description": name} for name in ("red", "blue")]
    question = {"question": "Which?", "header": "W", "options": options, "multiSelect": False}
    calls = prompt_of(
        ToolUse("AskUserQuestion", {"questions": [question]}),
        ToolUse("ExitPlanMode", {"plan": "1. think"}),
        Text("done"),
    )
    async with house(tmp_path, processes, Policies(tmp_path)) as home:
        session = await home.new(spec(version, mode="plan"), calls)
        card = await home.ask(session)
        assert (card.opened.ask_kind, card.opened.rule) == (AskKind.QUESTIONS, "all")
        await home.answer(card, wish.QuestionsAnswer(answers={"Which?": "blue"}), by="ada")
        await home.until(
            session, lambda view: bool(view.asks) and [*view.asks] != [card.opened.ask]
        )
        card = await home.ask(session)
        assert (card.opened.ask_kind, card.opened.rule) == (AskKind.PLAN, "all")
        await home.answer(card, wish.PlanAnswer(choice="auto"), by="ada")
        await home.until(session, lambda view: view.turns == 1)
        events = await events_of(home, session)

    assert len(only(AskOpened, events)) == 2
    assert [one.verdict for one in only(Decided, events)] == ["allow", "allow"]
    assert "blue" in " ".join(turn.body.decode() for turn in model.turns)
