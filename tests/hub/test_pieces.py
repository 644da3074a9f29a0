"""Lines that are not journalled, for those who want to have every line of a CLI."""

from __future__ import annotations

import pytest
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.protocol import commands
from quarterdeck.protocol.events import Said
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import Piece
from support import lines
from support.hub_machines import TestMachines

pytestmark = pytest.mark.anyio
TOKEN = "qd_0123456789ab_abcdefghijklmnop"


async def test_pieces_are_told_with_the_number_of_the_journalled_line_before_them(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    told: list[Piece] = []
    end = hub.pieces(told.append)
    made = commands.CreateSession(
        spec=SessionSpec(directory="/work"), prompt=Raw(b'"hello"'), by="ada"
    )
    session = (await hub.submit(made)).session
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    before = len(told)
    await run.say(lines.delta("half", "d1"), lines.assistant("half a word", "a1"))
    await run.say(lines.delta(f"a {TOKEN} b", "d2"))
    first, second = told[before:]
    events = await hub.events(session)
    said = [each.event for each in events if isinstance(each.event, Said)]
    whole = next(each for each in said if b"half a word" in bytes(each.line))
    assert first.number == whole.number - 1
    assert first.after < first.number
    assert second.after == whole.number
    assert (first.session, first.run) == (session, whole.run)
    assert b'"half"' in first.line
    assert TOKEN.encode() not in second.line
    end()
    await run.say(lines.delta("nobody", "d3"))
    assert told[before:] == [first, second]
