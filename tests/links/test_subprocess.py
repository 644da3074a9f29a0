"""The children here are small Python programs: what a real CLI cannot be made to do on demand."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import anyio
import pytest

from quarterdeck.domain.errors import LaunchError, LinkClosed, UsageError
from quarterdeck.links.subprocess import HIGH_WATER, StopSteps, SubprocessLink
from quarterdeck.runtime.processes import ProcessId, still_alive, with_variable
from support.bounds import SECONDS

pytestmark = pytest.mark.process

FAST = StopSteps(input=0.3, term=0.5, kill=5, orphans=0.5, silent=0.3, drain=0.2)


class Start(Protocol):
    async def __call__(
        self,
        code: str,
        *argv: str,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        high_water: int = HIGH_WATER,
    ) -> SubprocessLink: ...


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts `python -c CODE` as a link, and closes every link at the end."""
    async with AsyncExitStack() as stack:

        async def begin(
            code: str,
            *argv: str,
            cwd: Path | None = None,
            env: dict[str, str] | None = None,
            on_stderr: Callable[[str], None] | None = None,
            high_water: int = HIGH_WATER,
        ) -> SubprocessLink:
            link = await SubprocessLink.start(
                [sys.executable, "-uc", code],
                argv,
                cwd=cwd,
                env=env,
                steps=FAST,
                on_stderr=on_stderr,
                high_water=high_water,
            )
            stack.push_async_callback(link.close)
            return link

        with anyio.fail_after(SECONDS):
            yield begin


async def read_all(link: SubprocessLink) -> tuple[bytes, LinkClosed]:
    parts = []
    while True:
        try:
            parts.append(await link.receive())
        except LinkClosed as closed:
            return b"".join(parts), closed


async def read_until(link: SubprocessLink, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += await link.receive()
    return data


ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line.upper())"


async def test_lines_go_in_and_come_out(start: Start) -> None:
    link = await start(ECHO)
    await link.send(b"one\n")
    await link.send(b"two\nthree\n")
    assert await read_until(link, b"THREE\n") == b"ONE\nTWO\nTHREE\n"
    assert not link.resumable


async def test_the_end_of_the_input_lets_the_child_finish_and_explains_its_exit(
    start: Start,
) -> None:
    link = await start("import sys; n = len(sys.stdin.read()); print(n)")
    await link.send(b"12345\n")
    await link.end_input()
    await link.end_input()
    data, closed = await read_all(link)
    assert data == b"6\n"
    assert closed.clean
    assert closed.exit_code == 0
    assert "it exited normally (exit code 0)" in closed.reason
    with pytest.raises(LinkClosed, match="its input has ended"):
        await link.send(b"more\n")


@pytest.mark.parametrize(
    ("code", "exit_code", "number", "words"),
    [
        ("import sys; sys.exit(1)", 1, None, "exited with an error (exit code 1)"),
        ("import sys; sys.exit(127)", 127, None, "not found (exit code 127)"),
        (
            "import sys; sys.exit(143)",
            143,
            signal.SIGTERM,
            "asked to stop (SIGTERM, exit code 143)",
        ),
        ("import os; os.kill(os.getpid(), 9)", -9, signal.SIGKILL, "killed"),
    ],
)
async def test_every_exit_is_told_in_words_with_the_last_lines_of_stderr(
    start: Start, code: str, exit_code: int, number: int | None, words: str
) -> None:
    link = await start(f"import sys; sys.stderr.write('first\\nlast words'); {code}")
    _, closed = await read_all(link)
    assert (closed.exit_code, closed.signal) == (exit_code, number)
    assert words in closed.reason
    assert closed.stderr == ("first", "last words")
    assert "last words" in str(closed)
    with pytest.raises(LinkClosed):
        await link.receive()
    with pytest.raises(LinkClosed, match=r"exited with|not found|asked|killed"):
        await link.send(b"into the void\n")


async def test_each_line_of_stderr_is_told_and_an_error_in_the_listener_harms_nothing(
    start: Start,
) -> None:
    heard: list[str] = []
    troubles: list[object] = []

    def listen(line: str) -> None:
        heard.append(line)
        raise RuntimeError(line)

    asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
    link = await start(
        "import sys; sys.stderr.write('a\\n\\nb\\n'); print('fine')", on_stderr=listen
    )
    data, _ = await read_all(link)
    assert data == b"fine\n"
    assert heard == ["a", "b"]
    assert len(troubles) == 2


async def test_an_exit_in_mid_line_gives_the_partial_bytes_and_then_the_end(start: Start) -> None:
    link = await start("import sys; sys.stdout.write('whole\\nhal'); sys.stdout.flush()")
    data, closed = await read_all(link)
    assert data == b"whole\nhal"
    assert closed.exit_code == 0


