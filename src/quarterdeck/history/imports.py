"""Import: sessions that the CLI left on this machine's disk become sessions of the hub.

Owns which of them are new, which of their messages are new, and the events for them. A session
that ran in a terminal then has its history here, and can be resumed: it keeps its directory and the
CLI's id. Nothing is invented: no prompt is queued for a prompt that was typed elsewhere, and no
cost is recorded.

Importing is idempotent: each message has a uuid, and only new ones are added. `service` is above;
the journal and `transcripts`, which knows the files, are below.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec
from anyio import to_thread
from msgspec import Raw

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.journal.base import Journal
from quarterdeck.protocol.events import (
    IMPORTED,
    CliSession,
    Event,
    PromptQueued,
    PromptSent,
    Recalled,
    Said,
    SessionCreated,
)
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.transcripts import SessionInfo, TranscriptLine, list_sessions
from quarterdeck.transcripts.layout import check_id, is_session_id, projects_dir, session_folders
from quarterdeck.transcripts.stream_lines import transcript_lines_of
from quarterdeck.wire.tools import one_line

BY = "import"
RECENT_SECONDS = 300.0
"""A file that was written this recently may belong to a CLI that still runs in a terminal."""
CHUNK_EVENTS, CHUNK_BYTES = 500, 4 * 1024 * 1024
"""No append is much larger, because others wait for it."""
NAME_LENGTH = 100

Owners = Callable[[str], Sequence[str]]
"""The sessions of the hub in which the CLI once had this id. Blocks."""


class ImportOutcome(StrEnum):
    """The result for a session on disk."""

    NEW = "new"
    MORE = "more"
    """It was known, and new messages were added."""
    KNOWN = "known"
    RUNNING = "running"
    """It has a process here, whose output is journalled."""
    BROKEN = "broken"


class ImportedSession(Value, omit_defaults=False):
    """A session on disk, and the result of its import."""

    cli_session: str
    outcome: ImportOutcome
    session: str | None = None
    """Its id here. None: it has none, or (in a dry run) not yet."""
    name: str = ""
    directory: str = ""
    messages: int = 0
    """The number of new messages."""
    detail: str = ""
    """Why it is broken, or a warning."""


class ImportReport(Value, omit_defaults=False):
    """What an import did, or (`dry_run`) would do, oldest session first."""

    dry_run: bool
    folder: str
    """The folder that was searched."""
    sessions: tuple[ImportedSession, ...]


class Importer:
    """Imports into one journal, one import at a time."""

    def __init__(
        self,
        journal: Journal,
        owners: Owners,
        *,
        config_dir: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._owners = owners
        self._config_dir = config_dir
        self._clock = clock

    async def run(
        self,
        *,
        directory: str | None = None,
        only: Sequence[str] = (),
        dry_run: bool = False,
    ) -> ImportReport:
        """Import all sessions, those of a project's `directory`, or `only` these of the CLI's ids.

        Raises `UsageError` for an invalid id.
        """
        for cli_session in only:
            check_id(cli_session)
        infos, broken = await to_thread.run_sync(_find_sessions, directory, self._config_dir)
        current = await self._current()
        wanted = [info for info in infos if not only or info.session_id in only]
        done = [await self._import_one(info, current, dry_run) for info in wanted]
        done += [each for each in broken if not only or each.cli_session in only]
        found = {each.cli_session for each in done}
        done += [
            ImportedSession(cli_session=id_, outcome=ImportOutcome.BROKEN, detail="not found")
            for id_ in only
            if id_ not in found
        ]
        folder = str(projects_dir(self._config_dir))
        return ImportReport(dry_run=dry_run, folder=folder, sessions=tuple(done))

    async def _current(self) -> dict[str, str]:
        """The sessions here by the CLI's id; of two, the newest counts."""
        found: dict[str, str] = {}
        after: str | None = None
        while page := await self._journal.summaries(after=after, limit=500, archived=None):
            after = page[-1].session
            for view in page:
                if view.cli_session is not None:
                    found.setdefault(view.cli_session, view.session)
        return found

    async def _import_one(
        self, info: SessionInfo, current: dict[str, str], dry_run: bool
    ) -> ImportedSession:
        name = one_line(info.custom_title or info.first_prompt or info.summary, NAME_LENGTH)
        report = ImportedSession(
            cli_session=info.session_id,
            outcome=ImportOutcome.KNOWN,
            name=name,
            directory=info.cwd or "",
            detail=self._warning(info),
        )
        here = current.get(info.session_id)
        if here is None:
            former = await to_thread.run_sync(self._owners, info.session_id)
            here = former[-1] if former else None
        messages = await to_thread.run_sync(transcript_lines_of, Path(info.path))
        if here is not None:
            return await self._import_more(report, here, messages, dry_run)
        if not info.cwd or not info.cwd.startswith("/"):
            return _with_outcome(
                report, ImportOutcome.BROKEN, detail="it does not say where it ran"
            )
        if not messages:
            return _with_outcome(report, ImportOutcome.BROKEN, detail="it has no messages")
        report = _with_outcome(report, ImportOutcome.NEW, messages=len(messages))
        if dry_run:
            return report
        session = new_id()
        spec = SessionSpec(directory=info.cwd, name=name or None)
        first = [SessionCreated(spec=spec, by=BY), CliSession(cli_session=info.session_id)]
        current[info.session_id] = session
        try:
            await self._append(session, [*first, *map(_recalled_event, messages)])
        except UsageError as error:
            return _with_outcome(report, ImportOutcome.BROKEN, detail=str(error))
        return _with_outcome(report, ImportOutcome.NEW, session=session)

    async def _import_more(
        self, report: ImportedSession, session: str, messages: list[TranscriptLine], dry_run: bool
    ) -> ImportedSession:
        view = await self._journal.summary(session)
        if view is None:
            return _with_outcome(report, ImportOutcome.BROKEN, detail="it was deleted meanwhile")
        if view.run is not None:
            return _with_outcome(report, ImportOutcome.RUNNING, session=session, detail="")
        known = await self._known_uuids(session)
        news = [one for one in messages if one.uuid not in known]
        if not news:
            return _with_outcome(report, ImportOutcome.KNOWN, session=session)
        if not dry_run:
            await self._append(session, [*map(_recalled_event, news)])
        return _with_outcome(report, ImportOutcome.MORE, session=session, messages=len(news))

    async def _known_uuids(self, session: str) -> set[str]:
        """The uuids of all messages of a session in the journal."""
        known: set[str] = set()
        seq = 0
        while page := await self._journal.read(session, after=seq, limit=5000):
            seq = page[-1].seq
            known |= {uuid for stored in page if (uuid := _uuid(stored.event))}
        return known

    async def _append(self, session: str, events: Sequence[Event]) -> None:
        for chunk in _chunks(events):
            await self._journal.append(session, chunk)

    def _warning(self, info: SessionInfo) -> str:
        age = self._clock() - info.last_modified / 1000
        if age > RECENT_SECONDS:
            return ""
        return (
            f"written {max(0, int(age))} s ago: it may still run in a terminal; end it there before"
            " you resume it here"
        )


