"""The open questions of a run: from the CLI's request to a card, and to its end. Pure; below `run`.

Owns which question of ours belongs to which request of the CLI, as long as it is open. Who answers
a request without a person is `judge`'s business, and what the answer says is `answers`'.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.agent.asks import PlanAsk, QuestionsAsk, to_ask
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.secrets import mask_tokens_in
from quarterdeck.domain.structs import ABSENT
from quarterdeck.hub.permissions.answers import Reply
from quarterdeck.policy.decide import Behavior
from quarterdeck.protocol.events import (
    AskAnswered,
    AskKind,
    AskOpened,
    AskWithdrawn,
    Decided,
    Event,
)
from quarterdeck.wire.base import Message
from quarterdeck.wire.content import ToolUseBlock
from quarterdeck.wire.messages import Assistant
from quarterdeck.wire.rawjson import EMPTY, members, same_json
from quarterdeck.wire.requests import CanUseTool, Elicitation
from quarterdeck.wire.tools import describe, one_line, parse_plan

PLAN = "ExitPlanMode"


class OpenAsks:
    """The questions of one run that are open, by the id of the CLI's request."""

    def __init__(self, session: str, run: str) -> None:
        self._session = session
        self._run = run
        self._open: dict[str, str] = {}
        self._plans: dict[str, str] = {}
        self._unmasked: dict[str, Raw] = {}

    def hear(self, message: Message) -> None:
        """Keep the plan of a call: the newest versions leave it out of their request."""
        if isinstance(message, Assistant):
            for block in message.message.content:
                if isinstance(block, ToolUseBlock) and block.name == PLAN:
                    plan = parse_plan(block.input)
                    self._plans = {block.id: plan.plan} if plan and plan.plan else {}

    def has(self, request_id: str) -> bool:
        """Whether this request has a card."""
        return request_id in self._open

    def plan_of(self, request: CanUseTool) -> str | None:
        """The text of the plan that a request is about, as far as the CLI has told it."""
        plan = parse_plan(request.input)
        return (plan.plan if plan else None) or self._plans.get(request.tool_use_id)

    def restore(self, opened: AskOpened) -> None:
        """A question was opened before."""
        self._open[opened.request_id] = opened.ask

    def keep_only(self, request_ids: Iterable[str]) -> None:
        """These requests are open at the CLI: the other questions have ended."""
        still = set(request_ids)
        self._unmasked = {id_: raw for id_, raw in self._unmasked.items() if id_ in still}
        self._open = {id_: ask for id_, ask in self._open.items() if id_ in still}

    def tool(
        self,
        request_id: str,
        request: CanUseTool,
        *,
        json: Raw | None = None,
        plan: str | None = None,
    ) -> AskOpened:
        """The card for a tool, a plan (of which the text may be known), or questions.

        `json` is the request as the CLI sent it, if it did: with the members that we do not know.
        """
        ask = to_ask(request_id, request)
        kind = AskKind.TOOL
        if isinstance(ask, PlanAsk):
            kind, plan = AskKind.PLAN, self.plan_of(request) or plan
        elif isinstance(ask, QuestionsAsk):
            kind = AskKind.QUESTIONS
        return AskOpened(
            ask=self._new(request_id),
            run=self._run,
            request_id=request_id,
            ask_kind=kind,
            tool=request.tool_name,
            title=ask.action.title,
            request=self._kept(request_id, _whole(request, json)),
            tool_use_id=request.tool_use_id or None,
            agent=request.agent_id,
            plan=plan,
        )

    def elicitation(self, request_id: str, request: Elicitation, json: Raw) -> AskOpened:
        """The card for what an MCP server wants to know."""
        return AskOpened(
            ask=self._new(request_id),
            run=self._run,
            request_id=request_id,
            ask_kind=AskKind.ELICITATION,
            tool=request.mcp_server_name,
            title=one_line(request.message),
            request=json,
        )

    def answered(self, opened: AskOpened, reply: Reply, by: str, answer: Raw) -> list[Event]:
        """A person has answered: what is written down of it."""
        self._open.pop(opened.request_id, None)
        self._unmasked.pop(opened.request_id, None)
        title, rule, source = opened.title, opened.rule, opened.source
        reasons = reply.reasons
        if (edit := reply.edit) is not None:
            title = describe(opened.tool, edit.input).title
            if edit.verdict.ruled:
                rule, source = edit.verdict.rule, edit.verdict.source
                reasons = (*reasons, *edit.verdict.reasons)
        return [
            AskAnswered(
                ask=opened.ask,
                by=by,
                answer=answer,
                allowed=reply.allowed,
                input=ABSENT if edit is None else edit.verdict.input,
            ),
            Decided(
                tool=opened.tool,
                title=title,
                verdict=Behavior.ALLOW.value if reply.allowed else Behavior.DENY.value,
                by=by,
                reasons=reasons,
                tool_use_id=opened.tool_use_id,
                ask=opened.ask,
                rule=rule,
                source=source,
                branch=opened.branch,
                rewritten=edit is not None,
            ),
        ]

    def withdrawn(self, request_id: str, reason: str) -> list[Event]:
        """The CLI wants no answer any more."""
        ask = self._open.pop(request_id, None)
        self._unmasked.pop(request_id, None)
        return [AskWithdrawn(ask=ask, reason=reason)] if ask is not None else []

    def original(self, opened: AskOpened) -> AskOpened:
        """A card as it was opened: the journal has masked the hub's tokens in it.

        What is allowed must run as the agent asked for it. After a restart of the hub only what was
        masked is known: then that runs, and its token opens nothing.
        """
        kept = self._unmasked.get(opened.request_id)
        return opened if kept is None else replace(opened, request=kept)

    def _kept(self, request_id: str, request: Raw) -> Raw:
        data = bytes(request)
        if mask_tokens_in(data) is not data:
            self._unmasked[request_id] = request
        return request

    def _new(self, request_id: str) -> str:
        ask = self._open[request_id] = f"{self._session}.{new_id()}"
        return ask


def _whole(request: CanUseTool, json: Raw | None) -> Raw:
    """The request that a person sees: as it came, but with the input that would run."""
    if json is None:
        return Raw(msgspec.json.encode(request))
    found = members(json)
    if same_json(found.get("input", EMPTY), request.input):
        return json
    return Raw(msgspec.json.encode({**found, "input": request.input}))
