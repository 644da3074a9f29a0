"""Hostile calls of all tools: no preset, and no policy of the usual kinds, lets one of them pass.

The calls are in `tests/fixtures/policy/hostile.jsonl`: one JSON object in a line, with the name of
a preset, or of a policy below. `refused` means that a person is asked, or the call is denied. One
test for each class of calls and policy: a thousand tests of a millisecond would cost a minute.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.policy.decide import Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset

HERE = Context(cwd="/home/ada/shop", home="/home/ada", settings="/home/ada/shop")

_TOOLS = (
    "find awk sed tar sort git xargs grep rg man less vim npm python3 node perl ruby make sqlite3"
    " zip rsync curl wget ed gcc go cargo docker ssh"
)
POLICIES = {
    "none": 'default = "cli"',
    "few": """
        default = "ask"
        [claude]
        allow = [
          "Bash(git status:*)", "Bash(git log:*)", "Bash(git diff:*)", "Bash(ls:*)", "Bash(cat:*)",
          "Bash(find:*)", "Bash(grep:*)", "Bash(man:*)", "Bash(less:*)",
        ]
        deny = ["Read(./.env)", "Read(~/.ssh/**)"]
        """,
    "few-tools": f"""
        default = "ask"
        [claude]
        allow = {msgspec.json.encode([f"Bash({tool}:*)" for tool in _TOOLS.split()]).decode()}
        """,
    "all-but": """
        default = "cli"
        [claude]
        allow = ["Bash", "Read", "Edit", "Monitor", "PowerShell"]
        deny = [
          "Bash(rm:*)", "Bash(sudo:*)", "Bash(git push:*)", "Read(./.env)", "Read(./secret/**)",
          "Read(~/.ssh/**)",
        ]
        """,
    "web": """
        default = "ask"
        [claude]
        allow = ["WebFetch", "Bash"]
        deny = [
          "WebFetch(domain:169.254.169.254)", "WebFetch(domain:127.0.0.1)",
          "WebFetch(domain:localhost)", "WebFetch(domain:evil.test)",
        ]
        """,
}


class Case(Value):
    """A call, and what must become of it."""

    family: str
    policy: str
    tool: str
    input: Raw
    expected: str


def cases() -> dict[tuple[str, str], list[Case]]:
    file = Path(__file__).parents[1] / "fixtures" / "policy" / "hostile.jsonl"
    decoder = msgspec.json.Decoder(Case)
    found: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for line in file.read_bytes().splitlines():
        case = decoder.decode(line)
        found[case.family, case.policy].append(case)
    return found


CASES = cases()


@cache
def policy(name: str) -> Policy:
    found = preset(name) or read_policy(POLICIES[name], name).policy
    assert found is not None
    return found


def decided(case: Case) -> Verdict:
    facts = Facts(mode="default", origin="main")
    call = Call(tool=case.tool, input=case.input, facts=facts, context=HERE)
    return decide(call, Rules(policies=(policy(case.policy),)))


def passes(case: Case) -> bool:
    """Would it run without a question: because rules allow it, or because it needs none?"""
    verdict = decided(case)
    return verdict.behavior.value == "allow" and (verdict.ruled or not verdict.open)


@pytest.mark.parametrize("group", CASES, ids=lambda group: f"{group[0]}, {group[1]}")
def test_no_hostile_call_passes(group: tuple[str, str]) -> None:
    held = CASES[group]
    assert {case.expected for case in held} == {"refused"}
    assert [bytes(case.input).decode() for case in held if passes(case)] == []


def test_there_are_many_of_them() -> None:
    assert sum(map(len, CASES.values())) > 800


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("none", "echo hello"),
        ("few", "git status && ls -la"),
        ("few-tools", "sed -n 1p a.txt"),
        ("all-but", "npm test && touch a"),
        ("web", "ls"),
        ("read-only", "cat README.md"),
        ("careful", "cat README.md"),
        ("edit-freely", "cat README.md"),
        ("trusted-repo", "npm test"),
    ],
)
def test_the_same_policies_let_ordinary_calls_pass(name: str, command: str) -> None:
    given = Raw(msgspec.json.encode({"command": command}))
    assert passes(Case(family="", policy=name, tool="Bash", input=given, expected=""))
