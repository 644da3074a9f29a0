"""Going back to before a prompt: the files, the conversation, or both.

Owns the order: the CLI is asked what would change, then the files go back, then the conversation,
and what was done is journalled. The CLI has the checkpoints of files, and the conversation. A
conversation can go back in place from 2.1.200 on; an older one is forked instead.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from quarterdeck.domain.errors import Conflict, Forbidden, RequestError, UnsupportedError
from quarterdeck.hub.checkpoints import find_checkpoint
from quarterdeck.hub.decisions.inputs import WentBack
from quarterdeck.hub.session import Session
from quarterdeck.hub.session_requests import request_cli
from quarterdeck.hub.shell import record
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.commands import Outcome
from quarterdeck.protocol.sessions import is_agent
from quarterdeck.protocol.views import Checkpoint, Rewound
from quarterdeck.wire.commands import (
    RewindConversation,
    RewindConversationAnswer,
    RewindFiles,
    RewindResult,
)
from quarterdeck.wire.versions import Version, release

SECONDS = 60.0
OLDEST = release(RewindConversation.since or 0)
"""The first version whose conversation can go back in place."""


async def rewind(session: Session, command: cmd.RewindSession) -> Outcome:
    """Go back, or say what would change. Raises `Conflict`."""
    if is_agent(command.by):
        raise Forbidden("agents do not go back: a person does")
    if not (command.files or command.conversation):
        raise Conflict("nothing_chosen", "choose the files, the conversation, or both")
    point = await find_checkpoint(
        lambda after, limit: session.journal.read(session.id, after=after, limit=limit),
        command.prompt,
    )
    found = await _look(session, command, point)
    if command.dry_run:
        return Outcome(session=session.id, answer=_raw(found))
    problem = (command.files and found.files_problem) or (
        command.conversation and found.conversation_problem
    )
    if problem:
        raise Conflict("cannot_rewind", problem)
    return await _go_back(session, command, point, found)


async def _look(session: Session, command: cmd.RewindSession, point: Checkpoint) -> Rewound:
    found = Rewound(dry_run=command.dry_run)
    if command.files:
        try:
            answer = await _files(session, command, point, dry_run=True)
        except (RequestError, UnsupportedError) as error:
            answer = RewindResult(error=str(error))
        found = msgspec.structs.replace(
            found,
            files=answer.can_rewind,
            files_problem="" if answer.can_rewind else answer.error or "the CLI cannot",
            changed=answer.files_changed,
            insertions=answer.insertions or 0,
            deletions=answer.deletions or 0,
        )
    if command.conversation:
        problem = _conversation_problem(session, point)
        found = msgspec.structs.replace(
            found, conversation=not problem, conversation_problem=problem
        )
    return found


def _conversation_problem(session: Session, point: Checkpoint) -> str:
    """Why the conversation cannot go back there in place; empty if it can."""
    view, run = session.view, session.run
    if not goes_back_in_place(view.version):
        name = view.version or "this version"
        return f"Claude Code {name} cannot do it; {OLDEST} and later can. Fork instead."
    if point.gone:
        return "the conversation has gone back beyond this prompt already"
    if point.conversation != view.cli_session:
        return "the prompt belongs to an earlier conversation. Fork instead."
    if run is not None and run.busy:
        return "a turn runs: interrupt it first"
    return ""


def goes_back_in_place(version: str | None) -> bool:
    """Whether this version's conversation can go back in place."""
    known = Version.parse(version) if version else None
    return known is not None and known >= OLDEST


async def _go_back(
    session: Session, command: cmd.RewindSession, point: Checkpoint, found: Rewound
) -> Outcome:
    if command.files:
        answer = await _files(session, command, point, dry_run=False)
        if not answer.can_rewind:
            raise Conflict("cannot_rewind", answer.error or "the CLI did not put the files back")
    problem = ""
    if command.conversation:
        problem = await _conversation(session, command, point)
        if problem and not command.files:
            raise Conflict("cannot_rewind", problem)
    done = msgspec.structs.replace(
        found, conversation=command.conversation and not problem, conversation_problem=problem
    )
    back = WentBack(
        by=command.by,
        prompt=point.prompt,
        files=command.files,
        conversation=done.conversation,
        changed=found.changed,
    )
    await record(session, back)
    return Outcome(session=session.id, answer=_raw(done))


async def _files(
    session: Session, command: cmd.RewindSession, point: Checkpoint, *, dry_run: bool
) -> RewindResult:
    request = RewindFiles(user_message_id=point.uuid, dry_run=dry_run)
    answer = await request_cli(session, request, SECONDS, by=command.by)
    return msgspec.json.decode(answer, type=RewindResult)


async def _conversation(session: Session, command: cmd.RewindSession, point: Checkpoint) -> str:
    """Have the conversation go back; gives why it did not."""
    request = RewindConversation(target_message_uuid=point.uuid)
    answer = await request_cli(session, request, SECONDS, by=command.by)
    found = msgspec.json.decode(answer, type=RewindConversationAnswer)
    return "" if found.rewound else found.error or found.reason or "the CLI did not go back"


def _raw(found: Rewound) -> Raw:
    return Raw(msgspec.json.encode(found))
