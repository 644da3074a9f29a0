"""What the rules say about a call: the rules that hold now, held against what is known of it.

Above is `gate`, which makes a decision of it; below are the policies and the view of the session.
It looks at the disk of this machine for sessions that run here: which branch is checked out, where
a symbolic link leads, and which files a folder holds that is read as a whole. A disk can be slow,
and a network disk can hang: so `PolicyContext` looks in a thread, never on the event loop. For a
session on another machine all of that is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.disk import looking_here
from quarterdeck.hub.permissions.policies import Policies
from quarterdeck.policy.decide import Behavior, Call, Rules, Verdict, decide
from quarterdeck.policy.facts import MAIN, SUBAGENT, Facts
from quarterdeck.policy.grants import Grant, narrowest, policy_of
from quarterdeck.policy.needs import Context
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import LOCAL, SessionSpec
from quarterdeck.runtime.git_head import branch_of

LONGEST_RULE = 4096
"""Characters of a rule that is offered. People cannot check a longer one."""
THREADS = 16
"""The number of calls that are looked at in one moment. A hanging disk must not use up the threads
that others need."""

_T = TypeVar("_T")
_limiter: RunVar[CapacityLimiter] = RunVar("policy-threads")


class CallQuestion(Value):
    """A call that the rules are asked about, with what is known of it without the disk."""

    tool: str
    input: Raw
    now: int
    mode: str
    agent: str | None = None
    """The type of the subagent that calls."""
    subagent: bool | None = False
    """None: this version of the CLI does not tell whether a subagent calls."""
    cwd: str | None = None
    cli_asks: bool = False
    written: frozenset[str] = frozenset()
    """Files that earlier calls have written."""


class Ruling(Value):
    """What the rules say about a call, and the fact from the disk that they may depend on."""

    verdict: Verdict
    branch: str | None = None
    narrowest: tuple[str, ...] = ()
    """If a person is asked: the rules that allow the call and as little else as possible."""
    lasting: bool = True
    """Whether these rules, as a grant, would spare the question the next time."""


NO_RULING = Ruling(
    verdict=Verdict(
        behavior=Behavior.ASK,
        coded=(CodedText(code=TextCode.NOT_ASKED),),
        ruled=True,
        source="policy",
    )
)
"""For a call without a ruling: a person decides."""


class PolicyContext:
    """The rules and facts of one session."""

    def __init__(self, policies: Policies, view: Callable[[], SessionView]) -> None:
        self._policies = policies
        self._view = view

    async def rule(self, question: CallQuestion, spec: SessionSpec) -> Ruling:
        """What the rules say about a call."""
        view = self._view()
        rules = self._policies.rules_for(spec, view.session)
        return await self._look(view, lambda: ruling_on(question, rules, view))

    async def facts(
        self, now: int, mode: str, *, agent: str | None, subagent: bool | None
    ) -> Facts:
        """What is known of the session, for a call at this time."""
        view = self._view()
        return await self._look(
            view, lambda: facts_of(view, now, mode, agent=agent, subagent=subagent)
        )

    def place(self, cwd: str | None) -> tuple[Context, bool]:
        """The place where a call would run, and whether that is on this machine."""
        view = self._view()
        return place_of(view, cwd), _is_here(view)

    async def narrowest(self, question: CallQuestion) -> tuple[str, ...]:
        """The rules that allow this call and as little else as possible."""
        call = self._call(question)
        return await self._look(self._view(), lambda: narrowest_rules(call))

    async def is_allowed_by(self, rules: tuple[str, ...], question: CallQuestion) -> bool:
        """Whether these rules alone allow this call."""
        call = self._call(question)
        return await self._look(self._view(), lambda: allows(rules, call))

    def _call(self, question: CallQuestion) -> Call:
        context = replace(context_of(self._view(), question.cwd), written=question.written)
        return Call(tool=question.tool, input=question.input, context=context)

    @staticmethod
    async def _look(view: SessionView, look: Callable[[], _T]) -> _T:
        """Call a function that reads the disk if the session runs here: then in a thread."""
        if not _is_here(view):
            return look()
        limiter = _limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(THREADS)
            _limiter.set(limiter)
        return await to_thread.run_sync(look, limiter=limiter)


def ruling_on(question: CallQuestion, rules: Rules, view: SessionView) -> Ruling:
    """What these rules say about a call. Reads the disk for a session that runs here."""
    facts = facts_of(
        view, question.now, question.mode, agent=question.agent, subagent=question.subagent
    )
    call = Call(
        tool=question.tool,
        input=question.input,
        facts=facts,
        context=replace(context_of(view, question.cwd), written=question.written),
        cli_asks=question.cli_asks,
    )
    verdict = decide(call, rules)
    if verdict.behavior is not Behavior.ASK:
        return Ruling(verdict=verdict, branch=facts.branch)
    asked = replace(call, input=verdict.input or call.input)
    found = narrowest_rules(asked)
    return Ruling(
        verdict=verdict,
        branch=facts.branch,
        narrowest=found,
        lasting=not found or _would_last(found, asked, rules),
    )


def narrowest_rules(call: Call) -> tuple[str, ...]:
    """The rules that allow this call and as little else as possible; none if there are none."""
    found = narrowest(call.tool, call.input, call.context)
    if not found or any(len(rule) > LONGEST_RULE for rule in found):
        return ()
    return found if allows(found, call) else ()


def allows(rules: tuple[str, ...], call: Call) -> bool:
    """Whether these rules alone, in Claude Code's syntax, allow a call."""
    granted = policy_of([_grant(rules)])
    if granted is None:
        return False
    verdict = decide(call, Rules(policies=(granted,)))
    return verdict.ruled and verdict.behavior is Behavior.ALLOW


def _would_last(found: tuple[str, ...], call: Call, rules: Rules) -> bool:
    granted = policy_of([_grant(found)])
    if granted is None:
        return False
    more = replace(rules, policies=(*rules.policies, granted))
    return decide(call, more).behavior is Behavior.ALLOW


def _grant(rules: tuple[str, ...]) -> Grant:
    return Grant(id="", rules=rules, by="", at=0)


def facts_of(
    view: SessionView, now: int, mode: str, *, agent: str | None, subagent: bool | None
) -> Facts:
    """What is known of a session. Reads the disk for a session that runs here."""
    spec = view.spec
    return Facts(
        now=now,
        machine=view.machine or spec.machine or LOCAL,
        project=spec.project or "",
        directory=spec.directory,
        branch=branch_of(_folder(view)) if _is_here(view) else None,
        user=view.user,
        mode=mode,
        origin=None if subagent is None else SUBAGENT if subagent else MAIN,
        agent=agent,
        cost_usd=view.cost_usd,
    )


def context_of(view: SessionView, cwd: str | None) -> Context:
    """The place where a call of a session would run, with its disk if that is here."""
    place = place_of(view, cwd)
    return looking_here(place) if _is_here(view) else place


def place_of(view: SessionView, cwd: str | None) -> Context:
    """The place where a call of a session would run. It looks at no disk."""
    here = _is_here(view)
    return Context(
        cwd=cwd or _folder(view),
        home=view.spec.env.get("HOME") or (str(Path.home()) if here else None),
        directories=view.spec.add_dirs,
        settings=_folder(view),
    )


def _is_here(view: SessionView) -> bool:
    return (view.machine or view.spec.machine or LOCAL) == LOCAL


def _folder(view: SessionView) -> str:
    return view.directory or view.spec.directory
