"""What programs do by their options and operands."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.programs import look_up
from support.shell_words import HERE, said, words


def known(text: str, *, via: str | None = None) -> ProgramEffects:
    return look_up(words(text), HERE, via)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("cat a /b -", ["reads /w/a", "reads /b"]),
        ("/usr/bin/cat a", ["reads /w/a"]),
        ("head -n 3 a", ["reads /w/a"]),
        ("grep x a", ["reads /w/a"]),
        ("grep -e x a", ["reads /w/a"]),
        ("grep -f x a", ["reads /w/x", "reads /w/a"]),
        ("rm a", ["writes /w/a"]),
        ("cp a b c", ["reads /w/a", "reads /w/b", "writes /w/c", "writes /w/c/a", "writes /w/c/b"]),
        ("cp -t c a", ["writes /w/c", "writes /w/c/a", "reads /w/a"]),
        ("mv a b", ["writes /w/a", "reads /w/a", "writes /w/b", "writes /w/b/a"]),
        ("sort -o a b", ["writes /w/a", "reads /w/b"]),
        ("sort --compress-program=x a", ["runs --compress-program", "reads /w/a"]),
        ("cat *", ["reads /w/*"]),
        ("curl -o a http://x", ["writes /w/a"]),
        ("curl -o /dev/null http://x", []),
        ("curl -d @a http://x", ["runs -d", "reads /w/a"]),
        ("curl -d a http://x", []),
        ("curl file:///a", ["runs file:", "reads /a"]),
        ("dd if=a of=b", ["reads /w/a", "writes /w/b"]),
        ("dd if=/dev/null of=b", ["writes /w/b"]),
        ("find a -name b", ["reads /w/a"]),
        ("find a -delete", ["runs -delete", "reads /w/a", "writes /w/a"]),
        ("find a -fprint b", ["writes /w/b", "reads /w/a"]),
        ("make CC=x all", ["alters CC="]),
        ("make -f a", ["reads /w/a", "runs -f"]),
        ("crontab -l", []),
        ("unheard-of -c a", []),
        ("$x a", []),
    ],
)
def test_what_a_program_does_is_told(text: str, effects: list[str]) -> None:
    assert said(known(text).effects) == effects


def test_what_the_name_of_a_program_says_is_its_own() -> None:
    assert [effect.own for effect in known("touch a").effects] == [True]
    assert [effect.own for effect in known("curl -o a http://x").effects] == [False]


@pytest.mark.parametrize(
    ("text", "deep"), [("rm -r a", True), ("rm -fR a", True), ("rm a", False), ("mv a b", True)]
)
def test_what_is_below_a_folder_goes_with_it(text: str, deep: bool) -> None:
    for effect in known(text).effects:
        assert effect.target is not None
        assert effect.target.deep is deep


@pytest.mark.parametrize(
    ("text", "added"),
    [("cat", "reads ?"), ("rm", "writes ?"), ("cp", "writes ?"), ("git", "runs xargs")],
)
def test_words_that_come_later_may_be_anything(text: str, added: str) -> None:
    assert added in said(known(text, via="xargs").effects)
    assert added not in said(known(text).effects)


def test_builtins_git_and_interpreters_are_looked_up_here_too() -> None:
    assert known("cd a").moves is not None
    assert "alters config" in said(known("git config a b").effects)
    assert said(known("python3 -c a").effects) == ["runs -c"]
    assert said(known("sed -i p a").effects) == ["reads /w/a", "writes /w/a"]


def test_a_process_substitution_is_no_file() -> None:
    assert said(look_up(words("diff", "<(sort a)", "b"), HERE, None).effects) == ["reads /w/b"]
