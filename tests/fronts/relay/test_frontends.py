"""Frontends at `/ws`: what they are told, and what becomes of what they say."""

from __future__ import annotations

import json
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw
from websockets.exceptions import InvalidStatus

from quarterdeck.domain.errors import Conflict
from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.relay_access import RelayRules
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.sessions import INBOUND, SessionSpec, SessionState
from quarterdeck.protocol.views import Piece
from support.bounds import SECONDS
from support.frontends import Frontend, frontend
from support.relay_front import Relay
from support.small_deck import SmallDeck
from support.waiting import until

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


def raw(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


class Cli:
    """A session of the small hub, and what its CLI says."""

    def __init__(self, deck: SmallDeck, session: str, cli_session: str) -> None:
        self.deck, self.session, self.cli_session = deck, session, cli_session
        self.run = f"run-{session}"
        self.number = 0
        self.said = 0
        """The last line that is journalled."""

    async def say(self, kind: str = "assistant", **members: Any) -> Json:
        """A line of the CLI, with its session id."""
        line = {"type": kind, **members, "session_id": self.cli_session}
        await self.put(line)
        return line

    async def put(self, line: object) -> None:
        """A line of the CLI."""
        self.number += 1
        self.said = self.number
        said = ev.Said(run=self.run, number=self.number, line=raw(line))
        await self.deck.journal.append(self.session, [said])

    def piece(self, event: str, text: str = "", *, parent: str | None = None) -> None:
        """A piece of a message."""
        self.number += 1
        body: Json = {"type": event, "text": text}
        line = {"type": "stream_event", "event": body, "parent_tool_use_id": parent}
        self.deck.pass_piece(
            Piece(
                session=self.session,
                run=self.run,
                number=self.number,
                after=self.said,
                line=msgspec.json.encode(line),
            )
        )

    async def ask(self, request_id: str = "q1", command: str = "touch x") -> str:
        """The CLI asks for permission, and a person is asked."""
        request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}}
        await self.put({"type": "control_request", "request_id": request_id, "request": request})
        ask = f"{self.session}.{request_id}"
        opened = ev.AskOpened(
            ask=ask,
            run=self.run,
            request_id=request_id,
            ask_kind=ev.AskKind.TOOL,
            tool="Bash",
            title=command,
            request=raw(request),
        )
        await self.deck.journal.append(self.session, [opened])
        return ask

    async def happen(self, *events: ev.Event) -> None:
        """Other events of the session."""
        await self.deck.journal.append(self.session, events)

    async def end(self) -> None:
        """The CLI exits."""
        await self.happen(ev.RunEnded(run=self.run, reason="it exited", clean=True))


async def start(deck: SmallDeck, name: str = "one", *, machine: str = "here") -> Cli:
    """A session with a CLI that runs."""
    cli = Cli(deck, name, f"cli-{name}")
    await deck.journal.append(
        name,
        [
            ev.SessionCreated(spec=SessionSpec(directory="/work"), by="test"),
            ev.RunStarting(run=cli.run, machine=machine),
            ev.RunStarted(run=cli.run, pid=1),
        ],
    )
    return cli


def texts(front: Frontend) -> list[str]:
    return [line["text"] for line in front.of("assistant")]


# --- what frontends are told ---------------------------------------------------------------------


async def test_a_frontend_that_is_there_and_one_that_comes_late_are_told_the_same(
    relay: Relay,
) -> None:
    async with relay.frontend() as early:
        cli = await start(relay.deck)
        await early.status("claude code connected")
        for number in range(3):
            await cli.say(text=f"line {number}")
        async with relay.frontend() as late:
            await late.has("assistant", 3)
            await cli.say(text="line 3")
            await late.has("assistant", 4)
            await early.has("assistant", 4)
            assert texts(early) == texts(late) == [f"line {n}" for n in range(4)]
            assert early.statuses == ["claude code connected"]
            assert late.statuses == ["claude code is connected"]
            assert late.of("status")[0]["session"] == "one"
            await cli.end()
            gone = await late.status("claude code disconnected")
            assert gone["session_id"] == "cli-one"
            await early.status("claude code disconnected")


async def test_a_line_of_the_cli_comes_byte_for_byte(relay: Relay) -> None:
    cli = await start(relay.deck)
    line = '{"session_id" : "cli-one","type":"later_kind",  "x":[1,  2.50, "\\u00e9 ü"]}'
    said = ev.Said(run=cli.run, number=1, line=Raw(line.encode()))
    async with relay.frontend("?session=one") as front:
        await cli.happen(said)
        await front.has("later_kind")
        assert front.messages[-1] == line


