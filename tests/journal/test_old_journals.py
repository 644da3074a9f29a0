"""Journals that older versions wrote: they open as they are, or are refused with what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from quarterdeck.domain.errors import JournalError
from quarterdeck.journal import SqliteJournal, fold_all
from quarterdeck.journal.chain import Check
from quarterdeck.journal.views import VIEW_VERSION
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk
from quarterdeck.protocol.events import Noted, PromptCancelled, SessionDeleted
from quarterdeck.protocol.session_view import PromptStage, SessionView
from quarterdeck.protocol.sessions import SessionState
from support import lines
from support.hub_machines import hub_with

pytestmark = pytest.mark.anyio
FOLDER = Path(__file__).parent.parent / "fixtures" / "journals"


def restored(name: str, folder: Path) -> Path:
    """The journal of an older version, as a file."""
    path = folder / "journal.db"
    connection = sqlite3.connect(path)
    connection.executescript((FOLDER / f"{name}.sql").read_text())
    connection.close()
    return path


def edit(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


async def test_every_event_is_read_and_every_view_made_anew(tmp_path: Path) -> None:
    path = restored("story-08f16e1", tmp_path)
    async with await SqliteJournal.open(path) as journal:
        story = await journal.read("story", limit=1000)
        assert [one.seq for one in story] == list(range(1, 39))
        view = await journal.summary("story")
        assert view == fold_all(None, story)
        assert view is not None
        assert (view.name, view.state, view.mode) == ("the deck", SessionState.WAITING, "default")
        assert view.prompts == {
            "p1": PromptStage.DONE,
            "p2": PromptStage.QUEUED,
            "p3": PromptStage.CANCELLED,
        }
        assert list(view.asks) == ["a3"]
        for prompt in ("p1", "p2", "p3"):
            assert await journal.has_prompt("story", prompt)
        assert not await journal.has_prompt("other", "p1")
        assert (view.cost_usd, view.account.tokens) == (0.25, 100)
        assert bytes(view.spec.mcp_servers["db"]) == b'{"type":"stdio","command":"db"}'
        other = await journal.summary("other")
        assert other is not None
        assert (other.archived, other.parent) == (True, "story")
        (deleted,) = await journal.read("gone")
        assert isinstance(deleted.event, SessionDeleted)
        check = Check(journal.epoch)
        check.add(await journal.links(limit=100))
        assert check.result().good
        assert len(await journal.limits()) == 1
        (stored,) = await journal.append("story", [Noted(level="info", text="and on")])
        assert stored.seq == 39
        assert any(isinstance(one.event, PromptCancelled) for one in story)
    connection = sqlite3.connect(path)
    assert {row[0] for row in connection.execute("SELECT folded FROM sessions")} == {VIEW_VERSION}
    connection.close()
    async with await SqliteJournal.open(path) as journal:
        again = await journal.summary("story")
        assert isinstance(again, SessionView)
        assert again.head == 39


async def test_a_hub_goes_on_with_a_session_that_ran_under_the_old_one(tmp_path: Path) -> None:
    path = restored("running-08f16e1", tmp_path)
    async with await SqliteJournal.open(path) as journal:
        hub, machines = hub_with(journal)
        async with hub.run():
            view = await hub.session("running")
            assert (view.state, view.mode) == (SessionState.WAITING, "default")
            assert [prompt.prompt for prompt in view.queued] == ["p2"]
            (run,) = machines.runs
            run.said = view.said
            run.read()
            (ask,) = view.asks
            await hub.submit(AnswerAsk(ask=ask, answer=AllowAnswer(), by="ann"))
            (answer,) = run.read()
            assert answer["response"]["request_id"] == "q1"
            assert answer["response"]["response"]["behavior"] == "allow"
            await run.say(lines.result("end"))
            view = await hub.session("running")
            assert view.turns == 1
            assert view.prompts["p2"] is PromptStage.SENT


@pytest.mark.parametrize("name", ["story-08f16e1", "running-08f16e1"])
async def test_one_that_a_newer_schema_wrote_is_refused_and_left_as_it_is(
    name: str, tmp_path: Path
) -> None:
    path = restored(name, tmp_path)
    edit(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"newer Quarterdeck .* upgrade this one") as caught:
        await SqliteJournal.open(path)
    assert caught.value.code == "newer"
    assert path.read_bytes() == before


async def test_an_event_that_only_a_newer_version_knows_is_told_as_such(tmp_path: Path) -> None:
    path = restored("story-08f16e1", tmp_path)
    edit(path, "UPDATE events SET json = ? WHERE position = 3", b'{"kind":"run.flies","run":"r1"}')
    with pytest.raises(JournalError, match=r"event 3 of session story .* newer .* upgrade") as told:
        await SqliteJournal.open(path)
    assert told.value.code == "newer"
    edit(path, "UPDATE events SET json = ? WHERE position = 3", b'{"kind":"run.started"}')
    with pytest.raises(JournalError, match=r"event 3 of session story .* is damaged") as told:
        await SqliteJournal.open(path)
    assert told.value.code == "damaged"
