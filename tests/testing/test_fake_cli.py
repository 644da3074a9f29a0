"""The fake CLI: that it keeps to its script, and that each of its faults is the fault it says."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from quarterdeck.testing import fake, fake_cli_command
from quarterdeck.testing.fake import Line, Step
from support.bounds import SECONDS
from support.clis import conversation
from support.processes import Processes, running

pytestmark = pytest.mark.process

INITIALIZE: Line = {
    "type": "control_request",
    "request_id": "r-1",
    "request": {"subtype": "initialize"},
}
INTERRUPT: Line = {
    "type": "control_request",
    "request_id": "r-2",
    "request": {"subtype": "interrupt"},
}


def prompt(text: str) -> Line:
    return {"type": "user", "message": {"role": "user", "content": text}}


def encoded(*lines: Line) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class Ended:
    """A run that is over."""

    def __init__(self, code: int, output: bytes, stderr: bytes) -> None:
        self.code = code
        self.output = output
        self.stderr = stderr.decode()

    @property
    def lines(self) -> list[Line]:
        return [json.loads(line) for line in self.output.splitlines()]


async def run(
    script: Sequence[Step], *said: Line, folder: Path, flags: tuple[str, ...] = (), **options: str
) -> Ended:
    """Play the whole script, with all of the input given at once and then ended."""
    command = fake_cli_command(script, folder=folder, version=options.get("version", fake.NEWEST))
    with anyio.fail_after(SECONDS):
        ended = await anyio.run_process([*command, *flags], input=encoded(*said), check=False)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@contextlib.asynccontextmanager
async def started(
    script: Sequence[Step], folder: Path, processes: Processes
) -> AsyncIterator[tuple[Process, BufferedByteReceiveStream]]:
    """Start it and leave its end to the test; whatever is left is killed."""
    process = await anyio.open_process(fake_cli_command(script, folder=folder))
    processes.started(process.pid)
    assert process.stdout is not None
    try:
        yield process, BufferedByteReceiveStream(process.stdout)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.aclose()


# --- behaving well ----------------------------------------------------------------------------


async def test_it_answers_initialize_as_the_version_that_it_plays(tmp_path: Path) -> None:
    seen = {}
    for version in ("2.1.37", "2.1.62", "2.1.120", "2.1.325"):
        ended = await run([fake.Initialize()], INITIALIZE, folder=tmp_path, version=version)
        (line,) = ended.lines
        response = line["response"]
        assert isinstance(response, dict)
        assert response["request_id"] == "r-1"
        seen[version] = set(response["response"])

    assert "pid" not in seen["2.1.37"]
    assert "pid" in seen["2.1.62"]
    assert "agents" in seen["2.1.120"] - seen["2.1.62"]
    assert "claude_code_version" in seen["2.1.325"] - seen["2.1.120"]


async def test_it_serves_turns_like_a_cli_and_says_the_same_in_every_run(tmp_path: Path) -> None:
    said = (INITIALIZE, prompt("one"), INTERRUPT, prompt("two"))
    script = [fake.Serve()]

    first = await run(script, *said, folder=tmp_path, version="2.1.37")
    again = await run(script, *said, folder=tmp_path, version="2.1.37")

    results = [line["result"] for line in first.lines if line["type"] == "result"]
    assert (first.code, results) == (0, ["echo: one", "echo: two"])
    assert [line["type"] for line in first.lines] == [
        "control_response",
        *("system", "assistant", "result"),
        "control_response",
        *("system", "assistant", "result"),
    ]
    assert first.output == again.output


async def test_it_takes_the_session_id_and_answers_for_its_version(tmp_path: Path) -> None:
    flags = ("--verbose", "--session-id", "S-1")
    turn = await run([fake.Serve(turns=1)], prompt("x"), folder=tmp_path, flags=flags)
    version = await run([], folder=tmp_path, flags=("--version",), version="2.1.62")

    assert {line["session_id"] for line in turn.lines} == {"S-1"}
    assert version.output == b"2.1.62 (Claude Code)\n"


async def test_it_writes_down_its_flags_and_what_it_was_told(tmp_path: Path) -> None:
    record = tmp_path / "record"
    command = fake_cli_command([fake.ExpectEnd()], folder=tmp_path, record=record)

    with anyio.fail_after(SECONDS):
        await anyio.run_process([*command, "--verbose"], input=encoded(INITIALIZE, prompt("x")))

    kept = [json.loads(line) for line in record.read_text().splitlines()]
    assert kept == [["--verbose"], INITIALIZE, prompt("x")]


async def test_a_conversation_can_be_held_with_it(tmp_path: Path, processes: Processes) -> None:
    ask = fake.can_use_tool("Bash", {"command": "ls"})
    script = [
        fake.Initialize(),
        fake.Expect("user"),
        fake.say(ask),
        fake.Expect("control_response", "success"),
        fake.say(fake.tool_result("a b"), fake.assistant("saw $text"), fake.result("end")),
    ]
    command = fake_cli_command(script, folder=tmp_path)

    async with conversation(command, tmp_path, "http://127.0.0.1:9", processes) as cli:
        cli.send(INITIALIZE)
        result = await cli.ask("look")

    kinds = [line["type"] for line in cli.lines]
    assert kinds == ["control_response", "control_request", "user", "assistant", "result"]
    assert "saw look" in json.dumps(cli.lines)
    assert result["result"] == "end"


async def test_it_starts_without_any_library(tmp_path: Path) -> None:
    command = fake_cli_command([], folder=tmp_path)
    listing = [command[0], "-X", "importtime", *command[1:]]

    with anyio.fail_after(SECONDS):
        imported = (await anyio.run_process(listing)).stderr.decode()

    assert "json" in imported
    for library in ("msgspec", "anyio", "asyncio", "quarterdeck"):
        assert library not in imported


async def test_as_a_module_it_plays_a_script_too(tmp_path: Path) -> None:
    script = fake_cli_command([fake.Serve()], folder=tmp_path)[-1]
    command = [sys.executable, "-m", "quarterdeck.testing.fake_cli", script]

    with anyio.fail_after(SECONDS):
        ended = await anyio.run_process(command, input=encoded(prompt("hi")))

    assert b"echo: hi" in ended.stdout


# --- faults -----------------------------------------------------------------------------------


async def test_an_expectation_that_is_not_met_ends_it_with_the_reason(tmp_path: Path) -> None:
    ended = await run([fake.Expect("user")], INITIALIZE, folder=tmp_path)

    assert ended.code == 97
    assert "the input ended while user was expected" in ended.stderr


async def test_an_expectation_is_bounded_in_time(tmp_path: Path, processes: Processes) -> None:
    async with started([fake.Expect("user", timeout=0.05)], tmp_path, processes) as (process, _):
        with anyio.fail_after(SECONDS):
            assert await process.wait() == 97


async def test_a_line_that_is_not_json_ends_it_as_it_ends_a_real_one(tmp_path: Path) -> None:
    command = fake_cli_command([fake.Serve()], folder=tmp_path)

    with anyio.fail_after(SECONDS):
        ended = await anyio.run_process(command, input=b"nonsense\n", check=False)

    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"Error parsing streaming input line" in ended.stderr


@pytest.mark.parametrize(
    "garbage",
    [b"not json\n", b"\xff\x00\xfe\n", '{"text": "ü'.encode()[:-1], b"\n\n  \n", b'{"type": "ass'],
)
async def test_garbage_is_written_as_it_is_and_a_line_may_be_left_unfinished(
    tmp_path: Path, garbage: bytes
) -> None:
    ended = await run([fake.Raw(garbage), fake.Exit()], folder=tmp_path)

    assert (ended.code, ended.output) == (0, garbage)


async def test_a_line_can_have_ten_megabytes(tmp_path: Path) -> None:
    ended = await run([fake.BigLine()], folder=tmp_path)

    assert len(ended.lines) == 1
    assert len(ended.output) > 10_000_000


async def test_lines_can_be_doubled_and_answers_given_twice(tmp_path: Path) -> None:
    script = [
        fake.Expect("control_request", "interrupt"),
        fake.say(fake.answer(), times=2),
        fake.say(fake.result("one"), fake.result("two")),
    ]

    lines = (await run(script, INITIALIZE, INTERRUPT, folder=tmp_path)).lines

    assert lines[0] == lines[1] == fake.answer(request_id="r-2")
    assert [line.get("result") for line in lines[2:]] == ["one", "two"]
    assert lines[2]["uuid"] != lines[3]["uuid"]


async def test_requests_can_be_refused_and_unknown_things_said(tmp_path: Path) -> None:
    script = [
        fake.Expect("control_request"),
        fake.say(fake.refusal("no"), {"type": "novel"}, fake.control_request("c", subtype="odd")),
    ]

    lines = (await run(script, INTERRUPT, folder=tmp_path)).lines

    assert lines == [
        {
            "type": "control_response",
            "response": {"subtype": "error", "request_id": "r-2", "error": "no"},
        },
        {"type": "novel"},
        {"type": "control_request", "request_id": "c", "request": {"subtype": "odd"}},
    ]


async def test_it_streams_as_many_events_as_wanted_each_with_an_id_of_its_own(
    tmp_path: Path,
) -> None:
    lines = (await run([fake.Stream(1000, text="w")], folder=tmp_path)).lines

    assert {line["type"] for line in lines} == {"stream_event"}
    assert len({line["uuid"] for line in lines}) == 1000


async def test_it_exits_with_the_code_and_the_last_words_that_it_is_given(tmp_path: Path) -> None:
    ended = await run([fake.Exit(3, "fatal: no")], folder=tmp_path)

    assert (ended.code, ended.stderr) == (3, "fatal: no\n")


async def test_it_can_flood_stderr(tmp_path: Path) -> None:
    ended = await run([fake.Complain("warning\n", times=100_000)], folder=tmp_path)

    assert ended.stderr == "warning\n" * 100_000


async def test_it_hangs_where_it_is_told_and_ends_on_a_signal(
    tmp_path: Path, processes: Processes
) -> None:
    script = [fake.say(fake.tool_result("ran")), fake.Hang()]
    async with started(script, tmp_path, processes) as (process, output):
        with anyio.fail_after(SECONDS):
            assert b"tool_result" in await output.receive_until(b"\n", 10_000)
            with anyio.move_on_after(0.1) as more:
                await output.receive()
            assert more.cancelled_caught
            process.terminate()
            assert await process.wait() == 143


async def test_it_can_ignore_a_polite_end(tmp_path: Path, processes: Processes) -> None:
    script = [fake.IgnoreTerm(), fake.Raw(b"ready\n"), fake.Hang()]
    async with started(script, tmp_path, processes) as (process, output):
        with anyio.fail_after(SECONDS):
            await output.receive_until(b"\n", 100)
            process.terminate()
            with anyio.move_on_after(0.2) as waited:
                await process.wait()
            assert waited.cancelled_caught
            process.kill()
            assert await process.wait() == -signal.SIGKILL


async def test_it_can_close_its_output_and_live_on(tmp_path: Path, processes: Processes) -> None:
    async with started([fake.CloseOutput(), fake.Hang()], tmp_path, processes) as (process, output):
        with anyio.fail_after(SECONDS):
            with pytest.raises(anyio.EndOfStream):
                await output.receive()
            assert running(process.pid)


async def test_it_can_close_its_input_and_live_on(tmp_path: Path, processes: Processes) -> None:
    script = [fake.CloseInput(), fake.Raw(b"closed\n"), fake.Hang()]
    async with started(script, tmp_path, processes) as (process, output):
        assert process.stdin is not None
        with anyio.fail_after(SECONDS):
            await output.receive_until(b"\n", 100)
            with pytest.raises((anyio.BrokenResourceError, anyio.ClosedResourceError)):
                await process.stdin.send(b"x" * 10_000_000)
            assert running(process.pid)


async def test_a_hanging_one_does_not_read_so_that_the_pipe_fills(
    tmp_path: Path, processes: Processes
) -> None:
    async with started([fake.Hang()], tmp_path, processes) as (process, _):
        assert process.stdin is not None
        with anyio.move_on_after(1) as writing:
            for _number in range(200):
                await process.stdin.send(b"x" * 65536)
        assert writing.cancelled_caught


@pytest.mark.parametrize("holds_pipes", [True, False])
async def test_it_can_leave_a_child_behind(
    tmp_path: Path, processes: Processes, holds_pipes: bool
) -> None:
    pid_file = tmp_path / "pid"
    child = fake.SpawnChild(str(pid_file), holds_pipes=holds_pipes)
    script = [child, fake.Raw(b"spawned\n"), fake.Exit()]
    async with started(script, tmp_path, processes) as (process, output):
        with anyio.fail_after(SECONDS):
            await output.receive_until(b"\n", 100)
            left = processes.started(int(pid_file.read_text()))
            assert await process.wait() == 0
            with anyio.move_on_after(0.2) as reading, contextlib.suppress(anyio.EndOfStream):
                await output.receive()
    assert running(left)
    assert reading.cancelled_caught is holds_pipes
    assert processes.end_all() == [left]
    assert not running(left)


async def test_it_never_outlives_its_lifetime(tmp_path: Path, processes: Processes) -> None:
    command = fake_cli_command([fake.IgnoreTerm(), fake.Hang()], folder=tmp_path, lifetime=0.2)
    process = await anyio.open_process(command)
    processes.started(process.pid)
    with anyio.fail_after(SECONDS):
        assert await process.wait() == -signal.SIGALRM
    await process.aclose()
