"""Questions and plans: what the model wants from a person, not from a rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from quarterdeck import Agent, Allow, Decision, PlanAsk, QuestionsAsk
from quarterdeck.agent.asks import AnyAsk
from quarterdeck.testing import ToolUse, play
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.reports import ResultSubtype
from quarterdeck.wire.system import Status
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.scenes import (
    Decider,
    Person,
    Probe,
    mode_shown,
    read,
    result_of,
    tool_results,
    turn,
    write,
)
from support.seats import Seat

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

COLOUR, SIZES = "Which colour?", "Which sizes?"
ASK = ToolUse(
    "AskUserQuestion",
    {
        "questions": [
            {
                "header": "Colour",
                "question": COLOUR,
                "multiSelect": False,
                "options": [{"label": each, "description": each} for each in ("Red", "Blue")],
            },
            {
                "header": "Size",
                "question": SIZES,
                "multiSelect": True,
                "options": [{"label": each, "description": each} for each in ("S", "M", "L")],
            },
        ]
    },
)
ENTER_PLAN = ToolUse("EnterPlanMode")


def exit_plan(plan: str | None = None) -> ToolUse:
    """A plan, and what the model would like to be allowed with it: that alone allows nothing."""
    wishes = {"allowedPrompts": [{"tool": "Bash", "prompt": "run the probe"}]}
    return ToolUse("ExitPlanMode", {} if plan is None else {"plan": plan, **wishes})


def questions(decide: Callable[[QuestionsAsk], Decision]) -> Callable[[AnyAsk], Decision]:
    def decides(ask: AnyAsk) -> Decision:
        assert isinstance(ask, QuestionsAsk)
        assert [each.question for each in ask.questions.questions] == [COLOUR, SIZES]
        assert [each.multi_select for each in ask.questions.questions] == [False, True]
        return decide(ask)

    return decides


def plan(decide: Callable[[PlanAsk], Decision]) -> Callable[[AnyAsk], Decision]:
    def decides(ask: AnyAsk) -> Decision:
        assert isinstance(ask, PlanAsk)
        return decide(ask)

    return decides


async def test_questions_and_plans_reach_a_person(seat: Seat) -> None:
    decide, probe = Decider(), Probe(seat)
    async with seat.agent(decide=decide, allow_dangerously_skip_permissions=True) as agent:
        await a_plan_is_revised_approved_or_rejected(seat, agent, decide, probe)
        await the_mode_may_change_around_the_approval(seat, agent, decide)
        await a_plan_file_is_what_the_plan_says(seat, agent, decide)
        with anyio.fail_after(SECONDS):
            await agent.set_permission_mode("bypassPermissions")
        await turn(agent, probe.call("unasked"), "done")
        assert decide.asked() == 0
        assert probe.runs[-1] == "unasked"
        await questions_reach_a_person_in_every_mode(seat, Asking(agent, decide))


class Asking:
    """The model asks its questions, and reads what came of them."""

    def __init__(self, agent: Agent, decide: Decider) -> None:
        self._agent = agent
        self._decide = decide

    async def told(self, answer: Callable[[QuestionsAsk], Decision]) -> str:
        """What the model reads when a person answers so."""
        self._decide.will(questions(answer))
        messages = await turn(self._agent, ASK, "I see")
        assert self._decide.asked() == 1
        assert result_of(messages).result == "I see"
        return tool_results(messages)[0].text

    async def told_of(self, **members: object) -> str:
        """The same for an input of one's own."""
        return await self.told(lambda _: Allow(input=members))


async def questions_reach_a_person_in_every_mode(seat: Seat, model: Asking) -> None:
    newest = seat.version >= release(325)
    text = await model.told(lambda ask: ask.answer({COLOUR: "Blue", SIZES: ["S", "L"]}))
    assert f'"{COLOUR}"="Blue", "{SIZES}"="S, L"' in text
    seat.found("Questions, also where nothing else is asked")
    asked = ASK.input["questions"]
    text = await model.told_of(questions=asked, answers={SIZES: ["S", "L"]})
    assert f'"{SIZES}"="S,L"' in text
    seat.found("Several answers to one question")

    text = await model.told(lambda ask: ask.answer({COLOUR: "as the sea"}))
    assert f'"{COLOUR}"="as the sea"' in text
    assert SIZES not in text
    # The newest tells the model that these words are the person's own.
    careful = "Read the answers carefully" in text
    assert careful is newest
    seat.found("An answer in one's own words", "yes, and says so" if careful else "yes")
    seat.found("Some questions left open")

    text = await model.told(lambda ask: ask.answer({}))
    silent = "did not answer" in text
    assert silent is newest
    assert silent or "User has answered your questions: ." in text
    seat.found("No answer to any question", "said to be none" if silent else "an empty answer")

    more = {COLOUR: {"notes": "but dark", "preview": "a red square"}}
    text = await model.told_of(questions=asked, answers={COLOUR: "Red"}, annotations=more)
    assert f'"{COLOUR}"="Red"' in text
    noted = "but dark" in text
    assert noted is (seat.version >= release(62))
    assert ("a red square" in text) is (seat.version >= release(120))
    assert noted is (
        "but dark"
        in await model.told(lambda ask: ask.answer({COLOUR: "Red"}, notes={COLOUR: "but dark"}))
    )
    seat.found("A note with an answer", "yes" if noted else "not shown to the model")

    text = await model.told(lambda ask: ask.skip("ask me tomorrow"))
    assert text == "ask me tomorrow"
    seat.found("Skip the questions")

    # The library always sends the questions back with the answers.
    text = await model.told_of(answers={COLOUR: "Blue"})
    enough = seat.version < release(120)
    assert (f'"{COLOUR}"="Blue"' in text) is enough
    seat.found("Answers without the questions", "taken" if enough else "the tool fails")


