"""What a call would change, and what the CLI says it has changed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.cli.terminal import diffs


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def test_an_edit_is_compared_line_by_line() -> None:
    given_input = {"file_path": "/a.py", "old_string": "one\ntwo\n", "new_string": "one\n2\n"}
    change = diffs.of_call("Edit", raw(given_input))
    assert change is not None
    assert change.path == "/a.py"
    assert change.lines == (" one", "-two", "+2")
    assert (change.added, change.removed) == (1, 1)


def test_several_edits_of_a_file_are_kept_apart() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    change = diffs.of_call("MultiEdit", raw({"file_path": "x", "edits": edits}))
    assert change is not None
    assert change.lines == ("-a", "+b", "@@", "-c", "+d")


def test_a_write_is_all_new() -> None:
    change = diffs.of_call("Write", raw({"file_path": "x", "content": "a\nb\n"}))
    assert change is not None
    assert change.lines == ("+a", "+b")


def test_the_patch_of_the_cli_has_line_numbers() -> None:
    lines = ["-a", "+b", "+c"]
    hunk = {"oldStart": 7, "oldLines": 1, "newStart": 7, "newLines": 2, "lines": lines}
    change = diffs.of_result(raw({"filePath": "/e.txt", "structuredPatch": [hunk]}))
    assert change is not None
    assert change.lines == ("@@ -7,1 +7,2 @@", "-a", "+b", "+c")


def test_a_new_file_has_no_patch_but_its_content() -> None:
    outcome = {"type": "create", "filePath": "n", "content": "x\n", "structuredPatch": []}
    change = diffs.of_result(raw(outcome))
    assert change is not None
    assert (change.lines, change.note) == (("+x",), "new file")


def test_what_is_too_large_is_not_compared() -> None:
    big = "x\n" * 5000
    change = diffs.of_call("Edit", raw({"file_path": "f", "old_string": big, "new_string": ""}))
    assert change is not None
    assert change.lines == ()
    assert "too large" in change.note


def test_escapes_in_a_file_are_seen_and_not_obeyed() -> None:
    change = diffs.of_call("Write", raw({"file_path": "f\x1b[2J", "content": "\x1b]0;x\x07\n"}))
    assert change is not None
    assert "\x1b" not in change.path + "".join(change.lines)
    assert "␛" in change.lines[0]


@pytest.mark.parametrize("name", ["Edit", "MultiEdit", "Write", "Bash"])
@given(value=st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=4))
def test_any_input_gives_a_diff_or_none(name: str, value: object) -> None:
    for given_input in (value, {"file_path": value, "content": value, "edits": value}):
        data = raw(given_input)
        assert diffs.of_call(name, data) is None or name != "Bash"
        assert diffs.of_result(data) is None
