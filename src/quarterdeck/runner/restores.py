"""Transcripts that come from another machine: kept until they are whole, then put into place.

Owns where they are written. The hub names a conversation, a folder and files of a known shape; the
paths are made here: below the CLI's own projects folder, through no link. A file of this machine
that has messages which the new one lacks is renamed, and that is told. The runner's requests are
above; `transcripts` knows how the CLI names its folders. All of it blocks.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from quarterdeck.domain.errors import Conflict
from quarterdeck.protocol.machine_requests import KeptTranscript, PlaceTranscript, PutTranscript
from quarterdeck.transcripts.layout import (
    config_dir_of,
    is_session_id,
    project_folder_name,
    project_path,
    projects_dir,
)
from quarterdeck.transcripts.lines import lines_of
from quarterdeck.transcripts.mirror import OWN, is_file_name, is_metadata, uuids_in

MOST_UPLOADS = 8
"""Transcripts that are being sent at the same time; the oldest is given up for another one."""
MOST_FILES = 5000
MOST_BYTES = 2 * 1024**3
RECENT_SECONDS = 60.0
"""A file that was written so lately, and has messages that nobody else has, is in use here."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Upload:
    """The files of one transcript, by their names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, Path] = {}
        self.metadata: dict[str, bytes] = {}
        self.size = 0


class Restores:
    """The transcripts that are being sent to this machine."""

    def __init__(self, folder: Path) -> None:
        """`folder` is the runner's own: no agent can read or write it."""
        self._folder = folder
        self._uploads: dict[str, _Upload] = {}
        self._lock = threading.Lock()

    def prune(self) -> None:
        """Remove what an earlier runner left."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def put(self, wanted: PutTranscript) -> KeptTranscript:
        """Keep lines. Raises `Conflict`."""
        if _ID.fullmatch(wanted.upload) is None or not is_file_name(wanted.file):
            raise Conflict("bad_path", "this is no file of a transcript")
        with self._lock:
            upload = self._upload(wanted.upload)
            lines = [bytes(line) for line in wanted.lines]
            if not all(line.startswith(b"{") and b"\n" not in line for line in lines):
                raise Conflict("bad_transcript", "a line of a transcript is a JSON object")
            if wanted.file not in upload.files and len(upload.files) >= MOST_FILES:
                raise Conflict("too_large", f"a transcript has at most {MOST_FILES} files")
            upload.size += sum(len(line) + 1 for line in lines)
            if upload.size > MOST_BYTES:
                self._forget(wanted.upload)
                raise Conflict("too_large", f"a transcript has at most {MOST_BYTES} bytes")
            name = hashlib.sha256(wanted.file.encode()).hexdigest()
            path = upload.files.setdefault(wanted.file, upload.folder / name)
            with path.open("ab") as file:
                for line in lines:
                    if wanted.file != OWN and is_metadata(line):
                        upload.metadata[wanted.file] = line
                    else:
                        file.write(line + b"\n")
            return KeptTranscript(size=upload.size)

    def place(self, wanted: PlaceTranscript) -> KeptTranscript:
        """Move all files into place. Raises `Conflict`."""
        if not is_session_id(wanted.cli_session):
            raise Conflict("bad_path", "this is no conversation of the CLI")
        with self._lock:
            upload = self._uploads.get(wanted.upload)
            if upload is None or OWN not in upload.files:
                raise Conflict(
                    "no_transcript", "the transcript was not sent, or is gone: try again"
                )
            config = wanted.config or config_dir_of(os.environ)
            projects = projects_dir(config)
            try:
                projects.mkdir(mode=0o700, parents=True, exist_ok=True)
                # The projects folder may be behind a link of the machine's owner.
                root = Path(os.path.realpath(projects))
                project = project_folder_name(project_path(wanted.directory))
                return self._place(upload, root, project, wanted.cli_session)
            except OSError as error:
                text = f"the transcript cannot be written below {projects}: {error.strerror}"
                raise Conflict("not_stored", text) from error
            finally:
                self._forget(wanted.upload)

    def _place(self, upload: _Upload, root: Path, project: str, session: str) -> KeptTranscript:
        saved, unknown = "", 0
        with _folder(root, (project,)) as where:
            kept, unknown = _move(upload.files[OWN], where, f"{session}.jsonl")
            if kept:
                saved = str(root / project / kept)
        for name, path in upload.files.items():
            if name == OWN:
                continue
            *parts, last = name.split("/")
            with _folder(root, (project, session, *parts)) as where:
                _move(path, where, f"{last}.jsonl")
                if name in upload.metadata:
                    _write(where, f"{last}.meta.json", _without_type(upload.metadata[name]))
        return KeptTranscript(size=upload.size, saved=saved, unknown=unknown)

    def _upload(self, id_: str) -> _Upload:
        if id_ not in self._uploads:
            while len(self._uploads) >= MOST_UPLOADS:
                self._forget(next(iter(self._uploads)))
            folder = self._folder / id_
            folder.mkdir(mode=0o700, parents=True)
            self._uploads[id_] = _Upload(folder)
        return self._uploads[id_]

    def _forget(self, id_: str) -> None:
        upload = self._uploads.pop(id_)
        shutil.rmtree(upload.folder, ignore_errors=True)


@contextmanager
def _folder(root: Path, parts: tuple[str, ...]) -> Iterator[int]:
    """A folder below the root, made where it is missing; no part of it may be a link."""
    where = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=where)
            inner = os.open(part, _FOLDER, dir_fd=where)
            os.close(where)
            where = inner
        yield where
    finally:
        os.close(where)


def _move(staged: Path, where: int, name: str) -> tuple[str, int]:
    """Put a file into place. A file with other messages is renamed: its new name, and how many.

    Raises `Conflict` if such a file is in use.
    """
    ours, theirs = _uuids(os.open(staged, os.O_RDONLY | os.O_CLOEXEC)), set[str]()
    try:
        there = os.open(
            name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=where
        )
    except FileNotFoundError:
        pass
    else:
        found = os.fstat(there)
        if not stat.S_ISREG(found.st_mode):
            os.close(there)
            raise Conflict("bad_path", f"{name} is there, and is no file")
        theirs = _uuids(there) - ours
        if theirs and time.time() - found.st_mtime < RECENT_SECONDS:
            raise Conflict(
                "runs_elsewhere",
                f"the conversation was written to on this machine within the last"
                f" {RECENT_SECONDS:g} s: end the process that does, and try again",
            )
    saved = ""
    if theirs:
        saved = f"{name}.{int(time.time() * 1000)}.saved"
        os.rename(name, saved, src_dir_fd=where, dst_dir_fd=where)
    draft = f".{name}.new"
    with _draft(where, draft) as file, staged.open("rb") as source:
        shutil.copyfileobj(source, file)
    os.rename(draft, name, src_dir_fd=where, dst_dir_fd=where)
    return saved, len(theirs)


def _write(where: int, name: str, data: bytes) -> None:
    with _draft(where, f".{name}.new") as file:
        file.write(data)
    os.rename(f".{name}.new", name, src_dir_fd=where, dst_dir_fd=where)


@contextmanager
def _draft(where: int, name: str) -> Iterator[BinaryIO]:
    """A new file under a name that nobody reads; it is on the disk when the block ends."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=where)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=where), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _uuids(descriptor: int) -> set[str]:
    """The ids of the messages in an open file, which is closed."""
    with os.fdopen(descriptor, "rb") as file:
        return uuids_in(line for _, line in lines_of(file))


def _without_type(line: bytes) -> bytes:
    """What the CLI keeps beside the file of a subagent."""
    members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    del members["type"]
    return msgspec.json.encode(members)
