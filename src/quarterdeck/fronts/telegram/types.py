"""The objects of the Bot API, with the fields that the front reads. Unknown fields are ignored.

Plain values. A field that may be absent has a default. What Telegram calls `from` is `sender`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from quarterdeck.domain.structs import Value

GENERAL_TOPIC = 1
"""The thread of a forum's General topic, which must be left out when something is sent there."""


class ChatType(StrEnum):
    """The kinds of chats."""

    PRIVATE = "private"
    GROUP = "group"
    SUPERGROUP = "supergroup"
    CHANNEL = "channel"


class User(Value):
    """A person or a bot."""

    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""
    language_code: str = ""


class Chat(Value):
    """A chat. Groups have negative ids."""

    id: int
    type: str = ChatType.PRIVATE
    title: str = ""
    username: str = ""
    is_forum: bool = False

    @property
    def private(self) -> bool:
        """Whether it is a chat with one person."""
        return self.type == ChatType.PRIVATE


class Entity(Value):
    """A style of a part of a text. Offset and length count UTF-16 code units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""


class Button(Value):
    """A button under a message: with `callback_data` (1 to 64 bytes) or with a `url`."""

    text: str
    callback_data: str = ""
    url: str = ""
    style: Literal["", "danger", "success", "primary"] = ""


Buttons = tuple[tuple[Button, ...], ...]
"""Rows of buttons."""


class Keyboard(Value):
    """The buttons of a message."""

    inline_keyboard: Buttons = ()


class PhotoSize(Value):
    """One size of a photo; the last one of a message is the largest."""

    file_id: str
    width: int = 0
    height: int = 0
    file_size: int = 0


class Document(Value):
    """A file; voice notes and audio have the same fields."""

    file_id: str
    file_name: str = ""
    mime_type: str = ""
    file_size: int = 0
    duration: int = 0


class File(Value):
    """A file that can be downloaded with `file_path`, for an hour."""

    file_id: str
    file_size: int = 0
    file_path: str = ""


class ForumTopic(Value):
    """A topic of a forum."""

    message_thread_id: int
    name: str = ""


class Quote(Value):
    """The part of a message that a reply quotes."""

    text: str = ""


class Message(Value):
    """A message. `date` is 0 when Telegram no longer has it."""

    message_id: int
    chat: Chat
    date: int = 0
    sender: User | None = msgspec.field(name="from", default=None)
    sender_chat: Chat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    text: str = ""
    entities: tuple[Entity, ...] = ()
    caption: str = ""
    caption_entities: tuple[Entity, ...] = ()
    reply_to_message: Message | None = None
    quote: Quote | None = None
    media_group_id: str = ""
    photo: tuple[PhotoSize, ...] = ()
    document: Document | None = None
    voice: Document | None = None
    audio: Document | None = None
    video: Document | None = None
    reply_markup: Keyboard | None = None
    edit_date: int = 0
    forum_topic_created: ForumTopicCreated | None = None
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None

    @property
    def thread(self) -> int | None:
        """The topic that it is in; None outside of topics and in the General topic.

        In groups without topics Telegram sets a thread for replies, too; that is no topic.
        """
        if not self.is_topic_message or self.message_thread_id == GENERAL_TOPIC:
            return None
        return self.message_thread_id


class ForumTopicCreated(Value):
    """The service message that begins a topic."""

    name: str = ""


class CallbackQuery(Value):
    """A press on a button."""

    id: str
    sender: User = msgspec.field(name="from")
    message: Message | None = None
    data: str = ""


class GenerationStopped(Value):
    """A press on Stop under a draft."""

    chat: Chat
    draft_id: int
    message_thread_id: int | None = None


class ChatMember(Value):
    """The status of a user in a chat."""

    status: str
    user: User
    can_manage_topics: bool = False
    can_delete_messages: bool = False

    @property
    def administrator(self) -> bool:
        """Whether they may manage the chat."""
        return self.status in {"administrator", "creator"}

    @property
    def present(self) -> bool:
        """Whether they are in the chat."""
        return self.status not in {"left", "kicked"}


class ChatMemberUpdated(Value):
    """A user, or the bot itself, was added, removed or changed."""

    chat: Chat
    new_chat_member: ChatMember
    sender: User | None = msgspec.field(name="from", default=None)


class Update(Value):
    """One thing that happened: one field besides `update_id` is set, or none that we know."""

    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: CallbackQuery | None = None
    stopped_message_generation: GenerationStopped | None = None
    my_chat_member: ChatMemberUpdated | None = None


UPDATE_TYPES = (
    "message",
    "edited_message",
    "callback_query",
    "stopped_message_generation",
    "my_chat_member",
)
"""What the bot asks for."""


class Command(Value):
    """An entry of the command menu."""

    command: str
    description: str


class WebhookInfo(Value):
    """What Telegram says about the webhook; an empty URL: there is none."""

    url: str = ""
    pending_update_count: int = 0
    last_error_date: int = 0
    last_error_message: str = ""
    allowed_updates: tuple[str, ...] = ()


class Me(Value):
    """The bot itself."""

    id: int
    is_bot: bool = True
    first_name: str = ""
    username: str = ""
    can_join_groups: bool = False
    can_read_all_group_messages: bool = False
    has_topics_enabled: bool = False
