"""The page of the alarms names every alarm, and every time of the watchdog with its default."""

from __future__ import annotations

from quarterdeck.hub import peer_prompts
from quarterdeck.hub.supervision import crashes, watchdog
from quarterdeck.hub.supervision.watchdog import Timeouts
from support.pages import page

TEXT = page("docs/reference/alarms.md").text


def test_every_alarm_is_documented() -> None:
    alarms = {
        watchdog.SILENT_AFTER_TOOL,
        watchdog.NO_REACTION,
        watchdog.NO_RESULT,
        watchdog.NO_EXIT,
        crashes.OUTPUT_CLOSED,
        crashes.EMPTY_RESUME,
        crashes.CRASH_LOOP,
        watchdog.UNSTOPPABLE,
        peer_prompts.PEER_PROMPT,
    }
    rows = {line.split("`")[1] for line in TEXT.splitlines() if line.startswith("| `")}
    assert alarms <= rows
    assert rows == alarms | set(Timeouts.__struct_fields__)


def test_every_time_has_its_default() -> None:
    for name, value in zip(Timeouts.__struct_fields__, Timeouts.__struct_defaults__, strict=True):
        shown = str(value).lower() if isinstance(value, bool) else f"{value:g}"
        assert f"| `{name}` | {shown} |" in TEXT
