"""What the open turn of a run has used so far, by what the CLI's messages say. Pure; below `run`.

The CLI tells its totals with a turn's result only, and a budget must hold before that. So each
response of the model is read as it comes: what it took in stands in its first event, what it has
given in its last one. Responses of subagents whose text the CLI keeps to itself are not seen: what
is metered is a lower bound, and the result puts it right.

Costs are not said here at all. `Prices` estimates them: by what the CLI's own totals came to for
that model before, and by its family's list price until there is such a total.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import field

from quarterdeck.domain.structs import Mutable, Value
from quarterdeck.protocol.events import Metered, ModelTokens
from quarterdeck.wire.base import Message
from quarterdeck.wire.content import ToolResultBlock, ToolUseBlock, Usage
from quarterdeck.wire.messages import Assistant, Result, StreamEvent, User
from quarterdeck.wire.stream import MessageDelta, MessageStart

_NO_MODEL = "<synthetic>"
"""The model of an answer that the CLI wrote itself."""

_INPUT, _OUTPUT, _CACHE_READ, _CACHE_WRITE = 1.0, 5.0, 0.1, 1.25
"""What a token costs, in tokens of input: so it is for every model of the API."""

_LIST_PRICES = (("opus", 5e-6), ("sonnet", 3e-6), ("haiku", 1e-6))
_DEAREST = 15e-6
"""US dollars for a token of input. A model of no known family is taken for the dearest: a budget
that holds too early can be raised, money that is spent does not come back."""


MOST_REMEMBERED = 256
"""Responses and calls of a turn whose numbers may still change. A turn may have any number of them,
and each time it is metered they are copied."""


class Prices:
    """What a token costs, by the totals in the CLIs' results."""

    def __init__(self, known: Iterable[ModelTokens] = ()) -> None:
        self._units: dict[str, float] = {}
        self.learn(known)

    def learn(self, totals: Iterable[ModelTokens]) -> None:
        """Learn from totals with their cost."""
        for each in totals:
            if (weight := _weight(each)) > 0 and each.cost_usd > 0:
                self._units[each.model] = each.cost_usd / weight

    def cost(self, used: ModelTokens) -> float:
        """An estimate of what this costs."""
        return _weight(used) * self._unit(used.model)

    def _unit(self, model: str) -> float:
        if model in self._units:
            return self._units[model]
        return next((unit for family, unit in _LIST_PRICES if family in model), _DEAREST)


