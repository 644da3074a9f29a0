"""One session of the hub, with the interface of `Agent` where the same thing is meant.

Commands need no more than the session's id. As an async context manager it follows the session:
`view` is then the hub's newest view, and `events`, `messages` and the turns of prompts are read as
they happen. It reconnects when the hub was away.

A reader keeps a number and no queue: it reads the newest events from a bounded tail, and older ones
from the hub. So a reader may be slow, or stop, and holds up nothing. Nothing is folded here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode
from weakref import WeakSet

import anyio
import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from quarterdeck.client import calls
from quarterdeck.client.calls import Content, content_of
from quarterdeck.client.feed import Feed
from quarterdeck.client.live_reader import LiveReader
from quarterdeck.client.query import HubTurn, message_of
from quarterdeck.domain.errors import QuarterdeckError, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import Answer, Outcome
from quarterdeck.protocol.machine_requests import Changes, Settled, StoredFile
from quarterdeck.protocol.shapes import SessionChanges, WorktreeAction
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import AskView, EventShape, PromptView, SessionShape
from quarterdeck.runtime.tasks import background_tasks

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from quarterdeck.client.hub import HubClient
    from quarterdeck.wire.base import Message

LARGEST_EXPORT = 256 * 1024 * 1024
TAIL = 1000
"""Events that are kept for the readers of one session."""


class SessionClient:
    """A session; an async context manager while it is followed.

    async with hub.session(id) as session:
        async for message in await session.prompt("Run the tests."):
            print(message)
    """

    def __init__(self, hub: HubClient, session: str) -> None:
        self.hub = hub
        self.id = session
        self._view: SessionShape | None = None
        self._seen = 0
        self._tail: deque[EventShape] = deque(maxlen=TAIL)
        self._news = anyio.Event()
        self._live: WeakSet[LiveReader] = WeakSet()
        self._failure: QuarterdeckError | None = None
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup | None = None

    # --- following -----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._view = replace(await self.read(), offers=None)  # as the stream gives it
        self._seen = self._view.head
        self._tasks = await self._stack.enter_async_context(background_tasks())
        self._tasks.start_soon(self._follow)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._view = self._tasks = None
        await self._stack.aclose()

    @property
    def seen(self) -> int | None:
        """The number of the last event that came; None unless the session is followed."""
        return None if self._view is None else self._seen

    @property
    def view(self) -> SessionShape:
        """The hub's newest view of the session, but for `offers`, which `read` gives.

        Raises `UsageError` unless the session is followed.
        """
        if self._view is None:
            raise UsageError("the session is not followed: use it with `async with`")
        return self._view

    async def wait_for(self, wanted: Callable[[SessionShape], bool]) -> SessionShape:
        """Wait until the view is as wanted, and give it. Bound it with `anyio.fail_after`."""
        while not wanted(self.view):
            await self._wait()
        return self.view

    async def events(self, after: int | None = None) -> AsyncGenerator[EventShape]:
        """Events after a number (0 for all of the history), or from now on; then as they happen.

        Ends when the session is deleted. Raises what ended the connection for good, and
        `UsageError` for a number that the session has not come to.
        """
        head = max(self._seen, self.view.head)
        cursor = self._seen if after is None else after
        if cursor > head:
            raise UsageError(f"after: the session {self.id} has no event {cursor} yet")
        while True:
            batch = self._recent(cursor)
            if not batch and cursor < self._seen:
                batch = (await self.hub.call(calls.events(self.id, cursor))).events
            for shape in batch:
                cursor = shape.seq
                yield shape
                if isinstance(shape.event, ev.SessionDeleted):
                    return
            if not batch:
                await self._wait()

    async def messages(self, after: int | None = None) -> AsyncGenerator[Message]:
        """The messages that the CLI says, as `Agent.messages` gives them."""
        async with aclosing(self.events(after)) as events:
            async for shape in events:
                if (message := message_of(shape.event)) is not None:
                    yield message

    def live(self) -> AsyncGenerator[Live]:
        """Text that is being generated, from now on, a frame for each block of a message.

        It is sent once and not kept: `messages` gives each message when it is complete. A slow
        reader gets more text at a time. Raises what ended the connection for good.
        """
        self.view  # noqa: B018 - raises unless the session is followed
        reader = LiveReader()
        self._live.add(reader)
        return self._read_live(reader)

    async def _read_live(self, reader: LiveReader) -> AsyncGenerator[Live]:
        while True:
            frames = reader.take()
            for frame in frames:
                yield frame
            if not frames:
                await self._wait()

    # --- prompts and questions -----------------------------------------------------------------

    async def prompt(
        self,
        prompt: Content,
        *,
        id: str | None = None,  # noqa: A002 - the clearest name for callers
        steer: bool = False,
    ) -> HubTurn:
        """Send a prompt; it is queued while a turn runs. An `id` of your choice is idempotent.

        With `steer` it is sent into the running turn instead, and the turn is then this one's too.
        """
        after = self._seen if self._view is not None else None
        command = cmd.SendPrompt(
            session=self.id, prompt=id or new_id(), content=content_of(prompt), steer=steer
        )
        outcome = await self.hub.submit(command)
        # The turn of a prompt that was sent before may be over by now.
        return HubTurn(self, command.prompt, 0 if outcome.repeated else after)

    async def change_prompt(self, prompt: str, content: Content) -> Outcome:
        """Change a queued prompt."""
        command = cmd.ChangePrompt(session=self.id, prompt=prompt, content=content_of(content))
        return await self.hub.submit(command)

    async def cancel_prompt(self, prompt: str) -> Outcome:
        """Cancel a queued prompt."""
        return await self.hub.submit(cmd.CancelPrompt(session=self.id, prompt=prompt))

    async def prompts(self) -> tuple[PromptView, ...]:
        """The queued prompts, in their order."""
        return (await self.hub.call(calls.prompts(self.id))).prompts

    async def asks(self) -> tuple[AskView, ...]:
        """The open questions of the session, oldest first."""
        return await self.hub.asks(self.id)

    async def answer(self, ask: str | AskView, answer: Answer) -> Outcome:
        """Answer a question. The first answer counts; a later one is refused."""
        id_ = ask if isinstance(ask, str) else ask.opened.ask
        return await self.hub.submit(cmd.AnswerAsk(ask=id_, answer=answer))

    # --- the session ---------------------------------------------------------------------------

    async def read(self) -> SessionShape:
        """The session, asked of the hub now."""
        return await self.hub.call(calls.session(self.id))

    async def interrupt(self) -> Outcome:
        """Stop the running turn. Queued prompts stay queued."""
        return await self.hub.submit(cmd.Interrupt(session=self.id))

    async def stop(self) -> Outcome:
        """End its CLI. The session stays, and can be resumed."""
        return await self.hub.submit(cmd.StopSession(session=self.id))

    async def resume(self) -> Outcome:
        """Start a CLI for it again, where the last one ended."""
        return await self.hub.submit(cmd.ResumeSession(session=self.id))

    async def move(self, machine: str, directory: str | None = None) -> Outcome:
        """Resume it on another machine, with the transcript that the journal has of it."""
        command = cmd.MoveSession(session=self.id, machine=machine, directory=directory)
        return await self.hub.submit(command)

    async def fork(self, *, at: str | None = None, name: str | None = None) -> SessionClient:
        """Another session that begins with a copy of this one, up to the message `at`."""
        made = await self.hub.submit(cmd.ForkSession(session=self.id, at=at, name=name))
        return SessionClient(self.hub, made.session)

    async def change(self, changes: SessionChanges) -> SessionShape:
        """Rename it, archive it, change its budget or what is auto-approved."""
        return await self.hub.call(calls.change(self.id, changes))

    async def delete(self) -> Outcome:
        """Delete it with its history. Its CLI must have ended."""
        return await self.hub.submit(cmd.DeleteSession(session=self.id))

    async def control(
        self, request: Mapping[str, object] | Struct | Raw, *, timeout: float = 60.0
    ) -> Raw:
        """Send a control request to its CLI, and give the answer as JSON."""
        body = request if isinstance(request, Raw) else Raw(msgspec.json.encode(request))
        command = cmd.Control(session=self.id, request=body, timeout=timeout)
        return (await self.hub.submit(command)).answer

    async def changes(self) -> Changes:
        """What it has changed in its folder."""
        return await self.hub.call(calls.diff(self.id))

    async def export(self, form: str = "markdown", *, largest: int = LARGEST_EXPORT) -> bytes:
        """The session as a file: `markdown`, `html`, or `json`, its events, one per line."""
        path = f"{calls.at(self.id, 'export')}?{urlencode({'format': form})}"
        return await self.hub.download(path, largest=largest)

    async def put_file(self, path: str, data: bytes) -> StoredFile:
        """Store a file in its folder. One that is there is not replaced."""
        return await self.hub.call(calls.put_file(self.id, path, data))

    async def settle(self, action: WorktreeAction) -> Settled:
        """Merge, keep or discard its worktree."""
        return await self.hub.call(calls.settle(self.id, action))

    # --- inside --------------------------------------------------------------------------------

    async def _follow(self) -> None:
        hub = self.hub
        feed = Feed(
            hub.locate, self.id, self._seen, _Receiver(self), views=True, patient=hub.patient
        )
        try:
            await feed.run()
        except QuarterdeckError as error:
            self._fail(error)

    def _fail(self, error: QuarterdeckError) -> None:
        """The connection has ended for good: tell all readers."""
        self._failure = error
        self._ring()

    def _recent(self, after: int) -> tuple[EventShape, ...]:
        """What follows a number; nothing if some of that is not in the tail."""
        if not self._tail or after + 1 < self._tail[0].seq:
            return ()
        start = max(0, after + 1 - self._tail[0].seq)
        return tuple(self._tail[at] for at in range(start, len(self._tail)))

    async def _wait(self) -> None:
        """Wait until something happens. Raises what ended the connection for good."""
        if self._failure is not None:
            raise self._failure
        await self._news.wait()

    def took(self, shapes: tuple[EventShape, ...]) -> None:
        """Events came by the feed."""
        if self._tail and shapes[0].seq != self._tail[-1].seq + 1:
            self._tail.clear()  # another journal has taken the place of the old one
        self._tail.extend(shapes)
        self._seen = shapes[-1].seq
        self._ring()

    def update_view(self, shape: SessionShape) -> None:
        """A view came by the feed."""
        if self._view is not None and shape.head >= self._view.head:
            self._view = shape
            self._ring()

    def pass_live(self, frame: Live) -> None:
        """Text in progress came by the feed."""
        for reader in self._live:
            reader.put(frame)
        if self._live:
            self._ring()

    def _ring(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class _Receiver:
    """What the feed of a session calls."""

    def __init__(self, session: SessionClient) -> None:
        self._session = session

    def events(self, shapes: tuple[EventShape, ...]) -> None:
        self._session.took(shapes)

    def view(self, shape: SessionShape) -> None:
        self._session.update_view(shape)

    def live(self, frame: Live) -> None:
        self._session.pass_live(frame)

    def connection_lost(self, reason: str) -> None:
        """The feed reconnects."""

    def connection_made(self) -> None:
        """It is there, for the first time or again."""
