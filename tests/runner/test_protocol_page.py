"""The page of the protocol and the tests speak of the same rules, and of the same frames."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from quarterdeck.protocol.runner_frames import PROTOCOL, HubHeader, RunnerHeader

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs/reference/runner-protocol.md").read_text()
RULE = r"(?:LINK|MACHINE|RUN|SPOOL|HOME|TREE)-\d+"


def test_every_rule_of_the_page_names_a_test_and_every_id_in_a_test_is_a_rule() -> None:
    rules = re.findall(rf"^- \*\*({RULE})\*\*", PAGE, re.MULTILINE)
    assert len(rules) == len(set(rules))
    # The runner's part is tested here and with worktrees, the hub's beside the hub.
    folders = (HERE, HERE.parent / "worktrees", HERE.parent / "hub")
    files = [file for folder in folders for file in folder.rglob("test_*.py")]
    tests = "".join(path.read_text() for path in sorted(files))
    named = {rule for text in re.findall(rf'"""({RULE}[^"]*)', tests) for rule in ids(text)}
    assert set(rules) - named == set()
    assert named - set(rules) == set()


def test_every_frame_is_on_the_page_with_all_that_it_carries() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]*\| (.*) \|$", PAGE, re.MULTILINE))
    frames = {header.__struct_config__.tag: header for header in get_args(RunnerHeader | HubHeader)}
    assert rows.keys() == frames.keys()
    for name, header in frames.items():
        assert re.findall(r"`(\w+)`", rows[name]) == list(header.__struct_encode_fields__), name
    assert f"`PROTOCOL` is {PROTOCOL}." in PAGE


def ids(text: str) -> list[str]:
    return re.findall(RULE, text)
