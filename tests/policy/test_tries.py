"""`policy try`: how a command was read, what was not known, and verdicts as codes."""

from __future__ import annotations

import msgspec
import pytest

from quarterdeck.policy.calls import input_of, short_call
from quarterdeck.policy.decide import Call, Rules
from quarterdeck.policy.examples import CONTEXT
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import needs_of
from quarterdeck.policy.presets import preset
from quarterdeck.policy.readings import tokens_of, unknown_in
from quarterdeck.policy.tries import Tried, case_id, read_case, try_call

REWRITE = """
default = "cli"
[claude]
allow = ["Bash"]
[[rule]]
name = "lease"
verdict = "rewrite"
command = "git push"
flags = ["--force"]
[rule.rewrite]
replace_flags = { "--force" = "--force-with-lease" }
"""


BUILDS = """
[[rule]]
name = "all"
verdict = "allow"
tool = "Bash"
[[rule]]
name = "builds"
verdict = "ask"
command = "make"
"""


def tried(text: str, policy: str) -> Tried:
    tool, given = short_call(text)
    loaded = read_policy(policy, "p", preset=preset)
    assert loaded.policy is not None, loaded.flaws
    return try_call(Call(tool=tool, input=given, context=CONTEXT), Rules(policies=(loaded.policy,)))


def tokens(command: str) -> list[tuple[str, str, str | None]]:
    script = needs_of("Bash", input_of("Bash", command), CONTEXT).script
    assert script is not None
    return [(token.kind, token.text, token.value) for token in tokens_of(script)]


def test_tokens_are_words_operators_and_redirections_as_bash_reads_them() -> None:
    assert tokens("cat 'a b' \"$x\" *.md >out 2>&1 && ls # hi") == [
        ("word", "cat", "cat"),
        ("word", "'a b'", "a b"),
        ("word", '"$x"', None),
        ("word", "*.md", None),
        ("redirection", ">", None),
        ("word", "out", "out"),
        ("redirection", "2>&", None),
        ("word", "1", "1"),
        ("operator", "&&", None),
        ("word", "ls", "ls"),
        ("comment", "# hi", None),
    ]


def test_a_here_document_is_one_token_and_what_is_not_read_is_told() -> None:
    assert ("document", "x\nE", None) in tokens("cat <<E\nx\nE")
    assert tokens('ls; echo $"x"')[-1][0] == "rest"


def test_the_place_of_a_token_is_counted_in_characters() -> None:
    script = needs_of("Bash", input_of("Bash", "echo 'äöü' x"), CONTEXT).script
    assert script is not None
    assert [token.start for token in tokens_of(script)] == [0, 5, 11]


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("ls -la", []),
        ("cat *.md {a,b}", []),
        ("cat $x", [("$x", 4)]),
        ('echo ä; git $x "$y"', [("$x", 12), ('"$y"', 15)]),
        ("cat a | xargs rm", [("rm", 8)]),
        ("ls; $cmd x", [("$cmd x", 4)]),
    ],
)
def test_what_is_not_known_is_told_with_its_place(
    command: str, wanted: list[tuple[str, int]]
) -> None:
    found = unknown_in(needs_of("Bash", input_of("Bash", command), CONTEXT))
    assert [(each.what, each.start) for each in found] == wanted
    assert all(each.why for each in found)


def test_a_call_that_cannot_be_read_is_unknown_as_a_whole() -> None:
    (found,) = unknown_in(needs_of("Read", msgspec.Raw(b"{}"), CONTEXT))
    assert (found.what, found.why, found.start) == ("Read", "it has no file_path", None)


@pytest.mark.parametrize(
    ("call", "policy", "code"),
    [
        ("git status", "[claude]\nallow = ['Bash(git status)']", "allow"),
        ("git push", "[claude]\nask = ['Bash(git push)']", "ask"),
        ("git push", "[claude]\ndeny = ['Bash(git push)']", "deny"),
        ("git push", "", "cli"),
        ("git push", "default = 'ask'", "ask"),
        ("cd sub", "default = 'ask'", "free"),
        ("Read(a.txt)", "default = 'ask'", "free"),
        ("AskUserQuestion()", "", "ask"),
        ("git push --force", REWRITE, "rewritten"),
        ("git push", REWRITE, "allow"),
    ],
)
def test_a_verdict_is_a_code(call: str, policy: str, code: str) -> None:
    assert tried(call, policy).verdict == code


def test_without_any_policy_a_call_is_left_to_the_cli() -> None:
    tool, given = short_call("git push")
    found = try_call(Call(tool=tool, input=given, context=CONTEXT), Rules())
    assert found.verdict == "cli"
    assert found.reasons == ("no rule decides about git push: Claude Code's own settings do",)


def test_everything_that_led_to_a_verdict_is_listed() -> None:
    found = tried("npm test && make $x", BUILDS)
    assert found.verdict == "ask"
    assert found.explanation.rule == "builds"
    assert [part.what for part in found.explanation.parts][:2] == ["npm test", "make $x"]
    assert found.tokens[2].text == "&&"
    assert [each.what for each in found.explanation.unknown] == ["$x"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{no", "malformed"),
        (b'{"policy": "", "input": {}}', "`tool`"),
        (b'{"policy": 5, "tool": "Bash", "input": {}}', "$.policy"),
        (b'{"policy": "", "tool": "Bash", "input": []}', "$.input"),
        (b'{"policy": "", "tool": "Bash", "input": "ls"}', "$.input"),
    ],
)
def test_a_case_that_is_wrong_says_what_and_where(line: bytes, said: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=said.replace("$", r"\$")):
        read_case(line)


def test_a_wrong_case_has_its_id_where_it_can_be_read() -> None:
    assert bytes(case_id(b'{"id": {"a": 1}, "tool": 5}')) == b'{"a": 1}'
    assert bytes(case_id(b"no")) == b"null"
