"""Checks, explanations and replays of policies: the functions that a worker process runs.

Pure except for a clock and the disk of a place: a call or a policy in, an answer out. Above is
`service`, which has the journal and the policies in force; `workers` carries the calls over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.disk import looking_here
from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, Rules
from quarterdeck.policy.explain import Explanation, explain
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.file import Loaded, read_policy
from quarterdeck.policy.needs import Context
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset
from quarterdeck.policy.replay import PastCall, Replay, replay
from quarterdeck.policy.suggest import Suggestion, suggest
from quarterdeck.policy.toml import Flaw


class PolicyChecked(Value, omit_defaults=False):
    """What a policy's text is worth."""

    good: bool
    rules: int
    examples: int
    flaws: tuple[Flaw, ...]
    warnings: tuple[Flaw, ...] = ()
    """Rules that never do what they say."""


def check_text(loaded: Loaded) -> PolicyChecked:
    """What a policy's text is worth."""
    return PolicyChecked(
        good=loaded.policy is not None,
        rules=loaded.rules,
        examples=loaded.examples,
        flaws=loaded.flaws,
        warnings=loaded.warnings,
    )


def check(text: str) -> PolicyChecked:
    """Read a policy, with its examples."""
    return check_text(read_policy(text, "policy", preset=preset))


def explain_call(
    tool: str,
    argument: str,
    facts: Facts,
    context: Context,
    here: bool,
    rules: Rules,
    text: str | None,
) -> Explanation:
    """Explain a call, by a policy's text if there is one, in place of the rules' own policies.

    `here`: the place is on this machine, and its disk is looked at. Raises `UsageError`.
    """
    given = input_of(tool, argument)
    if here:
        context = looking_here(context)
    if text is not None:
        rules = replace(rules, policies=(_policy(text),))
    return explain(Call(tool=tool, input=given, facts=facts, context=context), rules)


def replay_calls(calls: Sequence[PastCall], text: str, truncated: bool, seconds: float) -> Replay:
    """Hold a policy against calls of the past: as many as the time is enough for."""
    policy = _policy(text)
    within = _Within(calls, seconds)
    found = replay(policy, within, truncated=truncated)
    return found if not within.cut else replace(found, truncated=True)


def suggest_rules(calls: Sequence[PastCall], least: int, seconds: float) -> tuple[Suggestion, ...]:
    """What the answers to calls of the past suggest: as many as the time is enough for."""
    return suggest(_Within(calls, seconds / 2), least=least)


class _Within:
    """Items, until a time is over."""

    def __init__(self, calls: Sequence[PastCall], seconds: float) -> None:
        self._calls = calls
        self._end = time.monotonic() + seconds
        self.cut = False

    def __iter__(self) -> Iterator[PastCall]:
        for call in self._calls:
            if time.monotonic() > self._end:
                self.cut = True
                return
            yield call


def _policy(text: str) -> Policy:
    loaded = read_policy(text, "policy", preset=preset)
    if loaded.policy is None:
        raise UsageError(f"the policy is wrong: {loaded.flaws[0]}")
    return loaded.policy
