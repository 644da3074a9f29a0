"""`quarterdeck replay`: show a recording as `run` would have shown it.

Owns the pace, and what is shown of the other direction: prompts and answers to permission requests.
`links.recorder` owns the format. No CLI is started.
"""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quarterdeck.cli.exits import Exit
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.output import write_all
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.domain.errors import RecordingError
from quarterdeck.links.recorder import Record
from quarterdeck.wire.codec import from_cli, to_cli
from quarterdeck.wire.content import decode_content, text_of
from quarterdeck.wire.outbound import Prompt

_record = msgspec.json.Decoder(Record).decode


def replay(file: Path, *, speed: float, longest_pause: float, json_lines: bool) -> int:
    """Show the recording; returns the exit code. Raises `RecordingError` for an invalid one."""
    screen = Screen(consoles.stdout())
    shown = 0
    for number, record in enumerate(_records(file), 1):
        if speed > 0 and record.t > shown:
            time.sleep(min((record.t - shown) / 1000 / speed, longest_pause))
        shown = max(shown, record.t)
        if json_lines:
            _pass_on(record, number)
        else:
            _show(record, number, screen)
    return Exit.SUCCESS


def _records(file: Path) -> Iterator[Record]:
    number = 0
    try:
        with file.open("rb") as lines:
            for line in lines:
                number += 1
                if line.strip():
                    yield _record(line)
    except OSError as error:
        raise RecordingError(f"{file}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordingError(f"{file}, line {number}: {error}") from error
    if number == 0:
        raise RecordingError(f"{file}: the recording is empty")


def _data(record: Record, number: int) -> bytes:
    if record.line is not None:
        return record.line.encode()
    try:
        return base64.b64decode(record.base64 or "", validate=True)
    except ValueError as error:
        raise RecordingError(f"line {number} of the recording: {error}") from error


def _pass_on(record: Record, number: int) -> None:
    if record.dir == "out":
        end = b"" if record.partial else b"\n"
        write_all(sys.stdout.fileno(), _data(record, number) + end)


def _show(record: Record, number: int, screen: Screen) -> None:
    match record.dir:
        case "out":
            data = _data(record, number)
            if data.strip():
                screen.show(from_cli(data))
        case "in":
            message = to_cli(_data(record, number))
            if isinstance(message, Prompt):
                screen.echo_prompt(text_of(decode_content(message.message.content)))
        case "meta":
            if record.event == "resumed":
                screen.note("the connection was lost and restored")
            elif record.event == "closed" and (record.exit_code or record.signal):
                screen.note(f"the CLI exited: {record.reason or ''}", "red")
