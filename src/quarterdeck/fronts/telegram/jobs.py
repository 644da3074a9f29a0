"""One thing that a person did in a chat, and what is needed to do it for them.

A `Job` knows the place, the person and the number of the update. Messages that it sends are named
by that number, and so are the commands that it sends to the hub: an update that is handled again
after a crash does nothing twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from quarterdeck.client import HubClient
from quarterdeck.domain.errors import Forbidden, NotFound, QuarterdeckError, UsageError
from quarterdeck.domain.ids import derived_id, is_id
from quarterdeck.fronts.telegram.api import BotApi, Upload
from quarterdeck.fronts.telegram.ask_store import Note
from quarterdeck.fronts.telegram.asks import Rows
from quarterdeck.fronts.telegram.chats import Place
from quarterdeck.fronts.telegram.options import HEALTH, StoredHealth
from quarterdeck.fronts.telegram.state import FrontState, Paired
from quarterdeck.fronts.telegram.text import Part, fit, plain

if TYPE_CHECKING:
    from quarterdeck.fronts.telegram.messenger import Messenger
    from quarterdeck.fronts.telegram.people import People
    from quarterdeck.fronts.telegram.reporter import Reporter
    from quarterdeck.fronts.telegram.types import Me, Message
    from quarterdeck.protocol.roles import Right


STORE_SECONDS = 30.0
UNKNOWN = (
    "I do not know any more what that message of mine is about: it is too old, or I have sent it"
    " twice. Nothing was done. Use a newer message, or write without a reply."
)


class NotPaired(QuarterdeckError):
    """The user may talk to the bot, but is nobody in the hub yet."""

    def __init__(self) -> None:
        super().__init__(
            "You are not paired with a person of the hub. Make a code with «quarterdeck telegram"
            " pair» or in the web app, and send it here: /pair CODE"
        )


class Health:
    """What the front knows about itself, for `/health` and `doctor`."""

    def __init__(self) -> None:
        self.began = 0.0
        self.polled = 0.0
        """When Telegram last answered a call for updates."""
        self.poll_failure = ""
        self.hub_failure = ""
        self.failures = 0
        """How often a part of the front has failed and was started again."""
        self.failed_at = 0.0
        self.failed_part = ""
        self._stored = StoredHealth(polled=0.0)

    def note_poll(self, state: FrontState, now: float, failure: str = "") -> None:
        """Telegram has answered a call for updates, or has not. Kept for `doctor`."""
        self.poll_failure = failure
        if not failure:
            self.polled = now
        self.store(state)

    def store(self, state: FrontState) -> None:
        """Keep what has changed for `doctor`."""
        made = StoredHealth(
            polled=self.polled,
            failure=self.poll_failure,
            failed=self.failed_at,
            part=self.failed_part,
        )
        old = self._stored
        changed = (made.failure, made.failed) != (old.failure, old.failed)
        if changed or made.polled - old.polled > STORE_SECONDS:
            state.set_meta(HEALTH, msgspec.json.encode(made))
            self._stored = made

    def note_failure(self, part: str, error: Exception, now: float) -> None:
        """A part of the front has failed, and is started again. `store` keeps it."""
        self.failures += 1
        self.failed_at = now
        self.failed_part = f"{part} ({_kind(error)})"


def _kind(error: BaseException) -> str:
    """The name of an error; of a group, that of its first one. Its text may have a secret."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__


class Services:
    """The parts of the front that jobs use."""

    def __init__(
        self,
        messenger: Messenger,
        people: People,
        reporter: Reporter,
        api: BotApi,
        me: Me,
        health: Health,
    ) -> None:
        self.messenger = messenger
        self.people = people
        self.reporter = reporter
        self.api = api
        self.me = me
        self.health = health
        self.follow: Callable[[str | None], Awaitable[None]] = _follow_nothing
        """Called when a session is told of from now on, or a place wants all of them."""


async def _follow_nothing(session: str | None) -> None:
    """Nobody follows the hub."""


