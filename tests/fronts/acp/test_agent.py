"""The agent for editors against the real HTTP front: methods, questions, errors, slow editors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from quarterdeck.client import HubAddress
from quarterdeck.domain.errors import (
    Conflict,
    LinkRefused,
    NotFound,
    QuarterdeckError,
    UsageError,
)
from quarterdeck.fronts.acp import agent as agents
from quarterdeck.fronts.acp import backlog, session_feed
from quarterdeck.fronts.acp.agent import serve
from quarterdeck.fronts.acp.hubs import rpc_error
from quarterdeck.fronts.http import Role
from quarterdeck.fronts.http.events import EventFrame, Events, Frames
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.holds import OfferedCommand
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from support.acp_pipe import MemoryPipe, Message
from support.acp_shapes import assistant, text
from support.bounds import SECONDS
from support.front import Front, front

pytestmark = pytest.mark.anyio

TEXT = [{"type": "text", "text": "do it"}]


class Desk:
    """An editor and the hub, both in the hand of a test."""

    def __init__(self, served: Front, pipe: MemoryPipe) -> None:
        self.served = served
        self.deck = served.deck
        self.pipe = pipe
        self._ids = iter(range(100, 1000))

    async def call(self, method: str, **params: object) -> Message:
        """A request that succeeds."""
        answer = await self.pipe.call(next(self._ids), method, **params)
        assert "result" in answer, answer
        result: Message = answer["result"]
        return result

    async def refused(self, method: str, **params: object) -> Message:
        """A request that fails."""
        answer = await self.pipe.call(next(self._ids), method, **params)
        error: Message = answer["error"]
        return error

    async def happen(self, session: str, *events: ev.Event) -> None:
        """These happen in the session."""
        await self.deck.journal.append(session, list(events))

    async def open(self, name: str = "one") -> str:
        """A session that is there, and open in the editor."""
        session = await self.deck.have_session(name)
        await self.happen(session, ev.StateChanged(state=SessionState.IDLE))
        await self.call("session/resume", sessionId=session, cwd="/tmp")
        await self.pipe.told("available_commands_update")
        return session

    async def prompt(self, session: str) -> tuple[int, str]:
        """A prompt: the id of its request, and its own."""
        number = next(self._ids)
        params = {"sessionId": session, "prompt": TEXT}
        self.pipe.say(id=number, method="session/prompt", params=params)
        command = await self.submitted(cmd.SendPrompt)
        await self.holds(session, lambda view: command.prompt in view.prompts)
        return number, command.prompt

    async def holds(self, session: str, wanted: Callable[[SessionView], bool]) -> None:
        """Wait until the hub's session is as wanted."""
        with anyio.fail_after(SECONDS):
            while True:
                with suppress(NotFound):
                    if wanted(await self.deck.session(session)):
                        return
                await anyio.sleep(0.01)

    async def submitted(self, kind: type[Any], number: int = 1) -> Any:
        """A command that the hub got."""
        with anyio.fail_after(SECONDS):
            while True:
                found = [each for each in self.deck.submitted if isinstance(each, kind)]
                if len(found) >= number:
                    return found[number - 1]
                await anyio.sleep(0.01)

    async def ends(self, session: str, prompt: str, **how: Any) -> None:
        """The turn of a prompt ends."""
        ended = {"failed": False, "outcome": "completed", "cost_usd": 0.1, **how}
        sent = ev.PromptSent(prompt=prompt, run=f"run-{session}")
        await self.happen(session, sent, ev.TurnEnded(prompts=(prompt,), **ended))


@asynccontextmanager
async def desk(
    folder: Path,
    role: Role = Role.OWNER,
    *,
    forms: bool = False,
    where: Callable[[HubAddress], Awaitable[HubAddress]] | None = None,
) -> AsyncIterator[Desk]:
    async with front(folder) as served:
        pipe = MemoryPipe()
        address = HubAddress(
            address=served.url, token=served.access.make_token(f"the {role.value}", role)
        )

        async def find() -> HubAddress:
            return address if where is None else await where(address)

        with anyio.fail_after(2 * SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve, pipe, find, SessionSpec(directory="/"))
                made = Desk(served, pipe)
                has: dict[str, object] = {"elicitation": {"form": {}}} if forms else {}
                await made.call("initialize", protocolVersion=1, clientCapabilities=has)
                yield made
                pipe.put(b"")


