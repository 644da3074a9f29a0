"""What the hub has a machine look up or do outside of a run: worktrees, diffs, folders, files.

The requests and their answers; `protocol.runner_frames` carries them. Each request is carried out
once or not at all: it saves first what it would lose, or it refuses. A refusal has a `code` that
programs can rely on.

The module is long because the requests are one union, and each stands beside its answer.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Raw

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.structs import Value

MACHINE_REQUESTS = "errands"
"""The capability in the `hello` of a runner that answers these requests."""


class Against(StrEnum):
    """What a working folder is compared to."""

    SESSION = "session"
    """The start of the session; in a worktree, where its branch left its base."""
    HEAD = "head"
    """The last commit."""


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
    session: str = ""
    """The session whose start is meant."""
    against: Against = Against.SESSION
    closed: tuple[str, ...] = ()
    """Files whose contents are left out of the text."""


class SeeFileChange(MachineRequest, tag="file_change"):
    """The diff of one file, with all its unchanged lines where it is not too long."""

    directory: str
    path: str
    """Below the top folder of the repository, as in the list of changes."""
    branch: str | None = None
    session: str = ""
    against: Against = Against.SESSION
    old_path: str | None = None
    """Its name before, if it was renamed."""


class BlockId(Value):
    """Changed lines, by where they are: as in the header of a hunk without context."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


class RevertChange(MachineRequest, tag="revert"):
    """Undo the change of a file, or some blocks of it. What is lost is saved under a ref first."""

    directory: str
    path: str
    branch: str | None = None
    session: str = ""
    against: Against = Against.SESSION
    old_path: str | None = None
    blocks: tuple[BlockId, ...] = ()
    """Empty: the whole file."""
    digest: str = ""
    """Of the diff that the person has seen. It is refused if the file has changed since."""


class StageFiles(MachineRequest, tag="stage"):
    """Add files to the index as they are now, or (`staged` false) take them out of it."""

    directory: str
    paths: tuple[str, ...]
    branch: str | None = None
    staged: bool = True


class CommitFiles(MachineRequest, tag="commit"):
    """Commit what is in the index; `all_files` adds everything first. It runs no hook."""

    directory: str
    message: str
    branch: str | None = None
    all_files: bool = False


class SeeRemote(MachineRequest, tag="remote"):
    """Where a push would go, and what it would send."""

    directory: str
    branch: str | None = None


class PushBranch(MachineRequest, tag="push"):
    """Push the branch that is checked out. `url` and `commit` are those that the person saw."""

    directory: str
    url: str
    commit: str
    branch: str | None = None


class OpenPullRequest(MachineRequest, tag="pull_request"):
    """Open a pull request for the pushed branch, with `gh` or `glab`."""

    directory: str
    url: str
    title: str
    base: str
    body: str = ""
    draft: bool = False
    branch: str | None = None


class SeeEntries(MachineRequest, tag="entries"):
    """What is in a folder of a session's working folder."""

    directory: str
    path: str = ""
    """Below the folder; empty: the folder itself."""


class FindInFiles(MachineRequest, tag="find"):
    """Look for a text in the names of files, or in their contents."""

    directory: str
    text: str
    contents: bool = False


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
    dry_run: bool = False
    """Only say what would happen."""


class SeeFolders(MachineRequest, tag="folders"):
    """Which folders are in a folder, for a person who looks for one. Never above `roots`."""

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


class SeeCliSessions(MachineRequest, tag="cli_sessions"):
    """The sessions that the CLI has on the machine's disk, newest first."""

    limit: int = 100
    directory: str | None = None
    """Only those of the project in this folder."""
    worktrees: bool = True
    """Also those of the other worktrees of its repository."""
    config: str | None = None
    """The folder in which the CLI keeps them; None: that of the runner's own environment."""


