"""jq filters: which only compute, and which load modules or show the environment."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.jq import read_jq


@pytest.mark.parametrize(
    "text",
    [
        ".",
        ".scripts",
        ".env",
        '."env"',
        ".a.import?",
        "{env: .env, name}",
        '.[] | select(.x == "a#b") | "#\\(.id) \\(.env)"',
        'to_entries[] | "\\(.key)=\\(.value | tostring)"',
        "[.[] | {a, b}] | length # env",
        '"import \\"a\\"; env"',
        'inputs | @sh "x \\(.b)"',
        "input_filename",
        ". as $x | reduce .[] as $i (0; . + $i.n)",
    ],
)
def test_filters_that_only_compute_have_no_effect(text: str) -> None:
    assert read_jq(text).none


@pytest.mark.parametrize(
    "text",
    [
        "env",
        "env.HOME",
        "$ENV.HOME",
        "$ ENV",
        '"\\(env)"',
        '"a\\("b\\($ENV)")"',
        ". # x\n| env",
        "{env}",
        'import "a" as $d; $d',
        'include "a"; .',
        '"a" | modulemeta',
        ".. env",
        ". # x\\\n| 1",
        '"a',
        ". ` .",
        "." * 30_000,
    ],
)
def test_a_filter_that_reaches_further_is_unknown(text: str) -> None:
    assert read_jq(text).runs
