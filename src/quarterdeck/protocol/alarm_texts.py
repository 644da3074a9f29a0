"""What is wrong between several hubs, in words for terminals and logs. Pure.

The web app has its own texts.
"""

from __future__ import annotations

from quarterdeck.protocol.shapes import HubAlarm

_TEXTS = {
    "other_configuration": ("has another quarterdeck.toml", "make them alike"),
    "other_policy": ("has another policy.toml", "make them alike"),
    "unreachable": (
        "does not answer this hub",
        "set its journal.hub_address to an address that other hubs reach",
    ),
}


def alarm_text(alarm: HubAlarm) -> str:
    """An alarm as a sentence without its end."""
    return f"the hub at {alarm.hub} {_TEXTS[alarm.code][0]}"


def alarm_advice(alarm: HubAlarm) -> str:
    """What is to be done about it, without a capital and an end."""
    return _TEXTS[alarm.code][1]
