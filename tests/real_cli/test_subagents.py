"""Subagents and background tasks: their messages, their questions, and the turns they begin."""

from __future__ import annotations

import anyio
import pytest

from quarterdeck import Agent, Allow, Deny, Query
from quarterdeck.agent.asks import AnyAsk, Decision
from quarterdeck.domain.errors import RequestRefused, UnsupportedError
from quarterdeck.testing import Gate, ToolUse, play, reply
from quarterdeck.wire.base import Message
from quarterdeck.wire.info import AgentDefinition
from quarterdeck.wire.messages import Assistant, Result, User
from quarterdeck.wire.states import State
from quarterdeck.wire.tasks import (
    BackgroundTasksChanged,
    TaskEnd,
    TaskNotification,
    TaskProgress,
    TaskStarted,
    TaskUpdated,
)
from quarterdeck.wire.values import TaskStatus
from quarterdeck.wire.versions import marks_own_turns, release, starts_turns_itself
from support.bounds import SECONDS
from support.scenes import running
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def task(
    name: str, script: str, *, background: bool | None, kind: str = "general-purpose"
) -> ToolUse:
    """The model hands work to a subagent, and may leave it open where that one works."""
    given: dict[str, object] = {
        "description": "some work",
        "prompt": script,
        "subagent_type": kind,
    }
    where = {} if background is None else {"run_in_background": background}
    return ToolUse("Task", {**given, **where}, id=f"toolu_{name}")


class Overheard:
    """All that an agent's CLI says, between turns too."""

    def __init__(self, agent: Agent) -> None:
        self.messages: list[Message] = []
        self._agent = agent

    async def listen(self) -> None:
        async for message in self._agent.messages():
            self.messages.append(message)

    @property
    def results(self) -> list[Result]:
        return [message for message in self.messages if isinstance(message, Result)]

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages if isinstance(message, Assistant)]

    @property
    def ended_tasks(self) -> list[TaskNotification]:
        return [message for message in self.messages if isinstance(message, TaskNotification)]


async def test_subagents_and_tasks_work_beside_the_conversation(seat: Seat) -> None:
    left: list[str] = []
    with pytest.raises(ZeroDivisionError):
        await work_and_leave_by_an_error(seat, left)
    # Whoever leaves so in the midst of a turn leaves no process behind.
    assert [running(command) for command in left] == [[], []]
    seat.theme = "Endings"
    seat.found("Orphans after the end", "none")


async def work_and_leave_by_an_error(seat: Seat, left: list[str]) -> None:
    asked: list[str | None] = []

    def decide(ask: AnyAsk) -> Decision:
        asked.append(ask.request.agent_id)
        return Deny("not below") if b"refused" in bytes(ask.input) else Allow()

    helper = AgentDefinition(description="Helps.", prompt="You are the helper of this test.")
    async with seat.agent(decide=decide, subagents={"helper": helper}) as agent:
        await a_subagent_in_the_foreground_works_within_the_turn(seat, agent, asked)
        await an_interrupt_ends_a_subagent_too(seat, agent)
        await a_background_subagent_reports_later(seat, agent)
        await where_a_subagent_works_by_default(seat, agent)
        await a_background_shell_begins_a_turn_of_its_own_or_waits_for_one(seat, agent)
        await a_command_that_takes_long_is_a_task_too(seat, agent)
        left += await commands_run_in_front_and_behind(seat, agent)
        raise ZeroDivisionError


async def a_subagent_in_the_foreground_works_within_the_turn(
    seat: Seat, agent: Agent, asked: list[str | None]
) -> None:
    below = play(
        ToolUse("Bash", {"command": "touch below"}),
        ToolUse("Bash", {"command": "touch refused"}),
        "below is done",
    )
    with anyio.fail_after(SECONDS):
        call = task("front", below, background=False, kind="helper")
        query = agent.query(play(call, "above is done"))
        messages = [message async for message in query]
        # Commands are not echoed up to 2.1.120. A task that has ended must not hide their end.
        assert not (await agent.query("/cost").finish()).failed
    assert agent.state is State.READY
    assert query.result is not None
    assert query.result.result == "above is done"
    assert (seat.cwd / "below").exists()
    assert not (seat.cwd / "refused").exists()
    assert len(asked) == 2
    assert all(asked)
    parents = {
        type(message).__name__
        for message in messages
        if isinstance(message, Assistant | User) and message.parent_tool_use_id == "toolu_front"
    }
    assert parents == {"Assistant", "User"}
    below_said = [
        message
        for message in messages
        if isinstance(message, Assistant | User) and message.parent_tool_use_id == "toolu_front"
    ]
    # First its prompt, then its calls and what came of them; its own words are not told.
    assert isinstance(below_said[0], User)
    assert below_said[0].text == below
    assert "below is done" not in [m.text for m in below_said if isinstance(m, Assistant)]
    tasks = [m for m in messages if isinstance(m, TaskStarted)]
    assert [each.tool_use_id for each in tasks] == (
        ["toolu_front"] if seat.version >= release(62) else []
    )
    progress = any(isinstance(m, TaskProgress) for m in messages)
    assert progress is (seat.version >= release(120))
    seat.found("Subagents: how they get on", "yes" if progress else "no")
    assert "not below" in "".join(request.body.decode() for request in seat.model.turns)
    seat.found("Subagents: messages and questions name their subagent")
    assert agent.init is not None
    assert "helper" in agent.init.agents
    assert any("You are the helper of this test." in each.system for each in seat.model.turns)
    seat.found("Subagents: kinds of one's own")


