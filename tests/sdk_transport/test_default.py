"""`install()`: programs of the SDK that pass no transport use ours; with processes, and on trio."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    CLINotFoundError,
    Message,
    ProcessError,
    ResultMessage,
    query,
)
from claude_agent_sdk._internal.transport import subprocess_cli

from quarterdeck.domain.errors import LinkClosed, LinkError, UnsupportedError
from quarterdeck.runtime.processes import descendants
from quarterdeck.sdk_transport import default, install, threads, uninstall
from quarterdeck.sdk_transport.default import DefaultTransport
from quarterdeck.sdk_transport.errors import CliFailed
from quarterdeck.sdk_transport.launch import SDK_TRANSPORT
from quarterdeck.sdk_transport.threads import ThreadedLink
from support.bounds import SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.process]

CLI = """\
#!{python}
import json, os, sys
sys.stderr.write("first line\\n" + "x" * 9000 + "\\n   \\nlast without newline")
sys.stderr.flush()
def say(**message): print(json.dumps(message), flush=True)
say(type="system", subtype="init", session_id="s")
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "control_request":
        answer = dict(subtype="success", request_id=message["request_id"], response={{}})
        say(type="control_response", response=answer)
    elif message["message"]["content"] == "fail":
        sys.exit(3)
    else:
        said = dict(prompt=message["message"]["content"], pid=os.getpid())
        say(type="result", subtype="success", duration_ms=1, duration_api_ms=1, is_error=False,
            num_turns=1, session_id="s", total_cost_usd=0, result=json.dumps(said))
"""


@pytest.fixture
def cli(tmp_path: Path) -> Path:
    path = tmp_path / "claude"
    path.write_text(CLI.format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.fixture
def installed() -> Iterator[None]:
    install()
    install()  # once more changes nothing
    yield
    uninstall()


async def ask(options: ClaudeAgentOptions, prompt: str = "hi") -> list[Message]:
    with anyio.fail_after(SECONDS):
        return [message async for message in query(prompt=prompt, options=options)]


@pytest.mark.usefixtures("installed")
async def test_a_program_without_a_transport_uses_ours(
    cli: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[str] = []
    options = ClaudeAgentOptions(cli_path=cli, stderr=lines.append)
    messages = await ask(options)
    assert isinstance(messages[-1], ResultMessage)
    assert lines == ["first line", "x" * 9000, "last without newline"]
    assert "too old to report its version" in caplog.text
    async with ClaudeSDKClient(options) as client:
        assert isinstance(client._transport, DefaultTransport)
        assert client._transport.is_ready()
        assert client._transport._process is not None
        process = client._transport._process
        assert process in subprocess_cli._ACTIVE_CHILDREN
        assert process.returncode is None
    assert process.returncode == 0
    assert process not in subprocess_cli._ACTIVE_CHILDREN
    assert not descendants(process.pid)


@pytest.mark.usefixtures("installed")
async def test_errors_are_both_the_sdks_and_ours(cli: Path, tmp_path: Path) -> None:
    with pytest.raises(ProcessError) as failed:
        await ask(ClaudeAgentOptions(cli_path=cli, stderr=lambda _: None), "fail")
    assert failed.value.exit_code == 3
    broken: list[str] = []

    def fail(line: str) -> None:
        broken.append(line)
        raise RuntimeError(line)

    with pytest.raises(ProcessError):
        await ask(ClaudeAgentOptions(cli_path=cli, stderr=fail), "fail")
    assert len(broken) == 3  # an error in the callback loses no line
    transport = DefaultTransport("", ClaudeAgentOptions(cli_path=cli, stderr=lambda _: None))
    await transport.connect()
    await transport.write('{"type":"user","message":{"content":"fail"}}\n')
    with pytest.raises(CliFailed) as ours:
        await _read(transport)
    assert issubclass(CliFailed, ProcessError)
    assert issubclass(CliFailed, LinkClosed)
    assert ours.value.exit_code == 3
    assert "first line" in str(ours.value.stderr)
    await transport.close()
    acts: tuple[Callable[[], Awaitable[None]], ...] = (
        lambda: transport.write("{}\n"),
        lambda: _read(transport),
    )
    for act in acts:
        with pytest.raises(CLIConnectionError) as lost:
            await act()
        assert isinstance(lost.value, LinkError)
    await transport.end_input()
    await transport.close()
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for path, kind in ((plain, CLIConnectionError), (tmp_path / "none", CLINotFoundError)):
        with pytest.raises(kind):
            await ask(ClaudeAgentOptions(cli_path=path))


@pytest.mark.usefixtures("installed")
async def test_the_cli_runs_as_the_user_that_is_named(cli: Path) -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    messages = await ask(ClaudeAgentOptions(cli_path=cli, user=me, stderr=lambda _: None))
    assert isinstance(messages[-1], ResultMessage)
    with pytest.raises(CLIConnectionError, match="no-such-user"):
        await ask(ClaudeAgentOptions(cli_path=cli, user="no-such-user"))


async def _read(transport: DefaultTransport) -> None:
    async for _ in transport.read_messages():
        pass


def test_without_a_callback_stderr_is_the_programs(cli: Path) -> None:
    code = (
        "import anyio, sys\n"
        "from claude_agent_sdk import ClaudeAgentOptions, query\n"
        "from quarterdeck.sdk_transport import install\n"
        "install()\n"
        "async def main():\n"
        "    async for _ in query(prompt='hi', options=ClaudeAgentOptions(cli_path=sys.argv[1])):\n"
        "        pass\n"
        "anyio.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, cli],
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    assert done.stderr.startswith(b"first line\n" + b"x" * 9000 + b"\n")
    assert done.stdout == b""


def test_a_cli_that_is_left_is_ended_with_the_program(cli: Path) -> None:
    code = (
        "import asyncio, os, sys\n"
        "from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient\n"
        "from quarterdeck.sdk_transport import install\n"
        "install()\n"
        "async def main():\n"
        "    client = ClaudeSDKClient(ClaudeAgentOptions(cli_path=sys.argv[1]))\n"
        "    await client.connect()\n"
        "    print(client._transport._process.pid, flush=True)\n"
        "    sys.exit(5)\n"
        "asyncio.new_event_loop().run_until_complete(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, cli],
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    # The CLI had the program's stderr, which ends with it: otherwise `run` would have waited.
    assert done.stdout.strip().isdigit()


def test_uninstall_gives_the_sdk_its_own_back() -> None:
    install()
    assert subprocess_cli.SubprocessCLITransport is DefaultTransport
    uninstall()
    assert subprocess_cli.SubprocessCLITransport is SDK_TRANSPORT


def test_an_sdk_that_is_built_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default, "_USED", ("_gone",))
    with pytest.raises(UnsupportedError, match="_gone of claude-agent-sdk"):
        install()
    assert subprocess_cli.SubprocessCLITransport is SDK_TRANSPORT


async def test_a_link_lives_on_a_loop_of_its_own_for_programs_on_trio(
    cli: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trio is not among the packages of the tests. Here a loop of asyncio stands for it: it is not
    the link's own either. The test below has a program on trio itself.
    """

    class OtherLoop:
        def __init__(self) -> None:
            self._loop = anyio.lowlevel.current_token().native_token

        def run_sync_soon(self, function: Callable[..., object], *given: object) -> None:
            self._loop.call_soon_threadsafe(function, *given)  # type: ignore[attr-defined]

    class Token:
        native_token = OtherLoop()

    monkeypatch.setattr(threads, "current_token", Token)
    lines: list[str] = []
    transport = DefaultTransport("", ClaudeAgentOptions(cli_path=cli, stderr=lines.append))
    with anyio.fail_after(SECONDS):
        await transport.connect()
        assert transport._process is not None
        assert transport._ours is not None
        assert isinstance(transport._ours.link, ThreadedLink)
        with anyio.CancelScope() as scope:
            scope.cancel()
            async for _ in transport.read_messages():
                pass
        await transport.write('{"type":"user","message":{"content":"hi"}}\n')
        await transport.end_input()
        got = [message["type"] async for message in transport.read_messages()]
        process = transport._process
        await transport.close()
        assert got[-1] == "result"
        assert lines[-1] == "last without newline"
        assert process.returncode == 0
        missing = DefaultTransport("", ClaudeAgentOptions(cli_path=cli.with_name("none")))
        with pytest.raises(CLINotFoundError):
            await missing.connect()


