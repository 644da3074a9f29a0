"""A rule that may apply says what is not known; a rewritten call is held against its rule again."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.policy.decide import Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context

FACTS = Facts(mode="default", origin="main", branch="x", machine="local", project="")
CLAUDE = """
[claude]
allow = ["Bash", "WebFetch"]
deny = ["Read(./.env)", "Bash(git push:*)", "WebFetch(domain:127.0.0.1)"]
"""
OURS = """
[[rule]]
name = "all"
verdict = "allow"
tool = ["Bash", "WebFetch"]
[[rule]]
name = "env"
verdict = "deny"
path = "./.env"
[[rule]]
name = "push"
verdict = "deny"
command = "git push"
[[rule]]
name = "hosts"
verdict = "deny"
domain = "127.0.0.1"
"""


def decided(policy: str, tool: str, **members: object) -> Verdict:
    loaded = read_policy(policy, "test")
    assert loaded.policy is not None, loaded.flaws
    given = Raw(json.dumps(members).encode())
    context = Context(cwd="/p", home="/home/me")
    call = Call(tool=tool, input=given, facts=FACTS, context=context)
    return decide(call, Rules(policies=(loaded.policy,)))


@pytest.mark.parametrize("policy", [CLAUDE, OURS], ids=["claude", "ours"])
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ('cat "$f"', 'the variable in "$f" is known only at run time'),
        ("cat $(t)", "the output in $(t) is known only at run time"),
        ("cat `t`", "the output in `t` is known only at run time"),
        ("t | xargs cat", "xargs passes names that are not known"),
        ("grep -r x .", "all that is below . is used"),
        ("cat .e*", ".e* may be several files"),
        ("cd $d; cat a", "the folder of a is not known"),
        ("cat ~someone/a", "the home folder in ~someone/a is not known"),
        ("git $x", "the variable in $x is known only at run time"),
        ("x=$(t); echo $((x))", "arithmetic evaluates the value of x, which is not known"),
    ],
)
def test_the_reason_names_the_word_and_says_why(policy: str, command: str, reason: str) -> None:
    verdict = decided(policy, "Bash", command=command)
    assert verdict.behavior.value == "ask"
    assert any(reason in each for each in verdict.reasons), verdict.reasons


def test_the_reason_names_another_spelling_of_a_host() -> None:
    verdict = decided(CLAUDE, "WebFetch", url="http://[::1]/")
    assert "[::1] may be the same host" in verdict.reasons[0]


LEASE = """
[claude]
allow = ["Bash"]
[[rule]]
name = "lease"
verdict = "rewrite"
command = "git push"
flags = ["--force", "-f"]
[rule.rewrite]
replace_flags = { "--force" = "--force-with-lease", "-f" = "--force-with-lease" }
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git push -f origin main", "git push --force-with-lease origin main"),
        (
            "X='git push -f' git push -f origin main",
            "X='git push -f' git push --force-with-lease origin main",
        ),
        ("ls && git push --force", "ls && git push --force-with-lease"),
        ("sudo git push -f", "sudo git push --force-with-lease"),
        # Two of them, of which the first is in another word.
        (">'git push -f' git push -f origin", None),
        ("git push -fu origin", None),
        ("git push $x", None),
    ],
)
def test_a_command_is_rewritten_for_certain_or_a_person_is_asked(
    command: str, expected: str | None
) -> None:
    verdict = decided(LEASE, "Bash", command=command)
    if expected is None:
        assert verdict.behavior.value == "ask"
    else:
        assert verdict.behavior.value == "allow"
        assert msgspec.json.decode(verdict.input)["command"] == expected
