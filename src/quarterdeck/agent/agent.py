"""`Agent`: drive one CLI from Python.

Owns one link and one `wire.Peer`, and moves bytes between them: a task that reads, a task that
writes, and a task for each request of the CLI, all in one task group. `controls` has the methods
that send control requests; `service` answers the CLI's requests.

Leaving the context ends the agent: the running turn is interrupted, so that its tools end too, the
CLI is asked to exit, and is then stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from weakref import WeakSet

import anyio
from anyio import CancelScope
from anyio.abc import TaskGroup
from msgspec import Raw, Struct

from quarterdeck.agent.asks import AnyAsk, to_ask
from quarterdeck.agent.controls import Controls
from quarterdeck.agent.hooks import Hook, HookTable
from quarterdeck.agent.inbox import Messages
from quarterdeck.agent.mcp.host import McpHost
from quarterdeck.agent.options import Options
from quarterdeck.agent.query import Query, as_prompt
from quarterdeck.agent.service import Decide, Elicit, Service
from quarterdeck.agent.session_store import SessionMirror, SessionStore
from quarterdeck.agent.start import (
    check_servers,
    initialize_command,
    projects_of_agent,
    restore_session,
    start_link,
    version_of,
)
from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.domain.errors import (
    LinkClosed,
    QuarterdeckError,
    RequestCancelled,
    RequestRefused,
    RequestTimeout,
    UsageError,
)
from quarterdeck.links.base import Dropped, Link, Resumed
from quarterdeck.wire.base import Message
from quarterdeck.wire.command_base import Command, decode_answer
from quarterdeck.wire.commands import EndSession, InitializeAnswer, Interrupt, SendMcpMessage
from quarterdeck.wire.control import ControlCancel, ControlRequest, ControlResponse
from quarterdeck.wire.exchange import Abandoned, Answered, Ending, Lost, Refused
from quarterdeck.wire.internal import TranscriptMirror
from quarterdeck.wire.messages import Result, StreamEvent
from quarterdeck.wire.outbound import KeepAlive, Prompt
from quarterdeck.wire.peer import Asked, Event, Peer, Recovered, RequestEnded, Withdrawn
from quarterdeck.wire.requests import CanUseTool
from quarterdeck.wire.states import State
from quarterdeck.wire.system import Init
from quarterdeck.wire.turns import PromptDropped, PromptTaken, TurnEnded
from quarterdeck.wire.versions import Version

if TYPE_CHECKING:
    from quarterdeck.agent.mcp import ToolServer

log = logging.getLogger(__name__)
R = TypeVar("R")

REQUEST_SECONDS = 60.0
"""How long we wait for an answer. 2.1.37 never answers a request that it does not know."""
START_SECONDS = 60.0
"""How long a CLI may take until it has answered `initialize`; the slowest real one takes 2 s."""
LEAVE_SECONDS = 3.0
"""How long the CLI gets for each polite way to end before the next one is tried."""
EASE_SECONDS = 1.0
"""How long the link waits for a reader of messages that does not read."""

_CONTROL_MESSAGES = (ControlRequest, ControlResponse, ControlCancel, KeepAlive)


class _Pending(Struct):
    """A request of ours with a caller that waits for its answer."""

    done: anyio.Event
    ending: Ending | None = None


class Agent(Controls):
    """A running Claude Code, to be used as an async context manager.

    ::

        async with Agent(Options(cwd="."), decide=ask_me) as agent:
            async for message in agent.query("What is in this folder?"):
                print(message)

    `decide` answers permission requests; without it, all are denied. `hooks` are Python functions
    that the CLI calls, `tools` are MCP servers in this process, `elicit` answers the questions of
    other MCP servers. `link` replaces the process: a pipe to a CLI that was started elsewhere. If
    its `version` is given, the agent can use version-dependent requests before the CLI reports its
    version. `stderr` gets each line of the process's stderr. `session_store` gets a copy of the
    transcript, and a session that is resumed is taken from it.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        decide: Decide | None = None,
        hooks: Iterable[Hook] = (),
        tools: Iterable[ToolServer] = (),
        elicit: Elicit | None = None,
        link: Link | None = None,
        version: Version | None = None,
        stderr: Callable[[str], None] | None = None,
        session_store: SessionStore | None = None,
        start_timeout: float = START_SECONDS,
    ) -> None:
        self.options = options or Options()
        self.info: InitializeAnswer | None = None
        self._decide = decide
        self._elicit = elicit
        self._hooks = HookTable(hooks)
        self._servers = tuple(tools)
        check_servers(self.options, [server.name for server in self._servers])
        self._given_link = link
        self._given_version = version
        self._stderr = stderr
        self._store = session_store
        self._mirror: SessionMirror | None = None
        self._ended = anyio.Event()
        if session_store is not None and link is not None:
            raise UsageError("session_store: it needs a CLI that this agent starts")
        self._start_timeout = start_timeout
        self._queries: dict[str, Query] = {}
        # Weak references: a caller may drop its messages without notice.
        self._readers: WeakSet[Messages] = WeakSet()
        self._pending: dict[str, _Pending] = {}
        self._closed: LinkClosed | None = None
        self._failure: LinkClosed | None = None
        self._peer = Peer(version=version)
        self._tasks: TaskGroup | None = None
        self._last_result: Result | None = None
        self._started = False

    # --- its life -------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._started:
            raise UsageError("an Agent is started once; make another one")
        self._started = True
        self._stack = AsyncExitStack()
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self._stop()

    async def _start(self) -> None:
        version, link = self._given_version, self._given_link
        if link is None:
            files = self._stack.enter_context(ArgumentFiles())
            options = self.options
            if self._store is not None:
                projects = projects_of_agent(options)
                options = await restore_session(options, self._store, projects)
                self._mirror = SessionMirror(
                    self._store, projects, lambda failure: self._deliver([failure])
                )
            hooked = bool(self._hooks.matchers()) or self._decide is not None
            version, link = await start_link(options, files, self._stderr, hooked=hooked)
        elif version is None:
            version = version_of(link)
        self._link = link
        self._stack.push_async_callback(self._close_link, link)
        bypass = (
            self.options.dangerously_skip_permissions
            or self.options.allow_dangerously_skip_permissions
            or self.options.permission_mode == "bypassPermissions"
        )
        self._peer = Peer(version=version, bypass_allowed=bypass, resumable=link.resumable)
        self._wake = anyio.Event()
        mcp = await self._stack.enter_async_context(McpHost(self._servers, self._send_mcp))
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._tasks = tasks
        self._service = Service(
            peer=self._peer,
            tasks=tasks,
            flush=self._flush,
            decide=self._decide,
            elicit=self._elicit,
            hooks=self._hooks,
            mcp=mcp,
            bypass_allowed=bypass,
        )
        tasks.start_soon(self._read)
        tasks.start_soon(self._write)
        if self._mirror is not None:
            tasks.start_soon(self._mirror.run)
        command = initialize_command(
            self.options, self._hooks.matchers(), [server.name for server in self._servers]
        )
        try:
            self.info = await self.request(command, timeout=self._start_timeout)
        except RequestRefused as refused:
            # A CLI that connected to us may have been initialised before.
            if "Already initialized" not in refused.error:
                raise

    async def _stop(self) -> None:
        with CancelScope(shield=True):
            if self._tasks is not None and self._closed is None:
                await self._request_end()
                if self._mirror is not None:  # its last lines are for the store, too
                    with anyio.move_on_after(LEAVE_SECONDS):
                        await self._ended.wait()
            if self._tasks is not None:
                if self._mirror is not None:
                    await self._mirror.finish()
                self._tasks.cancel_scope.cancel()
        await self._stack.aclose()
        if self._closed is None:
            # The reader was stopped before it saw the end. Other tasks may still wait for one.
            self._end(LinkClosed("The agent was closed."), None)

    async def _request_end(self) -> None:
        """Ask the CLI to stop its turn and to exit. If it does not, the link stops it."""
        try:
            if self._peer.turns.in_turn or self._peer.state is State.WAITING:
                await self.request(Interrupt(), timeout=LEAVE_SECONDS)
            await self.request(EndSession(), timeout=LEAVE_SECONDS)
        except QuarterdeckError as error:
            log.debug("the CLI did not exit when asked: %s", error)

    async def _close_link(self, link: Link) -> None:
        with CancelScope(shield=True):
            await link.close()

    # --- properties -----------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The CLI's state; `State.NEW` before the start, `State.CLOSED` after the end."""
        return self._peer.state

    @property
    def version(self) -> Version | None:
        """The CLI's version, once it is known."""
        return self._peer.version

    @property
    def session_id(self) -> str | None:
        """The session's id. Known with the first message of the first turn; may change."""
        return self._peer.session_id

    @property
    def init(self) -> Init | None:
        """The CLI's `init` message of the last turn: tools, model, mode and more."""
        return self._peer.init

    @property
    def asks(self) -> tuple[AnyAsk, ...]:
        """The permission requests that are open, oldest first."""
        return tuple(
            to_ask(message.request_id, message.request)
            for message in self._peer.asks
            if isinstance(message.request, CanUseTool)
        )

    # --- prompts and messages -------------------------------------------------------------

    def query(self, prompt: str | Prompt) -> Query:
        """A prompt that is sent on the first iteration; yields the messages until its turn ends."""
        return Query(as_prompt(prompt), self._submit)

    async def prompt(self, prompt: str | Prompt) -> Query:
        """Send a prompt now. While a turn runs the CLI queues it, or folds it into the turn."""
        query = self.query(prompt)
        await query.send()
        return query

    def messages(self) -> Messages:
        """Every message of the CLI from now on, control messages too, until it ends.

        Messages are kept from this call on, as long as the returned object exists: iterate over it
        at once or later, drop it, or use it as an async context manager. It may be called before
        the agent is started, so that the first message is not missed.
        """
        messages = Messages()
        if self._closed is None:
            self._readers.add(messages)
        else:
            messages.end(self._failure)
        return messages

    async def _submit(self, query: Query) -> None:
        self._check_open()
        direct = not self._peer.turns.busy or not self.options.replay_user_messages
        self._peer.prompt(query.prompt)
        self._queries[query.uuid] = query
        if not direct:
            query.hold()
        self._flush()
        await anyio.lowlevel.checkpoint()

    # --- requests -------------------------------------------------------------------------

    async def request(self, command: Command[R], *, timeout: float = REQUEST_SECONDS) -> R:
        """Send any control request and wait for its answer.

        Raises `UnsupportedError` if the CLI's version does not know it, `RequestRefused` if the
        CLI says no, `RequestTimeout` if it says nothing, `LinkClosed` if it is gone.
        """
        self._check_open()
        request_id = self._peer.request(command)
        pending = self._pending[request_id] = _Pending(anyio.Event())
        self._flush()
        try:
            with anyio.move_on_after(timeout):
                await pending.done.wait()
        finally:
            del self._pending[request_id]
            if pending.ending is None:
                self._peer.give_up(request_id, "the caller no longer waits")
                self._flush()
        match pending.ending:
            case Answered(json=json):
                return decode_answer(command, json)
            case Refused(error=error, code=code):
                raise RequestRefused(command.subtype, error, code=code)
            case Lost(reason=reason):
                raise self._closed or RequestCancelled(command.subtype, reason)
            case Abandoned(reason=reason):
                raise RequestCancelled(command.subtype, reason)
            case None:
                raise RequestTimeout(command.subtype, timeout)

    def _check_started(self) -> None:
        if not self._started:
            raise UsageError("the agent has not been started; use it with `async with`")

    def _check_open(self) -> None:
        self._check_started()
        if self._closed is not None:
            raise self._closed

    async def cancel_prompt(self, uuid: str) -> bool:
        """Take a queued prompt back. False if it was no longer in the queue. (2.1.92)"""
        cancelled = await super().cancel_prompt(uuid)
        if cancelled:
            self._handle(self._peer.prompt_cancelled(uuid))
        return cancelled

    async def set_environment(self, variables: Mapping[str, str]) -> None:
        """Set variables for the tools that the CLI starts from now on. (up to 2.1.120)"""
        self._check_open()
        self._peer.set_environment(variables)
        self._flush()
        await anyio.lowlevel.checkpoint()

    async def _send_mcp(self, server_name: str, message: Raw) -> None:
        """Send a message of one of our tool servers to the CLI."""
        await self.request(SendMcpMessage(server_name=server_name, message=message))

    # --- the tasks ------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            while True:
                got = await self._link.receive()
                match got:
                    case bytes():
                        self._handle(self._peer.receive_data(got))
                    case Dropped():
                        self._peer.link_lost()
                    case Resumed():
                        self._handle(self._peer.link_resumed(got.last_request_id))
                self._flush()
                await self._ease()
                if self._mirror is not None:
                    await self._mirror.ease()
        except LinkClosed as closed:
            self._handle(self._peer.receive_eof())
            explained = self._explain(closed)
            self._end(explained, None if closed.clean else explained)

    async def _ease(self) -> None:
        """Let slow readers catch up. No reader is held on to when this is done."""
        for inbox in (*self._queries.values(), *self._readers):
            if inbox.crowded and not self._pending:
                await inbox.ease(EASE_SECONDS)

    def _end(self, closed: LinkClosed, failure: LinkClosed | None) -> None:
        """End everything that is open with the link. `failure` is raised for readers of
        messages.
        """
        self._closed, self._failure = closed, failure
        self._handle(self._peer.link_closed(closed.reason))
        for messages in self._readers:
            messages.end(failure)
        self._ended.set()

    def _flush(self) -> None:
        """Wake the writer to send the peer's data."""
        self._wake.set()

    async def _write(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                if data := self._peer.data_to_send():
                    await self._link.send(data)
        except LinkClosed:
            pass  # The reader sees it too, and ends everything.

    def _explain(self, closed: LinkClosed) -> LinkClosed:
        """Some start-up errors come as a result and not on stderr."""
        last = self._last_result
        if last is None or not last.failed or not last.errors or closed.clean:
            return closed
        return closed.copy("; ".join(last.errors))

    def _handle(self, events: list[Event]) -> None:
        batch: list[Message] = []
        for event in events:
            if type(event) is StreamEvent:  # by far the most
                batch.append(event)
            elif isinstance(event, _CONTROL_MESSAGES):
                self._deliver(batch)
                batch = []
                for inbox in self._readers:
                    inbox.put([event])
            elif isinstance(event, Message):
                batch.append(event)
                if isinstance(event, Result):
                    self._last_result = event
                elif self._mirror is not None and isinstance(event, TranscriptMirror):
                    self._mirror.put(event)
            else:
                self._deliver(batch)
                batch = []
                self._act(event)
        self._deliver(batch)

    def _deliver(self, batch: list[Message]) -> None:
        if batch:
            for inbox in (*self._readers, *self._queries.values()):
                inbox.put(batch)

    def _act(self, event: Event) -> None:
        match event:
            case Asked(request=request):
                self._service.serve(request)
            case Withdrawn(request_id=request_id):
                self._service.withdraw(request_id)
            case RequestEnded(request_id=request_id, ending=ending):
                if (pending := self._pending.get(request_id)) is not None:
                    pending.ending = ending
                    pending.done.set()
            case PromptTaken(uuid=uuid):
                if uuid in self._queries:
                    self._queries[uuid].release()
            case PromptDropped(uuid=uuid, state=state):
                if (query := self._queries.pop(uuid, None)) is not None:
                    query.drop(state, self._closed)
            case TurnEnded(turn=turn):
                for uuid in turn.prompts:
                    if (query := self._queries.pop(uuid, None)) is not None:
                        query.close(turn)
                for query in self._queries.values():
                    query.discard()
            case Recovered(complete=False):
                log.warning("the connection was lost, and some messages of the CLI with it")
            case _:
                pass
