import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.wire.tools import (
    TITLE_LIMIT,
    Action,
    ActionKind,
    AllowedPrompt,
    Plan,
    Questions,
    describe,
    one_line,
    parse_plan,
    parse_questions,
)

COLOR = {
    "question": "Which color?",
    "header": "Color",
    "options": [
        {"label": "Red", "description": "warm", "preview": "#f00"},
        {"label": "Green", "description": "calm"},
    ],
    "multiSelect": False,
}
TOPPINGS = {**COLOR, "question": "Which toppings?", "multiSelect": True}


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def questions(**more: object) -> Questions:
    found = parse_questions(raw({"questions": [COLOR, TOPPINGS], **more}))
    assert found is not None
    return found


def test_questions_are_typed() -> None:
    first, second = questions().questions

    assert first.question == "Which color?"
    assert first.header == "Color"
    assert [option.label for option in first.options] == ["Red", "Green"]
    assert first.options[0].preview == "#f00"
    assert not first.multi_select
    assert second.multi_select


def test_answers_go_back_with_the_questions_and_all_else_that_came() -> None:
    answered = questions(metadata={"source": "x"}).with_answers(
        {"Which color?": "Mauve, actually", "Which toppings?": ["Red", "Green"]}
    )

    assert json.loads(bytes(answered)) == {
        "questions": [COLOR, TOPPINGS],
        "metadata": {"source": "x"},
        "answers": {"Which color?": "Mauve, actually", "Which toppings?": "Red, Green"},
    }


def test_answers_that_the_model_gave_itself_are_thrown_away() -> None:
    asked = questions(
        answers={"Which color?": "Red"}, annotations={"Which color?": {"notes": "psst"}}
    )

    answered = json.loads(bytes(asked.with_answers({})))

    assert answered["answers"] == {}
    assert "annotations" not in answered


def test_notes_and_previews_travel_as_annotations() -> None:
    answered = questions().with_answers(
        {"Which color?": "Red"},
        notes={"Which color?": "but dark"},
        annotations={"Which color?": {"preview": "#f00"}},
    )

    assert json.loads(bytes(answered))["annotations"] == {
        "Which color?": {"preview": "#f00", "notes": "but dark"}
    }


def test_an_answer_to_what_nobody_asked_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no question"):
        questions().with_answers({"Why?": "Because"})
    with pytest.raises(UsageError, match="there is no question"):
        questions().with_answers({}, notes={"Why?": "Because"})


def test_several_answers_need_a_question_that_takes_several() -> None:
    with pytest.raises(UsageError, match="only one answer"):
        questions().with_answers({"Which color?": ["Red", "Green"]})
    with pytest.raises(UsageError, match="omit the question"):
        questions().with_answers({"Which toppings?": []})


@pytest.mark.parametrize(
    "odd",
    [{}, {"questions": []}, {"questions": "x"}, {"questions": [{}]}, [], None, {"questions": [1]}],
)
def test_an_input_without_questions_is_no_question(odd: object) -> None:
    assert parse_questions(raw(odd)) is None


def test_a_plan_is_typed() -> None:
    plan = parse_plan(
        raw(
            {
                "plan": "1. Do it",
                "planFilePath": "/p.md",
                "allowedPrompts": [{"tool": "Bash", "prompt": "run tests"}],
                "new": 1,
            }
        )
    )

    assert plan == Plan(
        plan="1. Do it",
        plan_file_path="/p.md",
        allowed_prompts=(AllowedPrompt(tool="Bash", prompt="run tests"),),
    )


def test_a_plan_without_text_is_a_plan() -> None:
    assert parse_plan(raw({})) == Plan()


@pytest.mark.parametrize("odd", [{"plan": 5}, [], None])
def test_an_input_that_is_no_plan_is_none(odd: object) -> None:
    assert parse_plan(raw(odd)) is None


