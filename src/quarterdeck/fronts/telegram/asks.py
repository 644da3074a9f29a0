"""Questions as messages: what a person reads, and the buttons below it. Pure.

`card` makes the message of an open question, `closed` what it becomes in the end. What a press or a
reply means is in `ask_steps`. A button carries an action and an argument; the callback data that
Telegram sees is a short id for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.details import LARGEST_DETAIL, Detail, detail
from quarterdeck.fronts.telegram.display import Leaves, safe, safe_line, safe_start
from quarterdeck.fronts.telegram.forms import Field, fields_of
from quarterdeck.fronts.telegram.text import Part, bold, code, cut, join, parts, plain, pre
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.events import AskKind, AskOpened
from quarterdeck.wire.requests import CanUseTool, Elicitation, decode_request
from quarterdeck.wire.tools import Question, parse_questions

INLINE = 3000
"""UTF-16 units of a command, diff or plan in a message. Longer ones are sent as a file."""
SUMMARY = 1200
"""How much of them the message has then."""
LABEL = 48
"""Characters on a button."""
MOST_REASONS = 5
MOST_MEMBERS = 5
MOST_RULES = 1000
"""Characters of the rules that a lasting answer would add. Longer ones cannot be read here."""

OUTLINE = (
    "Do not leave plan mode yet. First write the plan for me as a message: the goal in one"
    " sentence; then numbered steps, and for each step the files that it changes, what it changes"
    " there, and why; then the commands that you will run, the risks, and how you will check the"
    " result. Then wait for my answer before you call ExitPlanMode again."
)
"""What «Pause & outline plan» tells the model."""


class Draft(Value):
    """How far a person has come with an answer of several steps."""

    at: int = 0
    """The question, or the field of the form, that is next."""
    answers: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)
    marked: tuple[int, ...] = ()
    """The options of that question that are chosen."""
    form: dict[str, Raw] = msgspec.field(default_factory=dict)
    shown: tuple[int, ...] = ()
    """The chats to which a person had the subject of the question sent."""


class Press(Value):
    """A button: what is written on it, and what it does."""

    text: str
    action: str = ""
    arg: str = ""
    url: str = ""


Rows = tuple[tuple[Press, ...], ...]


class Attachment(Value):
    """A file that belongs to a message."""

    name: str
    text: str


class Card(Value):
    """A question as a message."""

    part: Part
    rows: Rows
    file: Attachment | None = None
    """What is too long for the message."""


# --- the parts of a request ----------------------------------------------------------------------


def questions_of(opened: AskOpened) -> tuple[Question, ...]:
    """The questions of an ask; none for other kinds."""
    request = decode_request(opened.request)
    found = parse_questions(request.input) if isinstance(request, CanUseTool) else None
    return found.questions if found else ()


def elicitation_of(opened: AskOpened) -> Elicitation | None:
    """The request of an MCP server, if it is one."""
    request = decode_request(opened.request)
    return request if isinstance(request, Elicitation) else None


def form_of(opened: AskOpened) -> tuple[Field, ...]:
    """The fields of a form; none if the question has no form."""
    request = elicitation_of(opened)
    if request is None or request.url:
        return ()
    return fields_of(request.requested_schema, request.property_order)


# --- open questions ------------------------------------------------------------------------------


def card(
    opened: AskOpened, name: str, *, draft: Draft | None = None, leaves: Leaves, chat: int = 0
) -> Card:
    """The message of an open question in a chat; `name` is the session's."""
    draft = draft or Draft()
    match opened.ask_kind:
        case AskKind.TOOL:
            return _tool_card(opened, name, leaves, shown=chat in draft.shown)
        case AskKind.PLAN:
            return _plan_card(opened, name, leaves, shown=chat in draft.shown)
        case AskKind.QUESTIONS:
            return _question_card(opened, name, draft)
        case AskKind.ELICITATION:
            return _elicitation_card(opened, name, draft)


def _head(mark: str, name: str, what: str) -> list[Part | str]:
    return [f"{mark} ", bold(safe_line(name, 60)), f" {what}\n"]


