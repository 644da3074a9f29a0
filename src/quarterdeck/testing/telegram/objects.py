"""The objects of the Bot API as the test server gives them out.

They are written with the required fields of the documentation, since the libraries that are run
against the server insist on them. The server and the simulated people make them; nothing else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quarterdeck.domain.structs import Value

GENERAL_TOPIC = 1


class User(Value):
    """A person or the bot."""

    id: int
    is_bot: bool
    first_name: str
    username: str | None = None
    language_code: str | None = None


class Chat(Value):
    """A chat."""

    id: int
    type: str
    title: str | None = None
    first_name: str | None = None
    username: str | None = None
    is_forum: bool = False

    @property
    def private(self) -> bool:
        """Whether it is a chat with one person."""
        return self.type == "private"


class Entity(Value):
    """A style of a part of a text, in UTF-16 code units."""

    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


class Button(Value):
    """A button of an inline keyboard."""

    text: str
    callback_data: str | None = None
    url: str | None = None
    style: str | None = None


class Keyboard(Value):
    """The buttons under a message."""

    inline_keyboard: tuple[tuple[Button, ...], ...]


class PhotoSize(Value):
    """A photo in one size."""

    file_id: str
    file_unique_id: str
    width: int
    height: int
    file_size: int


class Media(Value):
    """A document, or with `duration` a voice note."""

    file_id: str
    file_unique_id: str
    file_size: int
    file_name: str | None = None
    mime_type: str | None = None
    duration: int | None = None


class Paragraph(Value):
    """A block of a rich message. The server shows every kind of block as plain paragraphs."""

    type: str
    text: str


class Rich(Value):
    """The content of a rich message."""

    blocks: tuple[Paragraph, ...]


class TopicCreated(Value):
    """The service message that begins a topic."""

    name: str
    icon_color: int


class Message(Value):
    """A message."""

    message_id: int
    date: int
    chat: Chat
    sender: User | None = msgspec.field(name="from", default=None)
    message_thread_id: int | None = None
    is_topic_message: bool = False
    text: str | None = None
    entities: tuple[Entity, ...] = ()
    caption: str | None = None
    caption_entities: tuple[Entity, ...] = ()
    reply_to_message: Message | None = None
    photo: tuple[PhotoSize, ...] = ()
    document: Media | None = None
    voice: Media | None = None
    media_group_id: str | None = None
    rich_message: Rich | None = None
    reply_markup: Keyboard | None = None
    edit_date: int | None = None
    forum_topic_created: TopicCreated | None = None
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None

    @property
    def buttons(self) -> tuple[Button, ...]:
        """All buttons, row by row."""
        if self.reply_markup is None:
            return ()
        return tuple(button for row in self.reply_markup.inline_keyboard for button in row)

    @property
    def shown(self) -> str:
        """The text that a person reads."""
        if self.rich_message is not None:
            return "\n".join(block.text for block in self.rich_message.blocks)
        return self.text or self.caption or ""


class CallbackQuery(Value):
    """A press on a button."""

    id: str
    sender: User = msgspec.field(name="from")
    chat_instance: str
    message: Message | None = None
    data: str | None = None


class GenerationStopped(Value):
    """A press on Stop under a draft."""

    chat: Chat
    draft_id: int
    message_thread_id: int | None = None


class Update(Value):
    """Something that happened."""

    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: CallbackQuery | None = None
    stopped_message_generation: GenerationStopped | None = None
    my_chat_member: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The name of the field that is set."""
        for name in self.__struct_fields__[1:]:
            if getattr(self, name) is not None:
                return name
        return ""


class Draft(Value):
    """A text that is being written, as the person sees it."""

    chat: int
    draft_id: int
    text: str
    at: float
    thread: int | None = None
    entities: tuple[Entity, ...] = ()
    can_stop: bool = False
    rich: bool = False


class Call(Value):
    """A call that the server received, for tests that count."""

    number: int
    method: str
    params: dict[str, Any]
    at: float
    """By the server's clock."""
    code: int
    """The status of the answer; 0: the connection was cut."""
    chat: int | None = None
    description: str = ""
