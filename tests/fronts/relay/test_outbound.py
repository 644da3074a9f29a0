"""Lines for frontends, wherever they begin to read: no gap and no double."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.fronts.relay.outbound import Joined, SessionLines
from quarterdeck.journal.views import fold_all
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from support.examples import examples

SESSION = "one"


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def said(draw_number: int, cli: str, kind: str) -> ev.Event:
    line = {"type": kind, "uuid": f"u{draw_number}", "session_id": cli}
    return ev.Said(run="r", number=draw_number, line=raw(line))


def opened(number: int) -> ev.Event:
    return ev.AskOpened(
        ask=f"{SESSION}.{number}",
        run="r",
        request_id=f"q{number}",
        ask_kind=ev.AskKind.TOOL,
        tool="Bash",
        title="ls",
        request=raw({"subtype": "can_use_tool"}),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[ev.Event]:
    """A session from its start: lines, conversations, questions and their ends."""
    events: list[ev.Event] = [
        ev.SessionCreated(spec=SessionSpec(directory="/"), by="ada"),
        ev.RunStarting(run="r", machine=draw(st.sampled_from(["here", "dialled"]))),
        ev.RunStarted(run="r", pid=1),
    ]
    cli, asks = "cli-1", 0
    for number in range(1, draw(st.integers(1, 25))):
        match draw(
            st.sampled_from(["line", "line", "private", "clear", "ask", "answer", "broken"])
        ):
            case "clear":
                cli = f"cli-{number}"
                events.append(said(number, cli, "system"))
            case "ask":
                asks += 1
                events.append(opened(asks))
            case "answer" if asks:
                ask = f"{SESSION}.{draw(st.integers(1, asks))}"
                events.append(ev.AskAnswered(ask=ask, by="bob", answer=raw({}), allowed=True))
            case "broken":
                events.append(ev.SaidBroken(run="r", number=number, text="{", error="half"))
            case "private":
                events.append(said(number, cli, "control_response"))
            case _:
                events.append(said(number, cli, "assistant"))
    if draw(st.booleans()):
        events.append(ev.RunEnded(run="r", reason="over"))
    return events


def stored(events: list[ev.Event]) -> list[Stored]:
    return [
        Stored(SESSION, seq, seq, 0, event, b"{}")  # type: ignore[arg-type]
        for seq, event in enumerate(events, 1)
    ]


def told(lines: SessionLines, events: list[Stored], joined: Joined) -> list[dict[str, Any] | str]:
    found: list[dict[str, Any] | str] = []
    for each in events:
        for line in lines.lines_of(each, joined):
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append(line.decode())
    return found


def view_of(events: list[Stored]) -> SessionView:
    view = fold_all(None, events)
    assert view is not None
    return view


@settings(max_examples=examples(200))
@given(histories(), st.data())
async def test_reading_on_after_any_event_continues_what_was_told_before(
    events: list[ev.Event], data: st.DataObject
) -> None:
    history = stored(events)
    live = told(SessionLines(SESSION), history, Joined())
    cut = data.draw(st.integers(1, len(history)))
    first = told(SessionLines(SESSION), history[:cut], Joined())
    again = SessionLines(SESSION)
    whole = view_of(history)
    still_open = [ask for ask in whole.asks.values() if ask.seq <= cut]
    again.resume(history[:cut], still_open, whole)
    rest = told(again, history[cut:], Joined(position=cut))
    assert first + rest == live


@settings(max_examples=examples(200))
@given(histories())
async def test_one_who_comes_late_gets_every_line_and_the_open_questions_only(
    events: list[ev.Event],
) -> None:
    history = stored(events)
    view = view_of(history)
    runs = frozenset(() if view.run is None else (view.run,))
    joined = Joined(position=len(history), runs=runs, asks=frozenset(view.asks))
    live = told(SessionLines(SESSION), history, Joined())
    late = told(SessionLines(SESSION), history, joined)

    def lines(found: list[dict[str, Any] | str]) -> list[dict[str, Any] | str]:
        private = {"status", "control_request", "control_cancel_request"}
        return [one for one in found if isinstance(one, str) or one["type"] not in private]

    assert lines(late) == lines(live)
    asked = [
        one["request_id"]
        for one in late
        if not isinstance(one, str) and one["type"] == "control_request"
    ]
    assert asked == [card.opened.request_id for card in view.asks.values()]
    statuses = [one["text"] for one in late if not isinstance(one, str) and one["type"] == "status"]
    assert ("claude code is connected" in statuses) is (view.run is not None)
    assert ("claude code disconnected" in statuses) is (view.run is None)
    assert all(
        one["session_id"] for one in late if not isinstance(one, str) and one["type"] != "status"
    )


async def test_what_is_between_the_hub_and_its_cli_is_not_told() -> None:
    kinds = ("control_response", "keep_alive", "transcript_mirror", "assistant")
    events = stored([said(number, "cli-1", kind) for number, kind in enumerate(kinds, 1)])
    lines = told(SessionLines(SESSION), events, Joined())
    said_by_cli = [one["type"] for one in lines if not isinstance(one, str) and "uuid" in one]
    assert said_by_cli == ["assistant"]
