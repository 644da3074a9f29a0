"""What is wrong between several hubs, in words for terminals and logs. Pure.

The web app has its own texts.
"""

from __future__ import annotations

from quarterdeck.protocol.shapes import HubAlarm

_FILES = {"other_configuration": "quarterdeck.toml", "other_policy": "policy.toml"}


def alarm_text(alarm: HubAlarm) -> str:
    """An alarm as a sentence without its end."""
    return f"the hub at {alarm.hub} has another {_FILES[alarm.code]}"
