"""One prompt of a session of the hub, and its turn.

A `HubTurn` is iterated for the messages of the turn that took its prompt, until that turn ends. A
`HubQuery` also sends its prompt, when it is first read. Both are found in the session's events, so
that a hub that was away in between changes nothing but the time it takes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import msgspec

from quarterdeck.client.calls import Content, content_of
from quarterdeck.domain.errors import LinkClosed, NotFound, RequestCancelled, TurnFailed
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import end_of, end_text
from quarterdeck.protocol.commands import SendPrompt

if TYPE_CHECKING:
    from quarterdeck.client.session import SessionClient
    from quarterdeck.wire.base import Message

T = TypeVar("T")


class HubTurn:
    """The turn of a prompt: an async iterator over its messages, until the turn ends."""

    def __init__(self, session: SessionClient, prompt: str, after: int | None) -> None:
        self.prompt = prompt
        self.ended: ev.TurnEnded | None = None
        """How the turn ended; None as long as it has not."""
        self._session = session
        self._messages = self._read(after)

    def __aiter__(self) -> AsyncIterator[Message]:
        return self._messages

    async def result(self) -> ev.TurnEnded:
        """Wait for the end of the turn, and give it.

        Raises `LinkClosed` when the session's CLI ended before, `RequestCancelled` when the prompt
        was cancelled.
        """
        async for _ in self._messages:
            pass
        assert self.ended is not None
        return self.ended

    async def finish(self) -> ev.TurnEnded:
        """Read to the end of the turn, and return it: `result` under the name that `Query` has."""
        return await self.result()

    async def text(self) -> str:
        """Read to the end; return the final text. Raises `TurnFailed` if the turn went wrong."""
        return self.check(await self.result()).text

    async def output(self, type_: type[T]) -> T:
        """Read to the end; return the structured output as `type_`.

        Raises `TurnFailed` if there is none, or if it does not fit.
        """
        ended = self.check(await self.result())
        if not ended.structured:
            raise TurnFailed("the turn gave no structured output", subtype=ended.outcome)
        try:
            return msgspec.json.decode(ended.structured, type=type_)
        except msgspec.ValidationError as error:
            raise TurnFailed(
                f"the structured output does not fit: {error}", subtype=ended.outcome
            ) from error

    @staticmethod
    def check(ended: ev.TurnEnded) -> ev.TurnEnded:
        """The end of a turn that went well. Raises `TurnFailed` for any other."""
        if ended.failed:
            raise TurnFailed(ended.text or ended.problem or ended.outcome, subtype=ended.outcome)
        return ended

    async def _read(self, after: int | None) -> AsyncGenerator[Message]:
        begun = False
        async with aclosing(self._session.events(after)) as events:
            async for shape in events:
                match shape.event:
                    case ev.PromptSent(prompt=self.prompt) | ev.PromptTaken(prompt=self.prompt):
                        begun = True
                    case ev.TurnEnded(prompts=prompts) as ended if self.prompt in prompts:
                        self.ended = ended
                        return
                    case ev.PromptCancelled(prompt=self.prompt):
                        raise RequestCancelled("prompt", f"{self.prompt} was cancelled")
                    case ev.RunEnded() as ended_run if begun:
                        raise LinkClosed(end_text(ended_run), coded=end_of(ended_run))
                    case event if begun and (message := message_of(event)) is not None:
                        yield message
        raise NotFound("session", self._session.id)


class HubQuery(HubTurn):
    """A prompt that is sent on the first iteration, and the messages of its turn.

    ::

        async for message in session.query("Fix the tests"):
            ...
    """

    def __init__(
        self,
        session: SessionClient,
        content: Content,
        *,
        id: str | None = None,  # noqa: A002 - the clearest name for callers
        steer: bool = False,
    ) -> None:
        # A uuid: the CLI then knows the prompt by the same name, which `rewind` needs.
        super().__init__(session, id or str(uuid4()), None)
        self._chosen = id is not None
        self._content = content_of(content)
        self._steer = steer
        self._sent = False
        self._after = 0
        self._messages = self._send_and_read()

    @property
    def uuid(self) -> str:
        """The id of the prompt."""
        return self.prompt

    async def send(self) -> None:
        """Send the prompt now, if that has not happened; iterating does it too."""
        if self._sent:
            return
        self._sent = True
        session = self._session
        self._after = session.view.head if session.seen is None else session.seen
        command = SendPrompt(
            session=session.id, prompt=self.prompt, content=self._content, steer=self._steer
        )
        outcome = await session.hub.submit(command)
        if outcome.repeated and self._chosen:
            self._after = 0  # the turn of a prompt that was sent before may be over by now

    async def _send_and_read(self) -> AsyncGenerator[Message]:
        await self.send()
        async with aclosing(self._read(self._after)) as messages:
            async for message in messages:
                yield message


def message_of(event: ev.Event) -> Message | None:
    """What the CLI said with an event; None for other events and for control messages."""
    if not isinstance(event, ev.Said | ev.Recalled):
        return None
    from quarterdeck.wire.codec import from_cli  # who reads no messages need not load it
    from quarterdeck.wire.control import ControlCancel, ControlRequest, ControlResponse

    message = from_cli(bytes(event.line))
    return (
        None if isinstance(message, ControlRequest | ControlResponse | ControlCancel) else message
    )
