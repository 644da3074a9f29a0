"""Programs that show processes, and one that starts many."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.programs import look_up
from support.shell_words import HERE, said, words


@pytest.mark.parametrize("text", ["ps", "ps aux", "ps -ef", "ps -p 1 -o pid,args", "ps --forest"])
def test_a_list_of_processes_only_looks(text: str) -> None:
    assert look_up(words(text), HERE, None).looks


@pytest.mark.parametrize(
    "text", ["ps e", "ps auxe", "ps eww -p 1", "ps -E", "ps $x", "ps -o environ"]
)
def test_the_environment_of_processes_must_be_named(text: str) -> None:
    assert not look_up(words(text), HERE, None).looks


def test_without_a_command_parallel_runs_its_input() -> None:
    for text in ("parallel", "parallel -j 4", "parallel -a cmds", "parallel --will-cite -k"):
        assert "runs -" in said(look_up(words(text), HERE, None).effects)
    assert said(look_up(words("parallel -j4 gzip"), HERE, None).effects) == []
