"""Messages that a CLI wrote to its transcript but that were not received, read for the hub.

Owns which messages of which transcript belong to a run and are new to the hub. A `Run` is above,
after its process has ended, or has resumed a conversation; `transcripts` is below and knows the
files. A transcript has only messages: no questions, no results of turns. Reading blocks: call it
from a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quarterdeck.protocol.runner_frames import TranscriptQuery
from quarterdeck.runner.home import RunRecord
from quarterdeck.transcripts import TranscriptLine, transcript_lines
from quarterdeck.transcripts.layout import is_session_id, session_folders

_NEWEST = 20
"""Other transcripts to search when the CLI has not reported its session."""


class MissedMessages:
    """The messages of one run that the hub wants, in the order in which they were written."""

    def __init__(self, wanted: TranscriptQuery, record: RunRecord | None = None) -> None:
        self._wanted = wanted
        self._record = record
        self._lines: Iterator[bytes] | None = None
        self.cli_session: str | None = None
        """The session of the transcript, once something was read."""

    def some(self, size: int) -> list[bytes]:
        """The next lines, about so many bytes of them; an empty list is the end. Blocks."""
        if self._lines is None:
            self._lines = iter(self._find())
        found: list[bytes] = []
        while size > 0 and (line := next(self._lines, None)) is not None:
            found.append(line)
            size -= len(line)
        return found

    def _find(self) -> list[bytes]:
        """The messages that are new to the hub, from the first one on that it knows of this run.

        Of a long run it knows the last ones only.
        """
        known = set(self._wanted.known)
        ours = {*(self._wanted.since or known), *self._wanted.prompts}
        for session in self._sessions():
            messages = self._read(session)
            begins = (at for at, message in enumerate(messages) if message.uuid in ours)
            if (first := next(begins, None)) is not None:
                self.cli_session = session
                messages = self._since(messages[first:], ours)
                if self._wanted.earlier:
                    messages = self._before_prompts(messages)
                news = {one.uuid: one for one in messages if one.uuid not in known}
                return [bytes(message.line) for message in news.values()]
        return []

    def _since(self, messages: list[TranscriptLine], ours: set[str]) -> list[TranscriptLine]:
        """Of a long run: what is not older than the first message that is known to be near its end.

        Messages of subagents are not in the order of time.
        """
        if not self._wanted.since:
            return messages
        times = (each.timestamp for each in messages if each.timestamp and each.uuid in ours)
        first = min(times, default="")
        return [each for each in messages if not each.timestamp or each.timestamp >= first]

    def _before_prompts(self, messages: list[TranscriptLine]) -> list[TranscriptLine]:
        """What was written before the first of the prompts; nothing if there is none of these."""
        ends = (at for at, each in enumerate(messages) if each.uuid in self._wanted.prompts)
        end = next(ends, 0)
        return [each for each in messages[:end] if each.parent_tool_use_id is None]

    def _read(self, session: str) -> list[TranscriptLine]:
        assert self._record is not None
        wanted = self._wanted
        return transcript_lines(
            session,
            directory=self._record.directory,
            config_dir=self._record.config,
            since=(*wanted.since, *wanted.prompts) if wanted.since else (),
        )

    def _sessions(self) -> Iterator[str]:
        """The session; then others of its folder, if the CLI had not reported its session."""
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
            for path in sorted(files, key=_modified_at, reverse=True)[:_NEWEST]:
                if path.stem != named:
                    yield path.stem


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
