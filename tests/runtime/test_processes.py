from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.runtime.processes import (
    ProcessId,
    child_of,
    descendants,
    send_signal,
    still_alive,
    with_variable,
)

pytestmark = pytest.mark.process


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); import time; time.sleep(60)"],
        env={"A_MARK_OF_OURS": "1"},
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.wait(5)
    child.stdout.close()


def test_a_child_is_found_by_descent_and_by_its_mark(sleeper: subprocess.Popen[bytes]) -> None:
    (found,) = [each for each in descendants(os.getpid()) if each.pid == sleeper.pid]
    assert with_variable("A_MARK_OF_OURS") == {found}
    assert not with_variable("A_MARK_OF")
    assert child_of(os.getpid(), sleeper.pid) == found
    assert child_of(os.getppid(), sleeper.pid) is None
    assert child_of(os.getpid(), os.getppid()) is None
    assert still_alive([found]) == {found}


def test_a_later_process_with_the_same_number_is_another(
    sleeper: subprocess.Popen[bytes],
) -> None:
    stranger = ProcessId(sleeper.pid, "0")
    assert not still_alive([stranger])
    send_signal(stranger, signal.SIGKILL)
    assert sleeper.poll() is None


def test_a_dead_process_is_not_living_though_nobody_has_reaped_it(
    sleeper: subprocess.Popen[bytes],
) -> None:
    (found,) = with_variable("A_MARK_OF_OURS")
    send_signal(found, signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert not still_alive([found])
    assert found not in descendants(os.getpid())
    sleeper.wait(5)
    send_signal(found, signal.SIGKILL)
    assert not still_alive([found])


def test_the_table_of_ps_is_understood_where_there_is_no_proc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ps = tmp_path / "ps"
    ps.write_text(
        "#!/bin/sh\n"
        "echo '  100     1 Ss   Sun Nov 15 20:00:00 2026'\n"
        "echo '  101   100 S    Sun Nov 15 20:00:01 2026'\n"
        "echo '  102   101 Z    Sun Nov 15 20:00:02 2026'\n"
        "echo '  103   102 R+   Sun Nov 15 20:00:03 2026'\n"
    )
    ps.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    born = "Sun Nov 15 20:00:0"
    assert descendants(100) == {ProcessId(101, f"{born}1 2026"), ProcessId(103, f"{born}3 2026")}
    assert still_alive([ProcessId(101, f"{born}1 2026"), ProcessId(101, "earlier")]) == {
        ProcessId(101, f"{born}1 2026")
    }
    assert not with_variable("ANYTHING")
    monkeypatch.setenv("PATH", "/nowhere")
    assert not descendants(100)
