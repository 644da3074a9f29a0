"""What a resumed CLI wrote about a turn that was cut off: it is asked for once, and journalled."""

from __future__ import annotations

import pytest
from msgspec import Raw

from quarterdeck.hub import resume_gap
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import CreateSession, ResumeSession, SendPrompt
from quarterdeck.protocol.events import Recalled
from quarterdeck.protocol.runner_frames import TranscriptQuery
from quarterdeck.protocol.sessions import SessionSpec
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio
P1, P2, P3 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))


async def begin(hub: Hub, machines: TestMachines) -> tuple[str, TestRun]:
    """A session in its first turn, in which the CLI has said `a1`."""
    command = CreateSession(
        spec=SessionSpec(directory="/work"), prompt=Raw(b'"hello"'), prompt_id=P1, by="ada"
    )
    session = (await hub.submit(command)).session
    run = machines.runs[-1]
    await run.greet()
    await run.take_prompt()
    await run.say(lines.assistant("calling", "a1"))
    return session, run


async def turn(hub: Hub, session: str, run: TestRun, prompt: str) -> None:
    """A whole turn."""
    await hub.submit(SendPrompt(session=session, prompt=prompt, content=Raw(b'"on"'), by="ada"))
    await run.take_prompt()
    await run.say(lines.assistant("well", f"a-{prompt}"), lines.result(f"r-{prompt}"))


async def resume(hub: Hub, machines: TestMachines, session: str) -> TestRun:
    await hub.submit(ResumeSession(session=session))
    run = machines.runs[-1]
    await run.greet()
    return run


async def recalled(hub: Hub, session: str) -> list[tuple[str, str]]:
    events = [stored.event for stored in await hub.events(session)]
    return [(event.run, event.uuid) for event in events if isinstance(event, Recalled)]


def told(*uuids: str) -> list[bytes]:
    return [lines.assistant("closed", uuid).rstrip() for uuid in uuids]


async def test_after_the_first_turn_its_machine_is_asked_and_the_answer_is_journalled_once(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, cut = await begin(hub, machines)
    await cut.end("It was killed.")
    run = await resume(hub, machines, session)
    assert run.recalls == []
    await turn(hub, session, run, P2)
    wanted = TranscriptQuery(
        cli_session=lines.SESSION, known=("a1", P1), prompts=(P2,), earlier=True
    )
    assert run.recalls == [wanted]
    odd = [b"no JSON", b"\xff", b'{"type":"weather","uuid":"w"}']
    await run.owner.run_earlier(run.run, [*odd, *told("c1", "a1", f"a-{P2}", "c2")])
    await run.owner.run_earlier(run.run, told("c2"))
    assert await recalled(hub, session) == [(cut.run, "c1"), (cut.run, "c2")]
    # The run is as it was: what was recalled is no turn of it.
    view = await hub.session(session)
    assert (view.turns, view.unsent, view.state.value) == (1, (), "idle")
    await turn(hub, session, run, P3)
    await run.owner.tick()
    assert len(run.recalls) == 1


async def test_a_machine_that_finds_nothing_yet_is_asked_again_and_not_for_ever(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, cut = await begin(hub, machines)
    await cut.end("It was killed.")
    run = await resume(hub, machines, session)
    await run.owner.tick()
    assert run.recalls == [], "not before a turn"
    await turn(hub, session, run, P2)
    for _ in range(2 * resume_gap.TRIES):
        await run.owner.run_earlier(run.run, [])
        await run.owner.tick()
    assert len(run.recalls) == resume_gap.TRIES


async def test_a_run_after_one_that_was_not_cut_off_is_not_asked_about(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, first = await begin(hub, machines)
    await first.say(lines.result("r1"))
    assert first.recalls == [], "it resumes nothing"
    await first.end("It was stopped.")
    run = await resume(hub, machines, session)
    await turn(hub, session, run, P2)
    assert run.recalls == []
    await run.owner.run_earlier(run.run, told("stray"))
    assert await recalled(hub, session) == []


async def test_a_session_that_is_killed_twice_asks_for_what_was_written_after_both(
    deck: tuple[Hub, TestMachines],
) -> None:
    hub, machines = deck
    session, cut = await begin(hub, machines)
    await cut.end("It was killed.")
    second = await resume(hub, machines, session)
    await hub.submit(SendPrompt(session=session, prompt=P2, content=Raw(b'"on"'), by="ada"))
    await second.take_prompt()
    await second.end("It was killed.")
    third = await resume(hub, machines, session)
    await turn(hub, session, third, P3)
    (wanted,) = third.recalls
    assert set(wanted.known) == {P1, "a1", P2}
    assert wanted.prompts == (P3,)


async def test_a_hub_that_starts_does_not_journal_it_again(journal: MemoryJournal) -> None:
    hub, machines = hub_with(journal)
    async with hub.run():
        session, cut = await begin(hub, machines)
        await cut.end("It was killed.")
        run = await resume(hub, machines, session)
        await turn(hub, session, run, P2)
        await run.owner.run_earlier(run.run, told("c1"))
    hub, machines = hub_with(journal)
    async with hub.run():
        (run,) = machines.runs
        await run.owner.run_started(run.run, 42, "2.1.325", "/work")
        run.read()
        await turn(hub, session, run, P3)
        (wanted,) = run.recalls
        assert "c1" in wanted.known
        await run.owner.run_earlier(run.run, told("c1"))
        assert await recalled(hub, session) == [(cut.run, "c1")]
