"""Where paths lead: by their text, and sure only where no link can bend the way."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.word_reader import read_word
from quarterdeck.policy.shell.working_dir import MANY, UNKNOWN_DIR, WorkingDir, locate, normalize


def folders(where: WorkingDir) -> list[str]:
    return [path for path, _ in where.dirs]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a//b/./c", "/a/b/c"),
        ("/a/../b", "/b"),
        ("/../a", "/a"),
        ("a/../../b", "../b"),
        ("~/..", "~/.."),
        ("/", "/"),
        ("", ""),
    ],
)
def test_a_path_is_made_plain_by_its_text(path: str, expected: str) -> None:
    assert normalize(path) == expected


@pytest.mark.parametrize(
    ("text", "cwd", "paths", "sure"),
    [
        ("a/b", "/w", ("/w/a/b",), True),
        ("/a", "/w", ("/a",), True),
        ("../b", "/w", ("/b",), True),
        ("a/../b", "/w", ("/w/b",), False),
        ("~/a", "/w", ("~/a",), True),
        ("~other/a", "/w", (), True),
        ("a", None, ("a",), True),
        ("{a,/b}", "/w", ("/w/a", "/b"), True),
        ("*.py", "/w", ("/w/*.py",), True),
        ("*/a", "/w", ("/w/*/a",), False),
        ("$x", "/w", (), True),
        ("/proc/self/cwd/a", "/w", (), True),
        ("/proc/cpuinfo", "/w", ("/proc/cpuinfo",), True),
    ],
)
def test_a_word_names_a_file_where_that_is_known(
    text: str, cwd: str | None, paths: tuple[str, ...], sure: bool
) -> None:
    target = locate(read_word(text), cwd)
    assert target.source == text
    assert target.paths == paths
    assert target.sure == sure


def test_a_folder_that_the_script_went_into_may_be_a_link() -> None:
    inside = WorkingDir.start("/w").into(read_word("a"))
    assert folders(inside) == ["/w/a"]
    assert inside.target(read_word("b")).sure
    above = inside.target(read_word("../b"))
    assert above.paths == ("/w/b",)
    assert not above.sure


@pytest.mark.parametrize("text", ["$x", "a*", "-", "''"])
def test_after_going_to_what_is_not_known_only_whole_paths_are(text: str) -> None:
    gone = WorkingDir.start("/w").into(read_word(text))
    assert gone.dirs == ()
    assert gone.target(read_word("a")).paths == ()
    assert gone.target(read_word("/a")).paths == ("/a",)
    assert gone.target(read_word("~/a")).paths == ("~/a",)


def test_a_script_in_one_of_two_folders_may_mean_either_file() -> None:
    start = WorkingDir.start("/w")
    either = start.union(start.into(read_word("a")))
    assert either.target(read_word("b")).paths == ("/w/b", "/w/a/b")
    assert folders(start.union(start)) == ["/w"]
    assert start.union(UNKNOWN_DIR).dirs == ()
    assert UNKNOWN_DIR.union(start).dirs == ()


def test_a_script_in_too_many_folders_is_in_an_unknown_one() -> None:
    where = WorkingDir.start("/w")
    for number in range(MANY - 1):
        where = where.union(WorkingDir.start(f"/{number}"))
    assert len(where.dirs) == MANY
    assert where.union(WorkingDir.start("/more")).dirs == ()
