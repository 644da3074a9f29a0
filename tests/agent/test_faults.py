"""The agent and a CLI that misbehaves: nothing lost, nothing hangs, no process left."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from quarterdeck import Agent, Options
from quarterdeck.domain.errors import LaunchError, LinkClosed, RequestTimeout, UsageError
from quarterdeck.links.subprocess import StopSteps
from quarterdeck.testing import fake, fake_cli_command
from quarterdeck.wire.base import Malformed, Message, Unknown
from quarterdeck.wire.commands import Interrupt
from quarterdeck.wire.messages import Assistant, Result
from support.bounds import SECONDS
from support.processes import running

pytestmark = [pytest.mark.anyio, pytest.mark.process]
QUICK = StopSteps(input=0.2, term=0.2, silent=0.2)


def cli(*script: fake.Step, folder: Path, version: str = "2.1.325") -> Options:
    """Options for a fake CLI that plays this script after its greeting."""
    steps = [fake.Initialize(), *script]
    command = fake_cli_command(steps, folder=folder, version=version)
    return Options(claude=command, cwd=folder, stop=QUICK)


async def turn(agent: Agent) -> list[Message]:
    with anyio.fail_after(SECONDS):
        return [message async for message in agent.query("go")]


async def test_garbage_between_lines_becomes_values_and_the_turn_goes_on(tmp_path: Path) -> None:
    options = cli(
        fake.Expect("user"),
        fake.Raw(b"Warning: session_id=abcdef0123 something\n\n   \r\n\xff\xfe\x00\n[1,2]\nnull\n"),
        fake.say(
            {"type": "of_tomorrow", "uuid": "u", "extra": 1}, fake.assistant("hi"), fake.result()
        ),
        fake.Serve(),
        folder=tmp_path,
    )
    async with Agent(options) as agent:
        messages = await turn(agent)
    broken = [message for message in messages if isinstance(message, Malformed)]
    assert len(broken) == 4
    assert broken[0].session_id == "abcdef0123"
    assert [m.type for m in messages if isinstance(m, Unknown)] == ["of_tomorrow"]
    assert [m.text for m in messages if isinstance(m, Assistant)] == ["hi"]


async def test_a_line_of_ten_megabytes_is_a_line(tmp_path: Path) -> None:
    options = cli(
        fake.Expect("user"),
        fake.BigLine(10_000_000),
        fake.say(fake.result()),
        fake.Serve(),
        folder=tmp_path,
    )
    async with Agent(options) as agent:
        (big,) = [m for m in await turn(agent) if isinstance(m, Assistant)]
    assert len(big.text) == 10_000_000


async def test_a_cli_that_exits_in_mid_line_is_explained(tmp_path: Path) -> None:
    options = cli(
        fake.Expect("user"),
        fake.Raw(b'{"type":"assistant","mess'),
        fake.Exit(7, "out of luck"),
        folder=tmp_path,
    )
    async with Agent(options) as agent:
        query = agent.query("go")
        with anyio.fail_after(SECONDS):
            half = await anext(query)
            with pytest.raises(LinkClosed, match="out of luck") as closed:
                await anext(query)
    assert closed.value.exit_code == 7
    assert isinstance(half, Malformed)


async def test_a_cli_that_never_sends_a_result_can_be_left(tmp_path: Path) -> None:
    script = (fake.Expect("user"), fake.say(fake.tool_result("done")), fake.Hang())
    with anyio.fail_after(SECONDS):
        async with Agent(cli(*script, folder=tmp_path)) as agent:
            query = agent.query("go")
            async for _ in query:
                break
            with pytest.raises(RequestTimeout):
                await agent.request(Interrupt(), timeout=0.2)


async def test_a_cli_that_closes_stdout_and_lives_on_counts_as_ended(tmp_path: Path) -> None:
    script = (fake.Expect("user"), fake.CloseOutput(), fake.Hang())
    async with Agent(cli(*script, folder=tmp_path)) as agent:
        with anyio.fail_after(SECONDS), pytest.raises(LinkClosed):
            async for _ in agent.query("go"):
                pass


async def test_a_cli_that_ignores_sigterm_and_its_child_are_ended_all_the_same(
    tmp_path: Path,
) -> None:
    child = tmp_path / "child.pid"
    script = (
        fake.IgnoreTerm(),
        fake.SpawnChild(str(child)),
        fake.Expect("user"),
        fake.say(fake.assistant("hi"), fake.result()),
        fake.Hang(),
    )
    with anyio.fail_after(SECONDS):
        async with Agent(cli(*script, folder=tmp_path)) as agent:
            await turn(agent)
    assert not running(int(child.read_text()))


async def test_two_results_and_doubled_lines_end_one_turn_once(tmp_path: Path) -> None:
    twice = fake.assistant("hi") | {"uuid": "same"}
    script = (
        fake.Expect("user"),
        fake.say(twice, twice, fake.result("first"), fake.result("second")),
        fake.Serve(),
    )
    async with Agent(cli(*script, folder=tmp_path)) as agent:
        messages = agent.messages()
        first = await turn(agent)
        # The second result may come in a chunk of its own; the next prompt must not meet it.
        with anyio.fail_after(SECONDS):
            async for message in messages:
                if isinstance(message, Result) and message.result == "second":
                    break
        second = await turn(agent)
    assert [m.text for m in first if isinstance(m, Assistant)] == ["hi"]
    assert [m.result for m in first if isinstance(m, Result)] == ["first"]
    assert any(isinstance(m, Assistant) for m in second)


async def test_a_flood_on_stderr_stops_nobody(tmp_path: Path) -> None:
    lines: list[str] = []
    script = (
        fake.Complain("x" * 1000 + "\n", times=5000),
        fake.Expect("user"),
        fake.say(fake.assistant("hi"), fake.result()),
        fake.Serve(),
    )
    async with Agent(cli(*script, folder=tmp_path), stderr=lines.append) as agent:
        await turn(agent)
    assert len(lines) >= 5000


async def test_a_cli_that_dies_at_its_start_is_explained(tmp_path: Path) -> None:
    command = fake_cli_command([fake.Exit(1, "bad flag --frobnicate")], folder=tmp_path)
    with anyio.fail_after(SECONDS), pytest.raises(LinkClosed, match="frobnicate") as closed:
        async with Agent(Options(claude=command)):
            pass
    assert closed.value.exit_code == 1


async def test_a_cli_that_is_not_there_is_a_launch_error(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="nowhere"):
        async with Agent(Options(claude=tmp_path / "nowhere")):
            pass


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    options = Options(claude=(sys.executable,), cwd=tmp_path / "missing")
    with pytest.raises((LaunchError, UsageError), match="missing"):
        async with Agent(options):
            pass