async def test_a_hundred_megabytes_pass_in_bounded_memory(start: Start) -> None:
    size = 100 * 1024 * 1024
    link = await start(
        "import sys\nchunk = b'x' * 1048575 + b'\\n'\n"
        "for _ in range(100): sys.stdout.buffer.write(chunk)",
        high_water=2 * 1024 * 1024,
    )
    total = largest = 0
    while total < size:
        data = await link.receive()
        total += len(data)
        largest = max(largest, len(data))
        if total < 8 * 1024 * 1024:
            await anyio.sleep(0.02)  # a slow reader: the child must wait, not pile up here
    rest, closed = await read_all(link)
    assert rest == b""
    assert closed.exit_code == 0
    assert total == size
    assert largest <= 3 * 1024 * 1024


async def test_a_slow_reader_gets_all_though_the_child_has_long_ended(start: Start) -> None:
    link = await start("import sys; sys.stdout.buffer.write(b'x' * 900_000)", high_water=100_000)
    first = await link.receive()
    await anyio.sleep(4 * FAST.drain)
    data, closed = await read_all(link)
    assert len(first + data) == 900_000
    assert closed.exit_code == 0


async def test_senders_at_once_keep_their_lines_whole(start: Start) -> None:
    link = await start(ECHO)
    lines = [bytes([97 + n]) * 200_000 + b"\n" for n in range(12)]
    received: list[bytes] = []

    async def read() -> None:
        received.append(await read_until_size(link, sum(map(len, lines))))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        for line in lines:
            group.start_soon(link.send, line)
    got = received[0].splitlines(keepends=True)
    assert got == [line.upper() for line in lines]


