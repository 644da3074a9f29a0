"""Session stores: a copy of each session's transcript in storage of the program's own.

Owns the copying of what the CLI writes (`SessionMirror`), and the way back (`restore`): a session
of the store is written to where the CLI looks for it, before the CLI starts. The interface of a
store is that of the official SDK, so that adapters for one work with the other. It knows nothing of
what is in an entry, except its `uuid`.

The CLI's own file remains the first copy. What the store cannot take is tried again, and then
reported as a `MirrorError` among the messages.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NotRequired, Protocol, TypedDict, runtime_checkable

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.claude.project_names import project_folder_name, project_path
from quarterdeck.domain.errors import Conflict, UsageError
from quarterdeck.wire.internal import TranscriptMirror
from quarterdeck.wire.notices import MirrorError, MirrorKey

TRIES = 3
BACK_OFF = 0.2
"""Seconds before the second try, and twice as many before the third."""
APPEND_SECONDS = 60.0
MOST_WAITING = 5000
"""Entries that wait for the store above which the CLI is no longer read."""

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*")

log = logging.getLogger(__name__)


class SessionKey(TypedDict):
    """Which transcript: of a session, or (`subpath`) of a subagent of it."""

    project_key: str
    session_id: str
    subpath: NotRequired[str]


class SessionStore(Protocol):
    """What a program gives: where transcripts are kept. Entries are JSON objects, to be kept whole.

    A store may also have `list_subkeys(key)`, the subpaths of a session, which are restored too,
    and `list_sessions(project_key)`, for `continue_`: both as in the official SDK.
    """

    # An entry is any JSON object. `Any`, because adapters for the SDK have a type of their own.
    async def append(self, key: Any, entries: list[Any]) -> None:
        """Add entries to a transcript. One that is there already, by its `uuid`, may be ignored."""

    async def load(self, key: Any) -> list[Any] | None:
        """The whole transcript, or None if there is none."""


@runtime_checkable
class _ListsSubkeys(Protocol):
    async def list_subkeys(self, key: Any) -> list[str]: ...


@runtime_checkable
class _ListsSessions(Protocol):
    async def list_sessions(self, project_key: str) -> list[Any]: ...


def projects_of(env: Mapping[str, str]) -> Path:
    """Where a CLI with this environment keeps its transcripts."""
    chosen = env.get("CLAUDE_CONFIG_DIR")
    return Path(chosen or Path(env.get("HOME") or Path.home()) / ".claude") / "projects"


def key_of(file: str, projects: Path) -> SessionKey | None:
    """The key of a transcript's file; None for a file that is none."""
    try:
        parts = Path(os.path.realpath(file)).relative_to(os.path.realpath(projects)).parts
    except ValueError:
        return None
    match parts:
        case (project, name) if name.endswith(".jsonl"):
            return {"project_key": project, "session_id": name.removesuffix(".jsonl")}
        case (project, session, *below) if below:
            subpath = "/".join(below).removesuffix(".jsonl")
            return {"project_key": project, "session_id": session, "subpath": subpath}
        case _:
            return None