async def an_interrupt_ends_a_subagent_too(seat: Seat, agent: Agent) -> None:
    below = play(reply("for a while ", Gate("below")), "never said")
    call = task("stopped", below, background=False)
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(call, "nor this"))
        await seat.model.wait_at_gate("below")
        await agent.interrupt()
        assert (await query.finish()).failed
    assert agent.state is State.READY
    seat.model.release("below")
    seat.found("Subagents: an interrupt ends them")


async def a_background_subagent_reports_later(seat: Seat, agent: Agent) -> None:
    # The shell gives the first turn the time to end while the subagent still works.
    below = play(reply(Gate(), ToolUse("Bash", {"command": "sleep 0.5"})), "below is done")
    script = play(task("behind", below, background=True), "it is launched")
    async with anyio.create_task_group() as tasks:
        overheard = Overheard(agent)
        tasks.start_soon(overheard.listen)
        with anyio.fail_after(SECONDS):
            query = await agent.prompt(script)
            await until(lambda: "it is launched" in overheard.texts)
            seat.model.release()
            first = Query.check(await query.finish())
            wanted = 2 if seat.version >= release(325) else 1
            await until(lambda: len(overheard.results) >= wanted)
            before = len(overheard.results)
            after = Query.check(await agent.query("after").finish())
            assert after.result == "echo: after"
            while not overheard.ended_tasks:
                # The oldest tells of it with a prompt, once the task has ended.
                assert seat.version < release(62)
                await agent.query("again").finish()
        tasks.cancel_scope.cancel()
    (ended,) = overheard.ended_tasks
    assert ended.status is TaskEnd.COMPLETED
    assert (ended.tool_use_id is not None) is (seat.version >= release(62))
    changes = [m for m in overheard.messages if isinstance(m, BackgroundTasksChanged)]
    assert bool(changes) is (seat.version >= release(325))
    if seat.version >= release(325):
        assert changes[-1].tasks == ()
        assert (first.result, before) == ("it is launched", 2)
        seat.found("Background subagents", "the turn ends at once, another reports")
    elif seat.version >= release(62):
        # The first turn's own result never comes: that of the turn that reports ends both.
        assert first.result != "it is launched"
        assert before == 1
        seat.found("Background subagents", "the turn ends when they have reported")
    else:
        assert (first.result, before) == ("it is launched", 1)
        seat.found("Background subagents", "the turn ends at once, a later one reports")


async def where_a_subagent_works_by_default(seat: Seat, agent: Agent) -> None:
    behind = seat.version >= release(325)
    below = play(reply("for a while ", Gate("default")), "below is done")
    script = play(task("default", below, background=None), "above is done")
    async with anyio.create_task_group() as tasks:
        overheard = Overheard(agent)
        tasks.start_soon(overheard.listen)
        with anyio.fail_after(SECONDS):
            query = await agent.prompt(script)
            await seat.model.wait_at_gate("default")
            if behind:
                # The turn ends while it still works. An interrupt between turns ends it too.
                assert Query.check(await query.finish()).result == "above is done"
                assert overheard.ended_tasks == []
                await agent.interrupt()
                await until(lambda: bool(overheard.ended_tasks))
                assert overheard.ended_tasks[0].status is TaskEnd.STOPPED
                seat.model.release("default")
            else:
                assert query.turn is None
                seat.model.release("default")
                assert Query.check(await query.finish()).result == "above is done"
            assert await agent.query("and now?").text() == "echo: and now?"
        tasks.cancel_scope.cancel()
    assert agent.state is State.READY
    seat.found("Subagents: where they work by default", f"{'back' if behind else 'fore'}ground")


