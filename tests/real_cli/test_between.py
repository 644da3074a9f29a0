"""Versions between those of the matrix: they have the traits that the table of versions gives them.

The matrix shows each trait of `wire.versions` on its four versions. On which side of a change a
version between two of them is, this shows on 2.1.52, 2.1.92 and 2.1.200, with two starts of each
and in the plain protocol: nothing of ours may hide what the CLI does.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from quarterdeck.testing import Gate, RealCli, ScriptedModel, ToolUse, play, reply
from quarterdeck.wire.versions import TRAITS, Version
from support.bounds import SECONDS
from support.clis import EXTRA_VERSIONS, Conversation, Line, conversation
from support.processes import Processes, running
from support.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

ELSEWHERE = {
    "can_dial",  # a flag of the launch: tests/claude/test_launch.py
    "replays_after_reconnect",  # on 2.1.92: test_reconnect.py; 2.1.52 is a script as 2.1.37 is
    "marks_own_turns",  # only of a result that follows a background task, from 2.1.325 on
}
"""Traits that are not shown here."""


class Probe:
    """One CLI that is asked for its traits, one after the other."""

    def __init__(self, cli: Conversation, model: ScriptedModel, work: Path) -> None:
        self.cli = cli
        self.model = model
        self.work = work
        self.found: dict[str, bool] = {}
        self._count = 0

    async def until(self, wanted: Callable[[Line], bool]) -> Line:
        """Read on to a line. What is asked meanwhile is left alone."""
        assert self.cli.process.stdout is not None
        with anyio.fail_after(SECONDS):
            while True:
                raw = await self.cli.process.stdout.readline()
                assert raw, f"the output ended: {self.cli.lines[-3:]}"
                line: Line = json.loads(raw)
                self.cli.lines.append(line)
                if wanted(line):
                    return line

    async def request(self, subtype: str, **members: object) -> Line:
        """Send a control request, and give the response. All are answered in their order."""
        self._count += 1
        id_ = f"ours-{self._count}"
        request = {"subtype": subtype, **members}
        self.cli.send({"type": "control_request", "request_id": id_, "request": request})
        found = await self.until(
            lambda line: line["type"] == "control_response" and _body(line)["request_id"] == id_
        )
        return _body(found)

    async def works(self, subtype: str, **members: object) -> bool:
        """Whether a control request is answered with success."""
        return (await self.request(subtype, **members))["subtype"] == "success"

    def prompt(self, text: str, **members: object) -> None:
        """Send a prompt with a uuid."""
        message = {"role": "user", "content": text}
        self.cli.send({"type": "user", "uuid": str(uuid4()), "message": message, **members})

    async def result(self) -> Line:
        """The next result of a turn."""
        return await self.until(lambda line: line["type"] == "result")

    async def wait_at(self, gate: str) -> None:
        """Begin a turn whose answer stops half-way."""
        self.prompt(play(reply("before ", Gate(gate), "whole")))
        await self.model.wait_at_gate(gate)

    async def call(self, command: str, *, bare: bool = False, **more: object) -> None:
        """Have a command called, allow it in this way, and wait for the end of the turn."""
        extra = more.pop("input", {})
        assert isinstance(extra, dict)
        self.prompt(play(reply(ToolUse("Bash", {"command": command, **extra})), "done"))
        request = await self.until(lambda line: line["type"] == "control_request")
        call = request["request"]
        assert isinstance(call, dict)
        answer = {"behavior": "allow", **({} if bare else {"updatedInput": call["input"]}), **more}
        body = {"subtype": "success", "request_id": request["request_id"], "response": answer}
        self.cli.send({"type": "control_response", "response": body})
        await self.result()

    # --- the traits ------------------------------------------------------------------------------

    async def requests_and_modes(self) -> None:
        """What it makes of requests that are repeated, unknown, or not permitted."""
        assert await self.works("initialize")
        self.found["initialize_repeatable"] = await self.works("initialize")
        self.cli.send({"type": "no_such_type"})
        self.found["answers_unknown_subtypes"] = not await self.works("no_such_subtype")
        self.found["survives_unknown_types"] = self.cli.process.returncode is None
        self.cli.send({"type": "control_cancel_request", "request_id": "nobody"})
        assert not await self.works("no_such_subtype")
        self.found["may_send_cancel"] = self.cli.process.returncode is None
        set_mode = partial(self.works, "set_permission_mode")
        self.found["guards_bypass"] = not await set_mode(mode="bypassPermissions")
        self.found["checks_modes"] = not await set_mode(mode="no_such_mode")
        assert await set_mode(mode="default")
        before = len(self.cli.lines)
        assert await set_mode(mode="plan")
        assert not await self.works("no_such_subtype")
        told = [line for line in self.cli.lines[before:] if line.get("subtype") == "status"]
        self.found["announces_mode_changes"] = bool(told)
        assert await set_mode(mode="default")

    async def answers(self) -> None:
        """What it makes of answers to its questions, and of variables."""
        await self.call("touch bare", bare=True)
        self.found["needs_updated_input"] = not (self.work / "bare").exists()
        await self.call("touch updated", updatedPermissions=[{"type": "noSuchUpdate"}])
        self.found["accepts_unknown_updates"] = (self.work / "updated").exists()
        variables = {"PROBED": "there"}
        self.cli.send({"type": "update_environment_variables", "variables": variables})
        await self.call('echo "$PROBED" > variable')
        self.found["environment_reaches_tools"] = (self.work / "variable").read_text() == "there\n"

    async def turns(self) -> None:
        """What it makes of prompts that come while a turn runs, and of an interrupt."""
        await self.wait_at("queue")
        self.prompt("one")
        self.prompt("two")
        assert not await self.works("no_such_subtype")  # it has read them
        self.model.release("queue")
        assert (await self.result())["result"] == "whole"
        joined = (await self.result())["result"] == "echo: one\ntwo"
        self.found["joins_queued_prompts"] = joined
        if not joined:
            assert (await self.result())["result"] == "echo: two"
        await self.wait_at("urgent")
        self.prompt("urgent", priority="now")
        assert not await self.works("no_such_subtype")
        self.model.release("urgent")
        first = (await self.result()).get("result")
        self.found["honours_priority"] = first != "whole"
        if first != "echo: urgent":  # the turn that it displaced may have no result of its own
            assert (await self.result())["result"] == "echo: urgent"
        await self.wait_at("stop")
        receipt = await self.request("interrupt")
        self.found["has_interrupt_receipt"] = bool(receipt.get("response"))
        self.found["flags_all_errors"] = (await self.result())["is_error"] is True
        self.model.release("stop")
        lifecycle = any(line["type"] == "command_lifecycle" for line in self.cli.lines)
        self.found["has_command_lifecycle"] = lifecycle

    async def background(self) -> None:
        """Whether a finished background task begins a turn. One that does not is waited for."""
        wait = "touch began; while [ ! -e go ]; do sleep 0.1; done"
        await self.call(wait, input={"run_in_background": True})
        (self.work / "go").touch()
        await self.result()
        self.found["starts_turns_itself"] = True


def _body(line: Line) -> Line:
    body = line["response"]
    assert isinstance(body, dict)
    return body


@pytest.mark.parametrize("version", EXTRA_VERSIONS)
async def test_a_version_between_has_the_traits_of_the_table(
    version: str,
    extra_clis: dict[str, RealCli],
    model: ScriptedModel,
    tmp_path: Path,
    processes: Processes,
) -> None:
    start = partial(conversation, extra_clis[version].command, tmp_path, model.url, processes)
    async with start() as cli:
        probe = Probe(cli, model, tmp_path / "work")
        await probe.requests_and_modes()
        await probe.answers()
        await probe.turns()
        await probe.background()
    async with start() as cli:
        left = await child_after_term(Probe(cli, model, tmp_path / "work"))
        probe.found["kills_children_on_term"] = not running(left)
        if running(left):
            os.kill(left, signal.SIGKILL)
    parsed = Version.parse(version)
    told = {name: trait(parsed) for name, trait in TRAITS.items() if name not in ELSEWHERE}
    assert probe.found == told


async def child_after_term(probe: Probe) -> int:
    """End a CLI by a signal while a command runs; gives the process of that command."""
    command = "echo $$ > pid.new && mv pid.new pid; exec tail -f /dev/null"
    pid = probe.work / "pid"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(probe.call, command)
        with anyio.fail_after(SECONDS):
            await until(pid.exists)
        tasks.cancel_scope.cancel()
    probe.cli.process.terminate()
    with anyio.fail_after(SECONDS):
        await probe.cli.process.wait()
    return int(pid.read_text())
