"""The methods of the Bot API that the test server has, each as a function of world and parameters.

A method checks what Telegram checks, changes the world, and returns its result. `METHODS` is the
table of all of them. Polling and webhooks are the server's, because they wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.testing.telegram import chat_methods, checks
from quarterdeck.testing.telegram.checks import read_keyboard, read_rich, read_text
from quarterdeck.testing.telegram.objects import Draft, Media, Message, PhotoSize
from quarterdeck.testing.telegram.params import Params
from quarterdeck.testing.telegram.refusal import Refusal, bad
from quarterdeck.testing.telegram.targets import own_message, reply_of, room_of, thread_of
from quarterdeck.testing.telegram.world import (
    EDIT_SECONDS,
    QUERY_SECONDS,
    Room,
    StoredFile,
    World,
)

Method = Callable[[World, Params], Any]

_ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "upload_document",
        "record_voice",
        "upload_voice",
        "choose_sticker",
        "find_location",
        "record_video",
        "upload_video",
    }
)
_REACTIONS = frozenset(
    "👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣⚡🍌🏆💔🤨😐🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇😨🤝✍🤗🫡🎅🎄☃💅🤪🗿🆒💘🙉🦄😘💊🙊😎👾😡"
)


# --- sending -------------------------------------------------------------------------------------


def send_message(world: World, params: Params) -> Message:
    """`sendMessage`."""
    room = room_of(world, params)
    styled = read_text(params)
    keyboard = read_keyboard(params)
    return world.post(
        room,
        world.bot,
        thread_of(room, params),
        text=styled.text,
        entities=styled.entities,
        reply_markup=keyboard,
        reply_to_message=reply_of(room, params),
    )


def send_rich_message(world: World, params: Params) -> Message:
    """`sendRichMessage`."""
    room = room_of(world, params)
    rich = read_rich(params)
    keyboard = read_keyboard(params)
    return world.post(
        room,
        world.bot,
        thread_of(room, params),
        rich_message=rich,
        reply_markup=keyboard,
        reply_to_message=reply_of(room, params),
    )


def send_document(world: World, params: Params) -> Message:
    """`sendDocument`."""
    room = room_of(world, params)
    file = _file(world, params, "document", checks.LARGEST_UPLOAD)
    return _send_media(world, room, params, document=media_of(file))


def send_photo(world: World, params: Params) -> Message:
    """`sendPhoto`."""
    room = room_of(world, params)
    file = _file(world, params, "photo", checks.LARGEST_PHOTO)
    return _send_media(world, room, params, photo=(photo_of(file),))


def _send_media(world: World, room: Room, params: Params, **media: Any) -> Message:
    caption = read_text(
        params, "caption", "caption_entities", limit=checks.LONGEST_CAPTION, optional=True
    )
    keyboard = read_keyboard(params)
    return world.post(
        room,
        world.bot,
        thread_of(room, params),
        caption=caption.text or None,
        caption_entities=caption.entities,
        reply_markup=keyboard,
        reply_to_message=reply_of(room, params),
        **media,
    )


def _file(world: World, params: Params, name: str, largest: int) -> StoredFile:
    given = params.text(name)
    sent = params.files.get(name)
    if given.startswith("attach://"):
        sent = params.files.get(given.removeprefix("attach://"))
    if sent is not None:
        if not sent.data:
            raise bad("file must be non-empty")
        if len(sent.data) > largest:
            if largest < checks.LARGEST_UPLOAD:
                raise bad(f"file of size {len(sent.data)} bytes is too big for a photo")
            raise Refusal(413, "Request Entity Too Large")
        return world.add_file(sent.name, sent.data, "application/octet-stream")
    if not given:
        raise bad(f"there is no {name} in the request")
    found = world.files.get(given)
    if found is None:
        raise bad("wrong file identifier/HTTP URL specified")
    return found


def media_of(file: StoredFile, *, duration: int | None = None) -> Media:
    """A file as a message has it."""
    return Media(
        file_id=file.file_id,
        file_unique_id=f"u{file.file_id}",
        file_size=len(file.data),
        file_name=file.name if duration is None else None,
        mime_type=file.mime,
        duration=duration,
    )


def photo_of(file: StoredFile) -> PhotoSize:
    """A picture as a message has it; nobody looks at how large it is."""
    return PhotoSize(
        file_id=file.file_id,
        file_unique_id=f"u{file.file_id}",
        width=640,
        height=480,
        file_size=len(file.data),
    )


def send_message_draft(world: World, params: Params) -> bool:
    """`sendMessageDraft`."""
    room = room_of(world, params)
    styled = read_text(params, optional=True)
    return _draft(world, room, params, text=styled.text, entities=styled.entities)


def send_rich_message_draft(world: World, params: Params) -> bool:
    """`sendRichMessageDraft`."""
    room = room_of(world, params)
    rich = read_rich(params, draft=True)
    return _draft(world, room, params, text="\n".join(one.text for one in rich.blocks), rich=True)


def _draft(world: World, room: Room, params: Params, **content: Any) -> bool:
    number = params.need_number("draft_id")
    if number == 0:
        raise bad("draft_id must be non-zero")
    if not room.chat.private:
        raise bad("message drafts can be sent in private chats only")
    thread = thread_of(room, params)
    room.drafts[thread or 0] = Draft(
        chat=room.chat.id,
        draft_id=number,
        at=world.now(),
        thread=thread,
        can_stop=params.flag("can_stop"),
        **content,
    )
    return True


def send_chat_action(world: World, params: Params) -> bool:
    """`sendChatAction`."""
    room = room_of(world, params)
    action = params.text("action")
    if action not in _ACTIONS:
        raise bad("wrong parameter action in request")
    thread_of(room, params)
    room.actions.append(action)
    return True


# --- changing ------------------------------------------------------------------------------------


def edit_message_text(world: World, params: Params) -> Message:
    """`editMessageText`, for texts and rich messages."""
    room = room_of(world, params)
    rich = read_rich(params) if params.has("rich_message") else None
    styled = None if rich is not None else read_text(params)
    keyboard = read_keyboard(params)
    message = own_message(world, room, params)
    if message.text is None and message.rich_message is None:
        raise bad("there is no text in the message to edit")
    return world.change(
        room,
        message,
        text=styled.text if styled else None,
        entities=styled.entities if styled else (),
        rich_message=rich,
        reply_markup=keyboard,
    )


def edit_message_caption(world: World, params: Params) -> Message:
    """`editMessageCaption`."""
    room = room_of(world, params)
    caption = read_text(
        params, "caption", "caption_entities", limit=checks.LONGEST_CAPTION, optional=True
    )
    keyboard = read_keyboard(params)
    message = own_message(world, room, params)
    if message.document is None and not message.photo:
        raise bad("there is no caption in the message to edit")
    return world.change(
        room,
        message,
        caption=caption.text or None,
        caption_entities=caption.entities,
        reply_markup=keyboard,
    )


def edit_message_reply_markup(world: World, params: Params) -> Message:
    """`editMessageReplyMarkup`."""
    room = room_of(world, params)
    keyboard = read_keyboard(params)
    return world.change(room, own_message(world, room, params), reply_markup=keyboard)


def delete_message(world: World, params: Params) -> bool:
    """`deleteMessage`."""
    room = room_of(world, params)
    message = room.messages.get(params.need_number("message_id"))
    if message is None:
        raise bad("message to delete not found")
    administrator = room.members.get(world.bot.id) in {"administrator", "creator"}
    own = message.sender == world.bot or room.chat.private
    if not (own or administrator) or message.date + EDIT_SECONDS < world.now():
        raise bad("message can't be deleted for everyone")
    del room.messages[message.message_id]
    return True


def set_message_reaction(world: World, params: Params) -> bool:
    """`setMessageReaction`."""
    room = room_of(world, params)
    number = params.need_number("message_id")
    if number not in room.messages:
        raise bad("message to react not found")
    given = params.get("reaction", list[dict[str, Any]]) or []
    if len(given) > 1:
        raise bad("REACTIONS_TOO_MANY")
    emoji = str(given[0].get("emoji", "")) if given else ""
    if emoji and emoji.rstrip("\ufe0f") not in _REACTIONS:
        raise bad("REACTION_INVALID")
    if emoji:
        room.reactions[number] = emoji
    else:
        room.reactions.pop(number, None)
    return True


def answer_callback_query(world: World, params: Params) -> bool:
    """`answerCallbackQuery`; a query can be answered once, and not for long."""
    if len(params.text("text")) > checks.LONGEST_TOAST:
        raise bad("MESSAGE_TOO_LONG")
    found = world.queries.get(params.text("callback_query_id"))
    if found is None or found.answer is not None or found.at + QUERY_SECONDS < world.now():
        raise bad("query is too old and response timeout expired or query ID is invalid")
    found.answer = params.text("text")
    found.alert = params.flag("show_alert")
    return True


def get_file(world: World, params: Params) -> dict[str, Any]:
    """`getFile`."""
    file = world.files.get(params.text("file_id"))
    if file is None:
        raise bad("invalid file_id")
    if len(file.data) > checks.LARGEST_DOWNLOAD:
        raise bad("file is too big")
    return {
        "file_id": file.file_id,
        "file_unique_id": f"u{file.file_id}",
        "file_size": len(file.data),
        "file_path": f"documents/{file.file_id}",
    }


METHODS: dict[str, Method] = {
    "answerCallbackQuery": answer_callback_query,
    "closeForumTopic": chat_methods.close_forum_topic,
    "createForumTopic": chat_methods.create_forum_topic,
    "deleteForumTopic": chat_methods.delete_forum_topic,
    "deleteMessage": delete_message,
    "deleteMyCommands": chat_methods.delete_my_commands,
    "editForumTopic": chat_methods.edit_forum_topic,
    "editMessageCaption": edit_message_caption,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "editMessageText": edit_message_text,
    "getChat": chat_methods.get_chat,
    "getChatMember": chat_methods.get_chat_member,
    "getFile": get_file,
    "getMe": chat_methods.get_me,
    "getMyCommands": chat_methods.get_my_commands,
    "sendChatAction": send_chat_action,
    "sendDocument": send_document,
    "sendMessage": send_message,
    "sendMessageDraft": send_message_draft,
    "sendPhoto": send_photo,
    "sendRichMessage": send_rich_message,
    "sendRichMessageDraft": send_rich_message_draft,
    "setMessageReaction": set_message_reaction,
    "setMyCommands": chat_methods.set_my_commands,
}
"""The methods that answer at once."""

LIMITED = frozenset(
    {
        "deleteMessage",
        "editMessageCaption",
        "editMessageReplyMarkup",
        "editMessageText",
        "sendDocument",
        "sendMessage",
        "sendMessageDraft",
        "sendPhoto",
        "sendRichMessage",
        "sendRichMessageDraft",
    }
)
"""Those that flood control counts."""
