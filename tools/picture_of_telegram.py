"""Take the pictures of the Telegram bot for its how-to: `python tools/picture_of_telegram.py`.

It starts a hub on loopback with its bot, a scripted agent, and the Bot API server of
`quarterdeck.testing`; a simulated person pairs, prompts and answers. The pictures show the messages
that this server holds, with their styles and buttons, on a page of our own: Telegram's apps draw
them in their own way. No account, no real CLI and no network is used.

Everything that a message says is escaped. Signs such as ✅ are drawn here, because not every
machine has a font for them; one without a drawing is an error, so that no picture has an empty box.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path

import anyio
import anyio.to_thread
from playwright.async_api import Browser, async_playwright

from quarterdeck.config import Settings
from quarterdeck.config.settings import SandboxDefaults, TelegramSettings
from quarterdeck.fronts.http import Listen, Role
from quarterdeck.protocol.projects import Project
from quarterdeck.service.local_hub import RUNNER, end_runner
from quarterdeck.service.service import ServeOptions, run_service
from quarterdeck.testing import fake
from quarterdeck.testing.fake import fake_cli_command
from quarterdeck.testing.telegram import BotApiServer
from quarterdeck.testing.telegram.objects import Button, Draft, Entity, Message

PROJECT = Path(__file__).resolve().parents[1]
PICTURES = PROJECT / "docs" / "pictures"
FOLDER = Path("/tmp/quarterdeck-picture-telegram")
"""Its path is in messages, so it is always the same."""
WIDTH = 440
ADA = 123456789
SECONDS = 120.0
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")

READ = fake.tool_use("Read", {"file_path": "src/checkout.ts"}, "toolu_read")
TEST: fake.Line = {"command": "npm test -- checkout", "description": "Run the checkout tests"}
DONE = """\
The tax now follows the customer's country.

- `total` in `src/checkout.ts` asks `taxRate(country)`
- **42 tests** pass, 3 of them are new
"""
PLAN: fake.Line = {
    "plan": """\
# Split the parser

1. Move the tokens to `src/tokens.ts`.
2. Let `parse` take tokens only.
3. Run the tests after each step.
"""
}
QUESTIONS: fake.Line = {
    "questions": [
        {
            "question": "Which currencies shall the checkout round to whole units?",
            "header": "Rounding",
            "multiSelect": True,
            "options": [{"label": "JPY"}, {"label": "KRW"}, {"label": "HUF"}],
        }
    ]
}

SCRIPT: tuple[fake.Step, ...] = (
    fake.Initialize(),
    fake.Expect("user", timeout=SECONDS, polite=True),
    fake.say(fake.assistant("I look at how the checkout computes the price.")),
    fake.say(fake.assistant(READ)),
    fake.say(fake.tool_result("export function total(price: number) {", "toolu_read")),
    fake.say(fake.assistant(fake.tool_use("WebSearch", {"query": "VAT rates EU"}, "toolu_web"))),
    fake.Wait(6.0),
    fake.say(fake.tool_result("27 countries", "toolu_web")),
    fake.say(fake.assistant(fake.tool_use("Bash", TEST, "toolu_test"))),
    fake.say(fake.can_use_tool("Bash", TEST)),
    fake.Expect("control_response", timeout=SECONDS, polite=True),
    fake.say(fake.tool_result("42 passed", "toolu_test")),
    fake.say(fake.assistant(DONE), fake.result(DONE, total_cost_usd=0.0831)),
    fake.Expect("user", timeout=SECONDS, polite=True),
    fake.say(fake.assistant(fake.tool_use("ExitPlanMode", PLAN, "toolu_plan"))),
    fake.say(fake.can_use_tool("ExitPlanMode", PLAN, "ask-2")),
    fake.Expect("control_response", timeout=SECONDS, polite=True),
    fake.say(fake.assistant("The parser is split."), fake.result("The parser is split.")),
    fake.Expect("user", timeout=SECONDS, polite=True),
    fake.say(fake.assistant(fake.tool_use("AskUserQuestion", QUESTIONS, "toolu_ask"))),
    fake.say(fake.can_use_tool("AskUserQuestion", QUESTIONS, "ask-3")),
    fake.Expect("control_response", timeout=SECONDS, polite=True),
    fake.say(fake.assistant("Done."), fake.result("Done.")),
    fake.Serve(),
)


# --- the page -----------------------------------------------------------------------------------

STYLE = """\
* { box-sizing: border-box; }
body { margin: 0; padding: 14px 12px; background: #d6e3da; color: #16201a;
  font: 15px/1.4 "DejaVu Sans", "Liberation Sans", sans-serif; }
