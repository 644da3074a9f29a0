"""`doctor --probe`: run a CLI through everything, offline, and report what is new in it.

Owns the scenes, and the record of what the CLI sent. The model is scripted and on loopback, the
home folder is a new one, and the environment is built from nothing: no login, no settings and no
file of the user is touched, and nothing leaves the machine.

`probe_commands` lists the control requests that are sent, and those that never are; requests that a
version cannot handle are refused by the library itself.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import anyio
from msgspec import Struct, field
from msgspec.structs import fields

from quarterdeck.agent.agent import Agent
from quarterdeck.agent.asks import AnyAsk, Decision, PlanAsk, QuestionsAsk, ToolAsk
from quarterdeck.agent.hooks import Hook
from quarterdeck.agent.mcp import ToolServer, tool
from quarterdeck.agent.options import Options
from quarterdeck.claude.launch import ArgumentFiles, to_argv
from quarterdeck.claude.locate import cli_version
from quarterdeck.cli.local.probe_commands import NOT_TRIED, samples
from quarterdeck.domain.errors import (
    QuarterdeckError,
    RequestRefused,
    RequestTimeout,
    UnsupportedError,
)
from quarterdeck.links.subprocess import SubprocessLink
from quarterdeck.testing.clis import isolated_env
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import ApiError, Gate, Said, Text, Thinking, ToolUse, play, reply
from quarterdeck.wire.base import Message
from quarterdeck.wire.command_base import Command, answer_type
from quarterdeck.wire.commands import Initialize
from quarterdeck.wire.control import ControlRequest, ControlResponse
from quarterdeck.wire.hook_outputs import SyncOutput
from quarterdeck.wire.hooks import HookEvent, HookInput, UnknownHook
from quarterdeck.wire.rawjson import members
from quarterdeck.wire.survey import unknown_members
from quarterdeck.wire.versions import Version

SCENE_SECONDS = 45.0
COMMAND_SECONDS = 8.0


class Answer(StrEnum):
    """The result of a control request."""

    ANSWERED = "answered"
    REFUSED = "refused"
    IGNORED = "not answered"
    UNFIT = "answered in a shape that is new to us"
    UNSUPPORTED = "not sent, because this version does not support it"


class Scene(Struct, frozen=True):
    """One tested behaviour. `problem` is empty if it worked."""

    name: str
    problem: str = ""


class Probe(Struct):
    """The result of a probe."""

    scenes: list[Scene] = field(default_factory=list)
    commands: dict[str, Answer] = field(default_factory=dict)
    not_tried: list[str] = field(default_factory=list)
    received: dict[str, int] = field(default_factory=dict, name="heard")
    asked: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the CLI failed to do what every CLI must: start, take a turn, keep running."""
        return any(scene.problem for scene in (*self.scenes[:2], *self.scenes[-1:]))


async def probe_cli(command: tuple[str, ...], report: Callable[[Scene], None]) -> Probe:
    """Run the CLI through all scenes, and report each as it ends.

    Raises what starting it raises.
    """
    with tempfile.TemporaryDirectory(prefix="quarterdeck-probe-") as folder:
        home = Path(folder)
        work = home / "work"
        work.mkdir()
        async with ScriptedModel() as model:
            run_ = _ProbeRun(model, work, report)
            options = Options(allow_dangerously_skip_permissions=False)
            version_text = await anyio.to_thread.run_sync(cli_version, command)
            with ArgumentFiles() as files:
                link = await SubprocessLink.start(
                    command,
                    to_argv(options, files),
                    cwd=work,
                    env=isolated_env(
                        home,
                        model.url,
                        CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS="1",
                        CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING="1",
                    ),
                )
                agent = Agent(
                    options,
                    link=link,
                    version=Version.parse(version_text) if version_text else None,
                    decide=run_.decide,
                    hooks=[
                        Hook(event=event, function=run_.hook)
                        for event in (
                            HookEvent.PRE_TOOL_USE,
                            HookEvent.POST_TOOL_USE,
                            HookEvent.USER_PROMPT_SUBMIT,
                            HookEvent.STOP,
                            HookEvent.SUBAGENT_STOP,
                            HookEvent.PRE_COMPACT,
                        )
                    ],
                    tools=[ToolServer("probe", [tool(run_.echo)])],
                )
                return await run_.run(agent)


