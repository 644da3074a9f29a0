"""`Hub`: the client for programs. It finds the hub, waits for one that is away, and sends again.

Owns what a program should not notice: a hub that restarts, at another address perhaps, and answers
that were lost with it. A command is sent again only if that cannot do anything twice; the ids that
make it so are chosen here. Above are programs; below is `HubClient`, one request at a time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar
from uuid import uuid4

import anyio
import anyio.to_thread
from msgspec.structs import replace

from quarterdeck.client import calls
from quarterdeck.client.all_events import AllEvents
from quarterdeck.client.asks import DecideAsk, HubAsk, hub_ask_of, to_answer
from quarterdeck.client.attempts import Attempts, is_repeatable
from quarterdeck.client.calls import (
    Call,
    HubAddress,
    HubConflict,
    HubNotFound,
    HubOffline,
    content_of,
)
from quarterdeck.client.hub import SECONDS, HubClient
from quarterdeck.client.hub_session import HubSession
from quarterdeck.client.local import address_in, local_address, read_token
from quarterdeck.domain.errors import NotFound, QuarterdeckError, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import ABSENT
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import Answer, AnyCommand, CreateSession, Outcome
from quarterdeck.protocol.sandbox import SandboxMode
from quarterdeck.protocol.sessions import Budget, SessionSpec
from quarterdeck.protocol.views import AskView, EventShape
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.wire.decisions import Allow, Decision, Deny

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from quarterdeck.client.calls import Content

AWAY_SECONDS = 300.0
"""How long a command waits for a hub that is away. A restart takes a few seconds."""

T = TypeVar("T")


class Startable(Protocol):
    """What can become a session: `quarterdeck.Options` can."""

    def create_command(self, *, here: str | None) -> CreateSession:
        """The command that creates it. `here` is what relative paths are relative to."""


class Hub(HubClient):
    """The hub, for programs; an async context manager.

        async with Hub() as hub:
            async with await hub.start(Options(cwd="."), "Run the tests.") as session:
                print(await session.first.text())

    Without an address it is the hub that `QUARTERDECK_URL` names, or else the one of this user on
    this machine. `token` is for an address; `token_file` is a file that holds one. A hub that is
    away is waited for, for `away_seconds` at most, and looked for again.

    Methods raise `HubRefused` where the hub refuses (`HubNotFound`, `HubConflict`, `HubForbidden`,
    `HubInvalid`), `HubOffline` where none answers, and `AnswerLost` where a command that must not
    be sent twice may have been executed.
    """

    patient = True

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        token_file: str | Path | None = None,
        timeout: float = SECONDS,
        away_seconds: float = AWAY_SECONDS,
        insecure: bool = False,
        ca_file: str | Path | None = None,
    ) -> None:
        self._find = _finder(address, token, token_file, insecure, ca_file)
        self._timeout = timeout
        self._away_seconds = away_seconds
        self._http = None
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        await self.locate()
        await super().__aenter__()
        self._tasks = await self._stack.enter_async_context(background_tasks())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tasks = None
        await super().__aexit__(kind, error, trace)

    async def locate(self) -> HubAddress:
        """Where the hub is now. Raises `HubOffline`."""
        self.where = await anyio.to_thread.run_sync(self._find)
        return self.where

    # --- sending -------------------------------------------------------------------------------

    async def call(self, call: Call[T]) -> T:
        """Send any call, and give its answer. One that only reads is sent again if it is lost."""
        attempts = self._attempts(safe=call.method == "GET")
        return await self._until_answered(partial(super().call, call), attempts)

    async def submit(self, command: AnyCommand) -> Outcome:
        """Send any command; again, if no answer came and it can be executed only once."""
        call = calls.submit(command)
        attempts = self._attempts(safe=is_repeatable(command))
        try:
            return await self._until_answered(partial(super().call, call), attempts)
        except (HubConflict, HubNotFound) as error:
            again = attempts.count > 1
            if again and (done := await self._done_before(command, error)) is not None:
                return done
            raise

    def _attempts(self, *, safe: bool) -> Attempts:
        return Attempts(anyio.current_time(), self._away_seconds, safe=safe)

    async def _until_answered(self, send: Callable[[], Awaitable[T]], attempts: Attempts) -> T:
        """Send until there is an answer, the time is over, or it must not be sent again."""
        while True:
            try:
                return await send()
            except QuarterdeckError as error:
                pause = attempts.again(error, anyio.current_time())
            await anyio.sleep(pause)
            with suppress(HubOffline):  # the next attempt tells
                await self.locate()

    async def _done_before(
        self, command: AnyCommand, error: HubConflict | HubNotFound
    ) -> Outcome | None:
        """The outcome of a command that was executed at an attempt whose answer was lost."""
        code = error.problem.code
        match command:
            case cmd.DeleteSession(session=session) if code == "not_found":
                return Outcome(session=session, repeated=True)
            case cmd.ResumeSession(session=session) if code == "running":
                return Outcome(session=session, repeated=True)
            case cmd.AnswerAsk(ask=ask) if code == "already_answered":
                session, me = ask.partition(".")[0], (await self.whoami()).name
                async for shape in self.audit(session):
                    if isinstance(shape.event, ev.AskAnswered) and shape.event.ask == ask:
                        mine = shape.event.by == me
                        return Outcome(session=session, ask=ask, repeated=True) if mine else None
            case _:
                pass
        return None

    # --- sessions ------------------------------------------------------------------------------

    async def start(
        self,
        options: SessionSpec | Startable | None = None,
        prompt: Content | None = None,
        *,
        decide: DecideAsk | None = None,
        session: str | None = None,
        name: str | None = None,
        machine: str | None = None,
        policy: str | None = None,
        sandbox: SandboxMode | None = None,
        budget: Budget | None = None,
        auto_approve: tuple[str, ...] = (),
        ask_timeout: float | None = None,
    ) -> HubSession:
        """Create a session with these options, start its agent, and send it the first prompt.

        `options` are `quarterdeck.Options`, or a `SessionSpec` with all that the hub has. What a
        session of the hub cannot have is refused with a `UsageError`. Paths that are not absolute
        are those of this program, if the agent runs on this machine. With a `session` id of your
        choice a second call finds the same session. `decide` answers its questions while it is
        followed; without it they wait for a person.
        """
        command = self._command(options, machine)
        more = {
            "name": name,
            "machine": machine,
            "policy": policy,
            "sandbox": sandbox,
            "budget": budget,
            "auto_approve": auto_approve or None,
            "ask_timeout": ask_timeout,
        }
        spec = replace(command.spec, **{k: v for k, v in more.items() if v is not None})
        first = None if prompt is None else str(uuid4())
        command = replace(
            command,
            spec=spec,
            session=session or new_id(),
            prompt=ABSENT if prompt is None else content_of(prompt),
            prompt_id=first,
        )
        made = await self.submit(command)
        return HubSession(self, made.session, decide=decide, first=first)

    def _command(
        self, options: SessionSpec | Startable | None, machine: str | None
    ) -> CreateSession:
        if isinstance(options, SessionSpec):
            return CreateSession(spec=options)
        here = str(Path.cwd()) if self._find is local_address and machine is None else None
        if options is not None:
            return options.create_command(here=here)
        if here is None:
            raise UsageError("options: on another machine the folder must be given")
        return CreateSession(spec=SessionSpec(directory=here))

    async def create(
        self,
        spec: SessionSpec,
        *,
        prompt: Content | None = None,
        session: str | None = None,
        cli_session: str | None = None,
    ) -> HubSession:
        """Create a session from a spec; it may go on with a conversation of the CLI."""
        command = CreateSession(
            spec=spec,
            session=session or new_id(),
            prompt=ABSENT if prompt is None else content_of(prompt),
            prompt_id=None if prompt is None else str(uuid4()),
            cli_session=cli_session,
        )
        made = await self.submit(command)
        return HubSession(self, made.session, first=command.prompt_id)

    def session(self, session: str, *, decide: DecideAsk | None = None) -> HubSession:
        """A session by its id. It is not looked up before it is used."""
        return HubSession(self, session, decide=decide)

    # --- all sessions --------------------------------------------------------------------------

    async def asks(self, session: str | None = None, *, ended: bool = False) -> tuple[HubAsk, ...]:
        """The open questions, oldest first; also (`ended`) those whose agent has ended."""
        return tuple(map(hub_ask_of, await super().asks(session, ended=ended)))

    async def answer(self, ask: str | AskView, answer: Answer | Decision) -> Outcome:
        """Answer a question, as the library or as the hub has it. The first answer counts."""
        if isinstance(answer, Allow | Deny):
            if isinstance(ask, str):
                found = [each for each in await self.asks(ended=True) if each.id == ask]
                if not found:
                    raise NotFound("open question", ask)
                ask = found[0]
            answer = to_answer(ask.opened, answer)
        id_ = ask if isinstance(ask, str) else ask.opened.ask
        return await self.submit(cmd.AnswerAsk(ask=id_, answer=answer))

    async def follow(self, after: int | None = None) -> AsyncGenerator[EventShape]:
        """The events of all sessions, from the first iteration on, or after a position (0: all).

        It goes on after the last event when the hub was away. Raises `HubRefused`, or `Conflict`
        if the hub came back with another journal. Close it with `aclosing`.
        """
        if self._tasks is None:
            raise UsageError("the client is not open: use it with `async with`")
        send, receive = anyio.create_memory_object_stream[EventShape](0)
        failures: list[QuarterdeckError] = []
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope, send:
                try:
                    await AllEvents(self.locate, send.send, after).run()
                except QuarterdeckError as error:
                    failures.append(error)

        self._tasks.start_soon(run)
        try:
            with receive:
                async for shape in receive:
                    yield shape
        finally:
            scope.cancel()
        if failures:
            raise failures[0]


def _finder(
    address: str | None,
    token: str | None,
    token_file: str | Path | None,
    insecure: bool,
    ca_file: str | Path | None,
) -> Callable[[], HubAddress]:
    """How the hub is found, each time anew. Raises `UsageError` for half an address."""
    if address is None:
        if token is not None or token_file is not None or ca_file is not None:
            raise UsageError("token, token_file and ca_file are for an address")
        named = address_in()
        return local_address if named is None else lambda: named
    file = None if token_file is None else Path(token_file).expanduser()
    if file is not None and token is None:
        token = read_token(file)
    elif file is not None or token is None:
        raise UsageError("an address needs either a token or a token_file")
    given = HubAddress(
        address=address,
        token=token,
        insecure=insecure,
        ca_file=None if ca_file is None else Path(ca_file),
    )
    # A token is renewed by replacing its file.
    return lambda: given if file is None else replace(given, token=read_token(file))
