"""The parity table: rows of rules and calls, what Claude Code makes of them, and what we do.

`tests/policy/parity.toml` is the one source. From it come the tests of our own rules, the session
that asks the real CLI, and the table in the reference. To write the table anew:

    PYTHONPATH=tests python -m support.parity
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.domain.structs import Value

FILE = Path(__file__).parents[1] / "policy" / "parity.toml"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "policy.md"
BEGIN = (
    "<!-- the parity table: written by tests/support/parity.py from tests/policy/parity.toml -->"
)
END = "<!-- end of the parity table -->"
OLDEST, NEWEST = "2.1.37", "2.1.325"
MAIN = {
    "Bash": "command",
    "Read": "file_path",
    "Edit": "file_path",
    "Write": "file_path",
    "WebFetch": "url",
    "Agent": "subagent_type",
    "Glob": "path",
    "mcp__calc__add": "a",
    "mcp__calc__sub": "a",
    "mcp__clock__now": "a",
}
"""The member of a tool's input that a row gives."""

MORE: dict[str, dict[str, object]] = {
    "Bash": {"description": "a probe"},
    "Edit": {"old_string": "text", "new_string": "words"},
    "Write": {"content": "text\n"},
    "WebFetch": {"prompt": "what is it"},
    "Agent": {"description": "a probe", "prompt": "say nothing"},
    "Glob": {"pattern": "*"},
}
"""What else a call needs to be one."""


class Row(Value):
    """One line of the table."""

    group: str
    session: str
    """Rows with the same name share one session of the real CLI, with the rules of all of them."""

    tool: str
    call: str
    ours: str
    """`allow`, `deny`, `ask` (a rule asks), `open` (no rule decides), `free` (none is needed)."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    oldest: str | None = None
    """What the oldest CLI does: `runs`, `asks`, `denies`. None: it cannot be seen from outside."""

    newest: str | None = None
    note: str = ""

    @property
    def rules(self) -> dict[str, tuple[str, ...]]:
        """The rules by what they are for."""
        return {"allow": self.allow, "ask": self.ask, "deny": self.deny}

    @property
    def input(self) -> dict[str, object]:
        """The input of the call."""
        return {MAIN[self.tool]: self.call, **MORE.get(self.tool, {})}

    def seen(self, version: str) -> str | None:
        """What a version does."""
        return self.oldest if version == OLDEST else self.newest


def rows() -> list[Row]:
    """All rows, in the order of the table."""
    groups: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))["group"]
    return [
        msgspec.convert(
            {"group": group["name"], "session": group["session"], **row}, type=Row, strict=True
        )
        for group in groups
        for row in group["row"]
    ]


def filled(value: object, places: dict[str, str]) -> Any:
    """A value with `{cwd}`, `{home}` and `{outside}` replaced in all of its texts."""
    text = msgspec.json.encode(value).decode()
    for name, path in places.items():
        text = text.replace("{" + name + "}", path)
    return msgspec.json.decode(text)


def table(lines: Iterable[Row]) -> str:
    """The rows as a page shows them."""
    out: list[str] = []
    group = ""
    for row in lines:
        if row.group != group:
            group = row.group
            out += ["", f"#### {group}", "", HEAD, "|---|---|---|---|---|---|"]
        rules = "<br>".join(
            (f"{verb}: " if verb != "allow" else "") + _code(rule)
            for verb, given in row.rules.items()
            for rule in given
        )
        called = _code(row.call) if row.tool == "Bash" else f"{row.tool} {_code(row.call)}"
        cells = (rules, called, row.oldest or "–", row.newest or "–", row.ours, row.note)
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out).strip() + "\n"


HEAD = f"| rule | call | {OLDEST} | {NEWEST} | here | |"


def _code(text: str) -> str:
    shown = text.replace("\n", "⏎").replace("\t", "⇥").replace("|", "\\|")
    fence = "``" if "`" in shown else "`"
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def written() -> str:
    """The table as it stands on the page."""
    page = PAGE.read_text(encoding="utf-8")
    return page.partition(BEGIN)[2].partition(END)[0].strip() + "\n"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(rows())}\n{END}{after}", encoding="utf-8")
