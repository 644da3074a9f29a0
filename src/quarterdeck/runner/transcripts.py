"""What a CLI has written down and nobody has heard: its transcript, read for the hub.

Owns which messages of which transcript belong to a run and are news to the hub. A `Run` stands
above it, once its process is gone; below it is `transcripts`, which knows the files. Only
messages are in a transcript: no questions, no results of turns. It blocks on the disk: call it from
a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from quarterdeck.protocol.runner_frames import Recall
from quarterdeck.runner.home import RunRecord
from quarterdeck.transcripts import TranscriptLine, transcript_lines
from quarterdeck.transcripts.layout import is_session_id, session_folders

_NEWEST = 20
"""Other transcripts to look into when the CLI has not told its session."""


def config_dir(env: Mapping[str, str]) -> str | None:
    """The folder in which a CLI with this environment keeps its sessions."""
    if given := env.get("CLAUDE_CONFIG_DIR"):
        return given
    return f"{env['HOME']}/.claude" if env.get("HOME") else None


class MissedMessages:
    """The messages that the hub wants of one run, in the order in which they were written down."""

    def __init__(self, wanted: Recall, record: RunRecord | None = None) -> None:
        self._wanted = wanted
        self._record = record
        self._lines: Iterator[bytes] | None = None
        self.cli_session: str | None = None
        """The session whose transcript it is, once something was read."""

    def some(self, size: int) -> list[bytes]:
        """The next lines, about so many bytes of them; none is the end. Blocks."""
        if self._lines is None:
            self._lines = iter(self._find())
        found: list[bytes] = []
        while size > 0 and (line := next(self._lines, None)) is not None:
            found.append(line)
            size -= len(line)
        return found

    def _find(self) -> list[bytes]:
        """What follows on the first word of this run that the hub knows of, and is news to it."""
        told = set(self._wanted.known)
        ours = {*told, *self._wanted.prompts}
        for session in self._sessions():
            messages = self._read(session)
            begins = (at for at, message in enumerate(messages) if message.uuid in ours)
            if (first := next(begins, None)) is not None:
                self.cli_session = session
                news = {one.uuid: one for one in messages[first:] if one.uuid not in told}
                return [bytes(message.line) for message in news.values()]
        return []

    def _read(self, session: str) -> list[TranscriptLine]:
        assert self._record is not None
        return transcript_lines(
            session, directory=self._record.directory, config_dir=self._record.config
        )

    def _sessions(self) -> Iterator[str]:
        """The session; and others of its folder, if the CLI had not told its session yet."""
        record = self._record
        if record is None or record.config is None:
            return
        named = self._wanted.cli_session
        if named is not None and is_session_id(named):
            yield named
        if set(self._wanted.prompts) <= set(self._wanted.known):
            return
        for folder, _ in session_folders(
            record.directory, include_worktrees=False, config_dir=record.config
        ):
            files = (path for path in folder.glob("*.jsonl") if is_session_id(path.stem))
            for path in sorted(files, key=_changed, reverse=True)[:_NEWEST]:
                if path.stem != named:
                    yield path.stem


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
