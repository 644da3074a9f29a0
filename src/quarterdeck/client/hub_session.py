"""A session of the hub with the interface of `Agent`: what `Hub` gives to programs.

Owns what a program adds to a `SessionClient`: queries, decisions about questions, control requests
as typed methods. Everything goes through the hub's commands. Which of them are sent again after a
lost answer is known by `Hub`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Self, TypeVar

import anyio
import msgspec
from msgspec import Raw

from quarterdeck.client.asks import DecideAsk, HubAsk, to_answer
from quarterdeck.client.query import HubQuery, HubTurn
from quarterdeck.client.session import SessionClient
from quarterdeck.domain.errors import Conflict, NotFound, QuarterdeckError, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import Answer, Outcome
from quarterdeck.protocol.shapes import SessionChanges
from quarterdeck.protocol.views import AskView, Rewound
from quarterdeck.wire.command_base import Command, decode_answer
from quarterdeck.wire.controls import SessionControls
from quarterdeck.wire.decisions import Decision

if TYPE_CHECKING:
    from quarterdeck.client.calls import Content
    from quarterdeck.client.public import Hub

R = TypeVar("R")
log = logging.getLogger(__name__)

FAILED = "The permission callback failed: {!r}"
NO_DECISION = "The permission callback must return an answer, got {!r}"


class HubSession(SessionClient, SessionControls):
    """A session; an async context manager while it is followed.

    ::

        async with await hub.start(Options(cwd="."), decide=ask_me) as session:
            async for message in session.query("What is in this folder?"):
                print(message)

    At the end of the block the session goes on: `stop` ends its CLI.
    """

    hub: Hub

    def __init__(
        self,
        hub: Hub,
        session: str,
        *,
        decide: DecideAsk | None = None,
        first: str | None = None,
    ) -> None:
        super().__init__(hub, session)
        self._decide = decide
        self._deciding = False
        self.first = None if first is None else HubTurn(self, first, 0)
        """The turn of the prompt that it was started with."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._begin_deciding()
        return self

    # --- prompts -------------------------------------------------------------------------------

    def query(
        self,
        prompt: Content,
        *,
        id: str | None = None,  # noqa: A002 - the clearest name for callers
        steer: bool = False,
    ) -> HubQuery:
        """A prompt that is sent on the first iteration; yields the messages until its turn ends.

        An `id` of your choice makes it idempotent over runs of the program. With `steer` it is sent
        into the running turn.
        """
        return HubQuery(self, prompt, id=id, steer=steer)

    async def prompt(
        self,
        prompt: Content,
        *,
        id: str | None = None,  # noqa: A002 - as above
        steer: bool = False,
    ) -> HubQuery:
        """Send a prompt now; it is queued while a turn runs."""
        query = self.query(prompt, id=id, steer=steer)
        await query.send()
        return query

    # --- questions -----------------------------------------------------------------------------

    async def asks(self) -> tuple[HubAsk, ...]:
        """The open questions of the session, oldest first."""
        return await self.hub.asks(self.id)

    async def answer(self, ask: str | AskView, answer: Answer | Decision) -> Outcome:
        """Answer a question, as the library or as the hub has it. The first answer counts."""
        return await self.hub.answer(ask, answer)

    def decide(self, function: DecideAsk | None) -> None:
        """Have a function answer this session's questions from now on; None leaves them to people.

        Others may answer them as well: the first answer counts. A function that fails denies. The
        forms of MCP servers are left to people.
        """
        self._decide = function
        self._begin_deciding()

    def _begin_deciding(self) -> None:
        if self._decide is not None and self._tasks is not None and not self._deciding:
            self._deciding = True
            self._tasks.start_soon(self._answer_asks)

    async def _answer_asks(self) -> None:
        after, scopes = self._seen, dict[str, anyio.CancelScope]()
        try:
            async with anyio.create_task_group() as group:
                for ask in await self.asks():
                    scopes[ask.id] = anyio.CancelScope()
                    group.start_soon(self._settle, ask, scopes[ask.id])
                async for shape in self.events(after):
                    match shape.event:
                        case ev.AskOpened(ask=id_) as opened if id_ not in scopes:
                            asked = HubAsk(
                                session=self.id, seq=shape.seq, at=shape.at, opened=opened
                            )
                            scopes[id_] = anyio.CancelScope()
                            group.start_soon(self._settle, asked, scopes[id_])
                        case ev.AskAnswered(ask=id_) | ev.AskWithdrawn(ask=id_) if id_ in scopes:
                            scopes[id_].cancel()
                        case _:
                            pass
        except* QuarterdeckError as errors:
            self._fail(_first(errors))

    async def _settle(self, ask: HubAsk, scope: anyio.CancelScope) -> None:
        """Have the function answer one question, unless another answer is faster."""
        function = self._decide
        if function is None or ask.kind is ev.AskKind.ELICITATION:
            return
        with scope:
            try:
                decision: object = function(ask)
                if inspect.isawaitable(decision):
                    decision = await _result(decision)
                answer = _check_answer(ask, decision)
            except Exception as error:  # a callback that fails denies
                log.exception("the permission callback failed for %s", ask.tool_name)
                answer = _denial(ask, FAILED.format(error))
            try:
                await self.answer(ask, answer)
            except (Conflict, NotFound) as error:
                log.debug("the question %s was settled by another answer: %s", ask.id, error)

    # --- the session ---------------------------------------------------------------------------

    async def fork(
        self,
        *,
        at: str | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> HubSession:
        """Another session that begins with a copy of this one, up to the message `at`."""
        command = cmd.ForkSession(session=self.id, at=at, name=name, copy=id or new_id())
        made = await self.hub.submit(command)
        return HubSession(self.hub, made.session, decide=self._decide)

    async def rename(self, name: str) -> None:
        """Give the session a name."""
        await self.change(SessionChanges(name=name))

    async def set_effort(self, effort: str | None) -> None:
        """Change the effort: low, medium, high …; None leaves it to the CLI. (2.1.52)"""
        await self.apply_settings({"effortLevel": effort})

    async def rewind(
        self,
        prompt: str | HubTurn,
        *,
        files: bool = True,
        conversation: bool = False,
        dry_run: bool = False,
    ) -> Rewound:
        """Go back to before a prompt: with the files, the conversation, or both.

        Gives what changes; with `dry_run`, what would change.
        """
        command = cmd.RewindSession(
            session=self.id,
            prompt=prompt if isinstance(prompt, str) else prompt.prompt,
            files=files,
            conversation=conversation,
            dry_run=dry_run,
        )
        return msgspec.json.decode((await self.hub.submit(command)).answer, type=Rewound)

    async def request(self, command: Command[R], *, timeout: float = 60.0) -> R:
        """Send any control request to its CLI and wait for its answer.

        Raises `HubRefused` where the hub or the CLI says no.
        """
        answer = await self.control(Raw(msgspec.json.encode(command)), timeout=timeout)
        return decode_answer(command, answer)


async def _result(later: Awaitable[object]) -> object:
    return await later


def _check_answer(ask: HubAsk, decision: object) -> Answer:
    if not isinstance(decision, Answer | Decision):
        raise UsageError(NO_DECISION.format(decision))
    return to_answer(ask.opened, decision)


def _denial(ask: HubAsk, message: str) -> Answer:
    match ask.kind:
        case ev.AskKind.PLAN:
            return cmd.PlanAnswer(choice="reject", feedback=message)
        case ev.AskKind.QUESTIONS:
            return cmd.SkipAnswer(message=message)
        case _:
            return cmd.DenyAnswer(message=message)


def _first(errors: BaseExceptionGroup[QuarterdeckError]) -> QuarterdeckError:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, QuarterdeckError)
    return found
