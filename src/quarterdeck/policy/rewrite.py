"""Rewriting: another input in place of the agent's.

Members of the input are set or removed; flags of a command are added, removed or replaced in its
text. An input that cannot be rewritten with certainty is not rewritten: the caller asks a person.
The result is a new call, which is decided like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, field

from quarterdeck.domain.structs import DECODE_ERRORS, Value
from quarterdeck.policy.shell import Part, read


class Rewrite(Value):
    """The changes. A change that is already in place changes nothing."""

    set: dict[str, object] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    add_flags: tuple[str, ...] = ()
    remove_flags: tuple[str, ...] = ()
    replace_flags: dict[str, str] = field(default_factory=dict)

    @property
    def edits_command(self) -> bool:
        """Whether the command's text is changed."""
        return bool(self.add_flags or self.remove_flags or self.replace_flags)


class PartEdit(Value):
    """A part to edit, and the word after which flags are added."""

    part: Part
    at: int


class CannotRewrite(ValueError):
    """Why an input cannot be rewritten."""


def rewrite_input(rewrite: Rewrite, given: Raw, parts: Sequence[PartEdit]) -> Raw | None:
    """The new input; None when nothing changes. Raises `CannotRewrite`."""
    try:
        members = msgspec.json.decode(given, type=dict[str, object])
    except DECODE_ERRORS as error:
        raise CannotRewrite(f"the input cannot be read: {error}") from error
    new = {name: value for name, value in members.items() if name not in rewrite.remove}
    new |= rewrite.set
    if rewrite.edits_command:
        command = new.get("command")
        if not isinstance(command, str):
            raise CannotRewrite("there is no command in the input")
        for edited in sorted(parts, key=lambda edited: edited.part.span, reverse=True):
            command = _edit_command(rewrite, command, edited)
        new["command"] = command
    return None if new == members else Raw(msgspec.json.encode(new))


def _edit_command(rewrite: Rewrite, command: str, edited: PartEdit) -> str:
    part = edited.part
    start, end = part.span
    text, changes = command[start:end], list[tuple[int, int, str]]()
    at = _after_assignments(part, text)
    for index, word in enumerate(part.words):
        found = text.find(word.source, at)
        if found < 0 or not word.source:
            raise CannotRewrite(f"the words of {part.text!r} were not found in its text")
        at = found + len(word.source)
        literal = word.literal
        if index and literal is not None:
            if literal in rewrite.remove_flags:
                begin = found - 1 if found and text[found - 1] == " " else found
                changes.append((begin, at, ""))
            elif literal in rewrite.replace_flags:
                changes.append((found, at, rewrite.replace_flags[literal]))
        if index == edited.at:
            present = {other.literal for other in part.words}
            added = "".join(f" {flag}" for flag in rewrite.add_flags if flag not in present)
            if added:
                changes.append((at, at, added))
    for begin, stop, new in reversed(changes):
        text = text[:begin] + new + text[stop:]
    rewritten = command[:start] + text + command[end:]
    if changes and not _is_rewritten(rewrite, rewritten, start, part):
        raise CannotRewrite(f"the words of {part.text!r} were not found for certain")
    return rewritten


def _after_assignments(part: Part, text: str) -> int:
    """Where the words begin: an assignment before them may contain the same words."""
    at = 0
    for each in part.assignments:
        found = text.find(f"{each.name}=", at)
        if found < 0:
            raise CannotRewrite(f"the words of {part.text!r} were not found in its text")
        at = found + len(each.name) + 1 + len(each.value.source)
    return at


def _is_rewritten(rewrite: Rewrite, command: str, start: int, part: Part) -> bool:
    """Whether the command has now the words that it should have, and no other has changed."""
    wanted: list[str] = []
    for index, word in enumerate(part.words):
        literal = (word.literal or "") if index else ""
        if literal and literal in rewrite.remove_flags:
            continue
        wanted.append(rewrite.replace_flags.get(literal, word.source) if literal else word.source)
    present = {word.literal for word in part.words}
    added = [flag for flag in rewrite.add_flags if flag not in present]
    texts = [
        [w.source for w in each.words] for each in read(command).parts if each.span[0] == start
    ]
    return any(
        [word for word in words if word not in added]
        == [word for word in wanted if word not in added]
        and set(added) <= set(words)
        for words in texts
    )
