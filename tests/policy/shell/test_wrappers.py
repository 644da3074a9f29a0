"""Programs that run other programs: where the other command stands, or why nobody can tell."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.word_reader import join_words
from quarterdeck.policy.shell.wrappers import Unwrapped, unwrap
from support.shell_words import HERE, said, words


def peeled(text: str, *more: str) -> Unwrapped:
    return unwrap(words(text, *more), HERE)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("timeout 5 a b", "a b"),
        ("timeout -k 3 --signal=TERM 5 a", "a"),
        ("nice -n 3 a", "a"),
        ("nice -5 a", "a"),
        ("nohup a", "a"),
        ("time -p a", "a"),
        ("command a", "a"),
        ("stdbuf -oL a", "a"),
    ],
)
def test_wrappers_that_rules_look_through(text: str, inner: str) -> None:
    found = peeled(text)
    assert found.transparent
    assert [join_words(each.words) for each in found.commands] == [inner]
    assert found.doubts == ()
    assert found.commands[0].here.dirs == HERE.dirs


@pytest.mark.parametrize(
    ("text", "inner", "elsewhere"),
    [
        ("sudo a b", "a b", False),
        # In a folder of its own it may be any program.
        ("/usr/bin/time -p a", "a", False),
        ("sudo -u me a", "a", True),
        ("env a", "a", False),
        ("env -C x a", "a", True),
        ("docker exec box a", "a", False),
        ("docker run --rm image a -b", "a -b", False),
        ("kubectl exec pod -- a", "a", False),
        ("poetry run a", "a", False),
        ("chroot x a", "a", True),
        ("setsid -f a", "a", False),
    ],
)
def test_wrappers_that_are_commands_themselves(text: str, inner: str, elsewhere: bool) -> None:
    found = peeled(text)
    assert not found.transparent
    (command,) = found.commands
    assert join_words(command.words) == inner
    assert (command.here.dirs == ()) == elsewhere


@pytest.mark.parametrize(
    ("given", "script"),
    [
        (("bash -c", "'a; b'"), "a; b"),
        (("sh -ec", "'a'"), "a"),
        (("bash -o pipefail -c", "'a | b'"), "a | b"),
        (("ssh host", "'a; b'"), "a; b"),
        (("ssh -p 22 host a b",), "a b"),
        (("watch -n 1", "'a | b'"), "a | b"),
        (("su me -c", "'a b'"), "a b"),
        (("flock lock -c", "'a b'"), "a b"),
        (("eval a", "'b c'"), "a b c"),
        (("trap", "'a b'", "EXIT"), "a b"),
    ],
)
def test_texts_for_a_shell_are_scripts(given: tuple[str, ...], script: str) -> None:
    found = peeled(*given)
    assert [each.text for each in found.scripts] == [script]
    assert found.doubts == ()


@pytest.mark.parametrize(
    "text",
    [
        "timeout --unheard-of 5 a",
        "nice $x a",
        "sudo --unheard-of a",
        "env -S a",
        "bash -c $x",
        "bash -c",
        "bash --rcfile a -i",
        "su me",
        "eval $x",
    ],
)
def test_what_cannot_be_told_is_a_doubt(text: str) -> None:
    found = peeled(text)
    assert found.doubts != ()
    assert found.commands == ()


@pytest.mark.parametrize(
    "text",
    [
        "ls a",
        "timeout",
        "command -v a",
        "bash --version",
        "docker ps",
        "poetry install",
        "find . -name a",
        "$x a",
    ],
)
def test_most_commands_run_nothing_else(text: str) -> None:
    assert peeled(text) == Unwrapped()


def test_variables_that_a_wrapper_sets_are_effects() -> None:
    assert said(peeled("env PATH=/x LANG=C a").effects) == ["alters PATH="]
    assert said(peeled("sudo EDITOR=vi a").effects) == ["alters EDITOR="]


def test_a_shell_runs_a_file_or_its_input() -> None:
    assert said(peeled("bash a.sh").effects) == ["runs a.sh"]
    assert [effect.why for effect in peeled("bash").effects] == ["bash runs its input"]


def test_find_runs_a_command_for_each_of_its_marks() -> None:
    found = peeled("find . -exec a {} \\; -execdir b {} +")
    assert [each.words[0].source for each in found.commands] == ["a", "b"]
    assert [each.open_ended for each in found.commands] == [False, True]
    assert [each.here.dirs == () for each in found.commands] == [False, True]


def test_xargs_adds_words() -> None:
    (command,) = peeled("xargs -n 1 rm -f").commands
    assert join_words(command.words) == "rm -f"
    assert command.open_ended
