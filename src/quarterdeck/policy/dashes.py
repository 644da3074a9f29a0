"""Patterns that could find a file whose name is an option: `wc *` with a file `--files0-from=x`.

An effect of that kind is real only if there is such a file. A caller that can look knows, unless
the script itself may make one.
"""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.policy.shell import EffectKind, Part, Script
from quarterdeck.policy.trees import LookBelow


def resolve_dashes(script: Script, cwd: str | None, below: LookBelow | None) -> Script:
    """The script without such effects where no name begins with a dash. Others do not just look."""
    if not [each for part in script.parts for each in part.effects if each.by_name]:
        return script
    changes = any(map(_writes, script.parts))
    parts = [
        part
        if not any(effect.by_name for effect in part.effects)
        else _without(part)
        if not changes and below is not None and _has_no_dash(part, cwd, below)
        else replace(part, looks=False)
        for part in script.parts
    ]
    return replace(script, parts=tuple(parts))


def _without(part: Part) -> Part:
    return replace(part, effects=tuple(each for each in part.effects if not each.by_name))


def _writes(part: Part) -> bool:
    return bool(part.writes) or any(
        each.kind is not EffectKind.READS and not each.by_name for each in part.effects
    )


def _has_no_dash(part: Part, cwd: str | None, below: LookBelow) -> bool:
    folders = part.dirs if part.dirs is not None else (cwd,)
    for folder in folders:
        tree = below(folder) if folder is not None and folder.startswith("/") else None
        if tree is None or any(name.startswith("-") for name in tree.names):
            return False
    return bool(folders)
