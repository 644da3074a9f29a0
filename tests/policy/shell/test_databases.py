"""Clients of databases run their input, unless an option gives them something to run."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.programs import look_up
from support.shell_words import HERE, said, words


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("psql", ["runs -"]),
        ("psql -h db.example shop", ["runs -"]),
        ("psql -c x", ["runs -c"]),
        ("psql -f a.sql -o b", ["reads /w/a.sql", "runs -f", "writes /w/b"]),
        ("psql -l", []),
        ("mysql -u x shop", ["runs -"]),
        ("mysql -e x --tee=a", ["runs -e", "writes /w/a"]),
        ("mysql --pager=x -e y", ["runs --pager", "runs -e"]),
    ],
)
def test_what_a_client_runs_reads_and_writes_is_told(text: str, effects: list[str]) -> None:
    assert said(look_up(words(text), HERE, None).effects) == effects


def test_the_host_of_a_client_is_told() -> None:
    assert look_up(words("psql -h db.example -l"), HERE, None).fetches == ("db.example",)
