"""Rules that cannot match are left out before they are compared. That never changes a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.indexes import KeyIndex, WordIndex
from quarterdeck.policy.needs import Context, NeedKind, Request, needs_of
from quarterdeck.policy.path_names import PathNames
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset
from quarterdeck.policy.rules import Rule
from quarterdeck.policy.specifiers import Behavior, parse_rule

HERE = Context(cwd="/home/ada/shop", home="/home/ada")
PRESETS = ("read-only", "careful", "edit-freely", "trusted-repo")

FIRST = ("git", "/usr/bin/git", "gizmo", "npm", "docker-compose", "cat", "./run", "rm", "xargs rm")
_LISTED = (
    "status push run build publ -C x --force -rf a.txt .env src/a.py ~/.ssh/id_rsa *.pem -n $x"
    " --version /etc/shadow {.env,b} 'a.b'"
)
WORDS = tuple(_LISTED.split())
COMMANDS = st.tuples(st.sampled_from(FIRST), st.lists(st.sampled_from(WORDS), max_size=4)).map(
    lambda pair: " ".join([pair[0], *pair[1]])
)
TEXTS = st.lists(COMMANDS, min_size=1, max_size=3).map(" | ".join)

PATTERNS = (
    "git",
    "git:*",
    "git *",
    "gi*",
    "gi*t:*",
    "g* push",
    "git push*",
    "git  push *",
    "* --version",
    "docker-compose up:*",
    "docker-compose:*",
    "npm run build",
    "npm*run*",
    "./run *",
    "cat .env",
    "rm -rf:*",
    "rm -f -r *",
)
CLAUDE = (
    *(f"Bash({each})" for each in PATTERNS),
    "Bash",
    "Read(**/.env)",
    "Edit(src/**)",
    "Read(~/.ssh/**)",
    "Read",
)
RULES = (
    'command = ["git push", "docker-compose up", "npm publish"]',
    'command = ["g*t status", "r?", "cat"]',
    'command = ["git", "rm"]\nflags = ["-f", "--force"]',
    'command = "git push"\npath = ["src/**", "*.pem", "**/.env*"]',
    'path = ["**/.env", "*.pem", "id_*", "**/[ab]*", "/etc/shadow", "src/**"]',
    'claude = ["Bash(git status:*)", "Bash(gi*)", "Bash(docker-compose:*)", "Bash(* --version)"]',
    'claude = ["Read(./**)", "Grep", "Edit(src/**)", "Bash(git push)"]',
    'command = ["git pu*", "npm run", "git"]',
    'tool = "Bash"',
    'tool = ["Edit", "Grep"]',
    'tool = "Edit"\npath = "src/**"',
    'domain = "example.com"',
)
SETS = st.tuples(
    st.dictionaries(
        st.sampled_from(("allow", "ask", "deny")),
        st.lists(st.sampled_from(CLAUDE), min_size=1, max_size=6),
        max_size=3,
    ),
    st.lists(
        st.tuples(st.sampled_from(("allow", "ask", "deny")), st.sampled_from(RULES)), max_size=5
    ),
)


def every_item(index: WordIndex[object], words: Iterable[str | None]) -> list[object]:
    """As `WordIndex.candidates`, and nothing is left out."""
    del words
    return list(index._items)


def every_path(index: KeyIndex[object], names: PathNames) -> tuple[object, ...]:
    """As `KeyIndex.near`, and nothing is left out."""
    del names
    return tuple(item for _, item in index._pairs)


def every_rule(policy: Policy, request: Request) -> tuple[Rule, ...]:
    """As `Policy.candidates`, and nothing is left out."""
    del request
    return policy.rules


def verdicts(command: str, policy: Policy) -> tuple[Verdict, Verdict]:
    """The verdict on a command, and the same when every rule is compared with it."""
    call = Call(tool="Bash", input=input_of("Bash", command), facts=Facts(), context=HERE)
    found = decide(call, Rules(policies=(policy,)))
    with (
        patch.object(WordIndex, "candidates", every_item),
        patch.object(KeyIndex, "near", every_path),
        patch.object(Policy, "candidates", every_rule),
    ):
        return found, decide(call, Rules(policies=(policy,)))


def named(command: str) -> bool:
    """Whether all programs of a command are known: else each rule for commands may be meant."""
    request = needs_of("Bash", input_of("Bash", command), HERE)
    return all(need.kind is not NeedKind.UNKNOWN for need in request.needs)


@given(command=TEXTS, name=st.sampled_from(PRESETS))
def test_a_preset_decides_the_same_if_every_rule_is_compared(command: str, name: str) -> None:
    policy = preset(name)
    assert policy is not None
    found, plain = verdicts(command, policy)
    assert found == plain


@given(command=TEXTS, rules=SETS)
def test_any_rules_decide_the_same_if_every_rule_is_compared(
    command: str, rules: tuple[dict[str, list[str]], list[tuple[str, str]]]
) -> None:
    claude, own = rules
    lines = ["[claude]", *(f"{verb} = {listed!r}" for verb, listed in claude.items())]
    lines += [f'[[rule]]\nverdict = "{verb}"\n{what}' for verb, what in own]
    loaded = read_policy("\n".join(lines), "random")
    assert loaded.policy is not None, loaded.flaws
    found, plain = verdicts(command, loaded.policy)
    if named(command):
        assert found == plain
    assert found.behavior is plain.behavior


@given(pattern=st.sampled_from(PATTERNS), command=COMMANDS)
def test_a_text_begins_with_the_first_words_of_each_pattern_that_it_matches(
    pattern: str, command: str
) -> None:
    found = parse_rule(f"Bash({pattern})").command
    assert found is not None
    if found.matches(command):
        assert found.first_word in {None, command.split()[0]}
        assert found.second_word in {None, *command.split()[1:2]}


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("git", ("git", None)),
        ("git:*", ("git", None)),
        ("git *", ("git", None)),
        ("git push", ("git", "push")),
        ("git push*", ("git", None)),
        ("git push *", ("git", "push")),
        ("git * push", ("git", None)),
        ("docker-compose up:*", ("docker-compose", "up")),
        ("gi*", (None, None)),
        ("gi*t:*", (None, None)),
        ("* --version", (None, None)),
    ],
)
def test_a_word_of_a_pattern_is_known_if_no_wildcard_touches_it(
    pattern: str, words: tuple[str | None, str | None]
) -> None:
    found = parse_rule(f"Bash({pattern})").command
    assert found is not None
    assert (found.first_word, found.second_word) == words


def test_a_wildcard_within_the_first_word_stops_every_command_that_it_matches() -> None:
    loaded = read_policy('[claude]\ndeny = ["Bash(gi*t:*)"]\n', "p")
    assert loaded.policy is not None
    found, _ = verdicts("git status", loaded.policy)
    assert found.behavior is Behavior.DENY
