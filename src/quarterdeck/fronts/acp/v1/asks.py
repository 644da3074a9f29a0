"""Questions of agents as dialogues with an editor, and the answers for the hub. Pure.

A dialogue is a generator: it gives requests for the editor, takes their results, and returns the
answer, or None to leave the question open for another person. It offers only what the question
itself offers and what the person may do; a result that was not offered is an error and no answer.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Literal

import msgspec
from acp import schema
from msgspec import Raw
from pydantic import ValidationError

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.fronts.acp.v1.tool_calls import (
    ToolContent,
    diffs_of,
    kind_of,
    locations_of,
    members_of,
    text_content,
)
from quarterdeck.fronts.acp.v1.updates import META
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    DenyAnswer,
    ElicitationAnswer,
    PlanAnswer,
    QuestionsAnswer,
    Scope,
    SkipAnswer,
)
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.protocol.roles import Right, may_answer
from quarterdeck.protocol.shapes import Me
from quarterdeck.wire.requests import CanUseTool, Elicitation, decode_request
from quarterdeck.wire.tools import Question, one_line, parse_plan, parse_questions

Request = schema.RequestPermissionRequest | schema.CreateFormSessionElicitationRequest
Dialogue = Generator[Request, object, Answer | None]

LONGEST_TEXT = 20_000
_RULES = 120
"""Characters of rules in the name of a button; the content of the call has all of them."""

Kind = schema.PermissionOptionKind
Options = dict[str, tuple[str, Kind]]
"""Buttons: by id, their name and kind."""


def dialogue_for(session: str, opened: AskOpened, me: Me, *, forms: bool) -> Dialogue | None:
    """The dialogue about a question; None if the person may answer nothing."""
    if Right.STEER not in me.rights:
        return None
    asking = _Asking(session, opened, forms=forms)
    if not may_answer(opened.answered_by, me.name, me.role.value):
        return asking.deny_only()
    match opened.ask_kind:
        case AskKind.TOOL:
            return asking.tool(may_manage=Right.MANAGE in me.rights)
        case AskKind.PLAN:
            return asking.plan()
        case AskKind.QUESTIONS:
            return asking.questions()
        case AskKind.ELICITATION:
            return asking.elicitation()


class _Asking:
    """One question, for one editor."""

    def __init__(self, session: str, opened: AskOpened, *, forms: bool) -> None:
        self._session = session
        self._opened = opened
        self._forms = forms
        self._request = decode_request(opened.request)
        self._input = self._request.input if isinstance(self._request, CanUseTool) else Raw()

    # --- tools and plans -------------------------------------------------------------------------

    def tool(self, *, may_manage: bool) -> Dialogue:
        """A call: allow it, once or by a grant of just this, or deny it."""
        rules = self._opened.narrowest if self._opened.lasting else ()
        options: Options = {"allow": ("Allow", "allow_once")}
        if rules:
            text = one_line(", ".join(rules), _RULES)
            options["session"] = (f"Allow {text} in this session", "allow_always")
            if may_manage:
                options["always"] = (f"Always allow {text} in this project", "allow_always")
        options["deny"] = ("Deny", "reject_once")
        options["stop"] = ("Deny, and stop the turn", "reject_once")
        match _pressed_option((yield self._permission(options)), options):
            case "allow":
                return AllowAnswer()
            case "session":
                return AllowAnswer(scope=Scope.SESSION, rules=rules)
            case "always":
                return AllowAnswer(scope=Scope.ALWAYS, rules=rules)
            case "deny":
                return DenyAnswer()
            case "stop":
                return DenyAnswer(stop=True)
            case _:
                return None

    def deny_only(self) -> Dialogue:
        """A rule wants the answer of another person. Every person may deny."""
        people = "; and ".join(" or ".join(each) for each in self._opened.answered_by)
        options: Options = {
            "deny": ("Deny", "reject_once"),
            "stop": ("Deny, and stop the turn", "reject_once"),
        }
        note = f"Only these may allow it: {one_line(people, 500)}"
        choice = _pressed_option((yield self._permission(options, more=[note])), options)
        return None if choice is None else DenyAnswer(stop=choice == "stop")

    def plan(self) -> Dialogue:
        """A plan: carry it out in one of the ways, or change it."""
        parsed = parse_plan(self._input)
        text = self._opened.plan or (parsed.plan if parsed else None) or ""
        options: Options = {
            "auto": ("Carry it out, and accept edits", "allow_once"),
            "manual": ("Carry it out, and ask about calls", "allow_once"),
        }
        if self._opened.plan:  # a new conversation needs the text
            options["fresh"] = ("Carry it out in a new conversation", "allow_once")
        if self._forms:
            options["revise"] = ("Keep planning: say what to change", "reject_once")
        options["reject"] = ("Reject it, and stop the turn", "reject_once")
        more = [text] if text else []
        match _pressed_option((yield self._permission(options, more=more)), options):
            case "auto" | "manual" | "fresh" | "reject" as choice:
                return PlanAnswer(choice=choice)
            case "revise":
                return (yield from self._revise())
            case _:
                return None

    def _revise(self) -> Dialogue:
        field = _string("What is to be changed in the plan?")
        content = _accepted_content(
            (yield self._form("The plan", {"feedback": field}, ["feedback"]))
        )
        feedback = _text(content, "feedback")
        return PlanAnswer(choice="revise", feedback=feedback) if feedback else None

    # --- questions -------------------------------------------------------------------------------

    def questions(self) -> Dialogue:
        """Questions of the model: a form, or one after the other."""
        parsed = parse_questions(self._input)
        if parsed is None:
            return (yield from self.deny_only())
        answers: dict[str, str | tuple[str, ...]] = {}
        if self._forms:
            result = _form_result((yield self._questions_form(parsed.questions)))
            if result is None:
                return None
            answers = _answers_in(parsed.questions, result)
        else:
            for question in parsed.questions:
                chosen = yield from self._question(question)
                if chosen is None:
                    return None
                if chosen:
                    answers[question.question] = chosen
        return QuestionsAnswer(answers=answers) if answers else SkipAnswer()

    def _questions_form(self, questions: tuple[Question, ...]) -> Request:
        fields: dict[str, object] = {}
        for number, question in enumerate(questions, 1):
            title = one_line(question.question, 500)
            if question.options:
                fields[f"answer{number}"] = _choice(question, title)
            other = "Another answer" if question.options else title
            fields[f"other{number}"] = _string(other)
        message = "\n".join(one_line(each.question, 500) for each in questions)
        return self._form(message, fields, [])

    def _question(
        self, question: Question
    ) -> Generator[Request, object, str | tuple[str, ...] | None]:
        """The answer by buttons: a label, several, empty if it is skipped; None leaves it open."""
        chosen: list[str] = []
        while True:
            options: Options = {
                f"option{number}": (_option_name(each.label, each.description), "allow_once")
                for number, each in enumerate(question.options)
                if each.label not in chosen
            }
            if chosen:
                options["done"] = (f"Done: {one_line(', '.join(chosen), 200)}", "allow_once")
            options["skip"] = ("Skip the question", "reject_once")
            result = yield self._permission(options, title=question.question)
            match _pressed_option(result, options):
                case None:
                    return None
                case "skip":
                    return ""
                case "done":
                    return tuple(chosen)
                case id_:
                    label = question.options[int(id_.removeprefix("option"))].label
            if not question.multi_select:
                return label
            chosen.append(label)

    # --- forms of MCP servers --------------------------------------------------------------------

    def elicitation(self) -> Dialogue:
        """A form of an MCP server, or a page to visit."""
        request = self._request
        if not isinstance(request, Elicitation):
            return (yield from self.deny_only())
        server = one_line(request.mcp_server_name, 80)
        message = f"{server}: {request.message[:LONGEST_TEXT]}"
        form = _foreign_schema(request.requested_schema)
        if self._forms and form is not None and not request.url:
            result = _form_result((yield self._form(message, form, None)))
            if result is None:
                return None
            if not result.accepted:
                return ElicitationAnswer(action="decline")
            return ElicitationAnswer(
                action="accept", content=Raw(msgspec.json.encode(result.content))
            )
        options: Options = {}
        if request.url:
            message = f"{message}\nVisit: {one_line(request.url, 2000)}"
        if request.url or (form is not None and not form.properties):
            options["accept"] = ("Accept", "allow_once")
        options["decline"] = ("Decline", "reject_once")
        options["cancel"] = ("Cancel", "reject_once")
        actions: dict[str, Literal["accept", "decline", "cancel"]] = {
            "accept": "accept",
            "decline": "decline",
            "cancel": "cancel",
        }
        chosen = _pressed_option((yield self._permission(options, more=[message])), options)
        return None if chosen is None else ElicitationAnswer(action=actions[chosen])

    # --- requests --------------------------------------------------------------------------------

    def _permission(
        self, options: Options, *, more: Iterable[str] = (), title: str = ""
    ) -> schema.RequestPermissionRequest:
        opened = self._opened
        given = members_of(self._input)
        content: list[ToolContent] = [
            *diffs_of(opened.tool, given),
            *(text_content(text) for text in more),
        ]
        if opened.ask_kind is AskKind.TOOL:
            content += [text_content(text) for text in _why(opened)]
        return schema.RequestPermissionRequest(
            session_id=self._session,
            tool_call=schema.ToolCallUpdate(
                tool_call_id=self._call,
                title=one_line(title, 500) or one_line(opened.title, 500) or one_line(opened.tool),
                kind=kind_of(opened.tool),
                status="pending",
                raw_input=given or None,
                locations=locations_of(given) or None,
                content=content or None,
            ),
            options=[
                schema.PermissionOption(option_id=id_, name=name, kind=kind)
                for id_, (name, kind) in options.items()
            ],
            field_meta=self._meta,
        )

    def _form(
        self,
        message: str,
        fields: dict[str, object] | schema.ElicitationSchema,
        required: list[str] | None,
    ) -> schema.CreateFormSessionElicitationRequest:
        form = fields
        if not isinstance(form, schema.ElicitationSchema):
            given = {"type": "object", "properties": fields, "required": required}
            form = schema.ElicitationSchema.model_validate(given)
        return schema.CreateFormSessionElicitationRequest(
            session_id=self._session,
            tool_call_id=self._opened.tool_use_id,
            mode="form",
            message=message,
            requested_schema=form,
            field_meta=self._meta,
        )

    @property
    def _call(self) -> str:
        return self._opened.tool_use_id or self._opened.ask

    @property
    def _meta(self) -> dict[str, object]:
        return {META: {"ask": self._opened.ask}}


class _FormResult:
    """What a person did with a form."""

    def __init__(self, accepted: bool, content: dict[str, object]) -> None:
        self.accepted = accepted
        self.content = content


def _why(opened: AskOpened) -> list[str]:
    """Why a person is asked, and what a lasting answer would allow."""
    found = [one_line(reason, 500) for reason in with_texts(opened).reasons]
    if opened.lasting and opened.narrowest:
        rules = ", ".join(one_line(rule, 500) for rule in opened.narrowest)
        found.append(f"A lasting answer allows: {rules}")
    return found


def _option_name(label: str, description: str) -> str:
    text = one_line(label, 200) or "(no text)"
    return f"{text}: {one_line(description, 200)}" if description else text


def _string(title: str) -> dict[str, object]:
    return {"type": "string", "title": title, "maxLength": LONGEST_TEXT}


def _choice(question: Question, title: str) -> dict[str, object]:
    rows = [
        {"const": each.label, "title": _option_name(each.label, each.description)}
        for each in question.options
    ]
    if question.multi_select:
        return {"type": "array", "title": title, "items": {"anyOf": rows}}
    return {"type": "string", "title": title, "oneOf": rows}


def _foreign_schema(json: Raw) -> schema.ElicitationSchema | None:
    """The form that a server asks for; None if it is none that an editor can show."""
    try:
        given = msgspec.json.decode(json) if json else {"type": "object", "properties": {}}
        return schema.ElicitationSchema.model_validate(given)
    except (*DECODE_ERRORS, ValidationError):
        return None


# --- results -------------------------------------------------------------------------------------


def _pressed_option(result: object, options: Options) -> str | None:
    """The button that was pressed; None if none was. Raises `UsageError` for one of another."""
    try:
        outcome = schema.RequestPermissionResponse.model_validate(result).outcome
    except ValidationError as error:
        raise UsageError(f"the editor's answer cannot be read: {_first(error)}") from error
    if isinstance(outcome, schema.DeniedOutcome):
        return None
    if outcome.option_id not in options:
        raise UsageError(f"{one_line(outcome.option_id, 80)!r} was not offered")
    return outcome.option_id


def _form_result(result: object) -> _FormResult | None:
    """What was done with a form; None if it was only closed."""
    members = result if isinstance(result, dict) else {}
    content = members.get("content")
    match members.get("action"):
        case "accept":
            return _FormResult(True, content if isinstance(content, dict) else {})
        case "decline":
            return _FormResult(False, {})
        case "cancel":
            return None
        case _:
            raise UsageError("the editor's answer to the form cannot be read")


def _accepted_content(result: object) -> dict[str, object]:
    found = _form_result(result)
    return found.content if found is not None and found.accepted else {}


def _text(content: dict[str, object], name: str) -> str:
    value = content.get(name)
    return value.strip()[:LONGEST_TEXT] if isinstance(value, str) else ""


def _answers_in(
    questions: tuple[Question, ...], result: _FormResult
) -> dict[str, str | tuple[str, ...]]:
    """The answers of a form: the labels that were offered, or another text."""
    found: dict[str, str | tuple[str, ...]] = {}
    for number, question in enumerate(questions, 1):
        labels = {each.label for each in question.options}
        given = result.content.get(f"answer{number}")
        listed = given if isinstance(given, list) else [given]
        chosen = tuple(each for each in listed if isinstance(each, str) and each in labels)
        other = _text(result.content, f"other{number}")
        if question.multi_select and (chosen or other):
            found[question.question] = (*chosen, other) if other else chosen
        elif other or chosen:
            found[question.question] = other or chosen[0]
    return found


def _first(error: ValidationError) -> str:
    return str(error.errors()[0]["msg"]) if error.errors() else "it has another form"
