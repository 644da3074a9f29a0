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
from quarterdeck.policy.trees import look_once

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


OWN = """[[rule]]
verdict = "deny"
path = ["**/.env", "*.key", "src/a.py", "./src/**", "~/.ssh/**", "//etc/shadow", "~/shop/b*/x.key",
        "**/.git/hooks/**", "**/node_modules/a.js", "[ab]*", "//home/ada/**", "/.docker/c*.json",
        "A.PY", "./b/../c", ".", "~"]
"""


def own() -> tuple[Rule, Rule]:
    """A rule whose patterns are relative to several folders."""
    policy = read_policy(OWN, "own").policy
    assert policy is not None
    return policy.rules[0], replace(policy.rules[0], what=replace(policy.rules[0].what, keys=()))


FILES = st.lists(
    st.lists(
        st.sampled_from(
            [
                ".env",
                ".ENV",
                "src",
                "a.py",
                "x.key",
                "b",
                ".git",
                "hooks",
                "node_modules",
                "a.js",
                ".ssh",
                "c1.json",
            ]
        ),
        min_size=1,
        max_size=3,
    ).map("/".join),
    max_size=6,
)
FOLDERS = (
    ". .. / ~ ~/.ssh src src/b ./b /etc /home /home/ada /home/ada/shop ../shop /tmp a.py b* 'b*'"
    " .git node_modules $X /home/ada/shop/.docker ~/shop/b1"
)


@given(
    command=st.sampled_from(
        ("cp -r", "rm -r", "mv", "grep -r x", "rsync -a", "ls -R", "chmod -R 1")
    ),
    paths=st.lists(st.sampled_from(FOLDERS.split()), min_size=1, max_size=3),
    files=FILES,
    rules=st.sampled_from((secrets(), own())),
    known=st.sampled_from((True, True, False)),
    home=st.sampled_from(("/home/ada", "/home/ada", None)),
)
def test_a_rule_hits_the_same_in_folders_that_are_looked_into(
    command: str,
    paths: list[str],
    files: list[str],
    rules: tuple[Rule, Rule],
    known: bool,
    home: str | None,
) -> None:
    every = dict.fromkeys(
        "/".join(path.split("/")[:end])
        for path in files
        for end in range(1, 1 + path.count("/") + 1)
    )
    place = replace(
        HERE, home=home, below=look_once(lambda _: (list(every), []) if known else None)
    )
    request = needs_of("Bash", input_of("Bash", " ".join([command, *paths])), place)
    hits = [rule.hit(request, place, Facts()) for rule in rules]
    found = [(hit.sure, [id(need) for need in hit.needs]) if hit else None for hit in hits]
    assert found[0] == found[1]


def test_patterns_about_certain_folders_do_not_make_the_disk_be_looked_at() -> None:
    policy = read_policy('[[rule]]\nverdict = "deny"\npath = "//etc/shadow"\n', "p").policy
    assert policy is not None
    looked: list[str] = []
    place = replace(HERE, below=looked.append)
    request = needs_of("Bash", input_of("Bash", "rm -r build"), place)
    assert policy.rules[0].hit(request, place, Facts()) is None
    assert not looked


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
