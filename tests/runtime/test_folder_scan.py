"""Looking below a folder ends, whatever is there."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.runtime.folder_scan import LONGEST_LOOK, look_below


def test_all_names_and_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c.txt").write_text("x")
    (tmp_path / ".env").write_text("x")
    (tmp_path / "up").symlink_to("..")
    found = look_below(str(tmp_path))
    assert found is not None
    paths, links = found
    assert sorted(paths) == [".env", "a", "a/b", "a/b/c.txt", "up"]
    assert links == [("up", str(tmp_path.resolve().parent))]


def test_some_folders_are_not_looked_into(tmp_path: Path) -> None:
    for folder in ("node_modules/x", ".git/objects/aa", ".git/hooks"):
        (tmp_path / folder).mkdir(parents=True)
    found = look_below(str(tmp_path), frozenset({"node_modules", ".git/objects"}))
    assert found is not None
    assert sorted(found[0]) == [".git", ".git/hooks", ".git/objects", "node_modules"]


def test_too_many_files_are_not_known(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("x")
    assert look_below(str(tmp_path), most=2) is None
    assert look_below(str(tmp_path), most=3) is not None


def test_a_look_that_takes_long_is_given_up(tmp_path: Path) -> None:
    times = iter((0.0, LONGEST_LOOK * 2))
    assert look_below(str(tmp_path), clock=lambda: next(times)) is None


def test_what_is_no_folder_has_nothing_below_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert look_below(str(tmp_path / "a")) == ([], [])
    assert look_below(str(tmp_path / "none")) == ([], [])
    assert look_below("a\0b") is None
