"""Policy's voice in a run: what is decided about tool calls before, or without, a person.

Knows the CLI's requests and our rules, and writes the audit: every call has an entry that says who
or what let it pass. Two ways lead here. A hook shows every call before it runs (`watched`), also
those that the CLI would allow by itself: there a rule denies, allows, rewrites, or has the CLI ask.
And the CLI asks (`asked`): there the same rules are held against the call again, since a person may
be asked only now, and by rules that hold now.
"""

from __future__ import annotations

from msgspec import Raw, Struct
from msgspec.structs import replace

from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.context import PolicyContext
from quarterdeck.hub.permissions.cooldown import Cooldown
from quarterdeck.hub.permissions.edits import Edit
from quarterdeck.policy.decide import FOR_PEOPLE, Behavior, Call, Rules, Verdict, decide
from quarterdeck.policy.facts import Facts
from quarterdeck.policy.needs import Context
from quarterdeck.protocol.events import AskOpened, Decided, Event
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire.answers import AllowResult, DenyResult, allow, deny
from quarterdeck.wire.base import Message, Part
from quarterdeck.wire.content import ToolResultBlock
from quarterdeck.wire.hook_outputs import HookPermission, PreToolUseOutput, SyncOutput
from quarterdeck.wire.hooks import HookInput, PreToolUseInput, UnknownHook
from quarterdeck.wire.messages import Result, User
from quarterdeck.wire.rawjson import same_json
from quarterdeck.wire.requests import CanUseTool
from quarterdeck.wire.tools import describe
from quarterdeck.wire.versions import Version, release

PLAN = "ExitPlanMode"

MOST_REMEMBERED = 4096
"""Calls that the hook has shown and whose end was not heard of: a CLI that is odd must not fill the
memory."""


HEEDED = release(120)
"""From here on a CLI asks when the hook says so, in every mode, and tells which subagent it is that
calls. Versions up to 2.1.62 do neither: they let pass what they would have let pass. 2.1.92 asks,
but nobody knows which version is the first, and a hook that waits itself is right in all."""


PLAN_ASKS = release(325)
"""From here on a CLI that was started with leave to bypass permissions does not do so in plan mode.
Versions up to 2.1.120 do, and an agent enters that mode unasked."""
_HARMLESS = frozenset({
    "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Glob", "Grep", "LS", "Read", "Task",
    "TodoWrite", "WebSearch",
})  # fmt: skip
"""Tools that change nothing by themselves: what a subagent does is shown to the hook as well."""


class GateDecision(Value):
    """What the CLI is answered, and what the audit says. No body: a person is to be asked, or (for
    a hook) the CLI goes on by itself.
    """

    body: Part | None = None
    events: tuple[Event, ...] = ()
    verdict: Verdict | None = None
    held: CanUseTool | None = None
    """A person is asked while the hook waits: the call, in the form of a question about it."""
    branch: str | None = None

    def shown(self, request: CanUseTool) -> CanUseTool:
        """The request that a person is asked about: with what would run."""
        if self.verdict is None or not self.verdict.input:
            return request
        return replace(request, input=self.verdict.input)

    def with_policy(self, opened: AskOpened) -> AskOpened:
        """The card, with why it is there, who may answer it, and for how long it waits."""
        verdict = self.verdict
        if verdict is None:
            return opened
        asking = verdict.asking
        return replace(
            opened,
            reasons=verdict.reasons if verdict.ruled else (),
            rule=verdict.rule,
            source=verdict.source,
            answered_by=asking.answered_by,
            wait=asking.wait,
            then=asking.then,
            branch=self.branch,
        )


class _Seen(Value):
    """A call that the hook has shown."""

    tool: str
    facts: Facts
    rewritten: bool = False


class _Answered(Value):
    """What a person has answered to a question that a hook held."""

    tool: str
    body: AllowResult

    def to(self, request: CanUseTool) -> bool:
        """Whether the CLI asks about exactly what was allowed."""
        same = same_json(request.input, self.body.updated_input)
        return same and request.tool_name == self.tool


