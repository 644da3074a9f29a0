"""Words for codes: the one place in Python that makes the sentences of `CodedText`. Pure.

Outputs for people call `worded` on an event before they read its texts. The web app has its own
texts, for the same codes. An event of an older hub has its sentence and no code: it is shown as it
is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec.structs import replace

from quarterdeck.domain.close_codes import describe_code
from quarterdeck.domain.coded import AlarmAct, CodedText, TextCode
from quarterdeck.domain.exits import Exit, exit_text
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.shapes import HubAlarm

_HUB_ALARMS = {
    "other_configuration": ("has another quarterdeck.toml", "make them alike"),
    "other_policy": ("has another policy.toml", "make them alike"),
    "unreachable": (
        "does not answer this hub",
        "set its journal.hub_address to an address that other hubs reach",
    ),
}


def alarm_text(alarm: HubAlarm) -> str:
    """An alarm as a sentence without its end."""
    return f"the hub at {alarm.hub} {_HUB_ALARMS[alarm.code][0]}"


def alarm_advice(alarm: HubAlarm) -> str:
    """What is to be done about it, without a capital and an end."""
    return _HUB_ALARMS[alarm.code][1]


C = TextCode
E = TypeVar("E", bound=ev.Event)

_TEXTS: dict[str, str] = {
    C.INPUT_NOT_READ: "The CLI has ended: it no longer reads its input, but still runs.",
    C.RUNNER_KILLED: "The runner was killed, and the CLI with it.",
    C.RUNNER_FAILED: "The runner failed and had to end the CLI; see its log.",
    C.NOT_READ_TO_END: "It was not read to its end.",
    C.NOT_STARTED: "It was not started: {0.detail}.",
    C.RUN_FINISHED: "this run has ended already",
    C.RUNNER_STOPPING: "the runner is stopping",
    C.TOO_MANY_RUNS: "this machine runs at most {0.most} agents at once",
    C.NO_MEMORY: "not enough memory: {0.count} MiB available, {0.most} MiB required",
    C.NO_SANDBOX: (
        "The runner of {0.name!r} ({0.other}) makes no sandbox, and this session must have one"
        " (strict): update Quarterdeck there, or start the session with another mode."
    ),
    C.MOVED_AWAY: "Its machine {0.name!r} is away. It is resumed on {0.other!r}.",
    C.PROGRAM_REVOKED: "The token of its program was revoked, or has expired.",
    C.PROGRAM_NOT_BACK: "Its program did not reconnect within {0.seconds:g} s.",
    C.SESSION_ENDED: "The session was ended.",
    C.CLI_TOKENS_REVOKED: "The tokens of dialling CLIs were revoked.",
    C.CLI_TOKEN_REVOKED: "The token of this CLI was revoked.",
    C.NO_CLI_CAME: "No CLI connected within {0.seconds:g} s.",
    C.LINK_CLOSED: "The link was closed.",
    C.MACHINE_LOST: "The connection to its machine was lost.",
    C.MACHINE_REVOKED: "The access of its machine was taken back, or has run out.",
    C.PROGRAM_LOST: "The connection to its program was lost.",
    C.HUB_RESTARTED: "The hub was restarted, and the CLI has not connected again yet.",
    C.WITHDRAWN_BY_CLI: "the CLI withdrew it",
    C.SETTLED_MEANWHILE: "it was settled while the link was down",
    C.RUN_ENDED: "its process has ended",
    C.NOT_STARTED_YET: "not started yet",
    C.API_RETRY: "{0.detail} ({0.count} of {0.most})",
    C.SILENT_AFTER_TOOL: "A tool gave its result, and nothing has come for {0.seconds:g} s.",
    C.NO_REACTION: "A permission was answered, and the CLI has not reacted for {0.seconds:g} s.",
    C.NO_RESULT: "The turn continues, and nothing has come for {0.seconds:g} s.",
    C.STILL_RUNS: "It got the request to end {0.seconds:g} s ago, and still runs.",
    C.UNSTOPPABLE: "It was interrupted for its budget, and continued.",
    C.RUNS_WITHOUT_OUTPUT: (
        "The CLI closed its output and still runs: it can report nothing more."
    ),
    C.INPUT_END_IGNORED: "The CLI did not end when its input ended.",
    C.CRASH_LOOP: (
        "The CLI has crashed {0.count} times in a row, each time within {0.seconds:g} s of its"
        " start."
    ),
    C.NOT_GREETED: "the CLI has not answered within {0.seconds:g} s, and is ended",
    C.TURN_END_LOST: "the end of the turn was lost while the CLI was away; it is idle now",
    C.NO_NEW_CONVERSATION: "the new conversation does not begin yet: {0.detail}",
    C.ANSWER_IGNORED: "{0.name} has answered, and that does not count: {0.detail}",
    C.CONTINUES_FROM_JOURNAL: "It continues on {0.name!r}, in {0.path}, as the journal has it.",
    C.CONTINUES_WITH_LINES: "It continues on {0.name!r}, in {0.path}, with {0.count} lines.",
    C.TRANSCRIPT_KEPT: (
        "The transcript on {0.name!r} had {0.count} messages that the journal does not have. It is"
        " kept there as {0.path}."
    ),
    C.POLICY_FAILED: "policy could not decide ({0.detail})",
    C.QUESTION_TO_PERSON: "{0.name} is a question to a person",
    C.AUTO_APPROVED: "{0.name} is on the session's auto-approve list",
    C.PERMISSIONS_SKIPPED: "a person started the session with permissions skipped",
    C.NO_RULE_CLI_ASKS: "no rule applies, and the CLI asks",
    C.NO_RULE_CLI_ALLOWS: "no rule applies, and the CLI allows it in mode {0.name!r}",
    C.EFFECT_UNKNOWN: ("its effect is not known ({0.detail}), and no rule names exactly this call"),
    C.PLAN_TOO_SOON: "the plan comes again too soon; {0.seconds:g} s are left to improve it",
    C.PLAN_MODE_SKIPS: (
        "the CLI was started with permissions skipped, and would not ask in plan mode"
    ),
    C.NOT_ASKED: "the rules were not asked about this call",
    C.CALL_UNREADABLE: "the call could not be read, so that no rule can allow it",
    C.CLI_DECIDED: "the CLI decided by itself, in mode {0.name!r}",
    C.CALLED_AT_MCP: "called by {0.name} at /mcp",
    C.CALL_REFUSED: "{0.detail}",
    C.ANSWER_ALLOWED: "allowed ({0.name})",
    C.ANSWER_EDITED: "allowed ({0.name}), with another input",
    C.ANSWER_GIVEN: "answered",
    C.ANSWER_SKIPPED: "skipped",
    C.PLAN_FRESH: "approved, to be done in a new conversation",
    C.PLAN_AUTO: "approved, edits accepted",
    C.PLAN_MANUAL: "approved, every call asked about",
    C.PLAN_REVISE: "to be revised",
    C.PLAN_REJECTED: "rejected",
    C.FORM_ANSWERED: "{0.name}",
    C.CLI_CHANGES: "the CLI changes: {0.detail}",
    C.COMMITTED: "Committed {0.commit}: {0.detail}",
    C.PUSHED: "Pushed {0.name} ({0.commit}) to {0.url}.",
    C.PULL_REQUEST_OPENED: "Opened a pull request from {0.name} into {0.other}: {0.url}",
    C.WORKTREE_REMOVED: "Its worktree and branch are removed.",
    C.WORKTREE_WILL_GO: "Then its worktree and branch are removed.",
    C.WORKTREE_STAYS: "Its worktree stays.",
    C.BRANCH_DIVERGED: (
        "The branch {0.name} is as this machine has it ({0.commit}). The remote has other commits"
        " ({0.ref})."
    ),
    C.BRANCH_BEHIND: (
        "The branch {0.name} is as the worktree on this machine has it ({0.commit}). The remote is"
        " ahead ({0.ref}): {0.detail}."
    ),
    C.LOGIN_LINK_MADE: "{0.name} made a login link for {0.other} ({0.names[0]}).",
    C.ACCESS_REVOKED: ("{0.name} took back the access of {0.other} ({0.names[0]}, {0.names[1]})."),
    C.SHARE_REVOKED: "{0.name} revoked the read-only link “{0.other}”.",
    C.POLICY_CHANGED: ("{0.name} changed the policy {0.other}: version {0.commit} is in force."),
    C.TEMPLATE_SAVED: "{0.name} saved the session template {0.other}.",
    C.TEMPLATE_REMOVED: "{0.name} removed a session template ({0.other}).",
    C.SCHEDULE_SAVED: "{0.name} saved the schedule {0.other}.",
    C.SCHEDULE_REMOVED: "{0.name} removed the schedule {0.other}.",
}
"""The text of each code, with its parameters. `_SPECIAL` has those that need more than that."""

_STOPPED = {
    C.PROCESS_ENDED: "",
    C.PROCESS_TERMINATED: "it did not exit when its input ended, and was terminated",
    C.PROCESS_KILLED: "it did not stop when it was terminated, and was killed",
    C.OUTPUT_CLOSED: "it closed its output and kept running, so it was stopped",
}


def _end_text(coded: CodedText) -> str:
    how = "" if coded.exit_code is None else exit_text(coded.exit_code)
    happened = "; ".join(filter(None, (_STOPPED[C(coded.code)], how)))
    return f"The CLI has ended: {happened or 'nobody knows how'}."


def _not_back(coded: CodedText) -> str:
    after = "" if coded.close_code is None else f" after {describe_code(coded.close_code)}"
    return f"The CLI did not reconnect within {coded.seconds:g} s{after}."


def _connection_lost(coded: CodedText) -> str:
    code = coded.close_code
    return f"The connection was lost{'' if code is None else f': {describe_code(code)}'}."


def _limit(coded: CodedText) -> str:
    which = (coded.name or "account").replace("_", " ")
    if coded.until is None:
        return f"the {which} limit is reached"
    until = datetime.fromtimestamp(coded.until / 1000, UTC)
    return f"the {which} limit is reached, until {until:%Y-%m-%d %H:%M} UTC"


def _peer(coded: CodedText) -> str:
    who = f"process {coded.pid}" if coded.pid is not None else "an unknown process"
    return f"Another Claude session ({who}) prompted this one, although it refuses such prompts."


def _parts(coded: CodedText) -> str:
    shown, more = ", ".join(coded.names), coded.count - len(coded.names)
    return f"{shown} and {more} more" if more > 0 else shown


def _rule(coded: CodedText) -> str:
    verb = coded.verb if coded.code == C.RULE_APPLIES else f"may {coded.verb}"
    because = f" ({coded.detail})" if coded.detail else ""
    return f"{coded.name} ({coded.other}): {verb} {_parts(coded)}{because}"


def _default(coded: CodedText) -> str:
    return f"no rule allows {_parts(coded)}, and the default of {coded.other} is {coded.verb}"


def _denial_text(coded: CodedText) -> str:
    return coded.detail or "denied"


_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def _duration(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)} {unit}"
    return f"{seconds:g} s"


def _plural(count: float, noun: str) -> str:
    return f"{count:g} {noun}" if count == 1 else f"{count:g} {noun}s"


def _grant(coded: CodedText) -> str:
    where = {
        "session": "in this session",
        "project": f"in the project {coded.other}",
        "folder": f"in {coded.path}",
    }.get(coded.verb, "in all sessions")
    until = f" for {_duration(coded.seconds)}" if coded.seconds else ""
    return f"granted {', '.join(coded.names)} {where}{until} (grant {coded.ref})"


def _stage_text(verb: str) -> Callable[[CodedText], str]:
    return lambda coded: f"{verb}: {coded.path or _plural(coded.count, 'file')}."


def _undone(coded: CodedText) -> str:
    places = f" {_plural(coded.count, 'changed place')} of" if coded.count else ""
    kept = f" What was there is kept: git show {coded.ref}:{coded.path}" if coded.ref else ""
    return f"Undone:{places} {coded.path}.{kept}"


def _keep_text(coded: CodedText) -> str:
    where = f", its worktree is {coded.path}" if coded.path else ""
    return f"The branch {coded.name} is kept{where}."


def _merge_text(coded: CodedText) -> str:
    return f"{coded.name} is merged into {coded.other}, which is now at {coded.commit}."


def _in_base(coded: CodedText) -> str:
    return f"{coded.other} already has all of {coded.name}."


def _would_merge(coded: CodedText) -> str:
    commits = _plural(coded.count, "commit")
    text = f"{commits} of {coded.name} will be merged into {coded.other}."
    if coded.most:
        files = _plural(coded.most, "uncommitted file")
        text += f" First, {files} will be committed with your message; that may conflict."
    return text


def _then(first: Callable[[CodedText], str]) -> Callable[[CodedText], str]:
    def both(coded: CodedText) -> str:
        after = "" if coded.more is None else coded_text(coded.more)
        return f"{first(coded)} {after}".rstrip()

    return both


def _discard_text(coded: CodedText) -> str:
    text = f"The worktree and the branch {coded.name} were removed"
    if not coded.ref:
        return f"{text}; no work was lost."
    return f"{text}. The work is saved: git branch {coded.name} {coded.ref}"


def _would_discard(coded: CodedText) -> str:
    files = f" It has {_plural(coded.count, 'uncommitted file')}." if coded.count else ""
    return (
        f"The worktree and the branch {coded.name} will be removed.{files}"
        " Work that is nowhere else is saved first under a ref of git."
    )


def _as_here(coded: CodedText) -> str:
    why = coded.detail or "the repository has no remote"
    return f"The branch {coded.name} is as this machine has it: {why}."


def _revoke_text(whose: str) -> Callable[[CodedText], str]:
    command = "a command on the hub's machine"
    return lambda coded: f"The token of {whose} was revoked by {coded.name or command}."


def _token(coded: CodedText) -> str:
    days = _plural(coded.seconds / 86400, "day")
    return f"{coded.name} made a token for {coded.other} ({coded.names[0]}), valid for {days}."


def _share(coded: CodedText) -> str:
    hours = f"{coded.seconds / 3600:g} h"
    return f"{coded.name} made the read-only link “{coded.other}” for {hours}."


def _open_text(coded: CodedText) -> str:
    return f"The read-only link “{coded.other}” was opened from {coded.detail or 'an address'}."


def _place(coded: CodedText) -> str:
    where = coded.path or (f"the project {coded.other}" if coded.other else "")
    return f"{', '.join(coded.names)}{f' in {where}' if where else ''}"


def _grant_text(coded: CodedText) -> str:
    return f"{coded.name} granted {_place(coded)}."


def _ungrant_text(coded: CodedText) -> str:
    return f"{coded.name} took back {_place(coded)}, granted by {coded.detail}."


def _with_cause(text: str) -> Callable[[CodedText], str]:
    return lambda coded: f"{text} {_cause(coded)}".strip()


def _cause(coded: CodedText) -> str:
    return coded.detail if coded.more is None else coded_text(coded.more)


_SPECIAL: dict[str, Callable[[CodedText], str]] = {
    **dict.fromkeys(_STOPPED, _end_text),
    C.CLI_NOT_BACK: _not_back,
    C.CONNECTION_LOST: _connection_lost,
    C.LIMIT_REACHED: _limit,
    C.PEER_PROMPT: _peer,
    C.RULE_APPLIES: _rule,
    C.RULE_MAY_APPLY: _rule,
    C.DEFAULT_APPLIES: _default,
    C.ANSWER_DENIED: _denial_text,
    C.GRANTED: _grant,
    C.FILES_STAGED: _stage_text("Staged"),
    C.FILES_UNSTAGED: _stage_text("Unstaged"),
    C.CHANGE_UNDONE: _undone,
    C.BRANCH_KEPT: _keep_text,
    C.BRANCH_MERGED: _then(_merge_text),
    C.BRANCH_IN_BASE: _then(_in_base),
    C.BRANCH_DISCARDED: _discard_text,
    C.WOULD_DISCARD: _would_discard,
    C.WOULD_MERGE: _then(_would_merge),
    C.BRANCH_AS_HERE: _as_here,
    C.CLI_STARTS_REVOKED: _revoke_text("CLIs that begin a session"),
    C.CLI_ACCESS_REVOKED: _revoke_text("its CLI"),
    C.TOKEN_MADE: _token,
    C.SHARE_MADE: _share,
    C.SHARE_OPENED: _open_text,
    C.GRANT_MADE: _grant_text,
    C.GRANT_REVOKED: _ungrant_text,
    C.EMPTY_RESUME: _with_cause("The conversation was resumed, and nothing came of it:"),
    C.RESUMED_AUTOMATICALLY: _with_cause("It is resumed automatically."),
}

_ACTS: dict[str, str] = {
    AlarmAct.RING: "",
    AlarmAct.ANSWER_REPEATED: "the answer was sent again",
    AlarmAct.TURN_INTERRUPTED: "the turn was interrupted",
    AlarmAct.RUN_ENDED: "the CLI was ended; the session can be resumed",
    AlarmAct.RUN_KILLED: "the CLI was killed",
    AlarmAct.CLI_ENDED: "the CLI was ended",
    AlarmAct.CLI_SIGNALLED: "the CLI was ended by signals",
    AlarmAct.NOT_TRIED_AGAIN: "it is not tried again by itself",
    AlarmAct.NOT_STARTED_AGAIN: "it is not started again by itself",
}


def coded_text(coded: CodedText) -> str:
    """A code in words. One of a newer Quarterdeck is shown with what others have said."""
    if (special := _SPECIAL.get(coded.code)) is not None:
        return special(coded)
    if (text := _TEXTS.get(coded.code)) is not None:
        return text.format(coded)
    return ": ".join(filter(None, (coded.code.replace("_", " "), coded.detail)))


def act_text(act: str) -> str:
    """What was done about an alarm, in words."""
    return _ACTS.get(act, act.replace("_", " "))


def coded_exit(code: TextCode, *, fault: str = "", detail: str = "") -> Exit:
    """The end of a run for a hub of any version: the sentence is for older ones."""
    coded = CodedText(code=code, detail=detail)
    return Exit(reason=coded_text(coded), fault=fault, coded=coded)


def end_of(ended: ev.RunEnded) -> CodedText | None:
    """How a run ended, with all parameters. None: only its `reason` tells that."""
    if ended.coded is None:
        return None
    return replace(ended.coded, exit_code=ended.exit_code, signal=ended.signal)


def end_text(ended: ev.RunEnded) -> str:
    """How a run ended, in words."""
    coded = end_of(ended)
    return ended.reason if coded is None else coded_text(coded)


def with_texts(event: E) -> E:
    """An event with its texts for people. Most events have none, and are given back as they are."""
    word = _WORDED.get(type(event))
    if word is None:
        return event
    found: E = word(event)
    return found


def _reason(event: ev.LinkLost | ev.AskWithdrawn) -> ev.Event:
    return event if event.coded is None else replace(event, reason=coded_text(event.coded))


def _alarm(event: ev.Alarmed) -> ev.Event:
    if event.coded is None:
        return event
    return replace(event, text=coded_text(event.coded), action=act_text(event.act))


def _detail(event: ev.StateChanged) -> ev.Event:
    return event if event.coded is None else replace(event, detail=coded_text(event.coded))


def _text(event: ev.Noted | ev.WorktreeSettled | ev.FolderChanged) -> ev.Event:
    return event if event.coded is None else replace(event, text=coded_text(event.coded))


def _reasons(event: ev.AskOpened | ev.Decided) -> ev.Event:
    if not event.coded:
        return event
    return replace(event, reasons=(*map(coded_text, event.coded), *event.reasons))


def _end(event: ev.RunEnded) -> ev.Event:
    return event if event.coded is None else replace(event, reason=end_text(event))


_WORDED: dict[type[ev.Event], Callable[[Any], Any]] = {
    ev.RunEnded: _end,
    ev.LinkLost: _reason,
    ev.AskWithdrawn: _reason,
    ev.StateChanged: _detail,
    ev.Alarmed: _alarm,
    ev.Noted: _text,
    ev.WorktreeSettled: _text,
    ev.FolderChanged: _text,
    ev.AskOpened: _reasons,
    ev.Decided: _reasons,
}
