"""Sessions such as a CLI leaves on disk: all the kinds of lines that a real one writes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from uuid import UUID

from support.session_files import Disk, Json


def uuid_of(dice: random.Random) -> str:
    return str(UUID(int=dice.getrandbits(128), version=4))


def turn(dice: random.Random, session_id: str, cwd: str, parent: str | None, n: int) -> list[Json]:
    """One turn: a prompt, what surrounds it, a thought, two calls at once, an answer."""
    frame = {
        "isSidechain": False,
        "userType": "external",
        "cwd": cwd,
        "sessionId": session_id,
        "version": "2.1.325",
        "gitBranch": "main",
    }
    lines: list[Json] = []
    last = parent

    def entry(kind: str, **members: object) -> str:
        nonlocal last
        uuid = uuid_of(dice)
        stamp = f"2026-03-{1 + n % 28:02d}T10:{len(lines):02d}:00.000Z"
        head = {"parentUuid": last, **frame, "type": kind, "uuid": uuid, "timestamp": stamp}
        lines.append({**head, **members})
        last = uuid
        return uuid

    def response(*content: Json) -> str:
        body = {
            "id": f"msg_{uuid_of(dice)[:8]}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-6",
            "content": list(content),
            "stop_reason": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        return entry("assistant", message=body, requestId="req_1")

    lines.append({"type": "queue-operation", "operation": "enqueue", "sessionId": session_id})
    prompt = entry("user", message={"role": "user", "content": f"Prompt {n}: fix the näme {n}"})
    entry("attachment", attachment={"type": "environment", "snapshot": {}})
    snapshot = {"messageId": prompt, "trackedFileBackups": {}, "timestamp": "2026-03-01T10:00:00Z"}
    lines.append({"type": "file-history-snapshot", "messageId": prompt, "snapshot": snapshot})
    response({"type": "thinking", "thinking": "hm", "signature": "s"})
    for name in ("Read", "Bash"):
        call = f"toolu_{uuid_of(dice)[:8]}"
        given = {"file_path": f"/r/{n}.py"} if name == "Read" else {"command": f"pytest -k t{n}"}
        source = response({"type": "tool_use", "id": call, "name": name, "input": given})
        result = {"type": "tool_result", "tool_use_id": call, "content": f"gave {n}"}
        entry(
            "user",
            message={"role": "user", "content": [result]},
            toolUseResult={"stdout": f"gave {n}"},
            sourceToolAssistantUUID=source,
        )
    response({"type": "text", "text": f"Answer {n}: done 😀"})
    entry("user", message={"role": "user", "content": "Caveat: for the model"}, isMeta=True)
    lines.append({"type": "last-prompt", "lastPrompt": f"Prompt {n}", "sessionId": session_id})
    return lines


MESSAGES = 7
"""So many of a turn's lines were said: prompt, thought, two calls with results, answer."""


def left_session(disk: Disk, number: int, turns: int = 2) -> Path:
    """A session that somebody had in a terminal, long ago."""
    dice = random.Random(number)
    session_id = uuid_of(dice)
    cwd = f"/home/ann/project-{number % 7}"
    lines: list[Json] = []
    for n in range(turns):
        parent = next((str(line["uuid"]) for line in reversed(lines) if "uuid" in line), None)
        lines += turn(dice, session_id, cwd, parent, number * 10 + n)
    folder = disk.folder(cwd.replace("/", "-"))
    return disk.session(lines, session_id=session_id, folder=folder)


def go_on(path: Path, number: int) -> None:
    """The session had one turn more."""
    dice = random.Random(number)
    with path.open("a", encoding="utf-8") as file:
        for line in turn(dice, path.stem, "/home/ann/project", None, number):
            file.write(json.dumps(line) + "\n")
