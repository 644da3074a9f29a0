"""The fake CLI: a program that plays a script of `fake` on stdin and stdout.

It is run by its path and imports the standard library only: it must start fast, and it must share
no code with what it tests. `python -m quarterdeck.testing.fake_cli` works too. The first argument
is the script; the flags of a CLI follow.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

Fields = dict[str, object]

UNMET = 97
"""The exit code when the script expected a line that did not come."""


class FakeCli:
    """One run: the script, the input, and the values of the placeholders."""

    def __init__(self, script: Fields, flags: list[str]) -> None:
        self.version = str(script["version"])
        self.record = str(script["record"])
        self.flags = flags
        self.session_id = _flag(flags, "--session-id", "--resume") or _uuid(0xFA4E, 0)
        self.last: Fields = {}
        self.text = ""
        self.count = 0
        self.buffer = b""
        self.ended = False

    # --- reading ---------------------------------------------------------------------------

    def line(self, timeout: float) -> Fields | None:
        """The next line, or None at the end of the input. Raises `TimeoutError`."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            if self.ended:
                return None
            ready, _, _ = select.select([0], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            data = os.read(0, 1 << 20)
            self.ended = not data
            self.buffer += data
        raw, _, self.buffer = self.buffer.partition(b"\n")
        self.keep(raw)
        try:
            value = json.loads(raw)
        except ValueError:
            # As every real version does: the reason on stderr, nothing on the wire, code 1.
            leave(1, f"Error parsing streaming input line: {raw[:200]!r}")
        return value if isinstance(value, dict) else {}

    def expect(self, wanted: str, subtype: str, timeout: float, *, polite: bool = False) -> None:
        """Read on to a line that fits, and remember it."""
        name = f"{wanted}/{subtype}" if subtype else wanted
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self.line(deadline - time.monotonic())
            except TimeoutError:
                leave(UNMET, f"fake_cli: no {name} came within {timeout:g} s")
            if line is None:
                if polite:
                    leave(0)
                leave(UNMET, f"fake_cli: the input ended while {name} was expected")
            if line.get("type") == wanted and subtype in ("", self.subtype(line)):
                return self.remember(line)
            if polite and line.get("type") == "control_request":
                self.control(line)

    def subtype(self, line: Fields) -> str:
        """The subtype of a control request, a control response, or any other message."""
        inner = line.get("request") or line.get("response") or line
        return str(inner.get("subtype", "")) if isinstance(inner, dict) else ""

    def remember(self, line: Fields) -> None:
        """Take the values of the placeholders from a line."""
        self.last = line
        message = line.get("message")
        if isinstance(message, dict):
            content = message.get("content")
            blocks = content if isinstance(content, list) else [{"text": content}]
            self.text = "".join(str(block.get("text", "")) for block in blocks)

    def keep(self, raw: bytes) -> None:
        """Record what was read, for the test."""
        if self.record:
            with Path(self.record).open("ab") as file:
                file.write(raw + b"\n")

    # --- writing ---------------------------------------------------------------------------

    def say(self, line: object) -> None:
        """Write one line, its placeholders filled in."""
        write(json.dumps(self.fill(line)).encode() + b"\n")

    def fill(self, value: object) -> object:
        """The same value with every placeholder replaced."""
        if isinstance(value, dict):
            return {key: self.fill(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.fill(inner) for inner in value]
        if value == "$uuid":
            self.count += 1
            return _uuid(0xFACE, self.count)
        if value == "$session_id":
            return self.session_id
        if value == "$request_id":
            return self.last.get("request_id", "")
        if isinstance(value, str) and "$text" in value:
            return value.replace("$text", self.text)
        return value

    def stream(self, count: int, text: str) -> None:
        """Write stream events in large pieces, so that the reader is what limits the speed."""
        delta = {"type": "text_delta", "text": text}
        event = {"type": "content_block_delta", "index": 0, "delta": delta}
        line = {"type": "stream_event", "event": event, "parent_tool_use_id": None}
        head = json.dumps(line)[:-1] + f', "session_id": "{self.session_id}", "uuid": "'
        pieces: list[str] = []
        for _ in range(count):
            self.count += 1
            pieces.append(f'{head}{_uuid(0xFACE, self.count)}"}}\n')
            if len(pieces) == 256:
                write("".join(pieces).encode())
                pieces.clear()
        write("".join(pieces).encode())

    # --- behaving --------------------------------------------------------------------------

    def initialize(self) -> None:
        """Answer an `initialize` that was read."""
        self.say(_answer(_initialize_response(self.version)))

    def serve(self, turns: int) -> None:
        """Be well-behaved for so many turns, or to the end."""
        done = 0
        while turns == 0 or done < turns:
            try:
                line = self.line(3600.0)
            except TimeoutError:
                return
            if line is None:
                leave(0)
            self.remember(line)
            if line.get("type") == "control_request":
                self.control(line)
            elif line.get("type") == "user":
                self.turn()
                done += 1

    def control(self, line: Fields) -> None:
        """Answer a control request."""
        self.remember(line)
        if self.subtype(line) == "initialize":
            self.initialize()
        else:
            self.say(_answer({}))
        if self.subtype(line) == "end_session":
            leave(0)

    def turn(self) -> None:
        """Echo the last prompt."""
        usage = {"input_tokens": 10, "output_tokens": 5}
        message: Fields = {
            "id": "msg_fake",
            "type": "message",
            "role": "assistant",
            "model": "claude-fake",
            "content": [{"type": "text", "text": "echo: $text"}],
            "stop_reason": None,
            "usage": usage,
        }
        ending: Fields = {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "duration_ms": 1,
            "duration_api_ms": 1,
            "num_turns": 1,
            "result": "echo: $text",
            "stop_reason": "end_turn",
            "total_cost_usd": 0.001,
            "usage": usage,
            "modelUsage": {},
            "permission_denials": [],
        }
        ids: Fields = {"session_id": "$session_id", "uuid": "$uuid"}
        self.say(_init(self.version))
        self.say({"type": "assistant", "message": message, "parent_tool_use_id": None} | ids)
        self.say(ending | ids)

    def do(self, step: Fields) -> None:
        """Play one step."""
        match step:
            case {"do": "expect", "type": str(wanted)}:
                timeout, polite = _number(step["timeout"]), bool(step["polite"])
                self.expect(wanted, str(step["subtype"]), timeout, polite=polite)
            case {"do": "expectend"}:
                self.until_end(_number(step["timeout"]))
            case {"do": "initialize"}:
                self.expect("control_request", "initialize", 30.0)
                self.initialize()
            case {"do": "serve", "turns": int(turns)}:
                self.serve(turns)
            case {"do": "say", "lines": list(lines), "times": int(times)}:
                for line in lines * times:
                    self.say(line)
            case {"do": "raw", "data": str(data)}:
                write(base64.b64decode(data))
            case {"do": "bigline", "size": int(size)}:
                big = {"role": "assistant", "content": [{"type": "text", "text": "x" * size}]}
                self.say({"type": "assistant", "message": big, "uuid": "$uuid"})
            case {"do": "stream", "count": int(count)}:
                self.stream(count, str(step["text"]))
            case {"do": "complain", "text": str(text), "times": int(times)}:
                write(text.encode() * times, 2)
            case {"do": "wait"}:
                time.sleep(_number(step["seconds"]))
            case {"do": "spawnchild"}:
                spawn_child(step)
            case {"do": "exit", "code": int(code)}:
                leave(code, str(step["stderr"]))
            case {"do": "hang"}:
                hang()
            case {"do": "closeoutput"}:
                os.close(1)
            case {"do": "closeinput"}:
                os.close(0)
            case {"do": "ignoreterm"}:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case _:
                leave(2, f"fake_cli: there is no such step: {step}")

    def until_end(self, timeout: float) -> None:
        """Read to the end of the input."""
        deadline = time.monotonic() + timeout
        try:
            while self.line(deadline - time.monotonic()) is not None:
                pass
        except TimeoutError:
            leave(UNMET, f"fake_cli: the input did not end within {timeout:g} s")


def write(data: bytes, descriptor: int = 1) -> None:
    """Write all of it; a reader that is gone ends the process, as it ends a real one."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except BrokenPipeError:
        leave(1)


def leave(code: int, message: str = "") -> NoReturn:
    """End at once: nothing is flushed that the script did not write."""
    if message:
        with contextlib.suppress(OSError):
            os.write(2, message.encode() + b"\n")
    os._exit(code)


def hang() -> NoReturn:
    """Stay, and do nothing."""
    while True:
        signal.pause()


def spawn_child(step: Fields) -> None:
    """Start a child that outlives us; its id is in the file before the next step is played."""
    keeps = None if step["holds_pipes"] else subprocess.DEVNULL
    program = [sys.executable, "-I", "-c", f"import time; time.sleep({_number(step['seconds'])})"]
    child = subprocess.Popen(
        program, stdin=subprocess.DEVNULL, stdout=keeps, stderr=keeps, start_new_session=True
    )
    path = Path(str(step["pid_file"]))
    half = path.with_suffix(".part")
    half.write_text(str(child.pid))
    half.replace(path)


def _answer(response: Fields) -> Fields:
    inner = {"subtype": "success", "request_id": "$request_id", "response": response}
    return {"type": "control_response", "response": inner}


def _initialize_response(version: str) -> Fields:
    """The response to `initialize`; newer versions send more members."""
    response: Fields = {
        "commands": [{"name": "compact", "description": "Compact", "argumentHint": ""}],
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": [{"value": "default", "displayName": "Default", "description": "Fake"}],
        "account": {"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY"},
    }
    if _at_least(version, "2.1.62"):
        response["pid"] = os.getpid()
    if _at_least(version, "2.1.120"):
        response["agents"] = [{"name": "general-purpose", "description": "Fake"}]
    if _at_least(version, "2.1.325"):
        response["claude_code_version"] = version
        response["current_permission_mode"] = "default"
        response["session_state"] = "idle"
        response["capabilities"] = []
    return response


def _init(version: str) -> Fields:
    return {
        "type": "system",
        "subtype": "init",
        "cwd": str(Path.cwd()),
        "session_id": "$session_id",
        "tools": ["Task", "Bash", "Read"],
        "mcp_servers": [],
        "model": "claude-fake",
        "permissionMode": "default",
        "slash_commands": ["compact"],
        "apiKeySource": "ANTHROPIC_API_KEY",
        "claude_code_version": version,
        "output_style": "default",
        "agents": ["general-purpose"],
        "skills": [],
        "plugins": [],
        "uuid": "$uuid",
    }


def _at_least(version: str, other: str) -> bool:
    return [int(part) for part in version.split(".")] >= [int(part) for part in other.split(".")]


def _uuid(kind: int, number: int) -> str:
    """A UUID that is the same in every run."""
    return f"0000{kind:04x}-0000-4000-8000-{number:012x}"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _flag(flags: list[str], *names: str) -> str:
    for name, value in pairwise(flags):
        if name in names:
            return value
    return ""


def main(arguments: list[str]) -> int:
    """Play the script of the first argument; the others are the flags of a CLI."""
    if not arguments:
        leave(2, "usage: fake_cli.py SCRIPT.json [flags of the CLI]")
    script = json.loads(Path(arguments[0]).read_bytes())
    flags = arguments[1:]
    if "--version" in flags:
        write(f"{script['version']} (Claude Code)\n".encode())
        return 0
    # As the real one: 143 and 0, at once. The alarm ends processes that a failed test left behind.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, float(script["lifetime"]))
    cli = FakeCli(script, flags)
    cli.keep(json.dumps(flags).encode())
    for step in script["steps"]:
        cli.do(step)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