class SeeToolOutput(MachineRequest, tag="tool_output"):
    """Output of a tool that the CLI stored in a file, because it was too long for the model."""

    directory: str
    """Where the CLI works: its project."""
    cli_session: str
    """The conversation of the call."""
    name: str
    """The name of the file, in the folder of the conversation's results."""
    offset: int = 0
    """The first byte."""
    config: str | None = None
    """The folder of the CLI's files; None: that of the runner's own environment."""


class OpenPlace(MachineRequest, tag="open_place"):
    """Have the folder of a session that comes from another machine: with a branch, its worktree.

    A branch that is not here is fetched. It is never made anew: that would be another work.
    """

    directory: str
    branch: str | None = None


class PutTranscript(MachineRequest, tag="put_transcript"):
    """Keep lines of a transcript until all have come. Lines follow those that came before."""

    upload: str
    """An id that the hub makes for one transcript."""
    lines: tuple[Raw, ...]
    file: str = ""
    """Empty: the session's own file; else `subagents/…/agent-ID`."""


class PlaceTranscript(MachineRequest, tag="place_transcript"):
    """Move the kept lines to where the CLI looks for the conversation of this folder."""

    upload: str
    cli_session: str
    directory: str
    config: str | None = None
    """The folder in which the CLI keeps its sessions, if that is not where it always is."""


AnyMachineRequest = (
    SeeChanges
    | SeeFileChange
    | RevertChange
    | StageFiles
    | CommitFiles
    | SeeRemote
    | PushBranch
    | OpenPullRequest
    | SeeEntries
    | FindInFiles
    | SettleTree
    | SeeFolders
    | PutFile
    | SeeFile
    | SeeCliSessions
    | SeeToolOutput
    | OpenPlace
    | PutTranscript
    | PlaceTranscript
)


# --- what came of it ---


class FileChange(Value, omit_defaults=False):
    """A file that is different. `added` and `removed` count lines; None for a binary file."""

    path: str
    status: str
    """`added`, `modified`, `deleted`, `renamed`, `copied`, `retyped` or `unmerged`."""
    old_path: str | None = None
    added: int | None = None
    removed: int | None = None
    staged: str = ""
    """Against the last commit only: `all`, `part` or `none` of the change is in the index."""


class Changes(Value, omit_defaults=False):
    """What is different in a working folder, untracked files and all."""

    directory: str
    base: str
    """The commit or tree that it is compared to."""
    since: str = "head"
    """What that is: `start` of the session, the `branch`'s base, or the `head` commit."""
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
    closed: tuple[str, ...] = ()
    """Files whose contents the policy does not let be shown."""


class FileDiff(Value, omit_defaults=False):
    """The diff of one file."""

    directory: str
    """The top folder of the repository."""
    path: str
    old_path: str | None = None
    binary: bool = False
    patch: str = ""
    """A unified diff; empty for a binary file."""
    whole: bool = False
    """All unchanged lines are in it."""
    cut: bool = False
    """It is too long, and ends before its end."""
    digest: str = ""
    """For a revert: it says which state of the file was seen."""


class FolderDone(Value, omit_defaults=False):
    """What was done to a working folder; `text` is the same as `coded`, in words."""

    text: str
    coded: CodedText | None = None
    """None: of an older runner."""
    paths: tuple[str, ...] = ()
    commit: str | None = None
    saved: str | None = None
    """The ref under which what was undone can be found again."""
    url: str | None = None
    """Where it was pushed to, or the pull request."""


class PushProblem(StrEnum):
    """Why nothing can be pushed."""

    NO_BRANCH = "no_branch"
    """No branch is checked out."""
    NO_COMMIT = "no_commit"
    NO_REMOTE = "no_remote"
    NO_URL = "no_url"
    """The remote has no address."""
    INVALID_URL = "invalid_url"
    PROGRAM_URL = "program_url"
    """The address names a program, which is not run."""
    UNKNOWN_URL = "unknown_url"
    """An address of an unknown form."""
    PROTOCOL = "protocol"
    """Nothing is pushed by the protocol of the address."""


