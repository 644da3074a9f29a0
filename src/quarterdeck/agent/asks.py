"""The questions of an agent to a person, as typed values, and their answers.

An `Ask` is a permission request. Most are about a tool call (`ToolAsk`); the other two are
questions to people (`QuestionsAsk`) and a plan to review (`PlanAsk`). Each has methods for the
answers that fit it; `to_result` converts an answer to the CLI's form.

An answer always carries the tool's whole input, byte for byte unless it was changed on purpose: old
versions refuse anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec import Raw, Struct

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.answers import PermissionResult, allow, deny
from quarterdeck.wire.base import UnknownPart
from quarterdeck.wire.decisions import Allow, Decision, Deny
from quarterdeck.wire.permissions import (
    AddRules,
    Destination,
    PermissionBehavior,
    PermissionMode,
    PermissionUpdate,
    SetMode,
    Suggestion,
)
from quarterdeck.wire.rawjson import plain_object
from quarterdeck.wire.requests import CanUseTool
from quarterdeck.wire.tools import Action, Plan, Questions, describe, parse_plan, parse_questions
from quarterdeck.wire.values import PermissionRule
from quarterdeck.wire.versions import Version, accepts_mode, accepts_unknown_updates

__all__ = [
    "Allow",
    "AnyAsk",
    "Ask",
    "Decision",
    "Deny",
    "PlanAsk",
    "QuestionsAsk",
    "ToolAsk",
    "to_ask",
    "to_result",
]

SKIPPED = "The user did not want to answer."


class Ask(Struct, frozen=True):
    """The common part of all questions: the request, the tool and its input."""

    request_id: str
    request: CanUseTool

    @property
    def tool_name(self) -> str:
        """The tool, by the name that the model knows."""
        return self.request.tool_name

    @property
    def input(self) -> Raw:
        """The tool's input as JSON, byte for byte."""
        return self.request.input

    @property
    def arguments(self) -> dict[str, object]:
        """The tool's input as plain values; empty if it is not a JSON object."""
        return plain_object(self.request.input)

    @property
    def action(self) -> Action:
        """A short description, safe to show."""
        return describe(self.request.tool_name, self.request.input)

    def deny(self, message: str = Deny().message, *, interrupt: bool = False) -> Deny:
        """Do not let it run."""
        return Deny(message, interrupt)


class ToolAsk(Ask, frozen=True):
    """May this tool run with this input?"""

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Changes that would spare this question the next time, as the CLI proposes them."""
        return self.request.suggestions

    def allow(self, changed: object = None) -> Allow:
        """Let it run this once, unchanged or with a changed input."""
        return Allow(input=changed)

    def always(self, *updates: PermissionUpdate) -> Allow:
        """Let it run, and do not ask again: by these rules, or else by those the CLI suggests.

        The CLI's suggestions may be wider than this call (for a Write it is the mode `acceptEdits`)
        or outlive the session. Without a suggestion, every call of this tool is allowed until the
        session ends.
        """
        return Allow(updates=updates or self.suggestions or (_any_call(self.tool_name),))


def _any_call(tool_name: str) -> AddRules:
    return AddRules(
        rules=(PermissionRule(tool_name=tool_name),),
        behavior=PermissionBehavior.ALLOW,
        destination=Destination.SESSION,
    )


class QuestionsAsk(Ask, frozen=True):
    """The model asks the person something (AskUserQuestion)."""

    questions: Questions

    def answer(
        self,
        answers: Mapping[str, str | Sequence[str]],
        *,
        notes: Mapping[str, str] | None = None,
    ) -> Allow:
        """Answer by question text: a label, several labels, or any other text."""
        return Allow(input=self.questions.with_answers(answers, notes=notes))

    def skip(self, message: str = SKIPPED) -> Deny:
        """Leave the questions unanswered; the model continues."""
        return Deny(message)


class PlanAsk(Ask, frozen=True):
    """The model has a plan and wants to leave plan mode (ExitPlanMode)."""

    plan: Plan

    def approve(self, mode: PermissionMode | None = None) -> Allow:
        """Go ahead, in the mode from before the plan or in another one."""
        if mode is None:
            return Allow()
        return Allow(updates=(SetMode(mode=mode, destination=Destination.SESSION),))

    def revise(self, feedback: str) -> Deny:
        """Keep planning, with this in mind."""
        return Deny(feedback)

    def reject(self, message: str = "The user rejected the plan.") -> Deny:
        """No plan, and no further work in this turn."""
        return Deny(message, interrupt=True)


AnyAsk = ToolAsk | QuestionsAsk | PlanAsk


def to_ask(request_id: str, request: CanUseTool) -> AnyAsk:
    """The question that a request poses. An input that does not fit its tool makes a `ToolAsk`."""
    match request.tool_name:
        case "AskUserQuestion":
            questions = parse_questions(request.input)
            if questions is not None:
                return QuestionsAsk(request_id, request, questions)
        case "ExitPlanMode":
            plan = parse_plan(request.input)
            if plan is not None:
                return PlanAsk(request_id, request, plan)
        case _:
            pass
    return ToolAsk(request_id, request)


def to_result(
    ask: Ask, decision: Decision, *, version: Version | None, bypass_allowed: bool
) -> PermissionResult:
    """The decision as the CLI of this version accepts it. Raises `UsageError` if it cannot."""
    match decision:
        case Deny():
            return deny(decision.message or Deny().message, interrupt=decision.interrupt)
        case Allow():
            updates = [
                _check_update(update, version, bypass_allowed) for update in decision.updates
            ]
            return allow(
                ask.input if decision.input is None else decision.input,
                updates=[update for update in updates if update is not None],
            )
        case _:
            assert_never(decision)


def _check_update(
    update: Suggestion, version: Version | None, bypass_allowed: bool
) -> Suggestion | None:
    match update:
        case UnknownPart():
            # It came from the CLI itself; old ones refuse the whole answer for one such entry.
            return update if accepts_unknown_updates(version) else None
        case SetMode(mode=PermissionMode.BYPASS_PERMISSIONS) if not bypass_allowed:
            raise UsageError(
                "the session was not started with permission to bypass permissions;"
                " start it with allow_dangerously_skip_permissions"
            )
        case SetMode(mode=mode) if not accepts_mode(version, mode):
            raise UsageError(f"the CLI does not know the mode {mode.value!r}")
        case _:
            return update
