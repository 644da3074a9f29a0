"""The account of a session: usage, budgets, alarms, limits, crashes. A pure fold.

Owns the cost of a session's turns by the CLI's own totals, the usage of the open turn so far, the
reached budgets, the active alarms, the account's limits, and the number of crashes. `views` keeps
it in a session's view; `usage` sums the same portions over all sessions. It knows `protocol` only.

Nothing is counted twice: when a turn ends, its total replaces what was metered. If the end of a
turn was never reported (its process was killed), what was metered stays.
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from quarterdeck.domain.structs import Value
from quarterdeck.protocol.accounts import Account, AlarmView
from quarterdeck.protocol.events import (
    Alarmed,
    AlarmEnded,
    BudgetFreed,
    BudgetReached,
    Event,
    Metered,
    ModelTokens,
    RateLimited,
    RunEnded,
    RunStarted,
    RunStarting,
    RunStopping,
    TurnEnded,
)

HEALTHY_MS = 60_000
"""A crash after this time of operation starts a new series of crashes."""

_MOST_TOKENS = 2**62
"""The largest count that the file can hold."""


class Portion(Value):
    """What an event adds to the usage of a model. A correction is negative."""

    model: str
    usd: float = 0.0
    estimated_usd: float = 0.0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def tokens(self) -> int:
        """All tokens, including those from the cache."""
        return self.input + self.output + self.cache_read + self.cache_write


def budget_key(scope: str, unit: str) -> str:
    """The key of a budget."""
    return f"{scope}.{unit}"


def tokens_of(models: tuple[ModelTokens, ...]) -> int:
    """All tokens, including those from the cache."""
    return sum(each.input + each.output + each.cache_read + each.cache_write for each in models)


def main_model(models: tuple[ModelTokens, ...]) -> str:
    """The model that a turn is attributed to: the most expensive."""
    return max(models, key=lambda each: (each.cost_usd, each.output), default=_NOTHING).model


def portions(account: Account, event: Metered | TurnEnded) -> list[Portion]:
    """What an event adds, by model, to what was metered of the turn."""
    before = {each.model: each for each in account.metered}
    match event:
        case Metered(models=models):
            after = {each.model: each for each in models}
            return [
                _difference(before.get(name), after.get(name), estimate=True)
                for name in before | after
            ]
        case TurnEnded(models=models, cost_usd=cost):
            if not models and not cost:
                return []  # no totals: what was metered stays
            after = {each.model: each for each in models}
            if not models:
                # Only its cost is reported; its tokens are those that were metered.
                after = {name: replace(old, cost_usd=0.0) for name, old in before.items()}
            found = [
                _difference(before.get(name), after.get(name), estimate=False)
                for name in before | after
            ]
            rest = cost - sum(each.cost_usd for each in models)
            if abs(rest) > _CENT_OF_A_CENT and math.isfinite(rest):
                found.append(Portion(model=main_model(models or account.metered), usd=rest))
            return found


def account_for(account: Account, event: Event, at: int, run: str | None) -> Account:
    """The account with one more event. `run` is the session's run after the event."""
    match event:
        case Metered(run=of) if of == run:
            return replace(
                _add(account, portions(account, event)),
                metered=event.models,
                metered_calls=event.tool_calls,
                tool_calls=account.tool_calls + event.tool_calls - account.metered_calls,
            )
        case TurnEnded(tool_calls=calls):
            calls = max(calls, account.metered_calls)
            return replace(
                _add(account, portions(account, event)),
                metered=(),
                metered_calls=0,
                tool_calls=account.tool_calls + calls - account.metered_calls,
                run_turns=account.run_turns + 1,
            )
        case BudgetReached(scope=scope, unit=unit):
            return replace(account, budgets=account.budgets | {budget_key(scope, unit): event})
        case BudgetFreed(scope=scope, unit=unit):
            key = budget_key(scope, unit)
            left = {name: each for name, each in account.budgets.items() if name != key}
            return replace(account, budgets=left)
        case Alarmed(alarm=alarm):
            ringing = AlarmView(
                text=event.text, action=event.action, at=at, coded=event.coded, act=event.act
            )
            return replace(account, alarms=account.alarms | {alarm: ringing})
        case AlarmEnded(alarm=alarm):
            silent = {name: each for name, each in account.alarms.items() if name != alarm}
            return replace(account, alarms=silent)
        case RateLimited(limit=limit):
            return replace(account, limits=account.limits | {limit or "": event})
        case RunStarted(run=of) if of == run and not account.up_since:
            return replace(account, up_since=at)
        case RunStopping(run=of) if of == run and not account.stopping:
            return replace(account, stopping=at)
        case RunStopping() if run is None:
            return replace(account, crashes=0)  # it is not resumed automatically
        case _:
            return account


def begin_run(account: Account, event: RunStarting) -> Account:
    """A new run starts at zero."""
    return replace(
        account,
        run_usd=0.0,
        run_tokens=0,
        run_turns=0,
        metered=(),
        metered_calls=0,
        alarms={},
        resumed=event.origin.cli_session is not None,
        stopping=0,
        up_since=0,
        ended_at=0,
    )


def end_run(account: Account, event: RunEnded, at: int) -> Account:
    """The run has ended: what was metered of its last turn stays, and a crash is counted."""
    crashes = 0
    if not account.stopping and account.up_since and event.exit_code != 0 and not event.clean:
        healthy = at - account.up_since >= HEALTHY_MS
        crashes = 1 if healthy else account.crashes + 1
    return replace(account, metered=(), metered_calls=0, ended_at=at, crashes=crashes)


_NOTHING = ModelTokens(model="")
_CENT_OF_A_CENT = 1e-9


def _difference(old: ModelTokens | None, new: ModelTokens | None, *, estimate: bool) -> Portion:
    old, new = old or _NOTHING, new or _NOTHING
    usd = new.cost_usd - old.cost_usd
    return Portion(
        model=new.model or old.model,
        usd=usd,
        estimated_usd=usd if estimate else -old.cost_usd,
        input=new.input - old.input,
        output=new.output - old.output,
        cache_read=new.cache_read - old.cache_read,
        cache_write=new.cache_write - old.cache_write,
    )


def _add(account: Account, added: list[Portion]) -> Account:
    usd = sum(each.usd for each in added)
    tokens = sum(each.tokens for each in added)
    return replace(
        account,
        usd=_sum(account.usd, usd),
        estimated_usd=_sum(account.estimated_usd, sum(each.estimated_usd for each in added)),
        run_usd=_sum(account.run_usd, usd),
        tokens=_count(account.tokens + tokens),
        run_tokens=_count(account.run_tokens + tokens),
    )


def _sum(total: float, more: float) -> float:
    """A finite sum, not below zero because of rounding."""
    found = total + more
    if not math.isfinite(found):
        return total
    return found if found > _CENT_OF_A_CENT else 0.0


def _count(number: int) -> int:
    return min(max(number, 0), _MOST_TOKENS)