class PermissionGate:
    """Decides about the calls of one run. Without a seat there is no policy."""

    def __init__(self, spec: SessionSpec, policy_context: PolicyContext | None = None) -> None:
        self._cooldown = Cooldown(spec.plan_cooldown)
        self._policy_context = policy_context
        self._undecided: dict[str, _Seen] = {}
        self._answered: dict[str, _Answered] = {}
        self._places: dict[str, str] = {}
        """Where each call that has not ended would run, as the hook has told."""
        self._agents: dict[str, str] = {}
        self._done: set[str] = set()
        self.leave = spec.skip_permissions
        """Whether the process was started with leave to bypass permissions."""
        self.change(spec)

    def change(self, spec: SessionSpec) -> None:
        """What holds for the session has changed."""
        self._spec = spec
        self._cooldown.base = spec.plan_cooldown

    def answered(self, answer: Raw, at: int) -> None:
        """A person has answered a question, at a time in ms."""
        self._cooldown.answered(answer, at)

    def held_answered(self, opened: AskOpened, body: object) -> None:
        """A person has answered a question while its hook waited: the CLI may ask it once more.

        Some versions do so for calls that their own settings want to be asked about.
        """
        if isinstance(body, AllowResult) and opened.tool_use_id:
            self._answered[opened.tool_use_id] = _Answered(tool=opened.tool, body=body)

    def settled(self, tool_use_id: str | None) -> None:
        """The journal says who decides about this call: the CLI does not do it by itself."""
        if tool_use_id is not None:
            self._undecided.pop(tool_use_id, None)

    def asked(self, request: CanUseTool, mode: str, now: int) -> GateDecision:
        """The CLI asks about a call."""
        answered = self._answered.pop(request.tool_use_id, None)
        seen = self._undecided.pop(request.tool_use_id, None)
        if request.tool_name == PLAN and (wait := self._cooldown.wait(now)):
            reason = f"the plan comes again too soon; {wait} s are left to improve it"
            verdict = Verdict(
                behavior=Behavior.DENY, reasons=(reason,), rule="plan-cooldown", source="session"
            )
            facts = Facts()
        else:
            agent = self._agents.get(request.agent_id or "")
            subagent = request.agent_id is not None
            facts = self._facts(now, mode, agent=agent, subagent=subagent)
            call = Call(
                tool=request.tool_name,
                input=request.input,
                facts=facts,
                context=self._context(None),
                cli_asks=True,
            )
            verdict = decide(call, self._rules)
        body: Part
        if verdict.behavior is not Behavior.DENY and answered is not None and answered.to(request):
            return GateDecision(body=answered.body, verdict=verdict)  # its entry is there already
        match verdict.behavior:
            case Behavior.ASK:
                return GateDecision(verdict=verdict, branch=facts.branch)
            case Behavior.ALLOW:
                body = allow(verdict.input or request.input)
            case Behavior.DENY:
                body = deny(_told(verdict))
        rewritten = bool(verdict.input) or (seen is not None and seen.rewritten)
        entry = _entry(request.tool_name, request.input, request.tool_use_id, verdict, facts)
        entry = replace(entry, rewritten=rewritten)
        return GateDecision(body=body, events=(entry,), verdict=verdict)

    def watched(
        self, seen: HookInput | UnknownHook, mode: str, now: int, version: Version | None
    ) -> GateDecision:
        """The CLI is about to run a tool, or to ask about it."""
        if not isinstance(seen, PreToolUseInput):
            return GateDecision()
        if seen.agent_id and seen.agent_type:
            self._agents[seen.agent_id] = seen.agent_type
        if seen.tool_use_id and seen.cwd and len(self._places) < MOST_REMEMBERED:
            self._places[seen.tool_use_id] = seen.cwd
        new = version is not None and version >= HEEDED
        subagent = True if seen.agent_id else False if new else None
        facts = self._facts(now, mode, agent=seen.agent_type, subagent=subagent)
        call = Call(
            tool=seen.tool_name,
            input=seen.tool_input,
            facts=facts,
            context=self._context(seen.cwd or None),
        )
        verdict = self._asked_in_plan(decide(call, self._rules), seen.tool_name, mode, version)
        if not verdict.ruled and not verdict.input:
            # No rule of ours: the CLI goes on as it would without us, and asks if it must.
            self._remember(seen, facts)
            return GateDecision(verdict=verdict)
        if verdict.behavior is Behavior.ASK and verdict.ruled and not new and _can_hold(seen):
            held = CanUseTool(
                tool_name=seen.tool_name,
                input=verdict.input or seen.tool_input,
                tool_use_id=seen.tool_use_id,
                agent_id=seen.agent_id,
            )
            return GateDecision(held=held, verdict=verdict, branch=facts.branch)
        if not verdict.ruled or verdict.behavior is Behavior.ASK:
            # The CLI will ask, or let it pass by itself: that is when it is decided.
            self._remember(seen, facts, rewritten=bool(verdict.input))
            events: tuple[Event, ...] = ()
        else:
            entry = _entry(seen.tool_name, seen.tool_input, seen.tool_use_id, verdict, facts)
            events = (replace(entry, rewritten=bool(verdict.input)),)
        return GateDecision(body=_hook_output(verdict), events=events, verdict=verdict)

    def edited(
        self, request: CanUseTool, mode: str, now: int, *, from_hook: bool | None = None
    ) -> Edit:
        """A person wants this call in the place of the one that they were asked about.

        `from_hook`: whether a hook showed the call, which does not always tell of a subagent; None
        where nobody knows.
        """
        agent = self._agents.get(request.agent_id or "")
        known = request.agent_id is not None or from_hook is False
        subagent = request.agent_id is not None if known else None
        call = Call(
            tool=request.tool_name,
            input=request.input,
            facts=self._facts(now, mode, agent=agent, subagent=subagent),
            context=self._context(self._places.get(request.tool_use_id)),
            cli_asks=True,
        )
        verdict = decide(call, self._rules)
        return Edit(input=verdict.input or request.input, verdict=verdict)

    def _asked_in_plan(
        self, verdict: Verdict, tool: str, mode: str, version: Version | None
    ) -> Verdict:
        """Have a person asked where the CLI would use a leave that a person has taken away."""
        taken_away = self.leave and not self._spec.skip_permissions
        uses_it = mode == "plan" and (version is None or version < PLAN_ASKS)
        if verdict.ruled or not taken_away or not uses_it or tool in _HARMLESS:
            return verdict
        reason = "the CLI was started with permissions skipped, and would not ask in plan mode"
        return replace(
            verdict,
            behavior=Behavior.ASK,
            reasons=(reason,),
            ruled=True,
            rule="plan-mode",
            source="session",
        )

    def results(self, message: Message, mode: str) -> list[Event]:
        """Write down, when a turn ends, what the CLI decided by itself in it."""
        match message:
            case User():
                for block in message.blocks:
                    if isinstance(block, ToolResultBlock):
                        self._answered.pop(block.tool_use_id, None)
                        self._places.pop(block.tool_use_id, None)
                        if block.tool_use_id in self._undecided:
                            self._done.add(block.tool_use_id)
                return []
            case Result():
                self._answered.clear()
                self._places.clear()
                denied = {denial.tool_use_id for denial in message.permission_denials}
                done, self._done = self._done, set()
                return [self._by_cli(id_, mode, id_ in denied) for id_ in sorted(done)]
            case _:
                return []

    def _by_cli(self, tool_use_id: str, mode: str, denied: bool) -> Decided:
        seen = self._undecided.pop(tool_use_id)
        mode = seen.facts.mode or mode
        return Decided(
            tool=seen.tool,
            title=seen.tool,
            verdict=Behavior.DENY.value if denied else Behavior.ALLOW.value,
            by="cli",
            reasons=(f"the CLI decided by itself, in mode {str(mode)!r}",),
            tool_use_id=tool_use_id,
            branch=seen.facts.branch,
            rewritten=seen.rewritten,
        )

    # --- what is known -------------------------------------------------------------------------

    @property
    def _rules(self) -> Rules:
        if self._policy_context is not None:
            return self._policy_context.rules_for(self._spec)
        spec = self._spec
        return Rules(auto_approve=spec.auto_approve, skip_permissions=spec.skip_permissions)

    def _facts(self, now: int, mode: str, *, agent: str | None, subagent: bool | None) -> Facts:
        if self._policy_context is None:
            return Facts(now=now, mode=mode)
        return self._policy_context.facts(now, mode, agent=agent, subagent=subagent)

    def _context(self, cwd: str | None) -> Context:
        return (
            self._policy_context.context(cwd)
            if self._policy_context is not None
            else Context(cwd=cwd)
        )

    def _remember(self, seen: PreToolUseInput, facts: Facts, *, rewritten: bool = False) -> None:
        if seen.tool_use_id and len(self._undecided) < MOST_REMEMBERED:
            self._undecided[seen.tool_use_id] = _Seen(
                tool=seen.tool_name, facts=facts, rewritten=rewritten
            )


