"""Rules that never do what they say: each is reported as a warning, with its line."""

from __future__ import annotations

import pytest

from quarterdeck.policy.calls import short_call
from quarterdeck.policy.dead_rules import unanswerable
from quarterdeck.policy.decide import Call, Rules, decide
from quarterdeck.policy.examples import CONTEXT
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.presets import PARTS, PRESETS, preset, preset_text

DENY = '[[rule]]\nverdict = "deny"\n'
ALLOW = '[[rule]]\nverdict = "allow"\n'
ASK = '[[rule]]\nverdict = "ask"\n'


def warnings(text: str) -> list[tuple[int, str]]:
    loaded = read_policy(text, "p", preset=preset)
    assert loaded.policy is not None, loaded.flaws
    return [(flaw.line, flaw.text) for flaw in loaded.warnings]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (DENY + "tool = 'Bsh'", 3, "no tool 'Bsh': did you mean 'Bash'?"),
        (DENY + "tool = 'read'", 3, "did you mean 'Read'?"),
        (DENY + "tool = ['Bash',\n 'WEBFETCH']", 4, "did you mean 'WebFetch'?"),
        (DENY + "tool = 'Frobnicate'", 3, "names of MCP tools begin with mcp__"),
        (DENY + "tool = ['*', '!Bsh']", 3, "did you mean 'Bash'?"),
        (DENY + "tool = 'mcp__jira'", 3, 'write server = "jira"'),
        (DENY + "server = 'mcp__jira'", 3, 'write "jira"'),
        (DENY + "server = 'mcp__jira__close'", 3, 'tool = "mcp__jira__close"'),
        (DENY + "path = '/etc/**'", 3, "write //etc/** for the root of the disk, or ./etc/**"),
        (DENY + "path = '/**'", 3, "write //** for the root"),
        (DENY + "path = '/'", 3, "write // for the root"),
        (DENY + "path = ['./a',\n '!./**']", 4, "cannot be negated"),
        (DENY + "path = '$HOME/.ssh/**'", 3, "variables are not expanded"),
        (DENY + "path = './**'\nexcept = '!./docs/**'", 4, "cannot be negated"),
        (DENY + "path = '~ada/.ssh/**'", 3, "only ~/ is a home folder"),
        (DENY + "path = '../other/**'", 3, "compared without `..`"),
        (DENY + "claude = ['Read(/etc/**)']", 3, "//etc/**"),
        (DENY + "claude = ['Bsh(rm:*)']", 3, "did you mean 'Bash'?"),
        (ALLOW + "claude = ['Write(./a/**)']", 3, "Edit(./a/**)"),
        ("[claude]\ndeny = ['Read',\n 'Edit(!./**)']", 3, "cannot be negated"),
        ("[claude]\nask = ['Reed']", 2, "did you mean 'Read'?"),
        (ALLOW + "command = 'npm *'", 3, "does not match `npm word`. Any words may follow"),
        (DENY + "command = 'rm -rf'", 3, "write command = 'rm' and flags"),
        (DENY + "branch = ['main', '!main']", 3, "no name can match"),
        (DENY + "project = ['app-1', '!app-*']", 3, "no name can match"),
        (DENY + "machine = '!*'", 3, "no name can match"),
        (DENY + "cost_over = 9\ncost_under = 5", 4, "no cost is over"),
        (ASK + "answered_by = 'role:viewer'", 3, "viewers may not answer"),
        ("[ask]\nanswered_by = 'role:viewer'", 2, "viewers may not answer"),
        ("[ask]\nanswered_by='ada'\n" + ASK + "answered_by = 'bob'", 5, "nobody is both"),
        (DENY + "server = 'jira'\ncommand = 'rm'", 4, "an MCP server have no command"),
        (DENY + "tool = 'WebSearch'\npath = './a'", 4, "calls of WebSearch have no path"),
        (DENY + "tool = 'Read'\ndomain = 'a.test'", 4, "calls of Read have no domain"),
    ],
)
def test_a_dead_rule_is_told_with_its_line(text: str, line: int, said: str) -> None:
    found = warnings(text)
    assert len(found) == 1, found
    assert found[0][0] == line
    assert said in found[0][1]


