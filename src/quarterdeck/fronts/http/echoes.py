"""Events without what a client has already: the pictures in the CLI's echoes of prompts.

A prompt's pictures are in its event. The CLI repeats a prompt as it takes it, pictures and all, and
the journal keeps its lines as they are. Below `events`; pure.
"""

from __future__ import annotations

from typing import Any

import msgspec

_LARGE = 16 * 1024
"""Bytes of an event that is looked at: a smaller one is not worth the work."""
_REPLAY = b'"isReplay":true'
_SOURCE = b'"source"'


def without_pictures(json: bytes) -> bytes:
    """An event's JSON; of an echo, the data of pictures and documents is empty."""
    if len(json) < _LARGE or _REPLAY not in json or _SOURCE not in json:
        return json
    event: Any = msgspec.json.decode(json)
    try:
        content = event["line"]["message"]["content"]
        if event["line"]["isReplay"] is not True:
            return json
        sources = [block["source"] for block in content if "source" in block]
        for source in sources:
            if "data" in source:
                source["data"] = ""
    except (KeyError, TypeError):
        return json  # a line of another form, which is passed on as it is
    return msgspec.json.encode(event)
