"""Readers of programs: no value of any option, and no operand, is more than they can take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quarterdeck.policy.shell import archives, builds, transfers
from quarterdeck.policy.shell.options import parse
from quarterdeck.policy.shell.programs import look_up
from quarterdeck.policy.shell.tables import Table, load
from quarterdeck.policy.shell.uses import folders, names_given, uses_of, words_of
from quarterdeck.policy.shell.wrappers import unwrap
from support.shell_words import HERE, words

READ = {**archives.READERS, **builds.READERS, **transfers.READERS}
ODD = (
    "a", "-", "=", "@", "!", ":", "#1", "file:", "http://", "://", "http://[", "'{a,b'", "'[a-z]'",
    "$x", "*", "~", "/", "''", "a:b:c", "exec=", "EXEC:", "PROXY:", "'a @ b'", "x,y;z",
)  # fmt: skip

MOST = 6
"""Options of one subcommand that are tried; all of a program that has none."""


def _tables(table: Table, before: str) -> Iterator[tuple[str, Table]]:
    yield before, table
    for name, each in table.subcommands.items():
        yield from _tables(each, f"{before} {name}")


@pytest.mark.parametrize("name", sorted(READ))
@pytest.mark.no_cover
def test_no_value_is_too_odd_for_a_reader(name: str) -> None:
    tried = 0
    for before, table in _tables(load(name), name):
        # Options that a subcommand inherits come first: its own are the last ones.
        own = list({id(each): key for key, each in table.options.items()}.values())
        if " " in before:
            own = own[-MOST:]
        for at, option in enumerate(("", *own)):
            odd, other = ODD[at % len(ODD)], ODD[-at % len(ODD)]
            for text in (f"{before} {option} {odd} {other}", f"{before} {option}={odd}"):
                given = words(text)
                look_up(given, HERE, None)
                look_up(given, HERE, "xargs")
                unwrap(given, HERE)
                tried += 1
    assert tried


def test_options_are_known_by_the_first_name_of_the_table() -> None:
    parsed = parse(words("tar --create --file=a.tar -C b -C c d"), load("tar"))
    assert names_given(parsed) == {"-c", "-f", "-C"}
    assert [each.typed for each in uses_of(parsed, "-C")] == ["-C", "-C"]
    assert [word.text for word in words_of(parsed, "-f", "-C")] == ["a.tar", "b", "c"]
    assert [place.dirs for place in folders(parsed, HERE)] == [
        HERE.into(words("b")[0]).dirs,
        HERE.into(words("b/c")[0]).dirs,
    ]


def test_a_short_option_may_have_its_value_after_an_equals_sign() -> None:
    parsed = parse(words("kubectl get pods -o=yaml"), load("kubectl"))
    assert [word.text for word in words_of(parsed, "-o")] == ["yaml"]
