"""From the events of sessions to messages: progress, answers, questions, the queue, notices.

Every event is told once. What it causes and its number are stored in one commit; the fold of a
running turn begins again at the turn's first event after a restart, and tells nothing twice. The
hub is not called from here: events and views come from `follower`.
"""

from __future__ import annotations

import logging
import sqlite3

import anyio

from quarterdeck.fronts.telegram.api import Upload
from quarterdeck.fronts.telegram.ask_store import Note
from quarterdeck.fronts.telegram.asks import Press, Rows, card, closed_part
from quarterdeck.fronts.telegram.chats import VERBOSITIES, Place, Verbosity
from quarterdeck.fronts.telegram.display import safe_line, safe_start
from quarterdeck.fronts.telegram.messenger import Messenger
from quarterdeck.fronts.telegram.progress import (
    Completed,
    SessionProgress,
    completed_line,
    progress_text,
)
from quarterdeck.fronts.telegram.state import Followed
from quarterdeck.fronts.telegram.text import Part, bold, fit, join, plain
from quarterdeck.history.story import Notice, read_event
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import AskView, EventShape, SessionShape

log = logging.getLogger(__name__)

SHOW_SECONDS = 1.0
"""Between two looks at what has changed. The outbox decides when it is sent."""
REFRESH_SECONDS = 15.0
"""The time that a turn takes is shown anew after this, even if nothing happens."""

NOTICES = frozenset(
    {
        "rate_limited",
        "budget.reached",
        "budget.freed",
        "alarm",
        "alarm.ended",
        "run.link_lost",
        "run.link_found",
        "run.afresh",
        "session.deleted",
        "noted",
        "prompt.peer",
        "sandbox.refused",
    }
)
"""The notices that are sent; `run.ended` is one if it was not clean."""
_MARKS = {"plain": "ℹ️", "good": "✅", "warn": "⚠️", "bad": "🚨"}


