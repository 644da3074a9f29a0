"""Help texts of programs: the options that they list, and what a table lacks of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from quarterdeck.policy.shell.tables import Option, Table

SECONDS = 20
_LINE = re.compile(r"\s{0,12}(-.*)")
_NAME = re.compile(
    r"(--[A-Za-z0-9][\w-]*|-[^\s,=\[<-])"
    r"(\[=?[^\]]*\]|=\S+|\s<[^>]*>|\s[A-Z][A-Z0-9_-]*\b)?(?:\s*(?:,|\|| or )\s*|(?=\s|$))"
)
_NUMBER = re.compile(r"\d+\.\d+")


@dataclass(frozen=True)
class Listed:
    """An option as a help text lists it."""

    name: str
    value: bool = False
    """Whether a value is shown with it that is not optional."""


def listed_options(text: str) -> Iterator[Listed]:
    """The options at the beginnings of the lines of a help text."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        for name in _NAME.finditer(re.split(r"\s{2,}|\t", found[1])[0]):
            yield Listed(name[1], name[2] is not None and not name[2].startswith("["))


def checkable(table: Table) -> bool:
    """Whether a help text says what the table must know."""
    return not (table.plain or table.long_with_one_dash or table.subcommands or table.loose)


def differences(table: Table, text: str) -> Iterator[str]:
    """Options of a help text that the table does not have, or that it gives no value."""
    for listed in dict.fromkeys(listed_options(text)):
        option = table.options.get(listed.name)
        if option is None:
            if not (table.numeric and listed.name[1:].isdigit()):
                yield f"{listed.name} is not in the table"
        elif listed.value and not _may_take(option):
            yield f"{listed.name} takes a value, and has none in the table"


def _may_take(option: Option) -> bool:
    return bool(option.values) or option.optional


def said(name: str, option: str) -> str:
    """The output of a program with one option; empty if it cannot be had."""
    path = shutil.which(name)
    if path is None:
        return ""
    environment = {**os.environ, "LC_ALL": "C", "COLUMNS": "200", "PAGER": "cat"}
    try:
        done = subprocess.run(
            [path, option],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode(errors="replace")


def help_of(name: str, table: Table) -> str:
    """The help text of an installed program, if its table says that it has one."""
    return said(name, "--help") if "--help" in table.options else ""


def is_described_version(name: str, table: Table) -> bool:
    """Whether the installed program is the version that its table describes."""
    number = _NUMBER.search(table.about)
    version = said(name, "--version") if "--version" in table.options else ""
    return number is not None and re.search(rf"\b{re.escape(number[0])}\b", version) is not None
