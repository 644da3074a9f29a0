"""Commands for ed: the files and commands that rules should see."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell import read
from quarterdeck.policy.shell.code import CodeEffects
from quarterdeck.policy.shell.ed import read_ed
from support.shell_words import said

_RUNS = ("ed takes commands from its input",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (",p", CodeEffects(runs=_RUNS)),
        ("r .env", CodeEffects(reads=(".env",), runs=_RUNS)),
        ("$r .env", CodeEffects(reads=(".env",), runs=_RUNS)),
        ("e .env", CodeEffects(reads=(".env",), runs=_RUNS)),
        ("1,3w /x", CodeEffects(writes=("/x",), runs=_RUNS)),
        ("W /x\nq", CodeEffects(writes=("/x",), runs=_RUNS)),
        ("!id", CodeEffects(runs=_RUNS, scripts=("id",))),
        ("r !id", CodeEffects(runs=_RUNS, scripts=("id",))),
        ("w !id", CodeEffects(runs=_RUNS, scripts=("id",))),
        ("g/x/w /x", CodeEffects(writes=("/x",), runs=_RUNS)),
    ],
)
def test_files_and_commands_of_ed_are_found(text: str, found: CodeEffects) -> None:
    assert read_ed(text) == found


def test_the_input_of_ed_is_read_where_it_is_known() -> None:
    script = read("ed -s a <<< 'w /x'", cwd="/w")
    assert "writes /x" in said(script.parts[0].effects)
    script = read("ed -s a <<'E'\n!id\nE", cwd="/w")
    assert [part.name for part in script.parts] == ["ed", "id"]
