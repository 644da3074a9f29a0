"""`quarterdeck-claude` as a command: which CLI, which hub, and what happens without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.domain.errors import LinkRefused, UsageError
from quarterdeck.program import main
from quarterdeck.program.main import hub_finder, real_claude, run
from quarterdeck.program.sdk_run import BOOTSTRAP, sdk_command
from quarterdeck.runtime.local_hub import HUB_FILE
from quarterdeck.testing import fake
from quarterdeck.testing.fake import fake_cli_command
from support.bounds import SECONDS

SDK = ("--output-format", "stream-json", "--input-format", "stream-json", "--verbose")
OURS = Path(sys.executable).parent / "quarterdeck-claude"


def _program(path: Path, text: str = "#!/bin/sh\nexit 0\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)
    return path


def test_the_real_cli_is_never_ourselves(tmp_path: Path) -> None:
    real = _program(tmp_path / "real" / "claude")
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "claude").symlink_to(OURS)
    path = os.pathsep.join([str(ours), str(tmp_path / "none"), str(real.parent)])
    assert real_claude({"PATH": path, "HOME": str(tmp_path)}) == (str(real),)
    named = _program(tmp_path / "named")
    assert real_claude({"PATH": path, "QUARTERDECK_CLAUDE": str(named)}) == (str(named),)


def test_a_hub_is_found_by_variables_or_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    with pytest.raises(LinkRefused, match="no hub runs on this machine"):
        hub_finder({})
    far = hub_finder({"QUARTERDECK_URL": "https://hub.example", "QUARTERDECK_TOKEN": "qd_x"})()
    assert far.url == "wss://hub.example"
    (tmp_path / "token").write_text("qd_y")
    near = {"QUARTERDECK_TOKEN_FILE": str(tmp_path / "token"), "QUARTERDECK_CA_FILE": "/ca.pem"}
    with pytest.raises(LinkRefused):
        hub_finder(near)
    # A hub that was killed left this behind; the next one may be elsewhere.
    state = tmp_path / HUB_FILE
    state.write_text('{"pid":1,"address":"http://127.0.0.1:1","version":"0"}')
    find = hub_finder(near)
    assert find().url == "ws://127.0.0.1:1"
    state.write_text('{"pid":1,"address":"http://127.0.0.1:2","version":"0"}')
    assert find().url == "ws://127.0.0.1:2"
    state.unlink()
    with pytest.raises(LinkRefused):
        find()


def test_an_agent_does_not_get_the_token_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    (tmp_path / HUB_FILE).write_text('{"pid":1,"address":"http://127.0.0.1:1","version":"0"}')
    with pytest.raises(LinkRefused, match="started by an agent"):
        hub_finder({"QUARTERDECK_LINK_1": "1"})


@pytest.mark.process
def test_without_a_hub_nothing_is_run_and_the_text_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path / "data"))
    env = {"PATH": os.defpath, "QUARTERDECK_CLAUDE": str(_program(tmp_path / "claude"))}
    with pytest.raises(LinkRefused, match=r"Nothing was run.*QUARTERDECK_WITHOUT_HUB=1"):
        run(SDK, env)
    with pytest.raises(UsageError, match="mcp__x__y"):
        run([*SDK, "--permission-prompt-tool", "mcp__x__y"], env)
    for argv, more in ((("--bare",), {}), ((), {"CLAUDE_CODE_SIMPLE": "1"})):
        with pytest.raises(UsageError, match="the hub's rules would not hold"):
            run([*SDK, *argv], {**env, **more})
    far = {**env, "QUARTERDECK_URL": "http://127.0.0.1:9", "QUARTERDECK_TOKEN": "qd_x"}
    with pytest.raises(UsageError, match="messages of other sessions are refused"):
        run([*SDK, "--settings", '{"crossSessionInbound":"accept"}'], far)


def test_the_program_is_called_by_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main._parent_name()
    monkeypatch.setattr(os, "getppid", lambda: 2**30)
    assert main._parent_name() == "program"


@pytest.mark.process
def test_the_command_fails_closed_passes_through_and_runs_without_a_hub_if_told(
    tmp_path: Path,
) -> None:
    script = (fake.Initialize(), fake.Exit(7, "gone"))
    fake_cli = " ".join(f"'{word}'" for word in fake_cli_command(script, folder=tmp_path))
    claude = _program(
        tmp_path / "bin" / "claude",
        f'#!/bin/sh\n[ "$1" = --version ] && echo 9.9.9 && exit 3\nexec {fake_cli} "$@"\n',
    )
    base = {"HOME": str(tmp_path), "QUARTERDECK_HOME": str(tmp_path / "data")}
    env = {**base, "PATH": os.pathsep.join([str(claude.parent), os.environ["PATH"]])}
    hello = b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}\n'

    def called(*words: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [str(OURS), *words],
            env={**env, **more},
            input=hello,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )

    version = called("--version")
    assert (version.returncode, version.stdout, version.stderr) == (3, b"9.9.9\n", b"")
    printed = called("-p", "hello")
    assert b"quarterdeck-claude: runs without the hub" in printed.stderr
    assert b"quarterdeck-claude" not in printed.stdout
    closed = called(*SDK)
    assert closed.returncode == 1
    assert closed.stdout == b""
    assert b"quarterdeck-claude: no hub runs on this machine. Nothing was run." in closed.stderr
    assert b"Traceback" not in closed.stderr
    alone = called(*SDK, QUARTERDECK_WITHOUT_HUB="1")
    assert alone.returncode == 7
    assert b'"request_id":"1"' in alone.stdout.replace(b" ", b"")
    refused = called(*SDK, QUARTERDECK_URL="http://127.0.0.1:9", QUARTERDECK_TOKEN="qd_x")
    assert refused.returncode == 1
    assert b"Nothing was run" in refused.stderr


@pytest.mark.process
def test_a_program_of_the_sdk_finds_ours_and_we_run_the_cli_that_it_brings_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from claude_agent_sdk import ClaudeAgentOptions\n"
        "from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport\n"
        "found = SubprocessCLITransport(prompt='x', options=ClaudeAgentOptions())._find_cli()\n"
        "print(__name__, sys.argv[1:], found, os.environ['QUARTERDECK_CLAUDE'], sep='|')\n"
    )
    real = _program(tmp_path / "bin" / "claude")
    monkeypatch.setenv("PATH", os.pathsep.join([str(real.parent), os.environ["PATH"]]))
    monkeypatch.delenv("QUARTERDECK_CLAUDE", raising=False)
    words, env = sdk_command(program, ["--python", "x"])
    done = subprocess.run(words, env=env, capture_output=True, timeout=SECONDS, check=True)
    name, arguments, found, claude = done.stdout.decode().strip().split("|")
    assert (name, arguments, found) == ("__main__", "['--python', 'x']", str(OURS))
    assert Path(claude).name == "claude"
    assert "quarterdeck" not in Path(claude).name
    with pytest.raises(UsageError, match="no such program"):
        sdk_command(tmp_path / "none.py", [])
    assert "import quarterdeck" not in BOOTSTRAP
