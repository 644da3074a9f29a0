"""Held against the real bash: what rules let pass runs and reads nothing that they do not allow.

`tools/fuzz_policy.py` does the same with as many commands as one likes.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from support.odd_commands import commands, marked, prepare

pytestmark = pytest.mark.process

HOSTILE = [
    "safe\n\\\nunnamed",
    "safe b''\\ad",
    'echo "$\\\n(unnamed)"',
    "safe $'\\x62ad'",
    "echo ${x:-<(unnamed)}",
    "cat $PWD/secret",
    "x=secret; cat $x",
    "cd d; command cd ..; cat secret",
    "cat loop/secret",
    "cat < s*",
    "echo x > secret",
]


def test_nothing_unnamed_runs_in_what_rules_allow(tmp_path: Path) -> None:
    passes = prepare(tmp_path)
    every = dict.fromkeys(islice(commands(20_260_101), 6_000))
    allowed = [command for command in every if passes(command)]
    assert len(allowed) > 200
    assert marked(allowed, tmp_path) == []


def test_the_runner_notices_what_is_not_allowed(tmp_path: Path) -> None:
    passes = prepare(tmp_path)
    assert marked(["safe", *HOSTILE, "cat unnamed bad"], tmp_path) == HOSTILE
    assert [command for command in HOSTILE if passes(command)] == []
