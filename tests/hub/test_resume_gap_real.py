"""A real CLI is killed and resumed: what it then writes, and what it does without a transcript."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import anyio
import pytest
from msgspec import Raw

from quarterdeck.history.story import Call, Outcome, StoryFold
from quarterdeck.hub.lines import uuid_of
from quarterdeck.protocol.commands import ResumeSession, SendPrompt
from quarterdeck.protocol.events import (
    Alarmed,
    Recalled,
    RunEnded,
    RunStarting,
    Said,
    TurnEnded,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.testing import RealCli, ScriptedModel
from quarterdeck.testing.script import Gate, ToolUse, play, reply
from quarterdeck.transcripts import TranscriptLine, transcript_lines
from support.bounds import SECONDS
from support.hub_house import House, real_spec
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

INTERRUPTED = "[Tool call interrupted"


async def cut_off(deck: House, spec: SessionSpec, home: Path) -> tuple[str, SessionView]:
    """A session whose CLI was killed in a command, after it had written down the call."""
    work = Path(spec.directory)

    def has_written_the_call() -> bool:
        files = (home / ".claude" / "projects").glob("*/*.jsonl")
        return any('"tool_use"' in path.read_text(errors="replace") for path in files)

    call = ToolUse("Bash", {"command": "echo $$ > new && mv new pid; exec tail -f /dev/null"})
    session = await deck.new(spec, json.dumps(play(reply(call), "never")).encode())
    with anyio.fail_after(SECONDS):
        await until((work / "pid").exists)
        await until(has_written_the_call)
    return session, await kill_cli(deck, session)


async def kill_cli(deck: House, session: str) -> SessionView:
    """Kill the CLI of a session, and wait until the hub knows."""
    pid = (await deck.hub.session(session)).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return await deck.until(session, lambda view: view.run is None)


@pytest.mark.parametrize("version", ["2.1.37", "2.1.325"])
async def test_what_a_resumed_cli_writes_about_a_call_that_was_cut_off_is_recalled(
    version: str,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    home: House,
) -> None:
    tools = ("Bash",)
    # In a sandbox the command may be killed first, and its end be written.
    spec = real_spec(
        tmp_path, clis[version], model, allowed_tools=tools, auto_approve=tools, sandbox="off"
    )
    kept = tmp_path / "home"
    session, ended = await cut_off(home, spec, kept)
    await home.hub.submit(SendPrompt(session=session, prompt="next", content=Raw(b'"go on"')))
    # What it wrote, and did not say. 2.1.37 leaves the call out, so that it needs no result.
    texts = ["No response requested."]
    if version != "2.1.37":
        texts.insert(0, INTERRUPTED)
    await home.until(session, lambda view: view.turns == 1)
    assert ended.cli_session is not None
    written = await whole_transcript(home, session, ended.cli_session, kept)
    if version == "2.1.37" and not any(texts[0].encode() in bytes(one.line) for one in written):
        texts = []  # it may also write nothing between the two turns
    recalled = await recalled_lines(home, session, len(texts))
    for (run, line), text in zip(recalled, texts, strict=True):
        assert ended.ended_runs[-1] == run, "it belongs to the run that was cut off"
        assert text in json.dumps(line)
    assert {line["uuid"] for _, line in recalled} < {one.uuid for one in written}
    events = await home.hub.events(session)
    known = await messages(home, session)
    assert sorted(known) == sorted({one.uuid for one in written}), "nothing is missing, or double"
    fold = StoryFold()
    story = [entry for each in events for entry in fold.entries(each.event, each.at)]
    (call,) = [entry for entry in story if isinstance(entry, Call)]
    outcomes = [entry for entry in story if isinstance(entry, Outcome)]
    assert [(each.id, each.failed) for each in outcomes] == [(call.id, True)] * (len(texts) - 1)
    # The next turn, and the next hub, find nothing more.
    await home.hub.submit(SendPrompt(session=session, prompt="last", content=Raw(b'"stop"')))
    await home.until(session, lambda view: view.turns == 2)
    await home.restart_hub()
    await home.until(session, lambda view: view.link_lost is None)
    await home.hub.submit(SendPrompt(session=session, prompt="post", content=Raw(b'"over"')))
    await home.until(session, lambda view: view.turns == 3)
    assert await recalled_lines(home, session, len(texts)) == recalled
    again = [each.event for each in await home.hub.events(session)]
    assert sum(isinstance(each, Recalled) for each in again) == len(texts)


async def recalled_lines(
    deck: House, session: str, count: int
) -> list[tuple[str, dict[str, object]]]:
    """Wait until so many messages were recalled; gives their runs and lines."""
    found: list[tuple[str, dict[str, object]]] = []
    if not count:
        return found
    with anyio.fail_after(SECONDS):
        async for batch in deck.hub.follow({session: 0}):
            events = [stored.event for stored in batch if isinstance(stored.event, Recalled)]
            found += [(event.run, json.loads(bytes(event.line))) for event in events]
            if len(found) >= count:
                return found
    raise AssertionError("the journal was closed")


async def whole_transcript(
    deck: House, session: str, cli_session: str, home: Path
) -> list[TranscriptLine]:
    """The conversation as the CLI wrote it, when the last message that it said is in it."""
    said = [each.event for each in await deck.hub.events(session)]
    lines = [event.line for event in said if isinstance(event, Said)]
    last = [uuid for line in lines if (uuid := uuid_of(line))][-1]
    with anyio.fail_after(SECONDS):
        while True:
            written = transcript_lines(cli_session, config_dir=home / ".claude")
            if last in {one.uuid for one in written}:
                return written
            await anyio.sleep(0.01)


async def messages(deck: House, session: str) -> list[str]:
    """The uuids of all messages of the conversation that the journal has."""
    events = [stored.event for stored in await deck.hub.events(session)]
    lines = [event.line for event in events if isinstance(event, Said | Recalled)]
    return [uuid for line in lines if (uuid := uuid_of(line))]


@pytest.mark.parametrize("version", ["2.1.37", "2.1.325"])
async def test_a_conversation_that_was_never_written_begins_afresh_with_what_is_queued(
    version: str,
    clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    home: House,
) -> None:
    spec = real_spec(tmp_path, clis[version], model, sandbox="off")
    session = await home.new(spec, json.dumps(play(reply("so", Gate(), "far"))).encode())
    await model.wait_at_gate()
    await home.until(session, lambda view: view.cli_session is not None and not view.unsent)
    await home.hub.submit(SendPrompt(session=session, prompt="q", content=Raw(b'"queued"')))
    await kill_cli(home, session)
    # Whether a CLI that is killed so early has written anything is a matter of luck.
    shutil.rmtree(tmp_path / "home" / ".claude" / "projects", ignore_errors=True)
    model.release()
    await home.hub.submit(ResumeSession(session=session))
    # The resume has failed, as a turn without prompts, and then the queued prompt is taken.
    view = await home.until(session, lambda view: view.turns == 2)
    assert view.unsent == ()
    events = [stored.event for stored in await home.hub.events(session)]
    starts = [event.origin.cli_session for event in events if isinstance(event, RunStarting)]
    assert [start is None for start in starts] == [True, False, True]
    assert [event.exit_code for event in events if isinstance(event, RunEnded)] == [-9, 1]
    assert not [event for event in events if isinstance(event, Alarmed)]
    turns = [event for event in events if isinstance(event, TurnEnded)]
    assert [(turn.failed, turn.prompts) for turn in turns] == [(True, ()), (False, ("q",))]
