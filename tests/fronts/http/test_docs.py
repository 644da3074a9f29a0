"""The pages about this front: every rule has its test, and the examples run as they are written."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec

from quarterdeck.fronts.http import Role
from quarterdeck.protocol.command_table import API, TABLE
from quarterdeck.protocol.commands import AnswerAsk, CreateSession, StopSession
from quarterdeck.protocol.problems import CODES
from quarterdeck.protocol.sessions import SessionSpec
from support.bounds import SECONDS
from support.front import Front
from support.pages import page
from support.processes import Processes
from support.waiting import until

RULES = re.compile(r"^- \*\*([A-Z]\d+)\*\* ", re.MULTILINE)
TESTED = re.compile(r"^# ([A-Z]\d+)\n(?:@pytest.*?)?async def test_", re.MULTILINE | re.DOTALL)

HOW_TO = page("docs/how-to/use-the-http-api.md")


def test_every_rule_of_the_stream_has_a_test_and_every_test_its_rule() -> None:
    here = Path(__file__).parent
    tests = [
        (here / name).read_text()
        for name in ("test_stream.py", "test_slow_reader.py", "test_views.py")
    ]
    rules = RULES.findall(page("docs/reference/stream.md").text)
    assert sorted(rules) == sorted(rule for text in tests for rule in TESTED.findall(text))
    assert len(rules) == len(set(rules)) > 20


def test_every_command_is_documented_with_its_right_and_its_route() -> None:
    text = page("docs/reference/stream.md").text
    rows = re.findall(
        r"^\| `([\w.]+)` \| `(\w+)` \| (\w+) \| `(\w+) (\S+)` \|$", text, re.MULTILINE
    )
    assert rows == [
        (
            row.command.__struct_config__.tag,
            row.command.__name__,
            row.right.value,
            row.method,
            API + row.path,
        )
        for row in TABLE
    ]


def test_every_code_of_a_problem_is_documented_with_its_status() -> None:
    text = page("docs/reference/http-api.md").text
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE))
    assert {code: str(status) for code, (status, _) in CODES.items()} == rows


def environment(hub: Front) -> Mapping[str, str]:
    """What the reader has set, who has made the token of the page."""
    made = re.search(r"quarterdeck token --name \w+ --role (\w+)", HOW_TO.text)
    assert made is not None
    token = hub.access.make_token("reader", Role(made[1]))
    return {
        "PATH": os.environ["PATH"],
        "QUARTERDECK_URL": hub.url,
        "QUARTERDECK_TOKEN": token,
    }


async def shell(code: str, hub: Front) -> str:
    """What a block of the page prints."""
    with anyio.fail_after(SECONDS):
        ended = await anyio.run_process(["bash", "-ec", code], env=environment(hub))
    return ended.stdout.decode()


async def test_the_examples_for_curl_run(hub: Front, processes: Processes) -> None:
    make, see, follow = HOW_TO.blocks("bash")
    assert msgspec.json.decode(await shell(make.code, hub)) == {"session": "nightly"}
    command = hub.deck.submitted[-1]
    assert isinstance(command, CreateSession)
    assert bytes(command.prompt) == b'"Run the tests."'
    assert '"session":"nightly"' in await shell(see.code, hub)
    with anyio.fail_after(SECONDS):
        async with await anyio.open_process(
            ["bash", "-ec", f"exec {follow.code.strip()}"], env=environment(hub)
        ) as curl:
            processes.started(curl.pid)
            assert curl.stdout is not None
            said = b""
            while b"run.started" not in said:
                said += await curl.stdout.receive()
            curl.terminate()


async def test_the_example_for_python_runs(
    hub: Front, tmp_path: Path, processes: Processes
) -> None:
    (example,) = HOW_TO.blocks("python")
    program = tmp_path / "example.py"
    program.write_text(example.code)
    await hub.deck.submit(
        CreateSession(spec=SessionSpec(directory="/tmp"), session="nightly", by="me")
    )
    await hub.deck.ask("nightly")
    with anyio.fail_after(SECONDS):
        async with await anyio.open_process(
            [sys.executable, str(program)], env=environment(hub), stderr=None
        ) as running:
            processes.started(running.pid)
            assert running.stdout is not None
            await until(lambda: isinstance(hub.deck.submitted[-1], AnswerAsk))
            await hub.deck.submit(StopSession(session="nightly", by="me"))
            said = b"".join([part async for part in running.stdout]).decode()
            await running.wait()
    assert running.returncode == 0
    assert said == "following: ok\nBash -> deny\n"
    answered = [c for c in hub.deck.submitted if isinstance(c, AnswerAsk)]
    assert [command.by for command in answered] == ["reader"]