class RemoteState(Value, omit_defaults=False):
    """Where a push would go, and what it would send."""

    branch: str | None
    """The branch that is checked out; None if there is none."""
    commit: str | None
    remote: str | None = None
    url: str | None = None
    problem: str = ""
    """Why nothing can be pushed there: a `PushProblem`, or the sentence of an older runner; empty
    if it can."""
    commits: tuple[str, ...] = ()
    """The subjects of the commits that the remote does not have as far as is known, newest
    first."""
    more_commits: int = 0
    known: bool = False
    """Whether the remote had the branch when it was fetched or pushed last."""
    host: str = ""
    repository: str = ""
    """The owner and name, for a pull request."""
    tool: str = ""
    """`gh` or `glab`, for a pull request; empty if the machine has neither for this host."""
    base: str | None = None
    """The branch that a pull request would be for, if it is known."""


class Entry(Value, omit_defaults=False):
    """Something in a folder: a `file`, `folder`, `link` or `other`."""

    name: str
    kind: str
    size: int = 0


class Entries(Value, omit_defaults=False):
    """What is in a folder, folders first. `path` is below the session's folder."""

    path: str
    entries: tuple[Entry, ...] = ()
    left_out: int = 0
    branch: str | None = None
    """The branch that is checked out there; null if there is none."""


class FoundLine(Value, omit_defaults=False):
    """A file that was found; `line` is 0 and `text` empty if its name was."""

    path: str
    line: int = 0
    text: str = ""


class Found(Value, omit_defaults=False):
    """What was found. `cut`: there is more, or the search took too long."""

    matches: tuple[FoundLine, ...] = ()
    cut: bool = False


class Settled(Value, omit_defaults=False):
    """What became of a worktree; `text` is the same as `coded`, in words."""

    action: TreeAction
    branch: str
    text: str
    coded: CodedText | None = None
    """None: of an older runner."""
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


class CliSessionOnDisk(Value, omit_defaults=False):
    """A session of the CLI on a machine's disk."""

    cli_session: str
    title: str
    directory: str
    """Empty if its file does not say it."""
    branch: str
    updated: int
    """In ms since 1970."""
    bytes: int


class CliSessionsOnDisk(Value, omit_defaults=False):
    """Sessions of the CLI on a machine's disk, newest first."""

    sessions: tuple[CliSessionOnDisk, ...] = ()
    more: bool = False
    """There are older ones."""


class ToolOutput(Value, omit_defaults=False):
    """A part of a tool's output, from its file."""

    text: str
    size: int
    """Bytes of all of it."""
    next: int | None = None
    """Where the following part begins; null at the end."""


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


class OpenedPlace(Value, omit_defaults=False):
    """A folder to work in. `text`: what a person should know of its branch; empty: nothing."""

    directory: str
    text: str = ""
    coded: CodedText | None = None
    """The same as a code."""


class KeptTranscript(Value, omit_defaults=False):
    """How many bytes of a transcript are kept. `saved`: the file that it took the place of."""

    size: int
    saved: str = ""
    unknown: int = 0
    """How many messages that file has which the transcript has not."""


class MachineRequestRefused(Value):
    """It was not done, and nothing was changed."""

    code: str
    text: str


AnyMachineResult = (
    Changes
    | FileDiff
    | FolderDone
    | RemoteState
    | Entries
    | Found
    | Settled
    | Folders
    | StoredFile
    | SeenFile
    | CliSessionsOnDisk
    | ToolOutput
    | OpenedPlace
    | KeptTranscript
)

_requests: msgspec.json.Decoder[AnyMachineRequest] = msgspec.json.Decoder(AnyMachineRequest)


def read_machine_request(line: bytes) -> AnyMachineRequest:
    """Decode a request from its line. Raises `msgspec.DecodeError`."""
    return _requests.decode(line)


SECONDS = 300.0
"""A merge is a handful of gits, and each has two minutes on its machine."""
