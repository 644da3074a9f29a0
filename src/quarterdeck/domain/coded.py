"""What is told to people, as data: a code with its parameters. No words.

Events, frames and views hold a `CodedText`. Sentences are made of it where they are shown: in
Python by `protocol.coded_texts`, in the web app by its catalogue of texts. What others have said
(the CLI, git, an operating system, a person) stays text: it is the parameter `detail`.
"""

from __future__ import annotations

from enum import StrEnum

from quarterdeck.domain.structs import Value


class TextCode(StrEnum):
    """The codes. The parameters that a code has are in brackets."""

    # --- how a run ended -------------------------------------------------------------------------
    PROCESS_ENDED = "process_ended"
    """[exit_code, signal] The same holds for the next three."""
    PROCESS_TERMINATED = "process_terminated"
    PROCESS_KILLED = "process_killed"
    OUTPUT_CLOSED = "output_closed"
    INPUT_NOT_READ = "input_not_read"
    RUNNER_KILLED = "runner_killed"
    RUNNER_FAILED = "runner_failed"
    NOT_READ_TO_END = "not_read_to_end"
    NOT_STARTED = "not_started"
    """[detail]"""
    RUN_FINISHED = "run_finished"
    RUNNER_STOPPING = "runner_stopping"
    TOO_MANY_RUNS = "too_many_runs"
    """[most]"""
    NO_MEMORY = "no_memory"
    """[count, most], in MiB"""
    NO_SANDBOX = "no_sandbox"
    """[name: the machine, other: the version of its runner]"""
    MOVED_AWAY = "moved_away"
    """[name: the machine that is away, other: the machine that goes on]"""
    PROGRAM_REVOKED = "program_revoked"
    PROGRAM_NOT_BACK = "program_not_back"
    """[seconds]"""
    SESSION_ENDED = "session_ended"
    CLI_TOKENS_REVOKED = "cli_tokens_revoked"
    CLI_TOKEN_REVOKED = "cli_token_revoked"  # noqa: S105 - no password
    CLI_NOT_BACK = "cli_not_back"
    """[seconds, close_code]"""
    NO_CLI_CAME = "no_cli_came"
    """[seconds]"""
    LINK_CLOSED = "link_closed"

    # --- why a link was lost ---------------------------------------------------------------------
    MACHINE_LOST = "machine_lost"
    MACHINE_REVOKED = "machine_revoked"
    PROGRAM_LOST = "program_lost"
    HUB_RESTARTED = "hub_restarted"
    CONNECTION_LOST = "connection_lost"
    """[close_code]"""

    # --- why a question was withdrawn ------------------------------------------------------------
    WITHDRAWN_BY_CLI = "withdrawn_by_cli"
    SETTLED_MEANWHILE = "settled_meanwhile"
    RUN_ENDED = "run_ended"

    # --- the state of a session ------------------------------------------------------------------
    NOT_STARTED_YET = "not_started_yet"
    LIMIT_REACHED = "limit_reached"
    """[name: the limit, until]"""
    API_RETRY = "api_retry"
    """[detail: the CLI's code of the error, count, most]"""

    # --- alarms ----------------------------------------------------------------------------------
    SILENT_AFTER_TOOL = "silent_after_tool"
    """[seconds] The same holds for the next three."""
    NO_REACTION = "no_reaction"
    NO_RESULT = "no_result"
    STILL_RUNS = "still_runs"
    UNSTOPPABLE = "unstoppable"
    RUNS_WITHOUT_OUTPUT = "runs_without_output"
    INPUT_END_IGNORED = "input_end_ignored"
    EMPTY_RESUME = "empty_resume"
    """[detail or more: why]"""
    CRASH_LOOP = "crash_loop"
    """[count, seconds]"""
    PEER_PROMPT = "peer_prompt"
    """[pid]"""

    # --- notes -----------------------------------------------------------------------------------
    NOT_GREETED = "not_greeted"
    """[seconds]"""
    TURN_END_LOST = "turn_end_lost"
    RESUMED_AUTOMATICALLY = "resumed_automatically"
    """[detail or more: why the run before ended]"""
    NO_NEW_CONVERSATION = "no_new_conversation"
    """[detail]"""
    ANSWER_IGNORED = "answer_ignored"
    """[name: who answered, detail]"""
    CONTINUES_FROM_JOURNAL = "continues_from_journal"
    """[name: the machine, path]"""
    CONTINUES_WITH_LINES = "continues_with_lines"
    """[name: the machine, path, count]"""
    TRANSCRIPT_KEPT = "transcript_kept"
    """[name: the machine, count, path]"""

    # --- why a call was allowed, denied or asked about --------------------------------------------
    RULE_APPLIES = "rule_applies"
    """[name: the rule, other: its place, verb, names: parts of the call, count: all its parts]"""
    RULE_MAY_APPLY = "rule_may_apply"
    """[the same, and detail: what is not known]"""
    POLICY_FAILED = "policy_failed"
    """[detail]"""
    QUESTION_TO_PERSON = "question_to_person"
    """[name: the tool]"""
    DEFAULT_APPLIES = "default_applies"
    """[names: parts that no rule allows, count: all of them, other: the policy, verb]"""
    AUTO_APPROVED = "auto_approved"
    """[name: the tool]"""
    PERMISSIONS_SKIPPED = "permissions_skipped"
    NO_RULE_CLI_ASKS = "no_rule_cli_asks"
    NO_RULE_CLI_ALLOWS = "no_rule_cli_allows"
    """[name: the mode]"""
    EFFECT_UNKNOWN = "effect_unknown"
    """[detail: what is not known]"""
    PLAN_TOO_SOON = "plan_too_soon"
    """[seconds]"""
    PLAN_MODE_SKIPS = "plan_mode_skips"
    NOT_ASKED = "not_asked"
    CALL_UNREADABLE = "call_unreadable"
    CLI_DECIDED = "cli_decided"
    """[name: the mode]"""
    CALLED_AT_MCP = "called_at_mcp"
    """[name: who called]"""
    CALL_REFUSED = "call_refused"
    """[detail]"""

    # --- what a person answered ------------------------------------------------------------------
    ANSWER_ALLOWED = "answer_allowed"
    """[name: the scope]"""
    ANSWER_EDITED = "answer_edited"
    """[name: the scope]"""
    ANSWER_DENIED = "answer_denied"
    """[detail: the person's message]"""
    ANSWER_GIVEN = "answer_given"
    ANSWER_SKIPPED = "answer_skipped"
    PLAN_FRESH = "plan_fresh"
    PLAN_AUTO = "plan_auto"
    PLAN_MANUAL = "plan_manual"
    PLAN_REVISE = "plan_revise"
    PLAN_REJECTED = "plan_rejected"
    FORM_ANSWERED = "form_answered"
    """[name: what was done with the form]"""
    CLI_CHANGES = "cli_changes"
    """[detail: a change of the CLI's rules]"""
    GRANTED = "granted"
    """[names: the rules, verb: `session`, `project`, `folder` or `all`; other: the project, path,
    seconds, ref: the grant]"""

    # --- folders and worktrees: `name` is a branch ------------------------------------------------
    FILES_STAGED = "files_staged"
    """[count; path, if it is one]"""
    FILES_UNSTAGED = "files_unstaged"
    """[count; path, if it is one]"""
    COMMITTED = "committed"
    """[commit, detail: the subject of its message]"""
    PUSHED = "pushed"
    """[name, commit, url]"""
    PULL_REQUEST_OPENED = "pull_request_opened"
    """[name, other: the base, url]"""
    CHANGE_UNDONE = "change_undone"
    """[path, count: changed places, 0 for all; ref: where the old content is]"""
    BRANCH_KEPT = "branch_kept"
    """[name, path: its worktree]"""
    BRANCH_MERGED = "branch_merged"
    """[name, other: the base, commit, more: what became of the worktree]"""
    BRANCH_IN_BASE = "branch_in_base"
    """[name, other: the base, more: what became of the worktree]"""
    BRANCH_DISCARDED = "branch_discarded"
    """[name, ref: where its work is]"""
    WORKTREE_REMOVED = "worktree_removed"
    WORKTREE_WILL_GO = "worktree_will_go"
    WORKTREE_STAYS = "worktree_stays"
    WOULD_DISCARD = "would_discard"
    """[name, count: files that are not committed]"""
    WOULD_MERGE = "would_merge"
    """[name, other: the base, count: commits, most: files that are not committed, more: what
    becomes of the worktree]"""
    BRANCH_AS_HERE = "branch_as_here"
    """[name, detail: why nothing was fetched; empty: there is no remote]"""
    BRANCH_DIVERGED = "branch_diverged"
    """[name, commit: here, ref: the remote's commit]"""
    BRANCH_BEHIND = "branch_behind"
    """[name, commit: here, ref: the remote's commit, detail: why it stays]"""

    # --- the audit log: `name` is the person who did it; empty: a command on the hub's machine ---
    CLI_STARTS_REVOKED = "cli_starts_revoked"
    CLI_ACCESS_REVOKED = "cli_access_revoked"
    TOKEN_MADE = "token_made"  # noqa: S105 - no password
    """[other: for whom, names: the role, seconds]"""
    ACCESS_REVOKED = "access_revoked"
    """[other: whose, names: the role and the kind]"""
    LOGIN_LINK_MADE = "login_link_made"
    """[other: for whom, names: the role]"""
    SHARE_MADE = "share_made"
    """[other: the link, seconds]"""
    SHARE_REVOKED = "share_revoked"
    """[other: the link]"""
    SHARE_OPENED = "share_opened"
    """[other: the link, detail: the address]"""
    POLICY_CHANGED = "policy_changed"
    """[other: the policy, commit: its version]"""
    GRANT_MADE = "grant_made"
    """[names: the rules, path: the folder, other: the project]"""
    GRANT_REVOKED = "grant_revoked"
    """[names: the rules, path: the folder, other: the project, detail: who granted them]"""
    TEMPLATE_SAVED = "template_saved"
    """[other: its name]"""
    TEMPLATE_REMOVED = "template_removed"
    """[other: its id]"""
    SCHEDULE_SAVED = "schedule_saved"
    """[other: its name]"""
    SCHEDULE_REMOVED = "schedule_removed"
    """[other: its name]"""