async def test_a_line_without_a_session_gets_one_and_is_otherwise_unchanged(relay: Relay) -> None:
    cli = await start(relay.deck)
    await cli.say("system", subtype="init")
    async with relay.frontend() as front:
        for more in ({}, {"session_id": None}, {"session_id": ""}):
            await cli.put({"type": "later_kind", "x": {"session_id": "not this"}, **more})
        await front.has("later_kind", 3)
        for line in front.of("later_kind"):
            told = {"type": "later_kind", "x": {"session_id": "not this"}, "session_id": "cli-one"}
            assert line == told


async def test_several_agents_are_told_apart_and_prompted_by_their_session_ids(
    relay: Relay,
) -> None:
    one, two = await start(relay.deck, "one"), await start(relay.deck, "two")
    async with relay.frontend() as front:
        await one.say(text="from one")
        await two.say(text="from two")
        await front.has("assistant", 2)
        assert {(line["session_id"], line["text"]) for line in front.of("assistant")} == {
            ("cli-one", "from one"),
            ("cli-two", "from two"),
        }
        await front.prompt("for two", session_id="cli-two")
        await front.prompt("for one", session_id="one")  # the hub's own id works, too
        await front.prompt("for whom?", session_id="")
        error = await front.error()
        assert (error["code"], error["where"]) == ("which_session", "line 1 of 1, session_id")
        await front.prompt("for nobody", session_id="cli-three")
        assert (await front.error(2))["code"] == "no_session"
        sent = [each for each in relay.deck.submitted if isinstance(each, cmd.SendPrompt)]
        assert [(each.session, bytes(each.content)) for each in sent] == [
            ("two", b'"for two"'),
            ("one", b'"for one"'),
        ]


async def test_what_is_between_the_hub_and_its_cli_is_not_told(relay: Relay) -> None:
    cli = await start(relay.deck)
    async with relay.frontend() as front:
        hook = {"subtype": "hook_callback", "callback_id": "c"}
        await cli.put({"type": "control_request", "request_id": "h", "request": hook})
        await cli.put({"type": "control_response", "response": {"request_id": "i"}})
        await cli.put({"type": "keep_alive"})
        await cli.say(text="the end")
        await front.has("assistant")
        assert [line["type"] for line in front.lines] == ["status", "assistant"]


async def test_a_broken_line_is_told_as_it_is_and_whose_it_is(relay: Relay) -> None:
    cli = await start(relay.deck)
    await cli.say("system", subtype="init")
    async with relay.frontend() as front:
        broken = ev.SaidBroken(run=cli.run, number=9, text='{"type":"assi', error="it ends")
        await cli.happen(broken)
        await cli.say(text="after it")
        await front.has("assistant")
        at = front.messages.index('{"type":"assi')
        before = json.loads(front.messages[at - 1])
        assert before == {
            "type": "status",
            "text": "claude code sent a broken line",
            "error": "it ends",
            "session": "one",
            "session_id": "cli-one",
        }


@pytest.mark.parametrize("kind", ["status", "error", "position"])
async def test_a_cli_cannot_speak_for_the_relay(relay: Relay, kind: str) -> None:
    cli = await start(relay.deck)
    await cli.say("system", subtype="init")
    async with relay.frontend() as front:
        claimed = await cli.say(kind, text="claude code disconnected", position=99)
        await cli.say(text="after it")
        await front.has("assistant")
        marked = await front.status("claude code sent a broken line")
        assert (marked["session"], json.loads(marked["line"])) == ("one", claimed)
        assert front.statuses == ["claude code is connected", "claude code sent a broken line"]
        assert not front.of("position")


@pytest.mark.parametrize("kind", ["status", "control_request", "control_cancel_request"])
async def test_a_broken_line_cannot_speak_for_the_relay_either(relay: Relay, kind: str) -> None:
    """To a browser half a surrogate pair is valid JSON, and to us it is not."""
    cli = await start(relay.deck)
    text = f'{{"type":"{kind}","request_id":"q","text":"claude code disconnected \\ud83d"}}'
    assert json.loads(text)["type"] == kind
    async with relay.frontend() as front:
        await cli.happen(ev.SaidBroken(run=cli.run, number=1, text=text, error="half a pair"))
        await cli.say(text="after it")
        await front.has("assistant")
        marked = await front.status("claude code sent a broken line")
        assert marked["line"] == text
        assert [line["type"] for line in front.lines] == ["status", "status", "assistant"]


