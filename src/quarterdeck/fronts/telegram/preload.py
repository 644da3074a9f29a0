"""What the front loads before it is used, for a thread of its own: it takes a third of a second.

The event loop of a hub serves everybody else meanwhile. What only people need is loaded when one
talks to the bot, and what only answers need when a session is told of: an idle front is small.
"""

from __future__ import annotations

from importlib import import_module

FRONT = (
    "quarterdeck.fronts.telegram.front",
    "quarterdeck.client.hub",
    "httpx2",
    "httpcore2",  # httpx2 loads it with its first client
    "encodings.utf_16_le",  # the length of every text
)
MARKDOWN = ("telegramify_markdown", "markdown_it", "html.parser")


def load_front() -> None:
    """Load what an idle front needs. Blocking."""
    for name in FRONT:
        import_module(name)


def load_talk() -> None:
    """Load what updates need. Blocking."""
    from quarterdeck.fronts.telegram.commands.table import COMMANDS

    commands = "quarterdeck.fronts.telegram.commands"
    homes = {f"{commands}.{command.home}" for command in COMMANDS.values()}
    for name in ("quarterdeck.fronts.telegram.talk", *sorted(homes)):
        import_module(name)


def load_markdown() -> None:
    """Load what answers of a model need. Blocking."""
    for name in MARKDOWN:
        import_module(name)
