"""A token that an agent, a person or a tool says is in nothing that readers get."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from msgspec import Raw

from quarterdeck.fronts.http.masks import masked_json, masked_spec
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.event_codec import encode
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, CreateSession
from quarterdeck.protocol.events import Said, SessionCreated
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.views import Deltas
from support import lines
from support.hub_machines import TestMachines

pytestmark = pytest.mark.anyio
SECRET = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF"
TOKEN = f"qd_0123456789ab_{SECRET}"
MASK = "qd_0123456789ab_redacted"


async def told(hub: Hub, session: str) -> str:
    """All that readers get of a session."""
    stored = await hub.events(session)
    asks = await hub.asks()
    return repr([each.json for each in stored]) + repr([each.event for each in stored]) + repr(asks)


async def test_what_the_cli_says_is_kept_without_tokens_and_with_its_number(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    heard: list[Deltas] = []
    stop = hub.live(heard.append)
    prompt = Raw(json.dumps(f"use {TOKEN}").encode())
    command = CreateSession(spec=SessionSpec(directory="/work"), prompt=prompt, by="ada")
    session = (await hub.submit(command)).session
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.delta(f"a {TOKEN} b", "d"))
    await run.say(lines.assistant(f"I found\n{TOKEN}\nthere", "a"))
    await run.say(lines.asks_permission("q1", command=f"curl -H 'Authorization: Bearer {TOKEN}'"))
    stop()

    text = await told(hub, session)
    assert SECRET not in text
    assert MASK in text
    assert [each.text for each in heard] == [f"a {MASK} b"]
    said = [each.event for each in await hub.events(session) if isinstance(each.event, Said)]
    assert [each.number for each in said] == sorted(each.number for each in said)
    assert all(json.loads(bytes(each.line)) for each in said)

    # What runs is what the agent asked for, and what was allowed.
    run.read()
    (card,) = await hub.asks()
    await hub.submit(AnswerAsk(ask=card.opened.ask, answer=AllowAnswer(), by="ada"))
    (answer,) = run.read()
    assert TOKEN in json.dumps(answer)
    assert SECRET not in await told(hub, session)


async def test_text_that_came_in_pieces_is_masked_for_who_joins_later(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    command = CreateSession(spec=SessionSpec(directory="/work"), prompt=Raw(b'"hello"'), by="ada")
    session = (await hub.submit(command)).session
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    for piece in (TOKEN[:20], TOKEN[20:]):
        await run.say(lines.delta(piece, "d"))
    assert SECRET not in "".join(each.text for each in hub.so_far(session))


async def test_a_spec_is_kept_as_it_is_since_sessions_are_started_by_it(
    journal: MemoryJournal,
) -> None:
    spec = SessionSpec(directory="/work", env={"HUB_TOKEN": TOKEN}, append_system_prompt=TOKEN)
    await journal.append("s", [SessionCreated(spec=spec, by="ada")])
    view = await journal.summary("s")
    assert view is not None
    assert view.spec == spec
    (stored,) = await journal.read("s")
    assert SECRET not in repr(masked_spec(spec))
    assert SECRET.encode() not in masked_json(stored)


async def test_both_ways_into_the_journal_mask(tmp_path: Path) -> None:
    said = [
        Said(run="r", number=number, line=Raw(json.dumps({"text": TOKEN}).encode()))
        for number in (1, 2)
    ]
    for events in (said, said[:1]):
        assert SECRET.encode() not in b"".join(encode(events).lines)
    async with await SqliteJournal.open(tmp_path / "journal.db") as journal:
        await journal.append("s", said)
        stored = await journal.read("s")
    assert SECRET not in repr(stored)
    kept = b"".join([await file.read_bytes() async for file in anyio.Path(tmp_path).iterdir()])
    assert SECRET.encode() not in kept


def test_secrets_of_subagents_and_of_other_flags_are_masked() -> None:
    helper = {"description": "d", "prompt": "p", "mcpServers": [{"m": {"env": {"KEY": SECRET}}}]}
    spec = SessionSpec(
        directory="/work",
        subagents={"a": Raw(json.dumps(helper).encode())},
        extra_args={"key": SECRET, "switch": None, "file": "/etc/x"},
    )
    masked = masked_spec(spec)
    assert SECRET not in repr(masked)
    assert masked.extra_args == {"key": "\u2026", "switch": None, "file": "/etc/x"}
    assert b'"prompt":"p"' in bytes(masked.subagents["a"])
