"""Record what real CLIs say, for the tests: `python tools/record_fixtures.py [--only TEXT] [DEST]`.

Each version that `make clis` installed is led through the same scenes, offline, against a scripted
model. What a person would do at the command line is recorded with `quarterdeck record`; what needs
a program (answers to questions, hooks, tools of our own) with an `Agent` over a `RecordingLink`.
Those versions that can dial are recorded over a WebSocket as well.

A recording is named VERSION-TRANSPORT-SCENE.ndjson. The CLI runs in neutral folders and with an
environment built from nothing; a recording that nevertheless tells something of this machine is
refused. Recordings of scenes that no longer exist are removed.
"""

from __future__ import annotations

import argparse
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import msgspec

from quarterdeck import (
    Agent,
    Allow,
    AnyAsk,
    Decision,
    Deny,
    Hook,
    Options,
    Prompt,
    ToolServer,
    listen,
    tool,
)
from quarterdeck.agent.asks import PlanAsk, QuestionsAsk
from quarterdeck.agent.service import Decide
from quarterdeck.agent.start import start_link
from quarterdeck.claude.flags import TESTED
from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.cli.local.probe_commands import samples
from quarterdeck.domain.errors import RequestRefused, UnsupportedError
from quarterdeck.links.recorder import RecordingLink
from quarterdeck.testing import (
    ApiError,
    Gate,
    RealCli,
    ScriptedModel,
    Text,
    Thinking,
    ToolUse,
    installed_clis,
    isolated_env,
    play,
    reply,
)
from quarterdeck.wire.hook_outputs import SyncOutput
from quarterdeck.wire.hooks import HookEvent, HookInput, UnknownHook
from quarterdeck.wire.permissions import PermissionMode
from quarterdeck.wire.versions import Version

PROJECT = Path(__file__).resolve().parents[1]
FIXTURES = PROJECT / "tests" / "fixtures" / "recordings"
FOLDER = Path("/tmp/quarterdeck-fixtures")  # it stands in the recordings, so it is always the same
HOME, WORK = FOLDER / "home", FOLDER / "project"
SCENE_SECONDS = 60.0
SOME_PATHS = r"(?<![\w.~-])/(?:home|root|Users|private|mnt|work)/"
"""Absolute paths that no recorded CLI has any business with."""