class _Uuid(msgspec.Struct):
    uuid: object = None


_uuids = msgspec.json.Decoder(_Uuid)


def _uuid(event: Event) -> str | None:
    match event:
        case Recalled(uuid=uuid) | PromptQueued(prompt=uuid) | PromptSent(uuid=str(uuid)):
            return uuid
        case Said(line=line):
            try:
                found = _uuids.decode(line).uuid
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return None
            return found if isinstance(found, str) else None
        case _:
            return None


def _recalled_event(one: TranscriptLine) -> Recalled:
    return Recalled(run=IMPORTED, uuid=one.uuid, line=Raw(one.line))


def _with_outcome(
    report: ImportedSession, outcome: ImportOutcome, **more: str | int | None
) -> ImportedSession:
    return msgspec.structs.replace(report, outcome=outcome, **more)


def _chunks(events: Iterable[Event]) -> Iterable[list[Event]]:
    chunk: list[Event] = []
    size = 0
    for event in events:
        chunk.append(event)
        size += len(event.line) if isinstance(event, Recalled) else 0
        if len(chunk) >= CHUNK_EVENTS or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _find_sessions(
    directory: str | None, config_dir: Path | None
) -> tuple[list[SessionInfo], list[ImportedSession]]:
    """The sessions on disk, oldest first; and the files that are not valid sessions."""
    infos = list_sessions(directory, config_dir=config_dir)
    readable = {info.session_id for info in infos}
    broken: dict[str, ImportedSession] = {}
    for folder, _ in session_folders(directory, include_worktrees=True, config_dir=config_dir):
        for path in sorted(folder.glob("*.jsonl")):
            if is_session_id(path.stem) and path.stem not in readable:
                broken[path.stem] = ImportedSession(
                    cli_session=path.stem, outcome=ImportOutcome.BROKEN, detail=_problem_of(path)
                )
    return infos[::-1], list(broken.values())


def _problem_of(path: Path) -> str:
    try:
        if not path.is_file():
            return f"{path} is not a regular file"
        if path.stat().st_size == 0:
            return f"{path} is empty"
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return f"cannot read {path}: {error.strerror}"
    return f"there are no messages in {path}"
