"""The world of the test server: chats, people, messages, files, and the updates that wait.

State without I/O. `methods` changes it for the bot, `sim` for the people. Time comes from a
function, so that the server's clock can run faster than that of the machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct, field

from quarterdeck.testing.telegram.objects import (
    CallbackQuery,
    Chat,
    Draft,
    GenerationStopped,
    Message,
    TopicCreated,
    Update,
    User,
)
from quarterdeck.testing.telegram.refusal import Refusal, bad, forbidden

DRAFT_SECONDS = 30.0
UPDATE_SECONDS = 24 * 3600.0
QUERY_SECONDS = 15 * 60.0
EDIT_SECONDS = 48 * 3600.0
SUPERGROUP = -1_000_000_000_000
TOPIC_COLOR = 0x6FB9F0


class Room(Struct):
    """A chat with all that is in it."""

    chat: Chat
    members: dict[int, str] = field(default_factory=dict)
    """The status of each, by the user's number."""
    messages: dict[int, Message] = field(default_factory=dict)
    topics: dict[int, str] = field(default_factory=dict)
    drafts: dict[int, Draft] = field(default_factory=dict)
    """What people see being written, by the thread, 0 without one."""
    actions: list[str] = field(default_factory=list)
    reactions: dict[int, str] = field(default_factory=dict)
    blocked: bool = False
    """The person has blocked the bot, or the group has removed it."""
    migrated_to: int | None = None
    last_id: int = 0


class StoredFile(Struct):
    """A file, sent by a person or by the bot."""

    file_id: str
    name: str
    data: bytes
    mime: str = "application/octet-stream"