class AlarmAct(StrEnum):
    """What the hub did about an alarm. Empty: nothing."""

    RING = ""
    ANSWER_REPEATED = "answer_repeated"
    TURN_INTERRUPTED = "turn_interrupted"
    RUN_ENDED = "run_ended"
    RUN_KILLED = "run_killed"
    CLI_ENDED = "cli_ended"
    CLI_SIGNALLED = "cli_signalled"
    NOT_TRIED_AGAIN = "not_tried_again"
    NOT_STARTED_AGAIN = "not_started_again"


class CodedText(Value):
    """A code, and the parameters that it has. A code that is not known here is kept."""

    code: str
    """One of `TextCode`, or a newer one."""
    name: str = ""
    other: str = ""
    names: tuple[str, ...] = ()
    path: str = ""
    commit: str = ""
    """A commit, or the version of a file."""
    ref: str = ""
    """A ref of git."""
    url: str = ""
    verb: str = ""
    """What a rule does, or where a grant holds."""
    count: int = 0
    most: int = 0
    seconds: float = 0.0
    until: int | None = None
    """In ms since 1970."""
    exit_code: int | None = None
    signal: int | None = None
    close_code: int | None = None
    """Of a WebSocket."""
    pid: int | None = None
    detail: str = ""
    """What others have said, in their words."""
    more: CodedText | None = None
    """The cause of it, or what else is told."""
