"""What happens in a session, as updates for an editor. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.fronts.acp.v1.updates import Translator, Update, answered_update, stop_reason
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.holds import ContextUse, OfferedCommand, Todo
from quarterdeck.protocol.stream_frames import Live
from quarterdeck.protocol.views import Deltas, LastTurn
from support.acp_shapes import (
    OFFERS,
    assistant,
    call,
    happened,
    known,
    opened,
    result,
    session,
    text,
)


def live(words: str, *, block: int = 0, thinking: bool = False, whole: bool = False) -> Live:
    delta = Deltas(session="s1", message="m1", text=words, block=block, thinking=thinking)
    return Live(deltas=(delta,), whole=whole)


def words(updates: list[Update]) -> list[tuple[str, str]]:
    """Kind and text of messages."""
    dumped = [update.model_dump(by_alias=True) for update in updates]
    return [(each["sessionUpdate"], each["content"]["text"]) for each in dumped]


def json(updates: list[Update]) -> list[dict[str, Any]]:
    return [update.model_dump(by_alias=True, exclude_none=True) for update in updates]


def test_text_is_sent_as_it_is_generated_and_only_once() -> None:
    told = Translator(known())
    assert words(told.live(live("half "))) == [("agent_message_chunk", "half ")]
    assert words(told.live(live("a word"))) == [("agent_message_chunk", "a word")]
    assert told.event(assistant(text("half a word"))) == []
    assert words(told.event(assistant(text("half a word")))) == [
        ("agent_message_chunk", "half a word")
    ], "the same text again is another message"


def test_what_live_text_lacks_comes_with_the_message() -> None:
    told = Translator(known())
    told.live(live("begin"))
    assert words(told.event(assistant(text("beginning")))) == [("agent_message_chunk", "ning")]
    told.live(live("lost "))
    assert words(told.event(assistant(text("another")))) == [("agent_message_chunk", "another")]


def test_a_reader_that_joins_gets_the_text_so_far_and_no_part_twice() -> None:
    told = Translator(known())
    assert words(told.live(live("so far", whole=True))) == [("agent_message_chunk", "so far")]
    assert words(told.live(live("so far and", whole=True))) == [("agent_message_chunk", " and")]
    assert told.live(live("something else", whole=True)) == []
    assert words(told.event(assistant(text("so far and more")))) == [
        ("agent_message_chunk", " more")
    ]


def test_a_message_of_which_live_text_was_missed_is_told_when_it_is_complete() -> None:
    told = Translator(known())
    told.live(live("the beg"))
    told.miss_live()
    assert told.live(live("d the end")) == []
    assert words(told.event(assistant(text("the beginning and the end")))) == [
        ("agent_message_chunk", "inning and the end")
    ]
    other = Deltas(session="s1", message="m2", text="next", block=0)
    assert words(told.live(Live(deltas=(other,)))) == [("agent_message_chunk", "next")]


def test_thoughts_are_told_as_such_and_those_of_subagents_are_not() -> None:
    told = Translator(known())
    assert words(told.live(live("hm", thinking=True))) == [("agent_thought_chunk", "hm")]
    thought = {"type": "thinking", "thinking": "hmm", "signature": "x"}
    assert words(told.event(assistant(thought, text("hm!")))) == [
        ("agent_thought_chunk", "m"),
        ("agent_message_chunk", "hm!"),
    ]
    assert told.event(assistant(text("inside"), thought, parent="t9")) == []


def test_live_text_of_a_turn_that_ended_is_forgotten() -> None:
    told = Translator(known())
    told.live(live("half"))
    ended = ev.TurnEnded(prompts=(), failed=True, outcome="aborted", cost_usd=0.0)
    assert told.event(happened(ended)) == []
    assert words(told.event(assistant(text("half of it")))) == [
        ("agent_message_chunk", "half of it")
    ]


def test_a_call_its_decision_and_its_result() -> None:
    told = Translator(known())
    (begun,) = json(told.event(assistant(call("Bash", command="make"))))
    assert begun["sessionUpdate"] == "tool_call"
    assert (begun["toolCallId"], begun["kind"], begun["status"]) == ("t1", "execute", "pending")
    assert begun["title"] == "make"
    assert begun["rawInput"] == {"command": "make"}
    decided = ev.Decided(tool="Bash", title="make", verdict="allow", by="ada", tool_use_id="t1")
    (running,) = json(told.event(happened(decided)))
    assert running == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t1",
        "status": "in_progress",
    }
    (done,) = json(told.event(result("built")))
    assert done["status"] == "completed"
    assert done["content"][0]["content"]["text"] == "built"
    (failed,) = json(told.event(result("", failed=True)))
    assert failed["status"] == "failed"
    assert "content" not in failed


@pytest.mark.parametrize(
    ("tool", "given", "diffs"),
    [
        ("Write", {"file_path": "/a", "content": "new"}, [(None, "new")]),
        ("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}, [("x", "y")]),
        (
            "MultiEdit",
            {"file_path": "/a", "edits": [{"old_string": "x", "new_string": "y"}, 7]},
            [("x", "y")],
        ),
        ("NotebookEdit", {"notebook_path": "/a", "new_source": "n"}, [(None, "n")]),
        ("Edit", {"file_path": 7}, []),
        ("Read", {"file_path": "/a", "offset": 3}, []),
    ],
)
def test_changes_of_files_are_diffs_and_stay_when_they_succeed(
    tool: str, given: dict[str, object], diffs: list[tuple[str | None, str]]
) -> None:
    told = Translator(known())
    (begun,) = json(told.event(assistant(call(tool, **given))))
    found = begun.get("content", [])
    assert [(each.get("oldText"), each["newText"]) for each in found] == diffs
    if given.get("file_path") == "/a":
        assert begun["locations"][0]["path"] == "/a"
    (done,) = json(told.event(result("fine")))
    assert ("content" in done) is not bool(diffs)


def test_an_input_that_is_no_object_is_borne() -> None:
    told = Translator(known())
    block = {"type": "tool_use", "id": "t1", "name": "Odd", "input": [1]}
    (begun,) = json(told.event(assistant(block)))
    assert (begun["kind"], begun["rawInput"]) == ("other", {})


def test_prompts_of_others_are_shown_and_ones_own_are_not() -> None:
    told = Translator(known(), {"mine"}.__contains__)
    image = b'[{"type":"text","text":"look"},{"type":"image","source":{}}]'
    for id_, content in (("mine", b'"x"'), ("theirs", image)):
        event = ev.PromptQueued(prompt=id_, content=Raw(content), by="bob")
        found = json(told.event(happened(event)))
        if id_ == "mine":
            assert found == []
        else:
            assert found[0]["sessionUpdate"] == "user_message_chunk"
            assert found[0]["content"]["text"] == "look (and 1 file)"
            assert found[0]["_meta"] == {"quarterdeck": {"by": "bob"}}


def test_to_dos_are_a_plan() -> None:
    told = Translator(known())
    todos = (
        Todo(todo="1", text="one", status="completed"),
        Todo(todo="2", text="two", status="in_progress", doing="Doing two"),
        Todo(todo="3", text="three", status="odd"),
    )
    (plan,) = json(told.event(happened(ev.TodosChanged(todos=todos))))
    assert [(entry["content"], entry["status"]) for entry in plan["entries"]] == [
        ("one", "completed"),
        ("Doing two", "in_progress"),
        ("three", "pending"),
    ]


def test_what_a_person_should_know_is_a_notice() -> None:
    told = Translator(known())
    alarm = ev.Alarmed(alarm="silent", text="it is silent")
    denied = ev.Decided(tool="Bash", title="rm", verdict="deny", by="policy", reasons=("no",))
    allowed = ev.Decided(tool="Bash", title="ls", verdict="allow", by="policy", reasons=("ok",))
    crashed = ev.RunEnded(run="r1", reason="it crashed")
    ended = ev.RunEnded(run="r1", reason="stopped", clean=True)
    found = [
        json(told.event(happened(event))) for event in (alarm, denied, allowed, crashed, ended)
    ]
    codes = [[each["_meta"]["quarterdeck"]["notice"] for each in updates] for updates in found]
    assert codes == [["alarm"], ["decided"], [], ["run.ended"], []]
    assert "*Deny by policy: rm (no).*" in found[1][0]["content"]["text"]


def test_who_answered_elsewhere_is_told() -> None:
    answer = ev.AskAnswered(ask="s1.a1", by="bob", answer=Raw(b"{}"), allowed=True)
    (update,) = json(answered_update(answer, opened()))
    assert update["content"]["text"].strip() == "*Allowed by bob, elsewhere: make.*"
    assert update["_meta"]["quarterdeck"] == {
        "notice": "ask.answered",
        "ask": "s1.a1",
        "by": "bob",
        "allowed": True,
    }
    for allowed, verb in ((True, "Answered"), (False, "Declined")):
        event = ev.AskAnswered(ask="s1.a1", by="bob", answer=Raw(b"{}"), allowed=allowed)
        (update,) = json(answered_update(event, opened(kind=ev.AskKind.QUESTIONS)))
        assert verb in update["content"]["text"]
    (update,) = json(answered_update(ev.AskWithdrawn(ask="s1.a1", reason="gone"), opened()))
    assert "withdrawn: make (gone)" in update["content"]["text"]


# --- what holds ----------------------------------------------------------------------------------


def test_an_editor_that_opens_a_session_is_told_what_holds() -> None:
    holds = replace(
        session().holds,
        context=ContextUse(tokens=10, window=200),
        todos=(Todo(todo="1", text="one"),),
    )
    told = Translator(known(name="the name", holds=holds, cost_usd=0.5))
    commands, info, usage, plan = json(told.first_updates())
    assert commands["availableCommands"][0] == {
        "name": "compact",
        "description": "Make room",
        "input": {"hint": "[what to keep]"},
    }
    assert commands["availableCommands"][1] == {"name": "plain", "description": "plain"}
    assert (info["title"], info["updatedAt"]) == ("the name", "1970-01-01T00:00:01Z")
    assert usage["used"] == 10
    assert usage["cost"] == {"amount": 0.5, "currency": "USD"}
    assert plan["entries"][0]["content"] == "one"


def test_only_what_has_changed_is_told() -> None:
    told = Translator(known())
    assert told.view(session(updated=2_000, head=9)) == []
    assert told.view(session(model="claude-big")) == [], "it is the default one"
    switched = json(told.view(session(mode="plan", model="small")))
    assert [each["sessionUpdate"] for each in switched] == [
        "config_option_update",
        "current_mode_update",
    ]
    assert switched[1]["currentModeId"] == "plan"
    again = session(mode="plan", model="small")
    holds = replace(again.holds, context=ContextUse(tokens=5, window=100))
    (usage,) = json(told.view(replace(again, holds=holds)))
    assert (usage["used"], usage["size"]) == (5, 100)
    last = LastTurn(at=5, failed=False, outcome="completed")
    (info,) = json(told.view(replace(again, holds=holds, last_turn=last, name="new")))
    assert info["title"] == "new"


def test_other_offers_are_told_once() -> None:
    told = Translator(known())
    event = ev.OffersChanged(commands=(OfferedCommand(name="new"),))
    commands, options = json(told.offers_in(event))
    assert [each["name"] for each in commands["availableCommands"]] == ["new"]
    assert options["sessionUpdate"] == "config_option_update"
    assert told.known.offers.models == OFFERS.models
    assert told.offers_in(event) == []


@pytest.mark.parametrize(
    ("outcome", "failed", "problem", "reason"),
    [
        ("completed", False, "", "end_turn"),
        ("error_during_execution", True, "interrupted", "cancelled"),
        ("aborted_tools", True, "", "cancelled"),
        ("max_turns", True, "", "max_turn_requests"),
        ("error_max_turns", True, "", "max_turn_requests"),
        ("refusal", True, "", "refusal"),
        ("api_error", True, "authentication_failed", None),
    ],
)
def test_the_end_of_a_turn(outcome: str, failed: bool, problem: str, reason: str | None) -> None:
    turn = ev.TurnEnded(prompts=(), failed=failed, outcome=outcome, cost_usd=0, problem=problem)
    assert stop_reason(turn) == reason