async def test_a_session_is_made_listed_and_let_go(tmp_path: Path) -> None:
    async with desk(tmp_path) as here, anyio.create_task_group() as tasks:

        async def start() -> None:
            made = await here.submitted(cmd.CreateSession)
            offers = ev.OffersChanged(commands=(OfferedCommand(name="compact"),))
            await here.holds(made.session, lambda view: view.run is not None)
            await here.happen(made.session, offers, ev.StateChanged(state=SessionState.IDLE))

        tasks.start_soon(start)
        made = await here.call("session/new", cwd="/work", mcpServers=[])
        session = made["sessionId"]
        assert [option["id"] for option in made["configOptions"]] == ["mode", "model"]
        commands = await here.pipe.told("available_commands_update")
        assert [each["name"] for each in commands["availableCommands"]] == ["compact"]
        listed = await here.call("session/list", cwd="/work")
        assert [each["sessionId"] for each in listed["sessions"]] == [session]
        assert (await here.call("session/list", cwd="/else"))["sessions"] == []
        number, _ = await here.prompt(session)
        assert await here.call("session/close", sessionId=session) == {}
        assert (await here.pipe.answer(number))["result"] == {"stopReason": "cancelled"}
        assert not any(isinstance(each, cmd.StopSession) for each in here.deck.submitted)
        assert "not open" in (await here.refused("session/close", sessionId=session))["message"]


