"""Programs without a table: a rule against a file still sees the words that may name it."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.unknown_programs import possible_reads
from support.shell_words import HERE, said, words


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("p .env", ["/w/.env"]),
        ("p ~/.ssh/id_rsa", ["~/.ssh/id_rsa"]),
        ("p a/b /c", ["/w/a/b", "/c"]),
        ("p --file=.env", ["/w/.env"]),
        ("p -f.env", ["/w/.env"]),
        ("p -f .env", ["/w/.env"]),
        ("p @.env", ["/w/@.env", "/w/.env"]),
        ("p x=.env", ["/w/x=.env", "/w/.env"]),
        ("p run build", []),
        ("p - /dev/null", []),
        ("p $x", []),
        ("p .e*", ["/w/.e*"]),
    ],
)
def test_a_word_that_looks_like_a_path_may_be_a_file(text: str, files: list[str]) -> None:
    found = possible_reads("p", words(text), HERE)
    assert said(found) == [f"reads {file}" for file in files]
    assert all(effect.maybe for effect in found)


def test_words_of_some_commands_are_never_files() -> None:
    assert possible_reads("echo", words("echo .env"), HERE) == ()
