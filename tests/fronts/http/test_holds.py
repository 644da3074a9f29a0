"""What holds in a session, over REST and the stream; and prompts that steer, by both."""

from __future__ import annotations

import pytest

from quarterdeck.fronts.http import Role
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import SendPrompt
from quarterdeck.protocol.holds import McpServer, OfferedCommand, Task, Todo
from support.front import Front

pytestmark = pytest.mark.anyio

HELD: tuple[ev.Event, ...] = (
    ev.OffersChanged(commands=(OfferedCommand(name="compact", description="Compact"),)),
    ev.TodosChanged(todos=(Todo(todo="1", text="one", status="in_progress"),), cut=3),
    ev.TaskChanged(task=Task(task="t1", kind="shell", title="make test", background=True)),
    ev.ToolStarted(call="c1", tool="Bash", title="ls"),
    ev.McpChanged(servers=(McpServer(name="db", status="failed", error="no such file"),)),
    ev.ContextChanged(tokens=500, window=1000),
    ev.RateLimited(status="allowed_warning", limit="five_hour", used=0.9),
    ev.Switched(effort="high", thinking="off", by="ada"),
)


async def test_one_session_has_all_of_it_and_lists_and_the_stream_leave_the_offers_out(
    hub: Front,
) -> None:
    session = await hub.deck.have_session(effort="low", max_thinking_tokens=2000)
    async with hub.client(Role.VIEWER) as client, hub.stream(Role.VIEWER) as talk:
        path = f"/api/sessions/{session}"
        before = (await client.get(path)).json()
        assert (before["effort"], before["thinking"]) == ("low", "2000"), "as it was started"
        assert before["holds"] == {
            "todos": [],
            "tasks": [],
            "tools": [],
            "mcp": [],
            "context": {},
            "limits": [],
            "cut": {},
        }
        stored = await hub.deck.journal.append(session, HELD)
        shape = (await client.get(path)).json()
        assert (shape["effort"], shape["thinking"]) == ("high", "off")
        assert shape["offers"] == {"commands": [{"name": "compact", "description": "Compact"}]}
        holds = shape["holds"]
        assert holds["todos"] == [{"todo": "1", "text": "one", "status": "in_progress"}]
        (task,), (tool,) = holds["tasks"], holds["tools"]
        assert (task["task"], task["kind"], task["since"]) == ("t1", "shell", stored[2].at)
        assert tool == {"call": "c1", "tool": "Bash", "title": "ls", "since": stored[3].at}
        assert holds["mcp"] == [{"name": "db", "status": "failed", "error": "no such file"}]
        assert holds["context"] == {"tokens": 500, "window": 1000}
        assert holds["limits"] == [
            {"kind": "rate_limited", "status": "allowed_warning", "limit": "five_hour", "used": 0.9}
        ]
        assert holds["cut"] == {"todos": 3}
        (listed,) = (await client.get("/api/sessions")).json()["sessions"]
        assert listed == shape | {"offers": None}
        await talk.follow(sessions={session: stored[-1].seq}, epoch=hub.deck.epoch)
        (view,) = (await talk.hear("views"))["sessions"]
        assert view == listed


async def test_a_prompt_steers_over_rest_and_over_the_stream(hub: Front) -> None:
    session = await hub.deck.have_session()
    async with hub.client(Role.OPERATOR) as client, hub.stream(Role.OPERATOR) as talk:
        path = f"/api/sessions/{session}/prompts"
        sent = await client.post(path, json={"content": "left", "steer": True})
        assert sent.is_success
        assert isinstance(command := hub.deck.submitted[-1], SendPrompt)
        assert command.steer
        over_stream = {"command": "prompt.send", "session": session, "content": "x", "steer": True}
        await talk.say(t="command", id="1", command=over_stream)
        await talk.hear("done")
        assert isinstance(command := hub.deck.submitted[-1], SendPrompt)
        assert command.steer
        await client.post(path, json={"content": "later"})
        assert isinstance(command := hub.deck.submitted[-1], SendPrompt)
        assert not command.steer
        refused = await client.post(path, json={"content": "x", "steer": "yes"})
        assert refused.status_code == 400
