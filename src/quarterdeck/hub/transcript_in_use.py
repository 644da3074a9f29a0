"""Whether a conversation is being held somewhere else: one owner for each session of the CLI.

Two processes on one transcript spoil it for both. Of its own processes the hub knows; of a CLI in
a person's terminal it sees only that the transcript grows. So a session is not resumed while its
file was just written by another process. Below `hub`; it looks at the disk of the hub's machine
only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from anyio import to_thread

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import LOCAL
from quarterdeck.transcripts.layout import find_session, is_session_id

RECENT_SECONDS = 60.0
"""A CLI that works writes more often than that. One that only waits for its person does not: for
such a one this is no protection, and an import says so."""

OWN_SECONDS = 5.0
"""Our own CLI may still write for so long after we heard of its end."""


class TranscriptInUse:
    """Looks for conversations that another process holds."""

    def __init__(
        self, config_dir: Path | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._config_dir = config_dir
        self._clock = clock

    async def check(self, view: SessionView) -> None:
        """Raise `Conflict` when the session's conversation goes on elsewhere."""
        cli_session = view.cli_session
        if cli_session is None or not is_session_id(cli_session):
            return
        if (view.spec.machine or LOCAL) != LOCAL:
            return
        written = await to_thread.run_sync(self._last_write, cli_session)
        if written is None or self._clock() - written > RECENT_SECONDS:
            return
        # A session that had a process here: its own last words are no sign of another process.
        if view.ended is not None and written <= view.updated / 1000 + OWN_SECONDS:
            return
        ago = max(0, int(self._clock() - written))
        raise Conflict(
            "runs_elsewhere",
            f"the conversation {cli_session} was written to {ago} s ago by another process: end it"
            f" there, and try again in {RECENT_SECONDS:g} s",
        )

    def _last_write(self, cli_session: str) -> float | None:
        found = find_session(cli_session, None, self._config_dir)
        try:
            return found[0].stat().st_mtime if found else None
        except OSError:
            return None
