"""What still runs after a turn, from the messages alone."""

from __future__ import annotations

from quarterdeck.agent.background import Background
from quarterdeck.wire.codec import from_cli
from support import lines

STARTED = lines.line(
    type="system", subtype="task_started", task_id="t1", tool_use_id="toolu_1", description="look"
)


def tool_result(call: str) -> bytes:
    block = {"type": "tool_result", "tool_use_id": call, "content": "done"}
    return lines.line(type="user", message={"role": "user", "content": [block]}, uuid="u")


def seen(*said: bytes) -> Background:
    background = Background()
    for line in said:
        background.observe(from_cli(line.rstrip()))
    return background


def test_a_background_task_runs_until_its_notification() -> None:
    notice = lines.line(
        type="system", subtype="task_notification", task_id="t1", status="completed", uuid="n"
    )
    said = (lines.init(), STARTED, tool_result("toolu_1"), lines.result("r"))
    assert not seen(*said).quiet
    assert not seen(*said, notice).quiet  # it owes a report
    assert seen(*said, notice, lines.init(uuid="i2"), lines.result("r2")).quiet


def test_a_subagent_in_the_foreground_has_ended_with_its_result() -> None:
    inner = lines.assistant("looking", "a", parent="toolu_1")
    said = (lines.init(), STARTED, inner, tool_result("toolu_1"), lines.result("r"))
    assert seen(*said).quiet