async def a_background_shell_begins_a_turn_of_its_own_or_waits_for_one(
    seat: Seat, agent: Agent
) -> None:
    own_turns = starts_turns_itself(seat.version)
    gate = seat.cwd / "gate"
    command = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    shell = ToolUse("Bash", {"command": command, "run_in_background": True})
    async with anyio.create_task_group() as tasks:
        overheard = Overheard(agent)
        tasks.start_soon(overheard.listen)
        with anyio.fail_after(SECONDS):
            first = await agent.query(play(shell, "it runs")).finish()
            assert first.result is not None
            assert first.result.result == "it runs"
            gate.touch()
            if own_turns:
                await until(lambda: len(overheard.results) == 2)
                assert overheard.results[1].failed is False
                marked = overheard.results[1].origin is not None
                assert marked is marks_own_turns(seat.version)
            while not overheard.ended_tasks:
                # The oldest tells of it with a prompt, once the task has ended.
                assert not own_turns
                await agent.query("again").finish()
            *_, before = overheard.results
            plain = await agent.query("plain").finish()
            assert plain.result is not None
            assert plain.result.result == "echo: plain"
            assert overheard.results[-2] is before
            # What the task's own turn cost is not this turn's.
            assert plain.cost_usd == pytest.approx(
                plain.result.total_cost_usd - before.total_cost_usd
            )
            (ended,) = overheard.ended_tasks
            assert ended.status is TaskEnd.COMPLETED
            assert ended.output_file.endswith(f"/tasks/{ended.task_id}.output")
            command_turn = await agent.query("/cost").finish()
            assert not command_turn.failed
            await stop_a_task(seat, agent, overheard)
        tasks.cancel_scope.cancel()
    answer = "yes, and says so" if marks_own_turns(seat.version) else "yes" if own_turns else "no"
    seat.found("A background task starts a turn of its own", answer)


async def stop_a_task(seat: Seat, agent: Agent, overheard: Overheard) -> None:
    """A background shell that would run for ever is stopped, where that can be asked for."""
    shell = ToolUse("Bash", {"command": "sleep 4711", "run_in_background": True})
    await agent.query(play(shell, "it runs")).finish()
    if seat.version < release(62):
        with pytest.raises(UnsupportedError, match="stop_task"):
            await agent.stop_task("any")
        seat.found("Stop a background task", "no")
        seat.found("Stop a task that is not there", "no")
        return
    started = [message for message in overheard.messages if isinstance(message, TaskStarted)][-1]
    assert started.task_type == "local_bash"
    await agent.stop_task(started.task_id)
    if seat.version >= release(120):
        await until(lambda: overheard.ended_tasks[-1].task_id == started.task_id)
        assert overheard.ended_tasks[-1].status is TaskEnd.STOPPED
        changes = [m.patch.status for m in overheard.messages if isinstance(m, TaskUpdated)]
        assert changes[-1] is TaskStatus.KILLED
    seat.found("Stop a background task")
    if seat.version >= release(325):
        await agent.stop_task("nosuch")
        seat.found("Stop a task that is not there", "does nothing")
    else:
        with pytest.raises(RequestRefused, match="No task found with ID: nosuch"):
            await agent.stop_task("nosuch")
        seat.found("Stop a task that is not there", "a clear error")


async def a_command_that_takes_long_is_a_task_too(seat: Seat, agent: Agent) -> None:
    """Some tell of a command in the foreground as well, once it has run for a while."""
    gate, newest = seat.cwd / "long", seat.version >= release(325)
    command = f"while [ ! -e {gate} ]; do sleep 0.1; done"
    async with anyio.create_task_group() as tasks:
        overheard = Overheard(agent)
        tasks.start_soon(overheard.listen)
        with anyio.fail_after(SECONDS):
            query = await agent.prompt(play(ToolUse("Bash", {"command": command}), "done"))
            if newest:
                await until(lambda: any(isinstance(m, TaskStarted) for m in overheard.messages))
            else:
                await until(lambda: bool(running(str(gate))))
                await anyio.sleep(3.5)  # 2.1.120 tells only at its end whether that was long
            gate.touch()
            await query.finish()
        tasks.cancel_scope.cancel()
    kinds = [type(message) for message in overheard.messages]
    told = [kind for kind in kinds if kind in {TaskStarted, TaskNotification}]
    tells = seat.version >= release(120)
    assert told == ([TaskStarted, TaskNotification] if tells else [])
    at = "while it runs" if newest else "at its end" if tells else "no"
    seat.found("Tells of a command that takes long", at)


async def commands_run_in_front_and_behind(seat: Seat, agent: Agent) -> list[str]:
    """Start both, and wait until they run."""
    for name in ("front", "behind"):
        (seat.cwd / name).touch()
    front, behind = (f"tail -f {seat.cwd / name}" for name in ("front", "behind"))
    in_background: dict[str, object] = {"command": behind, "run_in_background": True}
    calls = ToolUse("Bash", in_background), ToolUse("Bash", {"command": f"{front}; true"})
    await agent.prompt(play(*calls, "never said"))
    with anyio.fail_after(SECONDS):
        await until(lambda: bool(running(front) and running(behind)))
    return [front, behind]
