"""Ordinary commands: presets must not be in the way of them.

A preset that asks about everything is safe, and useless: people allow without reading, or switch it
off. The commands are in `tests/fixtures/policy/ordinary.toml`.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.needs import Context
from quarterdeck.policy.presets import preset
from quarterdeck.policy.trees import LEFT_OUT, look_once
from quarterdeck.runtime.folder_scan import look_below

NEEDLESS = 0.02
"""The share of ordinary commands that trusted-repo may ask about needlessly."""
NEEDLESS_ELSEWHERE = 0.03
"""The same on another machine."""


class Group(Value):
    """Commands of a kind."""

    name: str
    looks: tuple[str, ...] = ()
    works: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


def groups() -> list[Group]:
    file = Path(__file__).parents[1] / "fixtures" / "policy" / "ordinary.toml"
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    return msgspec.convert(data["group"], type=list[Group], strict=True)


GROUPS = groups()
LOOKS = [command for group in GROUPS for command in group.looks]
WORKS = [command for group in GROUPS for command in group.works]
ASKED = [command for group in GROUPS for command in group.asked]


def stopped(name: str, commands: list[str], context: Context) -> list[tuple[str, str]]:
    """The commands that a preset asks about or denies, each with the reason."""
    policy = preset(name)
    assert policy is not None
    found: list[tuple[str, str]] = []
    for command in commands:
        given = Raw(msgspec.json.encode({"command": command}))
        facts = Facts(mode="default", origin="main")
        call = Call(tool="Bash", input=given, facts=facts, context=context)
        verdict = decide(call, Rules(policies=(policy,)))
        if verdict.behavior.value != "allow" or (verdict.open and not verdict.ruled):
            found.append((command, verdict.reasons[0]))
    return found


@pytest.fixture
def project(tmp_path: Path) -> Context:
    """A project on this machine: paths are resolved, and folders looked into, as for a session."""
    shop = tmp_path / "home" / "shop"
    for folder in ("src/cart", "tests", "packages/api", "data", "dist", "logs", "assets"):
        (shop / folder).mkdir(parents=True)
    for file in ("README.md", "package.json", "src/index.ts", "src/cart/total.ts", "data/a.txt"):
        (shop / file).write_text("x\n")
    return Context(
        cwd=str(shop),
        home=str(tmp_path / "home"),
        settings=str(shop),
        resolve=lambda path: str(Path(path).resolve()),
        exists=os.path.lexists,
        below=look_once(lambda folder: look_below(folder, LEFT_OUT)),
    )


def test_there_are_enough_of_them_and_each_only_once() -> None:
    every = [*LOOKS, *WORKS, *ASKED]
    assert len(LOOKS) > 100
    assert len(LOOKS) + len(WORKS) > 250
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("name", ["read-only", "careful", "edit-freely"])
def test_a_command_that_only_looks_is_neither_asked_nor_denied(name: str, project: Context) -> None:
    assert stopped(name, LOOKS, project) == []


def test_a_trusted_repository_is_hardly_ever_in_the_way(project: Context) -> None:
    needless = stopped("trusted-repo", [*LOOKS, *WORKS], project)
    assert len(needless) <= NEEDLESS * (len(LOOKS) + len(WORKS)), needless


def test_it_is_a_little_more_in_the_way_where_nobody_can_look_into_folders() -> None:
    """On another machine a folder may have a file with secrets: all of it is read with a search."""
    elsewhere = Context(cwd="/home/ada/shop", home="/home/ada", settings="/home/ada/shop")
    needless = stopped("trusted-repo", [*LOOKS, *WORKS], elsewhere)
    assert len(needless) <= NEEDLESS_ELSEWHERE * (len(LOOKS) + len(WORKS)), needless


def test_what_leaves_the_project_is_asked_in_a_trusted_repository(project: Context) -> None:
    assert [command for command, _ in stopped("trusted-repo", ASKED, project)] == ASKED


@pytest.mark.parametrize("name", ["read-only", "careful"])
def test_a_command_that_changes_something_is_not_taken_for_one_that_looks(
    name: str, project: Context
) -> None:
    every = [*WORKS, *ASKED]
    stops = {command for command, _ in stopped(name, every, project)}
    assert [command for command in every if command not in stops] == []
