"""The tools of the CLI, as far as a controller must know them.

Owns the tools that ask a person (questions and plans), and a short title for any tool call. A
tool's input comes from the model, so it may be anything: an input that does not fit gives None, or
only the tool's name, and a title never contains control characters for a terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec
from msgspec import Raw, Struct, field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.marks import replace_invisible
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.wire.base import Part
from quarterdeck.wire.rawjson import dump, members

ASK_USER_QUESTION = "AskUserQuestion"
EXIT_PLAN_MODE = "ExitPlanMode"

FOR_PEOPLE = frozenset({ASK_USER_QUESTION, EXIT_PLAN_MODE})
"""Tools that need a person's answer; no rule may give it."""

TITLE_LIMIT = 200
"""Characters of a title. Long enough for most commands, short enough for a line on a phone."""

_LOOKED_AT = 64 * 1024
"""Characters of a text that its title is made from; the rest of a huge one costs nothing."""


class Option(Part):
    """One of the answers that a question offers."""

    label: str
    description: str = ""
    preview: str | None = None


class Question(Part):
    """A question of the model's to a person."""

    question: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multi_select: bool = field(name="multiSelect", default=False)


class _QuestionsInput(Part):
    questions: tuple[Question, ...]


class Questions(Struct, frozen=True):
    """The input of AskUserQuestion. `json` is the undecoded input."""

    questions: tuple[Question, ...]
    json: Raw

    def with_answers(
        self,
        answers: Mapping[str, str | Sequence[str]],
        *,
        notes: Mapping[str, str] | None = None,
        annotations: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Raw:
        """The input to send back, with a person's answers by the text of their question.

        An answer is a label, several labels where the question allows several, or any other text. A
        question may be omitted. `notes` are remarks by question; `annotations` has everything that
        the CLI accepts by question, `notes` and `preview`.

        The questions are always sent back too: newer versions fail without them. Answers that the
        model put into its input are dropped.
        """
        known = {question.question: question for question in self.questions}
        remarks = {text: dict(remark) for text, remark in (annotations or {}).items()}
        for text, note in (notes or {}).items():
            remarks.setdefault(text, {})["notes"] = note
        for text in (*answers, *remarks):
            if text not in known:
                raise UsageError(f"there is no question {text!r}")
        body = members(self.json)
        body["answers"] = dump(
            {text: _answer(known[text], given) for text, given in answers.items()}
        )
        body.pop("annotations", None)
        if remarks:
            body["annotations"] = dump(remarks)
        return dump(body)


def _answer(question: Question, given: str | Sequence[str]) -> str:
    if isinstance(given, str):
        return given
    if not given:
        raise UsageError(f"no answer to {question.question!r}; omit the question instead")
    if len(given) > 1 and not question.multi_select:
        raise UsageError(f"{question.question!r} takes only one answer")
    return ", ".join(given)


def parse_questions(json: Raw) -> Questions | None:
    """Parse the input of AskUserQuestion; None if it has no question. Never raises."""
    try:
        questions = msgspec.json.decode(json, type=_QuestionsInput).questions
    except DECODE_ERRORS:
        return None
    return Questions(questions, json) if questions else None


class AllowedPrompt(Part):
    """A permission that the plan will need, as the model describes it. It allows nothing by
    itself.
    """

    tool: str = ""
    prompt: str = ""


class Plan(Part, rename="camel"):
    """The input of ExitPlanMode. Without a plan file the newest versions send no plan."""

    plan: str | None = None
    plan_file_path: str | None = None
    allowed_prompts: tuple[AllowedPrompt, ...] | None = None


def parse_plan(json: Raw) -> Plan | None:
    """Parse the input of ExitPlanMode; None if it does not fit. Never raises."""
    try:
        return msgspec.json.decode(json, type=Plan)
    except DECODE_ERRORS:
        return None


class ActionKind(StrEnum):
    """What sort of thing a tool call does."""

    COMMAND = "command"
    FILE_CHANGE = "file_change"
    TOOL = "tool"
    WEB_SEARCH = "web_search"
    NOTE = "note"


class Action(Struct, frozen=True):
    """A short description of a tool call. The title is one line, and safe to print anywhere."""

    kind: ActionKind
    title: str


class _Titled(Struct, frozen=True):
    """How a tool is shown: by the first of these members that is a text, or by a fixed text."""

    kind: ActionKind
    members: tuple[str, ...] = ()
    prefix: str = ""
    fixed: str | None = None


_PATHS = ("file_path", "path", "notebook_path")
_FILE_CHANGE = _Titled(ActionKind.FILE_CHANGE, _PATHS)
_TODOS = _Titled(ActionKind.NOTE, fixed="update todos")

_TOOLS = {
    "Bash": _Titled(ActionKind.COMMAND, ("command",)),
    "KillShell": _Titled(ActionKind.COMMAND),
    "Edit": _FILE_CHANGE,
    "Write": _FILE_CHANGE,
    "MultiEdit": _FILE_CHANGE,
    "NotebookEdit": _FILE_CHANGE,
    "Read": _Titled(ActionKind.TOOL, _PATHS, prefix="Read "),
    "Glob": _Titled(ActionKind.TOOL, ("pattern",)),
    "Grep": _Titled(ActionKind.TOOL, ("pattern",)),
    "WebSearch": _Titled(ActionKind.WEB_SEARCH, ("query",)),
    "WebFetch": _Titled(ActionKind.WEB_SEARCH, ("url",)),
    "TodoWrite": _TODOS,
    "TodoRead": _TODOS,
    "TaskCreate": _Titled(ActionKind.TOOL, ("subject",)),
    ASK_USER_QUESTION: _Titled(ActionKind.NOTE, fixed="ask user"),
}
_OTHER = _Titled(ActionKind.TOOL)


def describe(tool_name: str, tool_input: Raw) -> Action:
    """A short description of a tool call. Never raises."""
    shown = _TOOLS.get(tool_name, _OTHER)
    if shown.fixed is not None:
        return Action(shown.kind, shown.fixed)
    body = members(tool_input) if shown.members else {}
    for member in shown.members:
        text = _text(body.get(member))
        if title := one_line(text, TITLE_LIMIT - len(shown.prefix), strict=True):
            return Action(shown.kind, shown.prefix + title)
    return Action(shown.kind, one_line(tool_name) or "unnamed tool")


def _text(json: Raw | None) -> str:
    if json is None:
        return ""
    try:
        return msgspec.json.decode(json, type=str)
    except DECODE_ERRORS:
        return ""


def one_line(text: str, limit: int = TITLE_LIMIT, *, strict: bool = False) -> str:
    """One line of at most `limit` characters, without control characters.

    Blanks of any kind become one space. Control characters, marks that reorder or hide the text
    around them, and lone surrogates become U+FFFD, so that they are visible. With `strict` so do
    blanks that do not separate words for a shell or a file system.
    """
    # Blanks are joined first, so that a long run does not push the rest out of sight.
    head = (text.lstrip(_SEPARATORS) if strict else text.lstrip())[:_LOOKED_AT]
    clean = replace_invisible(head.replace("\r\n", "\n"), "\ufffd", keep="" if strict else _BLANKS)
    joined = " ".join("".join(_printable(char) for char in clean).split())
    if len(joined) <= limit and len(text) <= _LOOKED_AT:
        return joined
    return joined[: limit - 1].rstrip() + "…" if joined else ""


_SEPARATORS = " \t\n"
_BLANKS = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


def _printable(char: str) -> str:
    if char in _JOINERS or char.isspace():
        return char
    return "\ufffd" if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn"} else char


_JOINERS = "\u200c\u200d"
"""They only join letters or emoji and are kept: many scripts need them."""
