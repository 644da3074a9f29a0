"""The routes of a review: who may look, who may change, and what they pass on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, NotFound
from quarterdeck.fronts.http import Role
from quarterdeck.hub.reviews import Act
from quarterdeck.protocol.events import PromptQueued, PromptSent, Said, SessionCreated
from quarterdeck.protocol.machine_requests import (
    Against,
    Entries,
    FileDiff,
    FileState,
    FolderDone,
    Found,
    RemoteState,
    SeenFile,
    ToolOutput,
)
from quarterdeck.protocol.sessions import SessionSpec
from support.front import Front, front


class SmallReviews:
    """Reviews of one session, without a machine."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def file_change(
        self, session: str, path: str, *, against: Against, old_path: str | None = None
    ) -> FileDiff:
        self._know(session)
        self.asked.append((path, against.value, old_path))
        return FileDiff(directory="/srv", path=path, patch="@@")

    async def remote(self, session: str) -> RemoteState:
        self._know(session)
        return RemoteState(branch="main", commit="c")

    async def entries(self, session: str, path: str) -> Entries:
        self._know(session)
        return Entries(path=path)

    async def read(self, session: str, path: str) -> SeenFile:
        self._know(session)
        if path == ".env":
            raise Conflict("closed_by_policy", "'.env' is closed")
        return SeenFile(path=path, state=FileState.TEXT, text="x")

    async def tool_output(
        self, session: str, cli_session: str, name: str, *, offset: int = 0
    ) -> ToolOutput:
        self._know(session)
        return ToolOutput(text=f"{cli_session}/{name}@{offset}", size=9)

    async def find(self, session: str, text: str, *, contents: bool) -> Found:
        self._know(session)
        self.asked.append((text, contents))
        return Found()

    async def act(self, session: str, act: Act, *, by: str) -> FolderDone:
        self._know(session)
        self.asked.append((type(act).__name__, by, act.directory))
        return FolderDone(text="done")

    def _know(self, session: str) -> None:
        if session != "s1":
            raise NotFound("session", session)


@pytest.fixture
def reviews() -> SmallReviews:
    return SmallReviews()


@pytest.fixture
async def hub(tmp_path: Path, reviews: SmallReviews) -> AsyncIterator[Front]:
    async with front(tmp_path / "data", reviews=reviews) as running:
        yield running


COMMIT = "c" * 40
ACTS: dict[str, tuple[str, dict[str, Any]]] = {
    "revert": ("RevertChange", {"path": "a", "against": "head", "digest": "d"}),
    "stage": ("StageFiles", {"paths": ["a"], "staged": False}),
    "commit": ("CommitFiles", {"message": "Work"}),
    "push": ("PushBranch", {"url": "/there", "commit": COMMIT}),
    "pull-request": ("OpenPullRequest", {"url": "/there", "title": "T", "base": "main"}),
}


async def test_a_viewer_looks_and_changes_nothing(hub: Front, reviews: SmallReviews) -> None:
    base = "/api/sessions/s1"
    async with hub.client(Role.VIEWER) as client:
        diff = await client.get(f"{base}/diff/file", params={"path": "a", "against": "head"})
        listed = await client.get(f"{base}/files", params={"path": "inner"})
        read = await client.get(f"{base}/files/content", params={"path": "a"})
        closed = await client.get(f"{base}/files/content", params={"path": ".env"})
        search = {"text": "x", "contents": "true"}
        found = await client.get(f"{base}/files/search", params=search)
        remote = await client.get(f"{base}/remote")
        wrong = await client.get(f"{base}/diff/file", params={"path": "a", "against": "yesterday"})
        unknown = await client.get("/api/sessions/none/files")
        refused = [
            (await client.post(f"{base}/{path}", json=body)).status_code
            for path, (_, body) in ACTS.items()
        ]
    assert diff.json()["patch"] == "@@"
    assert (listed.json()["path"], read.json()["text"]) == ("inner", "x")
    assert (closed.status_code, closed.json()["code"]) == (409, "closed_by_policy")
    assert (found.status_code, remote.json()["branch"]) == (200, "main")
    assert (wrong.status_code, unknown.status_code) == (400, 404)
    assert refused == [403] * len(ACTS)
    assert reviews.asked == [("a", "head", None), ("x", True)]


