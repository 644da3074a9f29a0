"""Sessions: resumed, continued, forked, taken up at a message, and those that are not there."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from quarterdeck import Agent, Allow, Assistant, Query, User
from quarterdeck.domain.errors import LinkClosed
from quarterdeck.testing import Gate, ModelRequest, play, reply
from quarterdeck.wire.base import Message
from quarterdeck.wire.messages import FromCli
from quarterdeck.wire.versions import kills_children_on_term, release
from support.bounds import SECONDS
from support.scenes import Person, Probe, bash, running
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]


def knows(request: ModelRequest, *words: str) -> list[bool]:
    """Which of the words the model was told."""
    told = "\n".join(block.plain for message in request.messages for block in message.blocks)
    return [word in told for word in words]


def file_of(seat: Seat, session: str) -> Path:
    """Where a session of this folder is kept."""
    folder = re.sub(r"[^a-zA-Z0-9]", "-", str(seat.cwd))
    return seat.home / ".claude" / "projects" / folder / f"{session}.jsonl"


async def kept(seat: Seat, session: str, words: str) -> None:
    """Wait until these words are in a session's file: what is not cannot be resumed."""
    file = file_of(seat, session)
    with anyio.fail_after(SECONDS):
        await until(lambda: file.exists() and words in file.read_text())


@pytest.mark.transports_differ
async def test_a_session_goes_on_in_another_process(seat: Seat) -> None:
    chosen, forked = str(uuid4()), str(uuid4())
    first = await begin_and_be_killed(seat, chosen)
    if seat.repeats:
        # Of all this, only that depends on the transport.
        await start_again_under_the_same_id(seat, chosen)
        return
    answers = [message.uuid for message in first if isinstance(message, Assistant)]

    async with seat.agent(resume=chosen, decide=lambda _: Allow()) as agent:
        with anyio.fail_after(SECONDS):
            again = [message async for message in agent.query("remember GAMMA")]
        assert agent.session_id == chosen
        what_is_remembered(seat, again)
        await kept(seat, chosen, "echo: remember GAMMA")
        watched = await be_terminated_while_a_command_runs(seat, agent)
    # What a CLI leaves behind the library ends.
    assert running(watched) == []

    async with seat.agent(continue_=True, fork_session=True, session_id=forked) as agent:
        with anyio.fail_after(SECONDS):
            await agent.query("remember DELTA").finish()
        assert agent.session_id == forked
        assert knows(seat.model.turns[-1], "ALPHA", "GAMMA", "DELTA") == [True, True, True]
        seat.found("Continue the newest session")
        seat.found("Fork a session")
        await be_ended_by(signal.SIGINT, 0, seat, agent)

    async with seat.agent(resume=chosen, resume_session_at=answers[-1]) as agent:
        with anyio.fail_after(SECONDS):
            await agent.query("remember EPSILON").finish()
        assert agent.session_id == chosen
        remembered = knows(seat.model.turns[-1], "ALPHA", "BETA", "DELTA", "EPSILON")
        assert remembered == [True, False, False, True]
        seat.found("Resume at a message")
        await be_ended_by(signal.SIGHUP, 129, seat, agent)

    await resume_at_an_unknown_message_or_elsewhere(seat, chosen)
    await start_again_under_the_same_id(seat, chosen)


async def begin_and_be_killed(seat: Seat, chosen: str) -> list[FromCli]:
    """A session of two turns, killed in the third, while it waits for an answer."""
    person, probe = Person(), Probe(seat)
    async with seat.agent(session_id=chosen, decide=person) as agent:
        with anyio.fail_after(SECONDS):
            first = [message async for message in agent.query("remember ALPHA")]
            await agent.query("remember BETA").finish()
            assert agent.session_id == chosen
            seat.found("Choose a session's id")
            query = await agent.prompt(play(reply("by your leave", probe.call("one")), "done"))
            await person.wait_for(1)
            # It writes its file a moment later.
            await kept(seat, chosen, '"type":"tool_use"')
            os.kill(seat.pid, signal.SIGKILL)
            with pytest.raises(LinkClosed) as caught:
                await query.finish()
    assert caught.value.signal == signal.SIGKILL
    assert probe.runs == []
    return first


def what_is_remembered(seat: Seat, messages: Sequence[Message]) -> None:
    """A session that was resumed after a kill: what the model knows of it, and what we are told."""
    assert knows(seat.model.turns[-1], "ALPHA", "BETA", "GAMMA") == [True, True, True]
    seat.found("Resume a session")
    texts = [message.text for message in messages if isinstance(message, Assistant | User)]
    assert not any("ALPHA" in text or "BETA" in text for text in texts)
    seat.found("A resumed session repeats its history", "no")
    # What the model said before its call is kept; of the call itself only the newest knows.
    said = [each for each in seat.model.turns[-1].messages if each.role == "assistant"]
    assert any("by your leave" in each.texts for each in said)
    (told,) = knows(seat.model.turns[-1], "Tool call interrupted")
    assert told is (seat.version >= release(325))
    seat.found("A call that was open when the CLI was killed", "told" if told else "forgotten")


