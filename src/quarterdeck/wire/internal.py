"""Messages that the CLI's makers call internal.

They are in no published type, and may change or vanish with any release: code that uses them must
also work without them. Most are for Anthropic's own hosts and user interfaces. So their fields are
few and loosely typed; `raw` has the rest.

Written by tools/write_wire.py from tools/wire/internal.toml; do not edit.
"""

from __future__ import annotations

from msgspec import Raw, field

from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.base import Message, Number, OpenEnum, Part
from quarterdeck.wire.envelope import System


class LifecycleState(OpenEnum):
    """The state of a prompt."""

    QUEUED = "queued"
    STARTED = "started"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    REFUSED = "refused"


class CommandLifecycle(Message, tag="command_lifecycle"):
    """A prompt that carried a uuid was queued, begun, or done with. The best receipt there is."""

    command_uuid: str
    state: LifecycleState
    wakeup_source: str | None = None
    scheduled_for: Number | None = None
    ran_ahead: bool = False
    uuid: str = ""
    session_id: str = ""


class TranscriptMirror(Message, tag="transcript_mirror"):
    """Lines just written to a session's file. Needs `--session-mirror`. Has no uuid."""

    file_path: str = field(name="filePath")
    entries: tuple[Raw, ...] = ()


class Autocompact(Part):
    """The threshold of automatic compaction."""

    enabled: bool | None = None
    effective_window: Number | None = None
    threshold: Number | None = None
    enforced: bool | None = None
    source: str | None = None


class AutocompactState(Message, tag="autocompact_state"):
    """The threshold of automatic compaction has changed."""

    value: Autocompact | None = None
    uuid: str = ""
    session_id: str = ""


class BridgeState(System, tag="bridge_state"):
    """The connection to Anthropic's remote control came up or went down."""

    state: str = ""
    detail: str | None = None
    failure_kind: str | None = None
    recovered: bool | None = None
    bridge_epoch: Raw = ABSENT


class SessionTitleChanged(System, tag="session_title_changed"):
    """The session has a new title."""

    title: str = ""


class InheritedAsksSettled(System, tag="inherited_asks_settled"):
    """Of the questions that an earlier process left open, these remain."""

    kept_request_ids: tuple[str, ...] = ()


class CodeChangePublished(System, tag="code_change_published"):
    """A pull request or similar object was created or changed."""

    provider: str = ""
    url: str = ""
    repo: str = ""
    identifier: str = ""
    action: str | None = None
    branch: str | None = None


class VcsStateChanged(System, tag="vcs_state_changed"):
    """The working copy got a commit, push, merge or rebase."""

    kind: str = ""
    cwd: str = ""
    branch: str | None = None


class FeedbackDraftQueued(System, tag="feedback_draft_queued"):
    """A report to the CLI's makers waits to be sent."""

    draft_id: str = ""
    draft_type: str = ""
    title: str = ""
    details_preview: str = ""


class UiInvalidate(System, tag="ui_invalidate"):
    """A plugin's user interface is to be drawn again."""

    event: str = ""
    prompts_screened: bool = False
    instances: Raw = ABSENT


class UiLog(System, tag="ui_log"):
    """A plugin logs a line."""

    plugin: str = ""
    text: str = ""


class UiToast(System, tag="ui_toast"):
    """A plugin shows a note for a while."""

    plugin: str = ""
    text: str = ""
    timeout_ms: Number = 0


class UiNotify(System, tag="ui_notify"):
    """A plugin calls for attention, now or later."""

    plugin: str = ""
    source: str = ""
    title: str = ""
    text: str = ""
    key: str | None = None
    delay_ms: Number | None = None
    at: Number | None = None
    until_back: bool | None = None
    rewritten: bool = False


class UiNotifyCancel(System, tag="ui_notify_cancel"):
    """A plugin no longer calls for attention."""

    plugin: str = ""
    source: str = ""
    key: str | None = None


class UiStatus(System, tag="ui_status"):
    """A plugin sets or clears its line of status."""

    plugin: str = ""
    text: str | None = None


class UiPanes(System, tag="ui_panes"):
    """The panes of plugins, and which of them is shown."""

    panes: Raw = ABSENT
    shown_id: str | None = None
    focused_id: str | None = None
    focus_requested_id: str | None = None


class UiPlaced(System, tag="ui_placed"):
    """Where the rows of plugins are."""

    rows: Raw = ABSENT


class UiScroll(System, tag="ui_scroll"):
    """A plugin's pane is to be scrolled."""

    client_id: str = ""
    component: str = ""
    instance_id: str = ""
    offset: Number = 0
    follow_end: bool | None = None


class UiFocus(System, tag="ui_focus"):
    """A part of a plugin's pane is to get the focus."""

    client_id: str = ""
    component: str = ""
    instance_id: str = ""
    plugin: str = ""
    key: str = ""


class CloudSessionDelta(System, tag="cloud_session_delta"):
    """Something of a session in Anthropic's cloud has changed."""

    seq: Number = 0
    changed: tuple[str, ...] = ()
    cloud_session: Raw = ABSENT


class DevIntent(System, tag="dev_intent"):
    """The work seems to be on an app for a phone."""

    kind: str = ""
    trigger: str | None = None


class TurnHandoffAvailable(System, tag="turn_handoff_available"):
    """Another worker may take the turn over."""

    v: Number = 0
    tools: tuple[str, ...] = ()
    worker_epoch: Number | None = None
    staged_files: bool = False
    no_query_first: bool = False
    shared_message_id: bool = False
    relay_marker: bool = False
    home_files: bool = False
    file_names: bool = False
    carried_writes: bool = False
    hydrates_carried_lines: bool = False
    requires_rewind_request_id: bool = False


class TurnPreempted(System, tag="turn_preempted"):
    """A prompt that came soon after another has taken its place."""

    reason: str = ""
    preempted_by_uuid: str = ""
    preempted_message_uuids: tuple[str, ...] = ()


class PeerMessageHold(System, tag="peer_message_hold"):
    """A message of another session was held back by a rule, or let go again."""

    state: str = ""
    message_uuid: str | None = None
    lane: str = ""
    from_: str = field(name="from", default="")
    from_name: str | None = None
    cause: str | None = None
    outcome: str | None = None


class PerTurnEffortChanged(System, tag="per_turn_effort_changed"):
    """Whether effort is chosen turn by turn has changed."""

    per_turn_effort_active: bool = False


class PermissionCheckStatus(System, tag="permission_check_status"):
    """In `auto` mode the check of a tool call takes a while, or has ended."""

    tool_use_id: str = ""
    agent_id: str | None = None
    status: str = ""


class InstructionSizeWarning(System, tag="instruction_size_warning"):
    """The instruction files are larger than is good."""

    total_chars: Number = 0
    total_limit_chars: Number = 0
    file_count: Number = 0
    largest_chars: Number | None = None


class FileAttachmentsMissing(System, tag="file_attachments_missing"):
    """Files that a prompt named could not be found."""

    message_uuid: str = ""
    sent_count: Number = 0
    missing: Raw = ABSENT


class PostTurnSummary(System, tag="post_turn_summary"):
    """A one-line summary of a turn, and what it needs from a person."""

    summarizes_uuid: str = ""
    status_category: str = ""
    status_detail: str = ""
    needs_action: str = ""


class TaskSummary(System, tag="task_summary"):
    """A one-line summary of the CLI's current work."""

    detail: str | None = None


class SessionMetadata(System, tag="session_metadata"):
    """Things known of a session in Anthropic's cloud."""

    metadata: Raw = ABSENT
