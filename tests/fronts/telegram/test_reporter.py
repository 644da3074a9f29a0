"""Events become messages once: notices, followed sessions, restarts. The outbox is not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.fronts.telegram.api import BotApi
from quarterdeck.fronts.telegram.chats import Place, Preferences
from quarterdeck.fronts.telegram.database import Database
from quarterdeck.fronts.telegram.messenger import Messenger
from quarterdeck.fronts.telegram.options import Options, QuietHours
from quarterdeck.fronts.telegram.outbox import Outbox
from quarterdeck.fronts.telegram.outbox_store import OutboxStore
from quarterdeck.fronts.telegram.reporter import Reporter
from quarterdeck.fronts.telegram.state import Paired
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.events import AskKind
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import AskView, EventShape
from quarterdeck.runtime.clock import Clock

ADA, GRACE = 11, 12
SESSION = "01m7gqcvkbzk7w5q20qct52zg8"


class Office:
    """A reporter whose messages stay in the outbox."""

    def __init__(self, folder: Path, options: Options | None = None) -> None:
        self.path = folder / "telegram.db"
        self.options = options or Options(users=frozenset({ADA, GRACE}))
        self.seq = 0
        self.open()
        self.messenger.state.pair(Paired(user=ADA, person="ada", role="owner", token="t"), 1.0)

    def open(self) -> None:
        """Start again with what is stored."""
        self.database = Database(self.path)
        self.store = OutboxStore(self.database)
        clock = Clock()
        outbox = Outbox(cast("BotApi", None), self.store, clock)
        self.messenger = Messenger(self.database, outbox, self.options, clock)
        self.reporter = Reporter(self.messenger)

    def follow(self, user: int = ADA) -> None:
        self.messenger.state.follow(SESSION, Place(chat=user), name="work", at=1.0)
        self.reporter.note_change(SESSION)

    def happen(self, *events: ev.AnyEvent) -> None:
        shapes = []
        for event in events:
            self.seq += 1
            shapes.append(
                EventShape(session=SESSION, seq=self.seq, position=self.seq, at=1000, event=event)
            )
        self.reporter.events(tuple(shapes))

    def messages(self, chat: int = ADA) -> list[dict[str, Any]]:
        rows = self.database.connection.execute(
            "SELECT wanted, silent FROM outbox_messages WHERE chat = ? ORDER BY rowid", (chat,)
        ).fetchall()
        return [msgspec.json.decode(wanted) | {"silent": silent} for wanted, silent in rows]

    def texts(self, chat: int = ADA) -> list[str]:
        return [row["text"] for row in self.messages(chat)]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    made = Office(tmp_path)
    made.follow()
    return made


def opened(ask: str = "s.1") -> ev.AskOpened:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "make"}}
    return ev.AskOpened(
        ask=ask,
        run="r",
        request_id=ask,
        ask_kind=AskKind.TOOL,
        tool="Bash",
        title="make",
        request=Raw(msgspec.json.encode(request)),
    )


def answered(ask: str = "s.1") -> ev.AskAnswered:
    return ev.AskAnswered(ask=ask, by="bob", answer=Raw(b'{"answer":"allow"}'), allowed=True)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (ev.RunEnded(run="r", reason="killed by signal 9"), "⚠️ work: the agent has ended"),
        (ev.RateLimited(status="rejected", limit="five_hour"), "⚠️ work: the five_hour limit"),
        (
            ev.BudgetReached(scope="session", unit="usd", limit=1.0, spent=1.2),
            "🚨 work: ",
        ),
        (ev.BudgetFreed(scope="session", unit="usd"), "ℹ️ work: the budget has room again"),
        (ev.Alarmed(alarm="silent", text="nothing was said"), "🚨 work: nothing was said"),
        (ev.AlarmEnded(alarm="silent"), "✅ work: the agent responds again"),
        (ev.LinkLost(run="r", reason="the machine is away"), "⚠️ work: the machine is away"),
        (ev.LinkFound(run="r"), "✅ work: the connection is restored"),
        (ev.Noted(level="error", text="the disk is full"), "🚨 work: the disk is full"),
        (
            ev.PeerPrompted(run="r", message="m", name="other", pid=7, text="go on"),
            "⚠️ work: another Claude session (other, process 7) prompted: go on",
        ),
    ],
)
def test_what_happens_to_an_agent_is_told(office: Office, event: ev.AnyEvent, text: str) -> None:
    office.happen(event)
    (told,) = office.texts()
    assert told.startswith(text)


@pytest.mark.parametrize(
    "event",
    [
        ev.RunEnded(run="r", reason="it ended", clean=True),
        ev.RateLimited(status="allowed"),
        ev.Noted(level="info", text="nothing"),
        ev.TodosChanged(todos=()),
        ev.Metered(run="r", models=()),
        ev.SessionRenamed(name="x", by="y"),
    ],
)
def test_what_matters_to_nobody_is_not_told(office: Office, event: ev.AnyEvent) -> None:
    office.happen(event)
    assert office.texts() == []


def test_events_that_come_again_are_told_once_also_after_a_restart(office: Office) -> None:
    def turn() -> None:
        office.happen(ev.PromptSent(prompt="p", run="r"), opened())

    turn()
    office.seq = 0
    turn()
    office.open()
    office.seq = 0
    turn()
    assert len(office.texts()) == 1
    ended = ev.TurnEnded(
        prompts=("p",), failed=False, outcome="success", cost_usd=0.0, text="Fine."
    )
    office.happen(answered(), ended)
    office.open()
    office.seq = 2
    office.happen(answered(), ended)
    assert ["Fine." in text for text in office.texts()] == [False, True]
    assert "Allowed by bob" in office.texts()[0]


def test_a_restart_begins_at_the_first_event_of_the_running_turn(office: Office) -> None:
    office.happen(ev.StateChanged(state=SessionState.IDLE), ev.PromptSent(prompt="p", run="r"))
    office.happen(ev.ToolStarted(call="1", tool="Bash", title="make"))
    row = office.messenger.state.followed_session(SESSION)
    assert row is not None
    assert (row.seq, row.turn) == (3, 1)


def test_sessions_of_others_are_told_to_those_who_follow_all(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.happen(opened("s.1"))
    assert office.texts() == []
    office.messenger.state.prefer(Place(chat=ADA), Preferences(follow="all"))
    office.happen(ev.ToolStarted(call="1", tool="Bash", title="make"), opened("s.2"))
    assert len(office.texts()) == 1
    office.happen(answered("s.2"))
    assert "Allowed by bob" in office.texts()[0]


def test_nothing_is_told_to_who_is_not_paired(tmp_path: Path) -> None:
    office = Office(tmp_path)
    office.follow(GRACE)
    office.happen(ev.PromptSent(prompt="p", run="r"), opened())
    office.happen(ev.RunEnded(run="r", reason="killed"))
    assert office.texts(GRACE) == []


def test_in_quiet_hours_messages_make_no_sound(tmp_path: Path) -> None:
    quiet = Options(users=frozenset({ADA}), quiet=QuietHours(begin=0, end=1440))
    office = Office(tmp_path, quiet)
    office.follow()
    office.happen(opened())
    assert [row["silent"] for row in office.messages()] == [1]


def test_a_question_that_is_open_and_was_not_shown_is_shown(office: Office) -> None:
    view = AskView(session=SESSION, seq=1, at=1, opened=opened())
    office.reporter.asks((view,))
    office.reporter.asks((view,))
    assert len(office.texts()) == 1


def test_an_event_that_cannot_be_told_does_not_keep_others_from_being_told(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RecursionError("a hostile input")

    monkeypatch.setattr(office.reporter, "_ask", broken)
    office.happen(opened(), ev.Noted(level="error", text="the disk is full"))
    assert ["cannot be shown here" in text for text in office.texts()] == [True, False]
    row = office.messenger.state.followed_session(SESSION)
    assert row is not None
    assert row.seq == 2


def test_a_session_that_was_deleted_is_forgotten(office: Office) -> None:
    office.happen(opened(), ev.SessionDeleted(by="bob"))
    assert office.messenger.state.followed_session(SESSION) is None
