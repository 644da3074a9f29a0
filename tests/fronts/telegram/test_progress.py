from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.fronts.telegram.display import Leaves
from quarterdeck.fronts.telegram.progress import (
    MOST_ACTIONS,
    Completed,
    SessionProgress,
    completed_line,
    duration,
    money,
    progress_text,
)
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import EventShape


class Fold:
    """A fold with events numbered one after the other, a second apart."""

    def __init__(self) -> None:
        self.progress = SessionProgress()
        self.seq = 0

    def __call__(self, event: ev.AnyEvent) -> Completed | None:
        self.seq += 1
        shape = EventShape(
            session="s", seq=self.seq, position=self.seq, at=1000 * self.seq, event=event
        )
        return self.progress.take(shape)

    def text(self, **options: object) -> str:
        assert self.progress.turn is not None
        part = progress_text(self.progress.turn, name="work", now=1000 * self.seq, **options)  # type: ignore[arg-type]
        return part.text


def said(text: str) -> ev.Said:
    """A line of the model."""
    line = {
        "type": "assistant",
        "message": {"role": "assistant", "content": [{"type": "text", "text": text}]},
        "parent_tool_use_id": None,
    }
    return ev.Said(run="r", number=1, line=Raw(msgspec.json.encode(line)))


def ended(
    text: str = "", *, failed: bool = False, prompts: tuple[str, ...] = ("p",)
) -> ev.TurnEnded:
    return ev.TurnEnded(
        prompts=prompts,
        failed=failed,
        outcome="error" if failed else "success",
        cost_usd=0.5,
        text=text,
    )


def test_a_turn_is_started_has_actions_and_is_completed_once() -> None:
    fold = Fold()
    assert fold(ev.PromptSent(prompt="p", run="r")) is None
    assert fold(ev.StateChanged(state=SessionState.WORKING)) is None
    fold(ev.ToolStarted(call="1", tool="Bash", title="make test"))
    fold(ev.ToolStarted(call="2", tool="Edit", title="/src/a.py", agent="1"))
    fold(ev.ToolEnded(call="1", failed=True))
    text = fold.text()
    assert text.splitlines()[0] == "work · working · 4 s"
    assert "💻 ✗ make test" in text
    assert "   📝 … /src/a.py" in text
    done = fold(ended("All pass."))
    assert done is not None
    assert (done.turn, done.prompts, done.text, done.failed) == (1, ("p",), "All pass.", False)
    assert completed_line(done) == "✅ done · 5 s · 2 actions · $0.50"
    assert fold(ev.StateChanged(state=SessionState.IDLE)) is None
    assert fold.progress.turn is None
    assert fold(ev.RunEnded(run="r", reason="it ended")) is None


@pytest.mark.parametrize(
    ("tool", "icon"),
    [
        ("Bash", "💻"),
        ("KillShell", "💻"),
        ("Write", "📝"),
        ("NotebookEdit", "📝"),
        ("Read", "🔧"),
        ("Task", "🔧"),
        ("mcp__x__y", "🔧"),
        ("WebSearch", "🌐"),
        ("WebFetch", "🌐"),
        ("TodoWrite", "🗒"),
        ("AskUserQuestion", "🗒"),
    ],
)
def test_an_action_is_shown_by_the_kind_of_its_tool(tool: str, icon: str) -> None:
    fold = Fold()
    fold(ev.ToolStarted(call="1", tool=tool, title="title"))
    assert f"{icon} … title" in fold.text()


def test_the_answer_is_the_result_else_the_last_text() -> None:
    for result, expected in (("the result", "the result"), ("", "second")):
        fold = Fold()
        fold(ev.PromptSent(prompt="p", run="r"))
        fold(said("first"))
        fold(said("second"))
        done = fold(ended(result))
        assert done is not None
        assert done.text == expected


def test_a_turn_that_nobody_prompted_is_reported_too() -> None:
    fold = Fold()
    fold(ev.StateChanged(state=SessionState.WORKING))
    fold(ev.ToolStarted(call="1", tool="Bash", title="ls"))
    done = fold(ended("The background task is done.", prompts=()))
    assert done is not None
    assert (done.turn, done.prompts) == (1, ())


def test_a_state_that_comes_and_goes_is_no_turn() -> None:
    fold = Fold()
    fold(ev.StateChanged(state=SessionState.WORKING))
    fold(ev.StateChanged(state=SessionState.IDLE))
    assert fold.progress.turn is None
    fold(ev.StateChanged(state=SessionState.WORKING))
    assert fold(ev.RunEnded(run="r", reason="it ended")) is None


def test_a_turn_whose_process_died_is_completed_as_failed() -> None:
    fold = Fold()
    fold(ev.PromptSent(prompt="p", run="r"))
    fold(said("so far"))
    done = fold(ev.RunEnded(run="r", reason="killed by signal 9"))
    assert done is not None
    assert (done.failed, done.text, done.reason) == (True, "so far", "killed by signal 9")
    assert "❌ failed (killed by signal 9)" in completed_line(done)


def test_of_very_many_actions_the_newest_are_kept_and_all_are_counted() -> None:
    fold = Fold()
    for number in range(MOST_ACTIONS + 50):
        fold(ev.ToolStarted(call=str(number), tool="Bash", title=f"step {number}"))
    assert fold.progress.turn is not None
    assert len(fold.progress.turn.actions) == MOST_ACTIONS
    assert f"({MOST_ACTIONS + 45} actions before)" in fold.text()
    assert fold.text(verbose="quiet").endswith(f"{MOST_ACTIONS + 50} actions")


def test_what_may_not_leave_is_not_shown_and_secrets_never_are() -> None:
    fold = Fold()
    fold(ev.ToolStarted(call="1", tool="Bash", title="export API_KEY=hunter22222"))
    assert "hunter" not in fold.text()
    assert "export" in fold.text()
    assert "export" not in fold.text(leaves=Leaves(commands=False))
    fold.progress.write("a text that is being written")
    assert "being written" in fold.text()
    assert "being written" not in fold.text(leaves=Leaves(answers=False))


def test_open_questions_and_states_are_shown() -> None:
    fold = Fold()
    fold(ev.PromptSent(prompt="p", run="r"))
    fold(ev.StateChanged(state=SessionState.RETRYING, detail="the model is overloaded"))
    assert "retrying" in fold.text()
    assert "overloaded" in fold.text()


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(-5, "0 s"), (59_999, "59 s"), (61_000, "1 min 1 s"), (7_260_000, "2 h 1 min")],
)
def test_a_duration_is_told_in_two_units_at_most(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize(("usd", "text"), [(1.5, "$1.50"), (0.1, "$0.10"), (0.0123, "$0.0123")])
def test_an_amount_has_as_many_digits_as_matter(usd: float, text: str) -> None:
    assert money(usd) == text
