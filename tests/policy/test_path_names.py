"""Patterns are left out by the names in a call's paths. That must never change what a rule hits."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quarterdeck.policy.calls import input_of
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import read_policy
from quarterdeck.policy.needs import Context, needs_of
from quarterdeck.policy.path_names import key_of
from quarterdeck.policy.paths import path_pattern
from quarterdeck.policy.presets import preset
from quarterdeck.policy.rules import CallConditions, Rule

HERE = Context(cwd="/home/ada/shop", home="/home/ada")

_LISTED = (
    ".env .ENV .env.example .ssh id_rsa src a.py x.key *.py * .* etc shadow shadow- .. ~ ** [.]env"
    " .e?v {.env,a} $X .docker config.json"
)
NAMES = st.sampled_from(_LISTED.split())
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def secrets() -> tuple[Rule, Rule]:
    """The same rule, with and without what lets patterns be left out."""
    policy = preset("secrets")
    assert policy is not None
    rule = policy.rules[0]
    return rule, replace(rule, what=replace(rule.what, keys=()))


RULE, PLAIN = secrets()


@given(
    command=st.sampled_from(("cat", "cp -r", "ls", "grep -r x", "rm", "tee")),
    paths=st.lists(st.tuples(st.sampled_from(("", "/", "~/", "./")), PATHS), max_size=3),
)
def test_a_rule_hits_the_same_with_and_without(command: str, paths: list[tuple[str, str]]) -> None:
    text = " ".join([command, *(start + path for start, path in paths)])
    request = needs_of("Bash", input_of("Bash", text), HERE)
    hits = [rule.hit(request, HERE, Facts()) for rule in (RULE, PLAIN)]
    found = [(hit.sure, {id(need) for need in hit.needs}) if hit else None for hit in hits]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("**/.ssh", ".ssh"),
        ("//etc/sudoers.d/**", "sudoers.d"),
        ("~/.M2/settings*.xml", ".m2"),
        ("*.pem", "*.pem"),
        ("**/*.key", "*.key"),
        ("**/ssh_host_*_key", "*_key"),
        ("**/.Vault*", ".vault*"),
        ("**/[ab]", None),
        ("**/*", None),
        ("./**", None),
    ],
)
def test_the_key_of_a_pattern_is_its_longest_name_without_wildcards(
    pattern: str, key: str | None
) -> None:
    assert key_of(path_pattern(pattern)) == key


def test_rules_of_files_have_keys() -> None:
    loaded = read_policy('[[rule]]\nverdict = "deny"\npath = ["./a", "*.b"]\n', "p")
    assert loaded.policy is not None
    assert loaded.policy.rules[0].what.keys == ("a", "a", "*.b", "*.b")
    assert msgspec.structs.replace(CallConditions()).keys == ()
