"""A frontend's answer to a permission request, in any known shape, as an answer of the hub. Pure.

The CLI accepts one shape. Frontends that were written from older documents send others, each of
which ends some version of the CLI, is refused by it, or leaves its request open for ever. All
shapes are read here; the hub then writes the one that the version at the other end accepts.

Nothing is guessed: an answer that neither allows nor denies is an error of its sender, and the
request stays open.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS, Value
from quarterdeck.fronts.relay.errors import BadLine
from quarterdeck.protocol.commands import (
    AllowAnswer,
    Answer,
    DenyAnswer,
    ElicitationAnswer,
    PlanAnswer,
    QuestionsAnswer,
)
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.wire.rawjson import EMPTY, elements, is_null, is_object, members, same_json

_ALLOWING = {"allow": True, "deny": False}
_PLAN_MODES: dict[str, Literal["auto", "manual"]] = {"acceptEdits": "auto", "default": "manual"}
_MOST_UPDATES = 50


class GivenAnswer(Value):
    """What a frontend answered, whatever its shape was."""

    request_id: str
    allow: bool | None
    """None: it has the form of an elicitation's answer."""
    input: Raw = ABSENT
    updates: Raw = ABSENT
    message: str = ""
    stop: bool = False
    action: str = ""
    """Of an elicitation: `accept`, `decline` or `cancel`."""
    content: Raw = ABSENT


class _SetMode(Value):
    type: Literal["setMode"]
    mode: str
    destination: str = "session"


def read_answer(line: Raw) -> GivenAnswer:
    """Read a `control_response` of a frontend. Raises `BadLine`."""
    top = members(line)
    outer = members(top.get("response", EMPTY))
    request_id = _text(outer, "request_id", "response.") or _text(top, "request_id", "")
    if not request_id:
        raise BadLine("no_request_id", "the answer names no request", "response.request_id")
    if "response" in top and not is_object(top["response"]):
        raise BadLine("bad_answer", "must be an object", "response")
    if _text(outer, "subtype", "response.") == "error":
        message = _text(outer, "error", "response.") or "the frontend could not answer"
        return GivenAnswer(request_id=request_id, allow=False, message=message)
    inner = outer.get("response", ABSENT)
    if inner and not is_object(inner) and not is_null(inner):
        raise BadLine("bad_answer", "must be an object", "response.response")
    # The innermost place that decides counts. The others are those of older shapes.
    places = (
        (members(inner) if inner else {}, "response.response."),
        (outer, "response."),
        (top, ""),
    )
    for place, where in places:
        found = _decision(request_id, place, where)
        if found is not None:
            return found
    raise BadLine(
        "bad_answer", "it neither allows nor denies: say behavior", "response.response.behavior"
    )


def _decision(request_id: str, place: dict[str, Raw], where: str) -> GivenAnswer | None:
    """The decision in one object, if one is there."""
    if "action" in place:
        return GivenAnswer(
            request_id=request_id,
            allow=None,
            action=_text(place, "action", where),
            content=_object(place, "content", where),
        )
    allow = _allows(place, where)
    if allow is None:
        return None
    permission = members(place.get("permission", EMPTY))
    message = (
        _text(place, "message", where)
        or _text(place, "denial_message", where)
        or _text(permission, "message", f"{where}permission.")
    )
    return GivenAnswer(
        request_id=request_id,
        allow=allow,
        input=_object(place, "updatedInput", where),
        updates=_list(place, "updatedPermissions", where),
        message=message,
        stop=_boolean(place, "interrupt", where) is True,
    )


def _allows(place: dict[str, Raw], where: str) -> bool | None:
    """Whether an object allows or denies, by the first of its members that says so."""
    if "behavior" in place:
        behavior = _text(place, "behavior", where)
        if behavior not in _ALLOWING:
            raise BadLine("bad_answer", "must be allow or deny", f"{where}behavior")
        return _ALLOWING[behavior]
    if "subtype" in place and (subtype := _text(place, "subtype", where)) in _ALLOWING:
        return _ALLOWING[subtype]
    if "approved" in place:
        return _boolean(place, "approved", where)
    if "permission" in place:
        return _boolean(members(place["permission"]), "allow", f"{where}permission.")
    return None


