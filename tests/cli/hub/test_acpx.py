"""`quarterdeck acp` driven by acpx, a headless client of another make, with the newest real CLI.

The commands of acpx answer dialogues by a rule only. So what people choose is shown with its
runtime, the library below the commands: `acpx_runtime.mjs`. Neither can fork: that is shown with
the connection that the runtime is built on. `test_acp.py` has the client of the `acp` package.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio.abc import Process

from cli.hub import test_acp
from quarterdeck.client.calls import HubRefused
from quarterdeck.protocol.commands import AnswerAsk, DenyAnswer
from quarterdeck.protocol.events import AskAnswered
from quarterdeck.service.local_hub import person_here
from quarterdeck.testing import Gate, ScriptedModel, Text, ToolUse, play, reply
from support.acp_wire import MEGABYTES_10, PARTS, Wire, shown_in, shows
from support.bounds import SECONDS
from support.command_line import COMMAND
from support.processes import Processes
from support.scenes import bash
from support.served_deck import ServedDeck

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

ACPX = Path(__file__).parents[3] / ".cache/acpx/node_modules/acpx/dist/cli.js"

RUNTIME = ACPX.with_name("runtime.js")
DRIVER = Path(__file__).with_name("acpx_runtime.mjs")

Line = dict[str, Any]


class Runtime:
    """A process with the runtime of acpx, with `quarterdeck acp` as its agent."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._rest = b""
        self._number = 0
        self.lines: list[Line] = []

    async def send(self, do: str, **more: object) -> int:
        """Give a command; gives its number."""
        assert self._process.stdin is not None
        self._number += 1
        line = json.dumps({"do": do, "id": self._number, **more})
        await self._process.stdin.send(line.encode() + b"\n")
        return self._number

    async def hear(self, wanted: Callable[[Line], object]) -> Line:
        """Read on until a line is as wanted."""
        assert self._process.stdout is not None
        with anyio.fail_after(SECONDS):
            while True:
                while b"\n" not in self._rest:
                    self._rest += await self._process.stdout.receive()
                row, _, self._rest = self._rest.partition(b"\n")
                line: Line = json.loads(row)
                self.lines.append(line)
                if wanted(line):
                    return line

    async def __call__(self, do: str, **more: object) -> Any:
        """Give a command, and wait for what comes of it."""
        self.lines.clear()
        return await self.done(await self.send(do, **more))

    async def done(self, number: int) -> Any:
        """Wait for the end of a command."""
        line = await self.hear(lambda line: line.get("id") == number)
        assert "error" not in line, line
        return line["done"]

    def heard(self, name: str) -> list[Any]:
        """What was said under a name since the last command."""
        return [line[name] for line in self.lines if name in line]

    def updates(self, tag: str) -> list[Line]:
        """The updates of a kind since the last command."""
        return [event for event in self.heard("event") if event.get("tag") == tag]

    @property
    def text(self) -> str:
        """The text since the last command."""
        return "".join(event["text"] for event in self.updates("agent_message_chunk"))


@asynccontextmanager
async def runtime(
    deck: ServedDeck,
    processes: Processes,
    wire: Wire,
    *arguments: str,
    modes: str = "form",
    resume: bool = True,
) -> AsyncIterator[Runtime]:
    """The runtime of acpx; it ends with its agent, and the hub's session does not.

    `modes` are the kinds of forms that it shows. acpx loads a session only if an agent cannot
    resume one: `resume` is whether it is told that ours can.
    """
    agent = wire.agent(*COMMAND, "acp", "--api-billing", *arguments, resume=resume)
    process = await anyio.open_process(
        ["node", str(DRIVER), str(RUNTIME), modes, *agent],
        cwd=deck.command.work,
        env=deck.command.env,
        stderr=None,
    )
    processes.started(process.pid)
    assert process.stdin is not None
    try:
        yield Runtime(process)
    finally:
        await process.stdin.aclose()
        with anyio.fail_after(SECONDS):
            await process.wait()
        await process.aclose()


