"""The checks of `quarterdeck doctor` for the Telegram bot: token, poller, permissions, menu.

Telegram is asked by calls that change nothing and that disturb no poller. What the hub's own bot
last heard is read from its state.
"""

from __future__ import annotations

import sqlite3
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import anyio
import msgspec

from quarterdeck.cli.local.findings import Finding, Level
from quarterdeck.config.settings import Settings
from quarterdeck.domain.errors import QuarterdeckError
from quarterdeck.fronts.telegram.options import HEALTH, StoredHealth
from quarterdeck.service.telegram import STATE, bot_token

TOPIC = "telegram"
CALL_SECONDS = 10.0
SILENT_SECONDS = 180.0
"""A poller hears from Telegram every 50 seconds."""
FAILED_SECONDS = 86400.0
"""A failure is told for so long."""
MOST_GROUPS = 10


def look_at_telegram(home: Path, settings: Settings, *, running: bool) -> Iterable[Finding]:
    """The findings; none if there is no bot."""
    given = settings.telegram
    if given.token_file is None:
        return
    yield from _token_file(Path(given.token_file))
    try:
        token = bot_token(given.token_file)
    except QuarterdeckError as error:
        yield Finding(TOPIC, Level.PROBLEM, str(error), "Write the token of @BotFather into it.")
        return
    users = "user" if len(given.users) == 1 else "users"
    yield Finding(TOPIC, Level.OK, f"{len(given.users)} {users} may talk to the bot")
    groups = _groups(home / STATE)
    yield from anyio.run(_ask, token, settings, groups)
    if running:
        yield from _poller(home / STATE)


def _token_file(path: Path) -> Iterable[Finding]:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return  # reading it says why
    if mode & 0o077:
        text = f"other users can read the bot's token in {path}"
        yield Finding(TOPIC, Level.WARNING, text, f"chmod 600 {path}")


async def _ask(token: str, settings: Settings, groups: list[int]) -> list[Finding]:
    from quarterdeck.fronts.telegram.api import API, BotApiError, open_bot

    found: list[Finding] = []
    base = settings.telegram.api or API
    try:
        async with open_bot(token, base=base, timeout=CALL_SECONDS) as api:
            me = await api.get_me()
            found.append(Finding(TOPIC, Level.OK, f"the token is that of @{me.username}"))
            if not me.can_read_all_group_messages:
                text = "in groups the bot sees only commands, mentions and replies"
                advice = "To change that: /setprivacy at @BotFather, or make it an administrator."
                found.append(Finding(TOPIC, Level.NOTE, text, advice))
            found += _webhook(await api.get_webhook_info(), settings)
            found.append(_menu(await api.get_my_commands()))
            for chat in groups[:MOST_GROUPS]:
                try:
                    found += _member(chat, await api.get_chat_member(chat, me.id))
                except BotApiError as error:
                    if error.passing:
                        raise
                    text = f"the bot is no member of the group {chat} any more"
                    found.append(Finding(TOPIC, Level.WARNING, text))
    except BotApiError as error:
        if error.code == 401:
            advice = "Ask @BotFather for the token, and write it into the file."
            text = "Telegram does not accept the token"
            found.append(Finding(TOPIC, Level.PROBLEM, text, advice))
        else:
            found.append(Finding(TOPIC, Level.WARNING, str(error)))
    except QuarterdeckError as error:
        found.append(Finding(TOPIC, Level.PROBLEM, str(error)))
    return found


def _webhook(info: object, settings: Settings) -> Iterable[Finding]:
    from quarterdeck.fronts.telegram.types import WebhookInfo

    assert isinstance(info, WebhookInfo)
    wanted = settings.telegram.webhook_url or ""
    if info.url != wanted:
        text = "Telegram posts updates to another address" if info.url else "no webhook is set"
        yield Finding(TOPIC, Level.WARNING, text, "The bot sets it when it starts: start the hub.")
    elif info.last_error_message and time.time() - info.last_error_date < 3600:
        yield Finding(TOPIC, Level.WARNING, f"the webhook failed: {info.last_error_message[:200]}")
    if info.pending_update_count:
        text = f"{info.pending_update_count} updates wait to be fetched"
        yield Finding(TOPIC, Level.NOTE, text)


def _menu(commands: object) -> Finding:
    from quarterdeck.fronts.telegram.commands.table import menu

    if commands == menu():
        return Finding(TOPIC, Level.OK, f"the menu has all {len(menu())} commands")
    advice = "The bot sets it when it starts: start the hub again."
    return Finding(TOPIC, Level.WARNING, "the command menu is not that of this version", advice)


def _member(chat: int, member: object) -> Iterable[Finding]:
    from quarterdeck.fronts.telegram.types import ChatMember

    assert isinstance(member, ChatMember)
    if not member.present:
        yield Finding(TOPIC, Level.WARNING, f"the bot is no member of the group {chat} any more")
    elif not member.administrator or not member.can_manage_topics:
        text = f"the bot may not manage topics in the group {chat}: /topic does not work there"
        advice = "Make it an administrator who may, if the group has topics."
        yield Finding(TOPIC, Level.NOTE, text, advice)


def _read(state: Path, sql: str) -> list[tuple[bytes]]:
    if not state.exists():
        return []
    try:
        connection = sqlite3.connect(f"file:{state}?mode=ro", uri=True, timeout=2.0)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return []


def _groups(state: Path) -> list[int]:
    rows = _read(state, "SELECT DISTINCT chat FROM places WHERE chat < 0")
    return [int(row[0]) for row in rows]


def _poller(state: Path) -> Iterable[Finding]:
    rows = _read(state, f"SELECT value FROM meta WHERE name = '{HEALTH}'")  # noqa: S608 - a constant
    if not rows:
        text = "the bot of the running hub has had no answer from Telegram yet"
        yield Finding(TOPIC, Level.WARNING, text, "Look at the hub's log.")
        return
    health = msgspec.json.decode(rows[0][0], type=StoredHealth)
    if time.time() - health.failed < FAILED_SECONDS:
        ago = int(time.time() - health.failed) // 60
        text = f"a part of the bot failed {ago} min ago, and was started again: {health.part}"
        yield Finding(TOPIC, Level.WARNING, text, "Look at the hub's log.")
    if health.failure:
        advice = ""
        if "[409]" in health.failure:
            advice = "Another program polls with this token: stop it, or use another bot."
        yield Finding(TOPIC, Level.PROBLEM, f"no updates: {health.failure}", advice)
    elif time.time() - health.polled > SILENT_SECONDS:
        ago = int(time.time() - health.polled)
        yield Finding(TOPIC, Level.WARNING, f"the last answer from Telegram came {ago} s ago")
    else:
        yield Finding(TOPIC, Level.OK, "the bot of the running hub gets updates")
