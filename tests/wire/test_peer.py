"""The peer: what comes means something, and what is sent is always right for the other end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from quarterdeck.domain.errors import UnsupportedError, UsageError
from quarterdeck.wire.answers import allow
from quarterdeck.wire.commands import (
    EndSession,
    GetContextUsage,
    Initialize,
    Interrupt,
    SetModel,
    SetPermissionMode,
)
from quarterdeck.wire.exchange import Answered, Lost, Refused
from quarterdeck.wire.messages import Assistant, StreamEvent
from quarterdeck.wire.outbound import Prompt
from quarterdeck.wire.peer import Asked, Peer, Recovered, RequestEnded, Withdrawn
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.states import State
from quarterdeck.wire.turns import PromptDropped, TurnEnded
from quarterdeck.wire.versions import release
from support import lines


def sent(peer: Peer) -> list[dict[str, Any]]:
    """What the peer wants to write, decoded; each line must be whole."""
    data = peer.data_to_send()
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def state_of(peer: Peer) -> State:
    """The state, in a way that a type checker does not take for constant."""
    return peer.state


def ready(version: int | None = 325, **options: Any) -> Peer:
    """A peer that has been greeted."""
    peer = Peer(version=release(version) if version else None, **options)
    request_id = peer.request(Initialize())
    sent(peer)
    peer.receive_data(lines.success_answer(request_id))
    assert state_of(peer) is State.READY
    return peer


def working(**options: Any) -> Peer:
    """A peer in a turn."""
    peer = ready(**options)
    peer.prompt(Prompt.of("hi", uuid="p1"))
    sent(peer)
    peer.receive_data(lines.init() + lines.echo("p1"))
    assert state_of(peer) is State.WORKING
    return peer


def test_a_prompt_has_a_uuid_and_ends_its_line() -> None:
    peer = ready()
    uuid = peer.prompt(Prompt.of("hi"))
    (line,) = sent(peer)
    assert line["type"] == "user"
    assert line["uuid"] == uuid
    assert line["message"] == {"role": "user", "content": "hi"}
    assert peer.data_to_send() == b""


def test_a_uuid_is_not_used_twice_because_the_cli_would_drop_the_second() -> None:
    peer = ready()
    peer.prompt(Prompt.of("hi", uuid="p1"))
    with pytest.raises(UsageError, match="p1"):
        peer.prompt(Prompt.of("again", uuid="p1"))
    peer.receive_data(lines.init() + lines.echo("p1") + lines.result("r1"))
    with pytest.raises(UsageError, match="p1"):
        peer.prompt(Prompt.of("again", uuid="p1"))


def test_a_turn_moves_the_state_there_and_back() -> None:
    peer = working()
    events = peer.receive_data(lines.delta("h", "d") + lines.assistant("hi", "a"))
    assert [type(event) for event in events] == [StreamEvent, Assistant]
    events = peer.receive_data(lines.result("r"))
    assert isinstance(events[-1], TurnEnded)
    assert state_of(peer) is State.READY
    assert peer.session_id == lines.SESSION


def test_version_and_session_are_learnt_from_what_the_cli_says() -> None:
    old = ready(None)
    old.receive_data(lines.init("2.1.62"))
    assert old.version == release(62)
    answer = {"claude_code_version": "2.1.325"}
    newest = Peer()
    newest.receive_data(lines.success_answer(newest.request(Initialize()), answer))
    assert newest.version == release(325)


def test_a_new_session_id_after_a_reset_is_taken_over() -> None:
    peer = working()
    before = peer.session_id
    reset = {"new_conversation_id": "other", "uuid": "other", "session_id": before}
    peer.receive_data(lines.line(type="conversation_reset", **reset))
    assert peer.session_id == before  # as 2.1.325 says it: the id in the reset is used nowhere
    peer.receive_data(lines.line(type="system", subtype="init", session_id="new", uuid="i"))
    assert peer.session_id == "new"


def test_a_permission_request_waits_until_it_is_answered_with_its_input_byte_for_byte() -> None:
    peer = working()
    odd = b'{"command":"ls", "n":1.0,"deep":{"\\u00e9":[ 1 , 2 ]}}'
    request = b'{"type":"control_request","request_id":"q","request":{"tool_name":"Bash","input":'
    events = peer.receive_data(request + odd + b',"tool_use_id":"t","subtype":"can_use_tool"}}\n')
    (asked,) = [event for event in events if isinstance(event, Asked)]
    assert state_of(peer) is State.WAITING
    body: Any = asked.request.request
    assert peer.answer("q", allow(body.input))
    assert odd in peer.data_to_send()
    assert state_of(peer) is State.WORKING
    assert not peer.answer("q", allow(body.input))
    assert peer.data_to_send() == b""


def test_several_questions_may_be_open_and_are_answered_in_any_order() -> None:
    peer = working()
    peer.receive_data(lines.asks_permission("q1") + lines.asks_permission("q2"))
    assert [ask.request_id for ask in peer.asks] == ["q1", "q2"]
    assert peer.refuse("q2", "no")
    assert state_of(peer) is State.WAITING
    assert peer.refuse("q1", "no")
    assert state_of(peer) is State.WORKING


def test_a_question_between_turns_leads_back_to_ready() -> None:
    peer = ready()
    peer.receive_data(lines.asks_permission("q1"))
    assert state_of(peer) is State.WAITING
    peer.refuse("q1", "no")
    assert state_of(peer) is State.READY


def test_a_cancelled_question_is_withdrawn_and_a_late_answer_goes_nowhere() -> None:
    peer = working()
    peer.receive_data(lines.asks_permission("q1"))
    events = peer.receive_data(lines.cancels("q1"))
    assert [event.request_id for event in events if isinstance(event, Withdrawn)] == ["q1"]
    assert not peer.answer("q1", allow(Raw(b"{}")))
    assert peer.data_to_send() == b""
    assert peer.receive_data(lines.cancels("q1"))[1:] == []


def test_an_unknown_request_is_answered_with_an_error_at_once() -> None:
    peer = ready()
    events = peer.receive_data(lines.requests("q", subtype="of_tomorrow", x=1))
    assert not any(isinstance(event, Asked) for event in events)
    (answer,) = sent(peer)
    assert answer["response"]["subtype"] == "error"
    assert answer["response"]["request_id"] == "q"
    assert "of_tomorrow" in answer["response"]["error"]


def test_a_known_request_that_cannot_be_read_is_answered_with_an_error_too() -> None:
    peer = ready()
    peer.receive_data(lines.requests("q", subtype="can_use_tool", tool_name=5))
    (answer,) = sent(peer)
    assert answer["response"]["subtype"] == "error"


def test_hooks_and_mcp_messages_are_no_business_of_people() -> None:
    peer = working()
    request = {"subtype": "mcp_message", "server_name": "s", "message": {"jsonrpc": "2.0"}}
    events = peer.receive_data(lines.requests("q", **request))
    assert isinstance(events[-1], Asked)
    assert state_of(peer) is State.WORKING
    assert peer.asks == ()
    assert [each.request_id for each in peer.unanswered] == ["q"]
    peer.receive_data(lines.cancels("q"))
    assert peer.unanswered == ()


def test_answers_come_in_any_order_and_a_second_one_is_ignored() -> None:
    peer = ready()
    first, second = peer.request(SetModel(model="a")), peer.request(SetModel(model="b"))
    said = lines.error_answer(second, "no", error_code="x") + lines.success_answer(first) * 2
    endings = {
        event.request_id: event.ending
        for event in peer.receive_data(said)
        if isinstance(event, RequestEnded)
    }
    assert endings[second] == Refused("no", "x")
    assert isinstance(endings[first], Answered)
    assert len(endings) == 2


def test_what_the_version_does_not_know_is_not_sent() -> None:
    peer = ready(37)
    with pytest.raises(UnsupportedError, match=r"2\.1\.92"):
        peer.request(GetContextUsage())
    with pytest.raises(UnsupportedError):
        peer.request(EndSession())
    assert peer.data_to_send() == b""


def test_an_unknown_version_gets_only_what_every_version_bears() -> None:
    peer = ready(None)
    with pytest.raises(UnsupportedError, match="unknown"):
        peer.request(GetContextUsage())
    peer.request(Interrupt())
    assert len(sent(peer)) == 1


def test_nobody_bypasses_permissions_by_the_way() -> None:
    bypass = SetPermissionMode(mode=PermissionMode.BYPASS_PERMISSIONS)
    with pytest.raises(UsageError, match="bypass"):
        ready(62).request(bypass)
    assert ready(62, bypass_allowed=True).request(bypass)


@pytest.mark.parametrize(("version", "told"), [(37, False), (62, True), (325, True), (None, False)])
def test_giving_up_is_told_only_to_versions_that_survive_it(
    version: int | None, told: bool
) -> None:
    peer = ready(version)
    request_id = peer.request(SetModel(model="a"))
    sent(peer)
    (ended,) = peer.give_up(request_id, "enough")
    assert isinstance(ended, RequestEnded)
    assert bool(sent(peer)) is told
    assert peer.receive_data(lines.success_answer(request_id))[1:] == []


def test_compacting_and_retrying_are_states_of_their_own() -> None:
    peer = working()
    status = {"type": "system", "subtype": "status"}
    peer.receive_data(lines.line(**status, status="compacting", uuid="s1"))
    assert state_of(peer) is State.COMPACTING
    peer.receive_data(lines.line(**status, status=None, uuid="s2"))
    assert state_of(peer) is State.WORKING
    retry = {"attempt": 1, "max_retries": 10, "retry_delay_ms": 5, "error_status": 529}
    peer.receive_data(
        lines.line(type="system", subtype="api_retry", error="overloaded", uuid="s3", **retry)
    )
    assert state_of(peer) is State.RETRYING
    peer.receive_data(lines.assistant("back", "a"))
    assert state_of(peer) is State.WORKING


def test_the_same_message_twice_is_one_message() -> None:
    peer = working(resumable=True)
    said = lines.assistant("hi", "a1") + lines.delta("x", "d1") + lines.result("r1")
    assert len(peer.receive_data(said)) == 4
    assert peer.receive_data(said) == []


def test_a_reconnect_voids_half_a_line_and_sends_again_what_may_be_lost() -> None:
    peer = working(version=120, resumable=True)
    peer.receive_data(lines.asks_permission("q1") + lines.asks_permission("q2"))
    peer.refuse("q1", "no")
    model = peer.request(SetModel(model="a"))
    interrupt = peer.request(Interrupt())
    peer.prompt(Prompt.of("next", uuid="p2"))
    sent(peer)
    peer.receive_data(b'{"type":"assis')

    events = peer.link_resumed("a uuid that never came")
    assert Recovered(complete=False) in events
    # An interrupt is not repeated: it could hit the turn after the one that it was meant for.
    assert [e.request_id for e in events if isinstance(e, RequestEnded)] == [interrupt]
    assert state_of(peer) is State.WAITING
    again = sent(peer)
    assert [line["response"]["request_id"] for line in again if "response" in line] == ["q1"]
    assert model in [line["request_id"] for line in again if "request" in line]
    assert [line["uuid"] for line in again if line["type"] == "user"] == ["p2"]
    (greeting,) = [line for line in again if line.get("request", {}).get("subtype") == "initialize"]

    # Half a line of the old stream must not spoil the new one.
    assert isinstance(peer.receive_data(lines.assistant("hi", "a9"))[0], Assistant)

    pending = [json.loads(lines.asks_permission("q3"))]
    refusal = lines.error_answer(
        greeting["request_id"], "Already initialized", pending_permission_requests=pending
    )
    events = peer.receive_data(refusal)
    assert [e.request.request_id for e in events if isinstance(e, Asked)] == ["q3"]
    assert [e.request_id for e in events if isinstance(e, Withdrawn)] == ["q2"]


def test_a_question_that_was_answered_and_is_asked_again_gets_the_same_answer() -> None:
    peer = working(resumable=True)
    peer.receive_data(lines.asks_permission("q1"))
    peer.refuse("q1", "no")
    first = peer.data_to_send()
    events = peer.receive_data(lines.asks_permission("q1"))
    assert not any(isinstance(event, Asked) for event in events)
    assert peer.data_to_send() == first


def test_the_end_of_the_link_ends_all_that_is_open_once() -> None:
    peer = working()
    peer.receive_data(lines.asks_permission("q1"))
    request_id = peer.request(SetModel(model="a"))
    events = peer.link_closed("it died")
    assert RequestEnded(request_id, "set_model", Lost("it died")) in events
    assert Withdrawn("q1", "it died") in events
    assert PromptDropped("p1", "it died") in events
    assert state_of(peer) is State.CLOSED
    assert peer.data_to_send() == b""
    assert peer.link_closed("again") == []
    with pytest.raises(UsageError, match="closed"):
        peer.prompt(Prompt.of("hi"))
    with pytest.raises(UsageError, match="closed"):
        peer.request(SetModel(model="a"))


def test_a_line_without_its_end_is_given_when_the_stream_ends() -> None:
    peer = working()
    assert peer.receive_data(lines.assistant("hi", "a").rstrip()) == []
    (message,) = peer.receive_eof()
    assert isinstance(message, Assistant)


def test_a_line_over_the_limit_is_told_and_the_stream_goes_on() -> None:
    peer = Peer(max_line=2000)
    events = peer.receive_data(b"{" + b"x" * 5000 + b"}\n" + lines.init())
    assert [type(event).__name__ for event in events] == ["Malformed", "Init"]


def test_a_peer_is_restored_from_what_was_said_and_sent() -> None:
    first = Peer(version=release(325))
    record: list[tuple[str, bytes]] = []

    def sends() -> None:
        record.extend(("sent", line) for line in first.data_to_send().splitlines())

    def says(*said: bytes) -> None:
        for line in said:
            record.append(("said", line))
            first.receive_data(line)
        sends()

    greeting = first.request(Initialize())
    sends()
    says(lines.success_answer(greeting))
    first.prompt(Prompt.of("hi", uuid="p1"))
    sends()
    says(lines.init(), lines.echo("p1"), lines.asks_permission("q1"), lines.asks_permission("q2"))
    says(lines.requests("q3", subtype="of_tomorrow"))
    first.refuse("q1", "no")
    open_request = first.request(SetModel(model="a"))
    sends()

    second = Peer(version=release(325))
    for way, line in record:
        if way == "said":
            second.receive_data(line)
        else:
            second.note_sent(line)
    second.data_to_send()

    assert second.state is first.state is State.WAITING
    assert [ask.request_id for ask in second.asks] == ["q2"]
    assert second.turns.busy
    assert second.session_id == first.session_id
    events = second.receive_data(lines.success_answer(open_request))
    assert [event.request_id for event in events if isinstance(event, RequestEnded)] == [
        open_request
    ]
    assert not second.refuse("q1", "again")
    events = second.receive_data(lines.result("r"))
    assert [e.turn.prompts for e in events if isinstance(e, TurnEnded)] == [("p1",)]
