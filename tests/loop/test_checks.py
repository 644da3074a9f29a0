"""Commands that check the work: bounded, and ended with all that they started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from quarterdeck.domain.errors import LaunchError
from quarterdeck.loop.checks import failing_tests, run_check
from quarterdeck.loop.state import SHOWN_OUTPUT
from support.bounds import SECONDS
from support.processes import running
from support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.mark.process
async def test_the_code_and_both_outputs_are_kept(tmp_path: Path) -> None:
    check = await run_check("echo out; echo err >&2; exit 3", str(tmp_path), SECONDS)
    assert (check.code, check.output) == (3, "out\nerr\n")


@pytest.mark.process
async def test_of_a_long_output_the_end_is_kept(tmp_path: Path) -> None:
    check = await run_check("yes ä | head -c 3000000; echo 7 failed; false", str(tmp_path), SECONDS)
    assert len(check.output) == SHOWN_OUTPUT
    assert check.output.endswith("7 failed\n")
    assert check.failing == 7


@pytest.mark.process
async def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    command = "sleep 600 & echo $! > child; wait"
    check = await run_check(command, str(tmp_path), 1.0)
    assert check.code is None
    child = int((tmp_path / "child").read_text())
    with anyio.fail_after(SECONDS):
        await until(lambda: not running(child))


@pytest.mark.process
async def test_what_a_command_leaves_in_the_background_does_not_outlive_it(tmp_path: Path) -> None:
    check = await run_check("sleep 600 > /dev/null 2>&1 & echo $!", str(tmp_path), SECONDS)
    assert check.code == 0
    with anyio.fail_after(SECONDS):
        await until(lambda: not running(int(check.output)))


@pytest.mark.process
async def test_what_a_command_puts_into_a_session_of_its_own_does_not_outlive_it(
    tmp_path: Path,
) -> None:
    away = "setsid sh -c 'echo $$ > child; exec sleep 600' > /dev/null 2>&1 &"
    command = f"{away} while [ ! -s child ]; do :; done"
    check = await run_check(command, str(tmp_path), SECONDS)
    assert check.code == 0
    child = int((tmp_path / "child").read_text())
    with anyio.fail_after(SECONDS):
        await until(lambda: not running(child))


@pytest.mark.process
async def test_a_command_acts_for_an_agent_and_not_for_a_person(tmp_path: Path) -> None:
    program = f"{sys.executable} -m quarterdeck.cli asks"
    check = await run_check(program, str(tmp_path), SECONDS)
    assert check.code == 4
    assert "reserved for people" in check.output


@pytest.mark.process
async def test_a_command_gets_no_secret_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "SOME_API_KEY", "not-for-it")
    check = await run_check("env", str(tmp_path), SECONDS)
    assert "not-for-it" not in check.output


async def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="cannot run the check"):
        await run_check("true", str(tmp_path / "gone"), SECONDS)


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("== 3 failed, 9 passed in 1.2s ==", 3),
        ("FAILED (failures=2, errors=1)", 2),
        ("Tests:       1 failed, 4 passed", 1),
        ("  5 failing", 5),
        ("test result: FAILED. 8 passed; 2 failed; 0 ignored", 2),
        ("--- FAIL: TestA\n    --- FAIL: TestA/b\nFAIL", 2),
        ("first 9 failed\nthen 4 failed", 4),
        ("all is well", None),
        ("9" * 5000 + " failed", None),
    ],
)
def test_the_number_of_failing_tests_is_found(output: str, count: int | None) -> None:
    assert failing_tests(output) == count
