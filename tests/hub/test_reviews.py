"""A review by way of the hub, with real git: who may do what, and what the journal says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.domain.errors import Conflict, Forbidden
from quarterdeck.protocol.events import FolderChanged
from quarterdeck.protocol.machine_requests import (
    Against,
    CommitFiles,
    PushBranch,
    RevertChange,
    StageFiles,
)
from quarterdeck.protocol.sessions import SessionSpec, agent_name
from quarterdeck.testing import fake
from support.hub_house import house
from support.processes import Processes
from support.repositories import git, make_repository
from support.runners import program

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_what_a_session_changed_in_a_folder_is_reviewed_undone_committed_and_journalled(
    tmp_path: Path, processes: Processes
) -> None:
    repository = make_repository(tmp_path / "project")
    (repository / "mine").write_text("before the session\n")
    claude = program(tmp_path / "cli", [fake.Serve()])
    async with house(tmp_path, processes) as home:
        reviews, service = home.hub.reviews, home.hub.worktree_service
        session = await home.new(SessionSpec(directory=str(repository), claude=claude))
        await home.until(session, lambda view: view.directory is not None)
        (repository / "readme").write_text("one\n2\nthree\n")
        (repository / ".env").write_text("KEY=hunter2\n")
        (repository / "made").write_text("by a shell\n")

        changes = await service.changes(session)
        assert changes.since == "start"
        assert [file.path for file in changes.files] == [".env", "made", "readme"]
        assert changes.closed == (".env",)
        assert "hunter2" not in changes.text
        assert "+by a shell" in changes.text
        diff = await reviews.file_change(session, "readme", against=Against.SESSION)
        assert "-two\n+2\n" in diff.patch
        for secret in (
            reviews.file_change(session, ".env", against=Against.SESSION),
            reviews.read(session, ".env"),
        ):
            with pytest.raises(Conflict, match="closed by the policy"):
                await secret
        (repository / "link").symlink_to(".env")
        assert (await reviews.read(session, "link")).state.value == "link"
        assert (await reviews.read(session, "made")).text == "by a shell\n"
        names = [entry.name for entry in (await reviews.entries(session, "")).entries]
        assert {"inner", "readme", ".env"} <= set(names)
        found = await reviews.find(session, "hunter2", contents=True)
        assert found.matches == ()
        assert (await reviews.find(session, "env", contents=False)).matches[0].path == ".env"

        agent = agent_name("other")
        with pytest.raises(Forbidden):
            await reviews.act(session, StageFiles(directory="", paths=("made",)), by=agent)
        undo = RevertChange(directory="", path="readme", digest=diff.digest)
        done = await reviews.act(session, undo, by="ada")
        assert (repository / "readme").read_text() == "one\ntwo\nthree\n"
        await reviews.act(session, StageFiles(directory="", paths=("made",)), by="ada")
        unstage = StageFiles(directory="", paths=("made",), staged=False)
        await reviews.act(session, unstage, by="ada")
        await reviews.act(session, StageFiles(directory="", paths=("made",)), by="ada")
        made = await reviews.act(session, CommitFiles(directory="", message="Made"), by="bob")
        remote = await reviews.remote(session)
        assert (remote.commit, remote.problem) == (
            made.commit,
            "no_remote",
        )
        with pytest.raises(Conflict, match="no remote"):
            await reviews.act(session, PushBranch(directory="", url="x", commit="y"), by="bob")
        events = [stored.event for stored in await home.hub.events(session)]
        acts = [event for event in events if isinstance(event, FolderChanged)]
        assert [(event.action, event.by) for event in acts] == [
            ("revert", "ada"), ("stage", "ada"), ("unstage", "ada"), ("stage", "ada"),
            ("commit", "bob"),
        ]  # fmt: skip
        assert (acts[0].saved, acts[-1].commit) == (done.saved, made.commit)
        assert git(repository, "show", f"{done.saved}:readme") == "one\n2\nthree"
