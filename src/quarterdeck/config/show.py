"""Settings as TOML, with the source of each. Secrets are masked.

Pure; `quarterdeck config show` prints it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from quarterdeck.config.changes import HIDDEN, values_of
from quarterdeck.config.read import Loaded
from quarterdeck.config.shape import Setting

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NUMBERED = re.compile(r"(?P<name>.+)\[(?P<number>\d+)\]")


def as_toml(loaded: Loaded) -> str:
    """All settings, by section. One that has no value is a comment."""
    tables: dict[str, list[str]] = {}
    for name, (setting, value) in values_of(loaded.settings):
        section, _, key = name.rpartition(".")
        lines = tables.setdefault(section, [_heading(section)])
        lines.append(_line(key, setting, value, loaded.sources.get(name)))
    return "\n".join("\n".join([*lines, ""]) for lines in tables.values())


def as_values(loaded: Loaded) -> dict[str, object]:
    """All settings by name, for programs."""
    return {name: _safe(setting, value) for name, (setting, value) in values_of(loaded.settings)}


def _heading(section: str) -> str:
    if found := _NUMBERED.fullmatch(section):
        return f"[[{found['name']}]]"
    return f"[{section}]"


def _line(key: str, setting: Setting, value: Any, source: str | None) -> str:
    said = source or "default"
    if value in (None, {}):
        return f"# {key} is not set"
    return f"{key} = {_literal(_safe(setting, value))}  # {said}"


def _safe(setting: Setting, value: Any) -> object:
    if not setting.secret or not value:
        return value
    return dict.fromkeys(value, HIDDEN) if isinstance(value, Mapping) else HIDDEN


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            # JSON's escapes are TOML's, but for one letter that only TOML forbids.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case tuple():
            return f"[{', '.join(map(_literal, value))}]"
        case _:
            return "{ " + ", ".join(_pairs(value)) + " }"


def _pairs(table: Mapping[str, object]) -> Iterator[str]:
    for key, value in table.items():
        yield f"{_key(key)} = {_literal(value)}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
