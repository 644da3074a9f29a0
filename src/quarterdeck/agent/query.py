"""One prompt and its turn.

A `Query` is iterated for the messages of the turn that took its prompt, until that turn ends.
`wire.turns` finds out which turn that is; the `Agent` passes it on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import uuid4

import msgspec

from quarterdeck.agent.inbox import Inbox
from quarterdeck.domain.errors import TurnFailed
from quarterdeck.domain.structs import ABSENT
from quarterdeck.wire.messages import Result
from quarterdeck.wire.outbound import Prompt
from quarterdeck.wire.turns import Turn

T = TypeVar("T")


class Query(Inbox):
    """A prompt and the messages of its turn.

    ::

        async for message in agent.query("Fix the tests"):
            ...

    After the last message, `turn` and `result` are set. A prompt that never ran has neither;
    `cancelled` tells whether it was taken back from the queue. `dropped_deltas` counts deltas that
    were dropped for a slow reader.
    """

    def __init__(self, prompt: Prompt, submit: Callable[[Query], Awaitable[None]]) -> None:
        super().__init__()
        self.prompt = prompt
        self.turn: Turn | None = None
        self.cancelled = False
        self._dropped = ""
        self._submit: Callable[[Query], Awaitable[None]] | None = submit

    @property
    def uuid(self) -> str:
        """The prompt's uuid. The CLI knows it by this: to cancel it, or to rewind files to it."""
        assert self.prompt.uuid is not None
        return self.prompt.uuid

    @property
    def result(self) -> Result | None:
        """The result of the turn, once it has ended."""
        return self.turn.result if self.turn else None

    async def send(self) -> None:
        """Send the prompt now, if that has not happened; iterating does it too."""
        submit, self._submit = self._submit, None
        if submit is not None:
            await submit(self)

    async def _wait(self) -> None:
        if self._submit is not None:
            await self.send()
        else:
            await super()._wait()

    async def finish(self) -> Turn:
        """Read to the end of the turn, and return it. Raises `TurnFailed` if it never ran."""
        async for _ in self:
            pass
        if self.turn is None:
            raise TurnFailed(f"the prompt was {self._dropped} before it ran", subtype=self._dropped)
        return self.turn

    async def text(self) -> str:
        """Read to the end; return the final text. Raises `TurnFailed` if the turn went wrong."""
        return self.check(await self.finish()).result or ""

    async def output(self, type_: type[T]) -> T:
        """Read to the end; return the structured output as `type_`.

        Raises `TurnFailed` if there is none, or if it does not fit.
        """
        result = self.check(await self.finish())
        if result.structured_output == ABSENT:
            raise TurnFailed("the turn gave no structured output", subtype=result.subtype.value)
        try:
            return msgspec.json.decode(result.structured_output, type=type_)
        except msgspec.ValidationError as error:
            raise TurnFailed(
                f"the structured output does not fit: {error}", subtype=result.subtype.value
            ) from error

    @staticmethod
    def check(turn: Turn) -> Result:
        """The result of a turn that went well. Raises `TurnFailed` for any other."""
        result = turn.result
        if result is None:
            raise TurnFailed("the CLI ended the turn without a result", subtype="no_result")
        if result.failed:
            raise TurnFailed(result.error_text, subtype=result.subtype.value, errors=result.errors)
        return result

    # --- for the Agent --------------------------------------------------------------------

    def close(self, turn: Turn) -> None:
        """The turn is over."""
        self.turn = turn
        self.end()

    def drop(self, state: str, lost: Exception | None) -> None:
        """The prompt will not run: it was `cancelled`, say, or (`lost`) the link has ended."""
        self._dropped = state
        self.cancelled = lost is None and state == "cancelled"
        if lost is None:
            self.discard()  # held messages belong to the turn before
        self.end(lost)


def as_prompt(prompt: str | Prompt) -> Prompt:
    """A prompt from text, or one that was made with care; with a uuid in any case."""
    if not isinstance(prompt, Prompt):
        return Prompt.of(prompt, uuid=str(uuid4()))
    if prompt.uuid is None:
        return msgspec.structs.replace(prompt, uuid=str(uuid4()))
    return prompt