class SessionMirror:
    """Copies what a CLI writes to a store, in order, in a task of its own."""

    def __init__(
        self, store: SessionStore, projects: Path, report: Callable[[MirrorError], None]
    ) -> None:
        self._store = store
        self._projects = projects
        self._report = report
        self._waiting: deque[tuple[SessionKey, list[Any]]] = deque()
        self._count = 0
        self._came = anyio.Event()
        self._done = anyio.Event()

    def put(self, message: TranscriptMirror) -> None:
        """Take what the CLI has written."""
        key = key_of(message.file_path, self._projects)
        if key is None:
            self._fail(None, f"{message.file_path} is not a transcript of {self._projects}")
            return
        entries = [msgspec.json.decode(entry) for entry in message.entries]
        if not entries:
            return
        if self._waiting and self._waiting[-1][0] == key:
            self._waiting[-1][1].extend(entries)
        else:
            self._waiting.append((key, entries))
        self._count += len(entries)
        self._came.set()

    async def run(self) -> None:
        """Append until cancelled."""
        while True:
            await self._came.wait()
            self._came = anyio.Event()
            await self._append_all()

    async def ease(self) -> None:
        """Wait while too much waits for the store."""
        while self._count > MOST_WAITING:
            await self._done.wait()

    async def finish(self) -> None:
        """Wait until the store has taken, or refused, all that came."""
        while self._count:
            await self._done.wait()

    async def _append_all(self) -> None:
        while self._waiting:
            key, entries = self._waiting.popleft()
            await self._append(key, entries)
            self._count -= len(entries)
            done, self._done = self._done, anyio.Event()
            done.set()

    async def _append(self, key: SessionKey, entries: list[Any]) -> None:
        error = "no answer"
        for attempt in range(TRIES):
            try:
                with anyio.fail_after(APPEND_SECONDS):
                    await self._store.append(key, entries)
            except TimeoutError:
                error = f"no answer within {APPEND_SECONDS:g} s"
                break  # it may still arrive: a second copy would be worse
            except Exception as failed:  # noqa: BLE001  (the program's own store)
                error = repr(failed)
                if attempt + 1 < TRIES:
                    await anyio.sleep(BACK_OFF * 2**attempt)
            else:
                return
        self._fail(key, error)

    def _fail(self, key: SessionKey | None, error: str) -> None:
        log.error("a transcript could not be copied to the session store: %s", error)
        mirror_key = None
        if key is not None:
            mirror_key = MirrorKey(
                project_key=key["project_key"],
                session_id=key["session_id"],
                subpath=key.get("subpath"),
            )
        self._report(MirrorError(error=error, key=mirror_key))


# --- the way back --------------------------------------------------------------------------------


async def newest_session(store: SessionStore, directory: str | os.PathLike[str]) -> str | None:
    """The newest session of a folder in a store, for `continue_`."""
    if not isinstance(store, _ListsSessions):
        raise UsageError("continue_: the session store has no list_sessions; give resume an id")
    project = project_folder_name(project_path(directory))
    found = sorted(await store.list_sessions(project), key=lambda each: -each["mtime"])
    for each in found:
        entries = await store.load({"project_key": project, "session_id": each["session_id"]})
        if entries and not entries[0].get("isSidechain"):
            return str(each["session_id"])
    return None


async def restore(
    store: SessionStore, session: str, directory: str | os.PathLike[str], projects: Path
) -> bool:
    """Write a session of the store to where the CLI looks for it; False if the store has none.

    A file that has more than the store is kept. Raises `Conflict` if each has what the other
    lacks: nothing is overwritten then.
    """
    if not _ID.fullmatch(session):
        return False  # a title: the CLI looks for it by itself
    project = project_folder_name(project_path(directory))
    key: SessionKey = {"project_key": project, "session_id": session}
    entries = await store.load(key)
    if not entries:
        return False
    folder = projects / project
    await anyio.to_thread.run_sync(_write, folder / f"{session}.jsonl", entries)
    if isinstance(store, _ListsSubkeys):
        for subpath in await store.list_subkeys(key):
            inner = await store.load({**key, "subpath": subpath})
            if inner and (file := _below(folder / session, subpath)) is not None:
                await anyio.to_thread.run_sync(_write, file, inner)
    return True


def _below(folder: Path, subpath: str) -> Path | None:
    """The file of a subagent; None for a path that leads elsewhere."""
    parts = PurePosixPath(subpath).parts
    if not parts or any(part in {"/", "..", "."} or "\0" in part for part in parts):
        log.warning("the session store has the subpath %r, which is not taken", subpath)
        return None
    return folder.joinpath(*parts[:-1]) / f"{parts[-1]}.jsonl"


def _write(file: Path, entries: list[Any]) -> None:
    """Write a transcript, unless the file has it already. Raises `Conflict`."""
    lines = [json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries]
    stored = _uuids(lines)
    with suppress(FileNotFoundError):
        local = _uuids(file.read_text(encoding="utf-8", errors="replace").splitlines())
        if stored <= local:
            return
        if not local <= stored:
            raise Conflict(
                "session_diverged",
                f"{file} and the session store each have messages that the other lacks: move the"
                " file away to resume from the store",
            )
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f"{file.name}.restored")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.writelines(f"{line}\n" for line in lines)
    fresh.replace(file)


def _uuids(lines: list[str]) -> set[str]:
    found: set[str] = set()
    for line in lines:
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and isinstance(entry.get("uuid"), str):
                found.add(entry["uuid"])
    return found
