"""Interpreters, editors, awk and sed: where a command's words hold code."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.languages import LANGUAGES, _sed_safe, language
from support.shell_words import HERE, said, words


def known(text: str, *more: str) -> ProgramEffects:
    given = words(text, *more)
    found = LANGUAGES.get(given[0].source) or language(given[0].source)
    assert found is not None
    return found(given, HERE)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("python -c a", ["runs -c"]),
        ("python3.11 -c a", ["runs -c"]),
        ("python a.py", ["reads /w/a.py"]),
        ("python a.py -c b", ["reads /w/a.py"]),
        ("python -X dev a.py --flag", ["reads /w/a.py"]),
        ("python -m pytest", []),
        ("python", ["runs -"]),
        ("python -", ["runs -"]),
        ("python $x", ["reads ?", "runs $x"]),
        ("node --eval=a", ["runs --eval"]),
        ("node --ev a", ["runs --eval"]),
        ("node a.js", ["reads /w/a.js"]),
        ("perl -n -e a", ["runs -e", "runs -n"]),
        ("vim +q a", ["runs +"]),
        ("deno eval a", ["runs eval"]),
    ],
)
def test_code_in_the_words_of_an_interpreter_is_told(text: str, effects: list[str]) -> None:
    assert sorted(said(known(text).effects)) == sorted(effects)


@pytest.mark.parametrize("name", ["pythonic", "py", "3", "cat", "perlx", ""])
def test_other_programs_are_no_interpreters(name: str) -> None:
    assert language(name) is None


@pytest.mark.parametrize(
    ("given", "effects"),
    [
        ("'{print $1}' a", ["reads /w/a"]),
        ("-F : '{print}' a x=1", ["reads /w/a"]),
        ("'{system(\"a\")}'", ["runs system"]),
        ("'{print>\"a\"}'", ["runs >"]),
        ("'{\"a\"|getline}'", ["runs |"]),
        ("-f a b", ["runs -f"]),
        ("$x", ["runs $x"]),
    ],
)
def test_awk_runs_and_writes_by_its_program(given: str, effects: list[str]) -> None:
    # The programs hold no blanks, but for the one that prints.
    program = given.replace("print $1", "print$1")
    for name in ("awk", "gawk", "mawk"):
        assert said(known(f"{name} {program}").effects) == effects


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("sed s/a/b/ c", ["reads /w/c"]),
        ("sed -i s/a/b/ c", ["writes /w/c"]),
        ("sed -ni p c", ["writes /w/c"]),
        ("sed --in-place=.old s/a/b/ c", ["writes /w/c"]),
        ("sed -e p -e d c", ["reads /w/c"]),
        ("sed -f a c", ["runs -f", "reads /w/c"]),
        ("sed -es/a/b/ c", ["runs -e", "reads /w/c"]),
        ("sed 's/a/b/e' c", ["runs 's/a/b/e'", "reads /w/c"]),
        ("sed $x c", ["runs $x", "reads /w/c"]),
    ],
)
def test_what_sed_reads_changes_and_runs_is_told(text: str, effects: list[str]) -> None:
    assert said(known(text).effects) == effects


@pytest.mark.parametrize(
    "script",
    ["p", "1,3d", "$!d", "/a/,/b/p", "s/a/b/g", "s|a|b|2", "s#a#b#;p", "y/ab/ba/", "1q", "", "p;d"],
)
def test_scripts_of_sed_that_only_change_text_are_safe(script: str) -> None:
    assert _sed_safe(script)


@pytest.mark.parametrize(
    "script", ["w x", "r x", "e", "1e a", "s/a/b/w x", "s/a/b/e", "p;w x", "s/a/b", "W x", "R x"]
)
def test_scripts_of_sed_that_use_files_or_commands_are_not(script: str) -> None:
    assert not _sed_safe(script)


def test_a_script_of_sed_that_is_mostly_blanks_takes_no_time() -> None:
    # This would take longer than anybody lives if it backtracked.
    assert _sed_safe("p\n\n\n\np ; \n d\n")
    assert not _sed_safe("p\n\n\n\n" * 99 + "w x")
    assert not _sed_safe("1 , 2  ! p" + " \n ;" * 100 + "w")


def test_a_runner_of_packages_is_asked_about_where_it_runs_code_or_what_is_not_known() -> None:
    assert known("npx prettier a") == ProgramEffects()
    assert said(known("npx -c a").effects) == ["runs -c"]
    assert known("uvx $x").doubts != ()
