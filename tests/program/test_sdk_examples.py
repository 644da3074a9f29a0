"""The official SDK's own examples print the same with the CLI alone and through the hub.

Each runs twice, with the newest real CLI: once with a link `claude` on its PATH to the CLI, once to
`quarterdeck-claude`. Together they start the CLI 120 times. So `make test` runs half of them to the
point where they would start it for the second time, and `make long` runs them whole.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from anyio.abc import TaskGroup

from program.conftest import (
    OURS,
    PROGRAMS,
    Programs,
    Running,
    deny_by_hook,
    deny_by_policy,
)
from program.sdk_examples import (
    ALL,
    ASKED,
    CLOCKS,
    DIFFERENCES,
    FOLDER,
    SESSIONS,
    AtGate,
    answer,
    differences,
    normal,
)
from quarterdeck.protocol.commands import AnswerAsk, DenyAnswer
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.postgres import PostgresServer
from support.bounds import TEST_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.real_cli]

CACHE = Path(__file__).parents[2] / ".cache" / "sdk-tests"
PACKAGES = CACHE / "packages"
RUN = Path(__file__).parent / "run_example.py"
STORES = "session_stores"
SHORT = (
    ("quick_start.py", "tools_option.py", "tool_permission_callback.py"),
    ("streaming_mode_trio.py", "include_partial_messages.py", "stderr_callback_example.py",
     "plugin_example.py", "filesystem_agents.py"),
)  # fmt: skip
LONG = (
    ("streaming_mode.py",),
    ("streaming_mode_ipython.py",),
    ("agents.py", "max_budget_usd.py"),
    ("hooks.py",),
    ("mcp_calculator.py",),
    ("setting_sources.py",),
    ("system_prompt.py",),
    (STORES,),
)
STORE_SESSIONS = 6


def source() -> Path:
    """The folder of the SDK's source."""
    found = sorted(CACHE.glob("claude_agent_sdk-*/examples"))
    assert found, "run: make .cache/sdk-tests/.installed"
    return found[-1].parent


class Side:
    """One of the two ways to run an example."""

    def __init__(self, programs: Programs, model: ScriptedModel, cli: Path, folder: Path) -> None:
        self.programs = programs
        self.model = model
        self.cli = cli
        self.folder = folder
        self.database = ""

    async def run(self, name: str, *, first: bool = False) -> tuple[int | None, list[str]]:
        """Run an example to its end, or to that of its first CLI; gives its exit code and what it
        printed.
        """
        here = self.folder / name
        for each in ("bin", "clock", "work"):
            (here / each).mkdir(parents=True)
        (here / "bin" / "claude").symlink_to(self.cli)
        sdk, work = here / "sdk", here / "work"
        shutil.copytree(source() / "examples", sdk / "examples")
        for path, text in FOLDER.items():
            (sdk / path).parent.mkdir(parents=True, exist_ok=True)
            (sdk / path).write_text(text)
        arguments = ["all"] if name in ALL else []
        command = [str(RUN), str(sdk / "examples" / name), str(here / "clock"), str(PACKAGES)]
        if name == STORES:
            command = [str(PROGRAMS / "example_stores.py"), str(sdk / "examples"), str(PACKAGES)]
            arguments = [self.database]
        env = self.programs.deck.command.env
        running = await self.programs.run(
            [*command, *arguments],
            folder=work,
            ANTHROPIC_BASE_URL=self.model.url,
            FIRST="1" if first else "",
            PATH=os.pathsep.join([str(here / "bin"), env["PATH"]]),
        )
        assert running.process.stdin is not None
        await running.process.stdin.send(b"y\n")  # one of them asks its own person
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_time, here / "clock", running, tasks)
            said = await running.end(TEST_SECONDS)
            tasks.cancel_scope.cancel()
        return running.process.returncode, normal(said, sdk, work, self.programs.deck.command.home)

    async def _keep_time(self, clock: Path, running: Running, tasks: TaskGroup) -> None:
        """End each wait of an example when what it waits for has happened."""
        number = 0
        while True:
            begun = clock / f"{number}.begun"
            while not begun.exists():  # noqa: ASYNC110 - the example makes it
                await anyio.sleep(0.02)
            tasks.start_soon(self._end_wait, begun, running)
            number += 1

    async def _end_wait(self, begun: Path, running: Running) -> None:
        wanted = CLOCKS[begun.read_text()]  # noqa: ASYNC240 - a few bytes
        if isinstance(wanted, AtGate):
            await self.model.wait_at_gate(wanted.gate, timeout=TEST_SECONDS)
        else:
            while not wanted.holds(running.said):  # noqa: ASYNC110 - the example prints
                await anyio.sleep(0.02)
        begun.with_suffix(".over").touch()


def files_in(folder: Path) -> set[str]:
    """The names in a folder."""
    return {each.name for each in folder.iterdir()}