class RawUpdate(Struct):
    """An update of a kind that this server does not know."""

    update_id: int
    content: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As the bot gets it."""
        return {"update_id": self.update_id} | self.content


class Query(Struct):
    """A press on a button that waits for its answer."""

    query: CallbackQuery
    at: float
    answer: str | None = None
    """What the person was shown; None: nothing yet."""
    alert: bool = False


class World:
    """Everything."""

    def __init__(self, *, username: str, now: Callable[[], float], bot_id: int) -> None:
        self.now = now
        self.bot = User(id=bot_id, is_bot=True, first_name="Bot", username=username)
        self.users: dict[int, User] = {}
        self.rooms: dict[int, Room] = {}
        self.files: dict[str, StoredFile] = {}
        self.queries: dict[str, Query] = {}
        self.updates: list[tuple[Update | RawUpdate, float]] = []
        """Those that the bot has not confirmed, with their times."""
        self.delivered: list[Update | RawUpdate] = []
        """Those that it has confirmed."""
        self.commands: dict[str, list[dict[str, Any]]] = {}
        self.allowed: frozenset[str] | None = None
        self.private_mode = False
        """In groups the bot gets only what is meant for it, unless it is an administrator."""
        self.on_update: Callable[[], None] = lambda: None
        self._box = itertools.count(1)
        self._update_ids = itertools.count(100_000_001)
        self._query_ids = itertools.count(1)
        self._file_ids = itertools.count(1)
        self._group_ids = itertools.count(1)

    # --- places ----------------------------------------------------------------------------------

    def add_user(self, id_: int, name: str, username: str | None) -> User:
        """A person, with a private chat that they have started."""
        user = User(id=id_, is_bot=False, first_name=name, username=username)
        self.users[id_] = user
        chat = Chat(id=id_, type="private", first_name=name, username=username)
        self.rooms.setdefault(id_, Room(chat))
        self.rooms[id_].members = {id_: "member", self.bot.id: "member"}
        return user

    def add_group(self, title: str, *, forum: bool, basic: bool, id_: int | None) -> Chat:
        """A group with the bot as an administrator."""
        number = next(self._group_ids)
        made = id_ if id_ is not None else (-number if basic else SUPERGROUP - number)
        kind = "group" if basic else "supergroup"
        chat = Chat(id=made, type=kind, title=title, is_forum=forum)
        # The first message of a supergroup is the note that it was created.
        self.rooms[made] = Room(chat, members={self.bot.id: "administrator"}, last_id=1)
        return chat

    def room(self, chat: int | str) -> Room:
        """A chat that the bot can use now."""
        room = self.find_room(chat)
        if room is None:
            raise bad("chat not found")
        if room.migrated_to is not None:
            raise Refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to=room.migrated_to,
            )
        if room.blocked:
            if room.chat.private:
                raise forbidden("bot was blocked by the user")
            raise forbidden(f"bot was kicked from the {room.chat.type} chat")
        return room

    def find_room(self, chat: int | str) -> Room | None:
        """A chat by its number or `@name`."""
        if isinstance(chat, str):
            named = chat.removeprefix("@")
            return next((one for one in self.rooms.values() if one.chat.username == named), None)
        return self.rooms.get(chat)

    def next_id(self, room: Room) -> int:
        """The number of the next message: supergroups count for themselves."""
        room.last_id = room.last_id + 1 if room.chat.id < SUPERGROUP else next(self._box)
        return room.last_id

    def add_topic(self, room: Room, name: str, by: User) -> int:
        """A topic of a forum; its number is that of its first message."""
        number = self.next_id(room)
        room.topics[number] = name
        room.messages[number] = Message(
            message_id=number,
            date=int(self.now()),
            chat=room.chat,
            sender=by,
            message_thread_id=number,
            is_topic_message=True,
            forum_topic_created=TopicCreated(name=name, icon_color=TOPIC_COLOR),
        )
        return number

    # --- messages --------------------------------------------------------------------------------

    def post(self, room: Room, sender: User, thread: int | None, **content: Any) -> Message:
        """Add a message."""
        reply = content.get("reply_to_message")
        if reply is not None:
            content["reply_to_message"] = msgspec.structs.replace(reply, reply_to_message=None)
        message = Message(
            message_id=self.next_id(room),
            date=int(self.now()),
            chat=room.chat,
            sender=sender,
            message_thread_id=thread,
            is_topic_message=thread is not None,
            **content,
        )
        room.messages[message.message_id] = message
        if sender.is_bot:
            room.drafts.pop(thread or 0, None)
        return message

    def change(self, room: Room, message: Message, **content: Any) -> Message:
        """Replace what a message shows; refused if it shows that already."""
        after = msgspec.structs.replace(message, **content)
        if after == message:
            raise bad(
                "message is not modified: specified new message content and reply markup are"
                " exactly the same as a current content and reply markup of the message"
            )
        after = msgspec.structs.replace(after, edit_date=int(self.now()))
        room.messages[message.message_id] = after
        return after

    def draft(self, room: Room, thread: int | None) -> Draft | None:
        """What a person sees being written."""
        found = room.drafts.get(thread or 0)
        if found is None or found.at + DRAFT_SECONDS <= self.now():
            return None
        return found

    def add_file(self, name: str, data: bytes, mime: str) -> StoredFile:
        """Keep a file."""
        number = next(self._file_ids)
        file = StoredFile(f"file-{number:06d}", name, data, mime)
        self.files[file.file_id] = file
        return file

    # --- updates ---------------------------------------------------------------------------------

    def update(self, **content: Any) -> Update:
        """Something happened: the bot is told, if it wants to know."""
        update = Update(update_id=next(self._update_ids), **content)
        if self.allowed is None or update.kind in self.allowed:
            self.updates.append((update, self.now()))
            self.on_update()
        return update

    def raw_update(self, content: dict[str, Any]) -> int:
        """Deliver an update with any content; its number."""
        number = next(self._update_ids)
        self.updates.append((RawUpdate(number, content), self.now()))
        self.on_update()
        return number

    def redeliver(self, count: int) -> int:
        """Deliver the last updates again, with their numbers; how many there were."""
        again = self.delivered[-count:]
        known = {update.update_id for update, _ in self.updates}
        rows = [(update, self.now()) for update in again if update.update_id not in known]
        self.updates = rows + self.updates
        self.on_update()
        return len(rows)

    def press(self, user: User, message: Message | None, data: str) -> Query:
        """A press on a button."""
        number = next(self._query_ids)
        query = CallbackQuery(
            id=f"{self.bot.id}{number:06d}",
            sender=user,
            chat_instance=str(message.chat.id if message else user.id),
            message=message,
            data=data,
        )
        made = self.queries[query.id] = Query(query, self.now())
        self.update(callback_query=query)
        return made

    def stop(self, room: Room, draft: Draft) -> Update:
        """A press on Stop under a draft."""
        room.drafts.pop(draft.thread or 0, None)
        stopped = GenerationStopped(
            chat=room.chat, draft_id=draft.draft_id, message_thread_id=draft.thread
        )
        return self.update(stopped_message_generation=stopped)

    def pending_updates(self) -> list[Update | RawUpdate]:
        """The updates that are not confirmed and not too old."""
        oldest = self.now() - UPDATE_SECONDS
        if self.updates and self.updates[0][1] < oldest:
            self.updates = [row for row in self.updates if row[1] >= oldest]
        return [update for update, _ in self.updates]

    def confirm(self, offset: int) -> None:
        """Forget the updates before `offset`; a negative one keeps only the newest."""
        kept = (
            self.updates[offset:]
            if offset < 0
            else [row for row in self.updates if row[0].update_id >= offset]
        )
        if len(kept) < len(self.updates):
            left = {row[0].update_id for row in kept}
            self.delivered += [row[0] for row in self.updates if row[0].update_id not in left]
            self.updates = kept
