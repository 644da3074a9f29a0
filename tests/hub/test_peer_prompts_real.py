"""Two real CLIs of the newest version: one writes to the other with the CLI's own tool."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.ids import new_id
from quarterdeck.hub.peer_prompts import PEER_PROMPT
from quarterdeck.protocol.commands import DenyAnswer, SendPrompt
from quarterdeck.protocol.events import PeerPrompted, RunEnded, Said, TurnEnded
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.testing import RealCli, ScriptedModel, Text, ToolUse, play, reply
from support.clis import VERSIONS
from support.hub_house import House, PolicedHouse, real_spec
from support.inboxes import write_to_inbox

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


@pytest.fixture
def spec(tmp_path: Path, model: ScriptedModel, clis: dict[str, RealCli]) -> SessionSpec:
    # A sandbox would hide their sockets from each other.
    return real_spec(tmp_path, clis[VERSIONS[-1]], model, sandbox="off")


async def begun(home: House, spec: SessionSpec) -> tuple[str, str]:
    """A session after its first turn, and the address of its inbox."""
    session = await home.new(spec)
    await home.until(session, lambda view: view.turns == 1)
    for stored in await home.hub.events(session):
        if isinstance(stored.event, Said):
            said = json.loads(bytes(stored.event.line))
            if said.get("subtype") == "init":
                return session, f"uds:{said['messaging_socket_path']}"
    raise AssertionError("no init")


async def send(home: House, session: str, *calls: ToolUse) -> None:
    """A turn of a session with these calls."""
    script = play(*(reply(call) for call in calls), reply(Text("done")))
    content = Raw(json.dumps(script).encode())
    await home.hub.submit(SendPrompt(session=session, prompt=new_id(), content=content))


def message(to: str, text: str) -> ToolUse:
    return ToolUse("SendMessage", {"to": to, "message": text, "summary": "greeting"})


async def test_only_a_session_that_may_be_is_prompted_by_another(
    home: House, spec: SessionSpec, model: ScriptedModel
) -> None:
    sender, _ = await begun(home, spec)
    closed, to_closed = await begun(home, spec)
    opened, to_opened = await begun(home, replace(spec, cross_session=True))
    await send(home, sender, message(to_closed, "to the closed"), message(to_opened, "to the open"))
    # The second was sent later, and has arrived: the first one had its time.
    view = await home.until(opened, lambda view: view.turns == 2)
    assert (view.peer_prompts, view.account.alarms) == (1, {})
    found = [stored.event for stored in await home.hub.events(opened)]
    (prompted,) = [event for event in found if isinstance(event, PeerPrompted)]
    assert prompted.text == "to the open"
    assert prompted.pid == (await home.hub.session(sender)).pid
    assert not prompted.refused
    turns = [event for event in found if isinstance(event, TurnEnded)]
    assert [len(turn.prompts) for turn in turns] == [1, 0]
    await send(home, closed)
    view = await home.until(closed, lambda view: view.turns == 2)
    assert view.peer_prompts == 0
    # Nor by any other process of the user, which writes to its inbox by itself.
    for address, words in ((to_closed, "raw to the closed"), (to_opened, "raw to the open")):
        await write_to_inbox(address.removeprefix("uds:"), words)
    await home.until(opened, lambda view: view.turns == 3)
    await send(home, closed)
    view = await home.until(closed, lambda view: view.turns == 3)
    assert view.peer_prompts == 0
    lines = [
        bytes(e.event.line) for e in await home.hub.events(closed) if isinstance(e.event, Said)
    ]
    assert not any(b"to the closed" in line for line in lines)
    said = [text for asked in model.turns for text in asked.last_message.texts]
    assert any("raw to the open" in text for text in said)
    assert not any("raw to the closed" in text for text in said)


async def test_a_session_that_is_prompted_although_it_refuses_raises_an_alarm(
    home: House, spec: SessionSpec
) -> None:
    """As if the CLI did not obey: what the session allows is taken back while it runs."""
    sender, _ = await begun(home, spec)
    session, address = await begun(home, replace(spec, cross_session=True))
    live = home.hub._sessions.get(session)  # no command changes this
    assert live is not None
    assert live.run is not None
    live.run.state.spec = replace(live.run.spec, cross_session=False)
    await send(home, sender, message(address, "surprise"))
    view = await home.until(session, lambda view: view.turns == 2)
    assert list(view.account.alarms) == [PEER_PROMPT]


@pytest.mark.parametrize("as_file", [False, True])
async def test_settings_cannot_open_the_inbox_of_a_session_that_refuses(
    as_file: bool, home: House, spec: SessionSpec
) -> None:
    settings = '{"crossSessionInbound": "accept"}'
    if as_file:
        await anyio.Path(spec.directory, "own.json").write_text(settings)
        settings = "own.json"
    session = await home.new(replace(spec, settings=settings))
    await home.until(session, lambda view: view.run is None)
    (ended,) = [e.event for e in await home.hub.events(session) if isinstance(e.event, RunEnded)]
    assert "crossSessionInbound needs cross_session" in ended.reason


async def test_presets_ask_before_an_agent_writes_to_another_session(
    policed: PolicedHouse, spec: SessionSpec
) -> None:
    home = policed.home
    sender, _ = await begun(home, replace(spec, policy="trusted-repo"))
    opened, address = await begun(home, replace(spec, cross_session=True))
    await send(home, sender, ToolUse("ListAgents", {}), message(address, "go on"))
    for tool in ("ListAgents", "SendMessage"):
        card = await home.ask(sender)
        assert card.opened.tool == tool
        assert card.opened.rule == "other sessions"
        await home.answer(card, DenyAnswer())
    await home.until(sender, lambda view: view.turns == 2)
    assert (await home.hub.session(opened)).turns == 1
