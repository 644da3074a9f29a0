"""What a runner loads: it starts sooner without the codec, the library's agent and a server."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from support.bounds import SECONDS


@pytest.mark.parametrize("package", ["agent", "wire", "links.websocket"])
def test_every_name_that_is_loaded_late_is_there_and_others_are_not(package: str) -> None:
    module = import_module(f"quarterdeck.{package}")
    for name in module.__all__:
        assert getattr(module, name) is not None
    name = "no_such_name"
    with pytest.raises(AttributeError, match=name):
        getattr(module, name)


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
