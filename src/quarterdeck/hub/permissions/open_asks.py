"""The open questions of a run: from the CLI's request to a card, and to its end. Pure; below `run`.

Owns which question of ours belongs to which request of the CLI, as long as it is open. `gate` says
who answers a request without a person, and `answers` what the CLI is sent.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, field

from quarterdeck.agent.asks import PlanAsk, QuestionsAsk, to_ask
from quarterdeck.domain.ids import derived_id
from quarterdeck.domain.structs import ABSENT, Mutable
from quarterdeck.hub.permissions.answers import Reply
from quarterdeck.policy.decide import Behavior
from quarterdeck.protocol.events import (
    AskAnswered,
    AskKind,
    AskOpened,
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


class OpenAsks(Mutable):
    """The questions of one run that are open, and the plans in the CLI's messages."""

    _cards: dict[str, AskOpened] = field(default_factory=dict)
    """By question."""
    _by_request: dict[str, str] = field(default_factory=dict)
    _plans: dict[str, str] = field(default_factory=dict)

    # --- the fold --------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        """Keep the plan of a call: the newest versions leave it out of their request."""
        if isinstance(message, Assistant):
            for block in message.message.content:
                if isinstance(block, ToolUseBlock) and block.name == PLAN:
                    plan = parse_plan(block.input)
                    self._plans = {block.id: plan.plan} if plan and plan.plan else {}

    def add(self, card: AskOpened) -> None:
        """A person is asked."""
        self._cards[card.ask] = card
        self._by_request[card.request_id] = card.ask

    def remove(self, ask: str) -> AskOpened | None:
        """A question is answered or withdrawn: its card, if it is one of this run."""
        card = self._cards.pop(ask, None)
        if card is not None:
            self._by_request.pop(card.request_id, None)
        return card

    # --- what it tells ---------------------------------------------------------------------------

    @property
    def open(self) -> tuple[str, ...]:
        """The open questions, oldest first."""
        return tuple(self._cards)

    def has(self, request_id: str) -> bool:
        """Whether this request has a card."""
        return request_id in self._by_request

    def ask_of(self, request_id: str) -> str | None:
        """The question that a request has a card for."""
        return self._by_request.get(request_id)

    def original(self, card: AskOpened) -> AskOpened:
        """A card as it was opened: the journal has masked the hub's tokens in it.

        What is allowed must run as the agent asked for it. After a restart of the hub only the
        masked card is known: then that runs, and its token opens nothing.
        """
        return self._cards.get(card.ask, card)

    def plan_of(self, request: CanUseTool) -> str | None:
        """The text of the plan that a request is about, as far as it is known."""
        plan = parse_plan(request.input)
        return (plan.plan if plan else None) or self._plans.get(request.tool_use_id)


class AskFactory:
    """Makes the cards of one run. The id of a card follows from what it is about."""

    def __init__(self, session: str, run: str) -> None:
        self._session = session
        self._run = run

    def tool(
        self,
        request_id: str,
        request: CanUseTool,
        plan: str | None,
        at: int,
        *,
        number: int,
        json: Raw | None = None,
    ) -> AskOpened:
        """The card for a tool, a plan (of which the text may be known), or questions.

        It is made at a time in ms, after the line of this number. `json` is the request as the CLI
        sent it, if it did: with the members that we do not know.
        """
        ask = to_ask(request_id, request)
        kind = AskKind.TOOL
        if isinstance(ask, PlanAsk):
            kind = AskKind.PLAN
        elif isinstance(ask, QuestionsAsk):
            kind = AskKind.QUESTIONS
        return AskOpened(
            ask=self._id(request_id, number, at),
            run=self._run,
            request_id=request_id,
            ask_kind=kind,
            tool=request.tool_name,
            title=ask.action.title,
            request=_whole(request, json),
            tool_use_id=request.tool_use_id or None,
            agent=request.agent_id,
            plan=plan if kind is AskKind.PLAN else None,
        )

    def elicitation(
        self, request_id: str, request: Elicitation, json: Raw, at: int, *, number: int
    ) -> AskOpened:
        """The card for what an MCP server wants to know."""
        return AskOpened(
            ask=self._id(request_id, number, at),
            run=self._run,
            request_id=request_id,
            ask_kind=AskKind.ELICITATION,
            tool=request.mcp_server_name,
            title=one_line(request.message),
            request=json,
        )

    def _id(self, request_id: str, number: int, at: int) -> str:
        """A CLI may use the id of a request again, but not in the same line."""
        return f"{self._session}.{derived_id(at / 1000, self._run, str(number), request_id)}"


def answer_events(opened: AskOpened, reply: Reply, by: str, answer: Raw) -> list[Event]:
    """A person has answered: what is journalled of it."""
    title, rule, source = opened.title, opened.rule, opened.source
    coded = reply.coded
    if (edit := reply.edit) is not None:
        title = describe(opened.tool, edit.input).title
        if edit.verdict.ruled:
            rule, source = edit.verdict.rule, edit.verdict.source
            coded = (*coded, *edit.verdict.coded)
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
            coded=coded,
            tool_use_id=opened.tool_use_id,
            ask=opened.ask,
            rule=rule,
            source=source,
            branch=opened.branch,
            rewritten=edit is not None,
        ),
    ]


def _whole(request: CanUseTool, json: Raw | None) -> Raw:
    """The request that a person sees: as it came, but with the input that would run."""
    if json is None:
        return Raw(msgspec.json.encode(request))
    found = members(json)
    if same_json(found.get("input", EMPTY), request.input):
        return json
    return Raw(msgspec.json.encode({**found, "input": request.input}))
