"""The lines that the benchmarks send: shaped like a real CLI's, the same for every peer."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

SESSION = "5f0c2f5e-7a53-4c2d-9a63-0d8f3c1b2a47"


def stream_lines(count: int) -> list[str]:
    """Text deltas, as they come by the hundred while a model speaks."""
    dice = random.Random(1)
    return [_delta(dice) for _ in range(count)]


def mixed_lines(count: int) -> list[str]:
    """What a busy session sends: 85 % stream events, 10 % messages of 1 to 50 kB, 5 % others."""
    dice = random.Random(2)
    makers = (_delta, _text, _tool_result, _tool_use, _task_progress)
    weights = (85, 5, 5, 3, 2)
    return [maker(dice) for maker in dice.choices(makers, weights, k=count)]


def long_line(size: int) -> list[str]:
    """One tool result with an output of `size` bytes."""
    output = "".join(f"line {n}: the quick brown fox\n" for n in range(size // 30))[:size]
    return [_line("user", _result_message("toolu_big", output), parent_tool_use_id=None)]


def write(lines: list[str], path: Path) -> None:
    """Write what the emitter will send for a prompt: the lines, and the result of the turn."""
    result = _line(
        "result",
        None,
        subtype="success",
        is_error=False,
        duration_ms=1,
        duration_api_ms=1,
        num_turns=1,
        result="done",
        stop_reason="end_turn",
        total_cost_usd=0.01,
        usage={"input_tokens": 1, "output_tokens": 1},
        modelUsage={},
        permission_denials=[],
    )
    path.write_text("".join(line + "\n" for line in (*lines, result)))


def _line(kind: str, message: Any, **more: Any) -> str:
    body = {"type": kind, "message": message, "session_id": SESSION, **more, "uuid": _uuid()}
    if message is None:
        del body["message"]
    return json.dumps(body, separators=(",", ":"))


_ids = random.Random(3)


def _uuid() -> str:
    digits = f"{_ids.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _delta(dice: random.Random) -> str:
    text = "".join(dice.choices("abcdefghij      ", k=dice.randint(4, 24)))
    event = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    }
    return _line("stream_event", None, event=event, parent_tool_use_id=None)


def _assistant(block: dict[str, Any]) -> str:
    message = {
        "id": "msg_0123456789",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [block],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 18000},
    }
    return _line("assistant", message, parent_tool_use_id=None)


def _words(dice: random.Random, count: int) -> str:
    return " ".join(
        dice.choices(("the", "test", "fails", "because", "of", "a", "missing"), k=count)
    )


def _long_text(dice: random.Random) -> str:
    """From 1 to 50 kB, short ones more often."""
    size = int(1000 * 50 ** dice.random())
    return _words(dice, size // 5)[:size]


def text_line(text: str) -> str:
    """An answer of the model."""
    return _assistant({"type": "text", "text": text})


def tool_line(command: str, description: str = "") -> str:
    """A call of a tool."""
    call = {"command": command, "description": description}
    return _assistant({"type": "tool_use", "id": "toolu_01", "name": "Bash", "input": call})


def result_line(output: str) -> str:
    """What a tool gave."""
    return _line("user", _result_message("toolu_01", output), parent_tool_use_id=None)


def _text(dice: random.Random) -> str:
    return text_line(_long_text(dice))


def _tool_use(dice: random.Random) -> str:
    return tool_line(f"pytest -x {_words(dice, 5)}", _words(dice, 6))


def _result_message(tool_use_id: str, output: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": output}
    return {"role": "user", "content": [block]}


def _tool_result(dice: random.Random) -> str:
    return result_line(_long_text(dice))


def _task_progress(dice: random.Random) -> str:
    usage = {"total_tokens": 1200, "tool_uses": 3, "duration_ms": 4000}
    more = {"task_id": "b1", "description": _words(dice, 4), "usage": usage}
    return _line("system", None, subtype="task_progress", **more)


def talk_lines(events: int, message_events: int = 500) -> list[str]:
    """A model that speaks: stream events, and after each few hundred of them the whole message."""
    dice = random.Random(5)
    found: list[str] = []
    for number in range(events // message_events):
        found += _spoken(dice, f"msg_{number:08d}", message_events)
    return found


def _spoken(dice: random.Random, name: str, events: int) -> list[str]:
    start = {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [],
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    block = {"type": "text", "text": ""}
    texts = [
        "".join(dice.choices("abcdefghij      ", k=dice.randint(4, 24))) for _ in range(events - 5)
    ]
    shown: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]
    for text in texts:
        delta = {"type": "text_delta", "text": text}
        shown.append({"type": "content_block_delta", "index": 0, "delta": delta})
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    shown += [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": events}},
        {"type": "message_stop"},
    ]
    said = [_line("stream_event", None, event=each, parent_tool_use_id=None) for each in shown]
    whole = {
        **start,
        "content": [{"type": "text", "text": "".join(texts)}],
        "stop_reason": None,
        "stop_sequence": None,
    }
    # The real CLI says the whole message when its block is complete, before the message's end.
    return [*said[:-2], _line("assistant", whole, parent_tool_use_id=None), *said[-2:]]


def progress_lines(count: int) -> list[str]:
    """Durable lines of about 300 bytes."""
    dice = random.Random(6)
    return [_task_progress(dice) for _ in range(count)]
