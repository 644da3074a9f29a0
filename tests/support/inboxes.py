"""The inbox of a CLI: a socket on which other processes of the same user can write to it."""

from __future__ import annotations

import json

import anyio

from support.bounds import SECONDS


async def write_to_inbox(path: str, words: str) -> None:
    """Send a prompt as another process of the same user can, and wait until the CLI has read it."""
    message = {
        "msgV": 1,
        "msg_id": words,
        "type": "user",
        "message": {"role": "user", "content": words},
        "priority": "next",
        "from": "uds:elsewhere",
    }
    async with await anyio.connect_unix(path) as socket:
        await socket.send(json.dumps(message).encode() + b"\n")
        await socket.send_eof()
        with anyio.fail_after(SECONDS):
            async for _ in socket:
                pass  # whatever it answers; it ends its side when it has read ours