class Job:
    """One update that is being handled."""

    def __init__(
        self,
        services: Services,
        *,
        update_id: int,
        place: Place,
        user: int,
        message: Message | None = None,
        replied: Message | None = None,
        private: bool = True,
        begun: bool = False,
    ) -> None:
        self.services = services
        self.messenger = services.messenger
        self.update_id = update_id
        self.place = place
        self.user = user
        self.message = message
        self.replied = replied
        self.private = private
        self.begun = begun
        """It was handled before, and not to the end."""
        self._said = 0
        self._looked = False
        self._note: Note | None = None

    # --- who -----------------------------------------------------------------------------------

    @property
    def paired(self) -> Paired:
        """The person. Raises `NotPaired`."""
        found = self.messenger.state.paired_person(self.user)
        if found is None:
            raise NotPaired
        return found

    async def hub(self) -> HubClient:
        """The hub as this person sees it. Raises `NotPaired`."""
        return await self.services.people.client(self.paired.token)

    async def need(self, right: Right) -> None:
        """Raise `Forbidden` unless the person has a right: what they change holds for others."""
        me = await (await self.hub()).whoami()
        if right not in me.rights:
            raise Forbidden(f"{me.name} is {me.role.value} and may not {right.value}")

    def mark_done(self) -> None:
        """Nothing is left to do. In the transaction of what was done, which is then done once."""
        self.messenger.inbox.mark_done(self.update_id, self.messenger.clock.now())

    # --- what ----------------------------------------------------------------------------------

    @property
    def prompt_id(self) -> str:
        """The id of the prompt that this update is."""
        return f"tg-{self.services.me.id}-{self.update_id}"

    @property
    def session_id(self) -> str:
        """The id of the session that this update creates."""
        at = float(self.message.date) if self.message is not None and self.message.date else 0.0
        return derived_id(at, "telegram", str(self.services.me.id), str(self.update_id))

    @property
    def message_id(self) -> int:
        """The message of the person; 0 if there is none."""
        return 0 if self.message is None else self.message.message_id

    async def note_of_reply(self) -> Note | None:
        """What the message is about that this one replies to, or whose button was pressed.

        Raises `UsageError` for a message of the bot that is not known: what it asked for is not
        known either, and a guess could answer nothing, or change another session.
        """
        if not self._looked:
            self._note = await self._look()
            self._looked = True
        return self._note

    async def _look(self) -> Note | None:
        if self.replied is None:
            return None
        chat, number = self.place.chat, self.replied.message_id
        pressed, sender = self.message is None, self.replied.sender
        if not pressed and (sender is None or sender.id != self.services.me.id):
            row = self.messenger.state.prompt_of(chat, number)
            return None if row is None else Note(session=row.session)
        key = await self.messenger.outbox.find_key(chat, number)
        if key is None:
            raise UsageError(UNKNOWN)
        return self.messenger.asks.note_of(key)

    async def current(self) -> str | None:
        """The session that is meant when none is named: of the reply, else of the place.

        Raises `UsageError` for a reply to a message of the bot that is not known.
        """
        note = await self.note_of_reply()
        if note is not None and note.session:
            return note.session
        return self.messenger.state.current(self.place)

    async def session(self, given: str = "") -> str:
        """The session that is meant. Raises `UsageError` or `NotFound`."""
        if not given:
            found = await self.current()
            if found is None:
                raise UsageError("there is no session here yet: send a prompt, or use /sessions")
            return found
        return await find_session(await self.hub(), given)

    # --- answers -------------------------------------------------------------------------------

    def say(
        self,
        text: Part | str,
        rows: Rows = (),
        *,
        session: str = "",
        note: Note | None = None,
        file: Upload | None = None,
        name: str = "",
    ) -> str:
        """Answer in the chat; gives the key of the message. One with a `name` is not counted."""
        if not name:
            self._said += 1
        key = f"reply:{self.services.me.id}:{self.update_id}:{name or self._said}"
        part = fit(plain(text) if isinstance(text, str) else text)
        if note is None and session:
            note = Note(session=session)
        self.messenger.say(
            self.place,
            part,
            key=key,
            rows=rows,
            note=note,
            file=file,
            reply_to=self.message_id or None,
        )
        return key


async def find_session(hub: HubClient, given: str) -> str:
    """The id of the session that begins so, or has exactly this name."""
    if is_id(given):
        return given
    found = [
        shape.session
        async for shape in hub.sessions()
        if shape.session.startswith(given.lower()) or shape.name == given
    ]
    if not found:
        raise NotFound("session", given)
    if len(found) > 1:
        raise UsageError(f"{given!r} may be {len(found)} different sessions")
    return found[0]