class _ProbeRun:
    """One probe: its scenes, and the record of all messages."""

    def __init__(self, model: ScriptedModel, work: Path, report: Callable[[Scene], None]) -> None:
        self._model = model
        self._report = report
        self._work = work
        self._probe = Probe(not_tried=sorted(NOT_TRIED))
        self._received: Counter[str] = Counter()
        self._asked: set[str] = set()
        self._unknown: dict[str, None] = {}
        self._hooks: set[str] = set()
        self._asks: set[type] = set()
        self._echoed = False
        # The request that the next control_response answers: one is sent at a time.
        self._waits_for: type[Command[Any]] | None = Initialize

    async def run(self, agent: Agent) -> Probe:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, agent)
            await anyio.lowlevel.checkpoint()
            try:
                async with agent:
                    await self._settle()
                    self._waits_for = None
                    self._check_end(Scene("initialize"))
                    await self._scenes(agent)
            finally:
                tasks.cancel_scope.cancel()
        self._probe.received = dict(sorted(self._received.items()))
        self._probe.asked = sorted(self._asked)
        self._probe.unknown = list(self._unknown)
        return self._probe

    # --- the ear --------------------------------------------------------------------------

    async def _listen(self, agent: Agent) -> None:
        try:
            async for message in agent.messages():
                self._observe(message)
        except QuarterdeckError:
            pass  # the current scene reports it

    def _observe(self, message: Message) -> None:
        tag = message.__struct_config__.tag
        name = f"system/{tag}" if message.__struct_config__.tag_field == "subtype" else str(tag)
        self._received[name] += 1
        if isinstance(message, ControlRequest):
            asked = members(message.request_json).get("subtype")
            if asked is not None:
                self._asked.add(bytes(asked).decode("utf-8", "replace").strip('"'))
        self._unknown |= dict.fromkeys(unknown_members(message))
        if isinstance(message, ControlResponse) and self._waits_for is not None:
            body = message.response.response_json
            known = {each.encode_name for each in fields(answer_type(self._waits_for))}
            subtype = self._waits_for.__struct_config__.tag
            for member in members(body) if body is not None else ():
                if known and member not in known:
                    self._unknown[f"control_response({subtype}).{member}"] = None

    async def echo(self, text: str) -> str:
        """Return the text."""
        self._echoed = True
        return text

    def hook(self, given: HookInput | UnknownHook) -> SyncOutput:
        """Decide nothing, and record the call."""
        self._hooks.add(type(given).__name__)
        return SyncOutput()

    async def decide(self, ask: AnyAsk) -> Decision:
        """Allow everything: only the script makes requests here."""
        self._asks.add(type(ask))
        match ask:
            case ToolAsk():
                return ask.allow()
            case PlanAsk():
                return ask.approve()
            case QuestionsAsk(questions=questions):
                first = questions.questions[0]
                return ask.answer({first.question: first.options[0].label})

    # --- the scenes -----------------------------------------------------------------------

    async def _scenes(self, agent: Agent) -> None:
        say, scene = self._say, self._scene
        await scene(
            "a turn: text and thinking", say(agent, reply(Thinking("hm"), Text("word ", 5)))
        )
        bash = ToolUse("Bash", {"command": "touch probed", "description": "probe"})
        await scene("a tool, with permission", say(agent, bash, expect=ToolAsk))
        await scene("hooks", self._check_hooks)
        await scene("our own tool (MCP)", self._own_tool(agent))
        await scene("a question", say(agent, _QUESTION, expect=QuestionsAsk))
        plan = reply(ToolUse("ExitPlanMode", {"plan": "probe"}))
        await scene("plan mode", say(agent, ToolUse("EnterPlanMode"), plan, expect=PlanAsk))
        task = {"description": "probe", "subagent_type": "general-purpose"}
        inner = task | {
            "prompt": play(ToolUse("Bash", {"command": "ls"})),
            "run_in_background": False,
        }
        await scene("a subagent", say(agent, ToolUse("Task", inner)))
        for command in ("/cost", "/context", "/compact"):
            await scene(command, self._prompt(agent, command))
        shell = {"command": "sleep 0.2", "run_in_background": True, "description": "probe"}
        await scene("a background command", say(agent, ToolUse("Bash", shell)))
        await scene("an API error, and a retry", say(agent, reply(ApiError(529), Text("back"))))
        await scene("interrupt", self._interrupt_turn(agent))
        await scene("control requests", self._commands(agent))
        await scene("a last turn", say(agent, "bye"))

    async def _scene(self, name: str, act: Callable[[], Awaitable[None]]) -> None:
        problem = ""
        try:
            with anyio.fail_after(SCENE_SECONDS):
                await act()
        except TimeoutError:
            problem = f"it did not end within {SCENE_SECONDS:g} s"
        except _SceneFailed as wrong:
            problem = str(wrong)
        except QuarterdeckError as error:
            problem = str(error)
        self._check_end(Scene(name, problem))

    def _check_end(self, scene: Scene) -> None:
        self._probe.scenes.append(scene)
        self._report(scene)

    def _say(
        self, agent: Agent, *replies: Said, expect: type | None = None
    ) -> Callable[[], Awaitable[None]]:
        """A prompt that makes the model send this, and then end the turn."""

        async def act() -> None:
            self._asks.clear()
            await self._prompt(agent, play(*replies, "end"))()
            if expect is not None and expect not in self._asks:
                raise _SceneFailed("it did not ask for permission")

        return act

    def _prompt(self, agent: Agent, text: str) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            turn = await agent.query(text).finish()
            if turn.failed:
                raise _SceneFailed(turn.result.error_text if turn.result else "there was no result")

        return act

    def _own_tool(self, agent: Agent) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            await self._say(agent, ToolUse("mcp__probe__echo", {"text": "hello"}))()
            if not self._echoed:
                raise _SceneFailed("it was not called")

        return act

    async def _check_hooks(self) -> None:
        if not self._hooks:
            raise _SceneFailed("none was called")

    def _interrupt_turn(self, agent: Agent) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            query = await agent.prompt(play(reply("a long", Gate("probe"))))
            await self._model.wait_at_gate("probe")
            await agent.interrupt()
            turn = await query.finish()
            if not turn.failed:
                raise _SceneFailed("the turn ran to its end")

        return act

    # --- control requests -----------------------------------------------------------------

    def _commands(self, agent: Agent) -> Callable[[], Awaitable[None]]:
        async def act() -> None:
            for command in samples(self._work):
                self._probe.commands[command.subtype] = await self._command(agent, command)

        return act

    async def _command(self, agent: Agent, command: Command[Any]) -> Answer:
        self._waits_for = type(command)
        try:
            await agent.request(command, timeout=COMMAND_SECONDS)
        except UnsupportedError:
            return Answer.UNSUPPORTED
        except RequestTimeout:
            return Answer.IGNORED
        except RequestRefused as refused:
            return Answer.UNFIT if "does not fit" in refused.error else Answer.REFUSED
        finally:
            await self._settle()
            self._waits_for = None
        return Answer.ANSWERED

    async def _settle(self) -> None:
        """Let the listener handle what has come."""
        for _ in range(3):
            await anyio.lowlevel.checkpoint()


class _SceneFailed(Exception):
    """A scene did not work."""


_QUESTION = ToolUse(
    "AskUserQuestion",
    {
        "questions": [
            {
                "question": "Which one?",
                "header": "Probe",
                "multiSelect": False,
                "options": [
                    {"label": "This", "description": "the first"},
                    {"label": "That", "description": "the second"},
                ],
            }
        ]
    },
)
