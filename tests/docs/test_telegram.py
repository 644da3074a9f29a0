"""The page of the Telegram bot has every command and every preference."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

from quarterdeck.config.settings import TelegramSettings
from quarterdeck.fronts.telegram.chats import NAMES
from quarterdeck.fronts.telegram.commands.table import COMMANDS
from quarterdeck.service.config_file import Configuration
from support.pages import page

PAGE = page("docs/reference/telegram.md")
ROOT = Path(__file__).parents[2]


def test_every_command_is_on_the_page_with_its_help() -> None:
    rows = dict(re.findall(r"^\| `/(\w+)[^`]*` \| (.*) \|$", PAGE.text, re.MULTILINE))
    assert rows == {each.name: each.help for each in COMMANDS.values() if each.menu}


def test_every_preference_is_on_the_page() -> None:
    section = PAGE.text.partition("| preference |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(NAMES)


def test_the_configuration_of_the_how_to_makes_a_bot(tmp_path: Path) -> None:
    text = page("docs/how-to/work-from-telegram.md").text
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "quarterdeck.toml"
    file.write_text(dedent(block))
    settings = Configuration(file, environ={"HOME": str(tmp_path)}).loaded.settings
    assert settings.telegram.token_file == str(tmp_path / ".config" / "telegram.token")
    assert settings.telegram.users
    assert settings.telegram.project in settings.projects


def test_every_setting_of_the_bot_is_on_the_page_of_the_configuration() -> None:
    text = page("docs/reference/configuration.md").text
    found = re.findall(r"^\| `telegram\.(\w+)` \|", text, re.MULTILINE)
    assert sorted(found) == sorted(TelegramSettings.__struct_fields__)


def test_the_pictures_of_the_how_to_are_those_that_the_tool_takes() -> None:
    text = page("docs/how-to/work-from-telegram.md").text
    shown = re.findall(r"\(\.\./pictures/([\w-]+)\.png\)", text)
    tool = (ROOT / "tools" / "picture_of_telegram.py").read_text()
    assert sorted(shown) == sorted(re.findall(r'take\("([\w-]+)"', tool))
    assert all((ROOT / "docs" / "pictures" / f"{name}.png").is_file() for name in shown)
