"""A field for text of any length, in which Enter sends."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from quarterdeck.cli.terminal.text import plain

NEWLINES = frozenset({"shift+enter", "alt+enter", "ctrl+j"})


class Field(TextArea):
    """Text that a person types. Keys that are typed here do nothing else."""

    class Sent(Message):
        """Enter was pressed."""

        def __init__(self, field: Field, text: str) -> None:
            super().__init__()
            self.field = field
            self.text = text

    class Left(Message):
        """Escape was pressed."""

        def __init__(self, field: Field) -> None:
            super().__init__()
            self.field = field

    def __init__(self, label: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__("", id=id, compact=True, show_line_numbers=False, placeholder=label)

    async def _on_key(self, event: events.Key) -> None:
        match event.key:
            case "enter":
                event.stop()
                event.prevent_default()
                self.post_message(self.Sent(self, self.text))
            case "escape":
                event.stop()
                event.prevent_default()
                self.post_message(self.Left(self))
            case key if key in NEWLINES:
                event.stop()
                event.prevent_default()
                self.insert("\n")
            case _:
                await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.text = plain(event.text)
        await super()._on_paste(event)
