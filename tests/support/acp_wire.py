"""What goes over the wire between a client of ACP and `quarterdeck acp`.

A test says with `@shows(CLIENT, PART…)` what it shows. The fixture `wire` checks after it that each
part has been on the wire, and the table of the how-to is made from these decorators. So no client
is said to do what it was not seen to do.

A client that is another program gets this file as its agent. It passes on every line, and notes
what it has seen:

    python acp_wire.py NOTES [--without-resume] COMMAND…

It imports nothing of ours: it is started often.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

Line = dict[str, Any]
MEGABYTES_10 = 10 * 1024 * 1024

PARTS = {
    "new": "session/new",
    "list": "session/list",
    "prompt": "session/prompt",
    "cancel": "session/cancel",
    "close": "session/close",
    "load": "session/load",
    "resume": "session/resume",
    "fork": "session/fork",
    "permissions": "session/request_permission execute",
    "lasting ones": "chosen allow_always",
    "plan review": "session/request_permission switch_mode",
    "questions as forms": "elicitation/create",
    "else as options": "session/request_permission question",
    "mode": "session/set_mode",
    "model": "session/set_config_option model",
    "effort": "session/set_config_option effort",
    "plan": "session/update plan",
    "usage": "session/update usage_update",
    "commands": "session/update available_commands_update",
    "a new title": "session/update session_info_update",
    "answered elsewhere": "$/cancel_request of the agent",
    "lines of 10 MB": "10 MB of the client",
}
"""The parts of what an editor can do, and what is on the wire then. Rows of the how-to are lists
of these."""

F = TypeVar("F", bound=Callable[..., object])


def shows(client: str, *parts: str) -> Callable[[F], F]:
    """What a test shows, and with which client."""
    assert set(parts) <= PARTS.keys(), parts

    def mark(test: F) -> F:
        vars(test)["shows"] = (client, parts)
        return test

    return mark


def shown_in(*modules: object) -> dict[str, set[str]]:
    """By client, the parts that the tests of these modules show."""
    found: dict[str, set[str]] = {}
    for module in modules:
        for test in vars(module).values():
            if callable(test) and hasattr(test, "shows"):
                client, parts = test.shows
                found.setdefault(client, set()).update(parts)
    return found


class Wire:
    """What was seen; read from the notes of other processes, too."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        self._facts: dict[str, None] = {}
        self._offered: dict[object, dict[str, str]] = {}

    @property
    def facts(self) -> list[str]:
        """All that was seen, each once; what another process noted comes last."""
        noted = self.notes.read_text().splitlines() if self.notes.exists() else []
        return list(dict.fromkeys([*self._facts, *noted]))

    def agent(self, *command: str, resume: bool = True) -> list[str]:
        """A command line that notes what goes over the wire."""
        without = () if resume else ("--without-resume",)
        return [sys.executable, "-S", __file__, str(self.notes), *without, *command]

    def check(self, test: object) -> None:
        """What a test says that it shows has been on the wire."""
        _, parts = getattr(test, "shows", ("", ()))
        missing = [part for part in parts if PARTS[part] not in self.facts]
        assert not missing, f"not on the wire: {missing}; but {self.facts}"

    def take(self, line: Line, *, of_client: bool, size: int = 0) -> list[str]:
        """Note a line; gives what was not seen before."""
        new = [fact for fact in self._read(line, of_client, size) if fact not in self._facts]
        self._facts.update(dict.fromkeys(new))
        return new

    def _read(self, line: Line, of_client: bool, size: int) -> Iterator[str]:
        params = line.get("params") or {}
        if size > MEGABYTES_10:
            yield f"10 MB of the {'client' if of_client else 'agent'}"
        match line.get("method"):
            case "session/update":
                yield f"session/update {params['update']['sessionUpdate']}"
            case "session/set_config_option":
                yield f"session/set_config_option {params['configId']}"
            case "session/request_permission":
                options = {each["optionId"]: each["kind"] for each in params["options"]}
                self._offered[line["id"]] = options
                kind = "question" if "skip" in options else params["toolCall"]["kind"]
                yield f"session/request_permission {kind}"
            case "$/cancel_request":
                yield f"$/cancel_request of the {'client' if of_client else 'agent'}"
            case None if of_client and line.get("id") in self._offered:
                outcome = (line.get("result") or {}).get("outcome") or {}
                offered = self._offered.pop(line["id"])
                if (chosen := outcome.get("optionId")) in offered:
                    yield f"chosen {offered[chosen]}"
            case str(method):
                yield method
            case _:
                pass


# --- as a process --------------------------------------------------------------------------------


def main(notes: Path, command: list[str], *, resume: bool) -> int:
    """Be the agent of a client: pass lines on in both directions, and note what is new."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    wire, lock = Wire(notes), threading.Lock()
    greeting: list[object] = []

    def note(data: bytes, *, of_client: bool) -> bytes:
        line = json.loads(data)
        with lock, notes.open("a") as file:
            file.writelines(
                f"{fact}\n" for fact in wire.take(line, of_client=of_client, size=len(data))
            )
        if line.get("method") == "initialize":
            greeting.append(line["id"])
        elif not of_client and not resume and "result" in line and line.get("id") in greeting:
            del line["result"]["agentCapabilities"]["sessionCapabilities"]["resume"]
            return json.dumps(line).encode() + b"\n"
        return data

    def pass_on(source: IO[bytes], to: IO[bytes], *, of_client: bool) -> None:
        try:
            for data in source:
                to.write(note(data, of_client=of_client))
                to.flush()
            to.close()
        except OSError:
            pass  # the reader is gone

    assert process.stdin is not None
    assert process.stdout is not None
    given = (sys.stdin.buffer, process.stdin)
    threading.Thread(target=pass_on, args=given, kwargs={"of_client": True}, daemon=True).start()
    pass_on(process.stdout, sys.stdout.buffer, of_client=False)
    return process.wait()


if __name__ == "__main__":
    NOTES, *COMMAND = sys.argv[1:]
    RESUME = COMMAND[0] != "--without-resume"
    sys.exit(main(Path(NOTES), COMMAND if RESUME else COMMAND[1:], resume=RESUME))
