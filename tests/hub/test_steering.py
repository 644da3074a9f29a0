"""Prompts that are sent into a running turn: once, journalled first, told as they were taken."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, NotFound, UsageError
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.journal.views import PROMPTS_KEPT
from quarterdeck.protocol.commands import CancelPrompt, CreateSession, SendPrompt
from quarterdeck.protocol.events import PromptQueued, PromptSent, PromptTaken, Sent, TurnEnded
from quarterdeck.protocol.session_view import PromptStage
from quarterdeck.protocol.sessions import SessionSpec
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio
FIRST = "00000000-0000-4000-8000-000000000001"
SECOND = "00000000-0000-4000-8000-000000000002"
Deck = tuple[Hub, TestMachines]


async def in_a_turn(deck: Deck) -> TestRun:
    """A session whose first turn runs."""
    hub, machines = deck
    command = CreateSession(
        spec=SessionSpec(directory="/project"), prompt=Raw(b'"go"'), prompt_id=FIRST, by="ada"
    )
    await hub.submit(command)
    run = machines.runs[-1]
    await run.greet()
    assert await run.take_prompt() == FIRST
    return run


def steering(run: TestRun, prompt: str = SECOND, content: bytes = b'"left"') -> SendPrompt:
    return SendPrompt(
        session=run.session, prompt=prompt, content=Raw(content), steer=True, by="bob"
    )


async def events(hub: Hub, session: str, *kinds: type) -> list[object]:
    stored = await hub.events(session, limit=1000)
    return [one.event for one in stored if isinstance(one.event, kinds)]


async def test_it_is_written_at_once_in_one_append_and_taken_by_the_running_turn(
    deck: Deck,
) -> None:
    hub, _ = deck
    run = await in_a_turn(deck)
    head = (await hub.session(run.session)).head
    await hub.submit(steering(run))
    (written,) = run.read()
    assert (written["uuid"], written["message"]["content"]) == (SECOND, "left")
    stored = await hub.events(run.session, after=head, limit=100)
    assert [type(one.event) for one in stored] == [PromptQueued, PromptSent, Sent]
    assert stored[0].at == stored[-1].at, "one append"
    (_, sent) = await events(hub, run.session, PromptSent)
    assert sent == PromptSent(prompt=SECOND, run=run.run, steered=True)
    assert (await hub.session(run.session)).prompts[SECOND] is PromptStage.SENT
    await run.say(lines.echo(SECOND), lines.result("end"))
    assert (await events(hub, run.session, PromptTaken))[-1] == PromptTaken(prompt=SECOND)
    (ended,) = await events(hub, run.session, TurnEnded)
    assert isinstance(ended, TurnEnded)
    assert ended.prompts == (FIRST, SECOND)
    assert run.read() == []


async def test_one_that_the_turn_does_not_take_has_a_turn_of_its_own(deck: Deck) -> None:
    hub, _ = deck
    run = await in_a_turn(deck)
    await hub.submit(steering(run))
    run.read()
    await run.say(lines.result("end-1"))
    assert (await hub.session(run.session)).prompts[SECOND] is PromptStage.SENT
    await run.say(lines.init(uuid="i2"), lines.echo(SECOND), lines.result("end-2"))
    ended = await events(hub, run.session, TurnEnded)
    assert [one.prompts for one in ended if isinstance(one, TurnEnded)] == [(FIRST,), (SECOND,)]


async def test_it_overtakes_the_queue_which_waits_for_the_end_of_the_turn(deck: Deck) -> None:
    hub, _ = deck
    run = await in_a_turn(deck)
    queued = SendPrompt(session=run.session, prompt="queued", content=Raw(b'"later"'), by="ada")
    await hub.submit(queued)
    assert run.read() == []
    await hub.submit(steering(run))
    assert [line["uuid"] for line in run.read()] == [SECOND]
    await run.say(lines.echo(SECOND), lines.result("end"))
    (line,) = run.read()
    assert line["message"]["content"] == "later"


async def test_the_same_id_twice_is_written_once(deck: Deck) -> None:
    hub, _ = deck
    run = await in_a_turn(deck)
    first = await hub.submit(steering(run))
    again = await hub.submit(steering(run))
    assert (first.repeated, again.repeated) == (False, True)
    assert len(run.read()) == 1


async def test_an_id_that_the_view_has_forgotten_is_still_known(deck: Deck) -> None:
    hub, _ = deck
    run = await in_a_turn(deck)
    for number in range(PROMPTS_KEPT + 1):
        await hub.submit(steering(run, prompt=f"p{number}"))
        (line,) = run.read()
        await run.say(lines.echo(line["uuid"]))
    view = await hub.session(run.session)
    assert FIRST not in view.prompts
    again = SendPrompt(session=run.session, prompt=FIRST, content=Raw(b'"go"'), by="ada")
    assert (await hub.submit(again)).repeated
    assert run.read() == []
    with pytest.raises(Conflict, match="not in the queue any more"):
        await hub.submit(CancelPrompt(session=run.session, prompt=FIRST, by="ada"))
    with pytest.raises(NotFound):
        await hub.submit(CancelPrompt(session=run.session, prompt="never", by="ada"))


async def test_without_a_turn_it_is_a_prompt_like_any_other(deck: Deck) -> None:
    hub, _ = deck
    run = await in_a_turn(deck)
    await run.say(lines.result("end"))
    await hub.submit(steering(run))
    (line,) = run.read()
    assert line["uuid"] == SECOND
    (_, sent) = await events(hub, run.session, PromptSent)
    assert sent == PromptSent(prompt=SECOND, run=run.run)


@pytest.mark.parametrize(
    "content", [b'"/compact"', b'"  /cost"', b'[{"type":"text","text":"/model opus"}]']
)
async def test_a_slash_command_is_refused_and_nothing_is_kept_of_it(
    deck: Deck, content: bytes
) -> None:
    hub, _ = deck
    run = await in_a_turn(deck)
    with pytest.raises(UsageError, match="between turns; send it without steer"):
        await hub.submit(steering(run, content=content))
    assert run.read() == []
    assert SECOND not in (await hub.session(run.session)).prompts


async def test_a_path_is_no_command(deck: Deck) -> None:
    hub, _ = deck
    run = await in_a_turn(deck)
    await hub.submit(steering(run, content=b'"/etc/hosts is wrong"'))
    assert len(run.read()) == 1


async def test_a_hub_that_is_restarted_writes_the_same_line_under_the_same_number() -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal)
    async with hub.run():
        run = await in_a_turn((hub, machines))
        await hub.submit(steering(run))
        written = dict(run.written)
        session, said = run.session, run.said
    hub, machines = hub_with(journal)
    async with hub.run():
        (again,) = machines.runs
        assert again.written == written
        assert [json.loads(line).get("uuid") for line in again.written.values()][-1] == SECOND
        again.said = said
        await again.say(lines.echo(SECOND), lines.result("end"))
        (ended,) = await events(hub, session, TurnEnded)
        assert isinstance(ended, TurnEnded)
        assert ended.prompts == (FIRST, SECOND)


async def test_one_that_its_process_did_not_live_to_take_is_given_to_the_next(deck: Deck) -> None:
    hub, machines = deck
    run = await in_a_turn(deck)
    await hub.submit(steering(run))
    await run.end(signal=9)
    again = SendPrompt(session=run.session, prompt="third", content=Raw(b'"on"'), by="ada")
    await hub.submit(again)
    run = machines.runs[-1]
    await run.greet()
    (line,) = run.read()
    assert (line["message"]["content"], line["uuid"] == SECOND) == ("left", False)
    await run.say(lines.init(uuid="i3"), lines.echo(line["uuid"]))
    assert (await events(hub, run.session, PromptTaken))[-1] == PromptTaken(prompt=SECOND)
