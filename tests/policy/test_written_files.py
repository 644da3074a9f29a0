"""A rule for a command does not mean a file that the agent has written itself."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context, files_written
from quarterdeck.policy.policy import Policy

FACTS = Facts(mode="default", origin="main", branch="x", machine="local", project="")


def policy(*allowed: str) -> Policy:
    text = f'default = "ask"\n[claude]\nallow = {json.dumps(allowed)}\n'
    loaded = read_policy(text, "test")
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


NARROW = policy(
    "Bash(./x.sh:*)", "Bash(./x.sh)", "Bash(bash x.sh:*)", "Bash(python3:*)", "Bash(source x.sh)",
    "Bash(git status:*)", "Bash(make:*)", "Bash(node x.js)", "Bash(ls:*)", "Bash(cd:*)",
    "Bash(echo:*)", "Edit(./**)", "Bash(mkdir:*)",
)  # fmt: skip


def told(command: str, *written: str, held: Policy = NARROW) -> str:
    context = Context(
        cwd="/p",
        home="/home/me",
        written=frozenset(written),
        resolve=lambda path: path.replace("/p/lnk", "/p/d"),
    )
    given = Raw(json.dumps({"command": command}).encode())
    call = Call(tool="Bash", input=given, facts=FACTS, context=context)
    return decide(call, Rules(policies=(held,))).behavior.value


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("./x.sh", "/p/x.sh"),
        ("./x.sh --fast", "/p/x.sh"),
        ("bash x.sh", "/p/x.sh"),
        ("source x.sh", "/p/x.sh"),
        ("python3 x.py", "/p/x.py"),
        ("python3 -m d.x", "/p/d/x.py"),
        ("python3 lnk/x.py", "/p/d/x.py"),
        ("python3 d/x.py", "/p/lnk/x.py"),
        ("python3 d/x.py", "/p/d"),
        ("node x.js", "/p/x.js"),
        ("git status", "/p/.git/config"),
        ("git status", "/p/.git/hooks/post-checkout"),
        ("git status", "/p/HEAD"),
    ],
)
def test_what_the_agent_has_written_is_not_run_by_a_narrow_rule(command: str, file: str) -> None:
    assert told(command) == "allow"
    assert told(command, "/p/README.md") == "allow"
    assert told(command, file) == "ask"
    assert told(command, file, held=policy("Bash")) == "allow"


@pytest.mark.parametrize(
    "command",
    ["make", "ls x.sh", "git status", "./x.sh"],
)
def test_other_programs_and_files_are_not_meant(command: str) -> None:
    assert told(command, "/p/Makefile", "/p/src/x.sh", "/p/.gitignore") == "allow"


def test_what_the_same_command_writes_counts() -> None:
    assert told("echo ls > x.sh; bash x.sh") == "ask"
    assert told("mkdir d; python3 d/x.py") == "allow"


@pytest.mark.parametrize(
    ("tool", "members", "files"),
    [
        ("Write", {"file_path": "/p/x.sh", "content": ""}, {"/p/x.sh"}),
        ("Edit", {"file_path": "x.sh"}, {"/p/x.sh"}),
        ("Bash", {"command": "echo a > x.sh"}, {"/p/x.sh"}),
        ("Bash", {"command": "cp a/* b"}, {"/p/b"}),
        ("Bash", {"command": "mkdir b; touch c; ls > /dev/null"}, set()),
        ("Bash", {"command": "echo a > $x"}, set()),
        ("Read", {"file_path": "/p/x.sh"}, set()),
        ("Write", {}, set()),
    ],
)
def test_the_files_that_a_call_writes_are_told(
    tool: str, members: dict[str, str], files: set[str]
) -> None:
    assert files_written(tool, Raw(json.dumps(members).encode()), "/p") == files
