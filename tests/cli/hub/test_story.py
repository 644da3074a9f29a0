"""Live text, and the message that supersedes it."""

from __future__ import annotations

import io
import json

from msgspec import Raw
from rich.console import Console

from quarterdeck.cli.hub.story import Story
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.protocol import events
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas, EventShape
from quarterdeck.testing import fake


class Shown:
    def __init__(self) -> None:
        self._file = io.StringIO()
        self.story = Story(Screen(Console(file=self._file, width=80)))
        self._seq = 0

    def live(self, text: str, *, whole: bool = False, message: str = "m1") -> None:
        delta = Deltas(session="s", message=message, text=text)
        self.story.live(Live(deltas=(delta,), whole=whole))

    def event(self, event: events.AnyEvent) -> None:
        self._seq += 1
        self.story.show(EventShape(session="s", seq=self._seq, position=1, at=0, event=event))

    def said(self, line: dict[str, object]) -> None:
        self.event(events.Said(run="r", number=1, line=Raw(json.dumps(line).encode())))

    @property
    def text(self) -> str:
        return self._file.getvalue()


def test_live_text_is_shown_once_whatever_way_it_comes() -> None:
    shown = Shown()
    shown.live("one ", whole=True)
    shown.live("two ")
    shown.live("one two three ", whole=True)  # pieces were lost, and this replaces them
    shown.said(fake.assistant("one two three four"))
    assert shown.text == "one two three four\n"


def test_budgets_and_alarms_are_shown_with_what_was_done() -> None:
    shown = Shown()
    shown.event(events.BudgetReached(scope="day", unit="tokens", limit=1000, spent=1010))
    action = "the turn was interrupted"
    shown.event(events.Alarmed(alarm="no_result", text="Nothing has come.", action=action))
    shown.event(events.AlarmEnded(alarm="no_result"))
    text = " ".join(shown.text.split())
    assert "1,000 tokens for today, over all sessions is used up (1,010)" in text
    assert "Nothing has come. (the turn was interrupted)" in text
    assert "the agent responds again" in text


def test_the_text_of_a_subagent_is_shown_when_it_is_whole() -> None:
    shown = Shown()
    shown.said(fake.assistant(fake.tool_use("Task", {"description": "look"}, "toolu_1")))
    shown.live("half", message="toolu_1")
    assert "half" not in shown.text


def test_prompts_and_notes_of_others_are_shown_and_ours_are_not_repeated() -> None:
    shown = Shown()
    shown.story.typed_here.add("mine")
    shown.event(events.PromptQueued(prompt="mine", content=Raw(b'"typed here"'), by="ada"))
    blocks = b'[{"type":"text","text":"look"},{"type":"image","source":{}}]'
    shown.event(events.PromptQueued(prompt="other", content=Raw(blocks), by="grace"))
    shown.event(events.RunEnded(run="r", reason="It crashed.\x1b[2J"))
    assert "typed here" not in shown.text
    assert "> look\n  [and 1 block without text]" in shown.text
    assert "~ the agent has ended: It crashed.␛[2J" in shown.text
    assert "\x1b[2J" not in shown.text


def test_what_was_recalled_is_shown_as_what_was_said() -> None:
    shown = Shown()
    line = Raw(json.dumps(fake.assistant("found again")).encode())
    shown.event(events.Recalled(run="r", uuid="u", line=line))
    assert shown.text == "found again\n"


def test_an_agent_that_ended_badly_shows_its_last_lines_and_a_good_one_does_not() -> None:
    shown = Shown()
    words = tuple(f"line {n}\x1b[2J" for n in range(9))
    shown.event(events.RunEnded(run="r", reason="It exited.", clean=True, stderr=("fine",)))
    shown.event(events.RunEnded(run="r", reason="It crashed.", stderr=words))
    assert "fine" not in shown.text
    assert "line 3" not in shown.text
    assert [f"stderr: line {n}\ufffd[2J" in shown.text for n in range(4, 9)] == [True] * 5


def test_a_limit_and_a_new_conversation_are_told() -> None:
    shown = Shown()
    shown.event(events.RateLimited(status="allowed", limit="five_hour"))
    assert shown.text == ""
    shown.event(events.RateLimited(status="rejected", limit="five_hour", resets_at=1000))
    shown.event(events.StartAfresh(run="r", by="ada"))
    assert "~ the five_hour limit is reached until 1970-01-01" in shown.text
    assert "~ a new conversation was started by ada" in shown.text


def test_what_was_imported_is_shown_as_if_it_had_been_said_here() -> None:
    shown = Shown()
    prompt = {"role": "user", "content": "do it"}
    lines: list[dict[str, object]] = [
        {"type": "user", "message": prompt, "isReplay": True},
        fake.assistant("it is done"),
    ]
    for line in lines:
        raw = Raw(json.dumps(line).encode())
        shown.event(events.Recalled(run=events.IMPORTED, uuid="u", line=raw))
    assert shown.text == "> do it\n\nit is done\n"


def test_a_prompt_that_is_recalled_for_a_run_of_ours_is_not_shown_again() -> None:
    shown = Shown()
    raw = Raw(b'{"type":"user","message":{"role":"user","content":"do it"},"isReplay":true}')
    shown.event(events.Recalled(run="r", uuid="u", line=raw))
    assert shown.text == ""
