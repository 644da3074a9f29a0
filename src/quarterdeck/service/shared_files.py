"""Files of the data folder that several hubs on one journal must have alike.

Owns their way into the journal's store and out of it. The files stay what programs of this machine
read and write (`quarterdeck token` does, while the hub runs); each hub carries changes both ways, a
few times a second. If two hubs change one file at once, both changes hold: the entries are
compared one by one with what both had before, which is kept in the folder `shared`. What was taken
back at one hub is not brought back by another.

It knows no meaning of an entry but its id. The services above read their files again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio import to_thread

from quarterdeck.domain.errors import Conflict, JournalError
from quarterdeck.domain.structs import Value
from quarterdeck.journal.base import Journal, SharedValue
from quarterdeck.runtime.data_dir import make_private
from quarterdeck.runtime.files import replace_file

log = logging.getLogger(__name__)

NAMESPACE = "files"
LOOK_SECONDS = 0.25
NEW_NS = 2_000_000_000
"""A file that was written so short a time ago may be written again unnoticed."""
TRIES = 20
BASES = "shared"
"""The folder of what this hub and the store had in common last."""

Lock = Callable[[], Any]
Stamps = tuple[tuple[int, int, int] | None, ...]


class Shared(Value):
    """A file. `entries`: the member with its entries, empty for the whole; None: it has none.

    `id`: the member that names an entry of a list. `lock`: a file that its writers lock. `united`:
    of a hub that was alone, entries are kept that the others do not have.
    """

    name: str
    entries: str | None = None
    id: str = "id"
    lock: str | None = None
    united: bool = False


FILES = (
    Shared(name="access.json", entries="grants", lock="access.lock"),
    Shared(name="grants.json", entries=""),
    Shared(name="push.json", entries="", id="endpoint"),
    Shared(name="push.key"),
    Shared(name="cli.secret"),
    Shared(name="cli-tokens.json", entries="tokens", lock="cli-tokens.lock"),
    Shared(name="webhook.secret"),
    Shared(name="schedules.json", entries="schedules", united=True),
)


class SharedFiles:
    """The shared files of a data folder. `taken` is called with the name of each that was written.

    `locks` are taken while a file is compared and written, for those that only this hub writes.
    """

    def __init__(
        self,
        journal: Journal,
        home: Path,
        *,
        taken: Callable[[str], None] = lambda _: None,
        locks: Mapping[str, Lock] | None = None,
        files: Sequence[Shared] = FILES,
    ) -> None:
        self._journal = journal
        self._home = home
        self._bases = home / BASES
        self._files = files
        self.taken = taken
        self.locks = dict(locks or {})
        self._version = -1
        self._stamps: dict[str, Stamps | None] = {}
        make_private(self._bases)

    async def carry(self) -> None:
        """Carry all changes both ways, once. Raises `JournalError`.

        A file is read only if it, or its value in the store, changed since it was last carried.
        """
        version = await self._journal.shared_version(NAMESPACE)
        values = None
        if version != self._version:
            values = await self._journal.shared_values(NAMESPACE)
        stamps = await to_thread.run_sync(self._look)
        for file in self._files:
            stamp = stamps[file.name]
            if values is None:
                if stamp is not None and stamp == self._stamps.get(file.name):
                    continue
                value = await self._journal.shared_value(NAMESPACE, file.name)
            else:
                value = values.get(file.name)
            for _ in range(TRIES):
                if await self._carry_one(file, value):
                    break
                value = await self._journal.shared_value(NAMESPACE, file.name)
            else:
                stamps[file.name] = None
        self._version, self._stamps = version, stamps

    def _look(self) -> dict[str, Stamps | None]:
        """What tells whether a file, or what both had in common, was changed; None: look again."""
        now = time.time_ns()
        found: dict[str, Stamps | None] = {}
        for file in self._files:
            stamps = _stamp(self._home / file.name), _stamp(self._bases / file.name)
            # A second change within a tick of the file system's clock would not be seen.
            new = any(one is not None and abs(now - one[2]) < NEW_NS for one in stamps)
            found[file.name] = None if new else stamps
        return found

    async def run(self) -> None:
        """Carry changes until cancelled."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            try:
                await self.carry()
            except (JournalError, OSError) as error:  # what holds here, holds on
                log.error("files are not shared with other hubs: %s", error)
                await anyio.sleep(4 * LOOK_SECONDS)

    async def _carry_one(self, file: Shared, theirs: SharedValue | None) -> bool:
        """Whether both have the same now; else something has changed meanwhile."""
        mine, base = await to_thread.run_sync(self._read, file)
        stored = None if theirs is None else theirs.value
        if mine is None and stored is None:
            if base is None and (empty := _nothing_in(file)) is not None:
                await to_thread.run_sync(replace_file, self._bases / file.name, empty)
            return True
        wanted = merge(file, base, mine, stored)
        if wanted != stored:
            version = 0 if theirs is None else theirs.version
            try:
                await self._journal.share(NAMESPACE, file.name, wanted, expected=version)
            except Conflict:
                return False
        return await to_thread.run_sync(self._write, file, mine, wanted, base)

    def _read(self, file: Shared) -> tuple[bytes | None, bytes | None]:
        return _content(self._home / file.name), _content(self._bases / file.name)

    def _write(self, file: Shared, mine: bytes | None, wanted: bytes, base: bytes | None) -> bool:
        with self._hold_lock(file):
            path = self._home / file.name
            if _content(path) != mine:
                return False
            if mine != wanted:
                if base is None and mine is not None:
                    log.warning("%s is replaced by that of the other hubs", path)
                    replace_file(path.with_name(f"{path.name}.alone"), mine)
                replace_file(path, wanted)
                self.taken(file.name)
            if base != wanted:
                replace_file(self._bases / file.name, wanted)
        return True

    @contextmanager
    def _hold_lock(self, file: Shared) -> Iterator[None]:
        with self.locks.get(file.name, nullcontext)():
            if file.lock is None:
                yield
                return
            descriptor = os.open(
                self._home / file.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)


