"""The tools for a person: a program of theirs that speaks MCP, with their own token.

Owns what each tool does for a person. It is what the API does for the same token: a viewer reads,
an operator also sends, interrupts and stops, an owner also starts sessions. A person reaches every
session. There is no tool that answers a question: a model is at the other end, and only people
answer. It knows neither HTTP nor MCP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from quarterdeck.domain.errors import Forbidden, NotFound
from quarterdeck.domain.ids import new_id
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.mcp import tools
from quarterdeck.fronts.mcp.looks import (
    SearchTexts,
    SessionInfo,
    find,
    info_of,
    read_pages,
    short_diff,
    wait_for,
)
from quarterdeck.fronts.mcp.tools import Arguments, Text
from quarterdeck.hub.api import HubApi, act_as
from quarterdeck.protocol import commands as cmd
from quarterdeck.protocol.command_table import right_for
from quarterdeck.protocol.machine_requests import Changes
from quarterdeck.protocol.modes import BYPASS
from quarterdeck.protocol.roles import RIGHTS, Right, Role
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import Budget, SessionSpec

LISTED = 200
"""Sessions in one list."""


class Visitor(Value):
    """The person whose token a request has."""

    name: str
    role: Role

    def need(self, right: Right) -> None:
        """Raise `Forbidden` unless they have a right."""
        if right not in RIGHTS[self.role]:
            raise Forbidden(f"{self.name} has the role {self.role.value} and may not {right.value}")


class ListAll(Arguments):
    """List the newest sessions of the hub that are not archived."""


class StartSession(Arguments):
    """Start a session with a task, on a machine of the hub. Its questions are answered by people in
    the web app. Use `wait` for its end, and `read` for what it did.
    """

    prompt: Annotated[Text, Meta(description="The task, with all that the agent needs to know.")]
    directory: Annotated[
        str, Meta(max_length=4096, description="The folder to work in; empty with a project.")
    ] = ""
    project: Annotated[str, Meta(max_length=200)] | None = None
    machine: Annotated[str, Meta(max_length=200)] | None = None
    name: Annotated[str, Meta(max_length=100)] | None = None
    model: Annotated[str, Meta(max_length=100)] | None = None
    effort: Annotated[str, Meta(max_length=20)] | None = None
    mode: Annotated[str, Meta(max_length=40, description="A permission mode.")] | None = None
    worktree: (
        Annotated[str, Meta(max_length=200, description="A branch to work on, in a worktree.")]
        | None
    ) = None
    budget_usd: Annotated[float, Meta(gt=0)] | None = None
    budget_tokens: Annotated[int, Meta(gt=0)] | None = None


TOOLS: dict[str, tuple[type[Arguments], Right, str]] = {
    "list_sessions": (ListAll, Right.READ, ""),
    "wait": (
        tools.Wait,
        Right.READ,
        "Wait until a session is idle, waits for a person, or has ended. Gives its last answer.",
    ),
    "read": (
        tools.Read,
        Right.READ,
        "Read what a session did, from an event number on. `next` is the number to continue with.",
    ),
    "changes": (tools.GetChanges, Right.READ, "The changes in the folder of a session, as a diff."),
    "search": (tools.SearchText, Right.READ, "Search the texts of all sessions."),
    "send": (
        tools.Send,
        Right.STEER,
        "Send a prompt to a session. It is queued while the agent works.",
    ),
    "interrupt": (tools.Interrupt, Right.STEER, "Interrupt the turn of a session."),
    "stop": (tools.Stop, Right.STEER, "End the CLI of a session. A prompt starts it again."),
    "spawn": (StartSession, Right.MANAGE, ""),
}
"""What a person can call: arguments, the right, and a description in place of the agents' one."""


def tools_for(role: Role) -> dict[str, tuple[type[Arguments], str]]:
    """The tools of a role, with their arguments and descriptions."""
    return {
        name: (kind, words or kind.__doc__ or "")
        for name, (kind, right, words) in TOOLS.items()
        if right in RIGHTS[role]
    }


class PeopleTools:
    """The tools, over one hub."""

    def __init__(
        self,
        hub: HubApi,
        *,
        changes: Callable[[str], Awaitable[Changes]],
        search: SearchTexts,
    ) -> None:
        self._hub = hub
        self._changes = changes
        self._search = search

    async def call(self, visitor: Visitor, arguments: Arguments) -> object:
        """Do what a tool does. Raises a `QuarterdeckError` that says why not."""
        with act_as(visitor.role, visitor.name):
            return await self._call(visitor, arguments)

    async def _call(self, visitor: Visitor, arguments: Arguments) -> object:
        visitor.need(Right.READ)
        match arguments:
            case ListAll():
                page = await self._hub.sessions(after=None, limit=LISTED, archived=False)
                return [info_of(view) for view in page if not view.deleted]
            case tools.Wait(session=id_, seconds=seconds):
                return await wait_for(self._hub, await self._target(id_), seconds)
            case tools.Read(session=id_, after=after):
                return await read_pages(self._hub, await self._target(id_), after)
            case tools.GetChanges(session=id_):
                return short_diff(await self._changes((await self._target(id_)).session))
            case tools.SearchText(words=words):
                return await find(self._search, words)
            case StartSession():
                return await self._start(visitor, arguments)
            case tools.Send(session=id_, text=text):
                content = Raw(msgspec.json.encode(text))
                return await self._do(
                    visitor, cmd.SendPrompt(session=id_, prompt=new_id(), content=content), id_
                )
            case tools.Interrupt(session=id_):
                return await self._do(visitor, cmd.Interrupt(session=id_), id_)
            case tools.Stop(session=id_):
                return await self._do(visitor, cmd.StopSession(session=id_), id_)
            case _:
                raise NotFound("tool", type(arguments).__name__)

    async def _target(self, id_: str) -> SessionView:
        view = await self._hub.session(id_)
        if view.deleted:
            raise NotFound("session", id_)
        return view

    async def _start(self, visitor: Visitor, wanted: StartSession) -> SessionInfo:
        if wanted.mode == BYPASS:
            # A model is at the other end: it would decide what nobody is asked about.
            raise Forbidden(f"mode: {BYPASS} is chosen by a person in the web app or the terminal")
        budget = None
        if wanted.budget_usd is not None or wanted.budget_tokens is not None:
            budget = Budget(session_usd=wanted.budget_usd, session_tokens=wanted.budget_tokens)
        id_ = new_id()
        spec = SessionSpec(
            directory=wanted.directory,
            project=wanted.project,
            machine=wanted.machine,
            name=wanted.name,
            model=wanted.model,
            effort=wanted.effort,
            mode=wanted.mode,
            worktree=wanted.worktree,
            budget=budget,
        )
        command = cmd.CreateSession(
            spec=spec,
            session=id_,
            prompt=Raw(msgspec.json.encode(wanted.prompt)),
            prompt_id=new_id(),
        )
        return await self._do(visitor, command, id_)

    async def _do(self, visitor: Visitor, command: cmd.AnyCommand, id_: str) -> SessionInfo:
        visitor.need(right_for(command))
        await self._hub.submit(msgspec.structs.replace(command, by=visitor.name))
        return info_of(await self._hub.session(id_))
