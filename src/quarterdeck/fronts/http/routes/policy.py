"""The routes about policy: the policies in force, explanations, replays, and the audit's chain.

The right to read is enough to look, try and verify; nothing of that changes anything. What is tried
has limits of time and memory, and each person has one turn at a time. To grant and to revoke
is an owner's right, as all that decides what agents may do without a question.
"""

from __future__ import annotations

import logging
import time
from typing import Annotated

from litestar import delete, get, post, put
from litestar.params import PathParameter, QueryParameter
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.policy_shapes import PolicyGrants, SuggestionList
from quarterdeck.fronts.http.routes.audit_notes import Noter, note_change, note_if_there
from quarterdeck.fronts.http.routes.handlers import Asking, Hub, body_of
from quarterdeck.hub.api import (
    LEAST,
    Explanation,
    Grant,
    PolicyChecked,
    PolicyFileText,
    PolicyView,
    Question,
    Replay,
)
from quarterdeck.protocol.audit import Checked
from quarterdeck.protocol.coded_texts import coded_text
from quarterdeck.protocol.roles import Right
from quarterdeck.protocol.shapes import (
    CallQuestion,
    NewPolicyGrant,
    PolicyFileChange,
    PolicyText,
    PolicyTrial,
)

log = logging.getLogger(__name__)

POLICY_BODY = 4 * 1024 * 1024
"""Two texts of a million characters. These bodies are decoded in a few milliseconds."""
DAY_MS = 86_400_000
WORK_ERRORS = ("took_too_long", "busy")
TRY_ERRORS = (*READ_ERRORS, "too_large", "unsupported_media_type", *WORK_ERRORS)

PolicyName = Annotated[
    str, PathParameter(description="`policy.toml`, or the name of a policy", max_length=64)
]
GrantId = Annotated[str, PathParameter(description="A grant's id", max_length=128, min_length=1)]
Since = Annotated[
    int | None, QueryParameter(description="In ms since 1970; else the last 30 days", ge=0)
]
Least = Annotated[int, QueryParameter(description="Alike answers at least", ge=1, le=1000)]
HeadText = Annotated[
    str | None, QueryParameter(description="A head that you have kept", max_length=128)
]


@get("/policy", opt=documented(READ_ERRORS))
async def show_policy(hub: Hub) -> PolicyView:
    """The policies in force, and the errors in their files."""
    return await hub.policy.view()


@post(
    "/policy/check",
    status_code=200,
    request_max_body_size=POLICY_BODY,
    opt=documented(TRY_ERRORS, takes=PolicyText),
)
async def check_policy(request: Asking, hub: Hub) -> PolicyChecked:
    """Read a policy with its examples, and put nothing into force."""
    text = (await body_of(request, PolicyText)).text
    return await hub.policy.check(text, by=request.user.name)


@post(
    "/policy/explain",
    status_code=200,
    request_max_body_size=POLICY_BODY,
    opt=documented(TRY_ERRORS, takes=CallQuestion),
)
async def explain_call(request: Asking, hub: Hub) -> Explanation:
    """Which rules hit which part of a call, and which decided."""
    asked = await body_of(request, CallQuestion)
    given = {name: getattr(asked, name) for name in CallQuestion.__struct_fields__}
    return await hub.policy.explain(Question(**given), by=request.user.name)


@post(
    "/policy/replay",
    status_code=200,
    request_max_body_size=POLICY_BODY,
    opt=documented(TRY_ERRORS, takes=PolicyTrial),
)
async def replay_policy(request: Asking, hub: Hub) -> Replay:
    """What a policy would have done with the calls of the past, against what was done."""
    trial = await body_of(request, PolicyTrial)
    since = _month_ago() if trial.since is None else trial.since
    return await hub.policy.replay(trial.text, since, trial.session, by=request.user.name)


@get("/policy/files/{name:str}", opt=documented(COMMAND_ERRORS))
async def read_policy_file(name: PolicyName, request: Asking, hub: Hub) -> PolicyFileText:
    """The text of a policy file. For owners."""
    request.user.need(Right.MANAGE)
    return await hub.policy.texts.read(name)


