"""What the front reads of the hub's stream: its own sessions, and those of others if wanted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarterdeck.fronts.telegram.reporter import Reporter
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import EventShape
from quarterdeck.testing import fake
from support.processes import Processes
from support.telegram_house import Guest, TelegramHouse, telegram_house

pytestmark = [pytest.mark.anyio, pytest.mark.process]

COMMAND: fake.Line = {"command": "make test"}
ASKS = (
    fake.Initialize(),
    fake.Expect("user", polite=True),
    fake.say(fake.assistant(fake.tool_use("Bash", COMMAND)), fake.can_use_tool("Bash", COMMAND)),
    fake.Expect("control_response", polite=True),
    fake.say(fake.assistant("Done."), fake.result("Done.")),
    fake.Serve(),
)


@pytest.fixture
async def house(tmp_path: Path, processes: Processes) -> AsyncIterator[TelegramHouse]:
    """A house of this test alone."""
    async with telegram_house(tmp_path, processes) as made:
        yield made
        await made.clear()


async def work_elsewhere(guest: Guest) -> str:
    """A session that is made in the deck, and has worked."""
    async with guest.hub() as hub:
        spec = SessionSpec(project=guest.project)
        session = (await hub.create(spec, prompt="hello")).id
    await guest.until(lambda found: {one.session: one.turns for one in found}.get(session) == 1)
    return session


async def test_sessions_of_others_are_read_only_if_a_place_wants_all(
    house: TelegramHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: set[str] = set()
    events = Reporter.events

    def watched(self: Reporter, shapes: tuple[EventShape, ...]) -> None:
        read.update(shape.session for shape in shapes)
        events(self, shapes)

    monkeypatch.setattr(Reporter, "events", watched)
    ada = await house.person()
    ada.type("one")
    await ada.hears("echo: one")
    (own,) = await ada.sessions()
    other = await work_elsewhere(ada)
    ada.type("two")
    await ada.hears("echo: two")
    assert read == {own.session}
    await ada.tells(f"/resume {other}", "Messages here go to")
    await ada.tells("three", "echo: three")
    assert read == {own.session, other}
    await ada.tells("/config follow all", "follow: all")
    third = await work_elsewhere(ada)
    await ada.tells("four", "echo: four")
    assert read == {own.session, other, third}
    # What is under way when the others are left is told of to its end, once.
    ada.play(*ASKS)
    card = await ada.tells("/new go", "🔐")
    await ada.tells("/config follow own", "follow: own")
    ada.play(fake.Initialize(), fake.Serve())
    fourth = await work_elsewhere(ada)
    ada.press(card, "✅ Allow")
    await ada.sees(card.message_id, "✅ Allowed by")
    await ada.hears("Done.")
    assert fourth not in read
    await ada.tells(f"/resume {fourth}", "Messages here go to")
    await ada.tells("five", "echo: five")
    texts = [message.shown for message in house.sim.from_bot(ada.user)]
    for once in ("✅ Allowed by", "Done.", "echo: five"):
        assert sum(once in text for text in texts) == 1, texts
