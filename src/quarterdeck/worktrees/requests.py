"""Requests of the hub to this machine, outside of a run: changes, worktrees, folders.

Owns how many run at a time, and turns every failure into a refusal. The `Runner` is above;
`changes`, `settle` and `folders` are below.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.domain.errors import Conflict, QuarterdeckError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.machine_requests import (
    AnyMachineRequest,
    AnyMachineResult,
    CliSessionsOnDisk,
    CommitFiles,
    FindInFiles,
    KeptTranscript,
    MachineRequestRefused,
    OpenPlace,
    OpenPullRequest,
    PlaceTranscript,
    PushBranch,
    PutFile,
    PutTranscript,
    RevertChange,
    SeeChanges,
    SeeCliSessions,
    SeeEntries,
    SeeFile,
    SeeFileChange,
    SeeFolders,
    SeeRemote,
    SeeToolOutput,
    SettleTree,
    StageFiles,
    ToolOutput,
    read_machine_request,
)
from quarterdeck.worktrees.arrivals import open_place
from quarterdeck.worktrees.changes import see_changes
from quarterdeck.worktrees.commits import commit, stage
from quarterdeck.worktrees.entries import find_in_files, see_entries
from quarterdeck.worktrees.file_diff import see_file_change
from quarterdeck.worktrees.files import put_file, see_file
from quarterdeck.worktrees.folders import see_folders
from quarterdeck.worktrees.publish import open_pull_request, push, see_remote
from quarterdeck.worktrees.revert import revert
from quarterdeck.worktrees.settle import Busy, settle
from quarterdeck.worktrees.starts import Starts
from quarterdeck.worktrees.worktrees import Worktrees

log = logging.getLogger("quarterdeck.runner")

AT_ONCE = 4
"""Git is fast, or waits for the disk; more at once makes agents wait."""
MOST_WAITING = 64

Review = (
    SeeChanges
    | SeeFileChange
    | RevertChange
    | StageFiles
    | CommitFiles
    | SeeRemote
    | PushBranch
    | OpenPullRequest
)


class CliFiles(Value):
    """What reads and writes the files of the CLI, which nothing here knows. All of them block."""

    see_sessions: Callable[[SeeCliSessions], CliSessionsOnDisk]
    see_tool_output: Callable[[SeeToolOutput], ToolOutput]
    put_transcript: Callable[[PutTranscript], KeptTranscript]
    place_transcript: Callable[[PlaceTranscript], KeptTranscript]


class MachineRequests:
    """Answers machine requests, a few at a time."""

    def __init__(
        self, worktrees: Worktrees, busy: Busy, starts: Starts, cli_files: CliFiles
    ) -> None:
        self._worktrees = worktrees
        self._cli_files = cli_files
        self._starts = starts
        self._busy = busy
        self._places = anyio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def do(self, lines: list[bytes]) -> tuple[bool, bytes]:
        """Answer one; returns whether it was refused, and the line of the reply."""
        if self._waiting >= MOST_WAITING:
            return _refusal("busy", f"{MOST_WAITING} requests are waiting already")
        self._waiting += 1
        try:
            async with self._places:
                request = read_machine_request(b"\n".join(lines))
                return False, msgspec.json.encode(await self._answer(request))
        except msgspec.DecodeError as error:
            return _refusal("unknown", f"this runner does not know the request: {error}")
        except Conflict as error:
            return _refusal(error.code, str(error))
        except QuarterdeckError as error:
            return _refusal("git_failed", str(error))
        except Exception as error:
            log.exception("a machine request failed")
            return _refusal("failed", f"{type(error).__name__}: {error}")
        finally:
            self._waiting -= 1

    async def _answer(self, request: AnyMachineRequest) -> AnyMachineResult:
        if isinstance(request, SeeFolders):
            return await anyio.to_thread.run_sync(see_folders, request)
        files = self._cli_files
        if isinstance(request, SeeCliSessions):
            return await anyio.to_thread.run_sync(files.see_sessions, request)
        if isinstance(request, SeeToolOutput):
            return await anyio.to_thread.run_sync(files.see_tool_output, request)
        if isinstance(request, PutTranscript):
            return await anyio.to_thread.run_sync(files.put_transcript, request)
        _need_folder(request.directory)
        match request:
            case SettleTree():
                return await settle(request, self._worktrees, self._busy)
            case PutFile():
                return await anyio.to_thread.run_sync(put_file, request)
            case SeeFile():
                return await anyio.to_thread.run_sync(see_file, request)
            case SeeEntries():
                return await anyio.to_thread.run_sync(see_entries, request)
            case FindInFiles():
                return await find_in_files(request)
            case OpenPlace():
                return await open_place(request, self._worktrees)
            case PlaceTranscript():
                return await anyio.to_thread.run_sync(files.place_transcript, request)
            case _:
                return await self._review(request)

    async def _review(self, request: Review) -> AnyMachineResult:
        """What a person sees of the changes, and does with them."""
        worktrees, starts = self._worktrees, self._starts
        match request:
            case SeeChanges():
                return await see_changes(request, worktrees, starts)
            case SeeFileChange():
                return await see_file_change(request, worktrees, starts)
            case RevertChange():
                return await revert(request, worktrees, starts)
            case StageFiles():
                return await stage(request, worktrees)
            case CommitFiles():
                return await commit(request, worktrees)
            case SeeRemote():
                return await see_remote(request, worktrees)
            case PushBranch():
                return await push(request, worktrees)
            case OpenPullRequest():
                return await open_pull_request(request, worktrees)


def _need_folder(directory: str) -> None:
    if not Path(directory).is_dir():
        raise Conflict("no_such_folder", f"{directory!r} is not a folder on this machine")


def _refusal(code: str, text: str) -> tuple[bool, bytes]:
    words = text.encode(errors="replace").decode()
    return True, msgspec.json.encode(MachineRequestRefused(code=code, text=words))