def _tool_card(opened: AskOpened, name: str, leaves: Leaves, *, shown: bool) -> Card:
    """A permission. It can be allowed only where all that would run has been sent."""
    found = detail(opened)
    open_ = leaves.diffs if found.kind == "diff" else leaves.commands
    pieces = _head("🔐", name, f"asks to use {safe_line(opened.tool, 60)}")
    file = None
    if found.summary:
        pieces.append(f"{safe_line(found.summary, 300)}\n")
    if open_ and found.whole:
        block, file = _content(found)
        pieces += block
    if opened.agent:
        pieces.append("A subagent asks.\n")
    pieces += _why(opened)
    readable = found.whole and (open_ or shown)
    rules = safe(", ".join(opened.narrowest))
    lasting = readable and opened.lasting and 0 < len(rules) <= MOST_RULES
    if lasting:
        pieces += ["«For the session» and «Always» allow: ", code(rules), "\n"]
    if not found.whole:
        pieces.append("It is too long to be shown here: allow it in the web app.\n")
    elif not readable:
        pieces.append("«Show» sends what would run; then it can be allowed.\n")
    rows: list[tuple[Press, ...]] = []
    deny = Press(text="❌ Deny", action="deny")
    if readable:
        rows.append((Press(text="✅ Allow", action="allow"), deny))
    elif found.whole:
        rows.append((Press(text="👁 Show", action="show"), deny))
    else:
        rows.append((deny,))
    if lasting:
        rows.append(
            (
                Press(text="For the session", action="session"),
                Press(text="Always", action="always"),
            )
        )
    rows.append(
        (Press(text="✏️ Edit…", action="edit"), Press(text="Deny with reason…", action="reason"))
    )
    rows.append((Press(text="🛑 Deny and stop", action="stop"),))
    return Card(part=join(pieces), rows=tuple(rows), file=file)


def _content(found: Detail) -> tuple[list[Part | str], Attachment | None]:
    """What would run, in the message, or as a file with its beginning in the message."""
    text, others = safe(found.text), [safe(each) for each in found.members]
    if plain("\n".join((text, *others))).width > INLINE:
        begin: list[Part | str] = [pre(cut(text, SUMMARY), found.language), "\n"]
        begin += [f"• {safe_line(each, 100)}\n" for each in others[:MOST_MEMBERS]]
        return [*begin, "All of it is in the file.\n"], Attachment(
            name=found.name, text=whole(found)
        )
    block: list[Part | str] = [pre(text, found.language), "\n"] if text.strip() else []
    return [*block, *(f"• {each}\n" for each in others)], None


def whole(found: Detail) -> str:
    """All of a call as the text of a file."""
    return safe("\n\n".join(filter(None, (found.text, "\n".join(found.members)))))


def _why(opened: AskOpened) -> list[Part | str]:
    reasons = [safe_line(reason, 300) for reason in with_texts(opened).reasons[:MOST_REASONS]]
    found: list[Part | str] = [f"• {reason}\n" for reason in reasons if reason]
    if opened.wait is not None:
        found.append(f"Without an answer: {opened.then} after {opened.wait:g} s.\n")
    return found


def _plan_card(opened: AskOpened, name: str, leaves: Leaves, *, shown: bool) -> Card:
    """A plan. It can be approved only where all of its text has been sent."""
    pieces = _head("📋", name, "has a plan")
    given, file = opened.plan or "", None
    fits = len(given) <= LARGEST_DETAIL
    text = safe(given) if fits else given[:1]
    readable = not text or (fits and (leaves.plans or shown))
    if not text:
        pieces.append("This version of the CLI does not send the text of the plan.\n")
    elif not fits:
        pieces.append("It is too long to be shown here: approve it in the web app.\n")
    elif not readable:
        pieces.append("«Show» sends it; then it can be approved.\n")
    elif leaves.plans:
        found = parts(text, limit=INLINE) if len(text) <= INLINE else []
        if len(found) == 1:
            pieces += [found[0], "\n"]
        else:
            file = Attachment(name="plan.md", text=text)
            begin = parts(cut(text, SUMMARY), limit=INLINE)[:1]
            pieces += [*begin, "\nThe whole plan is in the file.\n"]
    pieces += _why(opened)
    pieces.append("Reply to this message to say what to change.")
    rows: list[tuple[Press, ...]] = []
    if readable:
        rows += [
            (Press(text="✅ Approve (accept edits)", action="plan", arg="auto"),),
            (Press(text="✅ Approve (ask me)", action="plan", arg="manual"),),
        ]
        if text:  # a new conversation needs it
            rows.append((Press(text="🆕 Fresh session", action="plan", arg="fresh"),))
    elif fits:
        rows.append((Press(text="👁 Show", action="show"),))
    rows += [
        (Press(text="⏸ Pause & outline plan", action="outline"),),
        (
            Press(text="💬 Keep planning…", action="feedback"),
            Press(text="❌ Deny", action="plan", arg="reject"),
        ),
    ]
    return Card(part=join(pieces), rows=tuple(rows), file=file)


