"""The differences between two configurations, as text that may be logged.

Pure. The service reloads the file and applies the changes. A secret is named and never shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from quarterdeck.config.settings import Settings
from quarterdeck.config.shape import ANY_NAME, Setting, all_settings
from quarterdeck.domain.structs import Value

HIDDEN = "…"


class Change(Value):
    """One setting that is different. `at_start`: it is taken over at the next start only."""

    name: str
    text: str
    at_start: bool = False


def changes_between(before: Settings, after: Settings) -> list[Change]:
    """All that is different, by the names of the settings."""
    old, new = dict(values_of(before)), dict(values_of(after))
    found: list[Change] = []
    for key in [*new, *(key for key in old if key not in new)]:
        was, now = old.get(key), new.get(key)
        if was is not None and now is not None and was[1] == now[1]:
            continue
        setting = (now or was or ("", None))[0]
        assert isinstance(setting, Setting)
        texts = [_format(setting, each[1]) if each else "not there" for each in (was, now)]
        if was is None or now is None:
            # A table was added or removed: settings at their default are not listed.
            there = now or was
            if there is not None and there[1] == setting.default and not setting.required:
                continue
        text = f"{key}: {texts[0]} -> {texts[1]}"
        if setting.secret:
            text = f"{key}: changed"
        found.append(Change(name=key, text=text, at_start=setting.at_start))
    return found


def values_of(settings: Settings) -> Iterator[tuple[str, tuple[Setting, Any]]]:
    """Every setting with its value, by its name: those in named tables and lists, too."""
    for setting in all_settings():
        yield from _values(settings, setting, setting.path, "")


def _values(
    of: Any, setting: Setting, rest: tuple[str, ...], name: str
) -> Iterator[tuple[str, tuple[Setting, Any]]]:
    if not rest:
        yield name, (setting, of)
        return
    head, *tail = rest
    match of:
        case dict():
            assert head == ANY_NAME
            for key, each in of.items():
                yield from _values(each, setting, tuple(tail), f"{name}.{key}")
        case tuple():
            for number, each in enumerate(of, 1):
                yield from _values(each, setting, rest, f"{name}[{number}]")
        case Struct():
            inner = f"{name}.{head}" if name else head
            yield from _values(getattr(of, head), setting, tuple(tail), inner)
        case None:
            return  # a table that is not there


def _format(setting: Setting, value: Any) -> str:
    if setting.secret and value:
        return HIDDEN
    match value:
        case None | () | {}:
            return "none"
        case tuple():
            return ", ".join(map(str, value))
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case _:
            return str(value)
