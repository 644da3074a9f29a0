"""A run between a CLI and the hub: numbers, acknowledgements, writes, ends."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from quarterdeck.protocol.runner_frames import Ack, Forget, Write, frame
from quarterdeck.protocol.sessions import Origin
from quarterdeck.testing import fake
from support.bounds import SECONDS
from support.processes import Processes
from support.processes import running as is_running
from support.runners import running, small, spec_of
from support.scripted_hub import ScriptedHub, scripted_hub
from support.waiting import until

pytestmark = pytest.mark.process

PROMPT = json.dumps({"type": "user", "message": {"role": "user", "content": "hello"}}).encode()
BYE = (fake.Exit(0),)


def types(hub: ScriptedHub, run: str) -> list[str]:
    return [json.loads(line)["type"] for line in hub.runs[run].said]


async def test_lines_arrive_in_order_with_numbers_and_the_end_has_the_last(tmp_path: Path) -> None:
    """RUN-1, RUN-2"""
    spec = spec_of(
        tmp_path, [fake.say(fake.assistant("hi")), fake.say(fake.result()), fake.Exit(3)]
    )
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        started = await hub.started("one")
        ended = await hub.ended("one")
        assert types(hub, "one") == ["assistant", "result"]
        assert list(hub.runs["one"].lines) == [1, 2]
        assert (ended.number, ended.exit_code, ended.clean) == (3, 3, False)
        assert started.version == fake.NEWEST
        assert started.directory == str(tmp_path)
        hub.check()


async def test_a_clean_end_says_so_and_stderr_goes_with_the_end(tmp_path: Path) -> None:
    """RUN-2"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("clean", spec_of(tmp_path, [fake.Exit(0)]))
        assert (await hub.ended("clean")).clean
        await hub.start("loud", spec_of(tmp_path, [fake.Exit(1, "there is no such session")]))
        ended = await hub.ended("loud")
        assert ended.stderr == ("there is no such session",)
        assert "exit code 1" in ended.reason


async def test_half_a_line_at_the_end_is_a_line_too(tmp_path: Path) -> None:
    """RUN-1"""
    spec = spec_of(tmp_path, [fake.Raw(b'{"type":"a"}\r\n\n  \n{"type":"b","x'), fake.Exit(0)])
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        await hub.ended("one")
        assert hub.runs["one"].said == [b'{"type":"a"}', b'{"type":"b","x']
        hub.check()