@pytest.mark.parametrize(
    ("allow", "stop", "call"),
    [
        ("command = 'npm test'", "command = 'npm test'", "npm test"),
        ("command = 'npm test'", "command = 'npm'", "npm test -- -w"),
        ("command = 'npm'", "command = 'n*'", "npm test"),
        ("command = 'npm'", "tool = 'Bash'", "npm test"),
        ("command = 'npm'", "claude = ['Bash(npm:*)']", "npm test"),
        ("claude = ['Bash(npm test:*)']", "command = 'npm'", "npm test"),
        ("claude = ['Bash(npm test)']", "claude = ['Bash(npm test)']", "npm test"),
        ("claude = ['Edit(./src/**)']", "claude = ['Edit(./src/**)']", "Edit(/project/src/a)"),
        ("path = './src/a/**'", "path = './src/**'", "Edit(/project/src/a/b)"),
        ("path = './src/.env'", "path = '**/.env'", "Read(/project/src/.env)"),
        ("path = '~/.ssh/id'", "path = '~/.ssh'", "Read(/home/someone/.ssh/id)"),
        ("domain = 'a.test.example'", "domain = '*.example'", "WebFetch(a.test.example)"),
        ("tool = 'WebSearch'", "tool = 'Web*'", "WebSearch(x)"),
        ("tool = 'Write'", "tool = 'Edit'", "Write(/project/a)"),
        ("tool = 'mcp__jira__close'", "server = 'jira'", "mcp__jira__close"),
        ("server = 'jira'", "server = 'jira'", "mcp__jira__close"),
        ("claude = ['mcp__jira__close']", "claude = ['mcp__jira']", "mcp__jira__close"),
        ("command = 'npm'\nflags = '-g'", "command = 'npm'\nflags = ['-g', '-x']", "npm i -g"),
        ("command = 'npm'\nbranch = 'main'", "command = 'npm'\nbranch = 'main'", "npm test"),
        ("claude = ['Agent(Plan)']", "claude = ['Agent(Plan)']", "Agent(Plan)"),
    ],
)
@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_an_allow_that_a_stricter_rule_always_beats_is_told(
    allow: str, stop: str, call: str, verdict: str
) -> None:
    text = f"{ALLOW}name = 'a'\n{allow}\n[[rule]]\nname = 's'\nverdict = '{verdict}'\n{stop}\n"
    ((line, said),) = warnings(text)
    assert line == 4
    assert "never allowed: the rule 's' (line" in said
    # The warning is true: the engine does not allow it.
    loaded = read_policy(text, "p")
    assert loaded.policy is not None
    tool, given = short_call(call)
    verdict_ = decide(
        Call(tool=tool, input=given, context=CONTEXT), Rules(policies=(loaded.policy,))
    )
    assert verdict_.behavior.value == ("ask" if "branch" in allow else verdict)


@pytest.mark.parametrize(
    ("allow", "stop"),
    [
        ("command = 'npm'", "command = 'npm publish'"),
        ("command = 'npm'", "command = 'npm'\nflags = '-g'"),
        ("command = 'npm'", "command = 'npm'\nwithout = '-g'"),
        ("command = 'npm'", "command = 'npm'\npath = './secret/**'"),
        ("command = 'npm'", "command = 'npm'\nexcept = 'npm test'"),
        ("path = './src/**'", "path = './src/**'\nexcept = './src/a/**'"),
        ("path = './src/**'", "path = './src/**'\noutside = true"),
        ("command = 'npm'", "command = 'npm'\nbranch = 'main'"),
        ("command = 'npm'", "command = 'npm'\nuntil = 2030-01-01T00:00:00Z"),
        ("command = 'npm'", "claude = ['Bash(npm test)']"),
        ("command = 'npm'", "tool = 'Edit'"),
        ("path = './src/**'", "path = './src/a/**'"),
        ("path = './src/**'", "path = '~/src/**'"),
        ("path = './src/**'", "tool = 'Edit'\npath = './src/**'"),
        ("path = './**'", "path = '**/.env'"),
        ("domain = '*.example'", "domain = 'a.example'"),
        ("tool = 'Web*'", "tool = 'WebSearch'"),
        ("tool = 'Bash'", "command = 'rm'"),
        ("server = 'jira'", "tool = 'mcp__jira__close'"),
        ("claude = ['Agent']", "claude = ['Agent(Plan)']"),
    ],
)
def test_an_allow_that_is_sometimes_of_use_is_not_told(allow: str, stop: str) -> None:
    assert warnings(f"{ALLOW}name = 'a'\n{allow}\n{DENY}name = 's'\n{stop}\n") == []