class _Response(Value):
    model: str
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class Meter(Mutable):
    """Counts what one run uses between two results."""

    _responses: dict[str, _Response] = field(default_factory=dict)
    """The last ones, the oldest first. What older ones have used is in the base."""
    _streaming: dict[str, str] = field(default_factory=dict)
    """The response that is being made, by the call of its subagent; none is the main agent."""
    _calls: dict[str, None] = field(default_factory=dict)
    """The last ones, as with responses."""
    _base: tuple[ModelTokens, ...] = ()
    _base_calls: int = 0
    _in_base: dict[str, _Response] = field(default_factory=dict)
    """What the base has of each of these responses, as far as it was known then."""
    _calls_in_base: set[str] = field(default_factory=set)
    version: int = 0
    """Changes with what was metered."""
    checked: int = 0
    """The version that was held against the budgets last."""
    due: bool = False
    """A response is whole and the turn goes on: what was metered is to be journalled."""

    @property
    def tool_calls(self) -> int:
        """How many tools were called."""
        return self._base_calls + len(self._calls.keys() - self._calls_in_base)

    @property
    def used(self) -> bool:
        """Whether anything was metered since the last result."""
        return bool(self._responses or self._base)

    def receive(self, message: Message) -> None:
        """Take note of a message."""
        match message:
            case StreamEvent(parent_tool_use_id=parent):
                self._receive_stream(message, parent or "")
            case Assistant():
                body = message.message
                self._take(body.id, body.model, body.usage)
                calls = {block.id for block in body.content if isinstance(block, ToolUseBlock)}
                if not calls <= self._calls.keys():
                    self._call(calls)
            case User():
                if self.used and any(isinstance(b, ToolResultBlock) for b in message.blocks):
                    self.due = True
                    self.version += 1
            case Result():
                self._clear()
            case _:
                pass

    def evolve(self, metered: Metered) -> None:
        """What was used so far is journalled, with more than the journalled messages can tell."""
        self._base = metered.models
        self._base_calls = metered.tool_calls
        self._in_base = dict(self._responses)
        self._calls_in_base = set(self._calls)
        self.version += 1
        self.due = False

    def models(self, prices: Prices) -> tuple[ModelTokens, ...]:
        """What was used so far, by model."""
        sums = {each.model: each for each in self._base}
        for response, whole in self._responses.items():
            each = _since(whole, self._in_base.get(response))
            sums[each.model] = _plus(sums.get(each.model), each)
        return tuple(_with_price(each, prices) for each in sums.values())

    def metered_event(self, run: str, prices: Prices) -> Metered:
        """What is journalled of it."""
        return Metered(run=run, models=self.models(prices), tool_calls=self.tool_calls)

    def _clear(self) -> None:
        self._responses.clear()
        self._streaming.clear()
        self._calls.clear()
        self._in_base = {}
        self._calls_in_base = set()
        self._base = ()
        self._base_calls = 0
        self.due = False
        self.version += 1

    def _call(self, calls: set[str]) -> None:
        self._calls |= dict.fromkeys(sorted(calls))
        self.version += 1
        while len(self._calls) > MOST_REMEMBERED:
            oldest = next(iter(self._calls))
            del self._calls[oldest]
            if oldest in self._calls_in_base:
                self._calls_in_base.remove(oldest)
            else:
                self._base_calls += 1

    def _receive_stream(self, message: StreamEvent, parent: str) -> None:
        match message.event:
            case MessageStart(message=body):
                self._streaming[parent] = body.id
                self._take(body.id, body.model, body.usage)
            case MessageDelta(usage=usage) if parent in self._streaming:
                self._take(self._streaming[parent], "", usage)
            case _:
                pass

    def _take(self, response: str, model: str, usage: Usage) -> None:
        """Numbers of one response: each may come several times, and the largest counts."""
        if not response or model == _NO_MODEL:
            return
        old = self._responses.get(response) or _Response(model=model)
        new = _Response(
            model=model or old.model,
            input=max(old.input, _count(usage.input_tokens)),
            output=max(old.output, _count(usage.output_tokens)),
            cache_read=max(old.cache_read, _count(usage.cache_read_input_tokens)),
            cache_write=max(old.cache_write, _count(usage.cache_creation_input_tokens)),
        )
        if new != old or response not in self._responses:
            self._responses[response] = new
            self.version += 1
            if len(self._responses) > MOST_REMEMBERED:
                self._put_into_base(next(iter(self._responses)))

    def _put_into_base(self, response: str) -> None:
        """A response is long over: only what it has used is kept."""
        used = _since(self._responses.pop(response), self._in_base.pop(response, None))
        sums = {each.model: each for each in self._base}
        sums[used.model] = _plus(sums.get(used.model), used)
        self._base = tuple(sums.values())


def _since(whole: _Response, before: _Response | None) -> _Response:
    """What a response has used since another time."""
    if before is None:
        return whole
    return _Response(
        model=whole.model,
        input=whole.input - before.input,
        output=whole.output - before.output,
        cache_read=whole.cache_read - before.cache_read,
        cache_write=whole.cache_write - before.cache_write,
    )


def _plus(sum_: ModelTokens | None, used: _Response) -> ModelTokens:
    """A sum with one more response; what it costs is for `Prices` to say."""
    old = sum_ or ModelTokens(model=used.model)
    return ModelTokens(
        model=used.model,
        input=old.input + used.input,
        output=old.output + used.output,
        cache_read=old.cache_read + used.cache_read,
        cache_write=old.cache_write + used.cache_write,
    )


def _with_price(used: ModelTokens, prices: Prices) -> ModelTokens:
    return ModelTokens(
        model=used.model,
        cost_usd=prices.cost(used),
        input=used.input,
        output=used.output,
        cache_read=used.cache_read,
        cache_write=used.cache_write,
    )


def _weight(used: ModelTokens) -> float:
    return (
        used.input * _INPUT
        + used.output * _OUTPUT
        + used.cache_read * _CACHE_READ
        + used.cache_write * _CACHE_WRITE
    )


def _count(value: float | None) -> int:
    return int(value) if value and 0 < value < 2**53 else 0
