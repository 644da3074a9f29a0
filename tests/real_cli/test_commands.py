"""Newer commands: they work where they are known, and are refused unsent elsewhere.

Slash commands: they end like any other prompt, with or without an echo or a model.

One session shows it all: its scenes follow each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
import pytest

from quarterdeck import Agent, Query
from quarterdeck.agent.asks import Allow, AnyAsk
from quarterdeck.domain.errors import LinkClosed, RequestRefused, UnsupportedError
from quarterdeck.testing import Gate, Purpose, play, reply
from quarterdeck.wire.base import Message
from quarterdeck.wire.commands import (
    ExportConversation,
    GetBinaryVersion,
    GetStatus,
    ListPermissionRules,
    ReadFile,
    RewindConversation,
)
from quarterdeck.wire.messages import Assistant, ConversationReset, User
from quarterdeck.wire.states import State
from quarterdeck.wire.system import CompactBoundary, Init, Status, WorkingStatus
from quarterdeck.wire.versions import release
from support.bounds import SECONDS
from support.meddling import Meddler
from support.scenes import INPUT_ENDS_WHILE_SPEAKING, Probe
from support.seats import Seat
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

Command = Callable[[Agent, Seat], Awaitable[None]]


async def context_usage(agent: Agent, _: Seat) -> None:
    usage = await agent.context_usage()
    assert 0 < usage.total_tokens < usage.max_tokens
    assert usage.categories


async def settings(agent: Agent, _: Seat) -> None:
    assert bytes((await agent.settings()).effective).startswith(b"{")


async def title(agent: Agent, _: Seat) -> None:
    assert await agent.generate_title("a test of titles") == "Scripted title"


async def ask_aside(agent: Agent, seat: Seat) -> None:
    before = len(seat.model.turns)
    assert await agent.ask_aside("what was that?") == "Scripted side answer."
    assert len(seat.model.turns) == before
    assert any(request.purpose is Purpose.SIDE_QUESTION for request in seat.model.requests)


async def reload_plugins(agent: Agent, _: Seat) -> None:
    await agent.reload_plugins()


async def binary_version(agent: Agent, seat: Seat) -> None:
    assert (await agent.request(GetBinaryVersion())).version == str(seat.version)


async def read_file(agent: Agent, seat: Seat) -> None:
    (seat.cwd / "notes.txt").write_text("to be read")
    found = await agent.request(ReadFile(path=str(seat.cwd / "notes.txt")))
    assert found.contents == "to be read"


async def rename(agent: Agent, _: Seat) -> None:
    await agent.rename("Another name")


async def suggest_files(agent: Agent, _: Seat) -> None:
    # The first question makes the CLI look, and tells nothing yet.
    while "probe.sh" not in await agent.suggest_files("prob"):  # noqa: ASYNC110 (nor later)
        await anyio.sleep(0.05)


async def models(agent: Agent, _: Seat) -> None:
    assert await agent.models()


async def plan(agent: Agent, _: Seat) -> None:
    assert not (await agent.plan()).exists


async def status(agent: Agent, _: Seat) -> None:
    assert (await agent.request(GetStatus())).sections


async def rules(agent: Agent, _: Seat) -> None:
    found = await agent.request(ListPermissionRules())
    assert any("probe.sh" in rule.rule for rule in found.state.rules)


async def export(agent: Agent, _: Seat) -> None:
    assert "remember ALPHA" in (await agent.request(ExportConversation())).text


async def rewind_conversation(agent: Agent, seat: Seat) -> None:
    query = agent.query("remember OMEGA")
    await query.finish()
    assert (await agent.request(RewindConversation(target_message_uuid=query.uuid))).rewound
    await agent.query("after").finish()
    assert "remember OMEGA" not in seat.model.turns[-1].body.decode()


COMMANDS: tuple[tuple[str, int, Command], ...] = (
    ("How full the context is", 92, context_usage),
    ("The settings in effect", 92, settings),
    ("A title from the model", 92, title),
    ("A question aside", 92, ask_aside),
    ("Reload plugins", 92, reload_plugins),
    ("The version of the binary", 120, binary_version),
    ("Read a file through the CLI", 120, read_file),
    ("Rename a session", 150, rename),
    ("Suggest files", 150, suggest_files),
    ("List the models", 200, models),
    ("The plan", 200, plan),
    ("The CLI's status", 325, status),
    ("List permission rules", 325, rules),
    ("Export the conversation", 325, export),
    ("Rewind the conversation", 200, rewind_conversation),
)


@pytest.mark.between("2.1.120 stdio")  # its last part, which ends the input
async def test_commands_of_every_kind_work_or_are_refused(seat: Seat) -> None:
    asked: list[bytes] = []

    def decide(ask: AnyAsk) -> Allow:
        asked.append(bytes(ask.input))
        return Allow()

    commands = seat.cwd / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "hey.md").write_text("Say hey to $ARGUMENTS.")
    meddler = Meddler()
    async with seat.agent(decide=decide, meddler=meddler) as agent:
        with anyio.fail_after(SECONDS):
            seat.theme = "Slash commands"
            await commands_of_the_cli_need_no_model(seat, agent)
            seat.theme = "Rewinding"
            await without_checkpoints_nothing_is_rewound(seat, agent)
            seat.theme = "Newer commands"
            await newer_commands_work_or_are_refused(seat, agent, asked)
            seat.theme = "Slash commands"
            await commands_go_to_the_model_or_not(seat, agent)
            await a_conversation_is_compacted(seat, agent)
            await a_conversation_is_cleared(seat, agent)
            assert agent.state is State.READY
            seat.theme = "Endings"
            await the_end_of_its_input_does_not_end_the_turn(seat, agent, meddler)


async def newer_commands_work_or_are_refused(seat: Seat, agent: Agent, asked: list[bytes]) -> None:
    probe = Probe(seat)
    rule = {"permissions": {"allow": ["Bash(./probe.sh:*)"]}}
    if seat.version >= release(62):
        await agent.apply_settings(rule)
        await agent.query(play(probe.call(), "ran")).finish()
        assert asked == []
        assert len(probe.runs) == 1
        seat.found("Settings for this session")
    else:
        with pytest.raises(UnsupportedError, match="apply_flag_settings"):
            await agent.apply_settings(rule)
        seat.found("Settings for this session", "no")
    for name, since, command in COMMANDS:
        if seat.version >= release(since):
            await command(agent, seat)
            seat.found(name)
        else:
            with pytest.raises(UnsupportedError):
                await command(agent, seat)
            seat.found(name, "no")


async def without_checkpoints_nothing_is_rewound(seat: Seat, agent: Agent) -> None:
    query = agent.query("remember ALPHA")
    await query.finish()
    would = await agent.rewind_files(query.uuid, dry_run=True)
    assert not would.can_rewind
    assert would.error == "File rewinding is not enabled."
    with pytest.raises(RequestRefused, match="not enabled"):
        await agent.rewind_files(query.uuid)
    seat.found("Rewind files without checkpoints", "a clear error")


def said(messages: Sequence[Message]) -> str:
    """What a command told the person."""
    return "\n".join(m.text for m in messages if isinstance(m, Assistant | User))


async def commands_of_the_cli_need_no_model(seat: Seat, agent: Agent) -> None:
    query = agent.query("/cost")
    text = said([message async for message in query])
    assert "Total cost" in text
    assert not seat.model.turns
    assert query.result is not None
    in_result = "Total cost" in (query.result.result or "")
    assert in_result is (seat.version >= release(62))
    seat.found("Slash commands of the CLI", "yes" if in_result else "yes, as a message")

    for_screens = Query.check(await agent.query("/help").finish()).result or ""
    newer = seat.version >= release(120)
    word = "isn't available in this environment" if newer else "Unknown skill: help"
    assert word in for_screens
    seat.found(
        "Slash commands for the screen",
        "said not to be available" if newer else "said to be unknown",
    )


async def commands_go_to_the_model_or_not(seat: Seat, agent: Agent) -> None:
    unknown = Query.check(await agent.query("/nosuch thing").finish()).result or ""
    if seat.version >= release(325):
        assert unknown == "echo: /nosuch thing"
        seat.found("Unknown slash commands", "go to the model")
    else:
        word = "command: /nosuch" if seat.version >= release(120) else "skill: nosuch"
        assert unknown == f"Unknown {word}"
        seat.found("Unknown slash commands", "said to be unknown")

    assert await agent.query("/hey you").text() == "echo: Say hey to you."
    assert agent.init is not None
    assert "hey" in agent.init.slash_commands
    seat.found("Slash commands of the project")

    # Of the commands for the screen the newest has learnt one.
    learnt = seat.version >= release(325)
    assert not (await agent.query("/model claude-haiku-4-5").finish()).failed
    await agent.query("which one?").finish()
    assert (seat.model.turns[-1].model == "claude-haiku-4-5") is learnt
    seat.found("Change the model by a slash command", "yes" if learnt else "no")


async def a_conversation_is_compacted(seat: Seat, agent: Agent) -> None:
    messages = [message async for message in agent.query("/compact")]
    kinds = [type(message) for message in messages]
    working = [m for m in messages if isinstance(m, Status)]
    assert working[0].status is WorkingStatus.COMPACTING
    # It says that it is done before it says what it did.
    done = next(m for m in working if m.status is None)
    assert messages.index(done) < kinds.index(Init) < kinds.index(CompactBoundary)
    newer = seat.version >= release(120)
    assert (done.compact_result is not None) is newer
    (boundary,) = [m.compact_metadata for m in messages if isinstance(m, CompactBoundary)]
    assert boundary.trigger == "manual"
    assert (boundary.post_tokens is not None) is newer
    assert any(request.purpose is Purpose.SUMMARY for request in seat.model.requests)
    seat.found("Compact the conversation")


async def a_conversation_is_cleared(seat: Seat, agent: Agent) -> None:
    session = agent.session_id
    spent = (await agent.query("remember BETA").finish()).cost_usd
    messages = [message async for message in agent.query("/clear")]
    newest = seat.version >= release(325)
    assert any(isinstance(m, ConversationReset) for m in messages) is newest
    cleared = await agent.query("after").finish()
    renamed = agent.session_id != session
    forgotten = "remember BETA" not in seat.model.turns[-1].body.decode()
    assert renamed is (seat.version >= release(120))
    # 2.1.120 begins another session and sends the model the old one all the same.
    assert forgotten is newest
    # The cost of a turn is its own, also where the totals began anew.
    assert cleared.cost_usd == pytest.approx(spent)
    answer = "yes" if forgotten else "a new session that remembers the old" if renamed else "no"
    seat.found("Clear the conversation", answer)


async def the_end_of_its_input_does_not_end_the_turn(
    seat: Seat, agent: Agent, meddler: Meddler
) -> None:
    if seat.transport == "ws":
        return  # not applicable: see `test_endings`
    query = await agent.prompt(play(reply("on ", Gate(), "and on")))
    await seat.model.wait_at_gate()
    await meddler.end_input()
    seat.model.release()
    assert Query.check(await query.finish()).result == "and on"
    await until(lambda: agent.state is State.CLOSED)
    with pytest.raises(LinkClosed) as caught:
        await agent.query("anybody there?").finish()
    assert caught.value.exit_code == 0
    seat.found(INPUT_ENDS_WHILE_SPEAKING, "the turn is finished first")
