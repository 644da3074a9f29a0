"""Tables of programs: each file is valid, and a mistake in one is told."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.tables import BadTable, load, read_table, table_names, table_of

HEAD = 'about = "a program"\n'


@pytest.mark.parametrize("name", sorted(table_names()))
def test_every_table_can_be_read(name: str) -> None:
    assert load(name).name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "about = 3",
        "[options",
        HEAD + "colour = true",
        HEAD + 'operands = "read* write*"',
        HEAD + 'operands = "file"',
        HEAD + 'operands = ""',
        HEAD + 'same_as = "cat"',
        'same_as = "no-such-table"',
        HEAD + '[options]\n"-a" = ""',
        HEAD + '[options]\n"-a" = "flog"',
        HEAD + '[options]\n"-a" = "runs"',
        HEAD + '[options]\n"-a" = "flag run"',
        HEAD + '[options]\n"-a" = "read write value?"',
        HEAD + '[options]\n"" = "flag"',
        HEAD + '[options]\n"-a -b" = "flag"\n"-b" = "flag"',
        HEAD + "[subcommands.a]\n" + HEAD,
        HEAD + '[subcommands.a]\nsame_as = "b"',
        HEAD + '[subcommands.a]\nsame_as = "b"\nlooks = true\n[subcommands.b]\nlooks = true',
        HEAD + "[subcommands.a]\nversions = true",
    ],
)
def test_a_mistake_in_a_table_is_an_error(text: str) -> None:
    with pytest.raises(BadTable):
        read_table("x", text)


def test_a_table_may_be_another_name_for_one() -> None:
    assert table_of("egrep") is table_of("grep")


def test_a_name_without_a_table_has_none() -> None:
    for name in ("no-such-table", "../tables/cat", "", "cat3", "cat-9.1"):
        assert table_of(name) is None


def test_subcommands_may_share_options_and_have_other_names() -> None:
    text = HEAD + (
        "inherits = true\nabbreviated_subcommands = true\n"
        '[options]\n"-q" = "flag"\n'
        '[subcommands.install.options]\n"-g" = "flag"\n'
        '[subcommands.i]\nsame_as = "install"\n'
        '[subcommands.init.options]\n"-q" = "value"\n'
    )
    table = read_table("p", text)
    install = table.subcommand("install")
    assert install is not None
    assert set(install.options) == {"-q", "-g"}
    assert table.subcommand("i") is install
    assert table.subcommand("inst") is install
    assert table.subcommand("in") is None
    init = table.subcommand("init")
    assert init is not None
    assert init.options["-q"].values == ("value",)
