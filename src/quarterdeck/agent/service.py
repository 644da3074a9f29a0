"""Answers to the CLI's requests: permissions, hooks, MCP messages, elicitations.

Owns one task for each open request, and the one place where an exception of the user's code becomes
an answer. Every request is answered, because a CLI waits without limit. A failure denies the tool
call, never allows it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable

from anyio import CancelScope
from anyio.abc import TaskGroup

from quarterdeck.agent.asks import Allow, AnyAsk, Decision, Deny, to_ask, to_result
from quarterdeck.agent.hooks import HookFailed, HookTable
from quarterdeck.agent.mcp.host import McpHost
from quarterdeck.wire.answers import (
    ElicitationAction,
    ElicitationAnswer,
    McpAnswer,
    PermissionResult,
)
from quarterdeck.wire.base import Part
from quarterdeck.wire.control import ControlRequest
from quarterdeck.wire.peer import Peer
from quarterdeck.wire.requests import CanUseTool, Elicitation, HookCallback, McpMessage

log = logging.getLogger(__name__)

Decide = Callable[[AnyAsk], Decision | Awaitable[Decision]]
Elicit = Callable[[Elicitation], ElicitationAnswer | Awaitable[ElicitationAnswer]]

NOBODY = "This cannot be allowed: the controlling program has no permission callback."
NO_DECISION = "The permission callback must return Allow or Deny, got {!r}."
NO_ELICITATION = "the elicit callback must return an ElicitationAnswer, got {!r}"


class Service:
    """Answers the requests of one CLI, each in its own task."""

    def __init__(
        self,
        *,
        peer: Peer,
        tasks: TaskGroup,
        flush: Callable[[], None],
        decide: Decide | None,
        elicit: Elicit | None,
        hooks: HookTable,
        mcp: McpHost,
        bypass_allowed: bool,
    ) -> None:
        self._peer = peer
        self._tasks = tasks
        self._flush = flush
        self._decide = decide
        self._elicit = elicit
        self._hooks = hooks
        self._mcp = mcp
        self._bypass_allowed = bypass_allowed
        self._running: dict[str, CancelScope] = {}

    def serve(self, message: ControlRequest) -> None:
        """Begin to answer a request."""
        # The scope is there before the task runs: a withdrawal may come in the same breath.
        scope = self._running[message.request_id] = CancelScope()
        self._tasks.start_soon(self._answer, message, scope)

    def withdraw(self, request_id: str) -> None:
        """The request was withdrawn: cancel its task."""
        if (scope := self._running.get(request_id)) is not None:
            scope.cancel()

    async def _answer(self, message: ControlRequest, scope: CancelScope) -> None:
        with scope:
            try:
                body = await self._body(message)
                self._peer.answer(message.request_id, body)
            except _CannotAnswer as error:
                self._peer.refuse(message.request_id, str(error))
            except Exception as error:  # the boundary where exceptions become answers
                log.exception("could not answer a request of the CLI")
                self._peer.refuse(message.request_id, f"the controller failed: {error!r}")
            finally:
                del self._running[message.request_id]
                self._flush()

    async def _body(self, message: ControlRequest) -> Part:
        match message.request:
            case CanUseTool() as request:
                return await self._permission(to_ask(message.request_id, request))
            case HookCallback() as request:
                try:
                    return await self._hooks.call(request)
                except HookFailed as error:
                    raise _CannotAnswer(str(error)) from error
            case McpMessage() as request:
                answer = await self._mcp.handle(request.server_name, request.message)
                return McpAnswer(mcp_response=answer)
            case Elicitation() as request:
                return await self._elicitation(request)
            case request:
                raise _CannotAnswer(f"this controller does not support {type(request).__name__}")

    async def _permission(self, ask: AnyAsk) -> PermissionResult:
        decision: Decision
        try:
            decision = await self._ask_callback(ask)
            return self._result(ask, decision)
        except Exception as error:  # a callback that fails denies
            log.exception("the permission callback failed for %s", ask.tool_name)
            return self._result(ask, Deny(f"The permission callback failed: {error!r}"))

    async def _ask_callback(self, ask: AnyAsk) -> Decision:
        if self._decide is None:
            return Deny(NOBODY)
        # A user's function may return anything, whatever its annotations say.
        decision: object = self._decide(ask)
        if inspect.isawaitable(decision):
            decision = await decision
        if isinstance(decision, Allow | Deny):
            return decision
        log.error("%s", NO_DECISION.format(decision))
        return Deny(NO_DECISION.format(decision))

    def _result(self, ask: AnyAsk, decision: Decision) -> PermissionResult:
        return to_result(
            ask, decision, version=self._peer.version, bypass_allowed=self._bypass_allowed
        )

    async def _elicitation(self, request: Elicitation) -> ElicitationAnswer:
        if self._elicit is None:
            # The form was not shown, so it was not declined.
            return ElicitationAnswer(action=ElicitationAction.CANCEL)
        answer: object = self._elicit(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, ElicitationAnswer):
            return answer
        log.error("%s", NO_ELICITATION.format(answer))
        raise _CannotAnswer(NO_ELICITATION.format(answer))


class _CannotAnswer(Exception):
    """The request can only be answered with an error. The text goes to the CLI."""
