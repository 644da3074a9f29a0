"""`quarterdeck top` as a command: where it starts, and where it says why not."""

from __future__ import annotations

import re

import pytest

from support.command_line import Quarterdeck
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_without_a_terminal_or_a_hub_it_says_so_in_one_line(
    quarterdeck: Quarterdeck,
) -> None:
    piped = await quarterdeck("top")
    assert (piped.code, piped.out) == (2, "")
    assert piped.err == (
        "quarterdeck: top needs a terminal; use `quarterdeck ps` and `asks` without one\n"
    )
    dumb = quarterdeck.at_terminal("top", TERM="dumb")
    assert await dumb.end() == 2
    assert "TERM is dumb" in dumb.shown
    alone = quarterdeck.at_terminal("top")
    assert await alone.end() == 3
    assert alone.shown == (
        "quarterdeck: no hub runs on this machine; start one with: quarterdeck serve\n"
    )


async def test_it_takes_the_screen_and_gives_it_back(deck: ServedDeck) -> None:
    await deck.serve("--no-runner")
    here = deck.command.at_terminal("top", size=(24, 80), NO_COLOR="1")
    await here.expect("0 sessions")
    here.press("\x03")
    await here.expect("Ctrl-Q leaves; the agents keep running")
    here.press("\x11")
    assert await here.end() == 0
    codes = {
        code for found in re.findall(r"\x1b\[([0-9;]*)m", here.raw) for code in found.split(";")
    }
    assert codes <= {"", "0", "1", "2", "3", "4", "7", "39", "49"}  # none of them is a colour
    # The other screen was left, and the cursor is shown again.
    assert here.raw.rfind("\x1b[?1049l") > here.raw.rfind("\x1b[?1049h")
    assert here.raw.rfind("\x1b[?25h") > here.raw.rfind("\x1b[?25l")
    await deck("stop")
    await deck.ends()
