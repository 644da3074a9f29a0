"""What a runner loads: it starts sooner without the codec, the library's agent and a server."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.bounds import SECONDS


@pytest.mark.process
def test_a_runner_does_without_what_reads_lines_and_what_serves() -> None:
    code = (
        "import sys, quarterdeck.runner.__main__;"
        "print({'uvicorn', 'quarterdeck.wire.codec', 'quarterdeck.agent.agent'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout.strip() == "set()"
