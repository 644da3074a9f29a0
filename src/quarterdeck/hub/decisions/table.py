"""The transitions of a session: which function decides about which input, and the events it gives.

`tools/draw_transitions.py` draws this table into the docs, and a property test checks that a
decision gives no other event than its row says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from quarterdeck.hub.decisions import (
    answers,
    commands,
    lines,
    notes,
    process,
    starts,
    supervision,
)
from quarterdeck.hub.decisions import inputs as on
from quarterdeck.hub.decisions.base import Decision
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol import events as ev

Decide = Callable[[Any, Any, Any], Decision[Any]]


class Transition(NamedTuple):
    """One row: the function that decides, and the events that it can give."""

    decide: Decide
    events: tuple[type[ev.Event], ...] = ()


_STATUS = (ev.CliSession, ev.StateChanged)
_PROMPT = (ev.PromptSent, ev.Sent, *_STATUS)
_HOLDINGS = (
    ev.ContextChanged,
    ev.McpChanged,
    ev.OffersChanged,
    ev.TaskChanged,
    ev.TaskEnded,
    ev.TodosChanged,
    ev.ToolEnded,
    ev.ToolStarted,
)
_LINE = (
    ev.Said,
    ev.SaidBroken,
    ev.Sent,
    ev.SpecChanged,
    ev.Switched,
    ev.RunStarted,
    ev.PeerPrompted,
    ev.Alarmed,
    ev.PromptQueued,
    ev.PromptSent,
    ev.PromptTaken,
    ev.TurnEnded,
    ev.AskOpened,
    ev.AskWithdrawn,
    ev.Decided,
    ev.LeftToCli,
    ev.RateLimited,
    ev.SandboxRefused,
    *_HOLDINGS,
    *_STATUS,
)
_ANSWER = (
    ev.AskAnswered,
    ev.Decided,
    ev.Sent,
    *_STATUS,
    ev.SpecChanged,
    ev.Switched,
    ev.PromptQueued,
    ev.StartAfresh,
    ev.RunStopping,
    ev.RunStarting,
)
_ENDED = (
    ev.SpecChanged,
    ev.Switched,
    ev.AskWithdrawn,
    *_STATUS,
    ev.Metered,
    ev.Alarmed,
    ev.RunEnded,
    ev.Noted,
    ev.RunStarting,
)
_TICK = (
    ev.BudgetFreed,
    ev.Noted,
    ev.RunStarting,
    ev.AskOpened,
    ev.TurnEnded,
    *_STATUS,
)

COMMANDS: dict[type[object], Transition] = {
    cmd.RenameSession: Transition(commands.decide_rename, (ev.SessionRenamed,)),
    cmd.ArchiveSession: Transition(commands.decide_archive, (ev.SessionArchived,)),
    cmd.ChangeSession: Transition(commands.decide_change, (ev.SpecChanged,)),
    cmd.ResumeSession: Transition(commands.decide_resume, (ev.RunStarting,)),
    cmd.StopSession: Transition(commands.decide_stop, (ev.RunStopping,)),
    cmd.Interrupt: Transition(commands.decide_interrupt, (ev.Sent,)),
    cmd.Control: Transition(commands.decide_control, (ev.Sent,)),
    cmd.SendPrompt: Transition(commands.decide_prompt, (ev.PromptQueued, ev.RunStarting, *_PROMPT)),
    cmd.ChangePrompt: Transition(commands.decide_change_prompt, (ev.PromptChanged,)),
    cmd.CancelPrompt: Transition(commands.decide_cancel_prompt, (ev.PromptCancelled,)),
    cmd.AnswerAsk: Transition(answers.decide_answer, _ANSWER),
}
"""What people want."""

PROCESS: dict[type[object], Transition] = {
    on.Started: Transition(
        process.decide_started,
        (ev.LinkFound, ev.RunStarted, ev.SandboxStarted, ev.Sent, *_STATUS),
    ),
    on.Line: Transition(lines.decide_line, _LINE),
    on.Connected: Transition(process.decide_connected, (ev.SandboxConnection, ev.SandboxRefused)),
    on.Acted: Transition(process.decide_acted, (ev.ProgramActed,)),
    on.LinkBroken: Transition(process.decide_link_broken, (ev.LinkLost, *_STATUS)),
    on.LinkBack: Transition(process.decide_link_back, (ev.LinkFound, *_STATUS)),
    on.InboundReconnected: Transition(
        process.decide_inbound_reconnect, (ev.LinkFound, ev.Sent, *_STATUS)
    ),
    on.Ended: Transition(process.decide_ended, _ENDED),
    on.TranscriptRead: Transition(
        process.decide_transcript,
        (ev.Recalled, ev.PeerPrompted, ev.Alarmed, ev.PromptTaken, ev.CliSession),
    ),
    on.EarlierRead: Transition(process.decide_earlier, (ev.Recalled,)),
    on.StartFailed: Transition(process.decide_start_failed, (ev.RunEnded,)),
}
"""What its process does, or its machine."""

CLOCK: dict[type[object], Transition] = {
    on.Tick: Transition(supervision.decide_tick, _TICK),
    on.NotGreeted: Transition(process.decide_not_greeted, (ev.Noted,)),
}
"""What time brings."""

FOLLOWING: dict[type[object], Transition] = {
    on.SendNext: Transition(commands.decide_send_next, _PROMPT),
    on.CheckSpending: Transition(
        supervision.decide_spending, (ev.Sent, ev.AlarmEnded, ev.Metered, ev.BudgetReached)
    ),
    on.CheckFreed: Transition(supervision.decide_freed, (ev.BudgetFreed,)),
    on.CheckTurns: Transition(supervision.decide_turns, (ev.Alarmed,)),
    on.CheckAlive: Transition(supervision.decide_alive, (ev.Sent, ev.Alarmed)),
    on.AfterEnd: Transition(process.decide_after_end, (ev.Alarmed,)),
    on.GiveAnswer: Transition(answers.decide_give_answer, _ANSWER),
}
"""What follows from another input, once its events are journalled."""

HUB: dict[type[object], Transition] = {
    on.Create: Transition(
        starts.decide_create, (ev.SessionCreated, ev.PromptQueued, ev.RunStarting)
    ),
    on.Adopt: Transition(starts.decide_adopt, (ev.SessionCreated, ev.RunStarting)),
    on.Move: Transition(process.decide_move, _ENDED),
    on.AskCli: Transition(commands.decide_request, (ev.Sent,)),
    on.GiveUp: Transition(commands.decide_give_up, (ev.Sent,)),
    on.EndProcess: Transition(commands.decide_end_process),
}
"""What the hub itself wants of a session."""

_KEPT = (ev.SessionCreated, ev.SessionArchived)
OTHERS: dict[type[object], Transition] = {
    on.Note: Transition(notes.decide_note, (*_KEPT, ev.Noted)),
    on.RecordCall: Transition(notes.decide_record_call, (*_KEPT, ev.Decided)),
    on.TreeSettled: Transition(notes.decide_tree_settled, (ev.WorktreeSettled,)),
    on.FolderActed: Transition(notes.decide_folder_acted, (ev.FolderChanged,)),
    on.WentBack: Transition(notes.decide_went_back, (ev.SessionRewound,)),
}
"""What others do to it: no process waits for that."""

TABLE: dict[type[object], Transition] = {
    **COMMANDS,
    **PROCESS,
    **CLOCK,
    **FOLLOWING,
    **HUB,
    **OTHERS,
}
"""Every kind of input."""
