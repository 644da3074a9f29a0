"""What follows from what others do to a session: in its folder, at `/mcp`, with its tokens. Pure.

No process waits for any of it, and the state of the run does not depend on it. `shell.record` takes
these inputs also where another hub has the process of the session.
"""

from __future__ import annotations

from quarterdeck.domain.errors import NotFound
from quarterdeck.hub.decisions.base import NOTHING, Decision, Done, Facts, State, Steps
from quarterdeck.hub.decisions.inputs import FolderActed, Note, RecordCall, TreeSettled, WentBack
from quarterdeck.protocol.events import (
    FolderChanged,
    Noted,
    SessionArchived,
    SessionCreated,
    SessionRewound,
    WorktreeSettled,
)

LOGGED_PATHS = 200
"""Paths that an event names."""


def decide_note(state: State, note: Note, facts: Facts) -> Decision[Done]:
    """A note for people, or for the audit log."""
    del facts
    yield from _create_keeper(state, note.created)
    yield Noted(level=note.level, text="", coded=note.coded, by=note.by, about=note.about)
    return NOTHING


def decide_record_call(state: State, call: RecordCall, facts: Facts) -> Decision[Done]:
    """The audit entry of a call at `/mcp`."""
    del facts
    yield from _create_keeper(state, call.created)
    yield call.entry
    return NOTHING


def _create_keeper(state: State, created: SessionCreated | None) -> Steps:
    """What makes the session that keeps an entry, unless it is there: it has no agent."""
    if state.stored is not None:
        return
    if created is None:
        raise NotFound("session", state.session)
    yield created
    yield SessionArchived(archived=True, by=created.by)


def decide_tree_settled(state: State, settled: TreeSettled, facts: Facts) -> Decision[Done]:
    """A person has settled its worktree."""
    del state, facts
    done = settled.done
    yield WorktreeSettled(
        action=done.action.value,
        branch=settled.branch,
        by=settled.by,
        text=done.text if done.coded is None else "",
        coded=done.coded,
        commit=done.commit,
        saved=done.saved,
    )
    return NOTHING


def decide_folder_acted(state: State, acted: FolderActed, facts: Facts) -> Decision[Done]:
    """A person has changed its folder, or published its work."""
    del state, facts
    done = acted.done
    yield FolderChanged(
        action=acted.action,
        by=acted.by,
        text=done.text if done.coded is None else "",
        coded=done.coded,
        paths=done.paths[:LOGGED_PATHS],
        commit=done.commit,
        saved=done.saved,
        url=done.url,
    )
    return NOTHING


def decide_went_back(state: State, back: WentBack, facts: Facts) -> Decision[Done]:
    """A person has gone back to before a prompt, and the CLI has done it."""
    del state, facts
    yield SessionRewound(
        prompt=back.prompt,
        by=back.by,
        files=back.files,
        conversation=back.conversation,
        changed=back.changed[:LOGGED_PATHS],
    )
    return NOTHING
