"""The calls of the outbox: a stored message becomes one of the Bot API, and doubt is settled.

`Calls` knows messages of the store and the methods of the API. It decides neither when a call is
made nor what follows from a refusal: that is the outbox.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import anyio.to_thread

from quarterdeck.fronts.telegram.api import BotApi, BotApiError, RichText, Upload
from quarterdeck.fronts.telegram.display import safe_slices
from quarterdeck.fronts.telegram.outbox_store import Content, Form, OutboxStore, State, Stored
from quarterdeck.fronts.telegram.types import Message

log = logging.getLogger(__name__)

PROBES = 5
"""How many numbers after the last known message are tried for one that may have been sent."""

FILES = frozenset({Form.DOCUMENT, Form.PHOTO, Form.UNMASKED})
"""The messages whose text is a caption."""


class Calls:
    """Sends, edits and deletes messages of the store."""

    def __init__(self, api: BotApi, store: OutboxStore) -> None:
        self._api = api
        self._store = store
        self._probes: dict[str, Iterator[int]] = {}
        self._plainer: dict[str, int] = {}

    async def send(self, message: Stored) -> int | None:
        """Send a message; its number. None: whether it was sent before is not settled."""
        if message.state is State.SENDING and self._can_settle(message):
            settled, number = await self._settle(message)
            if not settled or number is not None:
                return number
        self._store.begin_sending(message.key, self._store.last_id(message.chat))
        try:
            sent = await self._send(message)
        except BotApiError as error:
            if not error.sent or (error.code != 0 and error.code < 500):
                self._store.not_sent(message.key)
            raise
        return sent.message_id

    async def _send(self, message: Stored) -> Message:
        content = self._plain_enough(message.key, message.wanted)
        if message.form in FILES:
            file = self._store.file(message.key)
            if file is None:
                raise BotApiError(400, "the file is gone")
            if message.form is Form.UNMASKED:
                text = await anyio.to_thread.run_sync(safe_slices, file.data.decode())
                file = Upload(name=file.name, data=text.encode())
            return await self._api.send_document(
                message.chat,
                file,
                photo=message.form is Form.PHOTO,
                thread=message.thread,
                caption=content.text,
                entities=content.entities,
                buttons=content.buttons,
                reply_to=message.reply_to,
                silent=message.silent,
            )
        if content.html:
            return await self._api.send_rich_message(
                message.chat,
                RichText(html=content.html),
                thread=message.thread,
                buttons=content.buttons,
                reply_to=message.reply_to,
                silent=message.silent,
            )
        return await self._api.send_message(
            message.chat,
            content.text,
            thread=message.thread,
            entities=content.entities,
            buttons=content.buttons,
            reply_to=message.reply_to,
            silent=message.silent,
        )

    async def edit(self, message: Stored, number: int, content: Content) -> None:
        """Give a message this content. That it has it already is an error (`unchanged`)."""
        content = self._plain_enough(message.key, content)
        if message.form in FILES:
            await self._api.edit_message_caption(
                message.chat,
                number,
                content.text,
                entities=content.entities,
                buttons=content.buttons,
            )
        else:
            await self._api.edit_message_text(
                message.chat,
                number,
                content.text,
                entities=content.entities,
                buttons=content.buttons,
                rich=RichText(html=content.html) if content.html else None,
            )

    async def delete(self, message: Stored) -> bool:
        """Delete a message; False: whether it was sent at all is not settled."""
        number = message.message_id
        if number is None and message.state is State.SENDING and self._can_settle(message):
            settled, number = await self._settle(message)
            if not settled or number is not None:
                if number is not None:
                    self._store.record_sent(message, number, message.wanted)
                return False
        if number is None:
            return True
        try:
            await self._api.delete_message(message.chat, number)
        except BotApiError as error:
            if error.passing:
                raise
            log.info("message %s is not deleted: %s", message.key, error)
        return True

    def forget(self, key: str) -> None:
        """Nothing more is tried for this message."""
        self._probes.pop(key, None)
        self._plainer.pop(key, None)

    # --- doubt -----------------------------------------------------------------------------------

    def _can_settle(self, message: Stored) -> bool:
        # The caption of a file says nothing about which file it is.
        return message.form not in FILES and message.after_id > 0

    async def _settle(self, message: Stored) -> tuple[bool, int | None]:
        """Find out whether a message was sent by a call whose end is not known.

        Telegram gives no way to ask. But an edit with the same content is refused as «not modified»
        if the message is there. The numbers after the last known message of the chat are tried, one
        in each turn. Returns whether it is settled, and the number if the message was found.
        """
        numbers = self._probes.get(message.key)
        if numbers is None:
            first = message.after_id + 1
            numbers = self._probes[message.key] = iter(range(first, first + PROBES))
        known = self._store.find
        number = next((one for one in numbers if known(message.chat, one) is None), None)
        if number is None:
            self._probes.pop(message.key, None)
            return True, None
        try:
            await self.edit(message, number, message.wanted)
        except BotApiError as error:
            if error.unchanged:
                return True, number
            if error.passing:
                self._probes.pop(message.key, None)  # from the first number again
                raise
            if is_supergroup(message.chat) and "not found" in error.description:
                # Numbers of a supergroup have no gaps but for deletions: nothing newer is there.
                self._probes[message.key] = iter(())
            return False, None
        return True, number  # it was there, with older content

    # --- plainer forms ---------------------------------------------------------------------------

    def make_plainer(self, message: Stored) -> bool:
        """Whether there is a plainer form of it left to try: no rich message, then no styles."""
        level = self._plainer.get(message.key, 0) + 1
        if level == 1 and not message.wanted.html:
            level = 2
        if level > 2 or (level == 2 and not message.wanted.entities):
            return False
        self._plainer[message.key] = level
        return True

    def _plain_enough(self, key: str, content: Content) -> Content:
        level = self._plainer.get(key, 0)
        if not level:
            return content
        return Content(
            text=content.text,
            entities=content.entities if level < 2 else (),
            buttons=content.buttons,
        )


def is_supergroup(chat: int) -> bool:
    """Whether a chat's number is one of a supergroup or a channel."""
    return chat < -1_000_000_000_000
