"""Control requests to a running CLI, as methods of `Agent`.

Most are those of `wire.controls`, which a session of the hub has as well. Here are those for which
the hub has commands of its own.
"""

from __future__ import annotations

from quarterdeck.wire.commands import (
    CancelAsyncMessage,
    Interrupt,
    InterruptReceipt,
    RenameSession,
)
from quarterdeck.wire.controls import SessionControls


class Controls(SessionControls):
    """Control requests as methods. All raise the errors that `request` raises."""

    async def interrupt(self, *, cancel_queued: bool = False) -> InterruptReceipt:
        """Stop the running turn. Prompts in the queue still run, unless they are cancelled too."""
        return await self.request(Interrupt(cancel_queued=cancel_queued or None))

    async def cancel_prompt(self, uuid: str) -> bool:
        """Take a queued prompt back. False if it was no longer in the queue. (2.1.92)"""
        return (await self.request(CancelAsyncMessage(message_uuid=uuid))).cancelled

    async def rename(self, title: str) -> None:
        """Give the session a title. (2.1.150)"""
        await self.request(RenameSession(title=title))