async def test_the_turn_of_a_prompt_ends_its_request(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        session = await here.open()
        number, prompt = await here.prompt(session)
        said = assistant(text("the answer")).event
        await here.happen(session, said)
        await here.ends(session, prompt)
        assert (await here.pipe.answer(number))["result"] == {"stopReason": "end_turn"}
        told = [message.get("id") for message in here.pipe.heard if message.get("id") == number]
        assert told
        assert here.pipe.text == "the answer"

        here.deck.submitted.clear()
        number, prompt = await here.prompt(session)
        await here.ends(
            session, prompt, failed=True, outcome="api_error", problem="authentication_failed",
            text="Please log in",
        )  # fmt: skip
        error = (await here.pipe.answer(number))["error"]
        assert (error["code"], error["message"]) == (-32000, "the turn failed: Please log in")

        here.deck.submitted.clear()
        number, prompt = await here.prompt(session)
        await here.happen(
            session,
            ev.PromptSent(prompt=prompt, run=f"run-{session}"),
            ev.RunEnded(run=f"run-{session}", reason="it crashed"),
        )
        assert "it crashed" in (await here.pipe.answer(number))["error"]["message"]


async def test_cancelling_takes_back_a_queued_prompt_and_interrupts_a_running_one(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path) as here:
        session = await here.open()
        number, prompt = await here.prompt(session)
        here.pipe.notify("session/cancel", sessionId=session)
        assert (await here.submitted(cmd.CancelPrompt)).prompt == prompt
        assert (await here.pipe.answer(number))["result"] == {"stopReason": "cancelled"}
        assert not any(isinstance(each, cmd.Interrupt) for each in here.deck.submitted)

        # A running one, by `$/cancel_request`.
        here.deck.submitted.clear()
        number, prompt = await here.prompt(session)
        await here.happen(session, ev.PromptSent(prompt=prompt, run=f"run-{session}"))
        here.pipe.notify("$/cancel_request", requestId=number)
        assert (await here.pipe.answer(number))["error"]["code"] == -32800
        await here.submitted(cmd.Interrupt)

        # A turn that others have begun.
        here.deck.submitted.clear()
        here.pipe.notify("session/cancel", sessionId=session)
        await here.submitted(cmd.Interrupt)
        for odd in ({}, {"sessionId": 7}, {"sessionId": "unknown"}):
            here.pipe.notify("session/cancel", **odd)
        here.pipe.notify("something/else")
        await here.call("session/list")


async def test_a_question_is_answered_here_or_elsewhere(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        session = await here.open()
        ask = await here.deck.ask(session, "make")
        asked = await here.pipe.asked("session/request_permission")
        chosen = {"outcome": {"outcome": "selected", "optionId": "allow"}}
        here.pipe.say(id=asked["id"], result=chosen)
        command = await here.submitted(cmd.AnswerAsk)
        assert (command.ask, command.answer) == (ask, cmd.AllowAnswer())

        # Elsewhere, while the dialogue is open.
        ask = await here.deck.ask(session, "again")
        asked = await here.pipe.asked("session/request_permission", 2)
        await here.deck.submit(cmd.AnswerAsk(ask=ask, answer=cmd.DenyAnswer(), by="bob"))
        cancelled = await here.pipe.asked("$/cancel_request")
        assert cancelled["params"] == {"requestId": asked["id"]}
        await here.pipe.find(lambda message: "Denied by bob, elsewhere: again" in str(message))
        assert "elsewhere: make" not in here.pipe.text

        # Withdrawn, and ended with its process.
        ask = await here.deck.ask(session, "third")
        await here.pipe.asked("session/request_permission", 3)
        await here.happen(session, ev.AskWithdrawn(ask=ask, reason="interrupted"))
        await here.pipe.asked("$/cancel_request", 2)
        await here.deck.ask(session, "fourth")
        await here.pipe.asked("session/request_permission", 4)
        await here.happen(session, ev.RunEnded(run=f"run-{session}", reason="gone"))
        await here.pipe.asked("$/cancel_request", 3)
        await here.pipe.find(lambda message: "its process has ended" in str(message))


async def test_an_answer_that_comes_second_is_told_who_was_first(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        session = await here.open()
        ask = await here.deck.ask(session, "make")
        asked = await here.pipe.asked("session/request_permission")
        here.deck.hold = anyio.Event()
        chosen = {"outcome": {"outcome": "selected", "optionId": "allow"}}
        here.pipe.say(id=asked["id"], result=chosen)
        await here.submitted(cmd.AnswerAsk)  # on its way
        answer = Raw(msgspec.json.encode(cmd.DenyAnswer()))
        await here.happen(session, ev.AskAnswered(ask=ask, by="bob", answer=answer, allowed=False))
        here.deck.hold.set()
        await here.pipe.find(lambda message: "Denied by bob, elsewhere: make" in str(message))

        # Refused for another reason: it stays open.
        await here.deck.ask(session, "again")
        asked = await here.pipe.asked("session/request_permission", 2)
        here.deck.fails = Conflict("odd", "not like this")
        here.pipe.say(id=asked["id"], result={"outcome": {"outcome": "selected", "optionId": "x"}})
        await here.pipe.find(lambda message: "'x' was not offered; the question is" in str(message))


async def test_no_answer_leaves_the_question_open_and_a_form_that_fails_becomes_buttons(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path, forms=True) as here:
        session = await here.open()
        questions = {"questions": [{"question": "Which?", "options": [{"label": "red"}]}]}
        request = {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": questions}
        for number in (1, 2):
            opened = ev.AskOpened(
                ask=f"{session}.a{number}",
                run=f"run-{session}",
                request_id="r",
                ask_kind=ev.AskKind.QUESTIONS,
                tool="AskUserQuestion",
                title="ask user",
                request=Raw(msgspec.json.encode(request)),
            )
            await here.happen(session, opened)
        form = await here.pipe.asked("elicitation/create")
        here.pipe.say(id=form["id"], error={"code": -32601, "message": "no forms"})
        asked = await here.pipe.asked("session/request_permission")
        chosen = {"outcome": {"outcome": "selected", "optionId": "option0"}}
        here.pipe.say(id=asked["id"], result=chosen)
        answered = await here.submitted(cmd.AnswerAsk)
        assert answered.answer == cmd.QuestionsAnswer(answers={"Which?": "red"})
        second = await here.pipe.asked("elicitation/create", 2)
        here.pipe.say(id=second["id"], result={"action": "cancel"})
        await here.pipe.find(lambda message: "the question is still open" in str(message))
        await here.deck.ask(session)
        asked = await here.pipe.asked("session/request_permission", 2)
        here.pipe.say(id=asked["id"], error={"code": 1, "message": "broken"})
        await here.pipe.find(lambda message: "did not answer: broken; the q" in str(message))


async def test_a_viewer_is_told_and_not_asked(tmp_path: Path) -> None:
    async with desk(tmp_path, Role.VIEWER) as here:
        session = await here.open()
        await here.deck.ask(session)
        await here.happen(session, assistant(text("seen")).event)
        await here.pipe.told("agent_message_chunk")
        assert not [m for m in here.pipe.heard if m.get("method") == "session/request_permission"]
        error = await here.refused("session/prompt", sessionId=session, prompt=TEXT)
        assert error["data"] == {"code": "forbidden"}
        error = await here.refused("session/set_mode", sessionId=session, modeId="plan")
        assert error["code"] == -32602


async def test_the_history_is_told_before_the_answer_and_then_what_follows(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        session = await here.deck.have_session()
        queued = ev.PromptQueued(prompt="p1", content=Raw(b'"before"'), by="bob")
        await here.happen(session, queued, assistant(text("told")).event)
        ask = await here.deck.ask(session)
        await here.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        kinds = [
            message["params"]["update"]["sessionUpdate"] if "params" in message else "answer"
            for message in here.pipe.heard
        ]
        order = ["user_message_chunk", "agent_message_chunk", "answer"]
        assert [kind for kind in kinds if kind in order][-3:] == order
        asked = await here.pipe.asked("session/request_permission")
        assert asked["params"]["_meta"]["quarterdeck"]["ask"] == ask
        here.deck.type(session, "live ")
        await here.pipe.find(lambda message: "live " in str(message))
        # Loaded again: the first one is let go.
        await here.call("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        await here.pipe.asked("$/cancel_request")
        await here.pipe.asked("session/request_permission", 2)
        await here.happen(session, assistant(text("after")).event)
        await here.pipe.find(lambda message: "after" in str(message))
        # Deleted elsewhere.
        await here.deck.submit(cmd.StopSession(session=session))
        await here.deck.submit(cmd.DeleteSession(session=session, by="bob"))
        await here.pipe.find(lambda message: "was deleted by bob" in str(message))
        error = await here.refused("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        assert error["code"] == -32002


async def test_switches_are_control_requests(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        session = await here.open()
        await here.call("session/set_mode", sessionId=session, modeId="plan")
        command = await here.submitted(cmd.Control)
        assert msgspec.json.decode(command.request)["mode"] == "plan"
        changed = await here.call(
            "session/set_config_option", sessionId=session, configId="mode", value="acceptEdits"
        )
        assert changed["configOptions"][0]["currentValue"] == "acceptEdits"
        await here.happen(session, ev.Switched(mode="default", by="bob"))
        told = await here.pipe.find(lambda message: "current_mode_update" in str(message))
        assert told["params"]["update"]["currentModeId"] == "default"
        offers = ev.OffersChanged(commands=(OfferedCommand(name="other"),))
        await here.happen(session, offers)
        await here.pipe.told("available_commands_update", 2)


async def test_an_agent_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    async with desk(tmp_path) as here, anyio.create_task_group() as tasks:
        session = await here.deck.have_session()
        await here.deck.submit(cmd.StopSession(session=session))

        async def die() -> None:
            await here.submitted(cmd.ResumeSession)
            await here.holds(session, lambda view: view.run is not None)
            view = await here.deck.session(session)
            await here.happen(session, ev.RunEnded(run=view.run or "", reason="no such folder"))

        tasks.start_soon(die)
        error = await here.refused("session/resume", sessionId=session, cwd="/tmp")
        assert "the agent did not start: no such folder" in error["message"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("nothing", {}, -32601),
        ("fs/read_text_file", {}, -32601),
        ("session/new", None, -32602),
        ("session/new", [], -32602),
        ("session/new", {"cwd": 7, "mcpServers": []}, -32602),
        ("session/new", {"cwd": "not/absolute", "mcpServers": []}, -32602),
        ("session/prompt", {"sessionId": "unknown", "prompt": TEXT}, -32002),
        ("session/prompt", {"sessionId": "unknown", "prompt": [{"type": "odd"}]}, -32602),
        ("session/load", {"sessionId": "unknown", "cwd": "/", "mcpServers": []}, -32002),
        ("session/fork", {"sessionId": "unknown", "cwd": "/"}, -32002),
        ("session/set_mode", {"sessionId": "unknown", "modeId": "plan"}, -32002),
        ("session/list", {"cursor": 7}, -32602),
        ("initialize", None, -32602),
    ],
)
async def test_bad_requests_get_an_error(
    tmp_path: Path, method: str, params: object, code: int
) -> None:
    async with desk(tmp_path) as here:
        here.pipe.say(id="bad", method=method, params=params)
        error = (await here.pipe.answer("bad"))["error"]
        assert error["code"] == code
        assert error["message"]
        assert await here.call("session/list") == {"sessions": []}


async def test_a_token_that_is_not_valid_is_an_error_for_a_login(
    tmp_path: Path,
) -> None:
    async def where(address: HubAddress) -> HubAddress:
        return msgspec.structs.replace(address, token="qd_wrong")

    async with desk(tmp_path, where=where) as here:
        error = await here.refused("session/list")
        assert error["code"] == -32000
        assert error["data"] == {"code": "unauthorized"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("session", "x"), -32002),
        (UsageError("odd"), -32602),
        (LinkRefused("away"), -32603),
        (Conflict("busy", "not now"), -32603),
    ],
)
def test_errors_of_the_client_have_their_codes(error: QuarterdeckError, code: int) -> None:
    assert rpc_error(error).code == code
    assert str(rpc_error(error)) == str(error)


async def test_there_is_a_limit_to_open_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "MOST_OPEN", 1)
    async with desk(tmp_path) as here:
        session = await here.open()
        error = await here.refused("session/resume", sessionId=session, cwd="/tmp")
        assert "close one first" in error["message"]


async def test_a_hub_that_is_away_is_an_error_or_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = False

    async def where(address: HubAddress) -> HubAddress:
        if away:
            raise LinkRefused("no hub runs on this machine")
        return address

    monkeypatch.setattr(session_feed, "RETRY_SECONDS", 0.01)
    async with desk(tmp_path, where=where) as here:
        session = await here.open()
        away = True
        error = await here.refused("session/list")
        assert error["message"] == "no hub runs on this machine"
        number = 7
        here.pipe.say(
            id=number, method="session/prompt", params={"sessionId": session, "prompt": TEXT}
        )
        await anyio.wait_all_tasks_blocked()
        away = False
        prompt = (await here.submitted(cmd.SendPrompt)).prompt
        await here.ends(session, prompt)
        assert (await here.pipe.answer(number))["result"] == {"stopReason": "end_turn"}
        away = True
        monkeypatch.setattr(session_feed, "AWAY_SECONDS", 0.0)
        error = await here.refused("session/prompt", sessionId=session, prompt=TEXT)
        assert error["data"] == {"code": "hub_away"}


async def test_a_slow_editor_misses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "MOST_ITEMS", 5)
    async with desk(tmp_path) as here:
        session = await here.open()
        here.pipe.stuck = anyio.Event()
        for number in range(40):
            await here.happen(session, assistant(text(f"<{number}>")).event)
        await anyio.wait_all_tasks_blocked()
        here.pipe.stuck.set()
        here.pipe.stuck = None
        await here.pipe.find(lambda message: "<39>" in str(message))
        assert here.pipe.text == "".join(f"<{number}>" for number in range(40))
        number, prompt = await here.prompt(session)
        await here.ends(session, prompt)
        assert (await here.pipe.answer(number))["result"] == {"stopReason": "end_turn"}


async def test_live_text_that_overtakes_events_is_told_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub prepares a frame of events while text of the next message comes."""
    prepared, frame = anyio.Event(), Frames.frame

    async def late(frames: Frames, batch: Events, *, pictures: bool = True) -> EventFrame:
        await prepared.wait()
        return await frame(frames, batch, pictures=pictures)

    async with desk(tmp_path) as here:
        session = await here.open()
        monkeypatch.setattr(Frames, "frame", late)
        whole = assistant(text("half and more")).event
        # The message itself is not told before its live text, which would double it.
        await here.happen(session, ev.Noted(level="warning", text="before"), whole)
        here.deck.type(session, "half ")
        await here.pipe.find(lambda message: "half " in str(message))
        assert here.pipe.text == "\n*Before.*\nhalf "
        prepared.set()
        await here.pipe.find(lambda message: "more" in str(message))
        assert here.pipe.text == "\n*Before.*\nhalf and more"


async def test_an_editor_that_ends_leaves_the_session_running(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        session = await here.open()
        await here.prompt(session)
        here.pipe.broken = True
        await here.happen(session, assistant(text("nobody reads")).event)
    assert not any(
        isinstance(each, cmd.Interrupt | cmd.StopSession | cmd.CancelPrompt)
        for each in here.deck.submitted
    )