def test_rules_in_claude_codes_syntax_beat_each_other_too() -> None:
    text = "[claude]\nallow = ['Read',\n 'Bash(npm test)']\ndeny = ['Bash(npm:*)']\n"
    ((line, said),) = warnings(text)
    assert line == 3
    assert said.startswith("allow: Bash(npm test): this is never allowed: Bash(npm:*) of [claude]")


def test_a_preset_beats_the_rules_of_a_file_that_extends_it() -> None:
    ((line, said),) = warnings(f"extends = 'trusted-repo'\n{ALLOW}command = 'git push'\n")
    assert line == 4
    assert "the rule 'what others would see' (shared:" in said
    assert "asks about it" in said


@pytest.mark.parametrize(
    "text",
    [
        DENY + "tool = ['Bash', 'mcp__jira__*', 'mcp__*', '*', 'Web*']",
        DENY + "path = ['/src/**', './etc/**', '//etc/**', '~/.ssh/**', '**/.env', 'a..b']",
        DENY + "command = ['rm', 'npm *', 'python -m twine']",
        ALLOW + "command = ['npm', 'npm run *-x', 'git log --oneline']",
        DENY + "branch = ['*', '!main']",
        DENY + "cost_over = 5\ncost_under = 9",
        ASK + "answered_by = ['role:viewer', 'ada']",
        "[ask]\nanswered_by='role:owner'\n" + ASK + "answered_by = 'bob'",
        DENY + "tool = ['Bash', 'Edit']\npath = './a'",
        DENY + "path = './**'\nexcept = './docs/**'",
        DENY + "command = 'git'\nexcept = '/usr/bin/git log'",
    ],
)
def test_a_rule_that_may_be_of_use_is_not_told(text: str) -> None:
    assert warnings(text) == []


@pytest.mark.parametrize("name", [*PRESETS, *PARTS])
def test_no_preset_has_a_dead_rule(name: str) -> None:
    assert read_policy(preset_text(name) or "", name, preset=preset).warnings == ()


@pytest.mark.no_cover
def test_a_large_file_is_compared_within_bounds() -> None:
    rules = [
        f"{ALLOW}name='a{n}'\npath='./a{n}/**'\n{DENY}name='d{n}'\npath='./d{n}/**'\n"
        for n in range(1000)
    ]
    assert warnings("".join(rules)) == []
    rules = [f"{ALLOW}name='a{n}'\ntool='Bsh'\n" for n in range(200)]
    assert len(warnings("".join(rules))) == 100


@pytest.mark.parametrize(
    ("text", "people", "lines"),
    [
        (ASK + "answered_by = ['zoe']", [("ada", "owner")], [1]),
        (ASK + "answered_by = ['ada']", [("ada", "owner")], []),
        (ASK + "answered_by = ['ada']", [("ada", "viewer"), ("bob", "owner")], [1]),
        (ASK + "answered_by = ['role:operator']", [("ada", "owner")], [1]),
        (ASK + "answered_by = ['zoe', 'role:owner']", [("ada", "owner")], []),
        ("[ask]\nanswered_by = ['zoe']\n" + ASK, [("ada", "owner")], [1]),
        (
            "[ask]\nanswered_by = ['role:owner']\n" + ASK + "answered_by = ['bob']",
            [("ada", "owner"), ("bob", "operator")],
            [3],
        ),
        (ASK + "answered_by = ['zoe']", [], []),
    ],
)
def test_a_question_that_nobody_with_access_may_allow_is_told(
    text: str, people: list[tuple[str, str]], lines: list[int]
) -> None:
    policy = read_policy(text, "p").policy
    assert policy is not None
    found = unanswerable(policy, people)
    assert [flaw.line for flaw in found] == lines
    assert all("nobody who has access" in flaw.text for flaw in found)
