"""Rules from Claude Code's settings files, given as text.

Reading the files is the caller's. An entry that is wrong is named, and the rest still counts: the
oldest CLI throws away a whole file for one wrong rule, a deny rule among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.policy.parity import ClaudeRule
from quarterdeck.policy.specifiers import Behavior, RuleError, Source, parse_rule


class WrongEntry(Value):
    """An invalid entry of a settings file."""

    source: Source
    where: str
    """As in `permissions.allow[3]`."""

    why: str


class Imported(Value):
    """What settings files say about permissions."""

    rules: tuple[ClaudeRule, ...] = ()
    directories: tuple[str, ...] = ()
    mode: str | None = None
    """The mode that the strongest file sets."""

    wrong: tuple[WrongEntry, ...] = ()


_ORDER = (Source.USER, Source.PROJECT, Source.LOCAL, Source.FLAG, Source.POLICY, Source.SESSION)
Complain = Callable[[str, str], None]
_BAD = (msgspec.MsgspecError, UnicodeError, RecursionError)


def import_settings(texts: Mapping[Source, str]) -> Imported:
    """Read the `permissions` of settings files. Never raises."""
    rules: list[ClaudeRule] = []
    directories: dict[str, None] = {}
    mode: str | None = None
    wrong: list[WrongEntry] = []
    for source in _ORDER:
        if source not in texts:
            continue
        found = _one(source, texts[source])
        rules.extend(found.rules)
        directories.update(dict.fromkeys(found.directories))
        mode = found.mode or mode
        wrong.extend(found.wrong)
    return Imported(
        rules=tuple(rules), directories=tuple(directories), mode=mode, wrong=tuple(wrong)
    )


def _one(source: Source, text: str) -> Imported:
    wrong: list[WrongEntry] = []

    def complain(where: str, why: str) -> None:
        wrong.append(WrongEntry(source=source, where=where, why=why))

    try:
        members = msgspec.json.decode(text, type=dict[str, Raw])
        permissions = msgspec.json.decode(
            members.get("permissions", Raw(b"{}")), type=dict[str, Raw]
        )
    except _BAD as error:
        complain("", f"it is not a settings file: {error}")
        return Imported(wrong=tuple(wrong))
    rules: list[ClaudeRule] = []
    for behavior in Behavior:
        where = f"permissions.{behavior}"
        for place, entry in enumerate(_texts(permissions, behavior, where, complain)):
            if entry is None:
                complain(f"{where}[{place}]", "it is not a text")
                continue
            try:
                rules.append(ClaudeRule(rule=parse_rule(entry), behavior=behavior, source=source))
            except RuleError as error:
                complain(f"{where}[{place}]", str(error))
    where = "permissions.additionalDirectories"
    listed = _texts(permissions, "additionalDirectories", where, complain)
    mode: str | None = None
    if "defaultMode" in permissions:
        try:
            mode = msgspec.json.decode(permissions["defaultMode"], type=str)
        except _BAD:
            complain("permissions.defaultMode", "it is not a text")
    return Imported(
        rules=tuple(rules),
        directories=tuple(each for each in listed if each is not None),
        mode=mode,
        wrong=tuple(wrong),
    )


def _texts(
    permissions: dict[str, Raw], name: str, where: str, complain: Complain
) -> list[str | None]:
    """The texts of a list; None for an entry that is not a text."""
    if name not in permissions:
        return []
    try:
        entries = msgspec.json.decode(permissions[name], type=list[Raw])
    except _BAD:
        complain(where, "it is not a list")
        return []
    texts: list[str | None] = []
    for entry in entries:
        try:
            texts.append(msgspec.json.decode(entry, type=str))
        except _BAD:
            texts.append(None)
    return texts
