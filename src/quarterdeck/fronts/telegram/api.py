"""The methods of the Bot API that the front uses, with their results as structs.

`calls` makes the requests. A method here only names parameters and results; nothing is retried, and
nothing waits for its turn: that is the outbox's work.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib import import_module
from typing import Any

import anyio.to_thread
import msgspec
from msgspec import Raw

from quarterdeck import __version__
from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.fronts.telegram.calls import (
    API,
    CALL_SECONDS,
    LARGEST_DOWNLOAD,
    UPLOAD_SECONDS,
    BotApiError,
    BotCalls,
    Upload,
)
from quarterdeck.fronts.telegram.types import (
    GENERAL_TOPIC,
    UPDATE_TYPES,
    Buttons,
    ChatMember,
    Command,
    Entity,
    File,
    ForumTopic,
    Keyboard,
    Me,
    Message,
    Update,
    WebhookInfo,
)
from quarterdeck.runtime.client_tls import system_context

__all__ = [
    "API",
    "LARGEST_DOWNLOAD",
    "LARGEST_PHOTO",
    "LARGEST_UPLOAD",
    "BotApi",
    "BotApiError",
    "RichText",
    "Upload",
    "open_bot",
    "read_update",
]

log = logging.getLogger(__name__)

POLL_SECONDS = 50
"""How long Telegram keeps a call for updates open when there are none."""
LARGEST_UPLOAD = 50 * 1024 * 1024
LARGEST_PHOTO = 10 * 1024 * 1024


class RichText(Value):
    """The content of a rich message, as Markdown or as HTML; Telegram parses it."""

    markdown: str = ""
    html: str = ""


class BotApi(BotCalls):
    """The methods of one bot."""

    # --- the bot itself --------------------------------------------------------------------------

    async def get_me(self) -> Me:
        """Who the bot is; fails with 401 for a wrong token."""
        return await self.call_typed(Me, "getMe")

    async def set_my_commands(
        self, commands: Iterable[Command], *, scope: Mapping[str, Any] | None = None
    ) -> None:
        """Set the command menu."""
        await self.call("setMyCommands", {"commands": list(commands), "scope": scope})

    async def get_my_commands(self) -> tuple[Command, ...]:
        """The command menu."""
        return await self.call_typed(tuple[Command, ...], "getMyCommands")

    # --- updates ---------------------------------------------------------------------------------

    async def get_updates(
        self,
        offset: int | None = None,
        *,
        timeout: int = POLL_SECONDS,
        limit: int = 100,
        allowed: Iterable[str] = UPDATE_TYPES,
    ) -> list[Update]:
        """The updates from `offset` on; those before it are never given again.

        An update that cannot be understood comes with its number and nothing else.
        """
        params = {
            "offset": offset,
            "timeout": timeout,
            "limit": limit,
            "allowed_updates": list(allowed),
        }
        rows = await self.call_typed(
            list[Raw], "getUpdates", params, timeout=timeout + self.timeout
        )
        return [read_update(row) for row in rows]

    async def set_webhook(
        self,
        url: str,
        secret: str,
        *,
        allowed: Iterable[str] = UPDATE_TYPES,
        max_connections: int = 1,
        certificate: Upload | None = None,
    ) -> None:
        """Have updates posted to `url`, with `secret` in a header of each."""
        params = {
            "url": url,
            "secret_token": secret,
            "allowed_updates": list(allowed),
            "max_connections": max_connections,
        }
        await self.call(
            "setWebhook", params, files={"certificate": certificate} if certificate else None
        )

    async def delete_webhook(self) -> None:
        """End the webhook, so that the bot can poll. Pending updates are kept."""
        await self.call("deleteWebhook", {"drop_pending_updates": False})

    async def get_webhook_info(self) -> WebhookInfo:
        """The state of the webhook."""
        return await self.call_typed(WebhookInfo, "getWebhookInfo")

    # --- messages --------------------------------------------------------------------------------

    async def send_message(
        self,
        chat: int,
        text: str,
        *,
        thread: int | None = None,
        entities: Iterable[Entity] = (),
        buttons: Buttons = (),
        reply_to: int | None = None,
        silent: bool = False,
        force_reply: bool = False,
    ) -> Message:
        """Send a text, without previews of its links."""
        params = _where(chat, thread, reply_to, silent) | {
            "text": text,
            "entities": tuple(entities) or None,
            "link_preview_options": {"is_disabled": True},
            "reply_markup": {"force_reply": True} if force_reply else _keyboard(buttons),
        }
        return await self.call_typed(Message, "sendMessage", params)

    async def send_rich_message(
        self,
        chat: int,
        rich: RichText,
        *,
        thread: int | None = None,
        buttons: Buttons = (),
        reply_to: int | None = None,
        silent: bool = False,
    ) -> Message:
        """Send a rich message (Bot API 10.1)."""
        params = _where(chat, thread, reply_to, silent) | {
            "rich_message": rich,
            "reply_markup": _keyboard(buttons),
        }
        return await self.call_typed(Message, "sendRichMessage", params)

    async def send_document(
        self,
        chat: int,
        file: Upload,
        *,
        photo: bool = False,
        thread: int | None = None,
        caption: str = "",
        entities: Iterable[Entity] = (),
        buttons: Buttons = (),
        reply_to: int | None = None,
        silent: bool = False,
    ) -> Message:
        """Send a file; with `photo`, one that is shown as a picture."""
        params = _where(chat, thread, reply_to, silent) | {
            "caption": caption or None,
            "caption_entities": tuple(entities) or None,
            "reply_markup": _keyboard(buttons),
        }
        method, field = ("sendPhoto", "photo") if photo else ("sendDocument", "document")
        return await self.call_typed(
            Message, method, params, files={field: file}, timeout=UPLOAD_SECONDS
        )

    async def send_photo(self, chat: int, file: Upload, **options: Any) -> Message:
        """Send a picture; the options are those of `send_document`."""
        return await self.send_document(chat, file, photo=True, **options)

    async def edit_message_text(
        self,
        chat: int,
        message_id: int,
        text: str,
        *,
        entities: Iterable[Entity] = (),
        buttons: Buttons = (),
        rich: RichText | None = None,
    ) -> None:
        """Replace text and buttons. Fails with 400 (`unchanged`) if nothing would change."""
        params = {
            "chat_id": chat,
            "message_id": message_id,
            "text": None if rich else text,
            "entities": None if rich else (tuple(entities) or None),
            "rich_message": rich,
            "link_preview_options": None if rich else {"is_disabled": True},
            "reply_markup": _keyboard(buttons),
        }
        await self.call("editMessageText", params)

    async def edit_message_caption(
        self,
        chat: int,
        message_id: int,
        caption: str,
        *,
        entities: Iterable[Entity] = (),
        buttons: Buttons = (),
    ) -> None:
        """Replace the caption and the buttons of a file."""
        params = {
            "chat_id": chat,
            "message_id": message_id,
            "caption": caption,
            "caption_entities": tuple(entities) or None,
            "reply_markup": _keyboard(buttons),
        }
        await self.call("editMessageCaption", params)

    async def edit_message_reply_markup(
        self, chat: int, message_id: int, buttons: Buttons = ()
    ) -> None:
        """Replace the buttons only; none: they go."""
        params = {"chat_id": chat, "message_id": message_id, "reply_markup": _keyboard(buttons)}
        await self.call("editMessageReplyMarkup", params)

    async def delete_message(self, chat: int, message_id: int) -> None:
        """Delete a message; one of the bot's own is possible for 48 hours."""
        await self.call("deleteMessage", {"chat_id": chat, "message_id": message_id})

    async def send_message_draft(
        self,
        chat: int,
        draft_id: int,
        text: str,
        *,
        thread: int | None = None,
        entities: Iterable[Entity] = (),
        can_stop: bool = False,
    ) -> None:
        """Show a text that is being written, in a private chat, for 30 seconds.

        With `can_stop` the person sees a button, which causes a `stopped_message_generation`.
        """
        params = _where(chat, thread) | {
            "draft_id": draft_id,
            "text": text,
            "entities": tuple(entities) or None,
            "can_stop": can_stop or None,
        }
        await self.call("sendMessageDraft", params)

    async def send_rich_message_draft(
        self,
        chat: int,
        draft_id: int,
        rich: RichText,
        *,
        thread: int | None = None,
        can_stop: bool = False,
    ) -> None:
        """The same for a rich message."""
        params = _where(chat, thread) | {
            "draft_id": draft_id,
            "rich_message": rich,
            "can_stop": can_stop or None,
        }
        await self.call("sendRichMessageDraft", params)

    async def send_chat_action(
        self, chat: int, action: str = "typing", *, thread: int | None = None
    ) -> None:
        """Show that the bot is doing something, for five seconds."""
        await self.call("sendChatAction", _where(chat, thread) | {"action": action})

    async def set_message_reaction(self, chat: int, message_id: int, emoji: str = "") -> None:
        """React to a message; an empty emoji removes the reaction."""
        reaction = [{"type": "emoji", "emoji": emoji}] if emoji else []
        params = {"chat_id": chat, "message_id": message_id, "reaction": reaction}
        await self.call("setMessageReaction", params)

    async def answer_callback_query(
        self, query: str, text: str = "", *, alert: bool = False
    ) -> None:
        """End the spinner of a pressed button, with a short text (at most 200 characters)."""
        params = {
            "callback_query_id": query,
            "text": text or None,
            "show_alert": alert or None,
        }
        await self.call("answerCallbackQuery", params)

    # --- files -----------------------------------------------------------------------------------

    async def get_file(self, file_id: str) -> File:
        """Prepare a file for download."""
        return await self.call_typed(File, "getFile", {"file_id": file_id})

    async def download(self, file: File, *, largest: int = LARGEST_DOWNLOAD) -> bytes:
        """The contents of a file, at most `largest` bytes."""
        if not file.file_path:
            raise BotApiError(400, "the file has no path: it cannot be downloaded")
        return await self.fetch_file(file.file_path, largest=largest)

    # --- chats -----------------------------------------------------------------------------------

    async def create_forum_topic(self, chat: int, name: str) -> ForumTopic:
        """Create a topic in a forum; the bot needs the right to."""
        return await self.call_typed(
            ForumTopic, "createForumTopic", {"chat_id": chat, "name": name}
        )

    async def edit_forum_topic(self, chat: int, thread: int, name: str) -> None:
        """Rename a topic."""
        params = {"chat_id": chat, "message_thread_id": thread, "name": name}
        await self.call("editForumTopic", params)

    async def close_forum_topic(self, chat: int, thread: int) -> None:
        """Close a topic: only administrators can write in it."""
        await self.call("closeForumTopic", {"chat_id": chat, "message_thread_id": thread})

    async def get_chat_member(self, chat: int, user: int) -> ChatMember:
        """The status of a user in a chat."""
        params = {"chat_id": chat, "user_id": user}
        return await self.call_typed(ChatMember, "getChatMember", params)


