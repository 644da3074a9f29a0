"""What people want to know of policy, and may change: for every front, with one face.

Owns nothing: the policies in force, the journal's calls of the past, and the audit log's chain are
below. Checks, explanations and replays run in a process that can be killed (`workers`), so that no
user waits for the replay of another.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio

from quarterdeck.domain.errors import UsageError, WorkLimit
from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions import trials
from quarterdeck.hub.permissions.context import PolicyContext
from quarterdeck.hub.permissions.past_calls import PastCalls
from quarterdeck.hub.permissions.policies import Policies, PolicyState
from quarterdeck.hub.permissions.policy_texts import PolicyTexts
from quarterdeck.hub.permissions.trials import PolicyChecked
from quarterdeck.hub.workers import Turn, Workers
from quarterdeck.journal.base import Journal
from quarterdeck.journal.chain import Check, parse_head
from quarterdeck.policy.decide import Rules
from quarterdeck.policy.explain import Explanation
from quarterdeck.policy.facts import SUBAGENT, Facts
from quarterdeck.policy.grants import Grant
from quarterdeck.policy.needs import Context
from quarterdeck.policy.replay import Replay
from quarterdeck.policy.suggest import Suggestion
from quarterdeck.protocol.audit import Checked
from quarterdeck.protocol.modes import DEFAULT, chosen_mode

CHAIN_PAGE = 1000

TRY_SECONDS = 5.0
"""For a policy that is checked, or a call that is explained. Most take a hundredth."""
PAST_SECONDS = 10.0
"""For all calls of the past. Half of that time for the calls: those that are left then are told as
cut off."""
READ_SECONDS = 30.0
"""For reading the past out of the journal."""

NOBODY = "nobody"
"""Whose turn it is where a caller has no name."""


class PolicyView(Value, omit_defaults=False):
    """What is in force."""

    files: tuple[PolicyState, ...]
    names: tuple[str, ...]
    """The policies that a session may name."""
    grants: tuple[Grant, ...]
    grants_flaw: str | None


class Question(Value):
    """A call to be explained. Fields that are left out are unknown, or the session's."""

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


class PolicyService:
    """Policy, as a front may use it."""

    def __init__(
        self,
        journal: Journal,
        policies: Policies,
        *,
        clock: Callable[[], float] = time.time,
        workers: Workers | None = None,
    ) -> None:
        """`workers`: the processes that all in the hub share; their maker ends them."""
        self._workers = workers or Workers()
        self._journal = journal
        self._policies = policies
        self.texts = PolicyTexts(policies)
        """The files, for owners who edit them."""
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

    async def check(self, text: str, *, by: str = NOBODY) -> PolicyChecked:
        """Read a policy, with its examples, and put nothing into force. Raises `WorkLimit`."""
        async with self._workers.turn(by) as turn:
            return await turn.call(TRY_SECONDS, trials.check, text)

    async def explain(self, question: Question, *, by: str = NOBODY) -> Explanation:
        """Which rules hit which part of a call, and which decided.

        Raises `UsageError`, and `WorkLimit` where it takes too long.
        """
        facts = question_facts(question, int(self._clock() * 1000))
        context, here = Context(cwd=question.cwd), False
        rules = Rules()
        if question.session is not None:
            view = await self._journal.summary(question.session)
            if view is None:
                raise UsageError(f"session: there is no session {question.session!r}")
            policy_context = PolicyContext(self._policies, lambda: view)
            known = await policy_context.facts(
                facts.now or 0,
                facts.mode or view.mode or chosen_mode(view.spec) or DEFAULT,
                agent=None,
                subagent=False,
            )
            facts = overlaid(known, facts)
            context, here = policy_context.place(question.cwd)
            rules = self._policies.rules_for(view.spec, question.session)
        elif question.text is None:
            rules = self._policies.rules_named(question.policy)
        if question.text is not None:
            # The text is instead of what is in force, but for the built-in rules.
            rules = Rules(private=self._policies.rules_named(None).private)
        asked = (question.tool, question.argument, facts, context, here, rules, question.text)
        async with self._workers.turn(by) as turn:
            return await turn.call(TRY_SECONDS, trials.explain_call, *asked)

    async def replay(
        self, text: str, since: int, session: str | None = None, *, by: str = NOBODY
    ) -> Replay:
        """What a policy would have done with the calls since a time in ms.

        Raises `UsageError`, and `WorkLimit` where it takes too long.
        """
        async with self._workers.turn(by) as turn:
            history = await self._feed(turn, since, session)
            limits = (history.truncated, PAST_SECONDS / 2)
            return await turn.call(PAST_SECONDS, trials.replay_calls, text, *limits)

    async def suggest(self, since: int, least: int, *, by: str = NOBODY) -> tuple[Suggestion, ...]:
        """What people's answers since a time in ms suggest. Raises `WorkLimit`."""
        async with self._workers.turn(by) as turn:
            await self._feed(turn, since)
            return await turn.call(PAST_SECONDS, trials.suggest_rules, least, PAST_SECONDS / 2)

    async def _feed(self, turn: Turn, since: int, session: str | None = None) -> PastCalls:
        history = PastCalls(self._journal)
        with anyio.move_on_after(READ_SECONDS) as limit:
            await turn.feed(await history.read(since, session))
        if limit.cancelled_caught:
            raise WorkLimit("took_too_long", "the history takes too long to read: ask for less")
        return history

    async def grant(self, grant: Grant) -> Grant:
        """Allow something from now on. Raises `UsageError`."""
        return await self._policies.grant(grant)

    async def revoke(self, id_: str) -> Grant:
        """Take a grant back. Raises `NotFound`."""
        return await self._policies.revoke(id_)

    async def verify(self, head: str | None = None) -> Checked:
        """Check the audit log's chain, and that it leads through a head that was kept outside."""
        expected = parse_head(head) if head is not None else None
        if head is not None and expected is None:
            raise UsageError("head: must be position:seal, as an earlier check gave it")
        check = Check(self._journal.epoch, expected)
        while page := await self._journal.links(after=check.after, limit=CHAIN_PAGE):
            check.add(page)
        return check.result()


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


def overlaid(known: Facts, given: Facts) -> Facts:
    """The facts of a session, with the given ones in their place."""
    return Facts(
        **{
            name: getattr(known if getattr(given, name) is None else given, name)
            for name in Facts.__struct_fields__
        }
    )
