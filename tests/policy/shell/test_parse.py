"""Words of a command by the table of its program: as the program itself takes them."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.options import Parsed, parse
from quarterdeck.policy.shell.tables import read_table
from support.shell_words import words

TABLE = """
about = "a program"
operands = "read*"
{more}
[options]
"-a --all" = "flag"
"-b" = "flag"
"-o --output" = "write"
"--other" = "flag"
"-i --in-place" = "flag value? in-place"
"--color --colour" = "flag value?"
"--pair" = "value read"
"--args" = "flag texts"
"--end" = "flag last"
"""


def parsed(text: str, *added: str, more: str = "") -> Parsed:
    return parse(words(text, *added), read_table("p", TABLE.format(more=more)))


def told(found: Parsed) -> list[str]:
    """Options with their values, then operands, then what is unknown, in short texts."""
    options = [
        "=".join((each.option.name, *(value.source for value in each.values)))
        for each in found.options
    ]
    operands = [each.source for each in found.operands]
    return options + operands + [f"?{each.typed}" for each in found.unknown]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p x -a y", "-a x y"),
        ("p -ab x", "-a -b x"),
        ("p -o x y", "-o=x y"),
        ("p -ox y", "-o=x y"),
        ("p -abo x y", "-a -b -o=x y"),
        ("p -aox", "-a -o=x"),
        ("p -oa", "-o=a"),
        ("p -o -a", "-o=-a"),
        ("p -o -- -a", "-o=-- -a"),
        ("p --output x y", "-o=x y"),
        ("p --output=x y", "-o=x y"),
        ("p --output= y", "-o= y"),
        ("p --outp=x", "-o=x"),
        ("p --al", "-a"),
        ("p --col=x y", "--color=x y"),
        ("p --color x", "--color x"),
        ("p -i x", "-i x"),
        ("p -ibak x", "-i=bak x"),
        ("p -ai.bak x", "-a -i=.bak x"),
        ("p --pair a b c", "--pair=a=b c"),
        ("p -- -a", "-a"),
        ("p - x", "- x"),
        ("p --end -a", "--end -a"),
        ("p -{a,b} x", "-a -b x"),
        ("p {-o,x} y", "-o=x y"),
        ("p x=y", "x=y"),
    ],
)
def test_options_and_values_are_told_apart_as_getopt_does(text: str, expected: str) -> None:
    found = parsed(text)
    expected_words = expected.split()
    assert told(found) == expected_words
    assert not found.unknown


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("p -z x", "-z"),
        ("p -az x", "-az"),
        ("p --nope", "--nope"),
        ("p --o=x", "--o"),
        ("p --all=x", "--all"),
        ("p --outputs=x", "--outputs"),
        ("p -o", "-o"),
        ("p --pair a", "--pair"),
        ("p -5", "-5"),
        ("p --outpu?=x", "--outpu?"),
        ("p -[ao]", "-["),
    ],
)
def test_what_the_table_does_not_explain_is_unknown(text: str, typed: str) -> None:
    assert [each.typed for each in parsed(text).unknown] == [typed]


@pytest.mark.parametrize(
    "text", ["p $x", 'p "$x"', "p *", "p a$x", "p -$x", "p --$x", "p -o $x", "p -a$x", "p -o *"]
)
def test_a_word_that_may_be_an_option_at_run_time_is_open(text: str) -> None:
    found = parsed(text)
    assert found.open[0].source == text.split()[-1]


@pytest.mark.parametrize("text", ["p a", "p ./*", 'p "a$x"', 'p --output="$x"', "p -- a", "p a*"])
def test_a_word_that_begins_otherwise_is_no_option(text: str) -> None:
    assert not parsed(text).open


def test_a_process_substitution_is_an_operand() -> None:
    found = parsed("p", "<(ls $x)")
    assert [each.source for each in found.operands] == ["<(ls $x)"]
    assert not found.open


@pytest.mark.parametrize(
    ("more", "text", "expected"),
    [
        ("permutes = false", "p -a x -b", "-a x -b"),
        ("numeric = true", "p -5 x", "x"),
        ("numeric = true", "p -5a x", "-a x"),
        ("numeric = true", "p -5o x", "x ?-5o"),
        ("abbreviations = false", "p --outp=x", "?--outp"),
        ("bundles = false", "p -ab x", "-a x ?-ab"),
        ("bundles = false", "p -ox", "-o=x"),
        ('plus = "run"', "p +x y", "+=x y"),
        ('assignments = "alter"', "p CC=x y", "==x y"),
        ('operators = "( )"', r"p \( x \)", "x"),
        ("first_is_bundle = true", "p abo x y", "-a -b -o=x y"),
        ("first_is_bundle = true", "p az x", "-a x ?az"),
        ("first_is_bundle = true", "p -ab x", "-a -b x"),
        ("long_with_one_dash = true", "p -ab x", "x ?-ab"),
        ("long_with_one_dash = true", "p -o x y", "-o=x y"),
        ("long_with_one_dash = true", "p -o=x y", "-o=x y"),
        ("long_with_one_dash = true", "p -ox y", "y ?-ox"),
    ],
)
def test_programs_differ_in_how_they_take_options(more: str, text: str, expected: str) -> None:
    assert told(parsed(text, more=more)) == expected.split()


def test_names_with_one_dash_may_have_two_and_attached_values() -> None:
    table = read_table(
        "p",
        'about = "p"\nlong_with_one_dash = true\ntwo_dashes = true\noperands = "read*"\n'
        '[options]\n"-exec" = "run"\n"-I" = "read joined"\n"-v" = "flag"\n',
    )
    for text in ("p -exec x", "p -exec=x", "p --exec x", "p --exec=x"):
        assert told(parse(words(text), table)) == ["-exec=x"]
    assert told(parse(words("p -Idir -v"), table)) == ["-I=dir", "-v"]
    assert told(parse(words("p -vv"), table)) == ["?-vv"]


def test_the_first_operand_may_be_a_subcommand() -> None:
    table = read_table(
        "p",
        'about = "p"\n[options]\n"-C" = "chdir"\n'
        '[subcommands.log]\noperands = "skip"\n[subcommands.log.options]\n"-n" = "value"\n'
        '[subcommands.tag]\noperands = "skip*"\n'
        '[subcommands.tag.subcommands.list]\noperands = "none"\n',
    )
    found = parse(words("p -C x log -n 3 y"), table)
    assert found.table.name == "p log"
    assert told(found) == ["-C=x", "-n=3", "y"]
    assert parse(words("p tag list"), table).table.name == "p tag list"
    assert told(parse(words("p tag v1"), table)) == ["v1"]
    assert told(parse(words("p push x"), table)) == ["push", "x", "?push"]
    assert told(parse(words("p -n 3 log"), table)) == ["3", "log", "?-n", "?3"]


def test_a_command_of_find_ends_at_a_semicolon_or_plus() -> None:
    table = read_table(
        "p",
        'about = "p"\nlong_with_one_dash = true\noperands = "list*"\n'
        '[options]\n"-exec" = "command"\n"-delete" = "flag"\n',
    )
    for end in ("';'", "{} +"):
        found = parse(words(f"p a -exec x + {end} -delete"), table)
        assert told(found) == ["-exec", "-delete", "a"]


def test_operands_may_be_texts_from_an_option_on() -> None:
    table = read_table(
        "p", 'about = "p"\noperands = "skip read*"\n[options]\n"--args" = "flag texts"\n'
    )
    assert told(parse(words("p --args x y z"), table)) == ["--args", "x"]
    assert told(parse(words("p x y --args z"), table)) == ["--args", "x", "y"]
