"""Newer commands: they work where they are known, and are refused unsent elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from quarterdeck import Agent
from quarterdeck.agent.asks import Allow, AnyAsk
from quarterdeck.domain.errors import UnsupportedError
from quarterdeck.testing import Purpose, ToolUse, play
from quarterdeck.wire.commands import (
    ExportConversation,
    GetBinaryVersion,
    GetStatus,
    ListPermissionRules,
    ReadFile,
    RewindConversation,
)
from quarterdeck.wire.versions import release
from support.seats import Seat

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


async def test_newer_commands_work_or_are_refused(seat: Seat) -> None:
    asked: list[bytes] = []

    def decide(ask: AnyAsk) -> Allow:
        asked.append(bytes(ask.input))
        return Allow()

    probe = seat.cwd / "probe.sh"
    probe.write_text("#!/bin/sh\ntrue\n")
    probe.chmod(0o755)
    run = play(ToolUse("Bash", {"command": "./probe.sh"}), "ran")
    rule = {"permissions": {"allow": ["Bash(./probe.sh:*)"]}}
    async with seat.agent(decide=decide) as agent:
        with anyio.fail_after(30):
            await agent.query("remember ALPHA").finish()
            if seat.version >= release(62):
                await agent.apply_settings(rule)
                await agent.query(run).finish()
                assert asked == []
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