class Acpx:
    """The command, with `quarterdeck acp` as its agent. `make test` installs it."""

    def __init__(self, deck: ServedDeck, wire: Wire) -> None:
        self._deck = deck
        self._wire = wire

    async def __call__(self, *arguments: str, options: tuple[str, ...] = ()) -> list[Line]:
        """What it prints, line by line. Its helper for a session ends when that is closed."""
        assert ACPX.is_file(), "run: make .cache/acpx/.installed"
        agent = shlex.join(self._wire.agent(*COMMAND, "acp", "--api-billing"))
        line = ["node", str(ACPX), "--agent", agent, "--format", "json", "--ttl", "10", *options]
        command = self._deck.command
        with anyio.fail_after(SECONDS):
            while True:
                done = await anyio.run_process(
                    [*line, *arguments], cwd=command.work, env=command.env, check=False
                )
                rows = [row for row in done.stdout.splitlines() if row.strip()]
                found: list[Line] = [json.loads(row) for row in rows]
                assert found, done.stderr.decode()
                if b"QUEUE_OWNER_CLOSED" not in rows[-1]:  # the helper was about to end
                    return found

    async def say(self, text: str, *options: str) -> tuple[str, str]:
        """The stop reason of a prompt's turn, and the text."""
        lines = await self("prompt", "-s", "one", text, options=options)
        updates = [line["params"]["update"] for line in lines if "update" in line.get("params", {})]
        said = [
            update["content"]["text"]
            for update in updates
            if update["sessionUpdate"] == "agent_message_chunk"
        ]
        results = [line.get("result") or {} for line in lines]
        reasons = [result["stopReason"] for result in results if "stopReason" in result]
        assert len(reasons) == 1, lines
        return reasons[0], "".join(said)


@shows("acpx", "new", "list", "prompt", "cancel", "close", "resume", "permissions", "mode", "model")
async def test_acpx_drives_a_session_of_the_hub(
    deck: ServedDeck, model: ScriptedModel, wire: Wire
) -> None:
    """new, list, prompt, permissions, mode, model, cancel, close, and an old session again."""
    await deck.serve()
    acpx = Acpx(deck, wire)
    made = (await acpx("sessions", "new", "--name", "one"))[-1]
    session = made["acpxSessionId"]
    (listed,) = await acpx("sessions", "list")
    assert [each["sessionId"] for each in listed["sessions"]] == [session]
    assert listed["source"] == "agent"

    allowed = await acpx.say(play(bash("touch made"), "all done"), "--approve-all")
    assert allowed == ("end_turn", "all done")
    assert (deck.command.work / "made").exists()
    denied = await acpx.say(play(bash("touch not"), "so be it"), "--deny-all")
    assert denied == ("end_turn", "so be it")
    assert not (deck.command.work / "not").exists()

    await acpx("set-mode", "-s", "one", "acceptEdits")
    await acpx("set", "-s", "one", "model", "haiku")
    shape = await deck.until(session, lambda shape: shape.mode == "acceptEdits")
    assert shape.spec.model == "haiku"

    ends: list[tuple[str, str]] = []

    async def slow() -> None:
        ends.append(await acpx.say(play(reply(Text("slow "), Gate("never")))))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slow)
        await model.wait_at_gate("never")
        await acpx("cancel", "-s", "one")
    assert [reason for reason, _ in ends] == ["cancelled"]

    # Closed there, it goes on here; and another acpx takes it up again.
    await acpx("sessions", "close", "one")
    assert (await deck.until_state(session, "idle")).pid is not None
    again = (await acpx("sessions", "new", "--name", "one", "--resume-session", session))[-1]
    assert again["acpxSessionId"] == session
    assert "session/resume" in wire.facts
    assert "session/load" not in wire.facts
    assert await acpx.say(play("still here")) == ("end_turn", "still here")
    await acpx("sessions", "close", "one")  # ends its helper
    await deck("stop")
    await deck.ends()


QUESTION = ToolUse(
    "AskUserQuestion",
    {
        "questions": [
            {
                "question": "Which one?",
                "header": "One",
                "options": [
                    {"label": "red", "description": "like fire"},
                    {"label": "blue", "description": "like water"},
                ],
                "multiSelect": False,
            }
        ]
    },
)