@put(
    "/policy/files/{name:str}",
    request_max_body_size=POLICY_BODY,
    opt=documented((*COMMAND_ERRORS, *WORK_ERRORS), takes=PolicyFileChange),
)
async def replace_policy_file(
    name: PolicyName, request: Asking, hub: Hub, noting: Noter
) -> PolicyFileText:
    """Replace a policy file and put it in force. For owners.

    A text with errors is refused, and so is one that replaces another version than the one on the
    disk (`policy_changed`). The audit log has it, and so have the running sessions.
    """
    person = request.user
    person.need(Right.MANAGE)
    new = await body_of(request, PolicyFileChange)
    # In a process that can be killed: an owner's text, too, must not hold up the hub.
    checked = await hub.policy.check(new.text, by=person.name)
    if not checked.good:
        flaw = checked.flaws[0]
        raise UsageError(f"policy: line {flaw.line}: {flaw.text}")
    made = await hub.policy.texts.replace(name, new.text, new.version)
    note = CodedText(
        code=TextCode.POLICY_CHANGED, name=person.name, other=name, commit=made.version[:12]
    )
    log.warning("%s", coded_text(note))
    await note_change(noting, "policy", note)
    if noting is not None:
        for view in await hub.sessions():
            if view.run is not None:
                await note_if_there(noting, view.session, note)
    return made


@get("/policy/suggestions", opt=documented((*READ_ERRORS, *WORK_ERRORS)))
async def suggest_rules(
    request: Asking, hub: Hub, since: Since = None, least: Least = LEAST
) -> SuggestionList:
    """Rules learnt from the answers that people gave, with the history that supports each."""
    start = _month_ago() if since is None else since
    return SuggestionList(suggestions=await hub.policy.suggest(start, least, by=request.user.name))


@get("/policy/grants", opt=documented(READ_ERRORS))
async def list_grants(hub: Hub) -> PolicyGrants:
    """What people have granted: by answering «always», or here."""
    return PolicyGrants(grants=(await hub.policy.view()).grants)


@post("/policy/grants", status_code=200, opt=documented(COMMAND_ERRORS, takes=NewPolicyGrant))
async def add_grant(request: Asking, hub: Hub, noting: Noter) -> Grant:
    """Allow something without a question. What a policy denies or asks about stays so."""
    request.user.need(Right.MANAGE)
    new = await body_of(request, NewPolicyGrant)
    if new.directory is not None and not new.directory.startswith("/"):
        raise UsageError("directory: must be an absolute path")
    now = int(time.time() * 1000)
    until = None if new.seconds is None else now + int(new.seconds * 1000)
    grant = Grant(
        id="",
        rules=new.rules,
        by=request.user.name,
        at=now,
        until=until,
        directory=new.directory,
        project=new.project,
    )
    made = await hub.policy.grant(grant)
    await note_change(noting, "grant", _note_text(TextCode.GRANT_MADE, made, made.by))
    return made


@delete("/policy/grants/{grant_id:str}", status_code=200, opt=documented(COMMAND_ERRORS))
async def revoke_grant(grant_id: GrantId, request: Asking, hub: Hub, noting: Noter) -> Grant:
    """Take a grant back."""
    person = request.user
    person.need(Right.MANAGE)
    gone = await hub.policy.revoke(grant_id)
    note = replace(_note_text(TextCode.GRANT_REVOKED, gone, person.name), detail=gone.by)
    await note_change(noting, "grant", note)
    return gone


@get("/audit/verify", opt=documented(READ_ERRORS))
async def verify_audit(hub: Hub, head: HeadText = None) -> Checked:
    """Verify that the audit log is unchanged, up to the head in the answer."""
    return await hub.policy.verify(head)


def _note_text(code: TextCode, grant: Grant, by: str) -> CodedText:
    """What a person did with a grant, for the audit log."""
    return CodedText(
        code=code,
        name=by,
        names=grant.rules,
        path=grant.directory or "",
        other=grant.project or "",
    )


def _month_ago() -> int:
    return int(time.time() * 1000) - 30 * DAY_MS


HANDLERS = [
    show_policy,
    check_policy,
    explain_call,
    replay_policy,
    read_policy_file,
    replace_policy_file,
    suggest_rules,
    list_grants,
    add_grant,
    revoke_grant,
    verify_audit,
]
