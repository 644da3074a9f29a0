"""Policies that come with us, by name. Each is a file in this folder, examples included.

A session names one, or a file extends one and adds its own rules. Parts that several presets have
in common are files, too, and a preset extends them as any file does. They are read when they are
first used.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from quarterdeck.policy.file import read_policy
from quarterdeck.policy.policy import Policy

PRESETS = ("read-only", "careful", "edit-freely", "trusted-repo")
"""Whole policies, the strictest first."""

PARTS = ("secrets", "looking", "agent-tools", "shared", "system")
"""What presets consist of. A file may extend them, too."""


@cache
def preset_text(name: str) -> str | None:
    """The file of a preset, or of a part of presets; None if there is none with that name."""
    if name not in PRESETS + PARTS:
        return None
    return (Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8")


@cache
def preset(name: str) -> Policy | None:
    """A policy that is part of Quarterdeck; None if there is none with that name."""
    text = preset_text(name)
    if text is None:
        return None
    loaded = read_policy(text, name, preset=preset)
    if loaded.policy is None:
        raise ValueError(f"the preset {name} is invalid: {loaded.flaws[0]}")
    return loaded.policy
