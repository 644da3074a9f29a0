"""Questions as messages, and what presses and replies mean. No network."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.telegram.ask_steps import (
    Nothing,
    Redraw,
    Show,
    Step,
    Submit,
    Type,
    press,
    reply,
)
from quarterdeck.fronts.telegram.asks import MOST_RULES, OUTLINE, Card, Draft, card, closed_part
from quarterdeck.fronts.telegram.details import LARGEST_DETAIL, detail
from quarterdeck.fronts.telegram.display import Leaves
from quarterdeck.fronts.telegram.text import LONGEST, split
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import Scope
from quarterdeck.protocol.events import AskKind, AskOpened

ALL = Leaves(diffs=True)


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def tool_ask(tool: str = "Bash", input_: object = None, **more: Any) -> AskOpened:
    given = {"command": "make test"} if input_ is None else input_
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": "t"}
    given_more = {"narrowest": ("Bash(make test)",), "reasons": ("no rule decides",)} | more
    return AskOpened(
        ask="s.1",
        run="r",
        request_id="q",
        ask_kind=AskKind.TOOL,
        tool=tool,
        title="make test",
        request=raw(request),
        **given_more,
    )


def plan_ask(plan: str | None = "1. Do it.") -> AskOpened:
    request = {"subtype": "can_use_tool", "tool_name": "ExitPlanMode", "input": {}}
    return AskOpened(
        ask="s.2",
        run="r",
        request_id="q",
        ask_kind=AskKind.PLAN,
        tool="ExitPlanMode",
        title="plan",
        request=raw(request),
        plan=plan,
    )


QUESTIONS: list[dict[str, Any]] = [
    {"question": "Which one?", "header": "One", "options": [{"label": "A"}, {"label": "B"}]},
    {
        "question": "Which ones?",
        "header": "Many",
        "multiSelect": True,
        "options": [{"label": "X", "description": "the first"}, {"label": "Y"}, {"label": "Z"}],
    },
    {"question": "Anything else?", "options": []},
]


def questions_ask(questions: list[dict[str, Any]] | None = None) -> AskOpened:
    given = {"questions": QUESTIONS if questions is None else questions}
    request = {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": given}
    return AskOpened(
        ask="s.3",
        run="r",
        request_id="q",
        ask_kind=AskKind.QUESTIONS,
        tool="AskUserQuestion",
        title="ask user",
        request=raw(request),
    )


def form_ask(schema: object = None, url: str | None = None) -> AskOpened:
    request: dict[str, Any] = {
        "subtype": "elicitation",
        "mcp_server_name": "tracker",
        "message": "Fill this in.",
    }
    if schema is not None:
        request["requested_schema"] = schema
    if url is not None:
        request["url"] = url
    return AskOpened(
        ask="s.4",
        run="r",
        request_id="q",
        ask_kind=AskKind.ELICITATION,
        tool="tracker",
        title="Fill this in.",
        request=raw(request),
    )


def labels(made: Card) -> list[str]:
    return [button.text for row in made.rows for button in row]


def pressed(opened: AskOpened, made: Card, label: str, draft: Draft | None = None) -> Step:
    """Press the button with this text."""
    (button,) = [b for row in made.rows for b in row if b.text == label]
    return press(opened, draft or Draft(), button.action, button.arg)


def show(opened: AskOpened, draft: Draft | None = None, leaves: Leaves = ALL) -> Card:
    return card(opened, "work", draft=draft, leaves=leaves)


# --- permissions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "answer"),
    [
        ("✅ Allow", cmd.AllowAnswer()),
        ("❌ Deny", cmd.DenyAnswer()),
        ("🛑 Deny and stop", cmd.DenyAnswer(stop=True)),
        ("For the session", cmd.AllowAnswer(scope=Scope.SESSION, rules=("Bash(make test)",))),
        ("Always", cmd.AllowAnswer(scope=Scope.ALWAYS, rules=("Bash(make test)",))),
    ],
)
def test_each_button_of_a_permission_sends_its_answer(label: str, answer: cmd.Answer) -> None:
    opened = tool_ask()
    step = pressed(opened, show(opened), label)
    assert isinstance(step, Submit)
    assert step.answer == answer


def test_a_permission_shows_the_command_the_reasons_and_what_always_means() -> None:
    made = show(tool_ask())
    assert "make test" in made.part.text
    assert "no rule decides" in made.part.text
    assert "Bash(make test)" in made.part.text
    assert any(entity.type == "pre" for entity in made.part.entities)


def test_where_nothing_lasting_can_be_granted_there_are_no_buttons_for_it() -> None:
    for opened in (tool_ask(narrowest=()), tool_ask(lasting=False)):
        made = show(opened)
        assert "Always" not in labels(made)
        for action in ("always", "session"):
            assert isinstance(press(opened, Draft(), action, ""), Nothing)


def test_an_edited_command_runs_with_the_rest_of_its_input() -> None:
    opened = tool_ask(input_={"command": "make", "timeout": 5})
    step = pressed(opened, show(opened), "✏️ Edit…")
    assert isinstance(step, Type)
    answer = reply(opened, Draft(), step.purpose, "make test")
    assert isinstance(answer, Submit)
    assert isinstance(answer.answer, cmd.AllowAnswer)
    assert msgspec.json.decode(answer.answer.input) == {"command": "make test", "timeout": 5}


def test_other_inputs_are_edited_as_json() -> None:
    opened = tool_ask("mcp__x__y", {"a": 1})
    answer = reply(opened, Draft(), "edit", '{"a": 2}')
    assert isinstance(answer, Submit)
    with pytest.raises(UsageError, match="JSON object"):
        reply(opened, Draft(), "edit", "no")


@pytest.mark.parametrize("purpose", ["card", "reason"])
def test_a_reply_to_a_permission_denies_it_with_a_reason(purpose: Any) -> None:
    step = reply(tool_ask(), Draft(), purpose, "not now")
    assert isinstance(step, Submit)
    assert step.answer == cmd.DenyAnswer(message="not now")


def test_contents_of_files_are_shown_only_where_they_may_leave_or_when_asked_for() -> None:
    given = {"file_path": "/a.py", "old_string": "one\ntwo", "new_string": "one\nthree"}
    opened = tool_ask("Edit", given)
    hidden, open_ = show(opened, leaves=Leaves()), show(opened, leaves=ALL)
    assert "three" not in hidden.part.text
    assert "/a.py: +1 −1 lines" in hidden.part.text
    assert isinstance(pressed(opened, hidden, "👁 Show"), Show)
    assert "+three" in open_.part.text
    assert "👁 Show" not in labels(open_)
    assert detail(opened).text.splitlines()[-2:] == ["-two", "+three"]


GRANTS = {"✅ Allow", "For the session", "Always"}
APPROVALS = {"✅ Approve (accept edits)", "✅ Approve (ask me)", "🆕 Fresh session"}


def test_a_command_stays_inside_where_commands_may_not_leave() -> None:
    made = show(tool_ask(), leaves=Leaves(commands=False))
    assert "make test" not in made.part.text
    assert "👁 Show" in labels(made)


@pytest.mark.parametrize(
    ("opened", "grants"),
    [(tool_ask(), GRANTS), (plan_ask(), APPROVALS)],
)
def test_what_was_not_sent_to_a_chat_cannot_be_allowed_there(
    opened: AskOpened, grants: set[str]
) -> None:
    leaves, draft = Leaves.of(()), Draft(shown=(7,))
    assert not grants & set(labels(card(opened, "work", draft=draft, leaves=leaves, chat=8)))
    assert grants <= set(labels(card(opened, "work", draft=draft, leaves=leaves, chat=7)))


def test_what_is_too_long_for_a_file_or_a_message_cannot_be_allowed() -> None:
    for tool, given in (
        ("Bash", {"command": "x" * (LARGEST_DETAIL + 1)}),
        ("Write", {"file_path": "/a", "content": "x\n" * LARGEST_DETAIL}),
        ("Other", {"a": "x" * LARGEST_DETAIL}),
    ):
        made = show(tool_ask(tool, given))
        assert not GRANTS & set(labels(made))
        assert "❌ Deny" in labels(made)
    long_rules = show(tool_ask(narrowest=("Bash(" + "x" * MOST_RULES + ")",)))
    assert GRANTS & set(labels(long_rules)) == {"✅ Allow"}
    assert not APPROVALS & set(labels(show(plan_ask("x" * (LARGEST_DETAIL + 1)))))


@pytest.mark.parametrize(
    ("tool", "given", "line"),
    [
        (
            "Bash",
            {"command": "ls", "dangerouslyDisableSandbox": True},
            "⚠️ runs outside the sandbox: dangerouslyDisableSandbox: true",
        ),
        ("Bash", {"command": "ls", "timeout": 5}, "• timeout: 5"),
        ("Bash", {"command": "ls", "description": "List files"}, "• description: List files"),
        (
            "Edit",
            {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": True},
            "⚠️ replaces every occurrence: replace_all: true",
        ),
        ("Write", {"file_path": "/a", "content": ["x"]}, '• content: ["x"]'),
        ("MultiEdit", {"file_path": "/a", "edits": [{"old_string": "p", "z": 1}]}, '"z":1'),
    ],
)
def test_every_member_of_an_input_is_in_the_message(tool: str, given: object, line: str) -> None:
    assert line in show(tool_ask(tool, given)).part.text


def test_every_member_is_in_the_file_of_a_long_input() -> None:
    made = show(tool_ask(input_={"command": "x" * 5000, "force": "yes" * 2000}))
    assert made.file is not None
    assert "x" * 5000 in made.file.text
    assert "yes" * 2000 in made.file.text
    assert len(split(made.part)) == 1


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("", "++i;\nevil()", ["+++i;", "+evil()"]),
        ("-- a\nb", "b", ["--- a", " b"]),
        ("a\nb\nc\nd\ne", "a\nb\nX\nd\ne", [" a", " b", "-c", "+X", " d", " e"]),
        ("a\r\nb", "a\nb", ["-a\r", "+a", " b"]),
        ("a", "", ["-a"]),
    ],
)
def test_a_diff_has_every_line_that_goes_or_comes(old: str, new: str, lines: list[str]) -> None:
    given = {"file_path": "/a", "old_string": old, "new_string": new}
    assert detail(tool_ask("Edit", given)).text.split("\n")[1:] == lines


def test_a_diff_of_many_lines_has_all_of_them() -> None:
    old, new = ([f"{word} {n % 7}" for n in range(5000)] for word in ("one", "two"))
    given = {"file_path": "/a", "old_string": "\n".join(old), "new_string": "\n".join(new)}
    found = detail(tool_ask("Edit", given)).text.split("\n")[1:]
    assert [line[1:] for line in found if line.startswith("-")] == old
    assert [line[1:] for line in found if line.startswith("+")] == new


@pytest.mark.parametrize(
    ("tool", "given", "line"),
    [
        ("Write", {"file_path": "/a", "content": "x\ny"}, "+y"),
        ("NotebookEdit", {"notebook_path": "/n", "new_source": "x"}, "+x"),
        ("MultiEdit", {"file_path": "/a", "edits": [{"old_string": "p", "new_string": "q"}]}, "+q"),
        ("Glob", {"pattern": "*.py"}, '"pattern": "*.py"'),
        ("Edit", {"file_path": 7}, ""),
        ("Bash", {"command": 7}, '"command": 7'),
    ],
)
def test_the_detail_of_any_tool_is_made_from_its_input(tool: str, given: object, line: str) -> None:
    assert line in detail(tool_ask(tool, given)).text


def test_a_long_command_is_a_file_with_a_summary() -> None:
    command = "echo " + "x" * 10_000
    made = show(tool_ask(input_={"command": command}))
    assert len(split(made.part)) == 1
    assert made.part.width < LONGEST
    assert made.file is not None
    assert (made.file.name, made.file.text) == ("command.sh", command)


def test_a_secret_in_a_command_is_masked_and_hidden_characters_are_marked() -> None:
    made = show(tool_ask(input_={"command": "login --password=hunter22222 \u202e"}))
    assert "hunter" not in made.part.text
    assert "U+202E" in made.part.text


def test_a_command_cannot_end_its_own_block() -> None:
    command = "echo '```' [a](tg://x)"
    made = show(tool_ask(input_={"command": command}))
    (block,) = [one for one in made.part.entities if one.type == "pre"]
    units = made.part.text.encode("utf-16-le")
    inside = units[2 * block.offset : 2 * (block.offset + block.length)]
    assert inside.decode("utf-16-le") == command
    assert not [one for one in made.part.entities if one.type == "text_link"]


# --- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "answer"),
    [
        ("✅ Approve (accept edits)", cmd.PlanAnswer(choice="auto")),
        ("✅ Approve (ask me)", cmd.PlanAnswer(choice="manual")),
        ("🆕 Fresh session", cmd.PlanAnswer(choice="fresh")),
        ("⏸ Pause & outline plan", cmd.PlanAnswer(choice="revise", feedback=OUTLINE)),
        ("❌ Deny", cmd.PlanAnswer(choice="reject")),
    ],
)
def test_each_button_of_a_plan_sends_its_answer(label: str, answer: cmd.Answer) -> None:
    opened = plan_ask()
    step = pressed(opened, show(opened), label)
    assert isinstance(step, Submit)
    assert step.answer == answer


def test_planning_is_kept_up_with_the_feedback_of_a_reply() -> None:
    opened = plan_ask()
    step = pressed(opened, show(opened), "💬 Keep planning…")
    assert isinstance(step, Type)
    for purpose in ("card", step.purpose):
        found = reply(opened, Draft(), purpose, "smaller steps")
        assert isinstance(found, Submit)
        assert found.answer == cmd.PlanAnswer(choice="revise", feedback="smaller steps")


def test_a_plan_is_shown_as_text_and_a_long_one_as_a_file() -> None:
    assert "Do it." in show(plan_ask("# Goal\n\n1. Do it.")).part.text
    made = show(plan_ask("# Goal\n\n" + "A step.\n\n" * 1000))
    assert made.file is not None
    assert made.file.name == "plan.md"
    assert made.part.width < LONGEST


def test_without_the_text_of_a_plan_there_is_no_fresh_session() -> None:
    opened = plan_ask(None)
    assert "🆕 Fresh session" not in labels(show(opened))
    assert isinstance(press(opened, Draft(), "plan", "fresh"), Nothing)


# --- questions -----------------------------------------------------------------------------------


def test_all_questions_of_an_ask_are_answered_in_turn() -> None:
    opened = questions_ask()
    step = pressed(opened, show(opened), "B")
    assert isinstance(step, Redraw)
    second = show(opened, step.draft)
    assert "One: B" in second.part.text
    assert "X: the first" in second.part.text
    assert isinstance(pressed(opened, second, "✅ Done", step.draft), Nothing)
    for label in ("☐ X", "☐ Z"):
        step = pressed(opened, show(opened, step.draft), label, step.draft)
        assert isinstance(step, Redraw)
    step = pressed(opened, show(opened, step.draft), "✅ Done", step.draft)
    assert isinstance(step, Redraw)
    last = reply(opened, step.draft, "card", "No, thanks.")
    assert isinstance(last, Submit)
    assert last.answer == cmd.QuestionsAnswer(
        answers={"Which one?": "B", "Which ones?": ("X", "Z"), "Anything else?": "No, thanks."}
    )


def test_answers_may_be_partial_and_all_may_be_skipped() -> None:
    opened = questions_ask()
    step = pressed(opened, show(opened), "A")
    assert isinstance(step, Redraw)
    partial = pressed(opened, show(opened, step.draft), "Skip the rest", step.draft)
    assert isinstance(partial, Submit)
    assert partial.answer == cmd.QuestionsAnswer(answers={"Which one?": "A"})
    whole = pressed(opened, show(opened), "Skip the rest")
    assert isinstance(whole, Submit)
    assert whole.answer == cmd.SkipAnswer()
    single = questions_ask(QUESTIONS[:1])
    skipped = pressed(single, show(single), "Skip")
    assert isinstance(skipped, Submit)
    assert skipped.answer == cmd.SkipAnswer()


@pytest.mark.parametrize(
    ("action", "arg"),
    [
        ("option", "1.0"),
        ("option", "0.9"),
        ("option", "0"),
        ("option", "x.y"),
        ("option", ""),
        ("chosen", "0"),
        ("next", "2"),
        ("allow", ""),
        ("plan", "auto"),
        ("option", "9" * 50),
    ],
)
def test_a_button_that_does_not_fit_does_nothing(action: str, arg: str) -> None:
    assert isinstance(press(questions_ask(), Draft(), action, arg), Nothing)


def test_questions_that_cannot_be_read_have_no_button_that_answers() -> None:
    opened = questions_ask([])
    assert show(opened).rows == ()
    assert isinstance(press(opened, Draft(), "next", "0"), Nothing)


# --- forms ---------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "required": ["title", "count"],
    "properties": {
        "title": {"type": "string", "title": "Title", "minLength": 2},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "urgent": {"type": "boolean", "description": "At once?"},
        "kind": {"enum": ["bug", "idea"], "enumNames": ["A bug", "An idea"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
}


def test_a_form_is_filled_in_field_by_field() -> None:
    opened = form_ask(SCHEMA)
    draft = Draft()
    for wrong, text in (("x", "at least 2"), ("", "no text")):
        with pytest.raises(UsageError, match=text):
            reply(opened, draft, "card", wrong)
    for value in ("A title", "3"):
        step = reply(opened, draft, "card", value)
        assert isinstance(step, Redraw)
        draft = step.draft
    for label in ("Yes", "A bug", "☐ b", "✅ Done"):
        step = pressed(opened, show(opened, draft), label, draft)
        assert isinstance(step, Redraw)
        draft = step.draft
    step = pressed(opened, show(opened, draft), "✅ Accept", draft)
    assert isinstance(step, Submit)
    assert isinstance(step.answer, cmd.ElicitationAnswer)
    assert msgspec.json.decode(step.answer.content) == {
        "title": "A title",
        "count": 3,
        "urgent": True,
        "kind": "bug",
        "tags": ["b"],
    }


@pytest.mark.parametrize("value", ["0", "10", "x", "1.5", ""])
def test_a_value_that_does_not_fit_its_field_is_refused(value: str) -> None:
    with pytest.raises(UsageError):
        reply(form_ask(SCHEMA), Draft(at=1), "card", value)


def test_only_optional_fields_are_skipped_and_a_form_is_accepted_at_its_end_only() -> None:
    opened = form_ask(SCHEMA)
    assert isinstance(press(opened, Draft(), "next", "0"), Nothing)
    assert isinstance(press(opened, Draft(at=2), "next", "2"), Redraw)
    assert isinstance(press(opened, Draft(), "form", "accept"), Nothing)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_can_be_declined_and_cancelled(action: Any) -> None:
    opened = form_ask(SCHEMA)
    step = pressed(opened, show(opened), action.capitalize())
    assert isinstance(step, Submit)
    assert step.answer == cmd.ElicitationAnswer(action=action)


def test_a_page_to_visit_is_a_link_with_its_host_in_view() -> None:
    opened = form_ask(url="https://login.example.org/a?b=c")
    made = show(opened)
    assert "login.example.org" in made.part.text
    assert [b.url for row in made.rows for b in row if b.url] == ["https://login.example.org/a?b=c"]
    step = pressed(opened, made, "✅ Done")
    assert isinstance(step, Submit)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "x" * 9999]
)
def test_an_address_that_is_no_page_is_no_link(url: str) -> None:
    made = show(form_ask(url=url))
    assert not [b for row in made.rows for b in row if b.url]
    assert labels(made) == ["Decline", "Cancel"]


@pytest.mark.parametrize("schema", [7, [], {"properties": 7}, {"properties": {"a": 7}}])
def test_a_schema_of_any_shape_makes_a_card(schema: object) -> None:
    assert show(form_ask(schema)).rows


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "allowed", "text"),
    [
        (cmd.AllowAnswer(), True, "✅ Allowed by anna"),
        (cmd.AllowAnswer(scope=Scope.ALWAYS), True, "✅ Allowed always by anna"),
        (cmd.AllowAnswer(input=Raw(b"{}")), True, "✅ Allowed, edited by anna"),
        (cmd.DenyAnswer(message="no", stop=True), False, "❌ Denied and stopped by anna: no"),
        (cmd.PlanAnswer(choice="fresh"), True, "✅ Approved, in a fresh session by anna"),
        (cmd.QuestionsAnswer(answers={"Q": ("a", "b")}), True, "✅ Answered by anna\n• Q — a, b"),
        (cmd.SkipAnswer(), False, "⏭ Skipped by anna"),
        (cmd.ElicitationAnswer(action="decline"), False, "❌ Declined by anna"),
    ],
)
def test_a_closed_question_says_what_was_answered_and_by_whom(
    answer: cmd.Answer, allowed: bool, text: str
) -> None:
    event = ev.AskAnswered(ask="s.1", by="anna", answer=raw(answer), allowed=allowed)
    assert closed_part(tool_ask(), "work", event).text.endswith(text)


def test_a_withdrawn_question_says_why() -> None:
    event = ev.AskWithdrawn(ask="s.1", reason="the turn was interrupted")
    assert "Withdrawn: the turn was interrupted" in closed_part(tool_ask(), "work", event).text
