"""What holds in a session, with real CLIs, old and new: shown, and in force after a resume."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UnsupportedError
from quarterdeck.protocol.commands import Control, ResumeSession, SendPrompt, StopSession
from quarterdeck.protocol.events import PromptSent, PromptTaken, SpecChanged, Switched, TurnEnded
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.testing import RealCli, ScriptedModel, isolated_env
from quarterdeck.testing.script import Said, ToolUse, play
from support.clis import real_cli
from support.hub_house import House, house
from support.processes import Processes
from support.scenes import bash
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

OLDEST, NEWEST = "2.1.37", "2.1.325"


class Bench:
    """A session of one version, in one folder."""

    def __init__(self, home: House, spec: SessionSpec, model: ScriptedModel) -> None:
        self.home = home
        self.spec = spec
        self.model = model
        self.session = ""

    @property
    def work(self) -> Path:
        return Path(self.spec.directory)

    @asynccontextmanager
    async def with_a_hub_to_restart(self, processes: Processes) -> AsyncIterator[None]:
        """Use a hub of this test alone."""
        (folder := self.work.parent / "house").mkdir()
        async with house(folder, processes) as self.home:
            yield
            await self.home.hub.submit(StopSession(session=self.session))
            await self.until(lambda view: view.run is None)

    async def begin(self, *replies: Said, **changes: Any) -> None:
        """Make the session; its first turn says this, and is over."""
        spec = msgspec.structs.replace(self.spec, **changes)
        self.session = await self.home.new(spec, script(*replies))
        await self.until(lambda view: view.turns == 1)

    async def until(self, holds: Any) -> SessionView:
        return await self.home.until(self.session, holds)

    async def view(self) -> SessionView:
        return await self.home.hub.session(self.session)

    async def send(self, content: bytes, *, prompt: str = "", steer: bool = False) -> str:
        view = await self.view()
        prompt = prompt or f"p{view.head}"
        await self.home.hub.submit(
            SendPrompt(
                session=self.session, prompt=prompt, content=Raw(content), steer=steer, by="ada"
            )
        )
        return prompt

    async def turn(self, text: str = "look") -> SessionView:
        """A turn, in a resumed process if there is none; `text` may be a slash command."""
        turns = (await self.view()).turns
        await self.send(json.dumps(text).encode())
        return await self.until(lambda view: view.turns > turns)

    async def control(self, subtype: str, **more: object) -> None:
        request = Raw(msgspec.json.encode({"subtype": subtype, **more}))
        await self.home.hub.submit(Control(session=self.session, request=request, by="ada"))

    async def resume_after_stop(self) -> None:
        await self.home.hub.submit(StopSession(session=self.session))
        await self.until(lambda view: view.run is None)
        await self.home.hub.submit(ResumeSession(session=self.session))
        await self.until(lambda view: view.state is SessionState.IDLE)

    async def resume_after_kill(self) -> None:
        view = await self.view()
        assert view.pid is not None
        name = f"*/{view.cli_session}.jsonl"
        projects = self.work.parent / "home" / ".claude" / "projects"
        await until(
            lambda: any(b'"assistant"' in each.read_bytes() for each in projects.glob(name))
        )
        os.kill(view.pid, signal.SIGKILL)
        await self.until(lambda view: view.run is None)
        await self.home.hub.submit(ResumeSession(session=self.session))
        await self.until(lambda view: view.state is SessionState.IDLE)

    async def events(self, kind: type) -> list[Any]:
        stored = await self.home.hub.events(self.session, limit=1000)
        return [one.event for one in stored if isinstance(one.event, kind)]

    @property
    def effort(self) -> str | None:
        """The effort that the CLI asked the model for, in its last request of a turn."""
        asked = json.loads(self.model.turns[-1].body)
        found: str | None = asked.get("output_config", {}).get("effort")
        return found

    def thinking(self) -> tuple[str, int | None]:
        config = self.model.turns[-1].thinking
        return ("off", None) if config is None else (config.type, config.budget_tokens)


def script(*replies: Said) -> bytes:
    return json.dumps(play(*replies)).encode()


def spec_of(version: str, folder: Path, model: ScriptedModel, **env: str) -> SessionSpec:
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    return SessionSpec(
        directory=str(folder / "work"),
        claude=real_cli(version).command[-1],
        env=isolated_env(folder / "home", model.url, **env),
        allowed_tools=("Bash",),
    )


@pytest.fixture
def oldest(tmp_path: Path, model: ScriptedModel, home: House, clis: dict[str, RealCli]) -> Bench:
    return Bench(home, spec_of(OLDEST, tmp_path, model), model)


@pytest.fixture
def newest(tmp_path: Path, model: ScriptedModel, home: House, clis: dict[str, RealCli]) -> Bench:
    env = {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}
    return Bench(home, spec_of(NEWEST, tmp_path, model, **env), model)


@pytest.fixture(params=[OLDEST, NEWEST])
def bench(
    request: pytest.FixtureRequest, tmp_path: Path, model: ScriptedModel, home: House
) -> Bench:
    return Bench(home, spec_of(request.param, tmp_path, model), model)


async def test_thinking_that_was_switched_is_in_force_after_stop_kill_and_restart(
    oldest: Bench, processes: Processes
) -> None:
    async with oldest.with_a_hub_to_restart(processes):
        await oldest.begin("hello")
        await oldest.control("set_max_thinking_tokens", max_thinking_tokens=2000)
        view = await oldest.turn()
        assert oldest.thinking() == ("enabled", 2000)
        assert (view.thinking, view.spec.thinking) == ("2000", "2000")
        await oldest.resume_after_stop()
        await oldest.turn()
        assert oldest.thinking() == ("enabled", 2000)
        await oldest.control("set_max_thinking_tokens", max_thinking_tokens=0)
        await oldest.home.restart_hub()
        await oldest.resume_after_kill()
        view = await oldest.turn()
        assert oldest.thinking() == ("off", None)
        assert (view.thinking, view.spec.thinking) == (None, "off")
        told = [event for event in await oldest.events(Switched) if event.thinking]
        assert [(event.thinking, event.by) for event in told] == [("2000", "ada"), ("off", "ada")]
        with pytest.raises(UnsupportedError):
            await oldest.control("apply_flag_settings", settings={"effortLevel": "high"})


async def test_todos_are_shown_and_effort_and_model_that_were_switched_hold_after_stop_and_kill(
    newest: Bench,
) -> None:
    await newest.begin(
        ToolUse("TaskCreate", {"subject": "one", "description": "do one"}),
        ToolUse("TaskCreate", {"subject": "two", "description": "do two"}),
        ToolUse("TaskUpdate", {"taskId": "1", "status": "completed"}),
        ToolUse("TaskUpdate", {"taskId": "2", "status": "in_progress", "subject": "second"}),
        "done",
        effort="medium",
        model="opus",
    )
    todos = (await newest.view()).holds.todos
    assert [(todo.todo, todo.text, todo.status) for todo in todos] == [
        ("1", "one", "completed"),
        ("2", "second", "in_progress"),
    ]
    await effort_holds(newest)
    await a_model_that_a_slash_command_chose_holds(newest)


async def effort_holds(newest: Bench) -> None:
    assert newest.effort == "medium"
    await newest.control("apply_flag_settings", settings={"effortLevel": "high"})
    view = await newest.turn()
    assert (newest.effort, view.effort, view.spec.effort) == ("high", "high", "high")
    await newest.resume_after_stop()
    await newest.turn()
    assert newest.effort == "high"
    view = await newest.turn("/effort low")
    assert (view.effort, view.spec.effort) == ("low", "low")
    await newest.resume_after_kill()
    view = await newest.turn()
    assert newest.effort == "low"
    await newest.control("set_max_thinking_tokens", max_thinking_tokens=0)
    view = await newest.turn("/effort auto")
    assert (view.effort, view.spec.effort, view.thinking) == ("auto", None, "off")
    told = [(event.effort, event.by) for event in await newest.events(Switched) if event.effort]
    assert told == [("high", "ada"), ("low", "cli"), ("auto", "cli")]


async def a_model_that_a_slash_command_chose_holds(newest: Bench) -> None:
    before = len(await newest.events(SpecChanged))
    view = await newest.turn("/model haiku")
    assert view.spec.model == "haiku"
    await newest.resume_after_stop()
    view = await newest.turn()
    assert "haiku" in newest.model.turns[-1].model
    assert "haiku" in (view.model or "")
    changed = [event.spec.model for event in await newest.events(SpecChanged)]
    assert changed[before:] == ["haiku"]
    view = await newest.turn("/model")
    assert view.spec.model == "haiku", "it only shows the list"


async def test_a_restarted_hub_knows_what_holds_and_a_prompt_is_taken_into_the_turn_once(
    bench: Bench, processes: Processes
) -> None:
    """Offers, to-dos, the current tool, the context: a page needs no old event for these."""
    async with bench.with_a_hub_to_restart(processes):
        todos = [{"content": "one", "status": "in_progress", "activeForm": "Doing one"}]
        await bench.begin(ToolUse("TodoWrite", {"todos": todos}), "done")
        gate = bench.work / "gate"
        wait = f"until [ -e {gate} ]; do sleep 0.05; done"
        first = await bench.send(script(bash(wait), "done"))
        await bench.until(lambda view: bool(view.holds.tools))
        second = await bench.send(b'"look left"', prompt="steering", steer=True)
        await bench.home.restart_hub()
        view = await bench.view()
        (tool,) = view.holds.tools
        assert (tool.tool, tool.title, tool.agent) == ("Bash", wait, None)
        assert tool.since <= view.updated
        assert "compact" in {command.name for command in view.holds.offers.commands}
        assert view.holds.offers.models
        assert "general-purpose" in {agent.name for agent in view.holds.offers.agents}
        assert view.holds.context.window in {200_000, 1_000_000}
        if OLDEST in (bench.spec.claude or ""):  # the newest has other tools
            assert [(todo.text, todo.status) for todo in view.holds.todos] == [
                ("one", "in_progress")
            ]

        again = await bench.send(b'"look left"', prompt="steering", steer=True)
        assert again == second
        gate.touch()
        view = await bench.until(lambda view: view.turns == 2)
        assert view.holds.tools == ()
        *_, ended = await bench.events(TurnEnded)
        assert set(ended.prompts) == {first, second}
        (sent,) = [event for event in await bench.events(PromptSent) if event.prompt == second]
        assert sent.steered
        assert PromptTaken(prompt=second) in await bench.events(PromptTaken)
        asked = bench.model.turns[-1].body.decode()
        assert asked.count("look left") == 1, "the model has read it, in the same turn"