async def a_plan_is_revised_approved_or_rejected(
    seat: Seat, agent: Agent, decide: Decider, probe: Probe
) -> None:
    decide.will(plan(lambda ask: ask.revise("and the tests?")))
    messages = await turn(agent, ENTER_PLAN, exit_plan("1. work"), "I see")
    (ask,) = decide.asks
    assert isinstance(ask, PlanAsk)
    seat.found("Enter plan mode", "not asked about")
    if seat.version >= release(325):
        assert ask.plan.plan is None
        assert ask.request.requires_user_interaction
        seat.found("A plan that the model gives in its call", "left out")
    else:
        assert ask.plan.plan == "1. work"
        seat.found("A plan that the model gives in its call", "shown")
    answer = tool_results(messages)[1]
    assert answer.is_error
    assert answer.text == "and the tests?"
    assert result_of(messages).result == "I see"
    assert await mode_shown(agent) is PermissionMode.PLAN
    seat.found("Plan: revise", "the model keeps planning")

    decide.asks.clear()
    decide.will(plan(lambda ask: ask.approve()))
    messages = await turn(agent, exit_plan("2. tests"), probe.call("1"), "done")
    modes = [each.permission_mode for each in messages if isinstance(each, Status)]
    assert PermissionMode.DEFAULT in modes
    assert [ask.tool_name for ask in decide.asks] == ["ExitPlanMode", "Bash"]
    assert probe.runs == ["1"]
    assert await mode_shown(agent) is PermissionMode.DEFAULT
    seat.found("Plan: approve", "in the mode from before")

    decide.asks.clear()
    decide.will(plan(lambda ask: ask.approve(PermissionMode.ACCEPT_EDITS)))
    made = seat.cwd / "made.txt"
    await turn(agent, ENTER_PLAN, exit_plan("3. write"), write(made), "done")
    assert [ask.tool_name for ask in decide.asks] == ["ExitPlanMode"]
    assert made.exists()
    assert await mode_shown(agent) is PermissionMode.ACCEPT_EDITS
    seat.found("Plan: approve, in another mode")

    decide.will(plan(lambda ask: ask.reject()))
    messages = await turn(agent, ENTER_PLAN, exit_plan("4. more"), "never said")
    assert result_of(messages).subtype is ResultSubtype.ERROR_DURING_EXECUTION
    assert await mode_shown(agent) is PermissionMode.PLAN
    seat.found("Plan: reject", "ends the turn, in plan mode")


async def the_mode_may_change_around_the_approval(
    seat: Seat, agent: Agent, decide: Decider
) -> None:
    person = Person()
    decide.ask_instead(person)
    bypass, edits = PermissionMode.BYPASS_PERMISSIONS, PermissionMode.ACCEPT_EDITS
    for number, (mode, early) in enumerate(((edits, True), (edits, False), (bypass, False)), 1):
        made = seat.cwd / f"made{number}.txt"
        with anyio.fail_after(SECONDS):
            await agent.set_permission_mode("plan")
            query = await agent.prompt(play(exit_plan("work"), write(made), "done"))
            ask = (await person.wait_for(number))[-1]
            assert isinstance(ask, PlanAsk)
            if early:
                await agent.set_permission_mode(mode)
                person.answer(ask, ask.approve())
            else:
                person.answer(ask, ask.approve())
                await agent.set_permission_mode(mode)
            await query.finish()
        assert len(person.asks) == number
        assert made.exists()
        assert await mode_shown(agent) is mode
    seat.found("Change the mode right before or after an approval", "takes effect")


async def a_plan_file_is_what_the_plan_says(seat: Seat, agent: Agent, decide: Decider) -> None:
    decide.ask_instead(None)
    decide.asks.clear()
    decide.will(plan(lambda ask: ask.approve()))
    with anyio.fail_after(SECONDS):
        await agent.set_permission_mode("plan")
    await turn(agent, "where is the plan?")
    told = re.search(rb"/[^\s\"`\\]+/plans/[\w-]+\.md", seat.model.turns[-1].body)
    assert told is not None
    path = Path(told.group().decode())
    assert path.parent == seat.home / ".claude" / "plans"
    # 2.1.120 writes a plan that was approved into that file itself.
    newer = seat.version >= release(120)
    written = await anyio.Path(path).exists()
    assert written is (newer and seat.version < release(325))
    look = [read(path)] if written else []
    await turn(agent, *look, write(path, "# The plan\n1. work\n"), exit_plan(), "done")
    (ask,) = decide.asks
    assert isinstance(ask, PlanAsk)
    assert ask.plan.plan == "# The plan\n1. work\n"
    seat.found("A plan that the model writes into its file", "written without asking, and shown")
    assert ask.plan.plan_file_path == (str(path) if newer else None)
    seat.found("Says where the plan file is", "yes" if newer else "no")
    decide.asks.clear()
