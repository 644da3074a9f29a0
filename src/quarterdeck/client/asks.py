"""The open questions of the hub, with the methods of the library's, and their answers.

A `HubAsk` has what a client displays (`AskView`), and makes the answers that fit it. So a function
that decides for an `Agent` decides for a session of the hub as well. `to_answer` also takes the
library's `Allow` and `Deny`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import ABSENT
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    DenyAnswer,
    PlanAnswer,
    QuestionsAnswer,
    Scope,
    SkipAnswer,
)
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.views import AskView
from quarterdeck.wire.decisions import Allow, Decision, Deny
from quarterdeck.wire.permissions import Suggestion
from quarterdeck.wire.rawjson import plain_object
from quarterdeck.wire.requests import CanUseTool, decode_request
from quarterdeck.wire.tools import Action, Plan, Questions, describe, parse_plan, parse_questions


class HubAsk(AskView):
    """An open question of the hub."""

    @property
    def id(self) -> str:
        """The id of the question."""
        return self.opened.ask

    @property
    def kind(self) -> AskKind:
        """What is asked: about a tool call, a plan, questions, or a form."""
        return self.opened.ask_kind

    @property
    def request(self) -> CanUseTool | None:
        """The CLI's request; None for the form of an MCP server."""
        found = decode_request(self.opened.request)
        return found if isinstance(found, CanUseTool) else None

    @property
    def tool_name(self) -> str:
        """The tool, by the name that the model knows."""
        return self.opened.tool

    @property
    def input(self) -> Raw:
        """The tool's input as JSON, byte for byte."""
        request = self.request
        return request.input if request is not None else Raw(b"{}")

    @property
    def arguments(self) -> dict[str, object]:
        """The tool's input as plain values; empty if it is not a JSON object."""
        return plain_object(self.input)

    @property
    def action(self) -> Action:
        """A short description, safe to show."""
        return describe(self.tool_name, self.input)

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Changes that would spare this question the next time, as the CLI proposes them."""
        request = self.request
        return request.suggestions if request is not None else ()

    @property
    def questions(self) -> Questions | None:
        """What the model asks the person, if it asks something."""
        return parse_questions(self.input) if self.kind is AskKind.QUESTIONS else None

    @property
    def plan(self) -> Plan | None:
        """The plan to review, if it is one."""
        if self.kind is not AskKind.PLAN:
            return None
        found = parse_plan(self.input) or Plan()
        return msgspec.structs.replace(found, plan=self.opened.plan or found.plan)

    # --- answers -------------------------------------------------------------------------------

    def allow(self, changed: object = None) -> AllowAnswer:
        """Let it run this once, unchanged or with a changed input."""
        return AllowAnswer(input=ABSENT if changed is None else _json(changed))

    def always(self, *, scope: Scope = Scope.SESSION, rules: Sequence[str] = ()) -> AllowAnswer:
        """Let it run, and do not ask again: by these rules, or by the narrowest that allow it."""
        return AllowAnswer(scope=scope, rules=tuple(rules))

    def deny(self, message: str = Deny().message, *, interrupt: bool = False) -> DenyAnswer:
        """Do not let it run."""
        return DenyAnswer(message=message, stop=interrupt)

    def answer(
        self,
        answers: Mapping[str, str | Sequence[str]],
        *,
        notes: Mapping[str, str] | None = None,
    ) -> QuestionsAnswer:
        """Answer by question text: a label, several labels, or any other text."""
        given = {
            question: each if isinstance(each, str) else tuple(each)
            for question, each in answers.items()
        }
        return QuestionsAnswer(answers=given, notes=None if notes is None else dict(notes))

    def skip(self, message: str = "") -> SkipAnswer:
        """Leave the questions unanswered; the model continues."""
        return SkipAnswer(message=message)

    def approve(self, *, edits: bool = False, fresh: bool = False) -> PlanAnswer:
        """Carry the plan out: here with every call asked about, or with `edits` accepted, or in a
        `fresh` conversation.
        """
        return PlanAnswer(choice="fresh" if fresh else "auto" if edits else "manual")

    def revise(self, feedback: str) -> PlanAnswer:
        """Keep planning, with this in mind."""
        return PlanAnswer(choice="revise", feedback=feedback)

    def reject(self, message: str = "") -> PlanAnswer:
        """No plan, and no further work in this turn."""
        return PlanAnswer(choice="reject", feedback=message)


DecideAsk = Callable[[HubAsk], Answer | Decision | Awaitable[Answer | Decision]]
"""A function that answers questions: an answer, a decision of the library, or either later."""


def hub_ask_of(view: AskView) -> HubAsk:
    """The question that a view shows."""
    return HubAsk(**{name: getattr(view, name) for name in AskView.__struct_fields__})


def to_answer(opened: AskOpened, decision: Answer | Decision) -> Answer:
    """The decision as the hub takes it. Raises `UsageError` if it cannot be one."""
    match decision:
        case Deny(message=message, interrupt=interrupt):
            if opened.ask_kind is AskKind.PLAN:
                return PlanAnswer(choice="reject" if interrupt else "revise", feedback=message)
            if opened.ask_kind is AskKind.QUESTIONS and not interrupt:
                return SkipAnswer(message=message)
            return DenyAnswer(message=message, stop=interrupt)
        case Allow(input=changed, updates=updates):
            if opened.ask_kind is AskKind.PLAN:
                return PlanAnswer(choice="manual")
            return AllowAnswer(
                input=ABSENT if changed is None else _json(changed),
                updates=_indexes(opened, updates),
            )
        case _:
            return decision


def _indexes(opened: AskOpened, updates: Sequence[Suggestion]) -> tuple[int, ...]:
    """The suggestions that are accepted, by their places in the request."""
    request = decode_request(opened.request)
    known = request.suggestions if isinstance(request, CanUseTool) else ()
    try:
        return tuple(known.index(update) for update in updates)
    except ValueError:
        raise UsageError(
            "updates: only what the CLI suggests can be accepted here; for rules of your own use"
            " ask.always(rules=…)"
        ) from None


def _json(value: object) -> Raw:
    return value if isinstance(value, Raw) else Raw(msgspec.json.encode(value))