def to_answer(given: GivenAnswer, opened: AskOpened) -> Answer:
    """The answer in the hub's words, for the question that it answers. Raises `BadLine`."""
    if opened.ask_kind is AskKind.ELICITATION:
        return _elicitation(given)
    if given.allow is None:
        raise BadLine("bad_answer", "this is no form: say behavior", "response.response.action")
    if not given.allow:
        return DenyAnswer(message=given.message, stop=given.stop)
    match opened.ask_kind:
        case AskKind.PLAN:
            return PlanAnswer(choice=_plan_choice(given))
        case AskKind.QUESTIONS:
            return QuestionsAnswer(answers=_answers(given))
        case _:
            return _allow(given, opened)


def _allow(given: GivenAnswer, opened: AskOpened) -> AllowAnswer:
    asked = members(opened.request)
    same = (
        not given.input
        or same_json(given.input, EMPTY)  # it stands for «unchanged» in older frontends
        or same_json(given.input, asked.get("input", EMPTY))
    )
    suggested = elements(asked.get("permission_suggestions", Raw(b"[]"))) or []
    chosen: list[int] = []
    for number, update in enumerate(_updates(given)):
        index = next((at for at, one in enumerate(suggested) if same_json(one, update)), None)
        if index is None:
            raise BadLine(
                "bad_answer",
                "only what the request suggests in permission_suggestions can be changed",
                f"response.response.updatedPermissions[{number}]",
            )
        chosen.append(index)
    return AllowAnswer(input=ABSENT if same else given.input, updates=tuple(dict.fromkeys(chosen)))


def _updates(given: GivenAnswer) -> list[Raw]:
    found = elements(given.updates) if given.updates else []
    if found is None or len(found) > _MOST_UPDATES:
        raise BadLine(
            "bad_answer", f"at most {_MOST_UPDATES}", "response.response.updatedPermissions"
        )
    return found


def _plan_choice(given: GivenAnswer) -> Literal["auto", "manual"]:
    """How an allowed plan is carried out: with the mode that the answer sets, or every call asked
    about.
    """
    choice: Literal["auto", "manual"] = "manual"
    for number, update in enumerate(_updates(given)):
        where = f"response.response.updatedPermissions[{number}]"
        try:
            mode = msgspec.json.decode(update, type=_SetMode)
        except DECODE_ERRORS as error:
            raise BadLine("bad_answer", "a plan's answer can set the mode only", where) from error
        if mode.mode not in _PLAN_MODES or mode.destination != "session":
            modes = " or ".join(_PLAN_MODES)
            raise BadLine("bad_answer", f"must be {modes}, for the session", f"{where}.mode")
        choice = _PLAN_MODES[mode.mode]
    return choice


def _answers(given: GivenAnswer) -> dict[str, str | tuple[str, ...]]:
    where = "response.response.updatedInput.answers"
    answers = members(given.input or EMPTY).get("answers")
    if answers is None:
        raise BadLine("bad_answer", "questions need answers, by the text of each question", where)
    try:
        return msgspec.json.decode(answers, type=dict[str, str | tuple[str, ...]])
    except DECODE_ERRORS as error:
        raise BadLine("bad_answer", str(error), where) from error


def _elicitation(given: GivenAnswer) -> Answer:
    if given.allow is False:
        return ElicitationAnswer(action="decline")
    match given.action:
        case "accept" | "decline" | "cancel":
            return ElicitationAnswer(action=given.action, content=given.content)
        case _:
            raise BadLine(
                "bad_answer",
                "a form needs accept, decline or cancel",
                "response.response.action",
            )


def _text(place: dict[str, Raw], name: str, where: str) -> str:
    """A text; empty if it is not there or null."""
    if name not in place or is_null(place[name]):
        return ""
    try:
        return msgspec.json.decode(place[name], type=str)
    except DECODE_ERRORS as error:
        raise BadLine("bad_answer", "must be a text", where + name) from error


def _boolean(place: dict[str, Raw], name: str, where: str) -> bool | None:
    if name not in place:
        return None
    try:
        return msgspec.json.decode(place[name], type=bool)
    except DECODE_ERRORS as error:
        raise BadLine("bad_answer", "must be true or false", where + name) from error


def _object(place: dict[str, Raw], name: str, where: str) -> Raw:
    if name not in place or is_null(place[name]):
        return ABSENT
    if not is_object(place[name]):
        raise BadLine("bad_answer", "must be an object", where + name)
    return place[name]


def _list(place: dict[str, Raw], name: str, where: str) -> Raw:
    if name not in place or is_null(place[name]):
        return ABSENT
    if elements(place[name]) is None:
        raise BadLine("bad_answer", "must be a list", where + name)
    return place[name]