async def test_an_id_that_two_agents_claim_gives_a_prompt_to_neither(relay: Relay) -> None:
    one, two = await start(relay.deck, "one"), await start(relay.deck, "two")
    two.cli_session = one.cli_session
    await one.say(text="I am one")
    await two.say(text="I am one, too")
    async with relay.frontend() as front:
        await front.has("assistant", 2)
        await front.prompt("for whom?", session_id="cli-one")
        assert (await front.error())["code"] == "which_session"
        assert not relay.deck.submitted
        await front.prompt("for this one", session_id="one")
        await two.end()
        await front.status("claude code disconnected")
        await front.prompt("for the one that is left", session_id="cli-one")
        await until_submitted(relay, 2)
        sent = [each for each in relay.deck.submitted if isinstance(each, cmd.SendPrompt)]
        assert [each.session for each in sent] == ["one", "one"]


async def test_what_happened_before_says_nothing_about_who_is_there_now(relay: Relay) -> None:
    cli = await start(relay.deck)
    for number in range(3):
        await cli.end()
        cli.run = f"run-{number}"
        await cli.happen(
            ev.RunStarting(run=cli.run, machine="here"), ev.RunStarted(run=cli.run, pid=number)
        )
    over = await start(relay.deck, "over")
    await over.end()
    async with relay.frontend("?after=1") as front:
        await front.prompt("for the only one that is there")
        await front.status("claude code disconnected", 4)
        await front.prompt("and again")
        await until_submitted(relay, 2)
        assert not front.of("error")
        sent = [each for each in relay.deck.submitted if isinstance(each, cmd.SendPrompt)]
        assert [each.session for each in sent] == ["one", "one"]


async def test_a_prompt_that_is_to_run_now_ends_the_turn_and_only_a_turn(relay: Relay) -> None:
    cli = await start(relay.deck)
    async with relay.frontend() as front:
        await front.prompt("first", priority="now")
        await until_submitted(relay, 1)
        await cli.happen(ev.StateChanged(state=SessionState.WORKING))
        await front.prompt("second", priority="now")
        await front.prompt("third", priority="next")
        await until_submitted(relay, 4)
        first, interrupt, second, third = relay.deck.submitted
        assert isinstance(interrupt, cmd.Interrupt)
        assert isinstance(first, cmd.SendPrompt)
        assert isinstance(second, cmd.SendPrompt)
        assert isinstance(third, cmd.SendPrompt)
        assert [first.steer, second.steer, third.steer] == [False, False, True]


async def test_another_conversation_of_the_same_cli_is_marked_before_its_first_line(
    relay: Relay,
) -> None:
    cli = await start(relay.deck)
    async with relay.frontend() as front:
        await cli.say(text="before /clear")
        cli.cli_session = "cli-new"
        await cli.say(text="after it")
        await cli.happen(ev.CliSession(cli_session="cli-new"))
        await cli.say(text="and on")
        await front.has("assistant", 3)
        told = [line.get("text") for line in front.lines]
        assert told == [
            "claude code is connected",
            "before /clear",
            "claude code session changed",
            "after it",
            "and on",
        ]
        marked = front.lines[2]
        assert (marked["previous_session_id"], marked["session_id"]) == ("cli-one", "cli-new")
        await front.prompt("by the new id", session_id="cli-new")
        await front.prompt("by the old id", session_id="cli-one")
        await until_submitted(relay, 2)
        assert not front.of("error")


async def test_a_fork_is_marked_with_the_session_that_it_comes_from(relay: Relay) -> None:
    cli = Cli(relay.deck, "fork", "cli-fork")
    async with relay.frontend() as front:
        await cli.happen(
            ev.SessionCreated(spec=SessionSpec(directory="/"), by="ada", parent="one"),
            ev.RunStarting(run=cli.run, machine="here"),
            ev.RunStarted(run=cli.run, pid=1),
        )
        await cli.say(text="as another")
        await front.has("assistant")
        forked = await front.status("claude code session forked")
        assert (forked["session_id"], forked["forked_from"]) == ("cli-fork", "one")


