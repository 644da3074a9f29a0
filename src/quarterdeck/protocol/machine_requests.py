"""What the hub has a machine look up or do outside of a run: worktrees, diffs, folders, files.

The requests and their answers; `protocol.runner_frames` carries them. Each request is carried out
once or not at all: it saves first what it would lose, or it refuses. A refusal has a `code` that
programs can rely on.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quarterdeck.domain.structs import Value

MACHINE_REQUESTS = "errands"
"""The capability in the `hello` of a runner that answers these requests."""


class MachineRequest(Value, tag_field="errand"):
    """The base of all requests to a machine."""


class SeeChanges(MachineRequest, tag="changes"):
    """What is different in a working folder.

    With a branch: in its worktree, against where it left its base. Without: against HEAD.
    """

    directory: str
    branch: str | None = None
    text_limit: int = 1024 * 1024
    """Bytes of the unified diff at most."""


class TreeAction(StrEnum):
    """What is to become of a worktree."""

    MERGE = "merge"
    KEEP = "keep"
    DISCARD = "discard"


class SettleTree(MachineRequest, tag="settle"):
    """Merge a worktree's branch into its base, keep it as it is, or discard it."""

    directory: str
    branch: str
    action: TreeAction
    into: str | None = None
    """Merge into this branch and not into the one that it was made from."""
    message: str | None = None
    """Merge: commit with this message first what is not committed."""


class SeeFolders(MachineRequest, tag="folders"):
    """Which folders are in a folder, for somebody who looks for one. Never above `roots`."""

    path: str | None = None
    """None: the roots themselves."""
    roots: tuple[str, ...] = ()
    """Empty: the home folder of the machine's user."""


class PutFile(MachineRequest, tag="put_file"):
    """Store a file in a working folder. One that is there is not replaced."""

    directory: str
    path: str
    """Below the folder, or the whole path of a file in it."""
    data: bytes


class SeeFile(MachineRequest, tag="file"):
    """What is in a file of a working folder now, before a call replaces it."""

    directory: str
    path: str
    """Below the folder, or the whole path of a file in it."""


AnyMachineRequest = SeeChanges | SettleTree | SeeFolders | PutFile | SeeFile


# --- what came of it ---


class FileChange(Value, omit_defaults=False):
    """A file that is different. `added` and `removed` count lines; None for a binary file."""

    path: str
    status: str
    """`added`, `modified`, `deleted`, `renamed`, `copied`, `retyped` or `unmerged`."""
    old_path: str | None = None
    added: int | None = None
    removed: int | None = None


class Changes(Value, omit_defaults=False):
    """What is different in a working folder, untracked files and all."""

    directory: str
    base: str
    """The commit that it is compared to."""
    branch: str | None = None
    into: str | None = None
    """The branch that it would be merged into."""
    files: tuple[FileChange, ...] = ()
    files_left_out: int = 0
    added: int = 0
    removed: int = 0
    uncommitted: int = 0
    """How many of the files have changes that are not committed."""
    commits: int = 0
    """Commits of the branch that its base does not have."""
    text: str = ""
    """The unified diff."""
    text_cut: bool = False
    """It was longer."""


class Settled(Value, omit_defaults=False):
    """What became of a worktree, in words for a person too."""

    action: TreeAction
    branch: str
    text: str
    into: str | None = None
    commit: str | None = None
    """Where the base is now."""
    saved: str | None = None
    """The ref under which discarded work can be found again."""
    removed: bool = False
    """The worktree and its branch are gone."""


class Folder(Value, omit_defaults=False):
    """A folder that can be worked in."""

    name: str
    path: str
    repository: bool = False
    """It has a `.git` of its own."""


class Folders(Value, omit_defaults=False):
    """The folders in a folder, by name. `path` is None for the list of roots."""

    path: str | None
    parent: str | None = None
    folders: tuple[Folder, ...] = ()
    left_out: int = 0


class StoredFile(Value, omit_defaults=False):
    """A file that was stored."""

    path: str
    size: int


class FileState(StrEnum):
    """What is at a path."""

    TEXT = "text"
    MISSING = "missing"
    BINARY = "binary"
    TOO_LARGE = "too_large"
    LINK = "link"
    """A symbolic link. It is not followed."""
    OTHER = "other"
    """A folder, a device, or what cannot be read."""
    OUTSIDE = "outside"
    """Not below the working folder, or in the data of git: it is not read."""


class SeenFile(Value, omit_defaults=False):
    """What is in a file now."""

    path: str
    state: FileState
    text: str = ""
    """All of it, if `state` is `text`; nothing otherwise."""
    size: int = 0


class MachineRequestRefused(Value):
    """It was not done, and nothing was changed."""

    code: str
    text: str


AnyMachineResult = Changes | Settled | Folders | StoredFile | SeenFile

_requests: msgspec.json.Decoder[AnyMachineRequest] = msgspec.json.Decoder(AnyMachineRequest)


def read_machine_request(line: bytes) -> AnyMachineRequest:
    """Decode a request from its line. Raises `msgspec.DecodeError`."""
    return _requests.decode(line)
