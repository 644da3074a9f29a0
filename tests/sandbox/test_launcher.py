"""The launcher that waits for its order: it reads exactly that, and starts nothing without it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.domain.errors import LaunchError, UsageError
from quarterdeck.sandbox import Kind, Sandbox, SandboxMode, SandboxSpec, waiting_launcher
from quarterdeck.sandbox.launcher import FAILED, HEAD, LONGEST, NOT_MADE, order_line
from support.bounds import SECONDS
from support.boxes import EVIL, KINDS, SECRET, World

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux"),
]


def launched(*pieces: bytes, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Start a launcher that waits, write these pieces, and end its input: code, output, errors."""
    command, own = waiting_launcher()
    with subprocess.Popen(
        command,
        env={**own, **(env or {})},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        for piece in pieces:
            try:
                process.stdin.write(piece)
            except BrokenPipeError:
                break
        out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out.decode(), err.decode()


def started_with_arguments(box: Sandbox, cwd: Path, given: bytes) -> tuple[int, str, str]:
    """Start a sandbox by its command line: code, output, errors."""
    done = subprocess.run(
        box.command,
        env=box.env,
        cwd=cwd,
        input=given,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def line(*command: str, env: dict[str, str] | None = None, cwd: str = "/") -> bytes:
    """An order that restricts nothing."""
    return order_line({}, list(command), env or {}, cwd)


CAT = ("/bin/cat",)


@pytest.mark.parametrize(
    "pieces",
    [
        (line(*CAT) + b"one\ntwo\n",),
        (line(*CAT), b"one\n", b"two\n"),
        tuple(bytes([byte]) for byte in line(*CAT) + b"one\ntwo\n"),
    ],
    ids=["at once", "line by line", "byte by byte"],
)
def test_what_follows_the_order_is_the_input_of_the_program(pieces: tuple[bytes, ...]) -> None:
    assert launched(*pieces) == (0, "one\ntwo\n", "")


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"1",
        line("/bin/echo", EVIL)[:-2],
        b"x" * HEAD + line("/bin/echo", EVIL),
        b"0" * HEAD + line("/bin/echo", EVIL),
        f"{LONGEST + 1:0{HEAD}x}".encode() + line("/bin/echo", EVIL),
        f"{4:0{HEAD}x}".encode() + b"zzz\n",
        f"{5:0{HEAD}x}".encode() + b"\xff\xff\xff\xff\n",
    ],
    ids=[
        "nothing",
        "half of its length",
        "half of it",
        "no length",
        "no bytes",
        "too long",
        "no digits",
        "no text",
    ],
)
def test_without_a_whole_order_nothing_is_started(given: bytes) -> None:
    """So does a runner that is killed: the input of its launcher ends."""
    code, out, err = launched(given)
    assert (code, out) == (FAILED, "")
    assert err.startswith(NOT_MADE)
    assert len(err.splitlines()) == 1


def test_the_program_gets_its_own_environment_and_the_marks_of_the_runner() -> None:
    code, out, _ = launched(
        line("/usr/bin/env", env={"NAME": "välue", "QUARTERDECK_A": "new"}),
        env={"QUARTERDECK_A": "old", "QUARTERDECK_RUN_1": "1", "OTHER": "x"},
    )
    assert code == 0
    assert sorted(out.splitlines()) == ["NAME=välue", "QUARTERDECK_A=new", "QUARTERDECK_RUN_1=1"]


def test_the_program_starts_in_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "földer with a blank"
    folder.mkdir()
    assert launched(line("/bin/pwd", cwd=str(folder))) == (0, f"{folder.resolve()}\n", "")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (line(*CAT, cwd="/no/such/folder"), "/no/such/folder"),
        (line("/no/such/program"), "No such file"),
    ],
)
def test_what_cannot_be_started_is_said(given: bytes, why: str) -> None:
    code, out, err = launched(given)
    assert (code, out) == (FAILED, "")
    assert err.startswith(NOT_MADE)
    assert why in err


@pytest.mark.parametrize("kind", KINDS)
async def test_both_ways_to_start_make_the_same_sandbox(kind: Kind, tmp_path: Path) -> None:
    """The runner gives the order by the input; the other tests by the command line."""
    world = World(tmp_path)
    script = (
        f"echo {EVIL} > .git/hooks/pre-commit; cat ~/.ssh/id_rsa; echo {EVIL} > $OTHER/new;"
        " echo $HOME $TMPDIR $PWD; cat src/main.py; echo more > src/deep/file && echo written;"
        " read line; echo $line"
    )
    box = await world.open(kind, ["sh", "-c", script])
    try:
        waiting = launched(box.order_line() + b"some input\n")
        started = started_with_arguments(box, world.project, b"some input\n")
    finally:
        box.close()
    code, out, err = waiting
    assert out.endswith("written\nsome input\n")
    assert (code, out, err) == started
    assert SECRET not in out
    assert not (world.project / ".git" / "hooks" / "pre-commit").exists()
    assert not (world.other / "new").exists()


# --- what is known before -------------------------------------------------------------------------


MOST = os.sysconf("SC_ARG_MAX") // 100_000 + 1
"""Arguments of 100,000 bytes that are just too many."""


def box_of(command: list[str], env: dict[str, str]) -> Sandbox:
    spec = SandboxSpec(mode=SandboxMode.PROTECT)
    return Sandbox(kind=Kind.LANDLOCK, command=command, env=env, spec=spec, order={}, cwd="/")


@pytest.mark.parametrize(
    ("command", "env", "why"),
    [
        (["/bin/true", "x" * 128 * 1024], {}, "too long"),
        (["/bin/true"], {"A": "x" * 128 * 1024}, "too long"),
        (["/bin/true", *["x" * 100_000] * MOST], {}, "too long"),
        (["/bin/true", "a\0b"], {}, "null byte"),
        (["/bin/true"], {"A": "a\0b"}, "null byte"),
        (["/bin/true"], {"A=B": "c"}, "valid name"),
        (["/bin/true"], {"": "c"}, "valid name"),
    ],
    ids=[
        "an argument",
        "a variable",
        "all arguments",
        "a null byte in an argument",
        "a null byte in a variable",
        "a name with an equals sign",
        "an empty name",
    ],
)
def test_what_the_system_would_not_start_is_refused_before(
    command: list[str], env: dict[str, str], why: str
) -> None:
    with pytest.raises(LaunchError, match=why):
        box_of(command, env).order_line()


def test_what_just_fits_is_started() -> None:
    words = ["x" * 100_000] * (MOST - 2)
    longest = "y" * (128 * 1024 - 1)
    box = box_of(["/bin/sh", "-c", "echo $#", "sh", longest, *words], {"PATH": "/bin"})
    assert launched(box.order_line()) == (0, f"{len(words) + 1}\n", "")


def test_without_a_sandbox_there_is_no_order() -> None:
    box = Sandbox(kind=None, command=["true"], env={}, spec=SandboxSpec())
    with pytest.raises(UsageError):
        box.order_line()