async def test_an_ended_session_can_be_read_by_name_and_is_not_shown_to_all(
    relay: Relay,
) -> None:
    cli = await start(relay.deck)
    await cli.say(text="long ago")
    await cli.end()
    async with relay.frontend() as front, relay.frontend("?session=one") as named:
        await named.status("claude code disconnected")
        assert texts(named) == ["long ago"]
        assert named.statuses == ["claude code connected", "claude code disconnected"]
        # It gets a CLI again, and then it is shown from its start.
        again = "run-again"
        await cli.happen(ev.RunStarting(run=again, machine="here"), ev.RunStarted(run=again, pid=2))
        await front.status("claude code connected", 2)
        assert texts(front) == ["long ago"]


async def test_a_frontend_reads_on_after_a_position_without_gap_or_double(relay: Relay) -> None:
    cli = await start(relay.deck)
    await cli.happen(ev.CliSession(cli_session="cli-one"))
    for number in range(5):
        await cli.say(text=f"line {number}")
    async with relay.frontend("?positions=1") as front:
        await front.has("assistant", 5)
        place = await front.has("position")
        assert (place["session"], place["after"]) == ("one", 9)
    await cli.say(text="while nobody listens")
    for query in (f"?after={place['position']}", f"?session=one&after={place['after']}"):
        async with relay.frontend(f"{query}&epoch={place['epoch']}") as again:
            await again.has("assistant")
            assert texts(again) == ["while nobody listens"]
            assert again.statuses == ["claude code is connected"]
            assert again.of("status")[0]["session_id"] == "cli-one"


async def test_one_that_reads_on_learns_that_the_cli_ended_meanwhile(relay: Relay) -> None:
    cli = await start(relay.deck)
    await cli.say(text="before")
    await cli.end()
    async with relay.frontend("?session=one&after=4") as again:
        await again.status("claude code disconnected")
        assert texts(again) == []


async def test_a_question_that_was_asked_before_a_frontend_reads_on_is_withdrawn(
    relay: Relay,
) -> None:
    cli = await start(relay.deck)
    ask = await cli.ask()
    async with relay.frontend("?session=one&after=5") as again:
        await again.status("claude code is connected")
        answer = cmd.AnswerAsk(ask=ask, answer=cmd.DenyAnswer(), by="ada", role="owner")
        await relay.deck.submit(answer)
        gone = await again.has("control_cancel_request")
        assert (gone["request_id"], gone["answered_by"]) == ("q1", "ada")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?session=nobody", 404),
        ("?session=one&after=99", 400),
        ("?after=99", 400),
        ("?after=-1", 400),
        ("?after=1&after=2", 400),
        ("?session=one&session=two&after=0", 400),
        ("?positions=yes", 400),
        ("?after=0&epoch=another", 400),
        ("?token=secret", 400),
    ],
)
async def test_what_cannot_be_followed_is_refused(relay: Relay, query: str, status: int) -> None:
    await start(relay.deck)
    with pytest.raises(InvalidStatus) as refused:
        async with relay.frontend(query):
            pass
    assert refused.value.response.status_code == status
    assert b"secret" not in (refused.value.response.body or b"")


# --- pieces --------------------------------------------------------------------------------------


async def test_pieces_come_between_the_lines_that_they_belong_between(relay: Relay) -> None:
    cli = await start(relay.deck)
    async with relay.frontend() as front:
        await front.status("claude code is connected")
        cli.piece("content_block_delta", "of a message that began before")
        cli.piece("message_start")
        cli.piece("content_block_delta", "hel")
        await front.has("stream_event", 2)
        cli.piece("content_block_delta", "lo")
        await cli.say(text="hello")
        cli.piece("message_stop")
        await cli.say("result")
        await front.has("result")
        told = [line.get("event", line).get("text") or line["type"] for line in front.lines]
        assert told == [
            "claude code is connected",
            "stream_event",
            "hel",
            "lo",
            "hello",
            "stream_event",
            "result",
        ]
        assert all(line["session_id"] for line in front.of("stream_event"))


async def test_a_piece_never_overtakes_a_line_before_it(relay: Relay) -> None:
    cli = await start(relay.deck)
    async with relay.frontend() as front:
        await front.status("claude code is connected")
        # The hub tells of pieces before it has journalled the lines of the same batch.
        cli.number += 1
        before = cli.said = cli.number
        cli.piece("message_start", "second")
        said = ev.Said(run=cli.run, number=before, line=raw({"type": "assistant", "text": "first"}))
        await cli.happen(said)
        await front.has("stream_event")
        assert [line["type"] for line in front.lines] == ["status", "assistant", "stream_event"]


