"""Events hold codes, and words are made of them in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec import inspect

import quarterdeck
from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.domain.structs import name_set
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import act_text, coded_exit, coded_text, end_text, with_texts

SOURCE = Path(quarterdeck.__file__).parent

FROM_OUTSIDE = {
    # What the CLI, its agent, a program or a person has said, and paths, hosts and versions.
    "said.broken": {"text", "error"},
    "prompt.peer": {"sender", "name", "text"},
    "prompt.cancelled": {"reason"},
    "turn.ended": {"text"},
    "ask.opened": {"title", "plan", "reasons"},
    "decided": {"title", "reasons"},
    "tool.started": {"title"},
    "program.acted": {"detail", "what"},
    "sandbox.refused": {"target", "rule"},
    "session.renamed": {"name"},
    # Sentences of older hubs and runners, and messages of machines.
    "run.ended": {"reason", "stderr"},
    "run.link_lost": {"reason"},
    "run.state": {"detail"},
    "ask.withdrawn": {"reason"},
    "alarm": {"text", "action"},
    "noted": {"text"},
    "worktree.settled": {"text"},
    "folder.changed": {"text"},
}
CODES = name_set(
    "act action access agent alarm ask branch by call caller cli_session commit directory effort"
    " fault host level limit machine message mode model outcome parent person problem prompt"
    " request_id rule run saved scope source status task then thinking tool tool_use_id unit url"
    " uuid verdict version about session"
)
"""Members that hold codes, ids and names."""
LISTS = {"answered_by", "changed", "lineage", "narrowest", "paths", "prompts", "written"}
"""Lists of ids, names and paths."""

EVENTS = get_args(ev.AnyEvent)


@pytest.mark.parametrize("code", TextCode)
def test_each_code_has_words(code: TextCode) -> None:
    coded = CodedText(code=code, name="ada", other="two", names=("a", "b"), detail="why")
    text = coded_text(coded)
    assert text != f"{code.replace('_', ' ')}: why"
    assert "{" not in text


@pytest.mark.parametrize("act", AlarmAct)
def test_each_act_has_words(act: AlarmAct) -> None:
    assert act is AlarmAct.RING or act_text(act) not in {act.value, act.replace("_", " ")}


def test_a_code_of_a_newer_hub_is_shown_with_what_others_said() -> None:
    assert coded_text(CodedText(code="something_new", detail="no room")) == "something new: no room"


def test_what_others_have_said_is_shown_as_it_is() -> None:
    coded = CodedText(code=TextCode.NOT_STARTED, detail="{0.code} {x}")
    assert coded_text(coded) == "It was not started: {0.code} {x}."


def test_the_end_of_a_process_is_told_with_its_signal_and_its_cause() -> None:
    ended = ev.RunEnded(
        run="r", reason="", coded=CodedText(code=TextCode.PROCESS_KILLED), exit_code=-9, signal=9
    )
    assert end_text(ended) == (
        "The CLI has ended: it did not stop when it was terminated, and was killed;"
        " it was killed, possibly for lack of memory (SIGKILL)."
    )
    again = CodedText(code=TextCode.RESUMED_AUTOMATICALLY, more=ended.coded)
    assert coded_text(again).startswith("It is resumed automatically. The CLI has ended:")


def test_a_runner_tells_older_hubs_the_sentence_too() -> None:
    assert coded_exit(TextCode.RUNNER_KILLED).reason == (
        "The runner was killed, and the CLI with it."
    )


OLD = [
    ev.RunEnded(run="r", reason="It was killed."),
    ev.LinkLost(run="r", reason="It is away."),
    ev.AskWithdrawn(ask="q", reason="the CLI withdrew it"),
    ev.Alarmed(alarm="no_result", text="Nothing came.", action="the turn was interrupted"),
    ev.Noted(level="info", text="It is resumed."),
    ev.FolderChanged(action="commit", by="ada", text="Committed."),
]


@pytest.mark.parametrize("event", OLD)
def test_an_event_of_an_older_hub_keeps_its_sentence(event: ev.Event) -> None:
    assert with_texts(event) == event


def test_an_event_without_texts_is_given_back_as_it_is() -> None:
    event = ev.PromptTaken(prompt="p")
    assert with_texts(event) is event


def test_an_alarm_is_worded_with_what_was_done() -> None:
    coded = CodedText(code=TextCode.NO_RESULT, seconds=901)
    alarm = ev.Alarmed(alarm="no_result", text="", coded=coded, act=AlarmAct.TURN_INTERRUPTED)
    told = with_texts(alarm)
    assert told.text == "The turn continues, and nothing has come for 901 s."
    assert told.action == "the turn was interrupted"


# --- no event holds a sentence -------------------------------------------------------------------


def members_with_text(kind: type[ev.Event]) -> Iterator[str]:
    """The members of an event that are a text, or a list of texts."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        if holds_text(field.type):
            yield field.encode_name


def holds_text(type_: inspect.Type) -> bool:
    match type_:
        case inspect.StrType():
            return True
        case inspect.UnionType(types=types):
            return any(map(holds_text, types))
        case inspect.VarTupleType(item_type=item):
            return holds_text(item)
        case _:
            return False


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_has_no_member_for_a_sentence_of_ours(kind: type[ev.Event]) -> None:
    tag = str(kind.__struct_config__.tag)
    known = CODES | LISTS | FROM_OUTSIDE.get(tag, set())
    assert not set(members_with_text(kind)) - known


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    names = {kind.__name__ for kind in EVENTS} | {"CodedText", "RunEnd"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in names:
                yield node


def has_words(node: ast.expr) -> bool:
    """Whether an expression is a text with a blank in it."""
    match node:
        case ast.Constant(value=str(text)):
            return " " in text
        case ast.JoinedStr(values=parts):
            return any(map(has_words, parts))
        case ast.Tuple(elts=parts):
            return any(map(has_words, parts))
        case ast.BinOp(left=left, right=right):
            return has_words(left) or has_words(right)
        case ast.IfExp(body=body, orelse=other):
            return has_words(body) or has_words(other)
        case _:
            return False


def test_no_event_is_made_with_a_sentence() -> None:
    found: list[str] = []
    for package in ("hub", "fronts", "service", "history", "runner", "worktrees", "links"):
        for file in sorted((SOURCE / package).rglob("*.py")):
            for call in calls(ast.parse(file.read_text())):
                allowed = ALLOWED.get(file.name, set())
                found += [
                    f"{file}:{call.lineno}: {given.arg}"
                    for given in call.keywords
                    if has_words(given.value) and given.arg not in allowed
                ]
    assert found == []


ALLOWED: dict[str, set[str]] = {
    "payloads.py": {"title", "text"},  # a sample of what an agent has said
}


def test_the_members_that_keep_old_sentences_are_always_written() -> None:
    """An older hub on the same journal reads these events, and needs the members."""
    coded = CodedText(code=TextCode.MACHINE_LOST)
    for event in (
        ev.RunEnded(run="r", reason="", coded=coded),
        ev.LinkLost(run="r", reason="", coded=coded),
        ev.AskWithdrawn(ask="q", reason="", coded=coded),
        ev.Alarmed(alarm="no_result", text="", coded=coded),
        ev.Noted(level="info", text="", coded=coded),
    ):
        stored = msgspec.json.decode(msgspec.json.encode(event))
        assert "" in {stored.get("reason"), stored.get("text")}
