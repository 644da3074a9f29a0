"""A session goes on on another machine: with its conversation, and its branch.

Owns what is brought there before the CLI is started: the transcript, from the lines that the CLI
has mirrored into the journal, and the folder with the session's branch. A run on a machine that is
not connected is given up in the same append that starts the next one, so that a session never has
two: when that machine comes back, the hub knows nothing of its run, and has it ended. `hub` is
above; the machine's runner is asked by `machine_requests`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import Conflict, StaleFence, UsageError
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.hub.decisions.inputs import Move
from quarterdeck.hub.machine_requests import MachineRequests
from quarterdeck.hub.session import Session
from quarterdeck.hub.shell import carry_out
from quarterdeck.journal.base import Journal
from quarterdeck.protocol.commands import MoveSession, Outcome
from quarterdeck.protocol.events import Noted, Said
from quarterdeck.protocol.machine_requests import (
    KeptTranscript,
    OpenedPlace,
    OpenPlace,
    PlaceTranscript,
    PutTranscript,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import LOCAL, UNMANAGED, SessionSpec
from quarterdeck.runtime.off_loop import off_loop
from quarterdeck.transcripts.layout import config_dir_of
from quarterdeck.transcripts.mirror import MirroredLines
from quarterdeck.wire import codec
from quarterdeck.wire.internal import TranscriptMirror

PAGE = 500
"""Events read at once."""
PART = 1024 * 1024
"""Bytes of a transcript that are sent at once. A longer line is sent alone."""

_SIGN = b'"transcript_mirror"'
_R = TypeVar("_R", OpenedPlace, KeptTranscript)
_Request: TypeAlias = OpenPlace | PutTranscript | PlaceTranscript


class Brought(Value):
    """What a machine has now: where the session works there, and what a person should know."""

    spec: SessionSpec
    notes: tuple[Noted, ...] = ()


class Moves:
    """Brings sessions to other machines."""

    def __init__(
        self,
        journal: Journal,
        requests: MachineRequests,
        connected: Callable[[str], bool],
        local: Callable[[], str],
    ) -> None:
        """`connected`: whether the runner of a machine is here. `local`: the hub's own machine."""
        self._journal = journal
        self._requests = requests
        self._connected = connected
        self._local = local

    async def move(self, session: Session, command: MoveSession) -> Outcome:
        """Resume a session on a machine. Raises `Conflict`, `UsageError` or `LinkError`.

        Raises `StaleFence` if another hub has the machine, after the run here was given up.
        """
        view = session.view
        if view.run is not None and self._runs_on(view) == command.machine:
            self._check_connected(command.machine)
            return Outcome(session=session.id, repeated=True)
        self._check_away(view)
        brought = await self._bring(view, command)
        async with session.in_order():
            now = session.view
            if (now.run, now.cli_session) != (view.run, view.cli_session):
                raise Conflict("changed_meanwhile", "the session has changed meanwhile: try again")
            self._check_away(now)
            here = session.fleet is None or session.fleet.holds_machine(command.machine)
            moved = Move(
                by=command.by,
                machine=command.machine,
                away=self._runs_on(now),
                spec=brought.spec,
                notes=brought.notes,
                here=here,
            )
            await carry_out(session, moved)
            if not here:
                raise StaleFence(f"machine {command.machine}")
        return Outcome(session=session.id)

    def _runs_on(self, view: SessionView) -> str:
        return view.machine or self._local()

    def _check_connected(self, machine: str) -> None:
        if not self._connected(machine):
            raise Conflict("running", f"the session runs on {machine!r}, which is not connected")

    def _check_away(self, view: SessionView) -> None:
        """Raise `Conflict` if the session has a process that can be reached."""
        if view.run is None:
            return
        machine = self._runs_on(view)
        if view.machine in UNMANAGED or self._connected(machine):
            text = f"the session has a process on {machine!r}, which is connected: stop it first"
            raise Conflict("running", text)

    # --- what is brought -----------------------------------------------------------------------

    async def _bring(self, view: SessionView, command: MoveSession) -> Brought:
        """Have the folder and the transcript of a session on a machine."""
        machine, spec = command.machine, view.spec
        folder = command.directory or spec.directory
        if machine in UNMANAGED or not folder.startswith("/"):
            raise UsageError("machine: it must have a runner; directory: must be an absolute path")
        upload, lines = new_id(), 0
        if view.cli_session is not None:
            lines = await self._send(view, view.cli_session, machine, upload)
        place = OpenPlace(directory=folder, branch=spec.worktree)
        opened = await self._ask(machine, place, OpenedPlace)
        continued = CodedText(
            code=TextCode.CONTINUES_FROM_JOURNAL, name=machine, path=opened.directory
        )
        notes = [_note(continued)]
        if opened.coded is not None:
            notes.append(_note(opened.coded))
        elif opened.text:  # of an older runner
            notes.append(Noted(level="info", text=opened.text))
        if view.cli_session is not None:
            wanted = PlaceTranscript(
                upload=upload,
                cli_session=view.cli_session,
                directory=opened.directory,
                config=config_dir_of(spec.env),
            )
            kept = await self._ask(machine, wanted, KeptTranscript)
            notes[0] = _note(replace(continued, code=TextCode.CONTINUES_WITH_LINES, count=lines))
            if kept.saved:
                other = CodedText(
                    code=TextCode.TRANSCRIPT_KEPT,
                    name=machine,
                    count=kept.unknown,
                    path=kept.saved,
                )
                notes.append(_note(other))
        spec = replace(spec, machine=None if machine == LOCAL else machine, directory=folder)
        return Brought(spec=spec, notes=tuple(notes))

    async def _send(self, view: SessionView, cli_session: str, machine: str, upload: str) -> int:
        """Send the transcript. Raises `Conflict` if the journal does not have all of it."""
        mirrored = MirroredLines(cli_session)
        waiting: list[bytes] = []
        file, size = "", 0

        async def flush() -> None:
            if waiting:
                lines = tuple(map(msgspec.Raw, waiting))
                put = PutTranscript(upload=upload, lines=lines, file=file)
                await self._ask(machine, put, KeptTranscript)
                waiting.clear()

        async for batch in self._batches(view.session):
            name, lines = mirrored.take(batch)
            for line in lines:
                if name != file or size + len(line) > PART:
                    await flush()
                    file, size = name, 0
                waiting.append(line)
                size += len(line)
        await flush()
        if not mirrored.count:
            raise Conflict(
                "not_mirrored",
                "the journal does not have the transcript of this session: another machine can"
                " resume only sessions that were started with `session_mirror`",
            )
        if missing := mirrored.missing:
            raise Conflict(
                "not_mirrored",
                f"the journal does not have the whole transcript of this session: {missing}"
                " messages are missing, of a time without `session_mirror` or without a runner",
            )
        return mirrored.count

    async def _batches(self, session: str) -> AsyncIterator[TranscriptMirror]:
        """What the CLI has mirrored, in order. It is never all in memory."""
        after = 0
        while page := await self._journal.read(session, after=after, limit=PAGE):
            after = page[-1].seq
            for stored in page:
                match stored.event:
                    case Said(line=raw) if _SIGN in (line := bytes(raw)):
                        message = await off_loop(len(line), codec.from_cli, line)
                        if isinstance(message, TranscriptMirror):
                            yield message
                    case _:
                        pass

    async def _ask(self, machine: str, request: _Request, gives: type[_R]) -> _R:
        try:
            return await self._requests.run(machine, request, gives)
        except Conflict as error:
            if error.code != "unknown":
                raise
            text = f"the runner of {machine!r} is too old to resume a session of another machine"
            raise Conflict("old_runner", f"{text}: update it") from error


def _note(coded: CodedText) -> Noted:
    return Noted(level="info", text="", coded=coded)
