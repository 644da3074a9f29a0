"""The page of the configuration has every setting, as it is; and its examples are right."""

from __future__ import annotations

import re

import pytest

from quarterdeck.config import Setting, all_settings, parse
from support.pages import Block, all_pages, page

PAGE = page("docs/reference/configuration.md")
ROWS = {
    name: (default.strip(), read.strip(), words.strip())
    for name, default, read, words in re.findall(
        r"^\| `([\w.]+)` \|([^|\n]*)\|([^|\n]*)\|(.*)\|$", PAGE.text, re.MULTILINE
    )
}
SETTINGS = {setting.name: setting for setting in all_settings()}


def shown(setting: Setting) -> str:
    """A setting's default, as the page has it."""
    match setting.default:
        case _ if setting.required:
            return "must be given"
        case None | () | {}:
            return ""
        case bool(default):
            return f"`{str(default).lower()}`"
        case float(default):
            return f"`{default:g}`"
        case default:
            return f"`{default}`"


def test_every_setting_is_on_the_page_and_nothing_else_is() -> None:
    assert sorted(ROWS) == sorted(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_row_has_the_default_and_tells_when_it_is_read(name: str) -> None:
    setting = SETTINGS[name]
    default, read, words = ROWS[name]
    assert default == shown(setting)
    assert read == ("start" if setting.at_start else "")
    assert words


def test_every_section_has_a_heading() -> None:
    sections = {setting.path[0] for setting in SETTINGS.values()}
    headings = re.findall(r"^### `\[+([\w]+)[\w.]*\]+`$", PAGE.text, re.MULTILINE)
    assert sorted(headings) == sorted(sections)


def examples() -> list[Block]:
    """The TOML of all pages that speaks of sections of ours."""
    named = (
        "[server]",
        "[log]",
        "[budget]",
        "[watchdog]",
        "[retention]",
        "[[webhooks]]",
        "[sandbox]",
        "[projects.",
    )
    return [
        block
        for each in all_pages()
        for block in each.blocks("toml")
        if block.code.startswith(named)
    ]


@pytest.mark.parametrize("block", examples(), ids=lambda block: block.code.split("]")[0])
def test_every_example_is_a_configuration(block: Block) -> None:
    assert parse(block.code).sources
