"""Lines that no CLI should write: kept, no end of a session, the same after a restart."""

from __future__ import annotations

import pytest
from msgspec import Raw

from quarterdeck.hub.hub import Hub
from quarterdeck.journal.memory import MemoryJournal
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk, CreateSession, DenyAnswer
from quarterdeck.protocol.events import AskKind, Decided, Said, SaidBroken
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from support import lines
from support.hub_machines import TestMachines, TestRun, hub_with

pytestmark = pytest.mark.anyio

ASK = lines.asks_permission("q1", command="x")
MESSAGE = lines.assistant("x", "u1")
RESULT = lines.result("r1", cost=0.0)
INIT = lines.init(uuid="i2")
HALF, NO_UTF8 = b"\\ud83d", b"\xff"


def hook(tool: str = "Read", **given: str) -> bytes:
    """The CLI is about to run a tool."""
    seen = {
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": given,
        "tool_use_id": "t1",
    }
    return lines.requests(
        "h1", subtype="hook_callback", callback_id="quarterdeck-watch", input=seen
    )


def elicitation(message: str) -> bytes:
    """An MCP server asks."""
    return lines.requests("e1", subtype="elicitation", mcp_server_name="s", message=message)


ODD = {
    "input that is no UTF-8": ASK.replace(b'"x"', b'"%b"' % NO_UTF8),
    "tool that is no UTF-8": ASK.replace(b"Bash", NO_UTF8),
    "id that is no UTF-8": ASK.replace(b'"q1"', b'"%b"' % NO_UTF8),
    "input with half a character": ASK.replace(b'"x"', b'"%b"' % HALF),
    "tool with half a character": ASK.replace(b"Bash", HALF),
    "input that is no number": ASK.replace(b'"x"', b"NaN"),
    "input that is too large a number": ASK.replace(b'"x"', b"1e999"),
    "input that is very deep": ASK.replace(b'"x"', b"[" * 5000 + b"]" * 5000),
    "input with a bare tab": ASK.replace(b'"x"', b'"a\tb"'),
    "message that is no UTF-8": MESSAGE.replace(b'"x"', b'"%b"' % NO_UTF8),
    "uuid that is no UTF-8": MESSAGE.replace(b"u1", NO_UTF8),
    "message with half a character": MESSAGE.replace(b'"x"', b'"%b"' % HALF),
    "result that is no UTF-8": RESULT.replace(b"done", NO_UTF8),
    "result with half a character": RESULT.replace(b"done", HALF),
    "cost beyond all numbers": RESULT.replace(b"0.0", b"1e400"),
    "cost that is a word": RESULT.replace(b"0.0", b'"x"'),
    "session that is no UTF-8": INIT.replace(lines.SESSION.encode(), NO_UTF8),
    "session with half a character": INIT.replace(lines.SESSION.encode(), HALF),
    "form that is no UTF-8": elicitation("X").replace(b"X", NO_UTF8),
    "form with half a character": elicitation("\ud83d"),
    "hook that is no UTF-8": hook("X").replace(b"X", NO_UTF8),
    "hook with half a character": hook("\ud83d"),
    "null": b"null\n",
    "list": b"[]\n",
    "word": b'"x"\n',
    "empty object": b"{}\n",
    "half an object": b"{\n",
    "no text at all": b"\xff\xfe\n",
}


async def working(hub: Hub, machines: TestMachines) -> TestRun:
    spec = SessionSpec(directory="/work")
    await hub.submit(CreateSession(spec=spec, session="mine", prompt=Raw(b'"go"'), by="ada"))
    run = machines.runs[-1]
    await run.greet()
    await run.take_prompt()
    return run


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
async def test_an_odd_line_is_kept_and_stops_nothing_before_or_after_a_restart(odd: bytes) -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal)
    async with hub.run():
        run = await working(hub, machines)
        await run.say(odd)
        before = await hub.asks()
    said = [
        bytes(event.line).decode() if isinstance(event, Said) else event.text
        for stored in await journal.read("mine")
        if isinstance(event := stored.event, Said | SaidBroken)
    ]
    assert said[-1] == odd.rstrip(b"\n").decode("utf-8", "replace")
    hub, machines = hub_with(journal)
    async with hub.run():
        assert await hub.asks() == before
        for card in before:
            tool = card.opened.ask_kind is AskKind.TOOL
            answer = AllowAnswer() if tool else DenyAnswer()
            await hub.submit(AnswerAsk(ask=card.opened.ask, answer=answer, by="ada"))
        await machines.runs[0].say(lines.result("end"))
        assert (await hub.session("mine")).state is SessionState.IDLE


async def test_a_message_that_a_numbered_cli_said_twice_is_kept_twice_and_meant_once() -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal)
    async with hub.run():
        run = await working(hub, machines)
        await run.say(lines.result("r1"), lines.result("r1"), lines.delta("x", "d"))
        await run.say(lines.delta("x", "d"))
        view = await hub.session("mine")
    said = [stored.event for stored in await journal.read("mine") if isinstance(stored.event, Said)]
    assert [bytes(event.line) for event in said[-2:]] == [lines.result("r1").rstrip()] * 2
    assert view.turns == 1


async def test_what_the_cli_decides_by_itself_is_audited_although_the_hub_was_restarted() -> None:
    journal = MemoryJournal()
    hub, machines = hub_with(journal)
    async with hub.run():
        await (await working(hub, machines)).say(hook(file_path="/a.py"))
    hub, machines = hub_with(journal)
    async with hub.run():
        block = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
        message = {"role": "user", "content": [block]}
        await machines.runs[0].say(
            lines.line(type="user", message=message, uuid="u1"), lines.result("r")
        )
        (entry,) = [stored.event for stored in await hub.audit(session="mine")]
    assert isinstance(entry, Decided)
    assert (entry.tool, entry.by, entry.verdict) == ("Read", "cli", "allow")
    assert entry.title == "Read /a.py"  # the call itself, not only its tool