def _can_hold(seen: PreToolUseInput) -> bool:
    """Whether the answer to a question about a call can be given by a hook.

    A plan's answer cannot: it changes the mode. And what is a question to a person anyway is asked
    by every version in every mode.
    """
    return seen.tool_name not in FOR_PEOPLE


def as_hook(body: Struct | Raw) -> Struct | Raw:
    """A person's answer to a question about a call, as the answer of a hook that has waited."""
    match body:
        case AllowResult(updated_input=given):
            output = PreToolUseOutput(permission_decision=HookPermission.ALLOW, updated_input=given)
        case DenyResult(message=message):
            output = PreToolUseOutput(
                permission_decision=HookPermission.DENY, permission_decision_reason=message
            )
        case _:
            return body
    return SyncOutput(specific=output)


def _hook_output(verdict: Verdict) -> SyncOutput:
    """What the hook answers. Without a decision the CLI goes on by itself, with the new input."""
    permission: HookPermission | None = None
    if verdict.ruled:
        permission = {
            Behavior.ALLOW: HookPermission.ALLOW,
            Behavior.DENY: HookPermission.DENY,
            Behavior.ASK: HookPermission.ASK,
        }[verdict.behavior]
    return SyncOutput(
        specific=PreToolUseOutput(
            permission_decision=permission,
            permission_decision_reason=_told(verdict) if permission is not None else None,
            updated_input=verdict.input,
        )
    )


def _told(verdict: Verdict) -> str:
    """What the agent reads: the rule's own words, and which rule it was."""
    reasons = "; ".join(verdict.reasons)
    return f"{verdict.message} ({reasons})" if verdict.message else reasons


def _entry(
    tool: str, tool_input: Raw, tool_use_id: str | None, verdict: Verdict, facts: Facts
) -> Decided:
    return Decided(
        tool=tool,
        title=describe(tool, verdict.input or tool_input).title,
        verdict=verdict.behavior.value,
        by="policy",
        reasons=verdict.reasons,
        tool_use_id=tool_use_id or None,
        rule=verdict.rule,
        source=verdict.source,
        branch=facts.branch,
    )
