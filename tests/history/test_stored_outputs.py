"""Which file of the CLI holds the whole output of a call, and which texts only claim so."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from quarterdeck.history.stored_outputs import StoredOutput, find_stored_output

OWN, OTHER = str(UUID(int=1)), str(UUID(int=2))
FOLDER = f"/home/ada/.claude/projects/-work/{OWN}/tool-results"


def text(path: str) -> str:
    return (
        f"<persisted-output>\nOutput too large (52.3KB). Full output saved to: {path}\n\n"
        "Preview (first 2KB):\nline 1\n...\n</persisted-output>"
    )


def event(content: object, told: object = None, **line: object) -> bytes:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    said = {"type": "user", "session_id": OWN, "message": {"content": ["x", block]}, **line}
    if told is not None:
        said["tool_use_result"] = told
    return json.dumps({"kind": "said", "line": said}).encode()


@pytest.mark.parametrize(
    "found",
    [
        event(text(f"{FOLDER}/b1.txt")),
        event([{"type": "text", "text": text(f"{FOLDER}/b1.txt")}]),
        event("short", {"persistedOutputPath": f"{FOLDER}/b1.txt"}),
        event(text("C:\\Users\\ada\\" + OWN + "\\tool-results\\b1.txt")),
    ],
)
def test_the_name_is_found_in_each_form(found: bytes) -> None:
    assert find_stored_output(found, "toolu_1") == StoredOutput(cli_session=OWN, name="b1.txt")
    assert find_stored_output(found, "toolu_2") is None


@pytest.mark.parametrize(
    "claimed",
    [
        event(text(f"{FOLDER.replace(OWN, OTHER)}/b1.txt")),
        event("short", {"persistedOutputPath": f"{FOLDER.replace(OWN, OTHER)}/b1.txt"}),
        event(text(f"{FOLDER}/b1.txt"), session_id=None),
        event(text("/etc/passwd")),
        event("short", {"persistedOutputPath": "/etc/passwd"}),
        event("It says: " + text(f"{FOLDER}/b1.txt")),
        event(None),
        event([None, {"text": 5}]),
        event("short", "no object"),
        json.dumps({"kind": "said", "line": {"message": {"content": "x"}}}).encode(),
        json.dumps({"kind": "noted", "text": text(f"{FOLDER}/b1.txt")}).encode(),
    ],
)
def test_a_text_that_names_something_else_leads_nowhere(claimed: bytes) -> None:
    assert find_stored_output(claimed, "toolu_1") is None