@shows(
    "acpx",
    *("permissions", "lasting ones", "plan review", "questions as forms", "else as options"),
    *("effort", "plan", "usage", "commands", "a new title", "answered elsewhere"),
    *("load", "resume", "lines of 10 MB"),
)
async def test_the_runtime_of_acpx_shows_forms_plans_and_answers_from_elsewhere(
    deck: ServedDeck, model: ScriptedModel, processes: Processes, wire: Wire
) -> None:
    """What the commands of acpx have no words for."""
    await deck.serve()
    async with runtime(deck, processes, wire, "--env", "CLAUDE_CODE_ENABLE_TODO_TOOLS=1") as acpx:
        handle = await acpx("ensure", key="one")
        session = handle["backendSessionId"]

        # A permission that holds for the session, to-dos, tokens, commands.
        todo = ToolUse("TaskCreate", {"subject": "one", "description": "do one"})
        script = play(bash("touch two"), bash("touch two"), todo, "done")
        ended = await acpx("turn", text=script, decisions=["allow_always"])
        assert (ended["status"], acpx.text) == ("completed", "done")
        (asked,) = acpx.heard("asked")
        assert asked["toolCall"]["title"] == "touch two"
        (grant,) = deck.client.policy_grants()
        assert (grant.rules, grant.session) == (("Bash(touch two)",), session)
        assert [entry["content"] for entry in acpx.updates("plan")[-1]["entries"]] == ["one"]
        assert acpx.updates("usage_update")[-1]["cost"]["amount"] > 0
        status = await acpx("status")
        assert "compact" in {command["name"] for command in status["availableCommands"]}

        # Effort, a form, a plan.
        await acpx("option", key="effort", value="high")
        await deck.until(session, lambda shape: shape.effort == "high")
        await acpx("turn", text=play(QUESTION, "thanks"), forms=[{"answer1": "blue"}])
        assert '"Which one?"="blue"' in model.turns[-1].last_text
        assert acpx.heard("asked") == []
        await acpx("mode", value="plan")
        plan = ToolUse("ExitPlanMode", {"plan": "1. Do it."})
        await acpx("turn", text=play(plan, "as planned"), decisions=["allow_once"])
        (asked,) = acpx.heard("asked")
        assert asked["toolCall"]["kind"] == "switch_mode"
        assert acpx.text == "as planned"
        await deck.until(session, lambda shape: shape.mode != "plan")

        # A title that is given elsewhere, during a turn; and that turn is cancelled.
        acpx.lines.clear()
        turn = await acpx.send("turn", text=play(reply(Gate("never"), Text("no"))))
        await model.wait_at_gate("never")
        await deck("rename", session, "the new name")
        await acpx.hear(lambda line: line.get("event", {}).get("tag") == "session_info_update")
        await acpx.send("cancel")
        assert (await acpx.done(turn))["stopReason"] == "cancelled"
        assert (await acpx("record"))["title"] == "the new name"

        # Answered elsewhere: the dialogue is taken back, and acpx is told who it was.
        await acpx("mode", value="default")
        acpx.lines.clear()
        turn = await acpx.send("turn", text=play(bash("touch not"), "so be it"))
        await acpx.hear(lambda line: "asked" in line)
        await deck("answer", session, "deny", "--message", "not now")
        await acpx.hear(lambda line: line.get("takenBack") == "permission")
        await acpx.done(turn)
        assert f"Denied by {person_here()}, elsewhere: touch not." in acpx.text
        assert "so be it" in acpx.text
        assert not (deck.command.work / "not").exists()
        await race(acpx, deck, session)

    # Another process takes the session up again, and shows no forms: a question has options.
    assert (await deck.until_state(session, "idle")).pid is not None
    assert not {"session/resume", "session/load"} & set(wire.facts)
    async with runtime(deck, processes, wire, modes="") as acpx:
        handle = await acpx("ensure", key="two", resume=session)
        assert handle["backendSessionId"] == session
        assert "session/resume" in wire.facts
        assert "session/load" not in wire.facts
        before = wire.facts.count("elicitation/create")
        await acpx("turn", text=play(QUESTION, "thanks"), decisions=["allow_once"])
        assert wire.facts.count("elicitation/create") == before
        assert acpx.heard("form") == []
        (asked,) = acpx.heard("asked")
        assert asked["toolCall"]["title"] == "Which one?"
        assert [option["name"] for option in asked["options"]] == [
            "red: like fire",
            "blue: like water",
            "Skip the question",
        ]
        # A person's choice is the first of its kind: acpx has no way to say which.
        assert '"Which one?"="red"' in model.turns[-1].last_text
        await acpx("turn", text=play(QUESTION, "very well"), decisions=["reject_once"])
        assert '"Which one?"=' not in model.turns[-1].last_text
        assert acpx.text == "very well"
        await acpx("close")
        # A line of 10 MB: the CLI has it, and finds it too long for the model.
        large = (await acpx("ensure", key="three"))["backendSessionId"]
        ended = await acpx("turn", text="x" * MEGABYTES_10)
        assert "Prompt is too long" in ended["error"]["message"]

    # An acpx that cannot resume loads: it gets the history, with that line.
    async with runtime(deck, processes, wire, resume=False) as acpx:
        handle = await acpx("ensure", key="four", resume=large)
        assert handle["backendSessionId"] == large
        assert "session/load" in wire.facts
        assert "10 MB of the agent" in wire.facts
    assert (await deck.until_state(session, "idle")).pid is not None
    await deck("stop")
    await deck.ends()


