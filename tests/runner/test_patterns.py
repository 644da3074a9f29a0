"""Patterns for every depth of a project are looked up in one walk, with bounds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.runner import patterns
from quarterdeck.runner.patterns import look_up
from quarterdeck.runner.sandbox import LookAhead, with_paths
from support.bounds import SECONDS


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (
        ".env",
        "a/.env",
        "a/.env.local",
        "a/b/server.pem",
        "a/.config/gh/hosts.yml",
        "other/gh/x",
        "keys.d/x.key/inside",
        ".git/deep/.env",
        "node_modules/package/.env",
        "env/pyvenv.cfg",
        "env/lib/cacert.pem",
        "plain.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")
    (tmp_path / "link").symlink_to("/etc")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("./**/.env", [".env", "a/.env"]),
        ("./**/.env.*", ["a/.env.local"]),
        ("./**/*.pem", ["a/b/server.pem"]),
        ("./**/.config/gh", ["a/.config/gh"]),
        ("./**/.config/gh/**", ["a/.config/gh"]),
        ("./**/*.d/x.key", ["keys.d/x.key"]),
        ("./**/s*r.pem", ["a/b/server.pem"]),
        ("./**/[.]env", [".env", "a/.env"]),
        ("./**/passwd", []),
    ],
)
def test_a_pattern_finds_what_it_means_at_every_depth(
    project: Path, pattern: str, found: list[str]
) -> None:
    assert look_up(str(project), [pattern]).paths == {
        pattern: tuple(f"{project}/{name}" for name in found)
    }


def test_other_patterns_are_left_to_the_sandbox(project: Path) -> None:
    others = ("~/.ssh/**", "/etc/shadow*", "./x", "./**/a/**/b", "./**")
    assert look_up(str(project), others).paths == {}
    request = SandboxRequest(deny_read=("./**/.env", *others), deny_edit=("./**/*.pem",))
    made, gaps = with_paths(request, str(project))
    assert made.deny_read == (f"{project}/.env", f"{project}/a/.env", *others)
    assert made.deny_edit == (f"{project}/a/b/server.pem",)
    assert gaps == ()


@pytest.mark.parametrize("limit", ["MOST_SEEN", "MOST_FOUND"])
def test_a_project_that_is_too_large_is_told_and_the_top_is_looked_up(
    project: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(patterns, limit, 1 if limit == "MOST_FOUND" else 8)
    looked = look_up(str(project), ["./**/.env"])
    assert not looked.complete
    assert f"{project}/.env" in looked.paths["./**/.env"]
    _, gaps = with_paths(SandboxRequest(deny_read=("./**/.env",)), str(project))
    assert gaps == (f"{project}/**: not all of its files were looked up",)


def test_a_project_that_is_not_there_has_nothing_in_it(tmp_path: Path) -> None:
    assert look_up(f"{tmp_path}/none", ["./**/.env"]).paths == {"./**/.env": ()}


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all folders had been left alone for a while."""
    monkeypatch.setattr(patterns, "SETTLED", -SECONDS)


def test_folders_that_have_not_changed_are_not_read_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    first = look_up(str(project), ["./**/.env"])
    read: list[str] = []
    scan = patterns._scan

    def noted(path: str, *rest: Any) -> Any:
        read.append(path)
        return scan(path, *rest)

    monkeypatch.setattr(patterns, "_scan", noted)
    assert look_up(str(project), ["./**/.env"]) == first
    assert read == []
    (project / "a" / "b" / ".env").write_text("text\n")
    assert f"{project}/a/b/.env" in look_up(str(project), ["./**/.env"]).paths["./**/.env"]
    assert read == [f"{project}/a/b"]


def write(at: Path) -> None:
    (at / "other" / ".env").write_text("")


def move_in(at: Path) -> None:
    (at / "plain.txt").rename(at / "other" / ".env")


def move_away(at: Path) -> None:
    (at / "a" / ".env").rename(at / "a" / "env")


def move_the_folder(at: Path) -> None:
    (at / "a").rename(at / "moved")


def link(at: Path) -> None:
    os.link(at / "plain.txt", at / "other" / "gh" / ".env")


def remove(at: Path) -> None:
    shutil.rmtree(at / "a")


def make_a_folder(at: Path) -> None:
    (at / "new" / "deep").mkdir(parents=True)
    (at / "new" / "deep" / ".env").write_text("")


def put_a_link_in_its_place(at: Path) -> None:
    (at / "a").rename(at / "b")
    (at / "a").symlink_to(at / "other")


def set_the_time_back(at: Path) -> None:
    """As a program may do that wants to hide what it made."""
    before = (at / "a" / "b").stat()
    (at / "a" / "b" / ".env").write_text("")
    os.utime(at / "a" / "b", ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = (
    write, move_in, move_away, move_the_folder, link, remove, make_a_folder,
    put_a_link_in_its_place, set_the_time_back,
)  # fmt: skip


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_kept_of_a_walk_never_differs_from_a_new_one(
    change: Callable[[Path], object], settled: bool, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if settled:
        settle(monkeypatch)
    before = look_up(str(project), ["./**/.env"])
    change(project)
    again = look_up(str(project), ["./**/.env"])
    patterns.forget()
    assert again == look_up(str(project), ["./**/.env"])
    assert again != before


def test_a_folder_that_was_changed_a_moment_ago_is_read_again(project: Path) -> None:
    look_up(str(project), ["./**/.env"])
    kept = patterns._kept[(str(project), "./**/.env")]
    assert {folder.stamp for folder in kept.values()} == {None}


def test_folders_of_a_few_projects_are_kept(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_KEPT", 2)
    for name in ("a", "other", "keys.d"):
        look_up(str(project / name), ["./**/.env"])
    assert [key[0] for key in patterns._kept] == [f"{project}/other", f"{project}/keys.d"]


@pytest.mark.anyio
async def test_a_project_is_looked_through_ahead(project: Path) -> None:
    request = SandboxRequest(deny_read=("./**/.env",), deny_edit=("./x",))
    ahead = LookAhead(request, f"{project}/")
    assert ahead.found_in(str(project)) is None
    await ahead.look_up()
    assert ahead.found_in(str(project)) == with_paths(request, str(project))
    assert ahead.found_in(f"{project}/a") is None
    # Later starts look for themselves: it takes little time, and what is new is found.
    again = LookAhead(request, str(project))
    await again.look_up()
    assert again.found_in(str(project)) is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("request_", "known"),
    [(None, True), (SandboxRequest(mode="off"), True), (SandboxRequest(), False)],
    ids=["no request", "off", "no folder yet"],
)
async def test_what_is_not_needed_is_not_looked_up_ahead(
    project: Path, request_: SandboxRequest | None, known: bool
) -> None:
    ahead = LookAhead(request_, str(project) if known else None)
    await ahead.look_up()
    assert ahead.found_in(str(project)) is None
    assert str(project) not in {key[0] for key in patterns._kept}
