"""The people of the test server: they type, press, reply, send files, block the bot, and flood it.

A test calls these in Python; a program in another language calls `POST /sim/NAME` with the
parameters as JSON. Every action returns what it made. What cannot be (a button that is not there)
is a `UsageError`, except where `forge` says that a user tries it anyway.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quarterdeck.domain.errors import UsageError
from quarterdeck.testing.telegram.checks import utf16
from quarterdeck.testing.telegram.flood import FloodControl
from quarterdeck.testing.telegram.methods import media_of, photo_of
from quarterdeck.testing.telegram.objects import (
    GENERAL_TOPIC,
    Chat,
    Draft,
    Entity,
    Message,
    Update,
    User,
)
from quarterdeck.testing.telegram.world import Query, Room, World


class Sim:
    """What people do, and what they see."""

    def __init__(self, world: World, flood: FloodControl) -> None:
        self._world = world
        self._flood = flood
        self._last_update = 0

    # --- places ----------------------------------------------------------------------------------

    def add_user(self, id: int, name: str = "Ada", username: str | None = None) -> User:  # noqa: A002
        """A person who has started the bot. Their private chat has the same number."""
        return self._world.add_user(id, name, username)

    def add_group(
        self,
        title: str,
        members: list[int] | None = None,
        *,
        forum: bool = False,
        basic: bool = False,
        id: int | None = None,  # noqa: A002
    ) -> Chat:
        """A group with the bot as an administrator; a supergroup, unless `basic`."""
        chat = self._world.add_group(title, forum=forum, basic=basic, id_=id)
        for member in members or []:
            self._world.rooms[chat.id].members[self._user(member).id] = "member"
        return chat

    def add_topic(self, chat: int, name: str, user: int) -> int:
        """A topic of a forum, made by a person; its thread."""
        return self._world.add_topic(self._room(chat), name, self._user(user))

    def set_status(self, chat: int, user: int, status: str) -> None:
        """Make a user, or the bot by its number, `member`, `administrator` or `left`."""
        self._room(chat).members[user] = status

    def set_privacy(self, on: bool) -> None:
        """The privacy mode of the bot: with it, groups show it only what is meant for it."""
        self._world.private_mode = on

    # --- what people do --------------------------------------------------------------------------

    def type(
        self,
        user: int,
        text: str,
        chat: int | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
    ) -> Message:
        """Type a message, in the private chat if no other is named."""
        return self._post(user, chat, thread, reply_to, text=text, entities=_commands(text))

    def edit(self, user: int, message_id: int, text: str, chat: int | None = None) -> Message:
        """Change a message of one's own."""
        room = self._room(user if chat is None else chat)
        message = self._message(room, message_id)
        if message.sender != self._user(user):
            raise UsageError("this is another user's message")
        after = self._world.change(room, message, text=text, entities=_commands(text))
        self._world.update(edited_message=after)
        return after

    def send_file(
        self,
        user: int,
        name: str,
        data: str | bytes,
        *,
        kind: str = "document",
        caption: str | None = None,
        chat: int | None = None,
        thread: int | None = None,
        reply_to: int | None = None,
        mime: str = "application/octet-stream",
        group: str | None = None,
    ) -> Message:
        """Send a `document`, a `photo` or a `voice` note; files of a `group` belong together."""
        body = data.encode() if isinstance(data, str) else data
        file = self._world.add_file(name, body, mime)
        content: dict[str, Any] = {"caption": caption, "media_group_id": group}
        if kind == "photo":
            content["photo"] = (photo_of(file),)
        elif kind == "voice":
            content["voice"] = media_of(file, duration=3)
        else:
            content["document"] = media_of(file)
        return self._post(user, chat, thread, reply_to, **content)

    def press(
        self,
        user: int,
        message_id: int,
        button: str = "",
        chat: int | None = None,
        forge: str = "",
    ) -> str:
        """Press the button with this text, or one whose text begins so; the number of the query.

        `forge` presses with data of one's own choice, which a changed client can do.
        """
        room = self._room(user if chat is None else chat)
        message = room.messages.get(message_id)
        if forge:
            return self._world.press(self._user(user), message, forge).query.id
        found = self._message(room, message_id)
        exact = [one for one in found.buttons if one.text == button]
        data = next(
            (
                one.callback_data
                for one in exact or found.buttons
                if one.text.startswith(button) and one.callback_data is not None
            ),
            None,
        )
        if data is None:
            has = ", ".join(one.text for one in found.buttons) or "none"
            raise UsageError(f"there is no button {button!r}; the message has: {has}")
        return self._world.press(self._user(user), found, data).query.id

    def stop(self, user: int, thread: int | None = None) -> Update:
        """Press Stop under the draft of the private chat."""
        room = self._room(user)
        draft = self._world.draft(room, thread)
        if draft is None or not draft.can_stop:
            raise UsageError("there is no draft that can be stopped")
        return self._world.stop(room, draft)

    def delete(self, chat: int, message_id: int) -> None:
        """Delete a message; the bot is not told."""
        room = self._room(chat)
        self._message(room, message_id)
        del room.messages[message_id]

    def block(self, chat: int, blocked: bool = True) -> None:
        """Block the bot, or remove it from a group; `False`: let it in again."""
        room = self._room(chat)
        room.blocked = blocked
        status = "kicked" if blocked else "member"
        user = self._world.users.get(chat) or next(iter(self._world.users.values()), None)
        if user is None:
            raise UsageError("there is nobody who could do that")
        bot = self._world.bot
        member: dict[str, Any] = {"status": status, "user": bot}
        if blocked:
            member["until_date"] = 0
        self._world.update(
            my_chat_member={
                "chat": room.chat,
                "from": user,
                "date": int(self._world.now()),
                "old_chat_member": {"status": "member", "user": bot},
                "new_chat_member": member,
            }
        )

    def migrate(self, chat: int) -> Chat:
        """Turn a basic group into a supergroup, with another number."""
        room = self._room(chat)
        if room.chat.type != "group":
            raise UsageError("only a basic group can become a supergroup")
        new = self._world.add_group(room.chat.title or "", forum=False, basic=False, id_=None)
        self._world.rooms[new.id].members = dict(room.members)
        user = next(one for one in self._world.users.values() if one.id in room.members)
        left = self._world.post(room, user, None, migrate_to_chat_id=new.id)
        room.migrated_to = new.id
        self._world.update(message=left)
        came = self._world.post(self._world.rooms[new.id], user, None, migrate_from_chat_id=chat)
        self._world.update(message=came)
        return new

    # --- trouble ---------------------------------------------------------------------------------

    def storm(
        self, user: int, count: int, text: str = "storm", chat: int | None = None
    ) -> list[int]:
        """Type many messages at once, numbered; the numbers of the messages."""
        return [self.type(user, f"{text} {number}", chat).message_id for number in range(count)]

    def flood(self, calls: int, retry_after: int, chat: int | None = None) -> None:
        """Refuse the next calls with 429: those for a chat, or all."""
        self._flood.order(chat, calls, retry_after)

    def redeliver(self, count: int) -> int:
        """Deliver the last updates again, as Telegram may do; how many."""
        return self._world.redeliver(count)

    def raw_update(self, update: dict[str, Any]) -> int:
        """Deliver an update with any content, such as one of a kind that is not known yet."""
        return self._world.raw_update(update)

    # --- what people see -------------------------------------------------------------------------

    def messages(self, chat: int, thread: int | None = None) -> list[Message]:
        """The messages of a chat, or of one topic, oldest first."""
        return [
            message
            for message in self._room(chat).messages.values()
            if thread is None
            or message.message_thread_id == (None if thread == GENERAL_TOPIC else thread)
        ]

    def from_bot(self, chat: int, thread: int | None = None) -> list[Message]:
        """The messages of the bot in a chat or topic, oldest first."""
        bot = self._world.bot
        return [
            message
            for message in self.messages(chat, thread)
            if message.sender == bot and message.forum_topic_created is None
        ]

    def draft(self, user: int, thread: int | None = None) -> Draft | None:
        """The draft that a user sees now."""
        return self._world.draft(self._room(user), thread)

    def query(self, id: str) -> Query:  # noqa: A002
        """A press, with what the person was shown."""
        if id not in self._world.queries:
            raise UsageError(f"there is no query {id!r}")
        return self._world.queries[id]

    def file(self, message_id: int, chat: int) -> bytes:
        """The contents of a file in a message."""
        message = self._message(self._room(chat), message_id)
        media = message.document or message.voice or (message.photo[-1] if message.photo else None)
        if media is None:
            raise UsageError("the message has no file")
        return self._world.files[media.file_id].data

    def commands(self, scope: str = "default") -> list[dict[str, Any]]:
        """The command menu."""
        return self._world.commands.get(scope, [])

    def pending_count(self) -> int:
        """How many updates the bot has not confirmed."""
        return len(self._world.pending_updates())

    # --- helpers ---------------------------------------------------------------------------------

    def _post(
        self,
        user: int,
        chat: int | None,
        thread: int | None,
        reply_to: int | None,
        **content: Any,
    ) -> Message:
        room = self._room(user if chat is None else chat)
        author = self._user(user)
        inside = None if thread == GENERAL_TOPIC else thread
        if inside is not None and inside not in room.topics:
            raise UsageError(f"there is no topic {thread}")
        if reply_to is not None:
            content["reply_to_message"] = self._message(room, reply_to)
        message = self._world.post(room, author, inside, **content)
        if not room.blocked and not self._is_hidden(room, message):
            self._world.update(message=message)
        return message

    def _is_hidden(self, room: Room, message: Message) -> bool:
        """Whether the privacy mode keeps a message from the bot."""
        bot = self._world.bot
        if not self._world.private_mode or room.chat.private:
            return False
        if room.members.get(bot.id) == "administrator":
            return False
        replied = message.reply_to_message
        text = message.text or message.caption or ""
        meant = text.startswith("/") or f"@{bot.username}" in text
        return not meant and (replied is None or replied.sender != bot)

    def _room(self, chat: int) -> Room:
        if chat not in self._world.rooms:
            raise UsageError(f"there is no chat {chat}")
        return self._world.rooms[chat]

    def _user(self, id_: int) -> User:
        if id_ not in self._world.users:
            raise UsageError(f"there is no user {id_}")
        return self._world.users[id_]

    def _message(self, room: Room, number: int) -> Message:
        if number not in room.messages:
            raise UsageError(f"there is no message {number} in chat {room.chat.id}")
        return room.messages[number]


ACTIONS = frozenset(
    {
        "add_group",
        "add_topic",
        "add_user",
        "block",
        "commands",
        "delete",
        "draft",
        "edit",
        "flood",
        "from_bot",
        "messages",
        "migrate",
        "pending_count",
        "press",
        "query",
        "raw_update",
        "redeliver",
        "send_file",
        "set_privacy",
        "set_status",
        "stop",
        "storm",
        "type",
    }
)
"""What `/sim/NAME` has."""


def _commands(text: str) -> tuple[Entity, ...]:
    """Telegram marks a command at the beginning of a text."""
    if not text.startswith("/") or len(text) < 2 or text[1].isspace():
        return ()
    return (Entity(type="bot_command", offset=0, length=utf16(text.split()[0])),)


def to_json(value: Any) -> bytes:
    """A result of an action as JSON."""
    return msgspec.json.encode(value)