async def race(acpx: Runtime, deck: ServedDeck, session: str) -> None:
    """One question, answered in acpx and in the hub at the same time: one wins, both are told."""
    for number in range(4):
        name = f"both{number}"
        acpx.lines.clear()
        turn = await acpx.send("turn", text=play(bash(f"touch {name}"), "x"))
        await acpx.hear(lambda line: "asked" in line)
        (card,) = deck.client.asks(session)
        refused: list[HubRefused] = []

        async def deny(ask: str = card.opened.ask) -> None:
            try:
                command = AnswerAsk(ask=ask, answer=DenyAnswer())
                await anyio.to_thread.run_sync(deck.client.submit, command)
            except HubRefused as error:
                refused.append(error)  # noqa: B023 - of this round

        async with anyio.create_task_group() as tasks:
            # Either is sent first in half of the rounds.
            if number % 2:
                tasks.start_soon(deny)
                await anyio.lowlevel.checkpoint()
            await acpx.send("decide", outcome="allow_once")
            if not number % 2:
                tasks.start_soon(deny)
        await acpx.done(turn)
        made = (deck.command.work / name).exists()
        told = f"Denied by {person_here()}, elsewhere: touch {name}." in acpx.text
        assert (made, told) == ((True, False) if refused else (False, True)), acpx.text
        if refused:
            assert refused[0].problem.code == "already_answered"
        answers = [
            shape.event
            for shape in deck.client.events(session)
            if isinstance(shape.event, AskAnswered) and shape.event.ask == card.opened.ask
        ]
        assert [answer.allowed for answer in answers] == [made]


@shows("the SDK of acpx", "fork", "prompt")
async def test_the_connection_that_acpx_is_built_on_forks_a_session(
    deck: ServedDeck, model: ScriptedModel, processes: Processes, wire: Wire
) -> None:
    await deck.serve()
    session = await deck.new(play("the answer"))
    await deck.until(session, lambda shape: shape.turns == 1)
    async with runtime(deck, processes, wire) as acpx:
        made = await acpx("fork", session=session, text=play("in the fork"))
    assert made["said"] == "in the fork"
    assert made["session"] != session
    assert "the answer" in str(model.turns[-1].messages)
    assert deck.client.session(made["session"]).parent == session
    await deck("stop")
    await deck.ends()


def test_what_was_not_on_the_wire_is_not_shown(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "notes")

    @shows("nobody", "fork", "prompt", "lasting ones")
    def test() -> None: ...

    options = [{"optionId": "a", "kind": "allow_always"}, {"optionId": "b", "kind": "allow_once"}]
    asked = {"toolCall": {"kind": "execute"}, "options": options}
    wire.take({"id": 1, "method": "session/request_permission", "params": asked}, of_client=False)
    wire.take({"id": 2, "method": "session/prompt", "params": {}}, of_client=True)
    chosen = {"outcome": {"outcome": "selected", "optionId": "b"}}
    wire.take({"id": 1, "result": chosen}, of_client=True)
    with pytest.raises(AssertionError, match=r"not on the wire: \['fork', 'lasting ones'\]"):
        wire.check(test)
    wire.notes.write_text("session/fork\nchosen allow_always\n")
    wire.check(test)


def test_the_how_to_says_which_client_shows_what() -> None:
    """Its table is what the tests here and in `test_acp.py` were seen to do."""
    shown = shown_in(test_acp, sys.modules[__name__])
    page = (Path(__file__).parents[3] / "docs/how-to/use-quarterdeck-from-an-editor.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    table = {row[0][2:]: row[1].split(", ") for row in rows if len(row) == 3}
    assert table.pop("what") == ["clients"]
    parts = [part for row in table for part in row.split(", ")]
    assert sorted(parts) == sorted(PARTS)
    for row, clients in table.items():
        able = [client for client, found in shown.items() if found >= set(row.split(", "))]
        assert sorted(clients) == sorted(able), row