PACKAGES = Path(__file__).parents[2] / ".cache" / "sdk-tests" / "packages"
"""Where trio is. `make test` installs it."""


def test_a_program_on_trio_uses_ours(cli: Path) -> None:
    """A client with two turns, a query after it, one that is cancelled, and a CLI that fails."""
    code = (
        "import sys, trio\n"
        "from claude_agent_sdk import (\n"
        "    ClaudeAgentOptions, ClaudeSDKClient, ProcessError, ResultMessage, query)\n"
        "from quarterdeck.sdk_transport import default, install\n"
        "from quarterdeck.sdk_transport.threads import ThreadedLink\n"
        "install()\n"
        "lines = []\n"
        "options = ClaudeAgentOptions(cli_path=sys.argv[1], stderr=lines.append)\n"
        "async def turn(messages):\n"
        "    async for message in messages:\n"
        "        if isinstance(message, ResultMessage):\n"
        "            print(message.result.partition(', \"pid')[0], flush=True)\n"
        "async def main():\n"
        "    async with ClaudeSDKClient(options) as client:\n"
        "        print(type(client._transport).__name__,\n"
        "              isinstance(client._transport._ours.link, ThreadedLink))\n"
        "        process = client._transport._process\n"
        "        for prompt in ('one', 'two'):\n"
        "            await client.query(prompt)\n"
        "            await turn(client.receive_response())\n"
        "        with trio.CancelScope() as scope:\n"
        "            scope.cancel()\n"
        "            await turn(client.receive_messages())\n"
        "    print('ended', process.returncode, lines[-1])\n"
        "    await turn(query(prompt='three', options=options))\n"
        "    try:\n"
        "        await turn(query(prompt='fail', options=options))\n"
        "    except ProcessError as error:\n"
        "        print('failed', error.exit_code)\n"
        "trio.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, cli],
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == [
        "DefaultTransport True",
        '{"prompt": "one"',
        '{"prompt": "two"',
        "ended 0 last without newline",
        '{"prompt": "three"',
        "failed 3",
    ]
