"""What must hold for any commands and any rules: more rules to allow never forbid, more to stop
never allow, and nothing becomes harmless by company.
"""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules
from quarterdeck.policy.explain import explain
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.grants import narrowest
from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.parity import ClaudeRule, RuleSet
from quarterdeck.policy.presets import preset
from quarterdeck.policy.shell import read
from quarterdeck.policy.specifiers import Behavior, parse_rule
from support.examples import examples

CONTEXT = Context(cwd="/project", home="/home/someone")

ALLOWED = (
    "Bash(git status:*)",
    "Bash(git *)",
    "Bash(echo *)",
    "Bash(ls *)",
    "Bash(npm run *)",
    "Bash(sudo ls *)",
    "Bash(find *)",
    "Bash(cat *)",
    "Bash(touch *)",
    "Bash(* --version)",
    "Bash(bash -c 'ls')",
    "Bash(rm -rf build)",
    "Edit(./src/**)",
    "Read(//etc/**)",
)
DENIED = ("Bash(rm:*)", "Bash(git push:*)", "Read(./secret/**)", "Edit(~/**)", "Bash(find *)")

SIMPLE = (
    "git status",
    "git push",
    "git -c core.pager=id log",
    "echo hi",
    "ls -la",
    "npm run build",
    "sudo ls x",
    "sudo rm x",
    "find . -name x",
    "find . -exec rm {} \\;",
    "cat a",
    "cat /etc/hosts",
    "cat secret/a",
    "touch a",
    "touch /x",
    "node --version",
    "bash -c 'ls'",
    "bash -c 'rm x'",
    "rm -rf build",
    "rm -rf /",
    "echo x > src/a",
    "echo x > ~/.bashrc",
    "$x",
    "cat $x",
    "x=1",
    "cd src",
    "cd /tmp",
    "timeout 5 ls",
    "xargs rm",
    "other",
    "FOO=1 ls",
    "true",
)
JOINTS = ("{} && {}", "{}; {}", "{} || {}", "{} | {}", "{} & {}", "{}\n{}", "({}); {}")
AROUND = ("{}", "({})", "{{ {}; }}", "if {}; then true; fi", "echo $({})", "timeout 9 {}", "! {}")

commands = st.sampled_from(SIMPLE)
allowing = st.sets(st.sampled_from(ALLOWED))
denying = st.sets(st.sampled_from(DENIED))


def rule_set(allow: set[str], deny: set[str]) -> RuleSet:
    placed = [(text, Behavior.ALLOW) for text in sorted(allow)]
    placed += [(text, Behavior.DENY) for text in sorted(deny)]
    return RuleSet(tuple(ClaudeRule(rule=parse_rule(text), behavior=verb) for text, verb in placed))


def behavior(command: str, rules: RuleSet) -> Behavior | None:
    """What becomes of it; a command that needs no rule is as good as allowed."""
    request = needs_of("Bash", Raw(json.dumps({"command": command}).encode()), CONTEXT)
    outcome = rules.weigh(request, CONTEXT)
    free = outcome.behavior is None and not outcome.open
    return Behavior.ALLOW if free else outcome.behavior


@settings(max_examples=examples(400))
@given(commands, commands, st.sampled_from(JOINTS), st.booleans(), allowing, denying)
def test_company_makes_nothing_allowed(
    bad: str, other: str, joint: str, first: bool, allow: set[str], deny: set[str]
) -> None:
    rules = rule_set(allow, deny)
    whole = joint.format(bad, other) if first else joint.format(other, bad)
    found = behavior(bad, rules)
    if found is not Behavior.ALLOW:
        assert behavior(whole, rules) is not Behavior.ALLOW
    if found is Behavior.DENY:
        assert behavior(whole, rules) is Behavior.DENY


@settings(max_examples=examples(300))
@given(commands, st.sampled_from(AROUND), allowing, denying)
def test_no_wrapping_makes_anything_allowed(
    bad: str, around: str, allow: set[str], deny: set[str]
) -> None:
    rules = rule_set(allow, deny)
    found = behavior(bad, rules)
    if found is not Behavior.ALLOW:
        assert behavior(around.format(bad), rules) is not Behavior.ALLOW


@settings(max_examples=examples(400))
@given(st.lists(commands, min_size=1, max_size=3), allowing, allowing, denying)
def test_taking_an_allow_rule_away_never_allows_more(
    several: list[str], allow: set[str], more: set[str], deny: set[str]
) -> None:
    command = " && ".join(several)
    if behavior(command, rule_set(allow, deny)) is Behavior.ALLOW:
        assert behavior(command, rule_set(allow | more, deny)) is Behavior.ALLOW


@settings(max_examples=examples(400))
@given(st.lists(commands, min_size=1, max_size=3), allowing, denying, denying)
def test_adding_a_deny_rule_never_allows_more(
    several: list[str], allow: set[str], deny: set[str], more: set[str]
) -> None:
    command = " ; ".join(several)
    if behavior(command, rule_set(allow, deny | more)) is Behavior.ALLOW:
        assert behavior(command, rule_set(allow, deny)) is Behavior.ALLOW


@settings(max_examples=examples(300))
@given(st.text(max_size=60), st.sets(st.sampled_from(ALLOWED)))
def test_any_text_is_weighed_and_problems_are_never_allowed(text: str, allow: set[str]) -> None:
    found = behavior(text, rule_set(allow, set()))
    if read(text).problems:
        assert found is not Behavior.ALLOW


def test_no_input_makes_taking_apart_explaining_or_naming_fail() -> None:
    def broken(path: str) -> str:
        raise ValueError(path)

    hostile = [
        ("Bash", {"command": "echo " + "${x:-" * 2_700 + "}" * 2_700}),
        ("Bash", {"command": "cat $'a\\0b'"}),
        ("Bash", {"command": "a\0b \ud800"}),
        ("Read", {"file_path": "a\0b"}),
        ("Write", {"file_path": "\ud800", "content": ""}),
        ("Grep", {"pattern": "x", "path": "a\0", "glob": "{" * 3_000}),
        ("Grep", {"pattern": 1, "path": []}),
        ("WebFetch", {"url": "http://[/"}),
    ]
    loaded = read_policy('extends = ["trusted-repo"]', "all", preset=preset)
    assert loaded.policy is not None
    for context in (CONTEXT, Context(cwd="/project", home="/home/someone", resolve=broken)):
        for tool, members in hostile:
            given = Raw(json.dumps(members).encode())
            assert needs_of(tool, given, context).needs
            call = Call(tool=tool, input=given, context=context)
            assert explain(call, Rules(policies=(loaded.policy,))).verdict in {"ask", "deny"}
            assert isinstance(narrowest(tool, given, context), tuple)