async def test_an_operator_changes_and_is_named_for_it(hub: Front, reviews: SmallReviews) -> None:
    async with hub.client(Role.OPERATOR) as client:
        for path, (_, body) in ACTS.items():
            done = await client.post(f"/api/sessions/s1/{path}", json=body)
            assert (path, done.json()["text"]) == (path, "done")
            misspelt = await client.post(
                f"/api/sessions/s1/{path}", json={**body, "directory": "/"}
            )
            assert (path, misspelt.status_code) == (path, 400)
    assert reviews.asked == [(name, "the operator", "") for name, _ in ACTS.values()]


async def test_without_reviews_there_are_none(tmp_path: Path) -> None:
    async with front(tmp_path / "data") as bare, bare.client() as client:
        answer = await client.get("/api/sessions/s1/remote")
    assert answer.status_code == 404


async def test_the_checkpoints_of_a_session_are_its_prompts(hub: Front) -> None:
    blocks = b'[{"type": "text", "text": "second"}, {"type": "image"}]'
    await hub.deck.journal.append(
        "s1",
        [
            SessionCreated(spec=SessionSpec(directory="/work"), by="ada"),
            PromptQueued(prompt="p1", content=Raw(b'"first"'), by="ada"),
            PromptSent(prompt="p1", run="r", uuid="u1"),
            PromptQueued(prompt="p2", content=Raw(blocks), by="bob"),
            PromptSent(prompt="p2", run="r"),
            PromptQueued(prompt="p3", content=Raw(b"7"), by="bob"),
            PromptSent(prompt="p3", run="r"),
            PromptQueued(prompt="p4", content=Raw(b'"waits"'), by="bob"),
        ],
    )
    async with hub.client(Role.VIEWER) as client:
        found = (await client.get("/api/sessions/s1/checkpoints")).json()
        unknown = await client.get("/api/sessions/none/checkpoints")
    assert unknown.status_code == 404
    assert [(point["uuid"], point["by"], point["text"]) for point in found["checkpoints"]] == [
        ("u1", "ada", "first"), ("p2", "bob", "second"), ("p3", "bob", ""),
    ]  # fmt: skip
    assert found["in_place"] is False


async def test_a_stored_output_is_read_by_the_event_that_names_it(tmp_path: Path) -> None:
    own = "00000000-0000-0000-0000-000000000001"
    path = f"/home/ada/.claude/projects/-w/{own}/tool-results/b1.txt"
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    line = {
        "type": "user",
        "session_id": own,
        "message": {"content": [block]},
        "tool_use_result": {"persistedOutputPath": path},
    }
    async with front(tmp_path, reviews=SmallReviews()) as hub:
        said = Said(run="r", number=1, line=Raw(msgspec.json.encode(line)))
        await hub.deck.journal.append(
            "s1", [SessionCreated(spec=SessionSpec(directory="/srv"), by="ada"), said]
        )
        async with hub.client(Role.VIEWER) as viewer:
            found = await viewer.get("/api/sessions/s1/events/2/outputs/toolu_1?offset=5")
            assert found.json() == {"text": f"{own}/b1.txt@5", "size": 9, "next": None}
            for wrong in ("1/outputs/toolu_1", "2/outputs/toolu_2", "9/outputs/toolu_1"):
                assert (await viewer.get(f"/api/sessions/s1/events/{wrong}")).status_code == 404
        async with hub.client(None) as nobody:
            refused = await nobody.get("/api/sessions/s1/events/2/outputs/toolu_1")
            assert refused.status_code == 401
