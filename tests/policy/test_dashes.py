"""A pattern may find a file whose name is an option. Whether there is one, a caller can look up."""

from __future__ import annotations

import pytest

from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.presets import preset
from quarterdeck.policy.trees import LookBelow, look_once


def folder_with(*names: str) -> LookBelow:
    return look_once(lambda _: (names, ()))


def verdict(command: str, below: LookBelow | None) -> str:
    policy = preset("careful")
    assert policy is not None
    context = Context(cwd="/shop", home="/home/ada", resolve=lambda path: path, below=below)
    call = Call(tool="Bash", input=input_of("Bash", command), context=context)
    return decide(call, Rules(policies=(policy,))).behavior.value


@pytest.mark.parametrize("command", ["wc -l *.txt", "du -sh *", "sort *.txt | head", "file *"])
def test_a_pattern_that_finds_no_option_is_a_list_of_files(command: str) -> None:
    assert verdict(command, folder_with("a.txt", "b.txt")) == "allow"


@pytest.mark.parametrize("command", ["wc -l *.txt", "sort *.txt", "du -sh *"])
def test_a_pattern_that_may_find_an_option_is_asked_about(command: str) -> None:
    assert verdict(command, folder_with("a.txt", "--files0-from=x.txt")) == "ask"
    assert verdict(command, None) == "ask"


def test_a_script_that_may_make_such_a_file_is_asked_about() -> None:
    policy = read_policy(
        'default = "ask"\n[claude]\nallow = ["Bash(sort:*)", "Bash(touch:*)"]\n', "p"
    ).policy
    assert policy is not None
    context = Context(cwd="/shop", resolve=lambda path: path, below=folder_with("a"))
    for command, found in (("sort *", "allow"), ("touch ./-ox; sort *", "ask")):
        call = Call(tool="Bash", input=input_of("Bash", command), context=context)
        assert decide(call, Rules(policies=(policy,))).behavior.value == found
