"""Switches of the mode and the model survive stop, kill and fork: with real CLIs, old and new."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from quarterdeck.protocol.commands import (
    Control,
    DenyAnswer,
    ForkSession,
    PlanAnswer,
    ResumeSession,
    SendPrompt,
    StopSession,
)
from quarterdeck.protocol.events import Decided
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.testing import Gate, RealCli, ScriptedModel, reply
from quarterdeck.testing.script import Said, ToolUse, play
from support.bounds import SECONDS
from support.hub_house import House, PolicedHouse, real_spec
from support.scenes import bash, write

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

VERSIONS = ("2.1.37", "2.1.92", "2.1.325")
LEAVE = ToolUse("ExitPlanMode", {"plan": "build it"})
POLICY = """
[[rule]]
name = "no edits in plan mode"
verdict = "deny"
tool = "Write"
path = "./planned*"
mode = "plan"

[[rule]]
name = "edits"
verdict = "allow"
tool = "Write"
mode = "acceptEdits"
"""


class Table:
    """One house, one version, one folder to work in."""

    def __init__(self, home: House, spec: SessionSpec, model: ScriptedModel) -> None:
        self.home = home
        self.hub = home.hub
        self.spec = spec
        self.model = model
        self.work = Path(spec.directory)
        self.is_newest = "2.1.325" in (spec.claude or "")

    async def new(self, *replies: Said, **changes: Any) -> str:
        """A session whose first turn says this, and is over."""
        spec = msgspec.structs.replace(self.spec, **changes)
        session = await self.home.new(spec, script(*replies))
        await self.home.until(session, lambda view: view.turns == 1)
        return session

    async def turned(self, session: str, turns: int, *, or_asked: bool = False) -> SessionView:
        """Wait until so many turns are over, or until somebody is asked."""
        return await self.home.until(
            session, lambda view: view.turns >= turns or (or_asked and bool(view.asks))
        )

    async def send(self, session: str, *replies: Said) -> None:
        """Prompt; a session that has ended is resumed first."""
        view = await self.hub.session(session)
        if view.run is None:
            await self.hub.submit(ResumeSession(session=session))
            await self.home.until(session, lambda view: view.state is SessionState.IDLE)
        command = SendPrompt(
            session=session, prompt=f"p{view.head}", content=msgspec.Raw(script(*replies))
        )
        await self.hub.submit(command)

    async def turn(self, session: str, *replies: Said) -> SessionView:
        """A turn in which nobody is asked anything."""
        turns = (await self.hub.session(session)).turns
        await self.send(session, *replies)
        return await self.turned(session, turns + 1, or_asked=True)

    async def control(self, session: str, subtype: str, **more: object) -> None:
        request = msgspec.Raw(msgspec.json.encode({"subtype": subtype, **more}))
        await self.hub.submit(Control(session=session, request=request, by="ada"))

    async def stop(self, session: str) -> None:
        await self.hub.submit(StopSession(session=session))
        await self.home.until(session, lambda view: view.run is None)

    async def kill(self, session: str) -> None:
        """Kill its CLI, once that has written a conversation that can be resumed."""
        view = await self.hub.session(session)
        assert view.pid is not None
        with anyio.fail_after(SECONDS):
            while not self._is_written(f"{view.cli_session}.jsonl"):  # noqa: ASYNC110 - nobody tells of it
                await anyio.sleep(0.02)
        os.kill(view.pid, signal.SIGKILL)
        await self.home.until(session, lambda view: view.run is None)

    def _is_written(self, name: str) -> bool:
        found = (self.work.parent / "home" / ".claude" / "projects").glob(f"*/{name}")
        return any(b'"assistant"' in each.read_bytes() for each in found)

    async def asked_about(self, session: str, *replies: Said) -> None:
        """A turn of the resumed session in which a person is asked, and says no."""
        turns = (await self.hub.session(session)).turns
        await self.send(session, *replies)
        with anyio.fail_after(SECONDS):
            card = await self.home.ask(session)
        await self.home.answer(card, DenyAnswer())
        await self.home.until(session, lambda view: view.turns > turns)


def script(*replies: Said) -> bytes:
    return json.dumps(play(*replies)).encode()


@pytest.fixture(params=VERSIONS)
def spec(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    model: ScriptedModel,
    extra_clis: dict[str, RealCli],
) -> SessionSpec:
    return real_spec(tmp_path, extra_clis[request.param], model)


@pytest.fixture
def table(spec: SessionSpec, model: ScriptedModel, home: House) -> Table:
    """Without a policy."""
    return Table(home, spec, model)


@pytest.fixture
async def ruled(spec: SessionSpec, model: ScriptedModel, policed: PolicedHouse) -> Table:
    """With rules on modes."""
    await policed.rule(POLICY)
    return Table(policed.home, spec, model)


async def test_what_people_switched_holds_after_a_stop_and_in_a_fork(table: Table) -> None:
    session = await table.new("hello", mode="acceptEdits", model="opus")
    await table.control(session, "set_permission_mode", mode="default")
    await table.control(session, "set_model", model="haiku")
    # What a hostile repository says of modes does not matter to what a person chose.
    (table.work / ".claude").mkdir(exist_ok=True)
    settings = table.work / ".claude" / "settings.json"
    settings.write_text(json.dumps({"permissions": {"defaultMode": "acceptEdits"}}))
    fork = (await table.home.hub.submit(ForkSession(session=session))).session
    await table.stop(session)
    for each in (session, fork):
        made = table.work / f"made-{each}"
        await table.asked_about(each, write(made), "a pity")
        assert not made.exists()
        assert "haiku" in table.model.turns[-1].model
        view = await table.home.hub.session(each)
        assert view.mode == "default"
        assert "haiku" in (view.model or "")
    await table.stop(fork)

    await table.control(session, "set_permission_mode", mode="acceptEdits")
    await table.control(session, "set_model", model=None)
    await table.stop(session)
    made = table.work / "made"
    view = await table.turn(session, write(made), "done")
    assert made.exists()
    assert (view.mode, view.asks) == ("acceptEdits", {})
    assert "haiku" not in table.model.turns[-1].model
    assert "opus" not in table.model.turns[-1].model or table.is_newest


async def test_permissions_that_were_skipped_and_tightened_are_asked_for_in_this_run_and_the_next(
    table: Table,
) -> None:
    free, made = table.work / "free", table.work / "made"
    session = await table.new(bash(f"touch {free}"), "done", skip_permissions=True)
    assert free.exists()
    assert (await table.home.hub.session(session)).mode == "bypassPermissions"
    await table.control(session, "set_permission_mode", mode="default")
    await table.asked_about(session, bash(f"touch {made}"), "a pity")
    # Nor does the agent get around it by entering plan mode, in this run and in the next.
    enter = ToolUse("EnterPlanMode", {})
    for turns in (3, 4):
        await table.send(session, enter, bash(f"touch {made}"), "a pity")
        view = await table.turned(session, turns, or_asked=True)
        for card in view.asks.values():
            await table.home.answer(card, DenyAnswer())
        await table.turned(session, turns)
        await table.control(session, "set_permission_mode", mode="default")
        await table.stop(session)
    await table.asked_about(session, bash(f"touch {made}"), "a pity")
    assert not made.exists()


async def test_rules_on_modes_hold_when_a_person_switches_in_mid_turn_and_after_kills(
    ruled: Table,
) -> None:
    """Tightened in mid-turn; a plan survives a kill, and is left for good once it is approved."""
    first, second = ruled.work / "first", ruled.work / "second"
    session = await ruled.new("hello", mode="acceptEdits")
    await ruled.send(session, write(first), reply(Gate("second"), write(second)), "a pity")
    await ruled.model.wait_at_gate("second")
    assert first.exists()
    await ruled.control(session, "set_permission_mode", mode="default")
    ruled.model.release("second")
    with anyio.fail_after(SECONDS):
        card = await ruled.home.ask(session)
    assert card.opened.tool == "Write"
    await ruled.home.answer(card, DenyAnswer())
    await ruled.home.until(session, lambda view: view.turns == 2)
    assert not second.exists()

    await ruled.control(session, "set_permission_mode", mode="plan")
    await ruled.kill(session)
    planned = ruled.work / "planned"
    turn = (write(planned), LEAVE, write(planned), "done")
    await ruled.send(session, *turn)
    card = await ruled.home.ask(session)
    assert (await ruled.home.hub.session(session)).mode == "plan"
    assert not planned.exists(), "a rule denies it in plan mode"
    await ruled.home.answer(card, PlanAnswer(choice="auto"), by="ada")
    await ruled.home.until(session, lambda view: view.turns == 3)
    assert planned.exists(), "and not any more after it"
    stored = await ruled.home.hub.audit(session=session)
    found = [one.event for one in stored if isinstance(one.event, Decided)]
    assert [(one.verdict, one.rule) for one in found if one.tool == "Write"] == [
        ("allow", "edits"),
        ("deny", None),
        ("deny", "no edits in plan mode"),
        ("allow", "edits"),
    ]
    await ruled.stop(session)
    await ruled.turn(session, "look")
    assert (await ruled.home.hub.session(session)).mode == "acceptEdits"

    await ruled.control(session, "set_permission_mode", mode="plan")
    await ruled.send(session, LEAVE, "done")
    await ruled.home.answer(await ruled.home.ask(session), PlanAnswer(choice="manual"), by="ada")
    await ruled.home.until(session, lambda view: view.turns == 5)
    await ruled.kill(session)
    await ruled.turn(session, "look")
    assert (await ruled.home.hub.session(session)).mode == "default"
