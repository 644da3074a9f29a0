"""What a CLI said and nobody heard: it is recalled from its transcript, once, before its end."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.hub.ports import RunEnd
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import CreateSession, ResumeSession
from quarterdeck.protocol.events import AnyEvent, PromptTaken, Recalled, RunEnded
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio
P1, P2 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
KILLED = RunEnd(number=99, reason="The runner was killed.", unheard=True, stderr=("oh no",))


async def create(hub: Hub) -> str:
    command = CreateSession(
        spec=SessionSpec(directory="/work"), prompt=Raw(b'"hello"'), prompt_id=P1, by="ada"
    )
    return (await hub.submit(command)).session


async def events(hub: Hub, session: str) -> list[AnyEvent]:
    return [stored.event for stored in await hub.events(session)]


async def transcript(run: TestRun, *said: bytes, last: bool = True) -> None:
    told = [line.rstrip() for line in said]
    await run.owner.run_transcript(run.run, lines.SESSION, told, last=last)


async def test_what_nobody_heard_stands_before_the_end_and_is_heard_once(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.say(lines.assistant("heard", "a1"))
    await run.owner.run_ended(run.run, KILLED)
    assert run.transcripts_wanted == [(lines.SESSION, (P1, "a1"), (P1,))]
    assert (await hub.session(session)).run == run.run, "its end waits for what it had to say"
    assert not run.forgotten
    unheard = lines.assistant("unheard", "a2")
    await transcript(run, lines.assistant("heard", "a1"), unheard, last=False)
    await transcript(run, unheard)
    told = [e for e in await events(hub, session) if isinstance(e, Recalled | RunEnded)]
    recalled, ended = told
    assert isinstance(recalled, Recalled)
    assert (recalled.run, recalled.uuid) == (run.run, "a2")
    assert bytes(recalled.line) == unheard.rstrip()
    assert isinstance(ended, RunEnded)
    assert ended.stderr == ("oh no",)
    assert (await hub.session(session)).state is SessionState.ENDED
    assert (run.acknowledged, run.forgotten) == (99, True)


async def test_a_prompt_that_is_in_the_transcript_is_not_run_again(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    (prompt,) = run.read()
    assert prompt["uuid"] == P1
    await run.owner.run_ended(run.run, KILLED)
    assert run.transcripts_wanted == [(None, (), (P1,))]
    await transcript(run, lines.echo(P1))
    view = await hub.session(session)
    assert view.unsent == ()
    assert view.cli_session == lines.SESSION, "the transcript tells which conversation it is"
    assert PromptTaken(prompt=P1) in await events(hub, session)
    await hub.submit(ResumeSession(session=session))
    assert machines.started[-1][1].cli_session == lines.SESSION
    await machines.runs[-1].greet()
    assert machines.runs[-1].read() == []


async def test_a_prompt_that_is_not_in_the_transcript_runs_in_the_next_run(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.owner.run_ended(run.run, KILLED)
    await transcript(run)
    await hub.submit(ResumeSession(session=session))
    await machines.runs[-1].greet()
    (again,) = machines.runs[-1].read()
    assert again["message"]["content"] == "hello"


async def test_a_hub_that_dies_while_it_recalls_goes_on_where_it_was(
    journal: MemoryJournal,
) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        session = await create(hub)
        (run,) = machines.runs
        await run.greet()
        await run.take_prompt()
        await run.owner.run_ended(run.run, KILLED)
        await transcript(run, lines.assistant("one", "a1"), last=False)
    hub, machines = hub_with(journal)
    async with hub.run():
        (run,) = machines.runs
        await transcript(run, lines.assistant("stray", "x"))  # asked for by nobody here
        await run.owner.run_ended(run.run, KILLED)
        assert run.transcripts_wanted == [(lines.SESSION, (P1, "a1"), (P1,))]
        await transcript(run, lines.assistant("one", "a1"), lines.assistant("two", "a2"))
        found = [e.uuid for e in await events(hub, session) if isinstance(e, Recalled)]
        assert found == ["a1", "a2"]
        assert (await hub.session(session)).state is SessionState.ENDED


async def test_a_run_that_was_given_nothing_and_said_nothing_has_nothing_to_recall(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    command = CreateSession(spec=SessionSpec(directory="/work"), by="ada")
    session = (await hub.submit(command)).session
    (run,) = machines.runs
    await run.greet()
    await run.owner.run_ended(run.run, KILLED)
    assert run.transcripts_wanted == []
    assert (await hub.session(session)).state is SessionState.ENDED


async def test_what_a_transcript_should_not_have_in_it_is_left_out(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session = await create(hub)
    (run,) = machines.runs
    await run.greet()
    await run.take_prompt()
    await run.owner.run_ended(run.run, KILLED)
    odd = [b"no JSON", b'{"type":"weather","uuid":"w"}', b'{"type":"user","uuid":7}', b"\xff"]
    await transcript(run, *odd, lines.asks_permission("q1"), lines.result("r1"))
    found = await events(hub, session)
    assert not [event for event in found if isinstance(event, Recalled)]
    assert isinstance(found[-1], RunEnded)
    assert json.loads(json.dumps(await hub.asks())) == []
