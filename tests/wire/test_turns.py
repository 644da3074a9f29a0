"""The account of prompts and turns, in the orders in which real CLIs send things."""

from __future__ import annotations

import pytest

from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.turns import PromptDropped, PromptTaken, Turn, TurnEnded, TurnLedger
from support import lines


def feed(ledger: TurnLedger, *said: bytes) -> list[object]:
    """Let the ledger see lines; returns what it made of them."""
    return [event for line in said for event in ledger.observe(from_cli(line.rstrip()))]


def turns(events: list[object]) -> list[tuple[str, ...]]:
    """The prompts of each turn that ended."""
    return [event.turn.prompts for event in events if isinstance(event, TurnEnded)]


def test_a_plain_turn_takes_its_prompt_when_the_cli_echoes_it() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    events = feed(ledger, lines.init(), lines.echo("p1"), lines.assistant("hi", "a"))
    assert events == [PromptTaken("p1")]
    assert ledger.in_turn
    assert turns(feed(ledger, lines.result("r"))) == [("p1",)]
    assert not ledger.busy


def test_prompts_run_one_by_one_on_old_versions() -> None:
    ledger = TurnLedger()
    for prompt in ("p1", "p2", "p3"):
        ledger.prompt(prompt)
    ended = []
    for prompt in ("p1", "p2", "p3"):
        ended += feed(ledger, lines.init(), lines.echo(prompt), lines.result(f"r-{prompt}"))
    assert turns(ended) == [("p1",), ("p2",), ("p3",)]


def test_prompts_queued_behind_a_text_are_joined_on_new_versions() -> None:
    ledger = TurnLedger()
    for prompt in ("p1", "p2", "p3"):
        ledger.prompt(prompt)
    events = feed(ledger, lines.init(), lines.echo("p1"), lines.result("r1"))
    events += feed(ledger, lines.init(), lines.echo("p2"), lines.echo("p3"), lines.result("r2"))
    assert turns(events) == [("p1",), ("p2", "p3")]


def test_a_prompt_sent_while_a_tool_runs_is_folded_into_the_turn() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    feed(ledger, lines.init(), lines.echo("p1"))
    ledger.prompt("p2")
    assert ledger.queued == ("p2",)
    assert turns(feed(ledger, lines.echo("p2"), lines.result("r"))) == [("p1", "p2")]


def test_the_result_itself_may_name_its_prompts() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    ledger.prompt("p2")
    assert turns(feed(ledger, lines.result("r", user_message_uuids=["p1", "p2"]))) == [("p1", "p2")]


def test_a_background_task_starts_a_turn_that_no_prompt_asked_for() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    feed(ledger, lines.init(), lines.echo("p1"), lines.result("r1"))
    notice = lines.line(
        type="system", subtype="task_notification", task_id="t", status="completed", uuid="n"
    )
    ledger.prompt("p2")
    # The prompt is queued while the task's own turn runs: it must not be taken for answered.
    own = feed(
        ledger, notice, lines.init(uuid="i2"), lines.assistant("ok", "a"), lines.result("r2")
    )
    assert turns(own) == [()]
    assert ledger.queued == ("p2",)
    assert turns(feed(ledger, lines.init(uuid="i3"), lines.echo("p2"), lines.result("r3"))) == [
        ("p2",)
    ]


def test_the_newest_cli_marks_the_turn_of_a_task() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    marked = lines.result("r", origin={"kind": "task-notification"})
    assert turns(feed(ledger, lines.init(), marked)) == [()]
    assert ledger.queued == ("p1",)


def test_a_prompt_that_a_hook_swallows_ends_with_the_result_that_follows() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    assert turns(feed(ledger, lines.result("r"))) == [("p1",)]


def test_a_second_result_for_one_prompt_ends_nothing_else() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    events = feed(ledger, lines.init(), lines.echo("p1"), lines.result("r1"), lines.result("r2"))
    assert turns(events) == [("p1",), ()]


@pytest.mark.parametrize("state", ["cancelled", "discarded", "refused"])
def test_a_queued_prompt_may_be_dropped(state: str) -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    gone = lines.line(type="command_lifecycle", command_uuid="p1", state=state, uuid="c")
    assert feed(ledger, gone) == [PromptDropped("p1", state)]
    assert not ledger.busy
    assert feed(ledger, gone) == []


def test_the_lifecycle_of_a_command_takes_a_prompt_in() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    started = lines.line(type="command_lifecycle", command_uuid="p1", state="started", uuid="c")
    assert feed(ledger, started) == [PromptTaken("p1")]


def test_idle_ends_a_turn_whose_result_was_lost() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    feed(ledger, lines.init(), lines.echo("p1"))
    idle = lines.line(type="system", subtype="session_state_changed", state="idle", uuid="s")
    (ended,) = feed(ledger, idle)
    assert ended == TurnEnded(Turn(("p1",), None, 0.0))
    assert Turn(("p1",), None, 0.0).failed


