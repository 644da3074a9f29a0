"""Policy files: every flaw on its line, the nearest right name, and examples that must hold."""

from __future__ import annotations

import pytest

from quarterdeck.policy.file import read_policy
from quarterdeck.policy.presets import preset
from quarterdeck.policy.toml import Flaw


def flaws(text: str) -> list[tuple[int, str]]:
    loaded = read_policy(text, "p", preset=preset)
    assert loaded.policy is None
    return [(flaw.line, flaw.text) for flaw in loaded.flaws]


RULE = '[[rule]]\nverdict = "deny"\n'


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("x = ", 1, "not TOML"),
        ("\n\n[[rule]\n", 3, "not TOML"),
        ("defualt = 'ask'", 1, "did you mean 'default'?"),
        ("default = 'asks'", 1, "did you mean 'ask'?"),
        ("[[rules]]\n", 1, "did you mean 'rule'?"),
        ("[rule]\nverdict = 'deny'", 1, "[[rule]]"),
        ("[[rule]]\nname = 'x'\n", 1, "verdict is missing"),
        ("[[rule]]\nverdict = 'dney'\ntool='Bash'", 2, "did you mean 'deny'?"),
        (RULE + "comand = 'rm'", 3, "did you mean 'command'?"),
        (RULE + "command = 'rm; ls'", 3, "one simple command"),
        (RULE + 'command = "rm \'x"', 3, "cannot be parsed"),
        (RULE + "command = []", 3, "empty"),
        (RULE + "command = ['rm',\n '', 'x']", 4, "expected a text"),
        (RULE + "command = 5", 3, "expected a text"),
        (RULE + "flags = ['force']", 3, "a flag without a value"),
        (RULE + "claude = ['Bash(']", 3, "is not a rule"),
        (RULE + "claude = ['Bash']\ncommand = 'x'", 1, "claude cannot be combined"),
        (RULE + "mode = 'defualt'", 3, "did you mean 'default'?"),
        (RULE + "origin = 'agent'", 3, "main, subagent"),
        (RULE + "days = 'someday'", 3, "days are"),
        (RULE + "hours = '9-17'", 3, "09:00-18:00"),
        (RULE + "hours = '09:00-17:00'\nzone = 'Mars/Olympus'", 4, "time zone"),
        (RULE + "zone = 'UTC'", 3, "needs days or hours"),
        (RULE + "until = 2026-01-01", 3, "with its offset"),
        (RULE + "cost_over = -1", 3, "at least 0"),
        (RULE + "wait = '5m'", 3, "only a rule with the verdict ask"),
        (RULE + "rewrite = { remove = ['x'] }", 1, "verdict rewrite"),
        ("[[rule]]\nverdict='rewrite'\ntool='Bash'", 1, "verdict rewrite"),
        ("[[rule]]\nverdict='rewrite'\ntool='Bash'\nrewrite = {}", 4, "changes nothing"),
        (
            "[[rule]]\nverdict='rewrite'\n[rule.rewrite]\nadd_flags=['-x']",
            3,
            "must name the command",
        ),
        ("[[rule]]\nverdict='ask'\nwait='soon'", 3, "a duration"),
        ("[[rule]]\nverdict='ask'\nthen='allow'", 3, "needs wait"),
        ("[[rule]]\nverdict='ask'\nanswered_by='role:boss'", 3, "no role 'boss'"),
        ("[[rule]]\nverdict='allow'\n", 1, "everything"),
        ("[[rule]]\nverdict='allow'\nflags=['-x']", 1, "must name the command"),
        ("[[rule]]\nverdict='allow'\ntool='Bash'\nmessage='hi'", 4, "no message to the agent"),
        (f"{RULE}name='a'\n{RULE}name='a'", 4, "line 1 has the same name, 'a'"),
        ("extends = ['nothing']", 1, "no preset"),
        ("[ask]\nthen = 'allow'", 2, "no key 'then'"),
        ("[claude]\nallow = ['Read',\n 'Bash(']", 3, "is not a rule"),
        ("[claude]\nalow = ['Read']", 2, "did you mean 'allow'?"),
        ("[[test]]\ncall = 'ls'", 1, "verdict is missing"),
        ("[[test]]\nverdict = 'ask'", 1, "it needs a call"),
    ],
)
def test_a_flaw_is_told_with_its_line(text: str, line: int, said: str) -> None:
    found = flaws(text)
    assert any(at == line and said in told for at, told in found), found


