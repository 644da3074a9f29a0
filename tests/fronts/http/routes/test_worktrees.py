"""The routes of projects, diffs, worktrees and folders: who may use them, and what they pass on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.errors import Conflict, LinkRefused, NotFound
from quarterdeck.fronts.http import Role
from quarterdeck.hub.worktrees import TEXT_LIMIT
from quarterdeck.protocol.machine_requests import (
    Against,
    Changes,
    FileState,
    Folder,
    Folders,
    SeenFile,
    Settled,
    StoredFile,
    TreeAction,
)
from quarterdeck.protocol.projects import Project
from support.front import Front, front


class SmallWorkshop:
    """A service with one session, one machine, and no git."""

    def __init__(self) -> None:
        self.projects: Mapping[str, Project] = {
            "web": Project(directory="/srv/web", env={"KEY": "hunter2"}, model="opus")
        }
        self.asked: list[object] = []

    async def changes(
        self, session: str, *, text_limit: int = TEXT_LIMIT, against: Against = Against.SESSION
    ) -> Changes:
        self._know(session)
        self.asked.append((text_limit, against.value))
        return Changes(directory="/srv/web", base="abc", text="+ü\n"[:text_limit])

    async def settle(
        self,
        session: str,
        action: TreeAction,
        *,
        by: str,
        into: str | None = None,
        message: str | None = None,
        dry_run: bool = False,
    ) -> Settled:
        self._know(session)
        self.asked.append((action, by, into, message, dry_run))
        if action is TreeAction.MERGE and message is None:
            raise Conflict("uncommitted", "not committed: readme")
        return Settled(action=action, branch="task", text="done")

    async def put_file(self, session: str, path: str, data: bytes) -> StoredFile:
        self._know(session)
        self.asked.append((path, data))
        return StoredFile(path=f"/srv/web/{path}", size=len(data))

    async def see_file(self, session: str, path: str) -> SeenFile:
        self.asked.append((session, path))
        return SeenFile(path=path, state=FileState.TEXT, text="before\n", size=7)

    async def folders(self, machine: str, path: str | None = None) -> Folders:
        if machine != "local":
            raise LinkRefused(f"the machine {machine!r} is not connected")
        self.asked.append(path)
        return Folders(path=path, folders=(Folder(name="web", path="/srv/web"),))

    def _know(self, session: str) -> None:
        if session != "s1":
            raise NotFound("session", session)


@pytest.fixture
def service() -> SmallWorkshop:
    return SmallWorkshop()


@pytest.fixture
async def hub(tmp_path: Path, service: SmallWorkshop) -> AsyncIterator[Front]:
    async with front(tmp_path / "data", worktree_service=service) as running:
        yield running


async def test_projects_are_listed_without_the_values_of_their_variables(hub: Front) -> None:
    async with hub.client(Role.VIEWER) as client:
        answer = await client.get("/api/projects")
    assert answer.json() == {
        "projects": [
            {
                "name": "web",
                "defaults": {"directory": "/srv/web", "env": {"KEY": "…"}, "model": "opus"},
            }
        ]
    }


async def test_whoever_may_read_sees_what_was_changed(hub: Front, service: SmallWorkshop) -> None:
    async with hub.client(Role.VIEWER) as client:
        answer = await client.get("/api/sessions/s1/diff", params={"text_limit": 2})
        unknown = await client.get("/api/sessions/none/diff")
        wrong = await client.get("/api/sessions/s1/diff", params={"text_limit": 10**9})
    assert (answer.json()["text"], service.asked) == ("+ü", [(2, "session")])
    assert (unknown.status_code, wrong.status_code) == (404, 400)


async def test_only_an_owner_settles_a_worktree_and_is_named_for_it(
    hub: Front, service: SmallWorkshop
) -> None:
    body = {"action": "merge", "message": "Work", "into": "release"}
    async with hub.client(Role.OPERATOR) as client:
        refused = await client.post("/api/sessions/s1/worktree", json=body)
    assert (refused.status_code, service.asked) == (403, [])
    async with hub.client() as client:
        answer = await client.post("/api/sessions/s1/worktree", json=body)
        conflict = await client.post("/api/sessions/s1/worktree", json={"action": "merge"})
        misspelt = await client.post(
            "/api/sessions/s1/worktree", json={"action": "merge", "mesage": "Work"}
        )
    assert answer.json()["text"] == "done"
    assert service.asked[0] == (TreeAction.MERGE, "the owner", "release", "Work", False)
    assert (conflict.status_code, conflict.json()["code"]) == (409, "uncommitted")
    assert misspelt.status_code == 400
    assert len(service.asked) == 2


async def test_only_an_owner_looks_at_the_folders_of_a_machine(
    hub: Front, service: SmallWorkshop
) -> None:
    async with hub.client(Role.OPERATOR) as client:
        assert (await client.get("/api/machines/local/directories")).status_code == 403
    async with hub.client() as client:
        listed = await client.get("/api/machines/local/directories", params={"path": "/srv"})
        gone = await client.get("/api/machines/box/directories")
    assert [folder["path"] for folder in listed.json()["folders"]] == ["/srv/web"]
    assert service.asked == ["/srv"]
    assert (gone.status_code, gone.json()["code"]) == (409, "disconnected")


async def test_a_front_without_a_workshop_finds_nothing(tmp_path: Path) -> None:
    async with front(tmp_path / "data") as bare, bare.client() as client:
        assert (await client.get("/api/projects")).status_code == 404


async def test_only_an_owner_stores_a_file_in_a_sessions_folder(
    hub: Front, service: SmallWorkshop
) -> None:
    body = {"path": "notes/a.txt", "data": "aGVsbG8="}
    async with hub.client(Role.OPERATOR) as client:
        assert (await client.post("/api/sessions/s1/files", json=body)).status_code == 403
    async with hub.client() as client:
        stored = await client.post("/api/sessions/s1/files", json=body)
        bad = await client.post("/api/sessions/s1/files", json={"path": "a", "data": "%"})
    assert stored.json() == {"path": "/srv/web/notes/a.txt", "size": 5}
    assert service.asked == [("notes/a.txt", b"hello")]
    assert bad.status_code == 400


async def test_only_the_file_of_an_open_call_is_read_and_only_for_those_who_answer(
    hub: Front, service: SmallWorkshop
) -> None:
    session = await hub.deck.have_session()
    command = await hub.deck.ask(session)
    written = replace(
        (await hub.deck.asks())[0].opened,
        ask=f"{session}.write",
        tool="Write",
        request=Raw(b'{"input": {"file_path": "/srv/web/a", "content": "after"}}'),
    )
    nameless = replace(written, ask=f"{session}.odd", request=Raw(b'{"input": {"file_path": 5}}'))
    edited = replace(written, ask=f"{session}.edit", tool="Edit")
    await hub.deck.journal.append(session, [written, nameless, edited])
    async with hub.client(Role.VIEWER) as viewer, hub.client(Role.OPERATOR) as operator:
        refused = await viewer.get(f"/api/asks/{written.ask}/file")
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        for ask in (command, nameless.ask):
            assert (await operator.get(f"/api/asks/{ask}/file")).status_code == 409
        for unknown in ("nothing", f"{session}.nothing", "a.b"):
            assert (await operator.get(f"/api/asks/{unknown}/file")).status_code == 404
        assert service.asked == []
        seen = await operator.get(f"/api/asks/{written.ask}/file")
        assert (await operator.get(f"/api/asks/{edited.ask}/file")).json() == seen.json()
    assert seen.json() == {"path": "/srv/web/a", "state": "text", "text": "before\n", "size": 7}
    assert service.asked == [(session, "/srv/web/a")] * 2
