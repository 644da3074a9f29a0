"""`quarterdeck acp` driven by acpx, a headless client of another make, with the newest real CLI.

The commands of acpx answer dialogues by a rule only. So what people choose is shown with its
runtime, the library below the commands: `acpx_runtime.mjs`. Neither can fork: ROWS says who shows
what, and `test_acp.py` has the client of the `acp` package.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process

from quarterdeck.testing import Gate, ScriptedModel, Text, ToolUse, play, reply
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

ROWS = {
    "new, list, prompt, cancel, close": "acpx, Python",
    "load, resume": "acpx, Python",
    "fork": "Python",
    "permissions, lasting ones, plan review": "acpx, Python",
    "questions as forms, else as options": "acpx, Python",
    "mode, model, effort": "acpx, Python",
    "plan, usage, commands": "acpx, Python",
    "a new title": "acpx, Python",
    "answered elsewhere": "acpx, Python",
    "lines of 10 MB": "acpx, Python",
}
"""What is shown with which client; the how-to has the same table, with reasons."""


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
    deck: ServedDeck, processes: Processes, *arguments: str
) -> AsyncIterator[Runtime]:
    """The runtime of acpx; it ends with its agent, and the hub's session does not."""
    agent = [*COMMAND, "acp", "--api-billing", *arguments]
    process = await anyio.open_process(
        ["node", str(DRIVER), str(RUNTIME), *agent],
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

    def __init__(self, deck: ServedDeck) -> None:
        self._deck = deck

    async def __call__(self, *arguments: str, options: tuple[str, ...] = ()) -> list[Line]:
        """What it prints, line by line. Its helper for a session ends when that is closed."""
        assert ACPX.is_file(), "run: make .cache/acpx/.installed"
        agent = shlex.join([*COMMAND, "acp", "--api-billing"])
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


async def test_acpx_drives_a_session_of_the_hub(deck: ServedDeck, model: ScriptedModel) -> None:
    """new, list, prompt, permissions, mode, model, cancel, close, and an old session again."""
    await deck.serve()
    acpx = Acpx(deck)
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


async def test_the_runtime_of_acpx_shows_forms_plans_and_answers_from_elsewhere(
    deck: ServedDeck, model: ScriptedModel, processes: Processes
) -> None:
    """What the commands of acpx have no words for."""
    await deck.serve()
    async with runtime(deck, processes, "--env", "CLAUDE_CODE_ENABLE_TODO_TOOLS=1") as acpx:
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
        assert "elsewhere: touch not" in acpx.text
        assert "so be it" in acpx.text
    assert not (deck.command.work / "not").exists()

    # Another process takes the session up again.
    assert (await deck.until_state(session, "idle")).pid is not None
    async with runtime(deck, processes) as acpx:
        handle = await acpx("ensure", key="two", resume=session)
        assert handle["backendSessionId"] == session
        await acpx("turn", text=play("still here"))
        assert acpx.text == "still here"
        await acpx("close")
        # A line of 10 MB: the CLI has it, and finds it too long for the model.
        await acpx("ensure", key="three")
        ended = await acpx("turn", text="x" * 10 * 1024 * 1024)
        assert "Prompt is too long" in ended["error"]["message"]
    assert (await deck.until_state(session, "idle")).pid is not None
    await deck("stop")
    await deck.ends()


def test_the_how_to_says_which_client_shows_what() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/use-quarterdeck-from-an-editor.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert {row[0][2:]: row[1] for row in rows if len(row) == 3} == ROWS | {"what": "clients"}
