"""The story of a session: the golden files, which the web app's fold can be checked against too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.history.story import Answer, Line, Notice, Outcome, StoryFold, read_event
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.views import EventShape
from support.exports import answer, said

GOLDEN = sorted((Path(__file__).parents[1] / "fixtures" / "story").glob("*.json"))


def load(file: Path) -> tuple[list[EventShape], list[dict[str, Any]]]:
    data = json.loads(file.read_text())
    shapes = msgspec.json.decode(json.dumps(data["events"]), type=list[EventShape])
    return shapes, data["entries"]


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_golden_story_is_folded_as_it_is_written_down(file: Path) -> None:
    shapes, expected = load(file)
    fold = StoryFold()
    entries = [entry for shape in shapes for entry in fold.entries(shape.event, shape.at)]
    assert json.loads(msgspec.json.encode(entries)) == expected


def test_the_golden_files_have_every_kind_of_entry_and_tone() -> None:
    entries = [entry for file in GOLDEN for entry in load(file)[1]]
    kinds = {"prompt", "text", "thinking", "call", "outcome", "notice"}
    assert {entry["kind"] for entry in entries} == kinds
    tones = {entry.get("tone", "plain") for entry in entries if entry["kind"] == "notice"}
    assert tones == {"plain", "good", "warn", "bad"}


def test_a_result_has_the_title_of_its_call_once() -> None:
    fold = StoryFold()
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a"}
    list(fold.entries(said("assistant", [call]), 1))
    (first,) = fold.entries(said("user", [result]), 2)
    (second,) = fold.entries(said("user", [result]), 3)
    assert isinstance(first, Outcome)
    assert isinstance(second, Outcome)
    assert (first.tool, first.title) == ("Bash", "ls")
    assert (second.tool, second.title) == ("", "")


def test_a_message_of_the_cli_is_also_there_whole() -> None:
    line = read_event(answer("hello"), 1)
    assert isinstance(line, Line)
    (entry,) = StoryFold().entries(answer("hello"), 1)
    assert entry == Answer(at=1, text="hello")


def test_names_in_a_notice_are_cut_and_cannot_move_the_cursor() -> None:
    notice = read_event(ev.SessionRenamed(name="a\x1b[2J" + "b" * 500, by="c" * 500), 1)
    assert isinstance(notice, Notice)
    assert "\x1b" not in notice.text
    assert len(notice.text) < 300


def test_a_line_that_cannot_be_read_is_a_notice() -> None:
    broken = ev.SaidBroken(run="r", number=1, text="{", error="no JSON")
    notice = read_event(broken, 1)
    assert isinstance(notice, Notice)
    assert (notice.code, notice.tone) == ("said.broken", "bad")


def test_an_answer_of_nothing_but_blanks_is_no_entry() -> None:
    assert list(StoryFold().entries(answer(" \n"), 1)) == []
    prompt = ev.PromptQueued(prompt="p", content=Raw(b'"x"'), by="ada")
    assert [entry.at for entry in StoryFold().entries(prompt, 7)] == [7]


def test_the_placeholder_behind_a_turn_that_was_cut_off_is_nothing_for_people() -> None:
    def recalled(model: str, text: str) -> ev.Recalled:
        content = [{"type": "text", "text": text}]
        message = {"id": "m", "role": "assistant", "model": model, "content": content}
        line = {"type": "assistant", "uuid": "u", "session_id": "s", "message": message}
        return ev.Recalled(run="r", uuid="u", line=Raw(json.dumps(line).encode()))

    said = "No response requested."
    assert read_event(recalled("<synthetic>", said), 1) is None
    assert read_event(recalled("<synthetic>", "API Error"), 1) is not None
    assert read_event(recalled("claude-x", said), 1) is not None
