"""What people want to know of policy, and may change: for every front, with one face.

Owns nothing: the policies in force, the journal's calls of the past, and the audit log's chain are
below. Long work is done in a thread, so that no agent waits for somebody's replay.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from anyio import to_thread

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Fact
from quarterdeck.hub.history import History
from quarterdeck.hub.policies import Policies, PolicyState
from quarterdeck.hub.seat import Seat
from quarterdeck.journal.base import Journal
from quarterdeck.journal.chain import Check, Checked, parse_head
from quarterdeck.policy.calls import input_of
from quarterdeck.policy.decide import Call, Rules
from quarterdeck.policy.explain import Explanation, explain
from quarterdeck.policy.facts import SUBAGENT, Facts
from quarterdeck.policy.file import Loaded
from quarterdeck.policy.grants import Grant
from quarterdeck.policy.needs import Context
from quarterdeck.policy.replay import Replay, replay
from quarterdeck.policy.suggest import Suggestion, suggest
from quarterdeck.policy.toml import Flaw

CHAIN_PAGE = 1000


class PolicyView(Fact, omit_defaults=False):
    """What is in force."""

    files: tuple[PolicyState, ...]
    names: tuple[str, ...]
    """The policies that a session may name."""
    grants: tuple[Grant, ...]
    grants_flaw: str | None


class PolicyChecked(Fact, omit_defaults=False):
    """What a policy's text is worth."""

    good: bool
    rules: int
    examples: int
    flaws: tuple[Flaw, ...]


class Question(Fact):
    """A call that somebody wants to know about. What is left out is unknown, or the session's."""

    tool: str
    argument: str = ""
    """The input, as a JSON object, or the one argument that the tool is about."""
    session: str | None = None
    policy: str | None = None
    """A policy by name, as a session would have it."""
    text: str | None = None
    """This policy's text, in place of what is in force."""
    cwd: str | None = None
    branch: str | None = None
    project: str | None = None
    machine: str | None = None
    user: str | None = None
    mode: str | None = None
    origin: str | None = None
    cost: float | None = None
    at: int | None = None


class PolicyDesk:
    """Policy, as a front may use it."""

    def __init__(
        self,
        journal: Journal,
        policies: Policies,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._policies = policies
        self._clock = clock

    async def view(self) -> PolicyView:
        """What is in force, as the files are now."""
        await self._policies.refresh()
        return PolicyView(
            files=self._policies.states,
            names=self._policies.names,
            grants=self._policies.grants,
            grants_flaw=self._policies.grants_flaw,
        )

    async def check(self, text: str) -> PolicyChecked:
        """Read a policy, with its examples, and put nothing into force."""
        return checked(await to_thread.run_sync(self._policies.read, text))

    async def explain(self, question: Question) -> Explanation:
        """Which rules hit which part of a call, and which decided. Raises `UsageError`."""
        given = input_of(question.tool, question.argument)
        facts = question_facts(question, int(self._clock() * 1000))
        context = Context(cwd=question.cwd)
        rules = Rules()
        if question.session is not None:
            view = await self._journal.summary(question.session)
            if view is None:
                raise UsageError(f"session: there is no session {question.session!r}")
            seat = Seat(self._policies, lambda: view)
            known = seat.facts(
                facts.now or 0,
                facts.mode or view.spec.mode or "default",
                agent=None,
                subagent=False,
            )
            facts = overlaid(known, facts)
            context = seat.context(question.cwd)
            rules = self._policies.rules_for(view.spec)
        elif question.text is None:
            rules = self._policies.rules_named(question.policy)
        if question.text is not None:
            loaded = self._policies.read(question.text)
            if loaded.policy is None:
                raise UsageError(f"the policy is wrong: {loaded.flaws[0]}")
            built_in = self._policies.rules_named(None).private
            rules = Rules(policies=(loaded.policy,), private=built_in)
        call = Call(tool=question.tool, input=given, facts=facts, context=context)
        return await to_thread.run_sync(explain, call, rules)

    async def replay(self, text: str, since: int, session: str | None = None) -> Replay:
        """What a policy would have done with the calls since a time in ms. Raises `UsageError`."""
        loaded = await to_thread.run_sync(self._policies.read, text)
        policy = loaded.policy
        if policy is None:
            raise UsageError(f"the policy is wrong: {loaded.flaws[0]}")
        history = History(self._journal)
        calls = await history.read(since, session)
        return await to_thread.run_sync(lambda: replay(policy, calls, truncated=history.truncated))

    async def suggest(self, since: int, least: int) -> tuple[Suggestion, ...]:
        """What people's answers since a time in ms suggest."""
        calls = await History(self._journal).read(since)
        return await to_thread.run_sync(lambda: suggest(calls, least=least))

    async def grant(self, grant: Grant) -> Grant:
        """Allow something from now on. Raises `UsageError`."""
        return await self._policies.grant(grant)

    async def revoke(self, id_: str) -> Grant:
        """Take a grant back. Raises `NotFound`."""
        return await self._policies.revoke(id_)

    async def verify(self, head: str | None = None) -> Checked:
        """Check the audit log's chain, and that it leads through a head that somebody has kept."""
        expected = parse_head(head) if head is not None else None
        if head is not None and expected is None:
            raise UsageError("head: position:seal is wanted, as an earlier check gave it")
        check = Check(self._journal.epoch, expected)
        while page := await self._journal.links(after=check.after, limit=CHAIN_PAGE):
            check.add(page)
        return check.result()


def checked(loaded: Loaded) -> PolicyChecked:
    """What a policy's text is worth."""
    return PolicyChecked(
        good=loaded.policy is not None,
        rules=loaded.rules,
        examples=loaded.examples,
        flaws=loaded.flaws,
    )


def question_facts(question: Question, now: int) -> Facts:
    """The facts that a question tells."""
    origin, _, agent = (question.origin or "").partition(":")
    return Facts(
        now=question.at or now,
        machine=question.machine,
        project=question.project,
        branch=question.branch,
        user=question.user,
        mode=question.mode,
        origin=origin or None,
        agent=(agent or None) if origin == SUBAGENT else None,
        cost_usd=question.cost,
    )


def overlaid(known: Facts, told: Facts) -> Facts:
    """The facts of a session, with what somebody wants to try instead."""
    return Facts(
        **{
            name: getattr(told, name) if getattr(told, name) is not None else getattr(known, name)
            for name in Facts.__struct_fields__
        }
    )
