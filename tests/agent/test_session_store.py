"""Session stores: what is copied, what is restored, and what happens when a store fails."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import InMemorySessionStore
from msgspec import Raw

from quarterdeck import Agent, Options
from quarterdeck.agent import session_store
from quarterdeck.agent.session_store import (
    SessionMirror,
    key_of,
    newest_session,
    projects_of,
    restore,
)
from quarterdeck.agent.start import restore_session
from quarterdeck.claude.project_names import project_folder_name, project_path
from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.links.memory import memory_pair
from quarterdeck.wire.internal import TranscriptMirror
from quarterdeck.wire.notices import MirrorError
from support.bounds import SECONDS

pytestmark = pytest.mark.anyio

ONE = "11111111-0000-4000-8000-000000000001"


class Store:
    """The least that a store has."""

    def __init__(self, failures: int = 0) -> None:
        self.kept: dict[str, list[Any]] = {}
        self.failures = failures
        self.calls = 0
        self.gate = anyio.Event()
        self.gate.set()

    async def append(self, key: Any, entries: list[Any]) -> None:
        self.calls += 1
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise OSError("the disk of the store is full")
        self.kept.setdefault(json.dumps(key), []).extend(entries)

    async def load(self, key: Any) -> list[Any] | None:
        return self.kept.get(json.dumps(key))


def entry(number: int, **more: object) -> dict[str, object]:
    return {"type": "user", "uuid": f"u{number}", "text": f"ä{number}", **more}


def written(file: Path | str, *entries: object) -> TranscriptMirror:
    raws = tuple(Raw(json.dumps(each).encode()) for each in entries)
    return TranscriptMirror(file_path=str(file), entries=raws)


@asynccontextmanager
async def mirroring(
    store: Store, projects: Path
) -> AsyncIterator[tuple[SessionMirror, list[MirrorError]]]:
    told: list[MirrorError] = []
    mirror = SessionMirror(store, projects, told.append)
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mirror.run)
            yield mirror, told
            await mirror.finish()
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("p/s.jsonl", {"project_key": "p", "session_id": "s"}),
        (
            "p/s/subagents/agent-1.jsonl",
            {"project_key": "p", "session_id": "s", "subpath": "subagents/agent-1"},
        ),
        ("p/s.txt", None),
        ("s.jsonl", None),
        ("../elsewhere/s.jsonl", None),
    ],
)
def test_a_file_has_the_key_that_the_official_sdk_gives_it(
    file: str, key: dict[str, str] | None, tmp_path: Path
) -> None:
    assert key_of(str(tmp_path / file), tmp_path) == key


def test_transcripts_are_where_the_clis_environment_says() -> None:
    assert projects_of({"CLAUDE_CONFIG_DIR": "/c", "HOME": "/h"}) == Path("/c/projects")
    assert projects_of({"HOME": "/h"}) == Path("/h/.claude/projects")


async def test_lines_are_copied_in_order(tmp_path: Path) -> None:
    store = Store()
    async with mirroring(store, tmp_path) as (mirror, told):
        for number in range(4):
            mirror.put(written(tmp_path / "p" / f"s{number // 2}.jsonl", entry(number)))
        mirror.put(written(tmp_path / "p" / "s1.jsonl"))
    assert [[each["uuid"] for each in kept] for kept in store.kept.values()] == [
        ["u0", "u1"],
        ["u2", "u3"],
    ]
    assert told == []


async def test_a_store_that_fails_is_tried_again_and_then_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "BACK_OFF", 0.001)
    store = Store(failures=2)
    async with mirroring(store, tmp_path) as (mirror, told):
        mirror.put(written(tmp_path / "p" / "s.jsonl", entry(1)))
    assert (store.calls, told) == (3, [])
    store = Store(failures=3)
    async with mirroring(store, tmp_path) as (mirror, told):
        mirror.put(written(tmp_path / "p" / "s.jsonl", entry(1)))
        mirror.put(written(tmp_path / "elsewhere.jsonl", entry(1)))
        await mirror.finish()
        mirror.put(written(tmp_path / "p" / "s.jsonl", entry(2)))
    assert ["full" in each.error for each in told] == [False, True]
    assert told[1].key is not None
    assert told[1].key.session_id == "s"
    (kept,) = store.kept.values()
    assert kept == [entry(2)]


async def test_a_store_that_does_not_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "APPEND_SECONDS", 0.01)
    store = Store()
    store.gate = anyio.Event()
    async with mirroring(store, tmp_path) as (mirror, told):
        mirror.put(written(tmp_path / "p" / "s.jsonl", entry(1)))
    assert store.calls == 1
    assert "no answer within" in told[0].error


async def test_while_too_much_waits_for_the_store_nothing_more_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "MOST_WAITING", 2)
    store = Store()
    store.gate = anyio.Event()
    async with mirroring(store, tmp_path) as (mirror, _):
        mirror.put(written(tmp_path / "p" / "s.jsonl", entry(1), entry(2)))
        await mirror.ease()
        mirror.put(written(tmp_path / "p" / "s.jsonl", entry(3)))
        with anyio.move_on_after(0.01) as waited:
            await mirror.ease()
        assert waited.cancelled_caught
        store.gate.set()
        await mirror.ease()


# --- the way back --------------------------------------------------------------------------------


async def filled(folder: Path) -> tuple[InMemorySessionStore, str]:
    """The official store, with a session of two messages and a subagent."""
    store, project = InMemorySessionStore(), project_folder_name(project_path(folder))
    await store.append({"project_key": project, "session_id": ONE}, [entry(1), entry(2)])  # type: ignore[list-item]
    for subpath in ("subagents/agent-1", "../../evil", "/evil"):
        key: Any = {"project_key": project, "session_id": ONE, "subpath": subpath}
        await store.append(key, [entry(3)])  # type: ignore[list-item]
    return store, project


async def test_a_session_is_written_where_the_cli_looks_for_it(tmp_path: Path) -> None:
    store, project = await filled(tmp_path)
    projects = tmp_path / "projects"
    assert await restore(store, ONE, tmp_path, projects)
    file = projects / project / f"{ONE}.jsonl"
    assert [json.loads(line) for line in file.read_text().splitlines()] == [entry(1), entry(2)]
    assert file.stat().st_mode & 0o777 == 0o600
    below = {os.fspath(each.relative_to(projects)) for each in projects.rglob("*.jsonl")}
    assert below == {f"{project}/{ONE}.jsonl", f"{project}/{ONE}/subagents/agent-1.jsonl"}
    assert not [each for each in os.walk(tmp_path) if "evil" in str(each)]
    for none in ("22222222-0000-4000-8000-000000000002", "a title", "../x"):
        assert not await restore(store, none, tmp_path, projects)


async def test_a_local_file_is_only_replaced_by_one_that_has_more(tmp_path: Path) -> None:
    store, project = await filled(tmp_path)
    file = tmp_path / "projects" / project / f"{ONE}.jsonl"
    file.parent.mkdir(parents=True)

    async def after(*local: object) -> list[str]:
        file.write_text("".join(json.dumps(each) + "\n" for each in local) + "broken\n[1]\n")
        await restore(store, ONE, tmp_path, tmp_path / "projects")
        lines = file.read_text().splitlines()
        return [json.loads(line)["uuid"] for line in lines if line.startswith("{")]

    assert await after(entry(1)) == ["u1", "u2"]
    assert await after(entry(1), entry(2), entry(5)) == ["u1", "u2", "u5"]
    with pytest.raises(Conflict, match="each have messages"):
        await after(entry(1), entry(5))
    assert "u5" in file.read_text()


async def test_the_newest_session_of_the_store_is_continued(tmp_path: Path) -> None:
    store, project = await filled(tmp_path)
    side: Any = [entry(9, isSidechain=True)]
    await store.append({"project_key": project, "session_id": "later"}, side)
    assert await newest_session(store, tmp_path) == ONE
    assert await newest_session(InMemorySessionStore(), tmp_path) is None
    with pytest.raises(UsageError, match="no list_sessions"):
        await newest_session(Store(), tmp_path)
    options = Options(cwd=tmp_path, continue_=True)
    made = await restore_session(options, store, tmp_path / "projects")
    assert (made.continue_, made.resume, made.session_mirror) == (False, ONE, True)
    fresh = await restore_session(options, InMemorySessionStore(), tmp_path / "projects")
    assert (fresh.continue_, fresh.resume) == (True, None)


def test_a_cli_that_was_started_elsewhere_has_no_store() -> None:
    link, _ = memory_pair()
    with pytest.raises(UsageError, match="session_store"):
        Agent(link=link, session_store=Store())