.row { display: flex; flex-direction: column; align-items: flex-start; margin: 0 0 10px; }
.row.mine { align-items: flex-end; }
.bubble { max-width: 92%; padding: 8px 12px; border-radius: 14px; background: #fff;
  box-shadow: 0 1px 1px #0002; white-space: pre-wrap; overflow-wrap: anywhere; }
.mine .bubble { background: #e4f7d2; }
.draft .bubble { border: 1.5px dashed #6b8f7b; box-shadow: none; }
.reply { display: block; margin: 0 0 5px; padding: 1px 8px; border-left: 3px solid #3f8f5f;
  background: #3f8f5f18; border-radius: 4px; font-size: 13px; color: #3d4f45;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 340px; }
.file { display: block; margin: 0 0 4px; padding: 6px 8px; border-radius: 8px;
  background: #eef2ef; }
code, pre { font: 13px/1.4 "DejaVu Sans Mono", monospace; background: #eef2ef; border-radius: 4px; }
code { padding: 1px 4px; }
pre { margin: 4px 0; padding: 6px 8px; white-space: pre-wrap; }
blockquote { margin: 4px 0; padding: 2px 8px; border-left: 3px solid #7a9f8a; }
a, .command { color: #1d6fa5; text-decoration: none; }
.keyboard { width: 92%; margin-top: 4px; display: grid; gap: 4px; }
.keyboard div { display: flex; gap: 4px; }
.keyboard span { flex: 1; padding: 7px 6px; border-radius: 10px; background: #5f8a70; color: #fff;
  text-align: center; font-size: 14px; }
.draft .note { font-size: 12px; color: #4c6355; margin: 3px 4px 0; }
svg { width: 1.15em; height: 1.15em; vertical-align: -0.2em; }
"""

_TAGS = {
    "bold": "b",
    "italic": "i",
    "underline": "u",
    "strikethrough": "s",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "expandable_blockquote": "blockquote",
    "text_link": "a",
    "url": "a",
    "bot_command": "span class=command",
}

_MARK = 'fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"'
_INK = 'fill="none" stroke="#38424a" stroke-width="1.8" stroke-linejoin="round"'
_SIGNS = {
    "✅": f'<rect x="1" y="1" width="18" height="18" rx="4" fill="#2f9e4f"/>'
    f'<path d="M5 10.5l3.5 3.5L15 6.5" {_MARK}/>',
    "❌": '<path d="M4 4l12 12M16 4L4 16" stroke="#d33a2c" stroke-width="3.4"'
    ' stroke-linecap="round"/>',
    "🔐": '<rect x="3" y="9" width="14" height="10" rx="2" fill="#e0a526"/>'
    f'<path d="M6 9V6a4 4 0 0 1 8 0v3" {_INK}/><circle cx="10" cy="14" r="1.6" fill="#6b4b08"/>',
    "🔒": '<rect x="3" y="9" width="14" height="10" rx="2" fill="#8d99a3"/>'
    f'<path d="M6 9V6a4 4 0 0 1 8 0v3" {_INK}/>',
    "🛑": '<path d="M6 1h8l5 5v8l-5 5H6l-5-5V6z" fill="#d33a2c"/>',
    "🤝": '<path d="M1 8l5-3 4 2 4-2 5 3v5l-5 3-4-2-4 2-5-3z" fill="#e9b84a"/>'
    f'<path d="M6 9l4 3 4-3" {_INK}/>',
    "💻": f'<rect x="3" y="3" width="14" height="10" rx="1.5" {_INK}/>'
    '<path d="M1 16h18" stroke="#38424a" stroke-width="2.4" stroke-linecap="round"/>',
    "📝": f'<rect x="3" y="2" width="12" height="16" rx="1.5" {_INK}/>'
    '<path d="M6 6h6M6 9.5h6M9 15l8-8" stroke="#e0a526" stroke-width="2"/>',
    "🔧": '<path d="M13 2a5 5 0 0 0-4 7L2 16l2.5 2.5 7-7a5 5 0 0 0 6.5-6l-3 3-3-1-1-3z"'
    ' fill="#6d7b85"/>',
    "🌐": f'<circle cx="10" cy="10" r="8" {_INK}/>'
    f'<path d="M2 10h16M10 2c5 5 5 11 0 16M10 2c-5 5-5 11 0 16" {_INK}/>',
    "🗒": f'<rect x="3" y="3" width="14" height="15" rx="1.5" {_INK}/>'
    f'<path d="M6 8h8M6 12h8M6 1v4M14 1v4" {_INK}/>',
    "🆕": '<rect x="0" y="3" width="20" height="14" rx="3" fill="#2d74c9"/><text x="10" y="13"'
    ' font-size="8" font-weight="bold" text-anchor="middle" fill="#fff">NEW</text>',
    "⏸": '<rect x="1" y="1" width="18" height="18" rx="4" fill="#2d74c9"/>'
    f'<path d="M7.5 6v8M12.5 6v8" {_MARK}/>',
    "💬": '<path d="M2 3h16v10H9l-4 4v-4H2z" fill="#7d93a3"/>',
    "❓": '<path d="M6 6a4 4 0 1 1 5 4l-1 3" fill="none" stroke="#d33a2c" stroke-width="3"/>'
    '<circle cx="10" cy="17" r="1.8" fill="#d33a2c"/>',
    "⏳": f'<path d="M5 2h10M5 18h10M6 2c0 5 8 11 8 16M14 2c0 5-8 11-8 16" {_INK}/>',
    "📌": '<path d="M7 2h6l-1 6 3 3H5l3-3z" fill="#d33a2c"/>'
    '<path d="M10 11v7" stroke="#38424a" stroke-width="2"/>',
    "📋": f'<rect x="3" y="3" width="14" height="15" rx="1.5" {_INK}/>'
    '<rect x="7" y="1" width="6" height="4" rx="1" fill="#38424a"/>',
    "👁": f'<path d="M1 10c4-7 14-7 18 0-4 7-14 7-18 0z" {_INK}/>'
    '<circle cx="10" cy="10" r="3" fill="#38424a"/>',
    "📎": f'<path d="M6 10l6-6a3 3 0 0 1 4 4l-8 8a2 2 0 0 1-3-3l7-7" {_INK}/>',
}
_WITHOUT_FONT = re.compile("[⌀-⏿☔☕✅❌❓-❕⬛⬜⭐\U0001f000-\U0001faff]")
"""Signs that ordinary fonts do not have. `⌀-⏿` has ⏳ and ⏸."""
_AFTER_BLOCK = re.compile(r"(</(?:pre|blockquote)>)\n")
_VARIANT = "\ufe0f"
"""It only says that the sign before it is to be shown in colour."""


def chat_page(messages: Iterable[Message], draft: Draft | None = None) -> str:
    """The page: messages from top to bottom, and a draft that is being written."""
    rows = [_row(message) for message in messages]
    if draft is not None:
        rows.append(_draft(draft))
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f"<style>{STYLE}</style><body>{''.join(rows)}</body></html>"
    )


def _row(message: Message) -> str:
    mine = message.sender is not None and not message.sender.is_bot
    inside = _reply(message.reply_to_message)
    if message.document is not None:
        name, size = message.document.file_name or "file", message.document.file_size
        inside += f'<span class="file">{drawn("📎")} {drawn(name)} · {size:,} bytes</span>'
    entities = message.entities if message.text is not None else message.caption_entities
    inside += styled(message.text or message.caption or message.shown, entities)
    rows = () if message.reply_markup is None else message.reply_markup.inline_keyboard
    keyboard = "".join(f"<div>{''.join(map(_button, row))}</div>" for row in rows)
    below = f'<div class="keyboard">{keyboard}</div>' if keyboard else ""
    kind = "row mine" if mine else "row"
    return f'<div class="{kind}"><div class="bubble">{inside}</div>{below}</div>'


def _draft(draft: Draft) -> str:
    stop = '<div class="keyboard"><div><span>Stop</span></div></div>' if draft.can_stop else ""
    return (
        f'<div class="row draft"><div class="bubble">{styled(draft.text, draft.entities)}</div>'
        f'{stop}<div class="note">a draft: it goes when the answer comes</div></div>'
    )


def _reply(message: Message | None) -> str:
    if message is None:
        return ""
    return f'<span class="reply">{drawn(message.shown.partition(chr(10))[0])}</span>'


def _button(button: Button) -> str:
    return f"<span>{drawn(button.text)}</span>"


def styled(text: str, entities: Iterable[Entity]) -> str:
    """A text with its styles as HTML. Offsets count UTF-16 code units."""
    units = text.encode("utf-16-le")
    known = sorted(
        (one for one in entities if one.type in _TAGS), key=lambda one: (one.offset, -one.length)
    )
    cuts = sorted({0, len(units) // 2, *_ends(known)})
    pieces: list[str] = []
    open_now: list[Entity] = []
    for begin, end in zip(cuts, [*cuts[1:], cuts[-1]], strict=True):
        while open_now and open_now[-1].offset + open_now[-1].length <= begin:
            pieces.append(f"</{_TAGS[open_now.pop().type].split()[0]}>")
        for entity in (one for one in known if one.offset == begin):
            pieces.append(f"<{_TAGS[entity.type]}>")
            open_now.append(entity)
        pieces.append(drawn(units[begin * 2 : end * 2].decode("utf-16-le")))
    # A block ends its line itself.
    return _AFTER_BLOCK.sub(r"\1", "".join(pieces))


def _ends(entities: Iterable[Entity]) -> Iterable[int]:
    for entity in entities:
        yield entity.offset
        yield entity.offset + entity.length


def drawn(text: str) -> str:
    """A text, escaped, with drawings for its signs."""
    return _WITHOUT_FONT.sub(_sign, escape(text.replace(_VARIANT, "")))


def _sign(found: re.Match[str]) -> str:
    sign = found.group()
    if sign not in _SIGNS:
        raise LookupError(f"there is no drawing of {sign} (U+{ord(sign):X})")
    return f'<svg viewBox="0 0 20 20" role="img">{_SIGNS[sign]}</svg>'


# --- the scenes ---------------------------------------------------------------------------------


class Studio:
    """A chat of Ada's, and pictures of it."""

    def __init__(self, server: BotApiServer, browser: Browser, folder: Path) -> None:
        self.server = server
        self.sim = server.sim
        self.chat = ADA
        self._browser = browser
        self._folder = folder

    def type(self, text: str) -> Message:
        """Type a message."""
        return self.sim.type(ADA, text, self.chat)

    async def hears(self, text: str, after: Message | None = None) -> Message:
        """The message of the bot with this text, after another one."""
        number = 0 if after is None else after.message_id
        return await self.server.wait_for_message(self.chat, text, after=number, timeout=SECONDS)

    async def sees(self, message: Message, text: str) -> None:
        """Wait until a message has this text, or a button with it."""

        def look() -> bool:
            now = next(
                one for one in self.sim.messages(self.chat) if one.message_id == message.message_id
            )
            return text in now.shown or any(text in button.text for button in now.buttons)

        await self.server.wait_for(look, SECONDS)

    async def draft(self, text: str) -> Draft:
        """The draft in the chat, once it has this text."""

        def look() -> Draft | None:
            draft = self.sim.draft(ADA)
            return draft if draft is not None and text in draft.text else None

        return await self.server.wait_for(look, SECONDS)

    async def take(self, name: str, begin: Message, draft: Draft | None = None) -> None:
        """Take a picture of the chat from a message on."""
        shown = [one for one in self.sim.messages(self.chat) if one.message_id >= begin.message_id]
        await _screenshot(self._browser, chat_page(shown, draft), self._folder / f"{name}.png")


async def _play(studio: Studio, code: str) -> None:
    paired = studio.type(f"/pair {code}")
    await studio.hears("🤝")
    prompt = studio.type("The tax is wrong for customers outside Germany. Fix it.")
    draft = await studio.draft("VAT rates")
    await studio.take("telegram-progress", paired, draft)

    ask = await studio.hears("npm test")
    await studio.take("telegram-permission", prompt)
    studio.sim.press(ADA, ask.message_id, "✅ Allow")
    await studio.sees(ask, "Allowed by")
    await studio.hears("42 tests", ask)
    await studio.take("telegram-answer", prompt)

    prompt = studio.type("Split the parser. Plan it first.")
    plan = await studio.hears("has a plan")
    await studio.take("telegram-plan", prompt)
    studio.sim.press(ADA, plan.message_id, "✅ Approve (ask me)")
    await studio.hears("The parser is split", plan)

    prompt = studio.type("Round the prices of all currencies.")
    question = await studio.hears("Which currencies")
    studio.sim.press(ADA, question.message_id, "☐ JPY")
    await studio.sees(question, "☑ JPY")
    await studio.take("telegram-question", prompt)
    studio.sim.press(ADA, question.message_id, "✅ Done")
    await studio.hears("Done.", question)

    studio.chat = studio.sim.add_group("Shop", [ADA]).id
    prompt = studio.type("The tax is wrong for customers outside Germany. Fix it.")
    await studio.hears("VAT rates")
    studio.type("Add a test for Norway, too.")
    await studio.hears("Queued")
    await studio.take("telegram-group", prompt)


async def _pictures(folder: Path) -> None:
    home = FOLDER / "data"
    home.mkdir(mode=0o700)
    try:
        async with BotApiServer() as server, _chromium() as browser:
            server.sim.add_user(ADA, "Ada")
            options = ServeOptions(listen=Listen(port=0), settings=_settings(server))
            async with run_service(home, options) as service:
                await server.wait_for(lambda: server.calls_of("setMyCommands"), SECONDS)
                code = service.access.make_pairing("ada", Role.OWNER)
                await _play(Studio(server, browser, folder), code)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(end_runner, home / RUNNER)


def _settings(server: BotApiServer) -> Settings:
    work, claude, token = FOLDER / "shop", FOLDER / "claude", FOLDER / "token"
    work.mkdir()
    token.write_text(server.token)
    command = fake_cli_command(SCRIPT, folder=FOLDER, lifetime=2 * SECONDS)
    # A fake CLI has the same id of its conversation in every run, unless it is told another.
    own = "--session-id $(cat /proc/sys/kernel/random/uuid)"
    claude.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@" {own}\n')
    claude.chmod(0o700)
    return Settings(
        sandbox=SandboxDefaults(mode="off"),
        telegram=TelegramSettings(
            token_file=str(token), users=(ADA,), api=server.url, project="shop"
        ),
        projects={"shop": Project(directory=str(work), claude=str(claude))},
    )


async def _screenshot(browser: Browser, html: str, file: Path) -> None:
    page = await browser.new_page(
        viewport={"width": WIDTH, "height": 200}, device_scale_factor=1.5, color_scheme="light"
    )
    await page.set_content(html)
    file.parent.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=file, full_page=True)
    await page.close()


@asynccontextmanager
async def _chromium() -> AsyncIterator[Browser]:
    """A headless browser with a profile of its own, which is removed at the end."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        sys.exit("There is no Chromium: run `make test` once, which installs it.")
    # A socket of the browser is in this folder, and its path may have 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="chat-", dir="/tmp") as folder:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=program,
                args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
                env={"HOME": folder, "TMPDIR": folder, "PATH": os.defpath},
            )
            try:
                yield browser
            finally:
                await browser.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description="Take the pictures of the Telegram bot.")
    parser.add_argument("folder", nargs="?", type=Path, default=PICTURES)
    folder = parser.parse_args(arguments).folder.resolve()
    FOLDER.mkdir(mode=0o700)  # fails if another run uses it
    try:
        anyio.run(_pictures, folder)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    for file in sorted(folder.glob("telegram-*.png")):
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
