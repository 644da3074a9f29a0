"""sed, awk, jq, sqlite3, editors and package runners: where a command's words hold code."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.programs import look_up
from support.shell_words import HERE, said, words


def known(text: str, *more: str) -> ProgramEffects:
    return look_up(words(text, *more), HERE, None)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("sed s/a/b/ c", ["reads /w/c"]),
        ("sed -n p c d", ["reads /w/c", "reads /w/d"]),
        ("sed p -n c", ["reads /w/c"]),
        ("sed -e p -e d c", ["reads /w/c"]),
        ("sed -nEe p c", ["reads /w/c"]),
        ("sed --expr=p c", ["reads /w/c"]),
        ("sed -s -z -u p c", ["reads /w/c"]),
    ],
)
def test_sed_that_prints_only_looks(text: str, effects: list[str]) -> None:
    found = known(text)
    assert said(found.effects) == effects
    assert found.looks


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("sed -i s/a/b/ c", ["reads /w/c", "writes /w/c"]),
        ("sed -ni p c", ["reads /w/c", "writes /w/c"]),
        ("sed -bi p c", ["reads /w/c", "writes /w/c"]),
        ("sed --in-pl=.old s/a/b/ c", ["reads /w/c", "writes /w/c"]),
        ("sed -i/x/* p c", ["reads /w/c", "writes /w/c", "runs -i"]),
        ("sed -f a c", ["reads /w/a", "runs -f", "reads /w/c"]),
        ("sed -bf a c", ["reads /w/a", "runs -bf", "reads /w/c"]),
        ("sed 's/a/b/e' c", ["runs 's/a/b/e'", "reads /w/c"]),
        ("sed -Ene 1e c", ["runs 1e", "reads /w/c"]),
        ("sed $x c", ["runs $x", "reads ?", "writes ?", "reads /w/c"]),
        ("sed '/a/w/x' c", ["writes /x", "reads /w/c"]),
        ("sed '1r.env' c", ["reads /w/.env", "reads /w/c"]),
        ("sed -i '' 'e' c", ["runs 'e'"]),
        ("sed --unknown p c", ["runs --unknown"]),
        ("sed -l p .env", ["runs .env", "reads /w/.env"]),
    ],
)
def test_what_else_sed_does_is_told(text: str, effects: list[str]) -> None:
    found = known(text)
    assert not found.looks or all(each.startswith("reads") for each in effects)
    assert set(effects) <= set(said(found.effects))


@pytest.mark.parametrize("name", ["awk", "gawk", "mawk", "nawk"])
@pytest.mark.parametrize(
    ("given", "effects", "looks"),
    [
        ("'{print$1}' a", ["reads /w/a"], True),
        ("-F : '{print}' a", ["reads /w/a"], True),
        ("-F, -v x=1 '{print}' a", ["reads /w/a"], True),
        ("'{print}' x=1 a", ["reads /w/x=1", "reads /w/a"], True),
        ("1 .en[v=]", ["reads /w/.en[v=]"], True),
        ("'{print>\"a\"}'", ["writes /w/a"], False),
        ("'{system(\"a\")}'", ["runs '{system(\"a\")}'"], False),
        ("-f a b", ["reads /w/a", "runs -f", "reads /w/b"], False),
        ("-Wexec a", ["runs -W"], False),
        ("$x", ["runs $x"], False),
    ],
)
def test_awk_is_judged_by_its_program(
    name: str, given: str, effects: list[str], looks: bool
) -> None:
    found = known(f"{name} {given}")
    assert set(effects) <= set(said(found.effects))
    assert found.looks is looks


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("gawk -bf a", ["runs -bf", "reads /w/a"]),
        ("gawk --fil=a", ["runs --fil", "reads /w/a"]),
        ("gawk --inc=a 1", ["runs --inc"]),
        ("gawk --sour='BEGIN{system(1)}'", ["runs BEGIN{system(1)}"]),
        ("gawk -o/x 1", ["writes /x"]),
        ("gawk -p 1", ["writes ?"]),
        ("gawk -W version", ["runs -W"]),
    ],
)
def test_options_of_gawk_that_run_or_write_are_told(text: str, effects: list[str]) -> None:
    found = known(text)
    assert set(effects) <= set(said(found.effects))
    assert not found.looks


@pytest.mark.parametrize(
    ("text", "effects", "looks"),
    [
        ("jq .a b", ["reads /w/b"], True),
        ("jq -r .env b", ["reads /w/b"], True),
        ("jq -n --arg a .env .", [], True),
        ("jq --slurpfile a b . c", ["reads /w/b", "reads /w/c"], True),
        ("jq --rawfile a .env -n .", ["reads /w/.env"], True),
        ("jq -n . --args .env", [], True),
        ("jq -f a b", ["runs -f", "reads /w/a", "reads /w/b"], False),
        ("jq -L a .", ["runs -L"], False),
        ("jq env", ["runs env"], False),
        ("jq --rawf a b .", ["runs --rawf", "reads /w/b"], False),
    ],
)
def test_jq_is_judged_by_its_filter_and_options(text: str, effects: list[str], looks: bool) -> None:
    found = known(text)
    assert set(effects) <= set(said(found.effects))
    assert found.looks is looks


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("sqlite3 a .tables", ["reads /w/a", "writes /w/a"]),
        ("sqlite3 /x/a select", ["reads /x/a", "writes /x/a"]),
        ("sqlite3 a", ["runs -"]),
        ("sqlite3", ["runs -"]),
        ("sqlite3 file:/x/a select", ["runs file:/x/a", "reads /x/a"]),
        ("sqlite3 a '.sh'", ["runs '.sh'"]),
        ("sqlite3 -cmd '.sh' a select", ["runs '.sh'"]),
        ("sqlite3 -init b a select", ["runs -init", "reads /w/b"]),
        ("sqlite3 --init b a select", ["runs --init"]),
        ("sqlite3 :memory: \"readfile('/x')\"", ["reads /x"]),
    ],
)
def test_sqlite_may_change_its_database_and_more(text: str, effects: list[str]) -> None:
    found = known(text)
    assert set(effects) <= set(said(found.effects))
    assert not found.looks


def test_sqlite_that_may_only_read_only_looks() -> None:
    found = known("sqlite3 -readonly a", "'select 1'")
    assert said(found.effects) == ["reads /w/a"]
    assert found.looks
    assert not known("sqlite3 -readonly a").looks


@pytest.mark.parametrize("name", ["ed", "ex", "vi", "vim", "nvim", "emacs"])
def test_editors_take_commands_from_their_input(name: str) -> None:
    found = said(known(f"{name} .env").effects)
    assert {"runs -", "reads /w/.env", "writes /w/.env"} <= set(found)
    assert known(f"{name} --version").looks


def test_a_runner_of_packages_is_asked_about_where_it_runs_code_or_what_is_not_known() -> None:
    assert said(known("npx prettier a --check").effects) == []
    assert said(known("npx -c a").effects) == ["runs -c"]
    assert said(known("npx --cal a").effects) == ["runs --cal"]
    assert "runs $x" in said(known("uvx $x").effects)
    assert not known("npx prettier").looks


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("sed '1eid' a", ("id",)),
        ("sed --expression=1eid a", ("id",)),
        ("sed p e2e.test", ()),
        ("awk 'BEGIN{system(\"id\")}'", ("id",)),
        ("awk '{\"id\"|getline}'", ("id",)),
        ("awk '{print|\"id\"}'", ("id",)),
        ("sqlite3 a '.shellid'", ()),
    ],
)
def test_commands_in_a_program_are_scripts(text: str, scripts: tuple[str, ...]) -> None:
    assert known(text).scripts == scripts


def test_the_commands_of_sqlite_are_scripts() -> None:
    assert known("sqlite3 a", "'.shell id'").scripts == ("id",)


def test_a_package_from_elsewhere_must_be_named() -> None:
    assert said(known("npx ./evil").effects) == ["runs ./evil", "reads /w/evil"]
    assert "runs github:a/b" in said(known("npx github:a/b").effects)


@pytest.mark.parametrize(
    ("text", "looks"),
    [("yq .a b", True), ("yq -i .a b", False), ("yq -n env(A)", False), ('yq load("a")', False)],
)
def test_yq_is_judged_as_jq_is(text: str, looks: bool) -> None:
    assert known(text.partition(" ")[0], *(f"'{each}'" for each in text.split()[1:])).looks is looks


def test_yq_takes_its_filter_for_a_file_that_has_that_name() -> None:
    assert said(known("yq .env").effects) == ["reads /w/.env"]


@pytest.mark.parametrize(
    ("given", "effects", "looks"),
    [
        (None, {"runs -"}, False),
        ("select 1;", {"reads /w/a"}, True),
        (".shell id", {"runs -"}, False),
        (".output /x", {"writes /x"}, False),
    ],
)
def test_the_input_of_sqlite_is_read_where_it_is_known(
    given: str | None, effects: set[str], looks: bool
) -> None:
    found = look_up(words("sqlite3 -readonly a"), HERE, None, given)
    assert effects <= set(said(found.effects))
    assert found.looks is looks


def test_gawk_that_changes_files_in_place_writes_them() -> None:
    assert "writes /w/a" in said(known("gawk -i inplace 1 a").effects)
    assert "writes /w/a" in said(known("gawk -i inplace -e 1 a").effects)