async def test_pieces_can_be_left_out(relay: Relay) -> None:
    cli = await start(relay.deck)
    async with relay.frontend("?pieces=0") as front:
        await front.status("claude code is connected")
        cli.piece("message_start")
        await cli.say(text="whole")
        await front.has("assistant")
        assert not front.of("stream_event")


async def test_nobody_listens_to_pieces_when_no_frontend_is_there(relay: Relay) -> None:
    async with relay.frontend(), relay.frontend():
        with anyio.fail_after(SECONDS):
            await until(lambda: relay.endpoint.frontends == 2)
        assert len(relay.deck._piece_listeners) == 1
    with anyio.fail_after(SECONDS):
        await until(lambda: relay.endpoint.frontends == 0)
    assert not relay.deck._piece_listeners


# --- questions -----------------------------------------------------------------------------------


async def test_a_question_is_told_to_all_and_withdrawn_when_another_has_answered(
    relay: Relay,
) -> None:
    cli = await start(relay.deck)
    await cli.say("system", subtype="init")
    async with relay.frontend() as one, relay.frontend(role=Role.OPERATOR) as two:
        ask = await cli.ask()
        asked = await one.has("control_request")
        await two.has("control_request")
        assert asked["request_id"] == "q1"
        assert asked["request"]["input"] == {"command": "touch x"}
        assert asked["session_id"] == "cli-one"
        await two.say(type="control_response", request_id="q1", permission={"allow": True})
        gone = await one.has("control_cancel_request")
        assert (gone["request_id"], gone["answered_by"]) == ("q1", "the operator")
        (answer,) = [each for each in relay.deck.submitted if isinstance(each, cmd.AnswerAsk)]
        assert (answer.ask, answer.by, answer.role) == (ask, "the operator", "operator")
        assert answer.answer == cmd.AllowAnswer()
        await one.say(type="control_response", request_id="q1", approved=False)
        late = await one.error()
        assert late["code"] == "not_open"
        assert "already answered by the operator" in late["message"]
        assert not two.of("control_cancel_request")
        async with relay.frontend() as late_one:
            await cli.say(text="the end")
            await late_one.has("assistant")
            assert not late_one.of("control_request")


async def test_an_open_question_is_told_to_one_who_comes_late(relay: Relay) -> None:
    cli = await start(relay.deck)
    await cli.ask()
    async with relay.frontend() as front:
        await front.has("control_request")
        await cli.happen(ev.AskWithdrawn(ask="one.q1", reason="the turn was interrupted"))
        await front.has("control_cancel_request")
        await front.say(type="control_response", request_id="q1", approved=True)
        assert "interrupted" in (await front.error())["message"]


async def test_the_end_of_the_cli_withdraws_its_questions(relay: Relay) -> None:
    cli = await start(relay.deck)
    async with relay.frontend() as front:
        await cli.ask()
        await front.has("control_request")
        await cli.end()
        await front.has("control_cancel_request")
        await front.status("claude code disconnected")


async def test_a_request_id_that_two_agents_use_is_answered_for_the_named_one(
    relay: Relay,
) -> None:
    one, two = await start(relay.deck, "one"), await start(relay.deck, "two")
    await one.say("system", subtype="init")
    await two.say("system", subtype="init")
    await one.ask("same")
    await two.ask("same", "rm -rf /")
    async with relay.frontend() as front:
        await front.has("control_request", 2)
        await front.say(type="control_response", request_id="same", approved=True)
        assert (await front.error())["code"] == "which_session"
        await front.say(
            type="control_response", request_id="same", approved=True, session_id="cli-one"
        )
        await until_submitted(relay, 1)
        (answer,) = relay.deck.submitted
        assert isinstance(answer, cmd.AnswerAsk)
        assert answer.ask == "one.same"


async def test_an_answer_that_the_hub_refuses_is_an_error_and_the_question_stays(
    relay: Relay,
) -> None:
    cli = await start(relay.deck)
    await cli.ask()
    async with relay.frontend() as front:
        await front.has("control_request")
        relay.deck.fails = Conflict("already_answered", "already answered by bob")
        await front.say(type="control_response", request_id="q1", approved=True)
        assert (await front.error())["code"] == "already_answered"


# --- what frontends say --------------------------------------------------------------------------


