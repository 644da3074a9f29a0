"""Files that a command moves, copies or links before another one uses them under the new name.

`ln -s ~ h; cat h/.ssh/id_rsa` reads `~/.ssh/id_rsa`, and `mv .env e; cat e` shows what was in
`.env`. The order of the commands is not considered: a loop may turn it around. For every file below
a new name there is a further target: the same below the old name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.overlap import overlap
from quarterdeck.policy.shell import EffectKind, Part, Target
from quarterdeck.policy.shell.working_dir import normalize

MOST = 64
"""Further targets of one command. With more of them, it is not known what is reached."""

_LINKS = name_set("ln link mount")
_COPIES = name_set("cp mv install rsync gcp gmv ginstall ditto")


class Moved(Value):
    """One file or folder under its old and under its new name."""

    new: str
    old: Target
    link: bool
    """The new name is another name of the same file: who writes there, writes to the old one."""

    glob: bool = False
    """The new name is a pattern."""

    part: Part | None = None
    """The command that does it."""


def moved_by(parts: Iterable[Part]) -> list[Moved]:
    """All that the commands of a script move, copy or link."""
    found: list[Moved] = []
    for part in parts:
        link = part.name in _LINKS
        if not link and part.name not in _COPIES:
            continue
        sources, places = _operands(part)
        for old in sources:
            for place in places:
                for new in place.paths:
                    one = Moved(new=new, old=old, link=link, glob=place.glob, part=part)
                    found.append(one)
                    if link and (other := _from_link(old, new)) is not None:
                        found.append(msgspec.structs.replace(one, old=other))
            if len(found) > MOST * MOST:
                return found
    return found


def _operands(part: Part) -> tuple[list[Target], list[Target]]:
    """What is read, and what is written."""
    sources: dict[tuple[str, ...], Target] = {}
    places: list[Target] = []
    for effect in part.effects:
        target = effect.target
        if target is None:
            continue
        if effect.kind is EffectKind.READS:
            sources.setdefault(target.paths, target)
        elif effect.kind is EffectKind.WRITES:
            places.append(target)
    return list(sources.values()), [each for each in places if each.paths not in sources]


def _from_link(old: Target, new: str) -> Target | None:
    """A relative text in a symbolic link is relative to the folder of the link."""
    text = old.source.strip("'\"")
    if old.glob or text.startswith(("/", "~", "$")) or not new.startswith("/"):
        return None
    path = normalize(f"{new.rpartition('/')[0]}/{text}")
    return msgspec.structs.replace(old, paths=(path,))


def other_names(target: Target, moved: list[Moved], *, edit: bool) -> Iterator[Target]:
    """What a target is under its old names."""
    seen = {target.paths}
    waiting = [target]
    while waiting:
        for found in _old_names(waiting.pop(), moved, edit=edit):
            if found.paths in seen:
                continue
            seen.add(found.paths)
            if len(seen) > MOST:
                yield Target(source=target.source)
                return
            yield found
            waiting.append(found)


def _old_names(target: Target, moved: list[Moved], *, edit: bool) -> Iterator[Target]:
    for each in moved:
        if edit and not each.link:
            continue
        if target.paths == each.old.paths:
            continue
        for path in target.paths:
            rest = _rest(path, target, each)
            if rest is None:
                continue
            if not each.old.paths or each.glob:
                old = each.old
                yield msgspec.structs.replace(
                    old, source=target.source, deep=old.deep or target.deep
                )
            else:
                yield Target(
                    source=target.source,
                    paths=tuple(
                        normalize(f"{one}/{rest}") if rest else one for one in each.old.paths
                    ),
                    glob=target.glob or each.old.glob,
                    hidden=target.hidden or each.old.hidden,
                    deep=target.deep,
                    names=target.names,
                    sure=target.sure and each.old.sure,
                )


def _rest(path: str, target: Target, moved: Moved) -> str | None:
    """The way from the new name to a path; None if the path is not there."""
    new = moved.new.rstrip("/") or "/"
    if target.glob or moved.glob:
        names = [name for name in path.split("/") if name]
        there = [name for name in new.split("/") if name]
        if not overlap(there, names, hidden=True):
            return None
        return "/".join(names[len(there) :]) if not moved.glob and "**" not in names else ""
    if path == new:
        return ""
    if path.startswith(new.rstrip("/") + "/"):
        return path[len(new.rstrip("/")) + 1 :]
    if target.deep and new.startswith(path.rstrip("/") + "/"):
        return ""
    return None
