"""The methods of the test server that are about the bot itself and its chats.

The same kind of functions as in `methods`, which has those for messages and the table of all.
"""

from __future__ import annotations

import re
from typing import Any

from quarterdeck.testing.telegram.params import Params
from quarterdeck.testing.telegram.refusal import bad
from quarterdeck.testing.telegram.targets import room_of
from quarterdeck.testing.telegram.world import TOPIC_COLOR, Room, World

_COMMAND = re.compile(r"[a-z0-9_]{1,32}")


def get_me(world: World, _params: Params) -> dict[str, Any]:
    """`getMe`."""
    bot = world.bot
    return {
        "id": bot.id,
        "is_bot": True,
        "first_name": bot.first_name,
        "username": bot.username,
        "can_join_groups": True,
        "can_read_all_group_messages": not world.private_mode,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": False,
    }


def set_my_commands(world: World, params: Params) -> bool:
    """`setMyCommands`."""
    commands = params.get("commands", list[dict[str, Any]])
    if commands is None:
        raise bad("parameter commands is required")
    if len(commands) > 100:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    for row in commands:
        if not _COMMAND.fullmatch(str(row.get("command", "")).removeprefix("/")):
            raise bad("BOT_COMMAND_INVALID")
        if not 1 <= len(str(row.get("description", ""))) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    world.commands[_scope(params)] = commands
    return True


def get_my_commands(world: World, params: Params) -> list[dict[str, Any]]:
    """`getMyCommands`."""
    return world.commands.get(_scope(params), [])


def delete_my_commands(world: World, params: Params) -> bool:
    """`deleteMyCommands`."""
    world.commands.pop(_scope(params), None)
    return True


def _scope(params: Params) -> str:
    scope = params.get("scope", dict[str, Any]) or {"type": "default"}
    return ":".join(str(scope[name]) for name in ("type", "chat_id", "user_id") if name in scope)


def get_chat(world: World, params: Params) -> dict[str, Any]:
    """`getChat`."""
    chat = room_of(world, params).chat
    found: dict[str, Any] = {
        "id": chat.id,
        "type": chat.type,
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": {
            "unlimited_gifts": False,
            "limited_gifts": False,
            "unique_gifts": False,
            "premium_subscription": False,
            "gifts_from_channels": False,
        },
    }
    for name in ("title", "first_name", "username"):
        if getattr(chat, name) is not None:
            found[name] = getattr(chat, name)
    if chat.is_forum:
        found["is_forum"] = True
    return found


def get_chat_member(world: World, params: Params) -> dict[str, Any]:
    """`getChatMember`."""
    room = room_of(world, params)
    number = params.need_number("user_id")
    user = world.bot if number == world.bot.id else world.users.get(number)
    if user is None:
        raise bad("invalid user_id specified")
    status = room.members.get(number, "left")
    found: dict[str, Any] = {"status": status, "user": user}
    if status == "administrator":
        rights = (
            "can_be_edited is_anonymous can_manage_chat can_delete_messages can_manage_video_chats"
            " can_restrict_members can_promote_members can_change_info can_invite_users"
            " can_post_stories can_edit_stories can_delete_stories can_manage_topics"
            " can_pin_messages can_send_welcome_messages"
        )
        found |= dict.fromkeys(rights.split(), False)
        found |= {"can_manage_chat": True, "can_delete_messages": True, "can_manage_topics": True}
    if status == "creator":
        found["is_anonymous"] = False
    return found


def create_forum_topic(world: World, params: Params) -> dict[str, Any]:
    """`createForumTopic`."""
    room = _forum(world, params)
    name = _topic_name(params)
    number = world.add_topic(room, name, world.bot)
    return {"message_thread_id": number, "name": name, "icon_color": TOPIC_COLOR}


def edit_forum_topic(world: World, params: Params) -> bool:
    """`editForumTopic`."""
    room = _forum(world, params)
    number = params.need_number("message_thread_id")
    if number not in room.topics:
        raise bad("message thread not found")
    name = _topic_name(params)
    if room.topics[number] == name:
        raise bad("TOPIC_NOT_MODIFIED")
    room.topics[number] = name
    return True


def close_forum_topic(world: World, params: Params) -> bool:
    """`closeForumTopic`; the bot is an administrator, so it can still write there."""
    room = _forum(world, params)
    if params.need_number("message_thread_id") not in room.topics:
        raise bad("message thread not found")
    return True


def delete_forum_topic(world: World, params: Params) -> bool:
    """`deleteForumTopic`, with all its messages."""
    room = _forum(world, params)
    number = params.need_number("message_thread_id")
    if room.topics.pop(number, None) is None:
        raise bad("message thread not found")
    room.messages = {
        one: message
        for one, message in room.messages.items()
        if message.message_thread_id != number
    }
    return True


def _forum(world: World, params: Params) -> Room:
    room = room_of(world, params)
    if not room.chat.is_forum:
        raise bad("the chat is not a forum")
    if room.members.get(world.bot.id) not in {"administrator", "creator"}:
        raise bad("not enough rights to create a topic")
    return room


def _topic_name(params: Params) -> str:
    name = params.text("name")
    if not 1 <= len(name) <= 128:
        raise bad("TOPIC_TITLE_EMPTY" if not name else "topic name is too long")
    return name
