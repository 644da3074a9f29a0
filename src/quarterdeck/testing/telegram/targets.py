"""Where a call of the bot goes: the chat, the topic, the message that it answers or changes."""

from __future__ import annotations

from typing import Any

from quarterdeck.testing.telegram.objects import GENERAL_TOPIC, Message
from quarterdeck.testing.telegram.params import Params
from quarterdeck.testing.telegram.refusal import bad
from quarterdeck.testing.telegram.world import EDIT_SECONDS, Room, World


def room_of(world: World, params: Params) -> Room:
    """The chat of a call."""
    given = params.text("chat_id")
    if not given:
        raise bad("chat_id is empty")
    try:
        return world.room(int(given))
    except ValueError:
        return world.room(given)


def thread_of(room: Room, params: Params) -> int | None:
    """The topic of a call; None outside of topics."""
    thread = params.number("message_thread_id")
    if thread is None or thread == 0:
        return None
    # Telegram refuses the General topic by its number, though updates show it.
    if thread == GENERAL_TOPIC or thread not in room.topics:
        raise bad("message thread not found")
    return thread


def reply_of(room: Room, params: Params) -> Message | None:
    """The message that a call answers."""
    given = params.get("reply_parameters", dict[str, Any]) or {}
    number = given.get("message_id", params.number("reply_to_message_id"))
    if number is None:
        return None
    found = room.messages.get(int(number))
    if found is None and not given.get("allow_sending_without_reply"):
        raise bad("message to be replied not found")
    return found


def own_message(world: World, room: Room, params: Params) -> Message:
    """The message of the bot that a call changes."""
    message = room.messages.get(params.need_number("message_id"))
    if message is None:
        raise bad("message to edit not found")
    if message.sender != world.bot or message.forum_topic_created is not None:
        raise bad("message can't be edited")
    if message.date + EDIT_SECONDS < world.now() and message.reply_markup is None:
        raise bad("message can't be edited")
    return message
