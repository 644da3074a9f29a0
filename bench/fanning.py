"""What others would do in the hub's place: an agent's lines to many clients, and nothing kept.

`broadcast` is the `websockets` library's own: a frame for each client and each event. `prebuilt` is
the least that this machine needs: a frame is made once, and its bytes written to each client. Both
begin when the first client says something. Run as a process of its own; prints its address.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys

from websockets.asyncio.server import ServerConnection, broadcast, serve

from bench.served import AGENT, prompt


async def main(kind: str, file: str) -> None:
    """Serve until ended."""
    clients: set[ServerConnection] = set()
    go = asyncio.Event()

    async def serve_client(client: ServerConnection) -> None:
        clients.add(client)
        async for _ in client:
            go.set()

    async with serve(serve_client, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        host, port = next(iter(server.sockets)).getsockname()[:2]
        sys.stdout.write(f"http://{host}:{port}/\n")
        sys.stdout.flush()
        await go.wait()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-S", "-E", str(AGENT)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        todo = prompt({"do": "send", "file": file})
        said = {"type": "user", "message": {"role": "user", "content": todo}}
        process.stdin.write(json.dumps(said).encode() + b"\n")
        try:
            async for line in process.stdout:
                if kind == "broadcast":
                    broadcast(clients, line.decode())
                else:
                    data = frame(line)
                    for client in clients:
                        client.transport.write(data)
                # Without this nobody but us would have a turn until the agent pauses.
                await asyncio.sleep(0)
            await asyncio.get_running_loop().create_future()
        finally:
            process.terminate()
            await process.wait()


def frame(data: bytes) -> bytes:
    """A text frame, as a server sends it."""
    if len(data) < 126:
        return struct.pack(">BB", 0x81, len(data)) + data
    return struct.pack(">BBH", 0x81, 126, len(data)) + data


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