async def test_a_line_of_ten_megabytes_passes_whole(tmp_path: Path) -> None:
    """RUN-1"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec_of(tmp_path, [fake.BigLine(10_000_000), *BYE]))
        await hub.ended("one")
        (line,) = hub.runs["one"].said
        assert len(json.loads(line)["message"]["content"][0]["text"]) == 10_000_000


async def test_a_line_over_the_limit_is_told_by_its_size_and_head(tmp_path: Path) -> None:
    """RUN-1"""
    limits = small()
    limits = type(limits)(bounds=limits.bounds, line=1_000)
    spec = spec_of(tmp_path, [fake.BigLine(5_000), fake.say(fake.result()), *BYE])
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url, limits=limits):
        await hub.start("one", spec)
        await hub.ended("one")
        cut, result = map(json.loads, hub.runs["one"].said)
        assert cut["type"] == "oversized_line"
        assert cut["size"] > 5_000
        assert cut["head"].startswith('{"type": "assistant"')
        assert result["type"] == "result"


async def test_each_number_is_written_once_and_in_order(tmp_path: Path) -> None:
    """RUN-6, RUN-7"""
    record = tmp_path / "record"
    spec = spec_of(tmp_path, [fake.Serve()], record)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        await hub.started("one")
        run = hub.runs["one"]
        await hub.write("one", PROMPT)
        await hub.until(lambda: run.written[-1] == 1)
        assert run.socket is not None
        for number in (1, 1):
            await run.socket.send(frame(Write(number=number), [PROMPT]))
        await hub.write("one", PROMPT.replace(b"hello", b"again"))
        await hub.until(lambda: run.written[-1] == 2)
        await hub.until(lambda: types(hub, "one").count("result") == 2)
        assert run.connections == 1
        await hub.stop("one")
        assert (await hub.ended("one")).clean
        _flags, *read = record.read_bytes().splitlines()
        assert read == [PROMPT, PROMPT.replace(b"hello", b"again")]
        hub.check()


async def test_a_write_that_skips_a_number_drops_the_connection_and_nothing_else(
    tmp_path: Path,
) -> None:
    """RUN-8"""
    record = tmp_path / "record"
    spec = spec_of(tmp_path, [fake.Serve()], record)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        await hub.started("one")
        run = hub.runs["one"]
        assert run.socket is not None
        await run.socket.send(frame(Write(number=2), [PROMPT]))
        await hub.until(lambda: run.connections == 2)
        assert any(code == 1002 and "numbers are missing" in why for code, why in hub.closes)
        await hub.write("one", PROMPT)
        await hub.until(lambda: "result" in types(hub, "one"))
        await hub.stop("one")
        assert (await hub.ended("one")).clean
        assert record.read_bytes().splitlines()[1:] == [PROMPT]


async def test_a_write_to_a_dead_process_is_answered_by_its_end(tmp_path: Path) -> None:
    """RUN-7"""
    spec = spec_of(tmp_path, [fake.CloseInput(), fake.Expect("user", timeout=0.3)])
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        await hub.started("one")
        await hub.write("one", PROMPT)
        await hub.ended("one")
        await hub.until(lambda: not hub.hellos or hub.runs["one"].socket is None)


async def test_a_cli_that_does_not_read_does_not_keep_acknowledgements_out(tmp_path: Path) -> None:
    """RUN-9: else both would wait for ever: the CLI for room, and its room for the hub."""
    flood = fake.say(fake.assistant("x" * 1000), times=3_000)
    spec = spec_of(tmp_path, [fake.Wait(0.3), flood, fake.Serve()])
    big = PROMPT.replace(b"hello", b"y" * 3_000_000)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url, limits=small()):
        await hub.start("one", spec)
        await hub.started("one")
        await hub.write("one", big, big)
        await hub.until(lambda: hub.runs["one"].written[-1] == 2)
        await hub.until(lambda: hub.runs["one"].upto == 3_006)
        await hub.stop("one")
        await hub.ended("one")
        hub.check()


async def test_several_lines_go_into_a_frame_when_they_come_fast(tmp_path: Path) -> None:
    """RUN-4"""
    spec = spec_of(tmp_path, [fake.Stream(20_000), *BYE])
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        await hub.ended("one")
        run = hub.runs["one"]
        assert len(run.lines) == 20_000
        assert run.frames < 2_000
        hub.check()


async def test_the_environment_and_the_flags_are_those_of_the_session(tmp_path: Path) -> None:
    record = tmp_path / "record"
    spec = spec_of(tmp_path, [fake.Exit(0)], record)
    spec = type(spec)(
        directory=spec.directory,
        claude=spec.claude,
        model="opus",
        mode="plan",
        append_system_prompt="z" * 200_000,
    )
    origin = Origin(cli_session="abc", at="a-message")
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec, origin)
        await hub.ended("one")
        flags = json.loads(record.read_text().splitlines()[0])
        assert {"--model=opus", "--permission-mode=plan", "--resume=abc"} <= set(flags)
        assert {"--fork-session", "--resume-session-at=a-message"} <= set(flags)
        (file,) = [
            f.partition("=")[2] for f in flags if f.startswith("--append-system-prompt-file")
        ]
        await until(lambda: not Path(file).exists())


async def test_a_gentle_stop_lets_the_cli_finish_what_it_says(tmp_path: Path) -> None:
    """RUN-11"""
    words = fake.say(fake.assistant("bye"), times=50)
    spec = spec_of(tmp_path, [fake.ExpectEnd(), fake.Wait(0.2), words, fake.Exit(0)])
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        await hub.started("one")
        await hub.stop("one")
        assert (await hub.ended("one")).clean
        assert len(hub.runs["one"].said) == 50


async def test_a_cli_that_ignores_everything_is_killed_in_the_end(tmp_path: Path) -> None:
    """RUN-11"""
    spec = spec_of(tmp_path, [fake.IgnoreTerm(), fake.say(fake.result()), fake.Hang()])
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        await hub.until(lambda: hub.runs["one"].lines)
        await hub.stop("one")
        ended = await hub.ended("one")
        assert ended.signal == 9
        assert not ended.clean


async def test_force_kills_at_once_and_leaves_no_child(
    tmp_path: Path, processes: Processes
) -> None:
    """RUN-11, RUN-12"""
    pid_file = tmp_path / "child.pid"
    spec = spec_of(tmp_path, [fake.IgnoreTerm(), fake.SpawnChild(str(pid_file)), fake.Hang()])
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url):
        await hub.start("one", spec)
        await hub.started("one")
        with anyio.fail_after(SECONDS):
            await until(pid_file.exists)
        child = processes.started(int(pid_file.read_text()))
        before = anyio.current_time()
        await hub.stop("one", force=True)
        ended = await hub.ended("one")
        assert ended.signal == 9
        assert anyio.current_time() - before < 1.5
        assert not is_running(child)


async def test_a_stop_gets_through_though_the_spool_is_full(tmp_path: Path) -> None:
    """RUN-11"""
    flood = fake.say(fake.assistant("x" * 1000), times=4_000)
    limits = small(disk=512 * 1024)
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url, limits=limits) as runner:
        hub.acknowledging = False
        await hub.start("one", spec_of(tmp_path, [flood, fake.Hang()]))
        await hub.started("one")
        await hub.until(lambda: runner.runs["one"].spool.full)
        await hub.stop("one")
        ended = await hub.ended("one")
        assert ended.signal == 15 or ended.exit_code == 143
        hub.check()


async def test_what_the_hub_has_is_let_go_and_an_ended_run_with_it(tmp_path: Path) -> None:
    """RUN-3, RUN-10"""
    spec = spec_of(tmp_path, [fake.say(fake.assistant("x"), times=10), fake.Exit(0)])
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        hub.acknowledging = False
        await hub.start("one", spec)
        await hub.ended("one")
        assert (tmp_path / "home/spool/one").is_dir()
        assert runner.runs["one"].spool.held > 0
        await hub.acknowledge_all()
        await hub.until(lambda: not runner.runs)
        with anyio.fail_after(SECONDS):
            await until(lambda: not (tmp_path / "home/spool/one").exists())


async def test_a_forgotten_run_is_deleted_though_the_hub_has_not_got_it_all(tmp_path: Path) -> None:
    """RUN-10"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        hub.acknowledging = False
        await hub.start("one", spec_of(tmp_path, [fake.say(fake.result()), fake.Exit(0)]))
        await hub.ended("one")
        await hub.say(Forget(run="one"))
        await hub.until(lambda: not runner.runs)
        await until(lambda: not list((tmp_path / "home/spool").glob("one/*.log")))


async def test_a_forgotten_run_that_goes_on_is_forgotten_at_its_end(tmp_path: Path) -> None:
    """RUN-10"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        hub.acknowledging = False
        await hub.start("one", spec_of(tmp_path, [fake.Serve()]))
        await hub.started("one")
        await hub.say(Forget(run="one"))
        await hub.write("one", PROMPT)
        await hub.until(lambda: "result" in types(hub, "one"))
        assert "one" in runner.runs
        await hub.stop("one")
        await hub.until(lambda: not runner.runs)


async def test_a_hub_that_has_more_than_was_said_is_not_believed(tmp_path: Path) -> None:
    """RUN-8"""
    async with scripted_hub() as hub, running(tmp_path / "home", hub.url) as runner:
        await hub.start("one", spec_of(tmp_path, [fake.say(fake.result()), fake.Serve()]))
        await hub.until(lambda: hub.runs["one"].lines)
        run = hub.runs["one"]
        assert run.socket is not None
        await run.socket.send(frame(Ack(upto=17)))
        await hub.until(lambda: run.connections == 2)
        assert any("the hub acknowledged 17" in why for _, why in hub.closes)
        assert runner.runs["one"].live
        await hub.stop("one")
        assert (await hub.ended("one")).clean
        hub.check()
