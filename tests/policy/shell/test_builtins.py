"""The shell's own commands: where they go, what they set, and what they evaluate."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.builtins import BUILTINS
from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.working_dir import UNKNOWN_DIR
from support.shell_words import HERE, said, words


def known(text: str, *more: str) -> ProgramEffects:
    given = words(text, *more)
    return BUILTINS[given[0].source](given, HERE)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("cd a", "/w/a"),
        ("cd -P a/b", "/w/a/b"),
        ("cd -- /x", "/x"),
        ("chdir ..", "/"),
        ("cd", "~"),
        ("cd ~/a", "~/a"),
    ],
)
def test_cd_goes_where_it_says(text: str, folder: str) -> None:
    found = known(text)
    assert found.moves is not None
    assert [path for path, _ in found.moves.dirs] == [folder]
    assert said(found.effects) == [f"reads {folder}"]


@pytest.mark.parametrize("text", ["cd -", "cd $x", "cd a b", "cd a*", "pushd a", "popd"])
def test_after_some_ways_to_go_the_folder_is_not_known(text: str) -> None:
    found = known(text)
    assert found.moves is not None
    assert found.moves.dirs == UNKNOWN_DIR.dirs


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("export PATH=/x", ["alters PATH="]),
        ("export PATH", ["alters PATH"]),
        ("export LANG=C", []),
        ("declare -x EDITOR=vi TZ=UTC", ["alters EDITOR="]),
        ("readonly note", []),
        ("set -e", []),
        ("set -euo pipefail", []),
        ("set -k", ["alters -k"]),
        ("set -o posix", ["alters -o"]),
        ("shopt -s dotglob", ["alters -s"]),
        ("set", []),
    ],
)
def test_what_names_and_options_change_is_told(text: str, effects: list[str]) -> None:
    found = known(text)
    assert said(found.effects) == effects
    assert found.doubts == ()


@pytest.mark.parametrize(
    "text",
    [
        "export $name",
        "declare -n a=b",
        "export -f a",
        "export a[1]=2",
        "alias a=b",
        "enable -n cd",
        "let a=b",
        "printf -v a",
        "printf $x",
        "mapfile -C a",
        "source $x",
        "read a[$(b)]",
        "test -v $x",
        "[ $x -eq 1 ]",
    ],
)
def test_what_may_run_or_rename_is_a_doubt(text: str) -> None:
    # A word in which a command is substituted is not known, so it counts where it is quoted.
    given = text.replace("a[$(b)]", "'a[$(b)]'")
    assert known(given).doubts != ()


@pytest.mark.parametrize(
    "text", ["printf %s $x", "read -r a", "unset a", "test -f $x", "[ $x = 1 ]", "mapfile a"]
)
def test_what_evaluates_nothing_is_no_doubt(text: str) -> None:
    found = known(text)
    assert found.doubts == ()
    assert found.effects == ()


def test_a_file_that_is_sourced_is_read_and_run() -> None:
    for text in ("source a", ". a"):
        found = known(text)
        assert said(found.effects) == ["runs a", "reads /w/a"]
    assert known("source") == ProgramEffects()


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("read -r line", True),
        ("read -p name: a b", True),
        ("read PATH", False),
        ("read -r GIT_DIR", False),
        ("read $x", False),
        ("read a[1]", False),
        ("printf %s a", True),
        ("printf -v a %s b", False),
        ("set -e", True),
        ("set -o pipefail", True),
        ("set -k", False),
        ("export A=1", False),
    ],
)
def test_what_sets_nothing_that_a_program_sees_only_looks(text: str, looks: bool) -> None:
    found = known(text)
    assert (found.looks and not found.doubts and not found.effects) is looks


def test_going_back_by_the_text_of_a_path_is_sure() -> None:
    for text, sure in (("cd ..", True), ("cd ../..", True), ("cd -P ..", False)):
        inside = HERE.into(words("x y")[0])
        found = BUILTINS["cd"](words(text), inside)
        assert [each.target.sure for each in found.effects if each.target] == [sure], text