def read_update(row: bytes | Raw) -> Update:
    """An update from JSON. One that is not as expected has its number, so that it can be passed."""
    try:
        return msgspec.json.decode(row, type=Update)
    except DECODE_ERRORS:
        try:
            number = msgspec.json.decode(row, type=_Numbered).update_id
        except DECODE_ERRORS as error:
            raise BotApiError(0, f"an update has no number: {error}") from None
        log.warning("update %d is not as expected, and ignored", number)
        return Update(update_id=number)


class _Numbered(Value):
    update_id: int


@asynccontextmanager
async def open_bot(
    token: str, *, base: str = API, timeout: float = CALL_SECONDS
) -> AsyncIterator[BotApi]:
    """A bot with a connection of its own. Proxies come from the environment."""
    # To load the library takes 0.2 s, the certificates 0.1 s: not in the hub's event loop.
    httpx2 = await anyio.to_thread.run_sync(import_module, "httpx2")
    encrypted = base.startswith("https:")
    context = await anyio.to_thread.run_sync(system_context) if encrypted else False
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)  # at «info» it logs every URL
    async with httpx2.AsyncClient(
        headers={"user-agent": f"quarterdeck/{__version__}"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        timeout=None,  # each call is bounded as a whole
        verify=context,
    ) as client:
        yield BotApi(token, client, base=base, timeout=timeout)


def _where(
    chat: int, thread: int | None, reply_to: int | None = None, silent: bool = False
) -> dict[str, Any]:
    return {
        "chat_id": chat,
        "message_thread_id": None if thread == GENERAL_TOPIC else thread,
        # The message that it answers may be deleted meanwhile.
        "reply_parameters": None
        if reply_to is None
        else {"message_id": reply_to, "allow_sending_without_reply": True},
        "disable_notification": silent or None,
    }


def _keyboard(buttons: Buttons) -> Keyboard | None:
    return Keyboard(inline_keyboard=buttons) if buttons else None