async def read_until_size(link: SubprocessLink, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        data += await link.receive()
    return bytes(data)


async def test_sending_waits_while_the_child_does_not_read_and_a_cancelled_send_sends_nothing(
    start: Start, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    link = await start(
        "import os, sys, time\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "sys.stdout.buffer.write(sys.stdin.buffer.read())",
        str(go),
    )
    block = b"a" * 999_999 + b"\n"
    sent = 0
    with anyio.move_on_after(0.5) as patience:
        while True:
            await link.send(block)
            sent += 1
    assert patience.cancelled_caught
    assert 1 <= sent <= 8
    go.touch()
    await link.send(b"last\n")
    await link.end_input()
    data, _ = await read_all(link)
    assert data == block * sent + b"last\n"


async def test_a_cancelled_receive_loses_nothing(start: Start) -> None:
    link = await start(ECHO)
    for _ in range(20):
        with anyio.move_on_after(0):
            await link.receive()
    with anyio.move_on_after(0.05):
        await link.receive()
    await link.send(b"still here\n")
    assert await read_until(link, b"\n") == b"STILL HERE\n"


@pytest.mark.parametrize("data", [b"no newline", b"\n", b"a\n\nb\n", b"a\r\n\r\n"])
async def test_only_whole_lines_can_be_sent(start: Start, data: bytes) -> None:
    link = await start(ECHO)
    with pytest.raises(UsageError, match="lines"):
        await link.send(data)


async def test_a_child_that_never_reads_does_not_hold_up_the_close(start: Start) -> None:
    link = await start("import time; time.sleep(600)")
    with anyio.move_on_after(0.3):
        while True:
            await link.send(b"x" * 1_000_000 + b"\n")
    with anyio.fail_after(SECONDS):
        await link.close()
    _, closed = await read_all(link)
    assert closed.signal == signal.SIGTERM
    assert "was terminated" in closed.reason


async def test_a_sender_that_waits_is_released_by_the_close(start: Start) -> None:
    link = await start("import time; time.sleep(60)")
    outcomes: list[str] = []

    async def push() -> None:
        try:
            while True:
                await link.send(b"x" * 1_000_000 + b"\n")
        except LinkClosed as closed:
            outcomes.append(closed.reason)

    async with anyio.create_task_group() as group:
        group.start_soon(push)
        await anyio.sleep(0.2)
        await link.close()
    assert outcomes == ["Nothing more can be sent: the link was closed."]


IGNORES_TERM = (
    "import signal, time, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready');"
    "time.sleep(60)"
)


async def test_a_child_that_ignores_sigterm_is_killed(start: Start) -> None:
    link = await start(IGNORES_TERM)
    await read_until(link, b"ready\n")
    await link.close()
    _, closed = await read_all(link)
    assert closed.signal == signal.SIGKILL
    assert "was killed" in closed.reason


async def test_a_child_that_writes_without_end_can_still_be_closed(start: Start) -> None:
    link = await start(
        "import sys\nwhile True: sys.stdout.write('x' * 100_000 + '\\n')", high_water=10
    )
    await link.receive()
    await link.close()
    _, closed = await read_all(link)
    assert closed.signal == signal.SIGTERM or closed.exit_code == 1


async def test_a_child_that_closes_its_output_and_lives_on_counts_as_ended(start: Start) -> None:
    link = await start("import os, time; print('bye', flush=True); os.close(1); time.sleep(60)")
    data, closed = await read_all(link)
    assert data == b"bye\n"
    assert "closed its output and kept running" in closed.reason
    assert not with_variable(link._mark)


async def test_a_grandchild_that_holds_the_pipe_does_not_keep_the_link_open(start: Start) -> None:
    link = await start(
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('done')"
    )
    with anyio.fail_after(SECONDS):
        data, closed = await read_all(link)
    assert data == b"done\n"
    assert closed.exit_code == 0


async def test_closing_twice_and_at_once_is_one_close(start: Start) -> None:
    link = await start("import time; time.sleep(60)")
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(link.close)
    await link.close()
    with pytest.raises(LinkClosed):
        await link.receive()


# --- no orphan is left ---

# A child as the CLI is: its shell has a session of its own, and that shell has a child.
FAMILY = """
import subprocess, sys
shell = '''
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"], env={})
print(child.pid, flush=True)
child.wait()
'''
grand = subprocess.Popen(
    [sys.executable, "-uc", shell], stdout=subprocess.PIPE, start_new_session=True
)
print(grand.pid, int(grand.stdout.readline()), flush=True)
"""


async def family_of(link: SubprocessLink) -> set[ProcessId]:
    numbers = [int(word) for word in (await read_until(link, b"\n")).split()]
    return {ProcessId(pid, _started(pid)) for pid in numbers}


def _started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.parametrize(
    "ending",
    [
        "sys.stdin.read()",  # ends when its input ends, and leaves its shell
        "import time; time.sleep(99)",
        "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(99)",
        "import os; os.kill(os.getpid(), 9)",  # the shell's parent is gone before we look
    ],
)
async def test_no_descendant_survives_the_close(start: Start, ending: str) -> None:
    link = await start(FAMILY.replace(", env={}", "") + ending)
    family = await family_of(link)
    await link.close()
    assert not still_alive(family)


async def test_a_descendant_without_our_environment_is_found_by_its_descent(start: Start) -> None:
    # The innermost process has an empty environment.
    link = await start(FAMILY + "import time; time.sleep(99)")
    family = await family_of(link)
    assert len(still_alive(family)) == 2
    await link.close()
    assert not still_alive(family)


async def test_no_descendant_survives_a_cancelled_or_failed_user_of_the_link(start: Start) -> None:
    del start
    code = [sys.executable, "-uc", FAMILY + "import time; time.sleep(99)"]
    family: set[ProcessId] = set()
    with anyio.CancelScope() as scope:
        async with await SubprocessLink.start(code, steps=FAST) as link:
            family |= await family_of(link)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught

    async def fail() -> None:
        async with await SubprocessLink.start(code, steps=FAST) as link:
            family.update(await family_of(link))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert len(family) == 4
    assert not still_alive(family)


async def test_a_start_that_is_cancelled_leaves_no_process() -> None:
    code = [sys.executable, "-c", "import time; time.sleep(60)"]
    with anyio.CancelScope() as scope:
        scope.cancel()
        await SubprocessLink.start(code, env={"A_CANCELLED_START": "1"}, steps=FAST)
    assert scope.cancelled_caught
    assert not with_variable("A_CANCELLED_START")


# --- starting ---


async def test_the_child_gets_exactly_the_environment_and_folder_that_were_given(
    start: Start, tmp_path: Path
) -> None:
    link = await start(
        "import os; print(os.getcwd()); print(sorted(k for k in os.environ if 'LINK' not in k))",
        cwd=tmp_path,
        env={"ONLY": "this", "LC_CTYPE": "C.UTF-8"},
    )
    data, _ = await read_all(link)
    assert data.decode().splitlines() == [str(tmp_path), "['LC_CTYPE', 'ONLY']"]


async def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    odd = tmp_path / "odd"
    odd.write_text("neither script nor binary")
    odd.chmod(0o755)
    for command, words in (
        ([str(tmp_path / "missing")], "does not exist"),
        ([str(plain)], "is not executable"),
        ([str(orphan)], "its interpreter is missing"),
        ([str(odd)], "cannot run on this machine"),
        ([sys.executable, "x" * 200_000], "too long"),
        ([sys.executable, "a\0b"], "null byte"),
    ):
        with pytest.raises(LaunchError, match=words):
            await SubprocessLink.start(command)
    with pytest.raises(LaunchError, match="working directory"):
        await SubprocessLink.start([sys.executable], cwd=tmp_path / "nowhere")
