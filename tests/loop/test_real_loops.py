"""Loops on the real CLI: each reason to stop, the plan, the reviewer, commits and worktrees."""

from __future__ import annotations

import json
from functools import partial

import anyio
import pytest

from quarterdeck.agent.asks import Allow, AnyAsk, Decision
from quarterdeck.loop import LoopState, Review, StopReason, Stops, Wanted, reopen
from quarterdeck.loop.prompts import work_prompt
from quarterdeck.testing import Gate, ToolUse, reply
from quarterdeck.testing.script import ApiError
from support.bounds import SECONDS
from support.loops import Bench, StoppedClock
from support.repositories import git
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def bash(command: str, **more: object) -> ToolUse:
    return ToolUse("Bash", {"command": command, "description": "work", **more})


def reason(state: LoopState) -> StopReason:
    assert state.stopped is not None
    return state.stopped.reason


def report(bench: Bench, state: LoopState) -> tuple[str, dict[str, object]]:
    text = bench.store.path(state.id, "report.md").read_text()
    found = json.loads(bench.store.path(state.id, "report.json").read_text())
    assert isinstance(found, dict)
    return text, found


async def test_it_stops_at_a_phrase_and_each_turn_is_a_new_conversation(bench: Bench) -> None:
    bench.model.enqueue("not yet", "now\n\nALL DONE")
    state = await bench.run(bench.loop(Stops(phrase="ALL DONE")))
    assert reason(state) is StopReason.PHRASE
    assert len(state.turns) == 2
    first, second = bench.model.turns
    assert "not yet" in second.last_text  # what the turn before left is in the prompt
    assert first.first_prompt != second.first_prompt
    sessions = {turn.outcome.session for turn in state.turns}
    assert len(sessions) == 2
    text, found = report(bench, state)
    assert "- Stopped: phrase (exit code 10)." in text
    assert found["exit_code"] == 10
    assert found["done"] is True


async def test_it_stops_when_the_command_exits_with_0_and_proves_it(bench: Bench) -> None:
    bench.model.enqueue("thinking", bash("echo mended > parser"), "written")
    stops = Stops(command="cat parser && echo 1 passed")
    loop = bench.loop(stops, commit=True, proof=("git log --oneline",))
    state = await bench.run(loop, permission_mode="bypassPermissions")
    assert reason(state) is StopReason.COMMAND
    assert [turn.changed for turn in state.turns] == [False, True]
    assert [turn.check.code for turn in state.turns if turn.check] == [1, 0]
    assert "No such file" in bench.model.turns[1].last_text
    text, found = report(bench, state)
    assert "(exit code 11)" in text
    assert "1 passed" in text.partition("## Proof")[2]
    assert git(bench.work, "log", "-1", "--format=%s") == "Mend the parser.: turn 2"
    assert git(bench.work, "status", "--porcelain") == ""
    assert "Mend the parser.: turn 2" in json.dumps(found["proof"])
    description = bench.store.path(state.id, "pull-request.md").read_text()
    assert description.startswith("Mend the parser.\n")
    assert "1 passed" in description


async def test_a_plan_is_made_first_and_it_stops_at_a_structured_result(bench: Bench) -> None:
    results = [
        ToolUse("StructuredOutput", {"done": done, "summary": "so it is"}) for done in (False, True)
    ]
    bench.model.enqueue("1. read\n2. write", *results)
    state = await bench.run(bench.loop(Stops(result=True), plan=True))
    assert reason(state) is StopReason.RESULT
    assert len(state.turns) == 2  # the plan is none
    assert state.plan_usd > 0
    plan, *work = bench.model.turns
    assert plan.last_text.startswith("Make a plan")
    assert all("# The plan\n\n1. read\n2. write" in each.first_prompt for each in work)
    assert report(bench, state)[1]["result"] == {"done": True, "summary": "so it is"}


async def test_it_stops_in_mid_turn_when_its_time_is_over(bench: Bench) -> None:
    bench.model.enqueue(reply("begun ", Gate()))
    clock = StoppedClock()
    loop = bench.loop(Stops(seconds=60))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(bench.run, loop, clock=clock))
        await bench.model.wait_at_gate(timeout=SECONDS)
        clock.move(61)
    state = bench.store.load(loop.id)
    assert reason(state) is StopReason.TIME
    (turn,) = state.turns
    assert turn.cut_off is StopReason.TIME


async def test_it_stops_when_its_budget_is_spent(bench: Bench) -> None:
    state = await bench.run(bench.loop(Stops(budget_usd=0.00001)))
    assert reason(state) is StopReason.BUDGET
    assert state.cost_usd > 0
    assert len(state.turns) == 1


async def test_it_stops_when_nothing_changes(bench: Bench) -> None:
    bench.model.enqueue(bash("echo x >> readme"), "one", "two")
    loop = bench.loop(Stops(no_progress=1, command="echo 3 failed; false"))
    state = await bench.run(loop, permission_mode="bypassPermissions")
    assert reason(state) is StopReason.NO_PROGRESS
    assert [turn.changed for turn in state.turns] == [True, False]
    assert [turn.check.failing for turn in state.turns if turn.check] == [3, 3]


async def test_it_stops_after_failed_turns(bench: Bench) -> None:
    bench.model.enqueue(*[reply(ApiError(400, "broken"))] * 20)
    state = await bench.run(bench.loop(Stops(failures=2, turns=3)))
    assert reason(state) is StopReason.FAILED
    assert len(state.turns) == 2