class Reporter:
    """Tells of sessions in their places."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self._folds: dict[str, SessionProgress] = {}
        self._known: dict[str, Followed | None] = {}
        self._costs: dict[str, float] = {}
        self._names: dict[str, str] = {}
        self._unsent: dict[str, str] = {}
        self._dirty: set[str] = set()
        self._unshown: set[str] = set()
        self._news = anyio.Event()

    # --- what comes from the hub ---------------------------------------------------------------

    def reports(self, shapes: tuple[EventShape, ...]) -> bool:
        """Whether a session that is told of is among them, or may become one."""
        return any(
            isinstance(shape.event, ev.AskOpened)
            or self._followed_session(shape.session) is not None
            for shape in shapes
        )

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        """These happened, in this order."""
        with self._messenger.database.transaction():
            ends: dict[str, int] = {}
            for shape in shapes:
                if self._take(shape):
                    ends[shape.session] = shape.seq
            self._report_queue()
            for session, seq in ends.items():
                followed = self._followed_session(session)
                if followed is not None and seq > followed.seq:
                    turn = self._fold(session).turn
                    begin = seq if turn is None else turn.first - 1
                    self._messenger.state.set_progress(
                        session, seq, begin, self._messenger.clock.now()
                    )
                    self._known.pop(session, None)

    def view(self, shape: SessionShape) -> None:
        """A session has changed."""
        if self._names.get(shape.session) != shape.name:
            self._names[shape.session] = shape.name
            self._messenger.state.rename(shape.session, shape.name)
            self._known.pop(shape.session, None)
        self._costs[shape.session] = shape.cost_usd

    def live(self, frame: Live) -> None:
        """Text is being written."""
        for delta in frame.deltas:
            fold = self._folds.get(delta.session)
            if fold is None or fold.turn is None or delta.thinking:
                continue
            fold.write(delta.text, whole=frame.whole)
            self._touch(delta.session)

    def asks(self, views: tuple[AskView, ...]) -> None:
        """The questions that are open: those that nobody was shown are shown."""
        with self._messenger.database.transaction():
            for view in views:
                if self._messenger.asks.ask(view.opened.ask) is None and self._audience(
                    view.session
                ):
                    self._ask(view.session, view.opened)

    def note_change(self, session: str) -> None:
        """Where a session belongs has changed."""
        self._known.pop(session, None)

    def forget_session(self, session: str) -> None:
        """The hub does not know a session: it was deleted, or is about to be created."""
        followed = self._followed_session(session)
        if followed is not None and followed.seq == 0:
            return
        self._messenger.state.forget(session)
        for known in (self._folds, self._known, self._costs, self._names):
            known.pop(session, None)
        self._dirty.discard(session)
        self._unshown.discard(session)

    def restart(self) -> None:
        """The stream begins anew: folds begin at the numbers that are stored."""
        self._folds.clear()
        self._known.clear()

    def busy(self, session: str) -> bool:
        """Whether a turn of the session is running."""
        fold = self._folds.get(session)
        return fold is not None and fold.turn is not None

    # --- one event -----------------------------------------------------------------------------

    def _take(self, shape: EventShape) -> bool:
        """Fold an event, and tell it if it is new. Whether its number is to be kept."""
        followed = self._followed_session(shape.session)
        if followed is None:
            followed = self._begin(shape)
            if followed is None:
                return False
        done = None
        try:
            done = self._fold(shape.session).take(shape)
        except Exception:  # it would come again after every restart
            log.exception("event %d of session %s cannot be read", shape.seq, shape.session)
            if shape.seq > followed.seq:
                self._report_trouble(followed, shape)
        self._touch(shape.session)
        if shape.seq <= followed.seq:
            return False
        try:
            if done is not None:
                self._complete(followed, done)
            self._report(followed, shape)
        except sqlite3.Error:
            raise
        except Exception:
            # One event that cannot be told must not keep all that follow it from being told.
            log.exception("event %d of session %s could not be reported", shape.seq, shape.session)
            self._report_trouble(followed, shape)
        return True

    def _report_trouble(self, followed: Followed, shape: EventShape) -> None:
        """Say that something could not be shown here, where a person may be waited for."""
        if not isinstance(shape.event, ev.AskOpened | ev.TurnEnded):
            return
        text = "🚨 Something of this session cannot be shown here: look at it in the web app."
        for place in self._audience(followed.session):
            key = f"trouble:{followed.session}:{shape.seq}:{place.key}"
            self._messenger.say(place, plain(text), key=key, note=Note(session=followed.session))

    def _begin(self, shape: EventShape) -> Followed | None:
        """Begin to tell of a session of others, if a chat wants that and there is something."""
        if not isinstance(shape.event, ev.AskOpened | ev.RunEnded | ev.Alarmed | ev.BudgetReached):
            return None
        if not self._messenger.state.following_all():
            return None
        name = self._names.get(shape.session, shape.session[:8])
        now = self._messenger.clock.now()
        self._messenger.state.follow(shape.session, None, name=name, at=now, seq=shape.seq - 1)
        self._known.pop(shape.session, None)
        return self._followed_session(shape.session)

    def _report(self, followed: Followed, shape: EventShape) -> None:
        session = followed.session
        match shape.event:
            case ev.AskOpened() as opened:
                self._ask(session, opened)
            case ev.AskAnswered(ask=ask) | ev.AskWithdrawn(ask=ask):
                self._close(followed, ask, shape.event)
            case ev.PromptQueued(prompt=prompt):
                self._unsent[prompt] = session
            case ev.PromptSent(prompt=prompt, steered=steered):
                self._unsent.pop(prompt, None)
                text = "↪️ Sent into the running turn" if steered else "▶️ Started"
                self._settle_queued(prompt, text)
                if steered and self._messenger.state.prompt(prompt) is not None:
                    self._report_steered(followed, prompt)
            case ev.PromptCancelled(prompt=prompt, by=by):
                self._unsent.pop(prompt, None)
                self._settle_queued(prompt, f"↩️ Taken back by {safe_line(by, 60)}")
            case ev.SessionDeleted():
                self._notice(followed, shape)
                self._messenger.state.forget(session)
            case _:
                self._notice(followed, shape)

    def _fold(self, session: str) -> SessionProgress:
        return self._folds.setdefault(session, SessionProgress())

    def _followed_session(self, session: str) -> Followed | None:
        if session not in self._known:
            self._known[session] = self._messenger.state.followed_session(session)
        return self._known[session]

    def _audience(self, session: str) -> list[Place]:
        followed = self._followed_session(session)
        own = [] if followed is None or followed.place is None else [followed.place]
        everywhere = dict.fromkeys([*own, *self._messenger.state.following_all()])
        return [place for place in everywhere if self._messenger.may_receive(place)]

    def _name(self, session: str) -> str:
        followed = self._followed_session(session)
        return self._names.get(session) or (followed.name if followed else session[:8])

    # --- questions -----------------------------------------------------------------------------

    def _ask(self, session: str, opened: ev.AskOpened) -> None:
        messenger, name = self._messenger, self._name(session)
        audience = self._audience(session)
        if not audience:
            return
        messenger.asks.open_ask(session, opened, messenger.clock.now())
        made = card(opened, name, leaves=messenger.options.leaves)
        for place in audience:
            key = f"ask:{opened.ask}:{place.key}"
            note = Note(session=session, ask=opened.ask, purpose="card")
            if made.file is not None:
                file = Upload(name=made.file.name, data=made.file.text.encode())
                caption = plain(f"{safe_line(opened.tool, 60)}, in full")
                messenger.say(place, caption, key=f"{key}:file", note=note, file=file, quietly=True)
            part = fit(made.part)
            messenger.say(place, part, key=key, rows=made.rows, note=note, ask=opened.ask)
            messenger.asks.show_ask(opened.ask, key, place)

    def redraw(self, ask: str) -> None:
        """Show a question again, because the draft of its answer has changed."""
        row = self._messenger.asks.ask(ask)
        if row is None or not row.open:
            return
        name, leaves = self._name(row.session), self._messenger.options.leaves
        for key, place in self._messenger.asks.ask_messages(ask):
            made = card(row.opened, name, draft=row.draft, leaves=leaves, chat=place.chat)
            buttons = self._messenger.buttons(place.chat, made.rows, ask)
            self._messenger.outbox.edit(key, fit(made.part), buttons)

    def _close(self, followed: Followed, ask: str, event: ev.AskAnswered | ev.AskWithdrawn) -> None:
        row = self._messenger.asks.ask(ask)
        if row is None:
            return
        part = closed_part(row.opened, self._name(followed.session), event)
        for key, _ in self._messenger.asks.ask_messages(ask):
            self._messenger.outbox.edit(key, fit(part))
        self._messenger.asks.close_ask(ask)

    # --- the queue -----------------------------------------------------------------------------

    def _report_queue(self) -> None:
        """Say which prompts wait, now that it is known which were sent at once."""
        unsent, self._unsent = self._unsent, {}
        for prompt, session in unsent.items():
            row = self._messenger.state.prompt(prompt)
            fold = self._fold(session)
            first = fold.turn is None and fold.queued[:1] == [prompt]
            if row is None or first:
                continue  # it is sent as soon as the CLI has started
            rows: Rows = (
                (
                    Press(text="↩️ Take back", action="run", arg=f"/queue drop {prompt}"),
                    Press(text="📋 Queue", action="run", arg=f"/queue show {session}"),
                ),
            )
            note = Note(session=session)
            text = plain("⏳ Queued: it is sent when the turn before it has ended.")
            reply_to = row.message_id or None
            self._messenger.say(
                row.place, text, key=f"queued:{prompt}", rows=rows, note=note, reply_to=reply_to
            )

    def _settle_queued(self, prompt: str, text: str) -> None:
        self._messenger.outbox.edit(f"queued:{prompt}", plain(text))

    def _report_steered(self, followed: Followed, prompt: str) -> None:
        row = self._messenger.state.prompt(prompt)
        key = f"queued:{prompt}"
        if row is None or self._messenger.outbox.state_of(key) is not None:
            return
        note = Note(session=followed.session)
        text = plain("↪️ Sent into the running turn")
        self._messenger.say(
            row.place, text, key=key, note=note, reply_to=row.message_id or None, quietly=True
        )

    # --- notices -------------------------------------------------------------------------------

    def _notice(self, followed: Followed, shape: EventShape) -> None:
        event = shape.event
        wanted = str(event.__struct_config__.tag) in NOTICES
        if isinstance(event, ev.RunEnded):
            wanted = not event.clean
        if isinstance(event, ev.Noted):
            wanted = event.level != "info"
        if not wanted:
            return
        notice = read_event(event, shape.at)
        if not isinstance(notice, Notice):
            if not isinstance(event, ev.BudgetFreed):
                return
            notice = Notice(at=shape.at, code="budget.freed", text="the budget has room again")
        pieces: list[Part | str] = [
            f"{_MARKS[notice.tone]} ",
            bold(safe_line(self._name(followed.session), 60)),
        ]
        pieces.append(f": {safe_start(notice.text, 1500)}")
        if notice.until is not None:
            until = self._messenger.options.local(notice.until / 1000)
            pieces.append(f" (until {until:%H:%M})")
        note = Note(session=followed.session)
        rows: Rows = ()
        if isinstance(event, ev.RunEnded):
            rows = ((Press(text="▶️ Resume", action="run", arg=f"/resume {followed.session}"),),)
        for place in self._audience(followed.session):
            key = f"notice:{followed.session}:{shape.seq}:{place.key}"
            self._messenger.say(place, fit(join(pieces)), key=key, note=note, rows=rows)

    # --- progress ------------------------------------------------------------------------------

    def _touch(self, session: str) -> None:
        self._dirty.add(session)
        self._news.set()

    async def run(self) -> None:
        """Show the progress of turns, until cancelled."""
        clock = self._messenger.clock
        shown: dict[str, float] = {}
        while True:
            active = [name for name, fold in self._folds.items() if fold.turn is not None]
            await clock.wait(self._news, REFRESH_SECONDS if active else None)
            self._news = anyio.Event()
            dirty, self._dirty = self._dirty, set()
            now = clock.now()
            dirty |= {name for name in active if shown.get(name, 0.0) <= now - REFRESH_SECONDS}
            try:
                with self._messenger.database.transaction():
                    for session in dirty:
                        if self._try_show(session):
                            shown[session] = now
                        else:
                            shown.pop(session, None)
            except sqlite3.Error as error:
                log.error("progress cannot be shown: %s", error)
            await clock.sleep(SHOW_SECONDS)

    def _try_show(self, session: str) -> bool:
        """Show a session's progress. What cannot be shown holds up no other session."""
        try:
            return self._show(session)
        except sqlite3.Error:
            raise
        except Exception:
            if session not in self._unshown:  # once, and not every second
                self._unshown.add(session)
                log.exception("the progress of session %s cannot be shown", session)
            return False

    def _show(self, session: str) -> bool:
        """Show the progress of a session's turn; False if it has none to show."""
        fold, followed = self._folds.get(session), self._followed_session(session)
        if fold is None or fold.turn is None or not fold.turn.visible:
            return False
        if followed is None or followed.place is None:
            return False
        if not self._messenger.may_receive(followed.place):
            return False
        place, key = followed.place, turn_key(session, fold.turn.first)
        verbose = self._verbosity(place)
        part = progress_text(
            fold.turn,
            name=self._name(session),
            now=self._messenger.now_ms,
            verbose=verbose,
            leaves=self._messenger.options.leaves,
            cost_usd=self._costs.get(session, 0.0),
        )
        part = fit(part)
        if self._drafts(place):
            self._messenger.outbox.draft(place.chat, place.thread, part, key=key, can_stop=True)
            return True
        rows: Rows = ((Press(text="🛑 Stop", action="run", arg=f"/cancel {session}"),),)
        if self._messenger.outbox.state_of(key) is None:
            row = next(
                (
                    found
                    for prompt in fold.turn.prompts
                    if (found := self._messenger.state.prompt(prompt))
                ),
                None,
            )
            reply_to = row.message_id or None if row and row.place == place else None
            note = Note(session=session)
            self._messenger.say(
                place, part, key=key, rows=rows, note=note, reply_to=reply_to, quietly=True
            )
        else:
            buttons = self._messenger.buttons(place.chat, rows)
            self._messenger.outbox.edit(key, part, buttons, lazy=True)
        return True

    def _verbosity(self, place: Place) -> Verbosity:
        value = self._messenger.preference(place, "verbose").value
        return next((each for each in VERBOSITIES if each == value), "normal")

    def _drafts(self, place: Place) -> bool:
        return place.chat > 0 and self._messenger.preference(place, "drafts").value is True

    def _complete(self, followed: Followed, done: Completed) -> None:
        """A turn has ended: its progress becomes one line, and its answer is sent."""
        place, messenger, session = followed.place, self._messenger, followed.session
        if place is None or not messenger.may_receive(place):
            return
        progress = turn_key(session, done.turn)
        line = join([bold(safe_line(self._name(session), 60)), f" · {completed_line(done)}"])
        reported = messenger.outbox.edit(progress, line)  # it also replaces what is not sent yet
        messenger.outbox.end_draft(progress)
        text = done.text if messenger.options.leaves.answers else ""
        row = next((row for each in done.prompts if (row := messenger.state.prompt(each))), None)
        reply_to = row.message_id or None if row is not None and row.place == place else None
        footer = None if reported else line
        if not text and footer is None:
            return
        messenger.say_long(
            place,
            text,
            key=f"done:{session}:{done.turn}",
            note=Note(session=session),
            reply_to=reply_to,
            footer=footer,
            rich=messenger.preference(place, "rich").value is True,
        )


def turn_key(session: str, first: int) -> str:
    """The name of the message that shows a turn's progress."""
    return f"turn:{session}:{first}"


def session_of_turn(key: str) -> str | None:
    """The session of such a message."""
    kind, _, rest = key.partition(":")
    return rest.rpartition(":")[0] if kind == "turn" else None
