"""The state that a resumable link needs for the SDK, which cannot reconnect.

The transport drops messages that the CLI sends twice, repeats requests whose answers were lost, and
asks for permission requests that came while the connection was down. The link itself resends lines
that may not have arrived. Pure: lines in, lines out; `transport` sends them.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

KNOWN = 4096
"""Uuids kept. A CLI sends at most its last 1000 messages again."""

Message = dict[str, Any]  # the SDK's type for a message, whatever it holds


class ReconnectState:
    """The memory of one resumable link."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._asked: dict[str, None] = {}
        self._open: dict[str, Message] = {}
        self._recoveries: set[str] = set()

    def note_outgoing(self, data: str) -> str:
        """Note lines that will be sent. A prompt gets a uuid: by it the CLI knows a repetition."""
        return "".join(self._note(line) for line in data.split("\n") if line.strip())

    def filter_incoming(self, message: Message) -> list[Message]:
        """The messages for the program: the message itself, nothing, or the requests that it
        lists.
        """
        match message:
            case {"type": "control_response", "response": {"request_id": str(request_id)}}:
                return self._take_answer(request_id, message)
            case {"type": "control_request", "request_id": str(request_id)}:
                return [message] if _is_new(self._asked, request_id) else []
            case {"uuid": str(uuid)}:
                return [message] if _is_new(self._known, uuid) else []
            case _:
                return [message]

    def lines_to_resend(self) -> str:
        """The lines to send after a reconnect: open requests, and a recovery request.

        An interrupt is not repeated: it would stop a later turn.
        """
        request_id = f"quarterdeck-recovery-{uuid4()}"
        self._recoveries.add(request_id)
        # A second `initialize` changes nothing, and its answer lists the open permission requests.
        hello = {"subtype": "initialize"}
        recovery = {"type": "control_request", "request_id": request_id, "request": hello}
        return "".join(map(_line, (*self._open.values(), recovery)))

    def _note(self, line: str) -> str:
        try:
            message = json.loads(line)
        except ValueError:
            return f"{line}\n"  # not ours to judge
        match message:
            case {"type": "control_request", "request": {"subtype": "interrupt"}}:
                pass
            case {"type": "control_request", "request_id": str(request_id)}:
                self._open[request_id] = message
            case {"type": "user"}:
                return _line({"uuid": str(uuid4()), **message})
        return f"{line}\n"

    def _take_answer(self, request_id: str, message: Message) -> list[Message]:
        response = message["response"]
        if request_id in self._recoveries:
            inner = response.get("response")
            pending = (inner if isinstance(inner, dict) else response).get(
                "pending_permission_requests", []
            )
            found = [each for each in pending if isinstance(each, dict)]
            return [new for each in found for new in self.filter_incoming(each)]
        request = self._open.pop(request_id, None)
        if self._recoveries and response.get("error") == "Already initialized" and request:
            # The first answer was lost with the connection; the second says that all is well.
            success = {"subtype": "success", "request_id": request_id, "response": {}}
            return [{**message, "response": success}]
        return [message]


def _is_new(memory: dict[str, None], entry: str) -> bool:
    if entry in memory:
        return False
    memory[entry] = None
    if len(memory) > KNOWN:
        del memory[next(iter(memory))]
    return True


def _line(message: Message) -> str:
    return json.dumps(message) + "\n"
