"""The tool that finds the first version of each flag: bisection, and what a parser says."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from quarterdeck.claude.flags import SINCE, TABLE

VERSIONS = [f"2.1.{patch}" for patch in range(37, 137)]


def load() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "find_flags.py"
    spec = importlib.util.spec_from_file_location("find_flags", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load()


class Published:
    """Versions that know some flags, and which of them were asked."""

    def __init__(self, **ranges: tuple[int, int]) -> None:
        self.ranges = {f"--{name}": known for name, known in ranges.items()}
        self.asked: set[str] = set()

    def ask(self, version: str) -> frozenset[str]:
        self.asked.add(version)
        at = int(version.rpartition(".")[2])
        return frozenset(flag for flag, (first, last) in self.ranges.items() if first <= at <= last)


@pytest.mark.parametrize("first", [38, 39, 60, 61, 99, 136])
def test_the_first_version_of_a_flag_is_found_with_few_downloads(first: int) -> None:
    world = Published(old=(37, 200), new=(first, 200))
    found = tool.find_bounds(VERSIONS, ["2.1.60"], world.ranges, world.ask)
    assert found == ({"--new": f"2.1.{first}"}, {})
    assert {f"2.1.{first - 1}", f"2.1.{first}"} <= world.asked, "both neighbours have answered"
    assert len(world.asked) <= 10


def test_a_flag_that_vanished_is_found_too() -> None:
    world = Published(gone=(37, 70), brief=(55, 90))
    since, until = tool.find_bounds(VERSIONS, ["2.1.60"], world.ranges, world.ask)
    assert since == {"--brief": "2.1.55"}
    assert until == {"--gone": "2.1.70", "--brief": "2.1.90"}


def test_a_flag_that_no_version_has_is_a_mistake_of_ours() -> None:
    world = Published(other=(37, 200))
    with pytest.raises(SystemExit, match="--typo"):
        tool.find_bounds(VERSIONS, [], ["--typo"], world.ask)


def parser(known: set[str], picky: frozenset[str] = frozenset()) -> object:
    """What the CLI's parser says: it checks values first, then names the first unknown flag."""

    def complain(argv: list[str]) -> str:
        names = [argument.partition("=")[0] for argument in argv]
        for name in names:
            if name in known & picky:
                return f"error: option '-x, {name} <mode>' argument 'x' is invalid. Choose."
        return next(
            f"error: unknown option '{a}'"
            for a, n in zip(argv, names, strict=True)
            if n not in known
        )

    return complain


def test_all_flags_are_asked_for_at_once_and_the_unknown_ones_are_told_one_by_one() -> None:
    complain = parser({"--model", "--effort"}, frozenset({"--effort"}))
    assert tool.lacking(["--bare", "--model", "--effort", "--name"], complain) == {
        "--bare",
        "--name",
    }


def test_a_program_that_says_something_else_is_not_taken_for_an_answer() -> None:
    with pytest.raises(SystemExit, match="cannot execute"):
        tool.lacking(["--model"], lambda _: "bash: cannot execute binary file")


def test_the_file_is_what_the_tool_writes() -> None:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    text = tool.table_text(table["asked"], table["since"], table["until"])
    assert TABLE.read_text(encoding="utf-8") == text
    assert len(SINCE) == len(table["since"])
    assert {*table["since"], *table["until"]} <= {*tool.flag_names()}