async def until_submitted(relay: Relay, count: int) -> None:
    with anyio.fail_after(SECONDS):
        await until(lambda: len(relay.deck.submitted) >= count)


async def test_prompts_keep_their_order_their_id_and_their_sender(relay: Relay) -> None:
    await start(relay.deck)
    async with relay.frontend() as front:
        message = {"role": "user", "content": "hi"}
        lines = [
            json.dumps({"type": "user", "message": message, "uuid": f"u{n}"}) for n in range(5)
        ]
        await front.socket.send("\n".join(lines[:3]))
        await front.socket.send("\r\n".join([*lines[3:], ""]).encode())
        await until_submitted(relay, 5)
        sent = [each for each in relay.deck.submitted if isinstance(each, cmd.SendPrompt)]
        assert [each.prompt for each in sent] == [f"u{n}" for n in range(5)]
        assert {each.by for each in sent} == {"the owner"}


async def test_garbage_reaches_nobody_and_its_sender_is_told_why(relay: Relay) -> None:
    await start(relay.deck)
    async with relay.frontend() as front, relay.frontend() as other:
        await front.socket.send('{"type":"user"')
        await front.socket.send(b"\xff\xfe")
        await front.socket.send('{"type":"keep_alive"}\n{"type":"user"}\n')
        errors = [await front.error(number) for number in (1, 2, 3)]
        assert [(error["code"], error["where"]) for error in errors] == [
            ("not_json", "line 1 of 1"),
            ("not_json", "line 1 of 1"),
            ("bad_line", "line 2 of 2, message"),
        ]
        assert not relay.deck.submitted
        await front.prompt("it goes on")
        await until_submitted(relay, 1)
        assert not other.of("error")


async def test_requests_become_commands_and_are_answered_with_their_id(relay: Relay) -> None:
    await start(relay.deck)
    async with relay.frontend() as front:
        assert (await front.request("r1", "interrupt"))["subtype"] == "success"
        mode = await front.request("r2", "set_permission_mode", mode="plan")
        assert mode == {"subtype": "success", "request_id": "r2", "response": {"ok": True}}
        relay.deck.fails = Conflict("not_running", "the session has no process; resume it first")
        failed = await front.request("r3", "mcp_status")
        assert (failed["subtype"], failed["error"]) == (
            "error", "the session has no process; resume it first"
        )  # fmt: skip
        assert (await front.request("r4", "end_session"))["subtype"] == "success"
        assert [type(each) for each in relay.deck.submitted] == [
            cmd.Interrupt, cmd.Control, cmd.Control, cmd.StopSession
        ]  # fmt: skip


async def test_a_request_that_its_sender_gave_up_is_not_answered(relay: Relay) -> None:
    await start(relay.deck)
    relay.deck.hold = anyio.Event()
    async with relay.frontend() as front:
        request = {"subtype": "mcp_status"}
        await front.say(type="control_request", request_id="r1", request=request)
        await front.say(type="control_request", request_id="r1", request=request)
        double = await front.has("control_response")
        assert double["response"]["subtype"] == "error"
        await front.say(type="control_cancel_request", request_id="r1")
        await front.socket.send("no JSON")
        await front.error()
        relay.deck.hold.set()
        relay.deck.hold = None
        await front.request("r2", "interrupt")
        answers = [line["response"]["request_id"] for line in front.of("control_response")]
        assert answers == ["r1", "r2"]


async def test_initialize_is_answered_with_what_the_cli_told_the_hub(relay: Relay) -> None:
    cli = await start(relay.deck)
    request = {"type": "control_request", "request_id": "h1", "request": {"subtype": "initialize"}}
    async with relay.frontend() as front:
        early = await front.request("r0", "initialize")
        assert early["subtype"] == "error"
        await cli.happen(ev.Sent(run=cli.run, number=1, line=raw(request)))
        body = {"commands": [{"name": "compact"}], "models": []}
        answer = {"subtype": "success", "request_id": "h1", "response": body}
        await cli.put({"type": "control_response", "response": answer})
        await cli.ask()
        told = await front.request("r1", "initialize", hooks={})
        assert told["request_id"] == "r1"
        assert told["response"]["commands"] == [{"name": "compact"}]
        (pending,) = told["response"]["pending_permission_requests"]
        assert pending["request_id"] == "q1"
        hooks = {"PreToolUse": [{"hookCallbackIds": ["c"]}]}
        refused = await front.request("r2", "initialize", hooks=hooks)
        assert refused["subtype"] == "error"
        assert "request.hooks" in refused["error"]
        assert not relay.deck.submitted


