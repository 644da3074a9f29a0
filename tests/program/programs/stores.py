"""A store of the program, an id and settings of its own, an image, and work in the background."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKClient,
    InMemorySessionStore,
    ResultMessage,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    UserMessage,
    query,
)

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


async def picture() -> AsyncIterator[dict[str, Any]]:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    body = {"role": "user", "content": [{"type": "image", "source": source}]}
    yield {"type": "user", "message": body, "parent_tool_use_id": None, "session_id": "s"}


async def main() -> None:
    print("--- an id of its own, a file of settings, a store, an image")
    chosen = str(uuid.uuid4())
    store = InMemorySessionStore()
    wanted = options(
        session_id=chosen,
        settings="own.json",
        session_store=store,
        model="claude-sonnet-4-5",
        fallback_model="claude-haiku-4-5",
        thinking={"type": "enabled", "budget_tokens": 2000},
        effort="low",
        disallowed_tools=["WebFetch"],
    )
    async for message in query(prompt=picture(), options=wanted):
        if isinstance(message, ResultMessage):
            print("same id", message.session_id == chosen, "[Image" in (message.result or ""))
        elif not isinstance(message, AssistantMessage):
            show(message)  # the scripted model repeats where the image is
    print("--- resumed from the store, in the background")
    resumed = options(
        resume=chosen,
        session_store=store,
        settings="own.json",
        allowed_tools=["Bash"],
        include_hook_events=True,
    )
    async with ClaudeSDKClient(resumed) as client:
        await client.query(
            play(
                reply(ToolUse("Bash", {"command": "printenv FROM_FILE"})),
                reply(ToolUse("Bash", {"command": "sleep 300", "run_in_background": True})),
                reply(Text("started")),
            )
        )
        task, reports = "", set()
        async for message in client.receive_response():
            if isinstance(message, TaskStartedMessage):
                task = message.task_id
            if isinstance(message, SystemMessage):
                reports.add(message.subtype)
            elif isinstance(message, ResultMessage):
                print("same id", message.session_id == chosen, message.result)
            elif isinstance(message, UserMessage) and "the file" in str(message.content):
                print("read", "the file")
        print("reports", sorted(reports))
        await client.stop_task(task)
        async for message in client.receive_messages():
            if isinstance(message, TaskNotificationMessage):
                print("task", message.status)
                break


Path("own.json").write_text(json.dumps({"env": {"FROM_FILE": "the file"}}))
asyncio.run(main())
