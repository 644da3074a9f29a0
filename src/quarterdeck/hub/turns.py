"""The prompts and turns of a run, in our words, and turns whose end was lost. Pure; below `run`.

Owns under which uuid a prompt went to the CLI: one that an earlier run did not take goes under
another, for a CLI takes each uuid only once. Which turn took which prompt is known in `wire.turns`.

Inbound CLIs up to 2.1.112 lose what they say while their link is down, the result of a turn too.
After such a gap an open turn is in doubt (`LostTurn`) until the CLI says something that belongs to
a turn. An interrupt decides: a CLI in a turn answers it and then ends the turn, an idle one only
answers it.
"""

from __future__ import annotations

from msgspec import field

from quarterdeck.domain.ids import derived_uuid
from quarterdeck.domain.structs import ABSENT, Mutable
from quarterdeck.hub.lines import is_uuid
from quarterdeck.protocol.events import Event, ModelTokens, PromptSent, PromptTaken, TurnEnded
from quarterdeck.wire.base import Message
from quarterdeck.wire.control import ControlResponse
from quarterdeck.wire.messages import User
from quarterdeck.wire.outbound import KeepAlive
from quarterdeck.wire.reports import ModelUsage
from quarterdeck.wire.turns import PromptTaken as WireTaken
from quarterdeck.wire.turns import Turn
from quarterdeck.wire.turns import TurnEnded as WireEnded

SETTLE_MS = 5000
"""How long after its answer to an interrupt a CLI that was in a turn may take to say anything."""


class LostTurn(Mutable):
    """The doubt about the open turn of one run."""

    in_doubt: bool = False
    _over_at: int | None = None

    def link_resumed(self, *, lost: bool, busy: bool) -> None:
        """The CLI is back; `lost`: messages that it wrote meanwhile are lost."""
        self.in_doubt = busy and (lost or self.in_doubt)
        self._over_at = None

    def receive(self, message: Message) -> None:
        """The CLI says something new. Answers and echoes come from an idle CLI too."""
        match message:
            case ControlResponse() | KeepAlive() | User(is_replay=True):
                pass
            case _:
                self.settle()

    def note_interrupt(self, at: int) -> None:
        """The CLI has answered an interrupt, at a time in ms."""
        if self.in_doubt:
            self._over_at = at + SETTLE_MS

    def is_over(self, now: int) -> bool:
        """Whether the turn is over, at a time in ms."""
        return self.in_doubt and self._over_at is not None and now >= self._over_at

    def settle(self) -> None:
        """There is no doubt any more."""
        self.in_doubt = False
        self._over_at = None


MOST_PROMPTS = 256
"""Prompts whose uuids are remembered. A turn takes its prompts soon after they were sent."""
NO_RESULT = "no result"
"""The outcome of a turn whose result was lost."""


class Turns(Mutable):
    """What a run was asked to do, and what it has done."""

    _prompts: dict[str, str] = field(default_factory=dict)
    """The last prompts that were sent, by uuid, the oldest first."""

    def evolve(self, sent: PromptSent) -> None:
        """A prompt was sent."""
        self._prompts[sent.uuid or sent.prompt] = sent.prompt
        if len(self._prompts) > MOST_PROMPTS:
            del self._prompts[next(iter(self._prompts))]

    @property
    def uuids(self) -> tuple[str, ...]:
        """The uuids of the last prompts."""
        return tuple(self._prompts)

    def translate(
        self, event: WireTaken | WireEnded, tool_calls: int = 0, problem: str = ""
    ) -> Event:
        """What a turn of the CLI, with so many tool calls, means to us.

        `problem` is why it failed, if it has.
        """
        match event:
            case WireTaken(uuid=uuid):
                return PromptTaken(prompt=self._prompt(uuid))
            case WireEnded(turn=turn):
                return self._turn_end(turn, tool_calls, problem if turn.failed else "")

    def lost_turn_end(self, taken: tuple[str, ...], tool_calls: int) -> TurnEnded:
        """The end of a turn whose result was lost."""
        return self._turn_end(Turn(taken, None, 0.0), tool_calls)

    def _turn_end(self, turn: Turn, tool_calls: int, problem: str = "") -> TurnEnded:
        result = turn.result
        return TurnEnded(
            prompts=tuple(self._prompt(uuid) for uuid in turn.prompts),
            failed=turn.failed,
            outcome=result.outcome if result else NO_RESULT,
            cost_usd=turn.cost_usd,
            text=(result.result or "") if result else "",
            models=tuple(_tokens(name, used) for name, used in turn.models.items()),
            duration_ms=int(result.duration_ms) if result else None,
            tool_calls=tool_calls,
            problem=problem,
            structured=result.structured_output if result else ABSENT,
        )

    def _prompt(self, uuid: str) -> str:
        return self._prompts.get(uuid, uuid)


def sent_prompt(
    run: str, prompt: str, number: int, *, again: bool, steered: bool = False
) -> tuple[str, PromptSent]:
    """A prompt is to be sent as the line of this number: its uuid, and what is journalled of it."""
    fresh = again or not is_uuid(prompt)
    uuid = derived_uuid(run, str(number), prompt) if fresh else prompt
    given = None if uuid == prompt else uuid
    return uuid, PromptSent(prompt=prompt, run=run, uuid=given, steered=steered)


def _tokens(model: str, used: ModelUsage) -> ModelTokens:
    return ModelTokens(
        model=model,
        cost_usd=float(used.cost_usd),
        input=int(used.input_tokens),
        output=int(used.output_tokens),
        cache_read=int(used.cache_read_input_tokens),
        cache_write=int(used.cache_creation_input_tokens),
    )