def _nothing_in(file: Shared) -> bytes | None:
    """A file without an entry: what two hubs have in common that both have none."""
    if file.entries is None:
        return None
    return msgspec.json.encode({file.entries: {}}) if file.entries else b"[]"


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def merge(file: Shared, base: bytes | None, mine: bytes | None, theirs: bytes | None) -> bytes:
    """What both are to have. Without a common base the others are right, if there are any.

    A file that is `united` then keeps its own entries that the others do not have.
    """
    if theirs is None or mine == theirs:
        assert mine is not None or theirs is not None
        return mine if mine is not None else theirs or b""
    if mine is not None and base is None and file.united:
        return _unite(file, mine, theirs)
    if mine is None or base is None or mine == base:
        return theirs
    if theirs == base:
        return mine
    if file.entries is None:
        return theirs  # both were made anew at once: one must be the first
    try:
        old, own, far = (msgspec.json.decode(each) for each in (base, mine, theirs))
        return msgspec.json.encode(_merge_values(file, old, own, far))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        log.error("%s has two versions and cannot be read: %s", file.name, error)
        return theirs


def _unite(file: Shared, mine: bytes, theirs: bytes) -> bytes:
    """Two files of hubs that knew nothing of each other. Of two entries theirs holds."""
    assert file.entries
    try:
        own, far = (msgspec.json.decode(each)[file.entries] for each in (mine, theirs))
        both = {**own, **far}
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        log.error("%s has two versions and cannot be read: %s", file.name, error)
        return theirs
    return theirs if both == far else msgspec.json.encode({file.entries: both})


def _merge_values(file: Shared, base: Any, mine: Any, theirs: Any) -> Any:
    if file.entries:
        inner = _entries(file, base[file.entries], mine[file.entries], theirs[file.entries])
        return {**theirs, file.entries: inner}
    return _entries(file, base, mine, theirs)


def _entries(file: Shared, base: Any, mine: Any, theirs: Any) -> Any:
    """The entries of others, with what was changed, added and removed here."""
    listed = isinstance(theirs, list)
    old, own, far = (
        {each[file.id]: each for each in entries} if listed else dict(entries)
        for entries in (base, mine, theirs)
    )
    for name in old.keys() - own.keys():
        far.pop(name, None)
    for name, entry in own.items():
        changed = name not in old or (old[name] != entry and name in far)
        if changed:
            far[name] = entry
    return list(far.values()) if listed else far
