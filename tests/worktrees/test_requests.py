"""Requests to a machine: what a runner looks up or does for the hub, and how it refuses."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import (
    MACHINE_REQUESTS,
    Changes,
    Folders,
    MachineRequestRefused,
    SeeChanges,
    SeeFolders,
    Settled,
    SettleTree,
    TreeAction,
)
from quarterdeck.protocol.runner_frames import EARLIER
from quarterdeck.protocol.sandbox import SANDBOX
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.testing import fake
from quarterdeck.worktrees.folders import see_folders
from support.repositories import make_repository
from support.runners import program, running
from support.scripted_hub import ScriptedHub, scripted_hub

pytestmark = pytest.mark.anyio


def refusal(answer: tuple[bool, bytes]) -> MachineRequestRefused:
    refused, line = answer
    assert refused
    return msgspec.json.decode(line, type=MachineRequestRefused)


async def settled(hub: ScriptedHub, repository: Path, action: TreeAction) -> tuple[bool, bytes]:
    return await hub.request(SettleTree(directory=str(repository), branch="task", action=action))


async def test_a_runner_says_what_it_can_and_what_its_clock_says(tmp_path: Path) -> None:
    """MACHINE-10"""
    before = int(time.time() * 1000)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        assert (await hub.met()).can == (MACHINE_REQUESTS, SANDBOX, EARLIER)
        await hub.until(lambda: hub.vitals)
        assert before <= hub.vitals[0].at <= time.time() * 1000 + 1


@pytest.mark.process
async def test_a_worktree_is_seen_while_its_agent_works_and_discarded_only_after(
    tmp_path: Path,
) -> None:
    """MACHINE-11, TREE-6, TREE-7"""
    repository = make_repository(tmp_path / "project")
    claude = program(tmp_path / "cli", [fake.Serve()])
    spec = SessionSpec(directory=str(repository), worktree="task", claude=claude)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        folder = (await hub.started("one")).directory
        assert folder is not None
        (Path(folder) / "made").write_text("work\n")
        refused, line = await hub.request(SeeChanges(directory=str(repository), branch="task"))
        changes = msgspec.json.decode(line, type=Changes)
        assert (refused, [file.path for file in changes.files]) == (False, ["made"])
        assert refusal(await settled(hub, repository, TreeAction.DISCARD)).code == "running"
        await hub.stop("one")
        await hub.ended("one")
        refused, line = await settled(hub, repository, TreeAction.DISCARD)
        done = msgspec.json.decode(line, type=Settled)
        assert (refused, done.removed, done.saved is None) == (False, True, False)
        hub.check()


@pytest.mark.process
async def test_what_cannot_be_done_is_refused_with_a_code_and_the_link_goes_on(
    tmp_path: Path,
) -> None:
    """MACHINE-11"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        codes = [
            refusal(await hub.request(request)).code
            for request in (
                SeeChanges(directory=str(tmp_path / "none")),
                SeeChanges(directory=str(tmp_path)),
                SeeFolders(path="/", roots=(str(tmp_path),)),
                b'{"errand":"of a newer hub"}',
                b"no errand",
            )
        ]
        assert codes == ["no_such_folder", "git_failed", "no_such_folder", "unknown", "unknown"]
        assert len(hub.hellos) == 1
        hub.check()


# --- folders ---


@pytest.mark.process
def test_folders_are_listed_below_the_roots_and_nowhere_else(tmp_path: Path) -> None:
    """MACHINE-12"""
    root = tmp_path / "root"
    make_repository(root / "project")
    (root / ".hidden").mkdir()
    (root / "file").write_text("")
    (tmp_path / "outside").mkdir()
    (root / "leads-out").symlink_to(tmp_path / "outside")
    roots = (str(root), str(tmp_path / "not-there"))
    listed = see_folders(SeeFolders(roots=roots))
    assert [(folder.path, folder.repository) for folder in listed.folders] == [(str(root), False)]
    inside = see_folders(SeeFolders(path=str(root), roots=roots))
    assert [(each.name, each.path, each.repository) for each in inside.folders] == [
        ("project", str(root / "project"), True)
    ]
    assert (inside.path, inside.parent) == (str(root), None)
    deeper = see_folders(SeeFolders(path=f"{root}/project/inner/..", roots=roots))
    assert (deeper.path, deeper.parent) == (str(root / "project"), str(root))
    for outside in (
        str(tmp_path),
        str(root / ".." / "outside"),
        str(root / "leads-out"),
        str(root / "none"),
        str(root / "file"),
        "/",
        "a\0b",
        "relative",
    ):
        with pytest.raises(Conflict) as refused:
            see_folders(SeeFolders(path=outside, roots=roots))
        assert refused.value.code == "no_such_folder"


def test_without_roots_the_home_folder_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MACHINE-12"""
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    found = see_folders(SeeFolders(path="~"))
    assert [folder.name for folder in found.folders] == ["project"]
    with pytest.raises(Conflict):
        see_folders(SeeFolders(path="/usr"))


def test_names_that_are_no_text_and_a_great_many_do_no_harm(tmp_path: Path) -> None:
    """MACHINE-12"""
    (tmp_path / os.fsdecode(b"odd-\xff")).mkdir()
    for number in range(1005):
        (tmp_path / f"f{number:04}").mkdir()
    found = see_folders(SeeFolders(path=str(tmp_path), roots=(str(tmp_path),)))
    assert (len(found.folders), found.left_out) == (1000, 6)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Folders) == found
