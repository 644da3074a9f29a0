"""One of several hubs on one journal, as a process for the tests of faults.

It is `fault_hub` with a fleet: the same questions and replies on stdin and stdout. Runners, other
hubs and those who follow its stream reach it at one port, each through a network of their own.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec

from quarterdeck.domain.ids import new_id
from quarterdeck.fronts.http.access import Access
from quarterdeck.fronts.http.roles import Person
from quarterdeck.fronts.http.stream import StreamEndpoint
from quarterdeck.fronts.peers import PREFIX, PeerClient, PeerEndpoint, Sealer, shared_secret
from quarterdeck.hub.fleet import Fleet, act_as
from quarterdeck.hub.hub import Hub
from quarterdeck.journal.base import Journal
from quarterdeck.journal.engines import is_database
from quarterdeck.journal.engines import open_journal as open_any
from quarterdeck.journal.sqlite import SqliteJournal
from quarterdeck.links.websocket.accept import serve_endpoint
from quarterdeck.protocol.roles import Role
from support.fault_duties import DutyOptions, duties, together_of
from support.fault_hub import LINE_LIMIT, Question, answer, hurry, write_all

STREAM = "/api/stream"
_FOLLOWER = Person(name="follower", role=Role.VIEWER, grant="none")


class _Anybody:
    """The access of a front that has none: logins have tests of their own."""

    def is_valid(self, person: Person) -> bool:
        return person is _FOLLOWER


async def open_journal(place: str) -> Journal:
    """The journal in a shared file, or at a PostgreSQL address."""
    if is_database(place):
        return await open_any(place)
    return await SqliteJournal.open(Path(place), shared=True)


async def main(place: str, token: str, reached_at: str, options: DutyOptions | None = None) -> None:
    """`reached_at`: where other hubs reach this one. With `options` it also has duties."""
    hurry()
    journal = await open_journal(place)
    id_ = new_id()
    secret = await shared_secret(journal)
    sealer = Sealer(secret, id_)
    peers = PeerClient(sealer)
    together = None if options is None else together_of(journal, options, secret)
    fleet = Fleet(journal, "", peers, hub=id_) if together is None else together.fleet
    # A token is that of all machines, with the name of one of them.
    hub = Hub(journal, lambda given: _named(given, token), fleet=fleet)
    endpoint = (
        PeerEndpoint(hub, sealer) if together is None else together.endpoint(hub, hub.runners)
    )
    stream = StreamEndpoint(hub, cast("Access", _Anybody()))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == STREAM:
            scope["user"] = _FOLLOWER
            await stream(scope, receive, send)
        elif scope["type"] == "http" and str(scope["path"]).startswith(PREFIX):
            await endpoint(scope, receive, send)
        else:
            await hub.runners(scope, receive, send)

    loop = asyncio.get_running_loop()
    questions = asyncio.StreamReader(limit=LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(questions), sys.stdin)

    async def serve_one(line: bytes) -> None:
        question = msgspec.json.decode(line, type=Question)
        with act_as(Role.OWNER, "a person"):
            reply = await answer(hub, Path(place), question)
        data = msgspec.json.encode(reply) + b"\n"
        await anyio.to_thread.run_sync(write_all, data)

    try:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(hub.run())
            bound = await stack.enter_async_context(serve_endpoint(app))
            fleet.reached_at(reached_at)
            if together is not None and options is not None:
                await stack.enter_async_context(together.run(hub, reached_at))
                await stack.enter_async_context(duties(hub, together, options))
            write_all(f"{bound}\n".encode())
            async with anyio.create_task_group() as tasks:
                loop.add_signal_handler(signal.SIGTERM, tasks.cancel_scope.cancel)
                while line := await questions.readline():
                    tasks.start_soon(serve_one, line)
                tasks.cancel_scope.cancel()
    finally:
        await peers.close()
        await journal.close()


def _named(given: str, token: str) -> str | None:
    secret, _, machine = given.partition("/")
    return machine if secret == token and machine else None
