"""What must be remembered of a link that can lose its connection and find it again.

The SDK knows no reconnect. So the transport does for it what a controller has to do: drop what the
CLI sends twice, send again what may not have arrived, and ask for permission requests that were
made while nobody listened. Pure: lines in, lines out; `transport` sends them.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any
from uuid import uuid4

KNOWN = 4096
"""Uuids kept. A CLI sends at most its last 1000 messages again."""

SENT = 256
"""Lines kept for sending again; far more than can be on the way when a connection is lost."""

Message = dict[str, Any]  # the SDK's type for a message, whatever it holds


class Recall:
    """The memory of one resumable link."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._asked: dict[str, None] = {}
        self._answers_and_prompts: deque[str] = deque(maxlen=SENT)
        self._open: dict[str, str] = {}
        self._recoveries: set[str] = set()

    def outgoing(self, data: str) -> str:
        """Note lines that will be sent; a prompt gets a uuid, so that it may be sent again."""
        return "".join(self._note(line) for line in data.split("\n") if line.strip())

    def incoming(self, message: Message) -> list[Message]:
        """What the program shall see of this message: itself, nothing, or what it brought back."""
        match message:
            case {"type": "control_response", "response": {"request_id": str(request_id)}}:
                self._open.pop(request_id, None)
                if request_id in self._recoveries:
                    self._recoveries.discard(request_id)
                    return self._recovered(message["response"])
            case {"type": "control_request", "request_id": str(request_id)}:
                if request_id in self._asked:
                    return []
                _remember(self._asked, request_id)
            case {"uuid": str(uuid)}:
                if uuid in self._known:
                    return []
                _remember(self._known, uuid)
        return [message]

    def again(self) -> str:
        """The lines to send when the connection is back.

        All of them are safe to repeat: the CLI ignores a second answer and a prompt whose uuid it
        knows. An interrupt is not repeated, since it would stop what came after.
        """
        request_id = f"quarterdeck-recovery-{uuid4()}"
        self._recoveries.add(request_id)
        # A second `initialize` changes nothing, and its answer lists the open permission requests.
        hello = {"subtype": "initialize"}
        recovery = {"type": "control_request", "request_id": request_id, "request": hello}
        return "".join([*self._open.values(), *self._answers_and_prompts, _line(recovery)])

    def _note(self, line: str) -> str:
        try:
            message = json.loads(line)
        except ValueError:
            return f"{line}\n"  # not ours to judge
        line = _line(message)
        match message:
            case {"type": "control_request", "request": {"subtype": "interrupt"}}:
                pass
            case {"type": "control_request", "request_id": str(request_id)}:
                self._open[request_id] = line
            case {"type": "user"}:
                line = _line({"uuid": str(uuid4()), **message})
                self._answers_and_prompts.append(line)
            case _:
                self._answers_and_prompts.append(line)
        return line

    def _recovered(self, response: Message) -> list[Message]:
        inner = response.get("response")
        source = inner if isinstance(inner, dict) else response
        pending = source.get("pending_permission_requests", [])
        found = [each for each in pending if isinstance(each, dict)]
        return [message for each in found for message in self.incoming(each)]


def _remember(memory: dict[str, None], entry: str) -> None:
    memory[entry] = None
    if len(memory) > KNOWN:
        del memory[next(iter(memory))]


def _line(message: Message) -> str:
    return json.dumps(message) + "\n"