def test_messages_of_a_subagent_between_turns_open_no_turn() -> None:
    ledger = TurnLedger()
    feed(ledger, lines.assistant("from below", "a", parent="toolu_1"))
    assert not ledger.in_turn


def test_the_cost_of_a_turn_is_the_difference_of_totals() -> None:
    ledger = TurnLedger()
    events = feed(ledger, lines.result("r1", cost=0.10), lines.result("r2", cost=0.25))
    assert [event.turn.cost_usd for event in events if isinstance(event, TurnEnded)] == [
        pytest.approx(0.10),
        pytest.approx(0.15),
    ]


def test_a_reset_conversation_counts_its_cost_anew() -> None:
    ledger = TurnLedger()
    feed(ledger, lines.result("r1", cost=0.10))
    reset = lines.line(type="conversation_reset", new_conversation_id="n", uuid="c")
    (ended,) = feed(ledger, reset, lines.result("r2", cost=0.30))
    assert isinstance(ended, TurnEnded)
    assert ended.turn.cost_usd == pytest.approx(0.30)


def test_a_total_that_falls_is_a_count_begun_anew() -> None:
    ledger = TurnLedger()
    _, ended = feed(ledger, lines.result("r1", cost=0.50), lines.result("r2", cost=0.20))
    assert isinstance(ended, TurnEnded)
    assert ended.turn.cost_usd == pytest.approx(0.20)


def test_failure_is_is_error_or_any_subtype_but_success() -> None:
    ledger = TurnLedger()
    events = feed(
        ledger,
        lines.result("r1"),
        lines.result("r2", is_error=True),
        lines.result("r3", subtype="error_during_execution"),
        lines.result("r4", subtype="error_of_tomorrow"),
    )
    assert [e.turn.failed for e in events if isinstance(e, TurnEnded)] == [False, True, True, True]


def test_the_end_of_the_link_leaves_no_prompt_behind() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    feed(ledger, lines.init(), lines.echo("p1"))
    ledger.prompt("p2")
    assert ledger.end_all() == ("p1", "p2")
    assert not ledger.busy


def notice(tool_use_id: str | None = None) -> bytes:
    """A task has ended."""
    return lines.line(
        type="system",
        subtype="task_notification",
        task_id="t",
        tool_use_id=tool_use_id,
        status="completed",
        uuid="n",
    )


def test_a_task_in_the_foreground_has_no_turn_of_its_own() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    gave = lines.line(
        type="user",
        message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]},
        uuid="u",
    )
    feed(ledger, lines.init("2.1.120"), lines.echo("p1"), notice("toolu_1"), gave)
    feed(ledger, lines.result("r1"))
    ledger.prompt("p2")
    # No echo at all: the CLI was told not to.
    spoken = [lines.init("2.1.120", "i2"), lines.assistant("hi", "a2"), lines.result("r2")]
    assert turns(feed(ledger, *spoken)) == [("p2",)]


def test_a_command_without_an_echo_ends_though_a_task_has_ended_before_it() -> None:
    ledger = TurnLedger()
    feed(ledger, notice("toolu_1"))
    ledger.prompt("p1")
    written = lines.line(
        type="assistant",
        message={"role": "assistant", "model": "<synthetic>", "content": []},
        uuid="a",
    )
    assert turns(feed(ledger, lines.init("2.1.120"), written, lines.result("r"))) == [("p1",)]


def test_the_oldest_cli_begins_no_turns_by_itself() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    feed(ledger, lines.init("2.1.37"), lines.echo("p1"), lines.result("r1"), notice())
    ledger.prompt("p2")
    spoken = [lines.init("2.1.37", "i2"), lines.assistant("hi", "a2"), lines.result("r2")]
    assert turns(feed(ledger, *spoken)) == [("p2",)]


def test_a_turn_whose_end_was_lost_ends_without_a_result_when_another_begins() -> None:
    """R17: it was ended by the next turn, and had that one's result."""
    ledger = TurnLedger()
    ledger.prompt("p1")
    feed(ledger, lines.init(), lines.echo("p1"))
    ledger.messages_lost()
    ledger.prompt("p2")
    events = feed(ledger, lines.init(), lines.echo("p2"), lines.result("r"))
    (lost, told) = [event.turn for event in events if isinstance(event, TurnEnded)]
    assert (lost.prompts, lost.result, lost.failed) == (("p1",), None, True)
    assert told.prompts == ("p2",)
    assert told.result is not None
    assert not ledger.busy


def test_a_turn_that_goes_on_after_lost_messages_ends_with_its_own_result() -> None:
    ledger = TurnLedger()
    ledger.prompt("p1")
    feed(ledger, lines.init(), lines.echo("p1"))
    ledger.messages_lost()
    events = feed(ledger, lines.assistant("on", "a"), lines.result("r"))
    assert turns(events) == [("p1",)]
    assert turns(feed(ledger, lines.init())) == []


def test_lost_messages_between_turns_end_nothing() -> None:
    ledger = TurnLedger()
    ledger.messages_lost()
    ledger.prompt("p1")
    assert turns(feed(ledger, lines.init(), lines.echo("p1"), lines.init())) == []
