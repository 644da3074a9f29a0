"""How runs end: what was wrong with an end, and whether the session is resumed by itself. Pure.

Owns the alarms about ends and the rule of restarts. A session whose runner or machine died is
resumed if it has work left: a queued prompt, or a turn that was cut off. One whose spec says
`crashes` is resumed after a crash of its CLI, too. Each try comes a little later, and after a few
in a row in which the CLI did not stay up the session is left alone. The journal counts them
(`accounts`), so that a loop ends over restarts of the hub too. A resume that found no conversation
is not tried again: it would find none again. Where nothing was written yet, a new conversation
begins instead.
"""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.domain.exits import RUNNER_KILLED
from quarterdeck.hub.supervision.watchdog import NO_CONVERSATION, Watch
from quarterdeck.journal.accounts import HEALTHY_MS
from quarterdeck.protocol.coded_texts import end_of
from quarterdeck.protocol.events import Alarmed, Noted, RunEnded
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionState

OUTPUT_CLOSED = "output_closed"
NO_EXIT = "no_exit"
EMPTY_RESUME = "empty_resume"
CRASH_LOOP = "crash_loop"

TRIES = 3
"""How often a CLI that does not stay up is started again."""
PAUSES_MS = (1_000, 5_000, 20_000)
"""How long each try waits."""


def alarms_at_end(view: SessionView, ended: RunEnded, *, answered: bool) -> list[Alarmed]:
    """What was wrong with the end of a run. The view is the one before it."""
    found: list[Alarmed] = []
    if ended.fault == OUTPUT_CLOSED:
        coded = CodedText(code=TextCode.RUNS_WITHOUT_OUTPUT)
        found.append(_alarm(OUTPUT_CLOSED, coded, AlarmAct.CLI_ENDED))
    elif ended.fault == NO_EXIT and view.cli_state is SessionState.IDLE:  # else its turn kept it
        coded = CodedText(code=TextCode.INPUT_END_IGNORED)
        found.append(_alarm(NO_EXIT, coded, AlarmAct.CLI_SIGNALLED))
    account = view.account
    known = EMPTY_RESUME in account.alarms
    idle = not account.run_turns and not view.unsent
    if account.resumed and account.up_since and not (answered or account.stopping or known or idle):
        found.append(_empty_resume(detail=ended.reason, more=end_of(ended)))
    return found


def alarms_at_turn(view: SessionView, why: str, *, answered: bool) -> list[Alarmed]:
    """What is wrong with the end of a turn that has no words. The view is the one after it."""
    account = view.account
    if not account.resumed or answered or account.run_turns != 1 or EMPTY_RESUME in account.alarms:
        return []
    if _may_begin_afresh(view):
        return []  # its end tells
    return [_empty_resume(detail=why)]


def loop_alarm(view: SessionView) -> Alarmed | None:
    """A session that is not started again, since its CLI does not stay up. After its end."""
    crashes = view.account.crashes
    ruled = view.spec.restart_rule == "crashes" or _died_with_work(view)
    if not ruled or crashes <= TRIES or CRASH_LOOP in view.account.alarms:
        return None
    coded = CodedText(code=TextCode.CRASH_LOOP, count=crashes, seconds=HEALTHY_MS // 1000)
    return _alarm(CRASH_LOOP, coded, AlarmAct.NOT_STARTED_AGAIN)


def restart_at(view: SessionView) -> int | None:
    """When a session is to be resumed by itself, in ms since 1970; None: not at all."""
    account = view.account
    rule = view.spec.restart_rule
    if view.run is not None or view.deleted or view.archived or rule == "never":
        return None
    if rule == "faults" and not _died_with_work(view):
        return None
    if not 0 < account.crashes <= TRIES or EMPTY_RESUME in account.alarms:
        return None
    return account.ended_at + PAUSES_MS[min(account.crashes, len(PAUSES_MS)) - 1]


def restart_note(view: SessionView) -> Noted:
    """What is written down when a session is resumed by itself."""
    why = CodedText(code=TextCode.RESUMED_AUTOMATICALLY)
    if (ended := view.ended) is not None:
        why = replace(why, detail=ended.reason, more=end_of(ended))
    return Noted(level="info", text="", coded=why)


def nothing_to_resume(view: SessionView, ended: RunEnded, watch: Watch) -> bool:
    """Whether a resume failed because its conversation was never written. The view is before it.

    A CLI that is killed in its first turn may leave no transcript. Nothing is lost by a new start:
    no turn has ended, and what was not taken is queued still.
    """
    tried = view.account.resumed and not watch.answered_for and not view.account.stopping
    unknown = watch.found_nothing or any(NO_CONVERSATION in line for line in ended.stderr)
    return tried and unknown and _may_begin_afresh(view)


def _may_begin_afresh(view: SessionView) -> bool:
    """Whether no turn has ended before this run, and there is something to begin with.

    A resume that fails has a result of its own, which counts as a turn of this run. A session whose
    first run resumes a conversation was made for that one, and does not begin another.
    """
    before = view.turns - view.account.run_turns
    return before == 0 and bool(view.ended_runs) and bool(view.unsent)


def _died_with_work(view: SessionView) -> bool:
    ended = view.ended
    if ended is None or ended.fault != RUNNER_KILLED:
        return False
    return bool(view.unsent) or ended.cut_off


def _empty_resume(detail: str, more: CodedText | None = None) -> Alarmed:
    coded = CodedText(code=TextCode.EMPTY_RESUME, detail=detail, more=more)
    return _alarm(EMPTY_RESUME, coded, AlarmAct.NOT_TRIED_AGAIN)


def _alarm(alarm: str, coded: CodedText, act: AlarmAct) -> Alarmed:
    return Alarmed(alarm=alarm, text="", coded=coded, act=act.value)