def _question_card(opened: AskOpened, name: str, draft: Draft) -> Card:
    questions = questions_of(opened)
    pieces = _head("❓", name, "asks")
    for question in questions[: draft.at]:
        answer = draft.answers.get(question.question)
        pieces.append(
            f"{safe_line(question.header or question.question, 80)}: {_answer_text(answer)}\n"
        )
    if draft.at >= len(questions):
        pieces.append("Sending the answers …")
        return Card(part=join(pieces), rows=())
    question = questions[draft.at]
    if len(questions) > 1:
        pieces.append(f"Question {draft.at + 1} of {len(questions)}\n")
    pieces += [bold(safe_start(question.question, 1500)), "\n"]
    rows: list[tuple[Press, ...]] = []
    for number, option in enumerate(question.options[:20]):
        if option.description:
            label = safe_line(option.label, 80)
            pieces.append(f"• {label}: {safe_line(option.description, 200)}\n")
        mark = "☑ " if number in draft.marked else "☐ " if question.multi_select else ""
        arg = f"{draft.at}.{number}"
        rows.append((Press(text=mark + safe_line(option.label, LABEL), action="option", arg=arg),))
    last: list[Press] = []
    if question.multi_select:
        last.append(Press(text="✅ Done", action="chosen", arg=str(draft.at)))
    last.append(Press(text="Skip", action="next", arg=str(draft.at)))
    rows.append(tuple(last))
    if len(questions) > 1:
        rows.append((Press(text="Skip the rest", action="rest", arg=str(draft.at)),))
    pieces.append("Or reply to this message with another answer.")
    return Card(part=join(pieces), rows=tuple(rows))


def _answer_text(answer: str | Sequence[str] | None) -> str:
    if answer is None:
        return "(skipped)"
    return safe_line(answer if isinstance(answer, str) else ", ".join(answer), 200)


def _elicitation_card(opened: AskOpened, name: str, draft: Draft) -> Card:
    request = elicitation_of(opened)
    pieces = _head("🧩", name, f"— the MCP server {safe_line(opened.tool, 60)} asks")
    ends = (
        Press(text="Decline", action="form", arg="decline"),
        Press(text="Cancel", action="form", arg="cancel"),
    )
    if request is None:
        return Card(part=join([*pieces, "It cannot be read."]), rows=(ends,))
    pieces.append(f"{safe_start(request.message, 2000)}\n")
    if request.url:
        return _url_card(request.url, pieces, ends)
    fields = form_of(opened)
    for field in fields[: draft.at]:
        value = bytes(draft.form[field.name]).decode() if field.name in draft.form else "(skipped)"
        pieces.append(f"{safe_line(field.title, 80)}: {safe_line(value, 200)}\n")
    if draft.at >= len(fields):
        accept = Press(text="✅ Accept", action="form", arg="accept")
        again = (Press(text="Start again", action="form", arg="again"),) if fields else ()
        return Card(part=join(pieces), rows=((accept, *again), ends))
    field = fields[draft.at]
    need = "" if field.required else " (optional)"
    pieces += [
        f"\n{draft.at + 1} of {len(fields)}: ",
        bold(safe_line(field.title, 100)),
        f"{need}\n",
    ]
    if field.description:
        pieces.append(f"{safe_start(field.description, 2000)}\n")
    rows: list[tuple[Press, ...]] = []
    for number, choice in enumerate(field.choices):
        mark = "☑ " if number in draft.marked else "☐ " if field.kind == "choices" else ""
        text = mark + safe_line(choice.label, LABEL)
        rows.append((Press(text=text, action="option", arg=f"{draft.at}.{number}"),))
    if field.kind == "choices":
        rows.append((Press(text="✅ Done", action="chosen", arg=str(draft.at)),))
    if not field.choices:
        pieces.append("Reply to this message with the value.")
    if not field.required:
        rows.append((Press(text="Skip", action="next", arg=str(draft.at)),))
    return Card(part=join(pieces), rows=(*rows, ends))


