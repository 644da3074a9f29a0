"""The how-to page: its examples are tests, and they pass; every step is on it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import anyio
import pytest

from quarterdeck.testing import fake, script
from quarterdeck.testing.telegram.sim import ACTIONS
from support.bounds import SECONDS
from support.clis import PROJECT

PAGE = (PROJECT / "docs" / "how-to" / "test-your-program.md").read_text()


@pytest.mark.real_cli
async def test_the_examples_are_tests_that_pass(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 3
    for number, example in enumerate(examples):
        (tmp_path / f"test_example_{number}.py").write_text(example)
    options = ["-q", "-p", "no:cacheprovider", "-p", "anyio", "-o", "anyio_mode=auto"]
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    env = dict(os.environ) | {"QUARTERDECK_CLI_CACHE": str(PROJECT / ".cache" / "claude-cli")}

    with anyio.fail_after(SECONDS):
        ended = await anyio.run_process(
            [sys.executable, "-m", "pytest", *options, str(tmp_path)],
            cwd=tmp_path,
            env=env,
            check=False,
        )

    assert ended.returncode == 0, ended.stdout.decode()
    assert b"3 passed" in ended.stdout


def test_every_step_is_on_the_page() -> None:
    of_model = {kind.__name__ for kind in script.Step.__args__}
    of_fake = {kind.__name__ for kind in fake.Step.__subclasses__()} - {"Say"}

    missing = [name for name in sorted(of_model | of_fake) if f"`{name}(" not in PAGE]

    assert missing == []


def test_every_action_of_the_people_is_on_the_page() -> None:
    missing = [name for name in sorted(ACTIONS) if f"`{name}(" not in PAGE]

    assert missing == []
