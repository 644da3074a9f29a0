"""Scripts for the fake CLI: what it expects, what it writes, and how it fails.

The fake CLI does what a real one cannot be made to do: it hangs, writes wrong messages, splits a
line, leaves a child behind. A script is a list of the steps below; `fake_cli_command` writes it to
a file and returns the command that plays it, to be followed by the flags of a CLI.

    script = [fake.Initialize(), fake.Expect("user"), fake.Say(fake.assistant("hi")), fake.Hang()]
    command = fake_cli_command(script)

These placeholders are filled in its lines: `$uuid` (a new one each time, the same sequence in every
run), `$session_id`, and, from the last expected line, `$request_id` and `$text`. `fake_cli` is the
program; this module writes its scripts.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

Line = dict[str, object]

NEWEST = "2.1.325"


class Step(msgspec.Struct, frozen=True, tag_field="do", tag=str.lower):
    """The base of all steps."""


class Expect(Step, frozen=True):
    """Read up to a line of this type, and subtype if given; skips all others.

    Ends the process with code 97 and a reason on stderr if no such line comes in time. With
    `polite`, earlier control requests are answered, and the end of the input, or `end_session`,
    ends the process with code 0.
    """

    type: str
    subtype: str = ""
    timeout: float = 30.0
    polite: bool = False


class ExpectEnd(Step, frozen=True):
    """Read on to the end of the input."""

    timeout: float = 30.0


class Initialize(Step, frozen=True):
    """Expect `initialize` and answer it as the script's version of the CLI does."""


class Serve(Step, frozen=True):
    """From here on be a well-behaved CLI: answer control requests, echo prompts, exit at the end.

    With `turns`, only until that many prompts have been answered; then the script continues.
    """

    turns: int = 0


class Say(Step, frozen=True):
    """Write lines, `times` times over."""

    lines: tuple[Line, ...]
    times: int = 1


class Raw(Step, frozen=True):
    """Write bytes as they are: no newline is added, nothing is checked."""

    data: bytes


class BigLine(Step, frozen=True):
    """Write one assistant message with a text of this many characters."""

    size: int = 10_000_000


class Stream(Step, frozen=True):
    """Write so many `stream_event` lines as fast as the pipe takes them."""

    count: int
    text: str = "word "


class Complain(Step, frozen=True):
    """Write to stderr, `times` times over."""

    text: str
    times: int = 1


class Wait(Step, frozen=True):
    """Do nothing for so many seconds."""

    seconds: float


class Hang(Step, frozen=True):
    """Read and write nothing more, and stay until killed."""


class CloseOutput(Step, frozen=True):
    """Close stdout and keep running."""


class CloseInput(Step, frozen=True):
    """Close stdin and keep running: writing to it fails with a broken pipe."""


class IgnoreTerm(Step, frozen=True):
    """Ignore SIGTERM from here on."""


class SpawnChild(Step, frozen=True):
    """Start a child in a new session that outlives the CLI; its id is written to `pid_file`.

    With `holds_pipes` it keeps stdout and stderr open, so that they do not end with the CLI.
    """

    pid_file: str
    seconds: float = 60.0
    holds_pipes: bool = False


class Exit(Step, frozen=True):
    """End the process with this code, after writing this text to stderr."""

    code: int = 0
    stderr: str = ""


class _Script(msgspec.Struct, frozen=True):
    version: str
    lifetime: float
    record: str
    steps: tuple[Step, ...]


def fake_cli_command(
    script: Sequence[Step],
    *,
    folder: Path | None = None,
    version: str = NEWEST,
    record: Path | None = None,
    lifetime: float = 120.0,
) -> tuple[str, ...]:
    """Write the script to a file and return the command that plays it.

    The file is made in `folder`, by default a temporary one that is removed when this program ends.
    `record` is a file that gets the flags, and then every line that the fake CLI reads. The process
    always ends after `lifetime` seconds.
    """
    place = folder or _temporary()
    descriptor, name = tempfile.mkstemp(prefix="script-", suffix=".json", dir=place)
    whole = _Script(version, lifetime, str(record or ""), tuple(script))
    os.close(descriptor)
    Path(name).write_bytes(msgspec.json.encode(whole))
    # Run by its path and isolated: it starts in a few hundredths of a second, without our
    # libraries.
    return (sys.executable, "-I", str(Path(__file__).with_name("fake_cli.py")), name)


@functools.cache
def _temporary() -> Path:
    place = Path(tempfile.mkdtemp(prefix="quarterdeck-fake-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


# --- the lines that it says -------------------------------------------------------------------


def say(*lines: Line, times: int = 1) -> Say:
    """A step that writes these lines."""
    return Say(lines, times)


def assistant(*content: str | Line, parent: str | None = None) -> Line:
    """An assistant message; a string is a text block."""
    blocks = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
    message: Line = {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": "claude-fake",
        "content": blocks,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent} | _ids()


def tool_use(name: str, given: Line, tool_id: str = "toolu_fake") -> Line:
    """A tool call, as a block of an assistant message."""
    return {"type": "tool_use", "id": tool_id, "name": name, "input": given}


def tool_result(content: str, tool_id: str = "toolu_fake", *, is_error: bool = False) -> Line:
    """The user message that brings a tool's result."""
    block = {"type": "tool_result", "tool_use_id": tool_id, "content": content}
    message = {"role": "user", "content": [block | {"is_error": is_error}]}
    return {"type": "user", "message": message, "parent_tool_use_id": None} | _ids()


def result(text: str = "$text", **fields: object) -> Line:
    """The result of a turn; `fields` replace or add."""
    base: Line = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 1,
        "duration_api_ms": 1,
        "num_turns": 1,
        "result": text,
        "stop_reason": "end_turn",
        "total_cost_usd": 0.001,
        "usage": {"input_tokens": 10, "output_tokens": 5},
        "modelUsage": {},
        "permission_denials": [],
    }
    return base | _ids() | fields


def can_use_tool(name: str, given: Line, request_id: str = "ask-1", **fields: object) -> Line:
    """A permission request."""
    request = {"subtype": "can_use_tool", "tool_name": name, "input": given}
    return control_request(request_id, **request, tool_use_id="toolu_fake", **fields)


def control_request(request_id: str, **request: object) -> Line:
    """A control request of any subtype."""
    return {"type": "control_request", "request_id": request_id, "request": request}


def answer(response: Line | None = None, request_id: str = "$request_id") -> Line:
    """A successful answer to the control request that was expected last."""
    inner: Line = {"subtype": "success", "request_id": request_id, "response": response or {}}
    return {"type": "control_response", "response": inner}


def refusal(error: str, request_id: str = "$request_id") -> Line:
    """An error in answer to the control request that was expected last."""
    inner: Line = {"subtype": "error", "request_id": request_id, "error": error}
    return {"type": "control_response", "response": inner}


def _ids() -> Line:
    return {"session_id": "$session_id", "uuid": "$uuid"}