async def deny_what_the_cli_would_deny(programs: Programs, denied: list[str]) -> None:
    """A person, who is asked about calls of programs that cannot answer themselves."""
    client = programs.deck.client
    while True:
        for ask in await anyio.to_thread.run_sync(client.asks):
            for command in [each for each in ASKED if ask.opened.title.endswith(each)]:
                denied.append(command)
                answered = AnswerAsk(ask=ask.opened.ask, answer=DenyAnswer(message="not now"))
                await anyio.to_thread.run_sync(client.submit, answered)
        await anyio.sleep(0.1)


def groups() -> list[object]:
    """The examples that share a hub, and whether each is run to the end of its first CLI only."""
    beginnings = tuple(name for each in LONG for name in each if name != STORES)
    made: list[object] = [pytest.param(each, False, id=each[0]) for each in SHORT]
    made.append(pytest.param(beginnings, True, id="beginnings"))
    return made + [pytest.param(each, False, id=each[0], marks=pytest.mark.long) for each in LONG]


def test_every_example_is_run() -> None:
    found = {each.name for each in (source() / "examples").glob("*.py")}
    assert found == set(SESSIONS)
    assert set(SESSIONS) | {STORES} == {name for each in (*SHORT, *LONG) for name in each}


@pytest.mark.parametrize(("names", "first"), groups())
async def test_the_examples_of_the_sdk_print_the_same_with_the_hub(
    names: tuple[str, ...], first: bool, programs: Programs, tmp_path: Path
) -> None:
    deck = programs.deck
    await deck.serve()
    printed: dict[tuple[str, str], tuple[int | None, list[str]]] = {}
    denied: list[str] = []
    async with AsyncExitStack() as stack:
        alone = await stack.enter_async_context(ScriptedModel(respond=answer))
        through = await stack.enter_async_context(ScriptedModel(respond=answer))
        sides = (
            Side(programs, alone, Path(programs.claude), tmp_path / "plain"),
            Side(programs, through, OURS, tmp_path / "ours"),
        )

        async def run(side: Side, name: str) -> None:
            printed[side.folder.name, name] = await side.run(name, first=first)

        if STORES in names:
            server = stack.enter_context(PostgresServer())
            for side in sides:
                side.database = server.create_database()

        async with anyio.create_task_group() as people:
            people.start_soon(deny_what_the_cli_would_deny, programs, denied)
            for name in names:
                async with anyio.create_task_group() as tasks:
                    for side in sides:
                        tasks.start_soon(run, side, name)
            people.cancel_scope.cancel()
    for name in names:
        (code, plain), (our_code, ours) = printed["plain", name], printed["ours", name]
        listed = [each for each in DIFFERENCES if each.example == name and not first]
        assert differences(name, plain, ours) == listed, "\n".join(plain)
        expected = 1 if name == "max_budget_usd.py" and not first else 0
        assert code == our_code == expected, "\n".join(plain)
        assert len(plain) > 1, plain

    # The deck shows every session, and who answered.
    found = await anyio.to_thread.run_sync(lambda: list(deck.client.sessions()))
    of = Counter(
        Path(each.directory or "").relative_to(tmp_path / "ours").parts[0] for each in found
    )
    assert of == {name: 1 if first else SESSIONS.get(name, STORE_SESSIONS) for name in names}
    assert {each.state for each in found} == {"ended"}
    assert all(each.cli_session for each in found)
    if "tool_permission_callback.py" in names:
        audit = " ".join((await deck("audit")).out.split())
        assert "allow by local's program run_example.py Bash: touch listed; ls" in audit
        assert "deny by local's program run_example.py Bash: rm -rf none" in audit
    asked = dict(zip(("streaming_mode.py", "streaming_mode_ipython.py"), ASKED, strict=True))
    assert denied == [asked[name] for name in names if name in asked and not first]


async def test_an_example_prints_a_denial_of_the_policy_as_it_prints_one_of_the_cli(
    programs: Programs, tmp_path: Path
) -> None:
    """The policy denies what the example's own callback allows."""
    name, command, message = "tool_permission_callback.py", "touch listed", "the policy says no"
    deny_by_policy(programs, command, message)
    await programs.deck.serve()
    async with ScriptedModel(respond=answer) as model:
        code, ours = await Side(programs, model, OURS, tmp_path / "ours").run(name)
        deny_by_hook(programs, command, str(model.turns[-1].messages), message)
        alone = Side(programs, model, Path(programs.claude), tmp_path / "plain")
        plain_code, plain = await alone.run(name)
    assert (code, ours) == (plain_code, plain) == (0, plain)
    for side in ("ours", "plain"):
        assert "listed" not in files_in(tmp_path / side / name / "work")
        assert "hello.py" in files_in(tmp_path / side / name / "work"), "the rest is done"
    audit = " ".join((await programs.deck("audit")).out.split())
    assert "deny by policy Bash: touch listed; ls" in audit


def test_the_how_to_has_every_difference() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/run-official-sdk-programs.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    for each in DIFFERENCES:
        (row,) = [line for line in rows if line.startswith(f"| {each.reason} |")]
        assert f"`{each.example}`" in row, row
    named = {name for name in SESSIONS if any(f"`{name}`" in row for row in rows)}
    expected = {each.example for each in DIFFERENCES} | {
        "streaming_mode.py",
        "streaming_mode_ipython.py",
    }
    assert named == expected
