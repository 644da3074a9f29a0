"""Requests of the hub to this machine, outside of a run: changes, worktrees, folders.

Owns how many run at a time, and turns every failure into a refusal. The `Runner` is above;
`changes`, `settle` and `folders` are below.
"""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from quarterdeck.domain.errors import Conflict, QuarterdeckError
from quarterdeck.protocol.machine_requests import (
    AnyMachineRequest,
    AnyMachineResult,
    MachineRequestRefused,
    PutFile,
    SeeChanges,
    SeeFile,
    SeeFolders,
    SettleTree,
    read_machine_request,
)
from quarterdeck.worktrees.changes import see_changes
from quarterdeck.worktrees.files import put_file
from quarterdeck.worktrees.folders import see_folders
from quarterdeck.worktrees.seen_file import see_file
from quarterdeck.worktrees.settle import Busy, settle
from quarterdeck.worktrees.worktrees import Worktrees

log = logging.getLogger("quarterdeck.runner")

AT_ONCE = 4
"""Git is fast, or waits for the disk; more at once makes agents wait."""
MOST_WAITING = 64


class MachineRequests:
    """Answers machine requests, a few at a time."""

    def __init__(self, worktrees: Worktrees, busy: Busy) -> None:
        self._worktrees = worktrees
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
        match request:
            case SeeChanges():
                _need_folder(request.directory)
                return await see_changes(request, self._worktrees)
            case SettleTree():
                _need_folder(request.directory)
                return await settle(request, self._worktrees, self._busy)
            case SeeFolders():
                return await anyio.to_thread.run_sync(see_folders, request)
            case PutFile():
                _need_folder(request.directory)
                return await anyio.to_thread.run_sync(put_file, request)
            case SeeFile():
                _need_folder(request.directory)
                return await anyio.to_thread.run_sync(see_file, request)


def _need_folder(directory: str) -> None:
    if not Path(directory).is_dir():
        raise Conflict("no_such_folder", f"{directory!r} is not a folder on this machine")


def _refusal(code: str, text: str) -> tuple[bool, bytes]:
    words = text.encode(errors="replace").decode()
    return True, msgspec.json.encode(MachineRequestRefused(code=code, text=words))