async def test_a_usage_limit_is_waited_for_and_does_not_count_as_a_turn(bench: Bench) -> None:
    bench.model.enqueue(*[reply(ApiError(429, "slow down"))] * 20)
    stops = Stops(usage_limit_seconds=1, failures=1, turns=3)
    state = await bench.run(bench.loop(stops))
    assert reason(state) is StopReason.USAGE_LIMIT
    assert not state.turns
    assert state.waited >= 1
    assert len(bench.model.turns) <= 4  # two tries, each with one retry
    assert any(line.startswith("The account's limit is reached. Waits 1 s") for line in bench.told)


async def test_a_person_stops_it_in_mid_turn_and_later_it_goes_on(bench: Bench) -> None:
    bench.model.enqueue(reply("begun ", Gate()), when="Mend")
    loop = bench.loop(Stops(phrase="ALL DONE"))
    ended: list[LoopState] = []

    async def run() -> None:
        ended.append(await bench.run(loop))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await bench.model.wait_at_gate(timeout=SECONDS)
        bench.store.want(loop.id, Wanted(stop=True, by="ann"))
    (state,) = ended
    assert reason(state) is StopReason.PERSON
    assert state.stopped is not None
    assert state.stopped.by == "ann"
    bench.store.want(loop.id, Wanted())
    bench.model.enqueue("ALL DONE", when="Mend")
    state = await bench.run(reopen(bench.store.load(loop.id)))
    assert reason(state) is StopReason.PHRASE
    assert len(state.turns) == 2


async def test_a_paused_loop_begins_no_turn_and_goes_on_in_its_one_conversation(
    bench: Bench,
) -> None:
    bench.model.enqueue(reply("first", Gate()), "not done")
    loop = bench.loop(Stops(phrase="ALL DONE", turns=2), fresh=False)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.run, loop)
        await bench.model.wait_at_gate(timeout=SECONDS)
        bench.store.want(loop.id, Wanted(paused=True, by="ann"))
        bench.model.release()
        with anyio.fail_after(SECONDS):
            await until(lambda: bench.store.load(loop.id).paused)
        assert len(bench.model.turns) == 1
        bench.store.want(loop.id, Wanted())
    state = bench.store.load(loop.id)
    assert reason(state) is StopReason.TURNS  # so many turns, and no more
    assert "Paused by ann." in bench.told
    first, second = bench.model.turns
    assert first.first_prompt == second.first_prompt
    assert len({turn.outcome.session for turn in state.turns}) == 1


async def test_a_reviewer_that_disagrees_sends_the_agent_back_and_then_agrees(
    bench: Bench,
) -> None:
    verdicts = [
        ToolUse("StructuredOutput", {"agree": agree, "reason": why})
        for agree, why in ((False, "a test is missing"), (True, "now it is right"))
    ]
    bench.model.enqueue(*verdicts, when="Review the work")  # the first that fits is taken
    bench.model.enqueue("ALL DONE", "with a test\n\nALL DONE", when="# The task")
    state = await bench.run(bench.loop(Stops(phrase="ALL DONE"), review=Review(prompt="Tests?")))
    assert reason(state) is StopReason.PHRASE
    assert [turn.verdict.agree for turn in state.turns if turn.verdict] == [False, True]
    second = [turn for turn in bench.model.turns if turn.first_prompt.startswith("# The task")][1]
    assert "a test is missing" in second.last_text
    text, _ = report(bench, state)
    assert "The reviewer agrees" in text


async def test_what_nobody_allows_is_denied_and_the_next_turn_is_told(bench: Bench) -> None:
    bench.model.enqueue(bash("touch made"), "I may not\n\nALL DONE")
    asked: list[str] = []

    async def absent(ask: AnyAsk) -> Decision:
        asked.append(ask.tool_name)
        await anyio.sleep_forever()
        return Allow()

    loop = bench.loop(Stops(phrase="ALL DONE"), ask_timeout=0.5)
    state = await bench.run(loop, decide=absent)
    assert reason(state) is StopReason.PHRASE
    assert asked == ["Bash"]
    assert not (bench.work / "made").exists()
    assert state.turns[0].outcome.denied == ("Bash: touch made (nobody was there to allow it)",)
    assert "Find another way: Bash: touch made" in work_prompt(state)


async def test_background_tasks_end_before_a_turn_counts(bench: Bench) -> None:
    slow = bash("sleep 1; echo late > made", run_in_background=True)
    bench.model.enqueue(slow, "it runs", "it has ended")
    stops = Stops(command="cat made", turns=1)
    state = await bench.run(bench.loop(stops), permission_mode="bypassPermissions")
    assert reason(state) is StopReason.COMMAND
    assert state.turns[0].outcome.undrained == 0


async def test_two_loops_work_in_two_worktrees_at_once(bench: Bench) -> None:
    for name in ("one", "two"):
        bench.model.enqueue(bash(f"echo {name} > made"), "ALL DONE", when=f"Make {name}.")
    loops = [
        bench.loop(Stops(phrase="ALL DONE"), task=f"Make {name}.", worktree=name, commit=True)
        for name in ("one", "two")
    ]
    async with anyio.create_task_group() as tasks:
        for loop in loops:
            tasks.start_soon(partial(bench.run, loop, permission_mode="bypassPermissions"))
    for name, loop in zip(("one", "two"), loops, strict=True):
        state = bench.store.load(loop.id)
        assert reason(state) is StopReason.PHRASE
        assert state.directory is not None
        assert state.directory != str(bench.work)
        assert git(bench.work, "show", f"{name}:made") == name
    assert not (bench.work / "made").exists()
    assert git(bench.work, "status", "--porcelain") == ""
