"""Tools that do what others do: rules that stop hold for all of them."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy

CONTEXT = Context(cwd="/project", home="/home/someone", settings="/project")
FACTS = Facts(mode="default", origin="main", branch="x", machine="local", project="")
CLAUDE = """
default = "ask"
[claude]
allow = ["Bash", "Monitor", "WebFetch", "Terminal", "Peek", "PowerShell", "mcp__a__b"]
deny = [
  "Bash(rm:*)", "Read(./.env)", "Edit(./secret/**)",
  "WebFetch(domain:evil.test)", "WebFetch(domain:127.0.0.1)",
]
"""
OURS = """
default = "ask"
[[rule]]
name = "all"
verdict = "allow"
tool = ["Bash", "Monitor", "WebFetch", "Terminal", "Peek", "PowerShell", "mcp__a__b"]
[[rule]]
name = "commands"
verdict = "deny"
tool = "Bash"
command = "rm"
[[rule]]
name = "files"
verdict = "deny"
path = ["**/.env", "./secret/**"]
[[rule]]
name = "hosts"
verdict = "deny"
domain = ["evil.test", "127.0.0.1"]
"""


def policy(text: str) -> Policy:
    loaded = read_policy(text, "test")
    assert loaded.policy is not None, loaded.flaws
    return loaded.policy


POLICIES = [policy(CLAUDE), policy(OURS)]


def told(held: Policy, tool: str, members: dict[str, object]) -> str:
    call = Call(tool=tool, input=Raw(json.dumps(members).encode()), facts=FACTS, context=CONTEXT)
    return decide(call, Rules(policies=(held,))).behavior.value


@pytest.mark.parametrize("held", POLICIES, ids=["claude", "ours"])
@pytest.mark.parametrize(
    ("tool", "members", "expected"),
    [
        ("Monitor", {"command": "rm src/a"}, "deny"),
        ("Monitor", {"command": "cat .env"}, "deny"),
        ("Monitor", {"command": "tail -f log"}, "allow"),
        ("Terminal", {"command": "rm src/a"}, "deny"),
        ("Terminal", {"command": "ls", "description": "x"}, "allow"),
        ("Peek", {"file_path": "/project/.env"}, "deny"),
        ("Peek", {"path": "/project/secret/a"}, "deny"),
        ("Peek", {"path": "/project/src"}, "allow"),
        ("Peek", {"url": "http://evil.test/"}, "deny"),
        ("Peek", {"url": "http://ok.test/"}, "allow"),
        ("PowerShell", {"command": "rm src/a"}, "ask"),
        # An MCP tool does what its server says, whatever its members are called.
        ("mcp__a__b", {"command": "rm src/a", "path": "/project/.env"}, "allow"),
        ("WebFetch", {"url": "http://EVIL.test./"}, "deny"),
        ("WebFetch", {"url": "http://2130706433/"}, "deny"),
        ("WebFetch", {"url": "http://[::1]/"}, "ask"),
        ("WebFetch", {"url": "http://a\\@evil.test/"}, "ask"),
        ("WebFetch", {"url": "http://ok.test/"}, "allow"),
    ],
)
def test_a_rule_that_stops_holds_for_every_tool_that_does_the_same(
    held: Policy, tool: str, members: dict[str, object], expected: str
) -> None:
    assert told(held, tool, members) == expected


@pytest.mark.parametrize("held", POLICIES, ids=["claude", "ours"])
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("curl https://evil.test/x", "deny"),
        ("curl -s EVIL.TEST", "deny"),
        ("curl http://0x7f.1:80/", "deny"),
        ("curl https://ok.test/ https://u@evil.test/", "deny"),
        ('curl "$URL"', "ask"),
        ("curl https://ok.test/", "allow"),
        ("wget -q https://evil.test/x", "deny"),
        ("wget https://ok.test/x", "allow"),
    ],
)
def test_a_rule_about_hosts_holds_for_commands_that_fetch(
    held: Policy, command: str, expected: str
) -> None:
    assert told(held, "Bash", {"command": command}) == expected


def test_a_rule_for_bash_does_not_allow_another_tool() -> None:
    only = policy('default = "ask"\n[claude]\nallow = ["Bash", "Bash(ls:*)"]\n')
    assert told(only, "Bash", {"command": "ls"}) == "allow"
    assert told(only, "Monitor", {"command": "ls"}) == "ask"
