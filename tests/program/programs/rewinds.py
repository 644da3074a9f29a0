"""A client whose files are kept at each prompt, and that takes one turn's changes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

from claude_agent_sdk import ClaudeSDKClient, ResultMessage, UserMessage

from program.programs.show import options, show
from quarterdeck.testing import Text, ToolUse, play, reply


async def turn(client: ClaudeSDKClient, *steps: ToolUse) -> str | None:
    """One turn; gives the uuid of its prompt."""
    await client.query(play(*(reply(step) for step in steps), reply(Text("ok"))))
    prompt = None
    async for message in client.receive_response():
        if isinstance(message, UserMessage) and isinstance(message.content, str):
            prompt = prompt or message.uuid
        elif isinstance(message, ResultMessage):
            show(message)
    return prompt


async def main() -> None:
    file = Path.cwd() / "kept.txt"
    wanted = options(
        permission_mode="acceptEdits",
        enable_file_checkpointing=True,
        extra_args={"replay-user-messages": None},
    )

    def write(content: str) -> ToolUse:
        return ToolUse("Write", {"file_path": str(file), "content": content})

    async with ClaudeSDKClient(wanted) as client:
        await turn(client, write("first"))
        second = await turn(client, ToolUse("Read", {"file_path": str(file)}), write("second"))
        print("written", file.read_text())
        assert second is not None
        await client.rewind_files(second)
        print("rewound", file.read_text())


asyncio.run(main())
