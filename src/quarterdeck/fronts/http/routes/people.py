"""The routes of what the hub keeps for a person: preferences, saved prompts, templates.

Everybody has preferences. Saved prompts need the right to steer, templates the right to manage,
because a template starts sessions. Owns the words of the routes and these rights; `people` has the
rules.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import anyio.to_thread
from litestar import delete, get, patch, put
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, SkipValidation

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.fronts.http.openapi import COMMAND_ERRORS, READ_ERRORS, documented
from quarterdeck.fronts.http.people import PeopleStore
from quarterdeck.fronts.http.problems import Refused
from quarterdeck.fronts.http.routes.audit_notes import Noter, note_change
from quarterdeck.fronts.http.routes.handlers import Asking, body_of
from quarterdeck.protocol.people import (
    Library,
    NewPreferences,
    NewSavedPrompt,
    NewTemplate,
    PreferencePage,
)
from quarterdeck.protocol.roles import Right

People = NamedDependency[SkipValidation[PeopleStore | None]]
EntryId = Annotated[
    str,
    PathParameter(
        description="The id of an entry, chosen by who makes it",
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9_-]+$",
    ),
]
AfterVersion = Annotated[
    int, QueryParameter(ge=0, le=2**53, description="The `version` of the answer before")
]


@get("/preferences", opt=documented(READ_ERRORS))
async def list_preferences(
    request: Asking, people: People, after: AfterVersion = 0
) -> PreferencePage:
    """Your pins, read marks, drafts and settings, which follow you to every device."""
    return await anyio.to_thread.run_sync(_there(people).preferences, request.user, after)


@patch("/preferences", status_code=200, opt=documented(COMMAND_ERRORS, takes=NewPreferences))
async def change_preferences(
    request: Asking, people: People, after: AfterVersion = 0
) -> PreferencePage:
    """Tell the hub what a device has changed; gives what is new to that device.

    The newest pin or setting wins, the greatest read mark, and drafts of several devices are
    joined.
    """
    there = _there(people)
    new = await body_of(request, NewPreferences)
    page = await anyio.to_thread.run_sync(there.change, request.user, new.changes, after)
    there.notify(request.user, page.version)
    return page


@get("/library", opt=documented(READ_ERRORS))
async def get_library(request: Asking, people: People) -> Library:
    """Your saved prompts and session templates, and those that are shared."""
    return await anyio.to_thread.run_sync(_there(people).library, request.user)


@put(
    "/library/prompts/{entry_id:str}",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=NewSavedPrompt),
)
async def save_prompt(entry_id: EntryId, request: Asking, people: People) -> Library:
    """Save a prompt, or change one."""
    request.user.need(Right.STEER)
    there = _there(people)
    new = await body_of(request, NewSavedPrompt)
    await anyio.to_thread.run_sync(partial(there.save, request.user, "prompt", entry_id, new))
    return await anyio.to_thread.run_sync(there.library, request.user)


@delete("/library/prompts/{entry_id:str}", status_code=200, opt=documented(COMMAND_ERRORS))
async def remove_prompt(entry_id: EntryId, request: Asking, people: People) -> Library:
    """Delete a saved prompt."""
    request.user.need(Right.STEER)
    there = _there(people)
    await anyio.to_thread.run_sync(partial(there.remove, request.user, "prompt", entry_id))
    return await anyio.to_thread.run_sync(there.library, request.user)


@put(
    "/library/templates/{entry_id:str}",
    status_code=200,
    opt=documented(COMMAND_ERRORS, takes=NewTemplate),
)
async def save_template(
    entry_id: EntryId, request: Asking, people: People, noting: Noter
) -> Library:
    """Save a session template, or change one."""
    request.user.need(Right.MANAGE)
    there = _there(people)
    new = await body_of(request, NewTemplate)
    await anyio.to_thread.run_sync(partial(there.save, request.user, "template", entry_id, new))
    by = request.user.name
    note = CodedText(code=TextCode.TEMPLATE_SAVED, name=by, other=new.name)
    await note_change(noting, "template", note)
    return await anyio.to_thread.run_sync(there.library, request.user)


@delete("/library/templates/{entry_id:str}", status_code=200, opt=documented(COMMAND_ERRORS))
async def remove_template(
    entry_id: EntryId, request: Asking, people: People, noting: Noter
) -> Library:
    """Delete a session template."""
    request.user.need(Right.MANAGE)
    there = _there(people)
    await anyio.to_thread.run_sync(partial(there.remove, request.user, "template", entry_id))
    by = request.user.name
    note = CodedText(code=TextCode.TEMPLATE_REMOVED, name=by, other=entry_id)
    await note_change(noting, "template", note)
    return await anyio.to_thread.run_sync(there.library, request.user)


def _there(people: PeopleStore | None) -> PeopleStore:
    if people is None:
        raise Refused("not_found", "this server keeps nothing for people")
    return people


HANDLERS = [
    list_preferences,
    change_preferences,
    get_library,
    save_prompt,
    remove_prompt,
    save_template,
    remove_template,
]