def _url_card(url: str, pieces: list[Part | str], ends: tuple[Press, ...]) -> Card:
    parsed = urlsplit(url) if len(url) <= 2048 else urlsplit("")
    if parsed.scheme not in {"http", "https"} or not parsed.hostname:
        pieces.append("It names an address that cannot be opened from here.")
        return Card(part=join(pieces), rows=(ends,))
    pieces += ["It wants you to visit ", code(safe_line(parsed.hostname, 200)), "."]
    visit = Press(text="🔗 Open", url=url)
    accept = Press(text="✅ Done", action="form", arg="accept")
    return Card(part=join(pieces), rows=((visit,), (accept,), ends))


# --- closed questions ----------------------------------------------------------------------------

_PLANS = {
    "fresh": "✅ Approved, in a fresh session",
    "auto": "✅ Approved, edits accepted",
    "manual": "✅ Approved, every call asked about",
    "revise": "💬 To be revised",
    "reject": "❌ Rejected",
}
_SCOPES = {"session": " for the session", "always": " always", "everywhere": " everywhere"}
_answers: msgspec.json.Decoder[cmd.Answer] = msgspec.json.Decoder(cmd.Answer)


def closed_part(opened: AskOpened, name: str, ended: ev.AskAnswered | ev.AskWithdrawn) -> Part:
    """What the message becomes when the question is answered or withdrawn."""
    head = _head("🔒", name, f"· {safe_line(opened.tool, 60)}")
    title = safe_line(opened.title, 300)
    return join([*head, code(title), "\n", verdict(ended)])


def verdict(ended: ev.AskAnswered | ev.AskWithdrawn) -> str:
    """How a question ended, and by whom."""
    if isinstance(ended, ev.AskWithdrawn):
        return f"⌛ Withdrawn: {safe_line(with_texts(ended).reason, 300)}"
    by = safe_line(ended.by, 60)
    try:
        answer = _answers.decode(ended.answer)
    except msgspec.DecodeError:
        return f"{'✅ Allowed' if ended.allowed else '❌ Denied'} by {by}"
    match answer:
        case cmd.AllowAnswer(scope=scope, input=changed):
            how = _SCOPES.get(scope.value, "") + (", edited" if changed else "")
            return f"✅ Allowed{how} by {by}"
        case cmd.DenyAnswer(message=message, stop=stop):
            why = f": {safe_line(message, 300)}" if message else ""
            return f"❌ Denied{' and stopped' if stop else ''} by {by}{why}"
        case cmd.PlanAnswer(choice=choice, feedback=feedback):
            why = f": {safe_line(feedback, 200)}" if feedback and choice == "revise" else ""
            return f"{_PLANS[choice]} by {by}{why}"
        case cmd.QuestionsAnswer(answers=answers):
            rows = "".join(
                f"\n• {safe_line(question, 100)} — {_answer_text(given)}"
                for question, given in answers.items()
            )
            return f"✅ Answered by {by}{rows}"
        case cmd.SkipAnswer():
            return f"⏭ Skipped by {by}"
        case cmd.ElicitationAnswer(action=action):
            words = {"accept": "✅ Accepted", "decline": "❌ Declined", "cancel": "❌ Cancelled"}
            return f"{words[action]} by {by}"
        case cmd.RawAnswer():
            return f"{'✅ Allowed' if ended.allowed else '❌ Denied'} by {by}"
