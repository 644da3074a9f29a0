"""What can happen to a session: the union of all inputs, and the facts that each needs. Pure.

Commands of people are inputs as they are. The others are what its process does, the clock, and
what follows from an input once its events are journalled.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from quarterdeck.domain.coded import CodedText
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.hub.decisions.base import Facts
from quarterdeck.hub.lines import ReadLine
from quarterdeck.hub.permissions.context import Ruling
from quarterdeck.hub.permissions.edits import Edit
from quarterdeck.hub.ports import RunEnd
from quarterdeck.hub.supervision.meter import Prices
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.journal.base import AskRecord
from quarterdeck.policy.grants import Grant
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.events import (
    AskOpened,
    BudgetReached,
    Decided,
    Event,
    Noted,
    RunStarting,
    SessionCreated,
    TurnEnded,
)
from quarterdeck.protocol.machine_requests import FolderDone, Settled
from quarterdeck.protocol.runner_frames import Connection, ProgramAct
from quarterdeck.protocol.sandbox import SandboxReport
from quarterdeck.protocol.sessions import Origin, SessionSpec
from quarterdeck.wire.command_base import Command

# --- what a process does -------------------------------------------------------------------------


class Started(Value):
    """The process of a run is up; told again after each reconnect."""

    run: str
    pid: int | None
    version: str | None
    directory: str | None
    sandbox: SandboxReport | None = None


class Line(Value):
    """The CLI wrote a line that the hub does not have."""

    run: str
    number: int
    read: ReadLine


class Connected(Value):
    """The CLI used the network through the proxy of its sandbox."""

    run: str
    connection: Connection


class Acted(Value):
    """The program of a run has done something to it."""

    run: str
    act: ProgramAct
    by: str


class Ended(Value):
    """The process is gone. `transcript_read`: its transcript has been read since."""

    run: str
    end: RunEnd
    transcript_read: bool = False


class TranscriptRead(Value):
    """Messages of the transcript of a run that has ended."""

    run: str
    cli_session: str | None
    lines: tuple[bytes, ...]


class EarlierRead(Value):
    """Messages that the transcript of a run has before its first prompt."""

    run: str
    lines: tuple[bytes, ...]


class LinkBroken(Value):
    """The machine of a run cannot be reached."""

    run: str
    why: CodedText


class LinkBack(Value):
    """The machine of a run is connected again, and nothing was lost."""

    run: str


class InboundReconnected(Value):
    """The CLI connected again, and messages may be lost; `last` is the last one that it sent."""

    run: str
    last: str | None


class StartFailed(Value):
    """The machine cannot start the process of a run."""

    run: str
    why: CodedText
    written: tuple[str, ...] = ()


# --- the clock, and what follows from other inputs -----------------------------------------------


class Tick(Value):
    """About a second has passed."""


class NotGreeted(Value):
    """The CLI has not answered `initialize` in time."""

    run: str
    seconds: float


class CheckSpending(Value):
    """The budgets and the alarms of silence are to be checked.

    `again`: also if the run has used nothing since, because others may have.
    """

    again: bool = False


class CheckTurns(Value):
    """Turns have ended, and are journalled."""

    ended: tuple[TurnEnded, ...]


class CheckAlive(Value):
    """Is the CLI alive?"""


class CheckFreed(Value):
    """Which limits are not reached any more?"""


class AfterEnd(Value):
    """A run has ended, and that is journalled."""


class SendNext(Value):
    """The oldest queued prompt is to be sent, if the CLI is ready for it."""


# --- what the hub wants of a session -------------------------------------------------------------


class Create(Value):
    """A session begins, with a process."""

    created: SessionCreated
    more: tuple[Event, ...] = ()
    origin: Origin


class Adopt(Value):
    """A process that the hub did not start begins or continues a session."""

    created: SessionCreated
    starting: RunStarting


class Move(Value):
    """A session goes on with another machine, which has its transcript and folder.

    `away` is the machine that cannot be reached. Not `here`: another hub is to start the process.
    """

    by: str
    machine: str
    away: str
    spec: SessionSpec
    notes: tuple[Noted, ...] = ()
    here: bool = True


class AskCli(Value):
    """A control request for the CLI; only for this run, if one is given."""

    command: Command[Any]
    by: str = ""
    of: str = ""


class GiveUp(Value):
    """No caller waits for the answer to a request any more."""

    request_id: str


class EndProcess(Value):
    """A process that was asked to end is ended by its machine, if it is still there."""

    run: str


class GiveAnswer(Value):
    """The answer to a question is checked, and what it grants is stored."""

    command: cmd.AnswerAsk
    opened: AskOpened
    edit: Edit | None
    grant: Grant
    late: bool


# --- what others do to it ------------------------------------------------------------------------


class Note(Value):
    """A note for people, or for the audit log. `created` makes the session that keeps it."""

    level: str
    coded: CodedText
    by: str = ""
    about: str = ""
    created: SessionCreated | None = None


class RecordCall(Value):
    """The audit entry of a call at `/mcp`. `created` makes the session that keeps it."""

    entry: Decided
    created: SessionCreated | None = None


class TreeSettled(Value):
    """Its machine has merged, kept or discarded its worktree."""

    by: str
    branch: str
    done: Settled


class FolderActed(Value):
    """Its machine has done to its folder what a person wanted."""

    by: str
    action: str
    done: FolderDone


class WentBack(Value):
    """Its CLI has gone back to before a prompt."""

    by: str
    prompt: str
    files: bool
    conversation: bool
    changed: tuple[str, ...] = ()


# --- facts ---------------------------------------------------------------------------------------


class LineFacts(Facts):
    """What the rules say about the calls that a line asks about, by request."""

    rulings: dict[str, Ruling]


class BudgetFacts(Facts):
    """The limits that are reached, the nearest first, and what a model costs."""

    over: tuple[BudgetReached, ...] = ()
    prices: Prices
    changed: bool = True
    """Whether the run has used anything since this was last checked."""


class AliveFacts(Facts):
    """How long silence is borne."""

    timeouts: Timeouts


class StartFacts(Facts):
    """The id of a run that may begin, the files that earlier runs have written, and budgets."""

    run: str = ""
    written: tuple[str, ...] = ()
    over: tuple[BudgetReached, ...] = ()


class EndFacts(StartFacts):
    """What a model costs, and whether the machine can still be asked for the transcript."""

    prices: Prices
    reachable: bool


class PromptFacts(StartFacts):
    """What is known of a prompt, and its content in the form that every version takes."""

    known: bool = False
    """Whether there was a prompt with this id."""
    content: Raw = ABSENT


class AnswerFacts(StartFacts):
    """What is known of a question that is not open, and what the rules say of an edited call."""

    record: AskRecord | None = None
    answered_by: str = ""
    """Who has answered it after its process had ended."""
    ruling: Ruling | None = None
    narrowest: tuple[str, ...] = ()
    """The rules that allow the call and as little else as possible."""
    allowed: bool = True
    """Whether the rules of the answer allow the call."""


class EarlierFacts(Facts):
    """The run that was cut off before this one, and the messages that are known of it."""

    cut_off: str | None = None
    known: frozenset[str] = frozenset()


ProcessInput = (
    Started
    | Line
    | Connected
    | Acted
    | Ended
    | TranscriptRead
    | EarlierRead
    | LinkBroken
    | LinkBack
    | InboundReconnected
    | StartFailed
)
ClockInput = Tick | NotGreeted
Following = CheckSpending | CheckTurns | CheckAlive | CheckFreed | AfterEnd | SendNext | GiveAnswer
HubInput = Create | Adopt | Move | AskCli | GiveUp | EndProcess
OtherInput = Note | RecordCall | TreeSettled | FolderActed | WentBack
CommandInput = (
    cmd.RenameSession
    | cmd.ArchiveSession
    | cmd.ChangeSession
    | cmd.StopSession
    | cmd.ResumeSession
    | cmd.Interrupt
    | cmd.Control
    | cmd.SendPrompt
    | cmd.ChangePrompt
    | cmd.CancelPrompt
    | cmd.AnswerAsk
)
Input = CommandInput | ProcessInput | ClockInput | Following | HubInput | OtherInput
"""All that can happen to a session."""
