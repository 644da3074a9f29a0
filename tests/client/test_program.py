"""A program drives the real CLI through `Hub`, while the hub is killed and comes back."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path

import anyio
import msgspec
import pytest

from quarterdeck import AgentDefinition, Assistant, Options
from quarterdeck.client import Hub, HubAsk, HubQuery, HubSession
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import Answer
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import EventShape
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import Gate, Text, ToolUse, play, reply
from support.bounds import SECONDS
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class Report(msgspec.Struct):
    """What the agent ends its turn with."""

    files: int


async def kill_and_restart(deck: ServedDeck) -> None:
    """`kill -9`, and the next hub."""
    assert deck.hub is not None
    deck.hub.kill()
    await deck.ends()
    await deck.serve()


def plugin(folder: Path) -> Path:
    """A plugin with one command."""
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "deckhand"}')
    (folder / "commands").mkdir()
    (folder / "commands" / "scrub.md").write_text("Scrub the deck.")
    return folder


async def test_a_hub_that_is_killed_in_the_midst_of_a_query_is_a_pause(
    deck: ServedDeck, model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(deck.data))
    asked: list[str] = []

    def decide(ask: HubAsk) -> Answer:
        asked.append(str(ask.arguments["command"]))
        return ask.allow()

    options = Options(
        cwd=deck.command.work,
        api_billing=True,
        output_type=Report,
        subagents={"scout": AgentDefinition(description="Looks around.", prompt="Look around.")},
        plugin_dirs=(plugin(tmp_path / "plugin"),),
        setting_sources=(),
        include_hook_events=True,
        session_mirror=True,
        agent_progress_summaries=True,
        skills=("deckhand:scrub",),
        extra_args={"debug": None},
        fallback_model="haiku",
    )
    await deck.serve()
    events: list[EventShape] = []
    with anyio.fail_after(SECONDS):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            tasks.start_soon(collect, hub, events)
            async with await hub.start(options, decide=decide) as session:
                query = session.query(
                    play(
                        reply(ToolUse("Bash", {"command": "touch one"})),
                        reply(Text("begun "), Gate(), ToolUse("StructuredOutput", {"files": 3})),
                        reply(Text("Done.")),
                    )
                )
                said: list[str] = []
                done = anyio.Event()
                tasks.start_soon(read, query, said, done)
                await model.wait_at_gate()
                assert asked == ["touch one"]
                await kill_and_restart(deck)
                model.release()
                await done.wait()
                assert "".join(said).startswith("begun ")
                assert await query.output(Report) == Report(files=3)
                await session.wait_for(lambda view: view.state is SessionState.IDLE)
                view = await session.read()
                assert view.offers is not None
                assert "deckhand:scrub" in {each.name for each in view.offers.commands}
                assert "scout" in {each.name for each in view.offers.agents}
                await rewound_and_forked(hub, session, query.uuid, deck.command.work)
                await session.stop()
                await session.wait_for(lambda view: view.run is None)
                await went_on(hub, deck, session)
            tasks.cancel_scope.cancel()
        of_session = [each.seq for each in events if each.session == session.id]
        assert of_session == list(range(1, len(of_session) + 1))
        (turn, *_) = [each.event for each in events if isinstance(each.event, ev.TurnEnded)]
        assert json.loads(bytes(turn.structured)) == {"files": 3}
    await deck("stop")
    await deck.ends()


async def collect(hub: Hub, events: list[EventShape]) -> None:
    """All events of the hub, over its restarts."""
    async with aclosing(hub.follow(0)) as followed:
        async for shape in followed:
            events += [shape]


async def read(query: HubQuery, said: list[str], done: anyio.Event) -> None:
    """What the agent says in a turn."""
    async for message in query:
        if isinstance(message, Assistant) and message.text:
            said += [message.text]
    done.set()


async def rewound_and_forked(hub: Hub, session: HubSession, prompt: str, work: Path) -> None:
    """Controls, a look at going back, and a copy, as an `Agent` has them."""
    await session.set_permission_mode("acceptEdits")
    await session.wait_for(lambda view: view.mode == "acceptEdits")
    assert {server.name for server in await session.mcp_status()} == set()
    looked = await session.rewind(prompt, dry_run=True)
    assert looked.dry_run
    copy = await session.fork(name="copy")
    async with copy:
        assert copy.view.parent == session.id
        await copy.stop()
        await copy.wait_for(lambda view: view.run is None)
    assert (work / "one").exists()


async def went_on(hub: Hub, deck: ServedDeck, session: HubSession) -> None:
    """The newest conversation of the folder goes on in another session."""
    before = (await session.read()).cli_session
    options = Options(cwd=deck.command.work, api_billing=True, continue_=True)
    async with await hub.start(options, "Hello again.") as other:
        assert other.first is not None
        assert "Hello again." in await other.first.text()
        assert (await other.read()).cli_session == before
        await other.stop()
        await other.wait_for(lambda view: view.run is None)
