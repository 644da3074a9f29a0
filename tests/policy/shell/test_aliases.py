"""Other names of commands: what the data says, and what is made of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.policy.shell.aliases import (
    MOST,
    MOST_WORDS,
    BadAliases,
    has_other_names,
    other_names,
    read_aliases,
)
from support.examples import examples


def names(command: str) -> set[str]:
    return {" ".join(each) for each in other_names(tuple(command.split()))}


@pytest.mark.parametrize(
    ("command", "others"),
    [
        ("docker image push x", {"docker push x"}),
        ("docker push x", {"docker image push x"}),
        ("docker --context a image rm -f x", {"docker rmi --context a -f x"}),
        ("npm i x", {"npm install x", "npm add x"}),
        ("npm init a", {"npm create a"}),
        (
            "pip install x",
            {"pip3 install x", "python -m pip install x", "python3 -m pip install x"},
        ),
        ("pip3.11 install x", {"pip install x", "python3 -m pip install x"}),
        (
            "python3 -m pip install x",
            {"pip install x", "pip3 install x", "python -m pip install x"},
        ),
        ("python3.12 -Im pip install x", {"pip install x", "python3 -Im pip install x"}),
        ("python -W ignore -mtwine upload x", {"twine upload x"}),
        ("python3 -m pre_commit run", {"pre-commit run"}),
        ("python a.py", {"python3 a.py"}),
        ("egrep -n x", {"grep -E -n x"}),
        ("grep -nE x", {"egrep -nE x", "grep --extended-regexp -nE x"}),
        ("uv tool run x", {"uvx x", "python3 -m uv tool run x"}),
        ("git stage x", {"git add x"}),
        ("vi a", {"vim a", "nvim a"}),
    ],
)
def test_a_command_has_the_names_that_the_data_gives_it(command: str, others: set[str]) -> None:
    found = names(command)
    assert others <= found
    assert command not in found


@pytest.mark.parametrize(
    "command",
    [
        "",
        "git status",
        "ls -la",
        "npm init",
        "npm init -y",
        "grep x a",
        "docker image",
        "docker compose-x",
        "python",
        "docker x image push",
        "pytest7x",
    ],
)
def test_other_commands_have_only_one_name(command: str) -> None:
    assert names(command) <= {"python3", "py"}


def test_python_with_a_file_has_no_name_of_a_module() -> None:
    assert names("python a.py -m pip") == {"python3 a.py -m pip", "py a.py -m pip"}


@pytest.mark.parametrize("name", ["docker", "pip3.11", "python3", "egrep"])
def test_a_program_in_the_data_has_other_names(name: str) -> None:
    assert has_other_names(name)
    assert not has_other_names(f"x{name}")


_WORDS = (
    "docker npm pip python python3.11 grep egrep image push i -m -E --x -Im rm install x * tool run"
    " uv compose docker-compose container ls"
)
WORDS = st.sampled_from(_WORDS.split())


@settings(max_examples=examples(500))
@given(st.lists(WORDS, min_size=1, max_size=9))
def test_whatever_the_words_are_the_other_names_are_few_and_differ(words: list[str]) -> None:
    found = other_names(tuple(words))
    assert len(found) <= MOST
    assert len({*found, tuple(words)}) == len(found) + 1
    assert all(each and all(each) for each in found)


def test_a_very_long_command_is_looked_at_only_in_part() -> None:
    found = other_names(("pip", *["x"] * 100_000))
    assert found
    assert all(len(each) <= MOST_WORDS + 2 for each in found)


@pytest.mark.parametrize(
    "text",
    [
        "same = 1",
        'same = ["a"]',
        'same = ["a | "]',
        'same = ["a b c d | e"]',
        "other = []",
        "same = [",
        '[subcommands]\na = ["x"]',
    ],
)
def test_data_that_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(BadAliases):
        read_aliases(text)
