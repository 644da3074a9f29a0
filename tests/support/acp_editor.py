"""An editor for tests: the client side of the `acp` package, with a person who answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from acp import schema
from acp.client.connection import ClientSideConnection
from acp.connection import StreamEvent
from acp.stdio import spawn_agent_process

from support.acp_wire import Wire
from support.bounds import SECONDS
from support.command_line import COMMAND
from support.processes import Processes
from support.served_deck import ServedDeck

LARGEST = 64 * 1024 * 1024


class Editor:
    """What the editor was told and asked. `choices` are pressed in their order."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[schema.RequestPermissionRequest] = []
        self.forms: list[tuple[str, Any]] = []
        self.choices: list[str | dict[str, object]] = []
        """The ids of buttons, or the results of forms; without one, a dialogue stays open."""
        self.lines: list[dict[str, Any]] = []
        self.agent: ClientSideConnection = None  # type: ignore[assignment] # set by `editor`

    # --- what the agent calls --------------------------------------------------------------------

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))

    async def request_permission(
        self,
        session_id: str,
        tool_call: schema.ToolCallUpdate,
        options: list[schema.PermissionOption],
        **_: Any,
    ) -> schema.RequestPermissionResponse:
        request = schema.RequestPermissionRequest(
            session_id=session_id, tool_call=tool_call, options=options
        )
        self.asked.append(request)
        choice = await self._choice()
        outcome: schema.AllowedOutcome | schema.DeniedOutcome
        if choice == "cancelled":
            outcome = schema.DeniedOutcome(outcome="cancelled")
        else:
            outcome = schema.AllowedOutcome(outcome="selected", option_id=str(choice))
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append((message, mode))
        choice = await self._choice()
        assert isinstance(choice, dict)
        content = choice.get("content")
        if isinstance(content, dict):
            return schema.AcceptElicitationResponse(action="accept", content=content)
        return schema.DeclineElicitationResponse(action="decline")

    async def _choice(self) -> str | dict[str, object]:
        while not self.choices:  # noqa: ASYNC110 - the test decides when
            await anyio.sleep(0.01)
        return self.choices.pop(0)

    # --- what the test asks ----------------------------------------------------------------------

    def of(self, kind: str, session: str | None = None) -> list[Any]:
        """The updates of a kind."""
        return [
            update
            for of, update in self.updates
            if update.session_update == kind and session in {None, of}
        ]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """All the text of a kind."""
        return "".join(update.content.text for update in self.of(kind))

    @property
    def notices(self) -> list[dict[str, Any]]:
        """Our own members of notices."""
        found = [update.field_meta for update in self.of("agent_message_chunk")]
        return [meta["quarterdeck"] for meta in found if meta]

    @property
    def cancelled(self) -> list[object]:
        """The requests of the agent that it has cancelled."""
        return [
            line["params"]["requestId"]
            for line in self.lines
            if line.get("method") == "$/cancel_request"
        ]

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait for a condition."""
        with anyio.move_on_after(SECONDS):
            while not condition():  # noqa: ASYNC110 - the other process makes it true
                await anyio.sleep(0.01)
            return
        raise AssertionError(f"{what or condition} was not reached; the updates: {self.updates}")

    async def say(self, session: str, text: str) -> schema.PromptResponse:
        """Send a prompt, and wait for the end of its turn."""
        with anyio.fail_after(SECONDS):
            block = schema.TextContentBlock(type="text", text=text)
            return await self.agent.prompt(session_id=session, prompt=[block])

    def observe(self, event: StreamEvent) -> None:
        """Take down what the agent sends, and note what goes over the wire."""
        incoming = event.direction.value == "incoming"
        if incoming:
            self.lines.append(event.message)
        size = len(json.dumps(event.message))
        self._wire.take(event.message, of_client=not incoming, size=size)


@asynccontextmanager
async def editor(
    deck: ServedDeck, processes: Processes, wire: Wire, *arguments: str, forms: bool = False
) -> AsyncIterator[Editor]:
    """`quarterdeck acp` as a process, with an editor that has been introduced to it."""
    here: Any = Editor(wire)
    async with spawn_agent_process(
        here,
        *COMMAND,
        "acp",
        "--api-billing",
        *arguments,
        env=deck.command.env,
        cwd=deck.command.work,
        transport_kwargs={"limit": LARGEST, "stderr": None},
        use_unstable_protocol=True,
        observers=[here.observe],
    ) as (agent, process):
        processes.started(process.pid)
        here.agent = agent
        shows = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
        with anyio.fail_after(SECONDS):
            await agent.initialize(
                protocol_version=1,
                client_capabilities=schema.ClientCapabilities(elicitation=shows if forms else None),
            )
        yield here