async def be_terminated_while_a_command_runs(seat: Seat, agent: Agent) -> str:
    watched = f"tail -f {seat.cwd / 'watched'}"
    (seat.cwd / "watched").touch()
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(bash(f"{watched}; true"), "never said"))
        await until(lambda: bool(running(watched)))
        os.kill(seat.pid, signal.SIGTERM)
        closed = await last_words(agent, query)
    seat.theme = "Endings"
    assert closed.exit_code == 143
    seat.found("Signals: SIGTERM", "exit code 143")
    if kills_children_on_term(seat.version):
        with anyio.fail_after(SECONDS):
            await until(lambda: not running(watched))
        seat.found("Ends the commands it runs when it is stopped")
    else:
        assert running(watched)
        seat.found("Ends the commands it runs when it is stopped", "no")
    seat.theme = ""
    return watched


async def be_ended_by(number: signal.Signals, code: int, seat: Seat, agent: Agent) -> None:
    with anyio.fail_after(SECONDS):
        query = await agent.prompt(play(reply("on ", Gate(number.name), "and on")))
        await seat.model.wait_at_gate(number.name)
        os.kill(seat.pid, number)
        closed = await last_words(agent, query)
    assert closed.exit_code == code
    seat.theme = "Endings"
    seat.found(f"Signals: {number.name}", f"exit code {code}")
    seat.theme = ""


async def last_words(agent: Agent, query: Query) -> LinkClosed:
    """How a CLI ended that was told to in the midst of a turn."""
    # The newest has the time to say how the turn ended.
    with suppress(LinkClosed):
        assert (await query.finish()).failed
    with pytest.raises(LinkClosed) as caught:
        await agent.query("anybody there?").finish()
    return caught.value


async def start_again_under_the_same_id(seat: Seat, chosen: str) -> None:
    if seat.transport == "stdio":
        assert "already in use" in await refusal(seat, session_id=chosen)
        seat.found("Start a session with an id in use", "a clear error")
        return
    async with seat.agent(session_id=chosen) as agent:
        with anyio.fail_after(SECONDS):
            assert Query.check(await agent.query("again").finish()).session_id == chosen
    assert knows(seat.model.turns[-1], "ALPHA", "again") == [False, True]
    seat.found("Start a session with an id in use", "starts again with that id")


async def refusal(
    seat: Seat,
    *,
    session_id: str | None = None,
    resume: str | None = None,
    at: str | None = None,
    cwd: Path | None = None,
) -> str:
    """What a CLI that does not start says of it."""
    asked = len(seat.model.turns)
    with anyio.fail_after(SECONDS), pytest.raises(LinkClosed) as caught:
        async with seat.agent(
            session_id=session_id, resume=resume, resume_session_at=at, cwd=cwd or seat.cwd
        ) as agent:
            await agent.query("anybody there?").finish()
    assert caught.value.exit_code == 1
    assert len(seat.model.turns) == asked
    return str(caught.value)


async def resume_at_an_unknown_message_or_elsewhere(seat: Seat, chosen: str) -> None:
    unknown = str(uuid4())
    said = await refusal(seat, resume=chosen, at=unknown)
    assert f"No message found with message.uuid of: {unknown}" in said
    seat.found("Resume at an unknown message", "a clear error")

    elsewhere = seat.home / "elsewhere"
    elsewhere.mkdir()
    if seat.version < release(325):
        assert "No conversation found" in await refusal(seat, resume=chosen, cwd=elsewhere)
        seat.found("Resume from another folder", "a clear error")
        return
    async with seat.agent(resume=chosen, cwd=elsewhere) as agent:
        with anyio.fail_after(SECONDS):
            await agent.query("where am I?").finish()
        assert agent.session_id == chosen
    assert knows(seat.model.turns[-1], "ALPHA") == [True]
    seat.found("Resume from another folder")


async def test_a_session_that_is_not_there_is_a_clear_error(seat: Seat) -> None:
    unknown = str(uuid4())
    said = await refusal(seat, resume=unknown)
    assert f"No conversation found with session ID: {unknown}" in said
    seat.found("Resume an unknown session", "a clear error")
    assert "--resume requires a valid session" in await refusal(seat, resume="no-uuid")
    seat.found("Resume by what is no id", "a clear error")
