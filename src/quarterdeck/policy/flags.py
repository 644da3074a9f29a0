"""Flags in the words of a command, as the rules of a policy name them."""

from __future__ import annotations

from quarterdeck.policy.facts import Tri
from quarterdeck.policy.shell import Part


def has_flag(part: Part, flag: str) -> Tri:
    """Whether a part has a flag: alone, with a value, or in a group of short flags."""
    found: Tri = None if part.open_ended else False
    for word in part.words[1:]:
        text = word.literal
        if text is None:
            if not word.prefix or word.prefix.startswith("-"):
                found = None
        elif text == flag or text.startswith(f"{flag}="):
            return True
        elif _may_mean(text, flag):
            found = None
    return found


def _may_mean(text: str, flag: str) -> bool:
    if flag.startswith("--"):
        # Most programs take the beginning of a long option for all of it.
        name = text.partition("=")[0]
        return len(name) > 3 and flag.startswith(name)
    if len(flag) == 2 and flag[0] == "-":
        return len(text) > 2 and text[0] == "-" != text[1] and flag[1] in text[1:]
    return False