FOLLOW = ", with which any words may follow"
ALLOW = '[[rule]]\nverdict = "allow"\n'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            ALLOW + "command = 'npm:*'",
            [
                (
                    3,
                    "command: 'npm:*' is Claude Code's syntax: write command = 'npm'" + FOLLOW,
                )
            ],
        ),
        (
            ALLOW + "command = ['ls',\n 'Bash(rm:*)']",
            [
                (
                    4,
                    "command: 'Bash(rm:*)' is Claude Code's syntax: write command = 'rm'"
                    + FOLLOW
                    + ", or claude = ['Bash(rm:*)']",
                )
            ],
        ),
        (
            "\ufeffdefault = 'ask'",
            [(1, "it begins with a byte order mark (BOM): save it as UTF-8 without")],
        ),
        ("[[test]]\ncall = 'ls'", [(1, "the verdict is missing")]),
        (
            "[[test]]\ncall = 'ls'\nverdict = 'alow'",
            [(3, "verdict: expected one of allow, ask, deny, cli: did you mean 'allow'?")],
        ),
    ],
)
def test_a_mistake_is_one_flaw_that_says_what_to_write(
    text: str, wanted: list[tuple[int, str]]
) -> None:
    assert flaws(text) == wanted


def test_all_flaws_are_told_at_once_in_their_order() -> None:
    found = flaws("defualt = 'ask'\n[[rule]]\nverdict='deny'\nbranhc='x'\n[[rule]]\n")
    assert [line for line, _ in found] == [1, 4, 5]


def test_an_example_that_does_not_hold_refuses_the_whole_file() -> None:
    text = RULE + "name='push'\ncommand='git push'\nmatch=['git push',\n 'git pull']\n"
    assert flaws(text) == [(6, "Bash git pull: the rule 'push' does not match it")]
    text = RULE + "name='push'\ncommand='git push'\nnot_match=['ls && git push']\n"
    assert flaws(text) == [(5, "Bash ls && git push: the rule 'push' matches it")]


def test_an_example_of_an_allow_is_allowed_by_the_rule_alone() -> None:
    rule = "[[rule]]\nname='m'\nverdict='allow'\ncommand='make'\n"
    assert read_policy(rule + "match=['make all']\nnot_match=['make && rm x']", "p").examples == 2
    assert flaws(rule + "match=['make && rm x']")[0][0] == 5


def test_an_example_may_tell_facts_and_what_it_does_not_tell_fits() -> None:
    text = (
        RULE + "command='git push'\nbranch='main'\ndays='mon'\n"
        "match=['git push', {call='git push', branch='main'}]\n"
        "not_match=[{call='git push', branch='topic'}, {call='git push', at=2026-11-17T12:00:00Z}]"
    )
    loaded = read_policy(text, "p")
    assert loaded.policy is not None, loaded.flaws
    assert loaded.examples == 4


def test_examples_are_about_any_tool() -> None:
    text = RULE + "path='./secret/**'\nserver='x'\n"
    text = (
        RULE + "path='./secret/**'\n"
        "match=['Edit(secret/a)', 'Read(/project/secret/a)', {tool='Write', "
        "input={file_path='/project/secret/b'}}]\nnot_match=['Edit(a)', 'WebFetch(example.com)']\n"
        "[[rule]]\nname='mcp'\nverdict='deny'\nserver='jira'\n"
        "match=['mcp__jira__close']\nnot_match=['mcp__wiki__read()']\n"
    )
    loaded = read_policy(text, "p")
    assert loaded.policy is not None, loaded.flaws


def test_a_test_is_about_the_whole_policy() -> None:
    text = "default='ask'\n" + RULE + "command='rm'\n[[test]]\ncall='rm x'\nverdict='allow'\n"
    ((line, said),) = flaws(text)
    assert line == 5
    assert "the verdict is deny, not allow" in said


def test_a_failed_test_says_what_is_not_known() -> None:
    text = RULE + "command='rm'\n[[test]]\ncall='ls && $x y'\nverdict='deny'\n"
    ((_, said),) = flaws(text)
    assert "the verdict is ask, not deny" in said
    assert "unknown is $x y: " in said


def test_a_file_extends_a_preset_and_may_have_another_default() -> None:
    loaded = read_policy("extends='careful'\n" + RULE + "command='ls'", "p", preset=preset)
    assert loaded.policy is not None
    assert loaded.policy.default == "ask"
    assert {rule.source for rule in loaded.policy.rules} == {
        "secrets",
        "looking",
        "agent-tools",
        "p",
    }
    loaded = read_policy("extends='careful'\ndefault='deny'", "p", preset=preset)
    assert loaded.policy is not None
    assert loaded.policy.default == "deny"


def test_an_empty_file_is_a_policy_without_rules() -> None:
    loaded = read_policy("", "p")
    assert loaded.policy is not None
    assert (loaded.policy.default, loaded.rules) == ("cli", 0)


def test_a_file_that_is_too_large_is_refused() -> None:
    assert "characters" in flaws("#" * 1_000_001)[0][1]


def test_a_flaw_reads_as_a_line() -> None:
    assert str(Flaw(line=3, text="wrong")) == "line 3: wrong"
