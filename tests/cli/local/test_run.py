"""`quarterdeck run` with pipes: what is printed where, and the exit code."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import anyio
import pytest

from quarterdeck.cli import main
from quarterdeck.testing import fake
from quarterdeck.testing.model import ScriptedModel
from quarterdeck.testing.script import ApiError, Gate, Text, Thinking, ToolUse, play, reply
from support.bounds import SECONDS
from support.command_line import Quarterdeck

pytestmark = pytest.mark.anyio
TOUCH = ToolUse("Bash", {"command": "touch made", "description": "make it"})


@pytest.mark.real_cli
async def test_a_prompt_is_run_and_its_answer_printed_without_any_escape(
    quarterdeck: Quarterdeck,
) -> None:
    prompt = play(reply(Thinking("let me see"), Text("word ", 3)))
    done = await quarterdeck("run", "--api-billing", prompt)
    assert done.code == 0, done.err
    assert done.out.startswith("let me see\n\nword word word \n\ndone · $")
    assert done.err == ""
    assert "\x1b" not in done.out


@pytest.mark.real_cli
async def test_where_nobody_can_be_asked_a_tool_is_denied(quarterdeck: Quarterdeck) -> None:
    done = await quarterdeck("run", "--api-billing", play(TOUCH, "so be it"))
    assert done.code == 0
    assert "denied, because no person can be asked here: Bash (see --allow" in done.out
    assert "1 call denied" in done.out
    assert not (quarterdeck.work / "made").exists()


@pytest.mark.real_cli
async def test_a_rule_allows_what_nobody_is_asked_about(quarterdeck: Quarterdeck) -> None:
    done = await quarterdeck("run", "--api-billing", "--allow", "Bash(touch:*)", play(TOUCH, "ok"))
    assert done.code == 0
    assert "• command      touch made  # make it\n" in done.out
    assert (quarterdeck.work / "made").exists()


@pytest.mark.real_cli
async def test_the_prompt_may_come_from_stdin_and_only_the_answer_go_to_stdout(
    quarterdeck: Quarterdeck,
) -> None:
    done = await quarterdeck("run", "--api-billing", "--quiet", "-", stdin=b"good morning")
    assert (done.code, done.out, done.err) == (0, "echo: good morning\n", "")


@pytest.mark.real_cli
async def test_json_is_what_the_cli_said_and_nothing_else(
    quarterdeck: Quarterdeck, tmp_path: Path
) -> None:
    recording = tmp_path / "recording.ndjson"
    arguments = ("run", "--api-billing", "--json", "--record", str(recording))
    done = await quarterdeck(*arguments, play(TOUCH, "ok"))
    assert done.code == 0
    records = [json.loads(line) for line in recording.read_text().splitlines()]
    said = [record["line"] for record in records if record["dir"] == "out"]
    assert done.out.splitlines() == said
    types = [json.loads(line)["type"] for line in said]
    assert {"control_response", "control_request", "stream_event", "result"} <= set(types)


@pytest.mark.real_cli
async def test_a_turn_that_fails_gives_1(quarterdeck: Quarterdeck) -> None:
    done = await quarterdeck("run", "--api-billing", play(reply(ApiError(400, "no such thing"))))
    assert done.code == 1
    assert done.out.count("no such thing") == 1
    assert "failed (" in done.out


@pytest.mark.real_cli
async def test_a_schema_for_the_answer_gives_json(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}')
    prompt = play(ToolUse("StructuredOutput", {"n": 7}), "done")
    done = await quarterdeck(
        "run", "--api-billing", "--quiet", "--output-schema", str(schema), prompt
    )
    assert done.code == 0, done.err
    assert json.loads(done.out) == {"n": 7}


@pytest.mark.real_cli
async def test_it_stays_until_what_runs_in_the_background_has_ended(
    quarterdeck: Quarterdeck, model: ScriptedModel
) -> None:
    shell = {"command": "sleep 1; touch late", "run_in_background": True, "description": "later"}
    arguments = ("run", "--api-billing", "--allow", "Bash")
    done = await quarterdeck(*arguments, play(ToolUse("Bash", shell), "started"))
    assert done.code == 0, done.err
    assert "waiting for background tasks: later" in done.out
    assert (quarterdeck.work / "late").exists()
    assert done.out.count("done · ") == 2, done.out


async def test_without_a_cli_the_code_is_3(quarterdeck: Quarterdeck) -> None:
    done = await quarterdeck("run", "hello", QUARTERDECK_CLAUDE="/nowhere/claude")
    assert done.code == 3
    assert done.out == ""
    assert done.err.startswith("quarterdeck: the variable QUARTERDECK_CLAUDE is")
    assert "Traceback" not in done.err


async def test_a_cli_that_dies_gives_3_and_its_last_words(quarterdeck: Quarterdeck) -> None:
    half = fake.assistant("half an ans")
    quarterdeck.play_fake(
        fake.Initialize(), fake.Expect("user"), fake.say(half), fake.Exit(9, "out of luck\x1b[2J")
    )
    done = await quarterdeck("run", "hello")
    assert done.code == 3
    assert done.out == "half an ans\n"
    assert "9" in done.err
    assert "out of luck␛[2J" in done.err
    assert "Traceback" not in done.err


async def test_with_debug_an_error_has_its_traceback(quarterdeck: Quarterdeck) -> None:
    done = await quarterdeck(
        "run", "hello", QUARTERDECK_CLAUDE="/nowhere/claude", QUARTERDECK_DEBUG="1"
    )
    assert done.code == 1
    assert "Traceback" in done.err
    assert "LaunchError" in done.err


async def test_lines_that_cannot_be_read_do_not_end_the_turn(quarterdeck: Quarterdeck) -> None:
    quarterdeck.play_fake(
        fake.Initialize(),
        fake.Expect("user"),
        fake.Raw(b"{garbage\n"),
        fake.BigLine(2_000_000),
        fake.say({"type": "brand_new"}, fake.assistant("still here"), fake.result("still here")),
        fake.Serve(),
    )
    done = await quarterdeck("run", "hello")
    assert done.code == 0
    assert "a line of the CLI could not be read" in done.out
    assert "still here\n\ndone" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nonsense",), "No such option"),
        (("hello", "--quiet", "--json"), "exclude each other"),
        (("hello", "--cwd", "/nowhere/at/all"), "is not a folder"),
        (("hello", "--env", "NOEQUALS"), "NAME=VALUE"),
        (("hello", "--resume", "x", "--continue"), "cannot be combined"),
        (("hello", "--fork"), "nothing to fork"),
        (("hello", "--image", "/nowhere.png"), "--image"),
        (("hello", "--max-turns", "many"), "--max-turns"),
        (("  ",), "the prompt is empty"),
    ],
)
def test_a_command_line_that_cannot_be_right_gives_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main(["run", *arguments]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


async def test_no_prompt_at_all_gives_2(quarterdeck: Quarterdeck) -> None:
    done = await quarterdeck("run")
    assert (done.code, done.out) == (2, "")
    assert "there is no prompt" in done.err


@pytest.mark.real_cli
async def test_one_interrupt_ends_the_turn_and_gives_130(
    quarterdeck: Quarterdeck, model: ScriptedModel
) -> None:
    process = await quarterdeck.start("run", "--api-billing", play(reply("a long", Gate("held"))))
    assert process.stdout is not None
    with anyio.fail_after(SECONDS):
        out = await _until(process, b"a long")
        process.send_signal(signal.SIGINT)
        async for chunk in process.stdout:
            out += chunk
        assert await process.wait() == 130
    said = out.decode()
    assert "interrupting …" in said
    assert "\ninterrupted · " in said
    await process.aclose()


async def test_a_second_interrupt_ends_a_cli_that_does_not_obey(quarterdeck: Quarterdeck) -> None:
    quarterdeck.play_fake(
        fake.Initialize(), fake.Expect("user"), fake.say(fake.assistant("stuck")), fake.Hang()
    )
    process = await quarterdeck.start("run", "hello")
    assert process.stdout is not None
    with anyio.fail_after(SECONDS):
        await _until(process, b"stuck")
        process.send_signal(signal.SIGINT)
        await _until(process, b"interrupting")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    await process.aclose()


async def test_a_termination_ends_the_cli_too(quarterdeck: Quarterdeck) -> None:
    quarterdeck.play_fake(
        fake.Initialize(), fake.Expect("user"), fake.say(fake.assistant("busy")), fake.Serve()
    )
    process = await quarterdeck.start("run", "hello")
    with anyio.fail_after(SECONDS):
        await _until(process, b"busy")
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 143
    await process.aclose()


@pytest.mark.parametrize("option", [[], ["--json"]])
async def test_a_reader_that_goes_away_is_no_traceback(
    quarterdeck: Quarterdeck, option: list[str]
) -> None:
    quarterdeck.play_fake(fake.Initialize(), fake.Expect("user"), fake.Stream(20_000), fake.Serve())
    script = 'set -o pipefail; "$0" -m quarterdeck.cli run hello "$@" | head -c 9 >/dev/null'
    done = await anyio.run_process(
        ["bash", "-c", script, sys.executable, *option],
        env=quarterdeck.env,
        cwd=quarterdeck.work,
        check=False,
    )
    assert (done.returncode, done.stderr) == (141, b"")


async def _until(process: anyio.abc.Process, text: bytes) -> bytes:
    assert process.stdout is not None
    seen = b""
    while text not in seen:
        seen += await process.stdout.receive()
    return seen
