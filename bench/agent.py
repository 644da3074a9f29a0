"""An agent that does what its prompt says, at once and without a model: the load of the benchmarks.

It speaks the CLI's protocol on stdin and stdout as far as a hub needs it, and imports the standard
library only, so that its start costs little. A prompt is JSON:

    {"do": "send", "file": "…"}                 the lines of a file, as fast as they are taken
    {"do": "pace", "rate": 20, "seconds": 5,    one durable line at a time, each with its time,
     "at": 12345.6}                             from a time of the clock on
    {"do": "ask", "times": 100}                 asks for a permission, and again when it has it
    {"do": "calls", "rate": 10, "seconds": 60}  calls tools at a pace, as a busy session does:
                                                text, the call, its hook, its result
    {"do": "echo"}                              repeats the prompt, as a CLI does that took it

A line that is to be timed carries the clock of this machine, which all processes share, as
`@<nanoseconds>@`.
"""

import itertools
import json
import os
import sys
import time

Line = dict[str, object]

SESSION = "5f0c2f5e-7a53-4c2d-9a63-0d8f3c1b2a47"
_numbers = itertools.count(1)


def write(data: bytes) -> None:
    """Write all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def say(line: Line) -> None:
    """Write a line."""
    write(json.dumps(line).encode() + b"\n")


def uuid() -> str:
    """Another one each time, and another one in each process."""
    return f"{os.getpid():08x}-0000-4000-8000-{next(_numbers):012x}"


def progress(text: str) -> Line:
    """A durable line, of about 300 bytes."""
    return {
        "type": "system",
        "subtype": "task_progress",
        "task_id": "b1",
        "description": text,
        "usage": {"total_tokens": 1200, "tool_uses": 3, "duration_ms": 4000},
        "session_id": SESSION,
        "uuid": uuid(),
    }


def clock() -> str:
    """The time, as it is found in a line."""
    return f"@{time.monotonic_ns()}@"


def init() -> Line:
    """How every turn begins."""
    return {
        "type": "system",
        "subtype": "init",
        "cwd": os.getcwd(),  # noqa: PTH109 - stdlib and quick
        "session_id": SESSION,
        "tools": ["Bash"],
        "mcp_servers": [],
        "model": "claude-sonnet-4-6",
        "permissionMode": "default",
        "slash_commands": [],
        "apiKeySource": "none",
        "uuid": uuid(),
    }


def result(text: str) -> Line:
    """How every turn ends."""
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 1,
        "duration_api_ms": 1,
        "num_turns": 1,
        "result": text,
        "stop_reason": "end_turn",
        "session_id": SESSION,
        "total_cost_usd": 0.0,
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "modelUsage": {},
        "permission_denials": [],
        "uuid": uuid(),
    }


def send(path: str) -> None:
    """The lines of a file; before them the time."""
    with open(path, "rb") as file:  # noqa: PTH123 - stdlib and quick
        data = file.read()
    say(progress("start " + clock()))
    write(data)


def parts() -> list[bytes]:
    """The next line, but for its time: what it takes to make it is not to be measured."""
    line = json.dumps(progress("working on it, step by step HERE")).encode() + b"\n"
    return line.split(b"HERE")


def pace(rate: float, seconds: float, at: float) -> None:
    """So many lines a second, each at its time, whatever became of those before."""
    # Agents have neighbouring pids: spread over the interval, and not all at once.
    start = at + (os.getpid() % 97) / 97 / rate
    head, tail = parts()
    for number in range(int(rate * seconds)):
        wait = start + number / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        write(b"%b%b%b" % (head, clock().encode(), tail))
        head, tail = parts()


def ask(times: int) -> str:
    """Ask so often; gives the milliseconds from each question to its answer."""
    took = []
    for number in range(times):
        request = {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "input": {"command": f"make step-{number}"},
            "tool_use_id": f"toolu_{os.getpid()}_{number}_{time.monotonic_ns()}",
        }
        name = uuid()
        start = time.monotonic()
        say({"type": "control_request", "request_id": name, "request": request})
        answer(name)
        took.append(round((time.monotonic() - start) * 1000, 4))
    return json.dumps(took)


def piece(text: str) -> Line:
    """A piece of text, which no journal keeps."""
    delta = {"type": "text_delta", "text": text}
    event = {"type": "content_block_delta", "index": 0, "delta": delta}
    return {"type": "stream_event", "event": event, "parent_tool_use_id": None, "uuid": uuid()}


def call(number: int) -> None:
    """One tool call, from the model's words to the tool's result."""
    for word in ("I look ", "at the ", "next file."):
        say(piece(word))
    id_, name = f"toolu_{os.getpid()}_{time.monotonic_ns()}", uuid()
    given = {"file_path": f"/tmp/part-{number % 50}.txt", "limit": number % 1000}
    used = {"type": "tool_use", "id": id_, "name": "Read", "input": given}
    message = {
        "id": f"msg_{id_}",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [{"type": "text", "text": "I look at the next file."}, used],
        "usage": {"input_tokens": 4, "output_tokens": 60, "cache_read_input_tokens": 900},
    }
    said = {"parent_tool_use_id": None, "session_id": SESSION}
    say({"type": "assistant", "message": message, **said, "uuid": uuid()})
    seen = {
        "hook_event_name": "PreToolUse",
        "session_id": SESSION,
        "cwd": "/tmp",
        "permission_mode": "default",
        "tool_name": "Read",
        "tool_input": given,
        "tool_use_id": id_,
    }
    hook = {"subtype": "hook_callback", "callback_id": "quarterdeck-watch", "input": seen}
    say({"type": "control_request", "request_id": name, "request": hook})
    answer(name)
    output = {"type": "tool_result", "tool_use_id": id_, "content": "a line of the file\n" * 20}
    body = {"role": "user", "content": [output]}
    say({"type": "user", "message": body, **said, "uuid": uuid()})


def calls(rate: float, seconds: float) -> None:
    """So many calls a second, each at its time."""
    start = time.monotonic() + (os.getpid() % 97) / 97 / rate
    for number in range(int(rate * seconds)):
        wait = start + number / rate - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        call(number)


def answer(name: str) -> None:
    """Wait for the answer to a request, and serve what comes before it."""
    while True:
        line = json.loads(sys.stdin.buffer.readline() or b'{"type":"end"}')
        if line["type"] == "control_response" and line["response"]["request_id"] == name:
            return
        if line["type"] == "end":
            sys.exit(0)
        serve(line)


def serve(line: Line) -> None:
    """Answer what is asked of a CLI."""
    request = line.get("request")
    if line["type"] == "control_request" and isinstance(request, dict):
        answer = {"subtype": "success", "request_id": line["request_id"], "response": {}}
        say({"type": "control_response", "response": answer})
        if request["subtype"] == "end_session":
            sys.exit(0)


def work(content: object) -> str:
    """Do what a prompt says; gives the result's text."""
    given = content
    if isinstance(content, list):
        content = content[0]["text"]
    todo = json.loads(str(content))
    if todo["do"] == "send":
        send(todo["file"])
    elif todo["do"] == "pace":
        pace(todo["rate"], todo["seconds"], todo["at"])
    elif todo["do"] == "ask":
        return ask(todo["times"])
    elif todo["do"] == "echo":
        body = {"role": "user", "content": given}
        said = {"parent_tool_use_id": None, "session_id": SESSION, "uuid": uuid()}
        echo = {"type": "user", "message": body, "isReplay": True, **said}
        write(json.dumps(echo, ensure_ascii=False).encode() + b"\n")
    elif todo["do"] == "calls":
        calls(todo["rate"], todo["seconds"])
    return "done"


def main() -> None:
    """Serve until the input ends."""
    if {"-v", "--version"} & set(sys.argv):
        write(b"2.1.325 (Claude Code)\n")
        return
    while data := sys.stdin.buffer.readline():
        line = json.loads(data)
        if line["type"] == "user":
            say(init())
            say(result(work(line["message"]["content"])))
        else:
            serve(line)


if __name__ == "__main__":
    main()
