"""The pieces of a command: words with substitutions, assignments, redirections, here-strings."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell import Part, read
from support.shell_words import paths


def only(command: str) -> Part:
    (part,) = read(command, cwd="/w").parts
    return part


def whys(command: str) -> list[str]:
    return [problem.why for problem in read(command, cwd="/w").problems]


def test_redirections_are_reads_and_writes() -> None:
    part = only("a < in > out 2>> /log 2>&1 >/dev/null")
    assert paths(part.reads) == [("/w/in",)]
    assert paths(part.writes) == [("/w/out",), ("/log",)]


@pytest.mark.parametrize(
    ("command", "reads", "writes"),
    [
        ("a >| b", [], ["/w/b"]),
        ("a &> b", [], ["/w/b"]),
        ("a &>> b", [], ["/w/b"]),
        ("a 2>&-", [], []),
        ("a <<< b", [], []),
        ("a < /dev/null", [], []),
        ("a > ~/b", [], ["~/b"]),
        ("a <<E > b\nE", [], ["/w/b"]),
    ],
)
def test_every_kind_of_redirection_is_read(
    command: str, reads: list[str], writes: list[str]
) -> None:
    part = only(command)
    assert [path for each in paths(part.reads) for path in each] == reads
    assert [path for each in paths(part.writes) for path in each] == writes


def test_a_file_that_is_not_known_is_written_all_the_same() -> None:
    assert paths(only("a > $x").writes) == [()]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("a <> b", "not understood"),
        ("a > /dev/tcp/host/80", "opens a connection"),
        ("x=$(a); echo $((x))", "arithmetic"),
        ("echo ${x@P}", "again"),
        ("echo ${!x}", "again"),
        ("echo ${x[y]}", "index"),
        ("x[$y]=1", "index"),
    ],
)
def test_what_is_evaluated_or_connected_is_a_problem(command: str, why: str) -> None:
    assert any(why in each for each in whys(command))


@pytest.mark.parametrize("command", ["echo $((1 + 2))", "echo ${x:-a}", "x=1 a", "x[1]=2", "x=(a)"])
def test_plain_sums_expansions_and_assignments_are_none(command: str) -> None:
    assert whys(command) == []


def test_assignments_before_a_command_are_kept_with_their_values() -> None:
    part = only("x=1 y='a b' z= a")
    assert [(each.name, each.value.text) for each in part.assignments] == [
        ("x", "1"),
        ("y", "a b"),
        ("z", ""),
    ]


def test_commands_in_words_values_and_here_strings_are_found() -> None:
    for command in ('a "$(b)"', "x=$(b) a", "a <<< $(b)", "a > $(b)", "a ${x:-$(b)}", "x=($(b)) a"):
        assert "b" in [part.text for part in read(command, cwd="/w").parts], command


def test_a_place_is_told_in_characters_also_behind_wide_ones() -> None:
    command = "echo 'äöü€'; x=a; echo $((x))"
    (problem,) = read(command).problems
    assert command[slice(*problem.span)] == "$((x))"
