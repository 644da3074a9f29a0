"""What policy wants to know of the disk is looked up in a thread: the event loop never waits."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.hub.permissions import context
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.hub.permissions.service import Question
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, CreateSession, Scope
from quarterdeck.protocol.events import Decided
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runtime import git_head
from support import lines
from support.hub_machines import TestMachines, hub_with

pytestmark = pytest.mark.anyio

ASKING = '[[rule]]\nname = "linked"\nverdict = "ask"\nbranch = "topic"\npath = "/{}/secret/**"\n'


class Looks:
    """Where the disk was looked at: which function, and on which thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[tuple[str, int]] = []
        self.realpath = real = os.path.realpath
        branch = git_head.branch_of

        def realpath(path: str) -> str:
            self.found.append(("realpath", threading.get_ident()))
            return real(path)

        def branch_of(folder: str) -> str | None:
            self.found.append(("branch_of", threading.get_ident()))
            return branch(folder)

        monkeypatch.setattr(os.path, "realpath", realpath)
        monkeypatch.setattr(context, "branch_of", branch_of)

    def take(self) -> set[str]:
        """The functions that were called; none of them on this thread."""
        here = threading.get_ident()
        assert [name for name, thread in self.found if thread == here] == []
        names = {name for name, _ in self.found}
        self.found.clear()
        return names


def reads(path: Path) -> dict[str, object]:
    return {"tool_name": "Read", "input": {"file_path": str(path)}, "tool_use_id": "toolu_1"}


async def test_no_decision_looks_at_the_disk_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.toml").write_text(ASKING.format(tmp_path))
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    (tmp_path / "secret").mkdir()
    (work / "link").symlink_to(tmp_path / "secret")
    hub, machines = hub_with(MemoryJournal(), policies=Policies(tmp_path))
    looks = Looks(monkeypatch)
    async with hub.run():
        await create(hub, machines, work)
        run = machines.runs[-1]
        seen = {
            "hook_event_name": "PreToolUse",
            "tool_name": "Read",
            "tool_input": {"file_path": str(work / "plain")},
            "tool_use_id": "toolu_0",
        }
        watch = {"subtype": "hook_callback", "callback_id": "quarterdeck-watch", "input": seen}
        await run.say(lines.requests("h1", **watch))
        assert looks.take() == {"realpath", "branch_of"}

        await run.say(lines.requests("q1", subtype="can_use_tool", **reads(work / "link" / "x")))
        assert looks.take() == {"realpath", "branch_of"}
        (card,) = await hub.asks()
        assert (card.opened.rule, card.opened.branch) == ("linked", "topic")

        edited = Raw(b'{"file_path":"%b"}' % bytes(work / "plain"))
        answer = AllowAnswer(input=edited, scope=Scope.ALWAYS)
        await hub.submit(AnswerAsk(ask=card.opened.ask, answer=answer, by="ada", role="owner"))
        assert looks.take() == {"realpath", "branch_of"}
        entries = [each.event for each in await hub.audit(session="mine")]
        assert [e.verdict for e in entries if isinstance(e, Decided)] == ["allow"]


@pytest.mark.process
async def test_an_explanation_does_not_look_at_the_disk_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, machines = hub_with(MemoryJournal())
    looks = Looks(monkeypatch)
    monkeypatch.setattr(os.path, "realpath", looks.realpath)  # it goes to another process
    async with hub.run():
        await create(hub, machines, tmp_path)
        await hub.policy.explain(Question(tool="Read", argument="x", session="mine"))
        assert looks.take() == {"branch_of"}


async def create(hub: Hub, machines: TestMachines, work: Path) -> None:
    spec = SessionSpec(directory=str(work))
    await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada"))
    run = machines.runs[-1]
    await run.greet(directory=str(work))
    await run.take_prompt()
