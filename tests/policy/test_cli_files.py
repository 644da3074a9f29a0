"""What the CLI never asks about is not in the way of a policy that asks about everything else."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.explain import verdict_code
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context

FACTS = Facts(mode="default", origin="main", branch="x", machine="local", project="")


def told(default: str, tool: str, members: dict[str, object], rules: str = "") -> str:
    loaded = read_policy(f'default = "{default}"\n{rules}', "test")
    assert loaded.policy is not None, loaded.flaws
    context = Context(
        cwd="/p", home="/home/me", resolve=lambda path: path.replace("/plans/link", "/../.bashrc")
    )
    call = Call(tool=tool, input=Raw(json.dumps(members).encode()), facts=FACTS, context=context)
    return verdict_code(decide(call, Rules(policies=(loaded.policy,))))


OUTPUT = "/tmp/claude-1000/-home-me-p/abc/tasks/b1.output"
RESULT = "/home/me/.claude/projects/-home-me-p/abc/tool-results/toolu_1.txt"


@pytest.mark.parametrize("default", ["ask", "deny"])
@pytest.mark.parametrize(
    ("tool", "members"),
    [
        ("StructuredOutput", {"answer": 1}),
        ("KillShell", {"shell_id": "1"}),
        ("TaskStop", {"task_id": "1"}),
        ("ListMcpResourcesTool", {}),
        ("Write", {"file_path": "/home/me/.claude/plans/three-plain-words.md", "content": "x"}),
        ("Edit", {"file_path": "~/.claude/plans/three-plain-words.md"}),
        ("Read", {"file_path": OUTPUT}),
        ("Read", {"file_path": RESULT}),
    ],
)
def test_the_clis_own_business_is_left_to_it(
    default: str, tool: str, members: dict[str, object]
) -> None:
    assert told(default, tool, members) == "cli"


@pytest.mark.parametrize(
    ("tool", "members"),
    [
        ("Write", {"file_path": "/home/me/.claude/plans/a.sh"}),
        ("Write", {"file_path": "/home/me/.claude/plans/../settings.md"}),
        ("Write", {"file_path": "/home/me/.claude/plans/link.md"}),
        ("Write", {"file_path": "/home/me/.claude/plans/a/b.md"}),
        ("Write", {"file_path": "/p/.claude/plans/a.md"}),
        ("Write", {"file_path": OUTPUT}),
        ("Write", {"file_path": RESULT}),
        ("Read", {"file_path": "/tmp/claude-1000/x"}),
        ("Read", {"file_path": "/home/me/.claude/projects/x/abc.jsonl"}),
    ],
)
def test_other_files_of_the_cli_need_a_rule(tool: str, members: dict[str, object]) -> None:
    assert told("ask", tool, members) == "ask"


def test_a_rule_that_stops_them_does() -> None:
    deny = '[[rule]]\nname = "no"\nverdict = "deny"\n'
    plan = "/home/me/.claude/plans/a.md"
    assert told("cli", "KillShell", {}, f'{deny}tool = "KillShell"\n') == "deny"
    rule = f'{deny}path = "~/.claude/plans/**"\n'
    assert told("cli", "Write", {"file_path": plan}, rule) == "deny"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("secret/**", "deny"),
        ("secret/*.txt", "deny"),
        ("./secret/a/*", "deny"),
        (".env", "deny"),
        ("src/**/*.ts", "cli"),
        ("**/*", "cli"),
        ("../x/*", "ask"),
    ],
)
def test_a_pattern_of_glob_is_held_against_rules_that_stop(pattern: str, expected: str) -> None:
    deny = '[[rule]]\nname = "no"\nverdict = "deny"\npath = ["./secret/**", "**/.env"]\n'
    assert told("ask", "Glob", {"pattern": pattern}, deny) == expected