class Stage(msgspec.Struct, frozen=True):
    """One CLI in new folders, and the file that is recorded to."""

    cli: RealCli
    transport: str
    model: ScriptedModel
    file: Path

    def env(self) -> dict[str, str]:
        """The environment of whatever is started."""
        return isolated_env(HOME, self.model.url)

    def options(self, **changes: object) -> Options:
        """Options for an agent here."""
        base = Options(
            claude=self.cli.command,
            cwd=WORK,
            env=self.env(),
            file_checkpointing=True,
            include_partial_messages=False,
        )
        return msgspec.structs.replace(base, **changes)

    @asynccontextmanager
    async def agent(
        self,
        decide: Decide = lambda _: Allow(),
        hooks: tuple[Hook, ...] = (),
        tools: tuple[ToolServer, ...] = (),
        **changes: object,
    ) -> AsyncIterator[Agent]:
        """An agent whose link is recorded, over stdio or a WebSocket."""
        options = self.options(**changes)
        async with AsyncExitStack() as stack:
            if self.transport == "ws":
                listener = await stack.enter_async_context(listen())
                link = await listener.launch(options)
            else:
                spill = stack.enter_context(ArgumentFiles())
                _, link = await start_link(options, spill, None)
            recorded = RecordingLink(link, self.file)
            agent = Agent(
                options,
                decide=decide,
                hooks=hooks,
                tools=tools,
                link=recorded,
                version=Version.parse(self.cli.version),
            )
            yield await stack.enter_async_context(agent)

    async def record(
        self,
        prompt: str,
        *arguments: str,
        meanwhile: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        """Run `quarterdeck record`; `meanwhile` gets the id of its process."""
        command = [sys.executable, "-m", "quarterdeck.cli", "record", str(self.file), prompt]
        async with await anyio.open_process(
            [*command, "--api-billing", *arguments],
            cwd=WORK,
            env=self.env() | {"QUARTERDECK_CLAUDE": self.cli.command[-1]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        ) as process:
            if meanwhile is not None:
                await meanwhile(process.pid)
            await process.wait()


# --- scenes at the command line -------------------------------------------------------------------


def bash(command: str, **more: object) -> ToolUse:
    """A call of Bash."""
    return ToolUse("Bash", {"command": command, "description": "a scene", **more})


async def turn(stage: Stage) -> None:
    """Thinking, then text, in pieces."""
    await stage.record(play(reply(Thinking("Let me see."), Text("word ", 4), "and ümlaut 🚀")))


async def tools_allowed(stage: Stage) -> None:
    """Files and a command, by mode and by rule, so that nobody is asked."""
    file = str(WORK / "notes.md")
    calls = (
        ToolUse("Write", {"file_path": file, "content": "one\ntwo\n"}),
        ToolUse("Read", {"file_path": file}),
        ToolUse("Edit", {"file_path": file, "old_string": "two", "new_string": "three"}),
        reply(bash("touch made"), bash("ls -A")),
    )
    rules = ("--mode", "acceptEdits", "--allow", "Bash(touch:*)", "--no-partial")
    await stage.record(play(*calls, "all done"), *rules)


async def tools_denied(stage: Stage) -> None:
    """A command is asked about, and nobody is there."""
    await stage.record(play(bash("touch made"), "so not"))


async def background(stage: Stage) -> None:
    """A command in the background, and what comes when it ends."""
    await stage.record(play(bash("sleep 0.3; echo over", run_in_background=True), "it runs"))


async def interrupt(stage: Stage) -> None:
    """Ctrl-C in the midst of a text."""

    async def press(process: int) -> None:
        await stage.model.wait_at_gate("interrupt")
        os.kill(process, signal.SIGINT)

    await stage.record(play(reply("so far ", Gate("interrupt"), "no more")), meanwhile=press)


async def api_retry(stage: Stage) -> None:
    """The API is overloaded once."""
    await stage.record(play(reply(ApiError(529), "here again")))


async def structured(stage: Stage) -> None:
    """An answer that fits a schema."""
    schema = FOLDER / "schema.json"
    properties = {"verdict": {"type": "string"}}
    schema.write_bytes(msgspec.json.encode({"type": "object", "properties": properties}))
    prompt = play(ToolUse("StructuredOutput", {"verdict": "fine"}), "done")
    await stage.record(prompt, "--output-schema", str(schema), "--no-partial")


# --- scenes of a program --------------------------------------------------------------------------


async def permissions(stage: Stage) -> None:
    """Allowed once, always, changed, denied, denied with an end to the turn; and withdrawn."""
    pending = anyio.Event()

    async def decide(ask: AnyAsk) -> Decision:
        match ask.action.title:
            case "./pending.sh":
                pending.set()
                await anyio.sleep_forever()
            case "./always.sh":
                return Allow(updates=ask.request.suggestions)
            case "./changed.sh":
                return Allow(input={"command": "./once.sh", "description": "a scene"})
            case "./denied.sh":
                return Deny("Not today.")
            case "./stop.sh":
                return Deny("Stop here.", interrupt=True)
        return Allow()

    calls = [bash(f"./{name}.sh") for name in ("once", "always", "changed", "denied", "stop")]
    async with stage.agent(decide) as agent:
        await agent.query(play(*calls, "never said")).finish()
        query = await agent.prompt(play(bash("./pending.sh"), "never said"))
        await pending.wait()
        await agent.interrupt()
        await query.finish()


async def subagent(stage: Stage) -> None:
    """A subagent that uses a tool."""
    call = {
        "description": "some work",
        "prompt": play(bash("touch below"), "below is done"),
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    async with stage.agent() as agent:
        await agent.query(play(ToolUse("Task", call), "all done")).finish()


async def questions_and_plans(stage: Stage) -> None:
    """AskUserQuestion; a plan that is sent back, then approved."""
    sent_back = False

    def decide(ask: AnyAsk) -> Decision:
        nonlocal sent_back
        match ask:
            case QuestionsAsk():
                return ask.answer({q.question: q.options[0].label for q in ask.questions.questions})
            case PlanAsk() if not sent_back:
                sent_back = True
                return ask.revise("Shorter, please.")
            case PlanAsk():
                return ask.approve(PermissionMode.ACCEPT_EDITS)
            case _:
                return ask.allow()

    options = [{"label": word, "description": f"take {word}"} for word in ("this", "that")]
    question = {
        "question": "Which one?",
        "header": "Choice",
        "multiSelect": False,
        "options": options,
    }
    plan = ToolUse("ExitPlanMode", {"plan": "1. Look.\n2. Leap."})
    async with stage.agent(decide) as agent:
        asking = ToolUse("AskUserQuestion", {"questions": [question]})
        await agent.query(play(asking, "this it is")).finish()
        await agent.query(play(ToolUse("EnterPlanMode"), plan, plan, "off we go")).finish()


async def hooks(stage: Stage) -> None:
    """Functions of ours that are called around prompts, tools and ends."""

    def quiet(_: HookInput | UnknownHook) -> SyncOutput:
        return SyncOutput()

    events = (
        HookEvent.PRE_TOOL_USE,
        HookEvent.POST_TOOL_USE,
        HookEvent.POST_TOOL_USE_FAILURE,
        HookEvent.PERMISSION_REQUEST,
        HookEvent.USER_PROMPT_SUBMIT,
        HookEvent.STOP,
    )
    both = tuple(Hook(event=event, function=quiet) for event in events)
    async with stage.agent(hooks=both) as agent:
        await agent.query(play(bash("touch hooked"), bash("false"), "done")).finish()


async def mcp(stage: Stage) -> None:
    """A tool of ours, called well and badly, and the state of its server."""

    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async with stage.agent(tools=(ToolServer("calc", [tool(add)]),)) as agent:
        good, bad = (ToolUse("mcp__calc__add", {"a": 1, "b": b}) for b in (2, "two"))
        await agent.query(play(good, bad, "three")).finish()
        await agent.mcp_status()


async def failures(stage: Stage) -> None:
    """A turn that the API refuses, and one that needs more rounds than it may have."""
    async with stage.agent(max_turns=1) as agent:
        await agent.query(play(ApiError(400, "scripted refusal"))).finish()
        await agent.query(play(bash("echo one"), bash("echo two"), "done")).finish()


async def slash_commands(stage: Stage) -> None:
    """Commands that the CLI answers itself, and a compaction."""
    async with stage.agent() as agent:
        await agent.query("Say something.").finish()
        for command in ("/context", "/cost", "/compact", "/nothing"):
            await agent.query(command).finish()


async def queue(stage: Stage) -> None:
    """Prompts that come while a turn runs; with their echoes."""
    async with stage.agent(replay_user_messages=True) as agent:
        first = await agent.prompt(play(reply("so ", Gate("queue"), "so")))
        await stage.model.wait_at_gate("queue")
        others = [await agent.prompt(Prompt.of(f"queued {number}")) for number in range(2)]
        await agent.mcp_status()  # the CLI answers in order: by now it has read the prompts
        stage.model.release("queue")
        async with anyio.create_task_group() as tasks:
            for query in (first, *others):
                tasks.start_soon(query.finish)


async def controls(stage: Stage) -> None:
    """Every harmless control request that this version knows."""
    async with stage.agent() as agent:
        await agent.query("Say something.").finish()
        for command in samples(WORK):
            with suppress(UnsupportedError, RequestRefused):
                await agent.request(command, timeout=15)


Scene = Callable[[Stage], Awaitable[None]]
AT_THE_COMMAND_LINE: tuple[Scene, ...] = (
    turn,
    tools_allowed,
    tools_denied,
    background,
    interrupt,
    api_retry,
    structured,
)
OF_A_PROGRAM: tuple[Scene, ...] = (
    permissions,
    subagent,
    questions_and_plans,
    hooks,
    mcp,
    failures,
    slash_commands,
    queue,
    controls,
)
BY_SOCKET: tuple[Scene, ...] = (permissions, mcp)


# --- all of it ------------------------------------------------------------------------------------


def performances(clis: dict[str, RealCli]) -> list[tuple[RealCli, str, Scene]]:
    """What there is to record of the tested versions: every scene on stdio, some on a WebSocket."""
    return [
        (cli, transport, scene)
        for cli in clis.values()
        if cli.version in TESTED
        for transport, scenes in (
            ("stdio", (*AT_THE_COMMAND_LINE, *OF_A_PROGRAM)),
            ("ws", BY_SOCKET if cli.dials else ()),
        )
        for scene in scenes
    ]


def check(name: str, text: str) -> None:
    """Refuse a recording that tells something of this machine, or anything secret."""
    names = {socket.gethostname(), getpass.getuser()} - {"root", "localhost"}  # words like others
    traces = [re.escape(str(PROJECT)), "sk-ant-", *(rf"\b{re.escape(name)}\b" for name in names)]
    found = re.findall("|".join((*traces, SOME_PATHS)), text)
    if found:
        raise SystemExit(f"record_fixtures: {name} tells of this machine: {', '.join(found)}")


async def perform(cli: RealCli, transport: str, scene: Scene, file: Path) -> None:
    """Play one scene."""
    async with ScriptedModel() as model:
        with anyio.fail_after(SCENE_SECONDS):
            await scene(Stage(cli, transport, model, file))


def record(cli: RealCli, transport: str, scene: Scene, file: Path) -> None:
    """Play one scene in new folders, and put what was recorded in its place."""
    FOLDER.mkdir()  # which fails if another run is on, or left it behind
    try:
        HOME.mkdir()
        WORK.mkdir()
        # A CLI inherits some variables, such as the way to the network, and tells of them.
        nothing = isolated_env(HOME, "")
        os.environ.clear()
        os.environ.update(nothing)
        with tempfile.TemporaryDirectory(prefix="quarterdeck-recording-") as folder:
            made = Path(folder) / file.name
            anyio.run(perform, cli, transport, scene, made)
            check(file.name, made.read_text(encoding="utf-8"))
            shutil.copyfile(made, file)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


def main() -> int:
    """Record into the folder given, or into that of the tests."""
    parser = argparse.ArgumentParser(description="Record what real CLIs say.")
    parser.add_argument("--only", default="", help="record only those whose name contains this")
    parser.add_argument("destination", nargs="?", type=Path, default=FIXTURES)
    given = parser.parse_args()
    given.destination.mkdir(parents=True, exist_ok=True)
    wanted = {
        f"{cli.version}-{transport}-{scene.__name__.replace('_', '-')}.ndjson": (
            cli,
            transport,
            scene,
        )
        for cli, transport, scene in performances(installed_clis(PROJECT / ".cache" / "claude-cli"))
    }
    for old in given.destination.glob("*.ndjson"):
        if old.name not in wanted:
            old.unlink()
    for name, performance in wanted.items():
        if given.only in name:
            record(*performance, given.destination / name)
            size = (given.destination / name).stat().st_size
            print(f"{name}: {size // 1024} KB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
