"""Run a program of the official SDK with `quarterdeck-claude`, without a change to the program.

The SDK takes the CLI that it brings along before one on the PATH. So its search is replaced, in the
program's own Python, and finds us; the CLI that it would have found is the one that we run.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.domain.errors import UsageError
from quarterdeck.program.main import NAME

OWN = "QUARTERDECK_SDK_CLI"
"""The path of `quarterdeck-claude`, for the program's Python."""

BOOTSTRAP = """\
import os, runpy, sys
try:
    from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport as found
    search = found._find_cli
except (ImportError, AttributeError) as error:
    sys.exit(f"quarterdeck sdk run: this Python has no claude-agent-sdk that is known: {error}")
own = os.environ.pop("QUARTERDECK_SDK_CLI")
def find(transport):
    if not os.environ.get("QUARTERDECK_CLAUDE"):
        os.environ["QUARTERDECK_CLAUDE"] = search(transport)
    return own
found._find_cli = find
del sys.argv[0]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""It uses nothing of ours: the program's Python may be another one."""


def sdk_command(
    program: Path, arguments: Sequence[str], python: str | None = None
) -> tuple[list[str], Mapping[str, str]]:
    """The command line and the variables that run a program. Raises `UsageError`."""
    if not program.is_file():
        raise UsageError(f"{program}: there is no such program")
    own = Path(sys.executable).parent / NAME
    found = str(own) if own.exists() else shutil.which(NAME)
    if found is None:
        raise UsageError(f"{NAME} is not installed beside {sys.executable}")
    words = [python or sys.executable, "-c", BOOTSTRAP, str(program), *arguments]
    return words, {**os.environ, OWN: found}


def run_sdk_program(program: Path, arguments: Sequence[str], python: str | None = None) -> int:
    """Become the program. Returns only if that fails, by an error."""
    words, environ = sdk_command(program, arguments, python)
    try:
        os.execvpe(words[0], words, dict(environ))  # noqa: S606
    except OSError as error:
        raise UsageError(f"--python: {words[0]} cannot be run: {error}") from error
