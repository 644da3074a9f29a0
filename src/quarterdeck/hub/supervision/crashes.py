"""How runs end: what was wrong with an end, and whether the session is resumed by itself. Pure.

Owns the alarms about ends and the rule of restarts. A session whose spec says `restart` is resumed
after a crash, each time a little later, and left alone after a few crashes in a row in which its
CLI did not stay up. The journal counts them (`accounts`), so that a loop ends over restarts of the
hub too. A resume that found no conversation is not tried again: it would find none again.
"""

from __future__ import annotations

from quarterdeck.journal.accounts import HEALTHY_MS
from quarterdeck.journal.views import SessionView
from quarterdeck.protocol.events import Alarmed, RunEnded
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
        text = "The CLI closed its output and went on running: nothing can be heard of it."
        found.append(Alarmed(alarm=OUTPUT_CLOSED, text=text, action="the CLI was ended"))
    elif ended.fault == NO_EXIT and view.cli_state is SessionState.IDLE:  # else its turn kept it
        text = "The CLI did not end when its input ended."
        found.append(Alarmed(alarm=NO_EXIT, text=text, action="the CLI was ended by signals"))
    account = view.account
    known = EMPTY_RESUME in account.alarms
    idle = not account.run_turns and not view.unsent
    if account.resumed and account.up_since and not (answered or account.stopping or known or idle):
        text = f"The conversation was resumed, and nothing came of it: {ended.reason}"
        found.append(Alarmed(alarm=EMPTY_RESUME, text=text, action=_LEFT))
    return found


def alarms_at_turn(view: SessionView, why: str, *, answered: bool) -> list[Alarmed]:
    """What is wrong with the end of a turn that has no words. The view is the one after it."""
    account = view.account
    if not account.resumed or answered or account.run_turns != 1 or EMPTY_RESUME in account.alarms:
        return []
    text = f"The conversation was resumed, and nothing came of it: {why}"
    return [Alarmed(alarm=EMPTY_RESUME, text=text, action=_LEFT)]


def loop_alarm(view: SessionView) -> Alarmed | None:
    """A session that is not started again, since its CLI does not stay up. After its end."""
    crashes = view.account.crashes
    if not view.spec.restart or crashes <= TRIES or CRASH_LOOP in view.account.alarms:
        return None
    text = (
        f"The CLI has crashed {crashes} times in a row, each time within "
        f"{HEALTHY_MS // 1000} s of its start."
    )
    return Alarmed(alarm=CRASH_LOOP, text=text, action="it is not started again by itself")


def restart_at(view: SessionView) -> int | None:
    """When a session is to be resumed by itself, in ms since 1970; None: not at all."""
    account = view.account
    if view.run is not None or view.deleted or view.archived or not view.spec.restart:
        return None
    if not 0 < account.crashes <= TRIES or EMPTY_RESUME in account.alarms:
        return None
    return account.ended_at + PAUSES_MS[min(account.crashes, len(PAUSES_MS)) - 1]


_LEFT = "it is not tried again by itself"
