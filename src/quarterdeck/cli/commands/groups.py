"""`quarterdeck --help`: the commands in groups, by what a person wants to do.

Owns the groups and their order. A command that no group names is listed last, so that none is lost.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Begin", ("demo", "doctor", "run", "serve", "top")),
    (
        "Sessions of the hub",
        (
            *("new", "ps", "attach", "send", "asks", "answer", "log", "interrupt", "resume"),
            *("fork", "rename", "worktree", "archive", "rm", "search", "export", "import"),
        ),
    ),
    ("Work without you", ("loop", "schedule")),
    ("Permissions and costs", ("policy", "audit", "usage", "budget")),
    (
        "The hub",
        (
            *("status", "stop", "service", "config", "projects", "token", "runner", "relay"),
            *(
                "acp",
                "mcp",
                "sdk",
                "telegram",
                "webhook",
                "retention",
                "backup",
                "restore",
                "journal",
            ),
        ),
    ),
    ("Claude Code without a hub", ("sessions", "record", "replay")),
)
"""The headings, and the commands below each. A name that is no command is skipped."""
OTHERS = "Other commands"
LONGEST = 1000
"""Characters of a command's first sentence: none is cut."""


class GroupedHelp(TyperGroup):
    """The app's group of commands, whose help has headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands below their headings. Called by Typer."""
        named = [name for _, names in GROUPS for name in names]
        others = tuple(name for name in self.list_commands(ctx) if name not in named)
        # The same indentation under all headings.
        width = max((len(name) for name in self.list_commands(ctx)), default=0)
        for title, names in (*GROUPS, (OTHERS, others)):
            rows = []
            for name in names:
                command = self.get_command(ctx, name)
                if command is not None and not command.hidden:
                    # The whole sentence: the formatter wraps it.
                    rows.append((f"{name:<{width}}", command.get_short_help_str(LONGEST)))
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
