"""Commands about files and directories."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Number, Part
from quarterdeck.wire.commands.base import Command, Empty


class RewindResult(Part, rename="camel"):
    """What going back changes, or would change. Only a dry run lists the files."""

    can_rewind: bool = False
    error: str | None = None
    files_changed: tuple[str, ...] = ()
    insertions: int | None = None
    deletions: int | None = None
    skipped_links: int | None = None


class RewindFiles(Command[RewindResult], tag="rewind_files"):
    """Put files back to their state before a prompt.

    Needs checkpoints: `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1` in the CLI's environment.
    """

    user_message_id: str
    dry_run: bool | None = None


class FileContents(Part):
    """A file, or the part of it that was asked for."""

    contents: str = ""
    abs_path: str = field(name="absPath", default="")
    truncated: bool | None = None
    encoding: str | None = None
    lossy: bool | None = None
    anchor: str | None = None
    offset: Number | None = None
    read_bytes: Number | None = None
    total_bytes: Number | None = None
    etag: str | None = None
    upload_screened: bool | None = None
    requested_path: str | None = None


class ReadFile(Command[FileContents], tag="read_file"):
    """Read a file under the session's own permission rules."""

    since: ClassVar[int | None] = 120

    path: str
    max_bytes: int | None = None
    encoding: str | None = None
    offset: int | None = None


class FileSuggestion(Part):
    """A file with a matching name."""

    path: str = ""
    score: Number | None = None


class FileSuggestionsAnswer(Part):
    """Files with matching names, best first."""

    suggestions: tuple[FileSuggestion, ...] = ()
    cwd: str | None = None


class FileSuggestions(Command[FileSuggestionsAnswer], tag="file_suggestions"):
    """Complete a file name."""

    since: ClassVar[int | None] = 150

    query: str


class DirectoryEntry(Part, rename="camel"):
    """Something in a directory."""

    name: str = ""
    is_directory: bool = False
    is_symlink: bool | None = None
    is_special: bool | None = None


class DirectoryListing(Part, rename="camel"):
    """The contents of a directory."""

    abs_path: str = ""
    entries: tuple[DirectoryEntry, ...] = ()
    truncated: bool = False


class ListDirectory(Command[DirectoryListing], tag="list_directory"):
    """List a directory. Answered in the maker's cloud only, never over a pipe."""

    since: ClassVar[int | None] = None

    path: str


class SeedReadState(Command[Empty], tag="seed_read_state"):
    """Say that a file was read at this modification time, so that it may be edited."""

    since: ClassVar[int | None] = 92

    path: str
    mtime: Number


class RepoRootAnswer(Part):
    """The directory as the CLI names it."""

    directory: str = ""


class RegisterRepoRoot(Command[RepoRootAnswer], tag="register_repo_root"):
    """Work in one more directory, which must be below the first ones."""

    since: ClassVar[int | None] = 200

    directory: str
    reload_claude_md: bool | None = None
    reload_plugins: bool | None = None
    reload_skills: bool | None = None


class AddDirectory(Command[Empty], tag="add_directory"):
    """Work in one more directory. In no published type; the shape was found by trial."""

    since: ClassVar[int | None] = 200

    directory: str


class DiffStats(Part, rename="camel"):
    """How much has changed."""

    files_count: int = 0
    lines_added: int = 0
    lines_removed: int = 0


class FileDiffStats(Part, rename="camel"):
    """How much has changed in one file."""

    path: str = ""
    added: int = 0
    removed: int = 0
    is_binary: bool = False
    is_untracked: bool = False
    status: str | None = None
    previous_path: str | None = None
    new_path: str | None = None


class DiffHunk(Part, rename="camel"):
    """Lines that have changed, each with its sign."""

    old_start: int = 0
    old_lines: int = 0
    new_start: int = 0
    new_lines: int = 0
    lines: tuple[str, ...] = ()


class FileHunks(Part):
    """The changes of one file."""

    path: str = ""
    hunks: tuple[DiffHunk, ...] = ()


class Diff(Part, rename="camel"):
    """The changes in the working tree, or against a branch."""

    stats: DiffStats = DiffStats()
    per_file_stats: tuple[FileDiffStats, ...] = ()
    hunks: tuple[FileHunks, ...] = ()
    skipped_large: tuple[str, ...] = ()
    restricted: tuple[str, ...] = ()
    omitted: Raw = ABSENT
    source: Raw = ABSENT


class WorkspaceDiff(Part, rename="camel"):
    """The changes, or why there are none to show."""

    diff: Diff | None = None
    no_diff_reason: str | None = None


class GetWorkspaceDiff(Command[WorkspaceDiff], tag="get_workspace_diff"):
    """List the changes in the repository."""

    since: ClassVar[int | None] = 200
