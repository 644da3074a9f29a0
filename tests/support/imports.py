"""Sessions that somebody had in a terminal: on the disk of a home, to be taken in by the hub."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from support.session_files import assistant, dump, user


def leave(home: Path, cwd: str, turns: int = 1) -> None:
    """Leave a session there, of so many prompts and answers."""
    folder = home / ".claude" / "projects" / cwd.replace("/", "-")
    folder.mkdir(parents=True)
    session = str(uuid4())
    place = {"cwd": cwd, "sessionId": session}
    lines = []
    for turn in range(turns):
        number = 2 * turn + 1
        before = number - 1 if turn else None
        lines.append(user(number, f"Prompt {turn} in {cwd}", before, **place))
        lines.append(assistant(number + 1, f"Answer {turn}.\n\n" + "more " * 30, number, **place))
    (folder / f"{session}.jsonl").write_bytes(b"\n".join(map(dump, lines)) + b"\n")
