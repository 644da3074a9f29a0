"""A file that a command moves, copies or links is known by its old name too."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.moves import MOST, Moved, other_names
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.shell import Target
from quarterdeck.policy.trees import Tree

FACTS = Facts(mode="default", origin="main", branch="x", machine="local", project="")
CONTEXT = Context(cwd="/home/me/project", home="/home/me", below=lambda _: Tree())
POLICY = """
default = "ask"
[[rule]]
name = "all"
verdict = "allow"
tool = "Bash"
[[rule]]
name = "secrets"
verdict = "deny"
tool = "Read"
path = ["./.env", "./secret/**", "~/.ssh/**"]
[[rule]]
name = "home"
verdict = "ask"
tool = "Edit"
path = ["~/.*"]
"""


def policy(text: str) -> Policy:
    loaded = read_policy(text, "test")
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


HELD = policy(POLICY)


def told(command: str, held: Policy = HELD) -> str:
    given = Raw(json.dumps({"command": command}).encode())
    call = Call(tool="Bash", input=given, facts=FACTS, context=CONTEXT)
    return decide(call, Rules(policies=(held,))).behavior.value


@pytest.mark.parametrize(
    "command",
    [
        "ln -s . d && cat d/secret/key",
        "mount --bind secret src; cat src/key",
        "mount -o bind . src && cat src/secret/key",
        "ln -s ~ h && cat h/.ssh/id_rsa",
        "ln -s .. up; cat up/.ssh/id_rsa",
        "ln -s $HOME h; cat h/.ssh/id_rsa",
        "mkdir s; ln -s ../secret s/l; cat s/l/key",
        "ln -s ~ h; cd h; cat .ssh/id_rsa",
        "ln -s ~ a; ln -s a b; cat b/.ssh/id_rsa",
        "ln -s ~ h; for f in h/.ssh/*; do cat $f; done",
        "cp -r . ../copy && cat ../copy/.env",
        "cp -rt ../copy . && cat ../copy/secret/key",
        "rsync -a . ../copy && cat ../copy/.env",
    ],
)
def test_a_file_is_not_read_under_another_name(command: str) -> None:
    assert told(command) in {"deny", "ask"}


@pytest.mark.parametrize(
    "command",
    [
        "ln -s ~ h; echo x > h/.bashrc",
        "ln ~/.bashrc b; tee b",
        "ln -s ~ h; cp a h/.bashrc",
    ],
)
def test_a_file_is_not_written_under_another_name(command: str) -> None:
    assert told(command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "cp src/a.py src/b.py && cat src/b.py",
        "cp -r src dist && cat dist/a.js",
        "mv src/old.py src/new.py && cat src/new.py",
        "ln -s src s && cat s/a.py",
        "cp a b; echo x > b",
        "cp src/*.py build/ && ls build",
    ],
)
def test_other_files_can_be_moved_and_used(command: str) -> None:
    assert told(command) == "allow"


def test_a_rule_for_a_command_does_not_allow_what_is_behind_a_link() -> None:
    held = policy('default = "ask"\n[claude]\nallow = ["Bash(ln:*)", "Bash(cat:*)"]\n')
    assert told("ln -s src s; cat s/a", held) == "allow"
    assert told("ln -s /etc e; cat e/passwd", held) == "ask"


def test_a_command_with_very_many_names_reaches_what_is_not_known() -> None:
    moved = [
        Moved(new=f"/a{at}", old=Target(source="x", paths=(f"/a{at + 1}",)), link=True)
        for at in range(MOST + 10)
    ]
    found = list(other_names(Target(source="x", paths=("/a0/b",)), moved, edit=False))
    assert found[-1].paths == ()
    assert len(found) == MOST


def test_links_that_lead_to_each_other_end() -> None:
    moved = [
        Moved(new="/a", old=Target(source="x", paths=("/b",)), link=True),
        Moved(new="/b", old=Target(source="x", paths=("/a",)), link=True),
    ]
    found = list(other_names(Target(source="x", paths=("/a/c",)), moved, edit=False))
    assert [each.paths for each in found] == [("/b/c",)]