@pytest.mark.parametrize(
    ("tool", "given_input", "kind", "title"),
    [
        ("Bash", {"command": "ls -l"}, "command", "ls -l"),
        ("Bash", {"command": "cd x &&\n\tmake"}, "command", "cd x && make"),
        ("Edit", {"file_path": "/a.py"}, "file_change", "/a.py"),
        ("Write", {"path": "/a.py"}, "file_change", "/a.py"),
        ("MultiEdit", {"file_path": "/a.py"}, "file_change", "/a.py"),
        ("NotebookEdit", {"notebook_path": "/a.ipynb"}, "file_change", "/a.ipynb"),
        ("Read", {"file_path": "/a.py"}, "tool", "Read /a.py"),
        ("Glob", {"pattern": "**/*.py"}, "tool", "**/*.py"),
        ("Grep", {"pattern": "x+", "path": "/"}, "tool", "x+"),
        ("WebSearch", {"query": "news"}, "web_search", "news"),
        ("WebFetch", {"url": "https://h/"}, "web_search", "https://h/"),
        ("TodoWrite", {"todos": []}, "note", "update todos"),
        ("TodoRead", {}, "note", "update todos"),
        ("TaskCreate", {"subject": "Replace floats"}, "tool", "Replace floats"),
        ("AskUserQuestion", {"questions": []}, "note", "ask user"),
        ("Task", {"description": "d"}, "tool", "Task"),
        ("Agent", {}, "tool", "Agent"),
        ("KillShell", {"shell_id": "1"}, "command", "KillShell"),
        ("mcp__calc__add", {"a": 1}, "tool", "mcp__calc__add"),
    ],
)
def test_a_tool_call_is_described_by_kind_and_title(
    tool: str, given_input: object, kind: str, title: str
) -> None:
    assert describe(tool, raw(given_input)) == Action(ActionKind(kind), title)


@pytest.mark.parametrize(
    "odd", [b"", b"junk", b"null", b"[]", b"{}", b'{"command":5}', b'{"command":""}']
)
def test_an_input_that_tells_nothing_is_shown_by_the_tools_name(odd: bytes) -> None:
    assert describe("Bash", Raw(odd)) == Action(ActionKind.COMMAND, "Bash")


def test_a_tool_without_a_name_has_a_title() -> None:
    assert describe("\x1b\n", raw({})).title == "\ufffd"
    assert describe(" ", raw({})).title == "unnamed tool"


def test_what_a_terminal_obeys_is_made_harmless() -> None:
    title = describe(
        "Bash", raw({"command": "\x1b]0;owned\x07\x1b[2Jls \u202egnp.exe\x9b1m"})
    ).title

    assert title == "\ufffd]0;owned\ufffd\ufffd[2Jls \ufffdgnp.exe\ufffd1m"


def test_blanks_do_not_push_a_command_out_of_sight() -> None:
    assert describe("Bash", raw({"command": " " * 5000 + "rm -rf /"})).title == "rm -rf /"
    assert (
        describe("Bash", raw({"command": "ls" + " " * 5000 + "; rm -rf /"})).title
        == "ls ; rm -rf /"
    )


def test_a_long_title_is_cut_and_shows_it() -> None:
    title = describe("Read", raw({"file_path": "/" + "x" * 500})).title

    assert len(title) == TITLE_LIMIT
    assert title.startswith("Read /x")
    assert title.endswith("…")
    assert one_line("ls" + " " * 100_000 + "; rm -rf /").endswith("…")


def test_a_title_marks_blanks_that_are_no_blank_to_who_runs_it() -> None:
    assert describe("Bash", raw({"command": "rm\u00a0-rf\u2028x\ry"})).title == (
        "rm\ufffd-rf\ufffdx\ufffdy"
    )
    assert one_line("Bonjour\u00a0!") == "Bonjour !"
    assert one_line("r\u200dm \u00ad\ufe0f") == "r\ufffdm \ufffd\ufffd"


def test_letters_that_need_joining_stay_joined() -> None:
    assert one_line("👩\u200d💻 نمی\u200cخواهم") == "👩\u200d💻 نمی\u200cخواهم"


@given(st.text(alphabet=st.characters(), max_size=600), st.integers(2, 50))
def test_no_text_makes_a_title_that_is_long_or_obeyed(text: str, limit: int) -> None:
    title = one_line(text, limit)

    assert len(title) <= limit
    assert all(unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"} for char in title)
    assert not set(title) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
