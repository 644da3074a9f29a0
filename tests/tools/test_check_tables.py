"""Option tables against the help of the programs themselves, where they are installed."""

from __future__ import annotations

import pytest

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.tables import read_table, table_names, table_of
from support.help_texts import (
    Listed,
    checkable,
    differences,
    help_of,
    is_described_version,
    listed_options,
)

NO_OPTIONS = {
    "curl": "--help",
    "cut": "-M",
    "diff": "--GTYPE-group-format --LTYPE-line-format",
    "fdfind": "-'",
    "less": '-"',
    "rsync": "--no-OPTION",
    "zstd": "-#",
    "zstdcat": "-#",
}
"""Texts in a help that look like options and are none, or not exactly so."""

NOT_COMPLETE = name_set("mount ruby telnet vim")
"""Tables that leave out some options on purpose: those are asked about."""

HELP = """\
Usage: p [OPTION]... FILE
  -a, --all             all of them, also with --hidden
  -o, --output=FILE     write there
      --color[=WHEN]    in colours
  -n NUM                a number
  -s | --silent         say nothing
      --pick <name>     one of them
Words --in=text are no options.
"""


def test_options_are_those_at_the_beginning_of_a_line() -> None:
    assert list(listed_options(HELP)) == [
        Listed("-a"),
        Listed("--all"),
        Listed("-o"),
        Listed("--output", value=True),
        Listed("--color"),
        Listed("-n", value=True),
        Listed("-s"),
        Listed("--silent"),
        Listed("--pick", value=True),
    ]


def test_what_a_table_lacks_is_told() -> None:
    table = read_table(
        "p",
        'about = "p"\n[options]\n"-a --all" = "flag"\n"-o --output" = "flag"\n"-n" = "value"\n'
        '"--color" = "flag value?"\n"-s --silent" = "flag"\n',
    )
    assert list(differences(table, HELP)) == [
        "--output takes a value, and has none in the table",
        "--pick is not in the table",
    ]


def compared(name: str) -> list[str] | None:
    """What a table lacks of its program; nothing if there is no help to compare it with."""
    table = table_of(name)
    if table is None or table.name != name or not checkable(table):
        return None  # an alias, or a help that does not list its options in a regular way
    if not is_described_version(name, table):
        return None
    no_options = name_set(NO_OPTIONS.get(name, ""))
    return [
        what
        for what in differences(table, help_of(name, table))
        if what.split()[0] not in no_options
        and not (name in NOT_COMPLETE and what.endswith("is not in the table"))
    ]


@pytest.mark.process
def test_tables_know_the_options_of_the_versions_that_they_describe() -> None:
    found = {name: compared(name) for name in sorted(table_names())}
    assert {name: lacking for name, lacking in found.items() if lacking} == {}
    # A machine has some of the programs in the described version: else nothing was compared.
    assert any(lacking == [] for lacking in found.values())
