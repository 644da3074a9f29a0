"""Which files of a working folder people are not shown, because the policy closes them.

Owns the question to the rules: a file is closed if they deny its reading to the session's agent, or
if it is one of those that usually hold secrets. `reviews` and `worktrees` are above; policy is
below. It reads no file: a path is judged by its name.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath

import anyio.to_thread
import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.hub.permissions.context import facts_of, place_of
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.policy.decide import Behavior, Call, Rules, decide
from quarterdeck.policy.policy import Policy
from quarterdeck.policy.presets import preset
from quarterdeck.protocol.modes import DEFAULT
from quarterdeck.protocol.session_view import SessionView

AT_ONCE = 20
"""Paths that are judged without a thread: each takes a tenth of a millisecond."""
_SECRETS = "secrets"


class ClosedFiles:
    """The files that the policies in force close."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    async def among(self, view: SessionView, root: str, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of the paths below `root` that are closed."""
        listed = tuple(paths)
        rules = self._policies.rules_for(view.spec, view.session)
        rules = replace(rules, policies=(*rules.policies, *_secrets()))
        if len(listed) < AT_ONCE:
            return _closed_paths(view, rules, root, listed)
        return await anyio.to_thread.run_sync(_closed_paths, view, rules, root, listed)


def _closed_paths(
    view: SessionView, rules: Rules, root: str, paths: tuple[str, ...]
) -> tuple[str, ...]:
    context = place_of(view, None)
    facts = facts_of(view, int(time.time() * 1000), DEFAULT, agent=None, subagent=False)
    found: list[str] = []
    for path in paths:
        whole = str(PurePosixPath(root) / path)
        input_ = Raw(msgspec.json.encode({"file_path": whole}))
        call = Call(tool="Read", input=input_, facts=facts, context=context)
        if decide(call, rules).behavior is Behavior.DENY:
            found.append(path)
    return tuple(found)


@cache
def _secrets() -> tuple[Policy, ...]:
    found = preset(_SECRETS)
    return () if found is None else (found,)
