"""A CLI for the tests of faults: it talks by chance, and writes down what it wrote and read.

A program of its own that imports the standard library only: `fault_cli.py CONFIG.json [flags]`. It
takes prompts at any time and answers control requests; a turn is a row of deltas, messages, odd
lines, broken lines and questions, several open at once. Beside it, in the config's folder, it keeps
`PID.out` and `PID.in`: every line, written down before it is said, and as soon as it is heard. In a
sandbox, where all have the same process number, another number has its place. Its messages are in a
transcript as well, where the real one keeps its own. The file `alone` is locked by it; one that
finds it locked writes its number there: a session has one CLI at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import select
import sys
import time
from collections import deque
from itertools import pairwise
from pathlib import Path

LIFETIME = 240.0
"""Whatever happens: nothing is left running by a test that failed."""
WATCHING_HOOK = "quarterdeck-watch"


class Cli:
    """One process: what it still has to say, what it has asked, and its two records."""

    def __init__(self, folder: Path, seed: int, session_id: str, beats: int) -> None:
        self.chance = random.Random(f"{seed} {len(list(folder.glob('*.out')))}")
        self.session_id = session_id
        self.most = beats
        self.asks: set[str] = set()
        self.prompts: deque[dict[str, object]] = deque()
        self.beats: deque[tuple[str, ...]] = deque()
        self.count = 0
        self.half = b""
        self.ended = False
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.number = number()
        self.out = os.open(folder / f"{self.number}.out", flags, 0o600)
        self.read = os.open(folder / f"{self.number}.in", flags, 0o600)
        project = re.sub("[^A-Za-z0-9]", "-", str(Path.cwd().resolve()))
        place = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "projects" / project
        place.mkdir(parents=True, exist_ok=True)
        self.transcript = os.open(place / f"{session_id}.jsonl", flags, 0o600)
        self.alone = os.open(folder / "alone", flags, 0o600)
        try:
            fcntl.flock(self.alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            write_all(self.alone, f"{self.number}\n".encode())

    # --- the two pipes ---------------------------------------------------------------------

    def write(self, line: bytes, entry: bytes = b"") -> None:
        """Say a line: sometimes in two pieces, so that a kill may come in between."""
        write_all(self.out, line + b"\n")
        write_all(self.transcript, entry)
        data = line + b"\n"
        if self.chance.random() < 0.03:
            cut = self.chance.randrange(len(data))
            write_all(1, data[:cut])
            time.sleep(self.chance.random() * 0.02)
            data = data[cut:]
        write_all(1, data)

    def say(self, **members: object) -> None:
        """Say an object; a message is put into the transcript, as the real CLI puts it there."""
        entry = b""
        if members["type"] in {"user", "assistant"}:
            names = {name: members[name] for name in ("type", "message", "uuid")}
            more = {"sessionId": self.session_id, "isSidechain": False, "cwd": str(Path.cwd())}
            entry = json.dumps(names | more).encode() + b"\n"
        self.write(json.dumps(members).encode(), entry)

    def hear(self, timeout: float) -> None:
        """Read what there is, and act on it."""
        if not select.select([0], [], [], timeout)[0]:
            return
        data = os.read(0, 1 << 20)
        self.ended = not data
        *lines, self.half = (self.half + data).split(b"\n")
        for line in lines:
            write_all(self.read, line + b"\n")
            self.take(json.loads(line))

    def take(self, line: dict[str, object]) -> None:
        """A line from the controller."""
        match line:
            case {"type": "user"}:
                self.prompts.append(line)
            case {"type": "control_response", "response": {"request_id": str(id_)}}:
                self.asks.discard(id_)
            case {
                "type": "control_request",
                "request_id": str(id_),
                "request": {"subtype": str(subtype)},
            }:
                if subtype == "interrupt":
                    self.interrupt()
                inner = {"subtype": "success", "request_id": id_, "response": {}}
                self.say(type="control_response", response=inner)
                self.ended = self.ended or subtype == "end_session"
            case _:
                pass

    # --- turns -----------------------------------------------------------------------------

    def live(self) -> None:
        """Until the input ends, or somebody ends the session."""
        deadline = time.monotonic() + LIFETIME
        while not self.ended and time.monotonic() < deadline:
            waiting = not self.beats or (self.beats[0][0] == "settle" and self.asks)
            if not self.beats and self.prompts:
                self.begin(self.prompts.popleft())
                continue
            self.hear(1.0 if waiting else self.chance.choice((0.0, 0.0, 0.001, 0.004)))
            if not waiting and self.goes_on():
                self.play(*self.beats.popleft())

    def goes_on(self) -> bool:
        """Whether there is a turn, and somebody to hear of it."""
        return bool(self.beats) and not self.ended

    def begin(self, prompt: dict[str, object]) -> None:
        """Choose what the turn will be."""
        self.beats.append(("init",))
        self.beats.append(("echo", str(prompt.get("uuid", ""))))
        kinds = (
            "deltas",
            "deltas",
            "assistant",
            "assistant",
            "odd",
            "broken",
            "big",
            "hook",
            "ask",
        )
        weights = (4, 4, 6, 6, 2, 1, 1, 2, 4)
        for kind in self.chance.choices(
            kinds, weights, k=self.chance.randrange(self.most // 6, self.most)
        ):
            self.beats.append((kind,))
            if kind == "ask" and self.chance.random() < 0.5:
                self.beats.append(("settle",))
        self.beats += [("settle",), ("result", "success")]

    def interrupt(self) -> None:
        """Give the turn up, and with it what was asked."""
        for id_ in sorted(self.asks):
            self.say(type="control_cancel_request", request_id=id_)
        self.asks.clear()
        if self.beats:
            self.beats.clear()
            self.play("result", "error_during_execution")

    def ids(self) -> dict[str, object]:
        """What every message has."""
        self.count += 1
        uuid = f"{self.number:08x}-0000-4000-8000-{self.count:012x}"
        return {"session_id": self.session_id, "uuid": uuid}

    def play(self, kind: str, detail: str = "") -> None:
        """One step of a turn."""
        match kind:
            case "init":
                mode = {"permissionMode": "default", "claude_code_version": "2.1.325"}
                self.say(type="system", subtype="init", cwd="/", tools=[], **mode, **self.ids())
            case "echo":
                message = {"role": "user", "content": "text"}
                ids = {"session_id": self.session_id, "uuid": detail}
                self.say(type="user", message=message, isReplay=True, **ids)
            case "deltas":
                for _ in range(self.chance.randrange(1, 12)):
                    delta = {"type": "text_delta", "text": "word "}
                    event = {"type": "content_block_delta", "index": 0, "delta": delta}
                    self.say(type="stream_event", event=event, **self.ids())
            case "assistant" | "big":
                self.assistant(1 if kind == "assistant" else 20_000)
            case "odd":
                self.say(type="weather", data={"a": [1, None, "\u2028 \ud83d\ude00"]}, **self.ids())
            case "broken":
                self.write(
                    self.chance.choice(
                        (b"Warning: no JSON", b'{"type":"assistant"', b'{"a":"\xff\xfe"}', b"[1,2]")
                    )
                )
            case "hook":
                hook = {"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {}}
                self.ask("hook_callback", callback_id=WATCHING_HOOK, input=hook)
            case "ask":
                for _ in range(self.chance.randrange(1, 4)):
                    call = {"tool_name": "Bash", "input": {"command": f"touch {self.count}"}}
                    self.ask("can_use_tool", tool_use_id=f"toolu_{self.count}", **call)
            case "result":
                ending = {"is_error": detail != "success", "result": "done", "total_cost_usd": 0.5}
                self.say(type="result", subtype=detail, **ending, **self.ids())
            case _:
                pass

    def assistant(self, size: int) -> None:
        """A message of the model."""
        block = {"type": "text", "text": f"{self.count} " + "words " * size}
        message = {"id": "m", "role": "assistant", "model": "x", "content": [block]}
        self.say(type="assistant", message=message, parent_tool_use_id=None, **self.ids())

    def ask(self, subtype: str, **request: object) -> None:
        """Ask, and go on."""
        self.count += 1
        id_ = f"{self.number}-{self.count}"
        self.asks.add(id_)
        self.say(type="control_request", request_id=id_, request={"subtype": subtype, **request})


def number() -> int:
    """The process number; in a namespace of its own, one from the mark that the runner gives."""
    if os.getppid() > 1:
        return os.getpid()
    mark = next(name for name in os.environ if name.startswith("QUARTERDECK_RUN_"))
    return int(mark[-8:], 16) | 1 << 31


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it; a reader that is gone is the end."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        os._exit(1)


def main(arguments: list[str]) -> None:
    """Live one life."""
    config = json.loads(Path(arguments[0]).read_bytes())
    given = [value for name, value in pairwise(arguments) if name in {"--resume", "--session-id"}]
    session_id = given[0] if given else config["session_id"]
    cli = Cli(Path(config["folder"]), config["seed"], session_id, config["beats"])
    cli.live()


if __name__ == "__main__":
    main(sys.argv[1:])
