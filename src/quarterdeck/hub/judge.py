"""Policy's seat in a run: what is decided about tool calls before, or without, a person.

Knows the CLI's requests and our rules, and writes the audit: every call has an entry that says who
or what let it pass. Two ways lead here. The CLI asks (`asked`); and a hook shows every call before
it runs (`watched`), so that calls which the CLI would allow by itself are seen too.
"""

from __future__ import annotations

from msgspec import Raw

from quarterdeck.domain.events import Decided, Event
from quarterdeck.domain.sessions import SessionSpec
from quarterdeck.domain.structs import Fact
from quarterdeck.hub.cooldown import Cooldown
from quarterdeck.policy.decide import Behavior, Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.wire.answers import allow, deny
from quarterdeck.wire.base import Message, Part
from quarterdeck.wire.content import ToolResultBlock
from quarterdeck.wire.hook_outputs import HookPermission, PreToolUseOutput, SyncOutput
from quarterdeck.wire.hooks import HookInput, PreToolUseInput, UnknownHook
from quarterdeck.wire.messages import Result, User
from quarterdeck.wire.requests import CanUseTool
from quarterdeck.wire.tools import describe

PLAN = "ExitPlanMode"


class Judgement(Fact):
    """What the CLI is answered, and what the audit says. No body: a person is to be asked."""

    body: Part | None = None
    events: tuple[Event, ...] = ()


class Judge:
    """Decides about the calls of one run."""

    def __init__(self, spec: SessionSpec) -> None:
        self._cooldown = Cooldown(spec.plan_cooldown)
        self._undecided: dict[str, str] = {}
        self._done: set[str] = set()
        self.change(spec)

    def change(self, spec: SessionSpec) -> None:
        """What holds for the session has changed."""
        self._rules = Rules(auto_approve=spec.auto_approve, skip_permissions=spec.skip_permissions)
        self._cooldown.base = spec.plan_cooldown

    def answered(self, answer: Raw, at: int) -> None:
        """A person has answered a question, at a time in ms."""
        self._cooldown.answered(answer, at)

    def asked(self, request: CanUseTool, mode: str, now: int) -> Judgement:
        """The CLI asks about a call."""
        self._undecided.pop(request.tool_use_id, None)
        if request.tool_name == PLAN and (wait := self._cooldown.wait(now)):
            reason = f"the plan comes again too soon; {wait} s are left to improve it"
            verdict = Verdict(behavior=Behavior.DENY, reasons=(reason,))
        else:
            facts = Facts(now=now, mode=mode)
            call = Call(tool=request.tool_name, input=request.input, facts=facts, cli_asks=True)
            verdict = decide(call, self._rules)
        body: Part
        match verdict.behavior:
            case Behavior.ASK:
                return Judgement()
            case Behavior.ALLOW:
                body = allow(request.input)
            case Behavior.DENY:
                body = deny("; ".join(verdict.reasons))
        entry = _entry(request.tool_name, request.input, request.tool_use_id, verdict)
        return Judgement(body=body, events=(entry,))

    def watched(self, seen: HookInput | UnknownHook, mode: str) -> Judgement:
        """The CLI is about to run a tool, or to ask about it."""
        if not isinstance(seen, PreToolUseInput):
            return Judgement()
        call = Call(tool=seen.tool_name, input=seen.tool_input, facts=Facts(mode=mode))
        verdict = decide(call, self._rules)
        ruled = seen.tool_name in self._rules.auto_approve or verdict.behavior is Behavior.DENY
        if not ruled:
            # No rule of ours: the CLI goes on as it would without us, and asks if it must.
            if seen.tool_use_id:
                self._undecided[seen.tool_use_id] = seen.tool_name
            return Judgement()
        permission = (
            HookPermission.ALLOW if verdict.behavior is Behavior.ALLOW else HookPermission.DENY
        )
        output = PreToolUseOutput(
            permission_decision=permission, permission_decision_reason="; ".join(verdict.reasons)
        )
        entry = _entry(seen.tool_name, seen.tool_input, seen.tool_use_id, verdict)
        return Judgement(body=SyncOutput(specific=output), events=(entry,))

    def results(self, message: Message, mode: str) -> list[Event]:
        """Write down, when a turn ends, what the CLI decided by itself in it."""
        match message:
            case User():
                self._done |= {
                    block.tool_use_id
                    for block in message.blocks
                    if isinstance(block, ToolResultBlock) and block.tool_use_id in self._undecided
                }
                return []
            case Result():
                denied = {denial.tool_use_id for denial in message.permission_denials}
                done, self._done = self._done, set()
                return [self._by_cli(id_, mode, id_ in denied) for id_ in sorted(done)]
            case _:
                return []

    def _by_cli(self, tool_use_id: str, mode: str, denied: bool) -> Decided:
        tool = self._undecided.pop(tool_use_id)
        return Decided(
            tool=tool,
            title=tool,
            verdict=Behavior.DENY.value if denied else Behavior.ALLOW.value,
            by="cli",
            reasons=(f"the CLI decided by itself, in mode {mode!r}",),
            tool_use_id=tool_use_id,
        )


def _entry(tool: str, tool_input: Raw, tool_use_id: str | None, verdict: Verdict) -> Decided:
    return Decided(
        tool=tool,
        title=describe(tool, tool_input).title,
        verdict=verdict.behavior.value,
        by="policy",
        reasons=verdict.reasons,
        tool_use_id=tool_use_id or None,
    )
