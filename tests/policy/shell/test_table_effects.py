"""What a command does, by the table of its program: to allow it, and to stop it."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects, reads
from quarterdeck.policy.shell.script import Effect, EffectKind, Word
from quarterdeck.policy.shell.table_effects import MOST_FILES, assign, effects_by_table
from quarterdeck.policy.shell.tables import Operand, read_table, table_of
from quarterdeck.policy.shell.working_dir import WorkingDir
from support.shell_words import HERE, said, words

READS = """
about = "a program that reads"
looks = true
operands = "skip read*"
deep_default = "."
[options]
"-n" = "flag"
"-e --regexp" = "value instead"
"-f --file" = "read instead"
"-r" = "flag deep"
"--names" = "read names"
"""
WRITES = """
about = "a program that writes"
operands = "read* write"
[options]
"-i" = "flag value? in-place"
"-t" = "folder"
"-T" = "flag onto"
"-r" = "flag deep"
"-C" = "chdir"
"--log" = "write"
"--filter" = "run"
"--set" = "value alter"
"-O" = "flag write"
"-d" = "send"
"-u" = "host"
"""


def by(table: str, text: str, *more: str, via: str | None = None) -> ProgramEffects:
    return effects_by_table("p", read_table("p", table), words(text, *more), HERE, via=via)


def told(text: str) -> list[str]:
    """The effects of a real command."""
    given = words(text)
    table = table_of(text.split()[0])
    assert table is not None
    return said(effects_by_table(text.split()[0], table, given, HERE).effects)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("p x a b", ["reads /w/a", "reads /w/b"]),
        ("p -n x a", ["reads /w/a"]),
        ("p -e x a", ["reads /w/a"]),
        ("p -nex a", ["reads /w/a"]),
        ("p --reg=x a", ["reads /w/a"]),
        ("p -f x a", ["reads /w/x", "reads /w/a"]),
        ("p x - /dev/stdin", []),
        ("p -r x", ["reads /w"]),
        ("p x", []),
        ("p --names=x y", ["reads /w/x", "runs --names", "reads ?"]),
        ("p --name x y", ["reads /w/x", "runs --name", "reads ?"]),
    ],
)
def test_what_is_read_is_told(text: str, effects: list[str]) -> None:
    assert said(by(READS, text).effects) == effects


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("p a b", ["reads /w/a", "writes /w/b", "writes /w/b/a"]),
        ("p - b", ["writes /w/b"]),
        ("p /dev/null b", ["writes /w/b", "writes /w/b/null"]),
        ("p -T a b", ["reads /w/a", "writes /w/b"]),
        ("p a", ["reads /w/a"]),
        (
            "p -t d a b",
            ["writes /w/d", "writes /w/d/a", "writes /w/d/b", "reads /w/a", "reads /w/b"],
        ),
        ("p --log x", ["writes /w/x"]),
        ("p --log=~/x", ["writes ~/x"]),
        ("p --fil=x", ["runs --fil"]),
        ("p --set x", ["alters --set"]),
        ("p -O", ["writes ?"]),
        ("p -i a b", ["reads /w/a", "writes /w/a", "writes /w/b", "writes /w/b/a"]),
        (
            "p -C d a b",
            ["reads /w/d", "reads /w/a /w/d/a", "writes /w/b /w/d/b", "writes /w/b/a /w/d/b/a"],
        ),
        ("p -d x", []),
        ("p -d @x", ["runs -d", "reads /w/x"]),
        ("p -d a=@~/x", ["runs -d", "reads ~/x"]),
    ],
)
def test_what_is_written_run_and_sent_is_told(text: str, effects: list[str]) -> None:
    assert said(by(WRITES, text).effects) == effects


def test_a_host_is_no_effect_but_it_is_told() -> None:
    found = by(WRITES, "p -u example.com")
    assert found.effects == ()
    assert found.fetches == ("example.com",)


# --- what is not known ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["p -z x a", "p --nope=a x b", "p -za b", "p -nz a"])
def test_an_option_that_is_not_known_must_be_named_and_every_word_may_be_a_file(text: str) -> None:
    found = said(by(READS, text).effects)
    typed = text.split()[1].partition("=")[0]
    assert f"runs {typed[:2] if typed == '-za' else typed}" in found
    assert "reads /w/a" in found


def test_where_a_program_can_write_every_word_may_be_written() -> None:
    found = said(by(WRITES, "p --nope=a b c").effects)
    for name in "abc":
        assert {f"reads /w/{name}", f"writes /w/{name}"} <= set(found)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ('p "$x" a', ["reads /w/a", "reads ?"]),
        ("p $x a", ["reads ?", "reads /w/a"]),
        ("p x *", ["reads /w/*"]),
        ("p x -- $y", ["reads ?"]),
    ],
)
def test_an_unknown_word_of_a_program_that_only_reads_may_be_a_file(
    text: str, effects: list[str]
) -> None:
    assert said(by(READS.replace('"--names" = "read names"', ""), text).effects) == effects


@pytest.mark.parametrize("word", ["$x", '"$x"', "*", "?x", "[a]b", "-$x", "{$x,a}"])
def test_an_unknown_word_of_a_program_that_acts_may_be_an_option(word: str) -> None:
    assert f"runs {word}" in said(by(WRITES, f"p {word} b").effects)


@pytest.mark.parametrize("text", ["p ./* b", "p a* b", 'p -- "$x" b', 'p "a$x" b', "p -- * b"])
def test_a_word_that_cannot_be_an_option_is_no_doubt(text: str) -> None:
    assert not [each for each in by(WRITES, text).effects if each.kind is EffectKind.RUNS]


def test_words_that_a_wrapper_adds_may_be_anything() -> None:
    found = said(by(WRITES, "p a", via="xargs").effects)
    assert {"runs xargs", "reads ?", "writes ?", "writes /w/a"} <= set(found)
    assert said(by(READS, "p x", via="xargs").effects) == ["reads ?", "runs xargs"]


def test_too_many_unknown_words_cannot_be_named() -> None:
    found = by(READS, "p " + "-z " * 1000)
    assert [each for each in found.effects if each.kind is EffectKind.RUNS and not each.token]
    assert len(found.effects) < 2 * MOST_FILES


def test_many_files_are_not_told_one_by_one() -> None:
    found = by(READS, "p x " + " ".join(f"f{number}" for number in range(5000)))
    assert len(found.effects) <= MOST_FILES + 1
    assert "reads ?" in said(found.effects)


# --- operands ------------------------------------------------------------------------------------


def _spec(text: str) -> tuple[Operand, ...]:
    return tuple(Operand(kind=each.rstrip("*"), many="*" in each) for each in text.split())


@pytest.mark.parametrize(
    ("spec", "text", "roles"),
    [
        ("read*", "a b", ["read", "read"]),
        ("skip read*", "a b", ["skip", "read"]),
        ("read write", "a", ["read"]),
        ("read write", "a b", ["read", "write"]),
        ("read* write", "a", ["read"]),
        ("read* write", "a b c", ["read", "read", "write"]),
        ("skip read* write", "x a b", ["skip", "read", "write"]),
        ("read* write", "a *", ["read", "read write"]),
        ("read* write", "* a", ["read", "write"]),
        ("read* write", "*", ["read write"]),
        ("read* write", "a b $x", ["read write", "read write", "read write"]),
        ("read write", "* b", ["read write", "read write"]),
        ("skip read*", "$x a", ["read skip", "read skip"]),
        ("skip read*", '"$x" a', ["skip", "read"]),
    ],
)
def test_each_operand_has_the_roles_that_it_may_have(
    spec: str, text: str, roles: list[str]
) -> None:
    found = assign(words(text), _spec(spec))
    assert found is not None
    assert [" ".join(sorted(kinds)) for _, kinds in found] == roles


def test_more_operands_than_a_program_takes_are_not_known() -> None:
    assert assign(words("a b c"), _spec("read write")) is None
    table = 'about = "p"\noperands = "read write"\n'
    found = said(by(table, "p a b c").effects)
    assert "runs c" in found
    assert {"reads /w/c", "writes /w/a"} <= set(found)


# --- real programs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("cat -n .env", ["reads /w/.env"]),
        ("ls -lt ~/.ssh", ["reads ~/.ssh"]),
        ("wc --files0-from=.env", ["reads /w/.env", "runs --files0-from", "reads ?"]),
        ("grep --rege=. .env", ["reads /w/.env"]),
        ("grep -r x", ["reads /w"]),
        ("grep -5 x a", ["reads /w/a"]),
        ("head -5 a", ["reads /w/a"]),
        ("diff --to-file=.env /dev/null", ["reads /w/.env"]),
        ("diff x/.env .", ["reads /w/x/.env", "reads /w", "reads /w/.env"]),
        ("uniq - a", ["writes /w/a"]),
        ("xxd -r - a", ["writes /w/a"]),
        ("split - .git/x", ["writes /w/.git/x*"]),
        ("split a", ["reads /w/a", "writes /w/x*"]),
        ("csplit a 1", ["reads /w/a", "writes /w/xx*"]),
        ("install -m 755 /dev/stdin a", ["writes /w/a", "writes /w/a/stdin"]),
        ("ln -s ../a", ["reads /a", "writes /w", "writes /w/a"]),
        ("chmod -w,a+rwx a", ["writes /w/a"]),
        ("chmod --reference=a b", ["reads /w/a", "writes /w/b"]),
        ("chmod u+x a", ["writes /w/a"]),
        ("find -L /home -O3", ["reads /home"]),
        ("find", ["reads /w"]),
        ("find . -fprintf a b", ["writes /w/a", "reads /w"]),
        ("fd -Hx touch a", ["runs -Hx", "reads /w"]),
        ("rg --pre=x y", ["runs --pre", "reads /w"]),
        ("man ./.env", ["reads /w/.env"]),
        ("less +!x a", ["runs +!x", "reads /w/a"]),
        ("tree -oX a", ["writes /w/a", "reads /w"]),
        ("dd of=a if=b", ["writes /w/a", "reads /w/b"]),
        ("dd a", ["runs a", "reads /w/a", "writes /w/a"]),
        ("date +%F", []),
        ("date -s x", ["alters -s"]),
        ("strings @a", ["reads /w/@a", "runs @a", "reads /w/a"]),
        ("file -f .env", ["reads /w/.env", "runs -f", "reads ?"]),
        ("basename $x", []),
    ],
)
def test_programs_do_what_their_tables_say(text: str, effects: list[str]) -> None:
    assert sorted(told(text)) == sorted(effects)


def test_what_is_searched_with_all_that_is_below_is_deep() -> None:
    def deep(text: str) -> list[tuple[bool, bool]]:
        table = table_of(text.split()[0])
        assert table is not None
        found = effects_by_table(text.split()[0], table, words(text), HERE)
        return [(each.target.deep, each.target.hidden) for each in found.effects if each.target]

    assert deep("grep -r x .") == [(True, True)]
    assert deep("grep x a") == [(False, False)]
    assert deep("rg x") == [(True, False)]
    assert deep("rg -uu x") == [(True, True)]
    assert deep("rg --hidden x") == [(True, True)]
    # Only names are shown.
    assert deep("find .") == [(False, False)]
    assert deep("ls -R") == [(False, False)]


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("p x a", True),
        ("p -r x", True),
        ("p --names=a x", False),
        ("p --nope", False),
        ("p x $y", False),
    ],
)
def test_a_command_looks_if_nothing_in_it_acts(text: str, looks: bool) -> None:
    assert by(READS, text).looks is looks
    assert not by(READS.replace("looks = true", ""), text).looks


def test_a_program_that_looks_does_not_write_by_its_name() -> None:
    table = read_table("p", 'about = "p"\nlooks = true\noperands = "read write"')
    found = effects_by_table("p", table, words("p a b"), HERE)
    assert not found.looks
    assert not [each for each in found.effects if each.own]


def test_program_text_is_judged_by_the_reader_of_its_language() -> None:
    table = read_table(
        "p",
        'about = "p"\nlooks = true\nlanguage = "l"\noperands = "code read*"\n'
        '[options]\n"-e" = "code instead"\n',
    )

    def reader(word: Word, here: WorkingDir) -> list[Effect]:
        return [reads(here.target(word), "the text says so")]

    for text, effects in (
        ("p t a", ["reads /w/t", "reads /w/a"]),
        ("p -e t a", ["reads /w/t", "reads /w/a"]),
    ):
        found = effects_by_table("p", table, words(text), HERE, readers={"l": reader})
        assert said(found.effects) == effects
        assert found.looks
    assert said(effects_by_table("p", table, words("p t a"), HERE).effects) == [
        "runs t",
        "reads /w/a",
    ]
