"""Files that options, values and positions would hide from rules."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context

CONTEXT = Context(cwd="/project", home="/home/someone", settings="/project")
ALL_BUT = """
default = "ask"
[claude]
allow = ["Bash"]
deny = ["Read(./.env)", "Read(~/.ssh/**)", "Edit(./.git/**)"]
"""
NAMED = """
default = "ask"
[claude]
allow = ["Bash(NAME:*)"]
"""


def behavior(policy: str, command: str) -> str:
    loaded = read_policy(policy, "test")
    assert loaded.policy is not None, loaded.flaws
    call = Call(tool="Bash", input=Raw(json.dumps({"command": command}).encode()), context=CONTEXT)
    return str(decide(call, Rules(policies=(loaded.policy,))).behavior)


@pytest.mark.parametrize(
    "command",
    [
        "cat -n .env",
        "cat -vt ~/.ssh/id_rsa",
        "fold -b .env",
        "strings -f .env",
        "file -f .env",
        "sort --files0-from=.env",
        "grep --rege=. .env",
        "grep -C 3 x .env",
        "diff --to-file=.env /dev/null",
        "diff x/.env .",
        "uniq .env",
        "xargs --arg-file=.env echo",
        "tree --hintro=.env",
        "column .env",
        "iconv .env",
        "csplit .env 1",
        "man ./.env",
        "mv .env e",
        "ln .env e",
        "dd if=.env",
        "cp --no-such-option .env x",
        "ls -{l,t} ~/.ssh",
        "some-tool .env",
        "some-tool --config=.env",
        "some-tool -f ~/.ssh/id_rsa",
        "uniq - .git/config",
        "cp /dev/stdin .git/hooks/pre-commit",
        "cp -t .git config",
        "cp config .git",
        "sort -ro.git/config a",
        "sort --outp .git/config a",
        "split - .git/x",
        "xxd -r - .git/config",
        "chmod -w,a+rwx .git/config",
        "find . -fprintf .git/config x",
        "touch --no-such-option=.git/config",
    ],
)
def test_a_rule_against_a_file_sees_it_behind_options(command: str) -> None:
    assert behavior(ALL_BUT, command) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat -n README.md",
        "grep -n env README.md",
        "grep .env README.md",
        "ls -lt",
        "sort -k 2 a",
        "cp a b",
        "echo .env",
        "some-tool run --fast src/app.py",
        "head -5 README.md",
    ],
)
def test_other_files_are_not_taken_for_it(command: str) -> None:
    assert behavior(ALL_BUT, command) == "allow"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sort -k2 a", "allow"),
        ("sort --no-such-option a", "ask"),
        ("sort -o a b", "ask"),
        ("sort *", "ask"),
        ("sort ./*", "allow"),
        ("cat --no-such-option a", "ask"),
        ("cat *", "allow"),
        ("ls -la src", "allow"),
        ("rg --pre=x y", "ask"),
        ("fd -Hx rm", "ask"),
        ("date -s x", "ask"),
        ("date +%F", "allow"),
        ("find . -name x", "allow"),
        ("find . -delete", "ask"),
        ("strings @a", "ask"),
        ("some-tool /etc/x --any", "allow"),
    ],
)
def test_a_rule_for_a_program_allows_what_its_table_knows(command: str, expected: str) -> None:
    name = command.split()[0]
    assert behavior(NAMED.replace("NAME", name), command) == expected