async def test_a_prompt_of_another_is_told_where_the_cli_does_not_repeat_it(relay: Relay) -> None:
    cli = await start(relay.deck, machine=INBOUND)
    await cli.say("system", subtype="init")
    async with relay.frontend() as front:
        line: Json = {"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": "u1"}
        await cli.happen(ev.Sent(run=cli.run, number=1, line=raw(line)))
        echo = await front.has("user")
        assert echo == {**line, "isReplay": True, "session_id": "cli-one"}
        await cli.put({**line, "isReplay": True, "session_id": "cli-one"})
        await cli.say(text="the end")
        await front.has("assistant")
        assert len(front.of("user")) == 1


# --- who they are --------------------------------------------------------------------------------


async def test_a_viewer_reads_and_changes_nothing(relay: Relay) -> None:
    cli = await start(relay.deck)
    await cli.ask()
    async with relay.frontend(role=Role.VIEWER) as front:
        await front.has("control_request")
        await front.prompt("no")
        await front.say(type="control_response", request_id="q1", approved=True)
        assert (await front.error(1))["code"] == "forbidden"
        assert (await front.error(2))["code"] == "forbidden"
        assert "may not steer" in (await front.request("r", "interrupt"))["error"]
    assert not relay.deck.submitted


async def test_an_operator_prompts_and_does_not_send_control_requests(relay: Relay) -> None:
    await start(relay.deck)
    async with relay.frontend(role=Role.OPERATOR) as front:
        await front.prompt("yes")
        await until_submitted(relay, 1)
        refused = await front.request("r", "set_permission_mode", mode="bypassPermissions")
        assert refused["subtype"] == "error"
    assert len(relay.deck.submitted) == 1


async def refusal(url: str, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as refused:
        async with frontend(url, **options):
            pass
    return refused.value.response.status_code


async def test_without_a_token_nobody_gets_in_but_a_page_that_was_opted_in(relay: Relay) -> None:
    url = f"{relay.url}/ws"
    await start(relay.deck)
    assert await refusal(url) == 401
    assert await refusal(url, token="qd_0123456789ab_wrongwrongwrong") == 401
    assert await refusal(url, token=relay.token(Role.RUNNER)) == 403
    assert await refusal(url, origin="http://localhost:9") == 403
    assert await refusal(url, origin="http://evil.example", token=relay.token()) == 403
    assert await refusal(url, origin="null") == 403
    async with frontend(url, origin="http://localhost:5173") as guest:
        await guest.status("claude code is connected")
        await guest.prompt("no")
        assert (await guest.error())["code"] == "forbidden"
    # A token counts, also a wrong one: it does not fall back to what a guest may do.
    wrong = "qd_0123456789ab_wrongwrongwrong"
    assert await refusal(url, origin="http://localhost:5173", offered_token=wrong) == 401
    async with frontend(url, origin="http://localhost:5173", offered_token=relay.token()) as page:
        assert page.socket.subprotocol == "quarterdeck.relay"
        await page.prompt("yes")
        await until_submitted(relay, 1)
    assert relay.deck.submitted[0].by == "the owner"


async def test_a_page_that_is_not_opted_in_any_more_is_disconnected(relay: Relay) -> None:
    async with frontend(f"{relay.url}/ws", origin="http://localhost:5173") as guest:
        rules = RelayRules.of(enabled=True, origins=(), role=Role.VIEWER)
        relay.who.change(rules)
        with anyio.fail_after(SECONDS):
            await guest.socket.wait_closed()
    relay.who.change(RelayRules())
    assert await refusal(f"{relay.url}/ws", token=relay.token()) == 404


async def test_a_revoked_token_ends_its_frontend(relay: Relay) -> None:
    async with relay.frontend() as front:
        (grant,) = relay.access.grants()
        relay.access.revoke(grant.id)
        with anyio.fail_after(SECONDS):
            await front.socket.wait_closed()
        assert front.socket.close_code == 4401


async def test_probes_leave_nothing_behind(relay: Relay) -> None:
    for _ in range(3):
        async with relay.frontend():
            pass
    with anyio.fail_after(SECONDS):
        await until(lambda: relay.endpoint.frontends == 0)
    assert await relay.deck.sessions() == []
    assert not relay.deck.submitted
