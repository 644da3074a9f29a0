"""What is decided about the tool calls of a run before, or without, a person. Pure.

Owns the memory of the calls of one run and the rules of the audit: every call has an entry that
says who or what let it pass. A call comes here in two ways. A hook shows every call before it runs
(`decide_hook`), also those that the CLI would allow by itself: there a rule denies, allows or
rewrites it, or has the CLI ask. And the CLI asks (`decide_ask`): there the same rules are held
against the call again, since a person may be asked only now, and by rules that hold now.

What the rules say comes as a value (`Ruling`): `context` looks it up, in a thread. The memory is
changed by what the CLI says and by what was journalled, never by a decision, so that the next hub
folds it from the journal and decides nothing again.

The module is long because both ways read and change the same memory of calls.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.structs import Mutable, Value
from quarterdeck.hub.permissions.context import CallQuestion, Ruling
from quarterdeck.hub.permissions.cooldown import Cooldown
from quarterdeck.policy.decide import FOR_PEOPLE, Behavior, Verdict
from quarterdeck.policy.needs import files_written
from quarterdeck.protocol.events import AskOpened, Decided, Event, LeftToCli
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
PLAN_COOLDOWN = "plan-cooldown"
SESSION = "session"
"""The source of a rule that is part of the session, not of a policy."""

MOST_REMEMBERED = 4096
"""The number of calls without a result that are remembered: an odd CLI must not fill the memory."""
MOST_WRITTEN = 256 * 1024
"""Characters of the names of written files that the next run is told."""


HEEDED = release(120)
"""From here on a CLI asks when the hook says so, in every mode, and tells which subagent it is that
calls. Versions up to 2.1.62 do neither: they let pass what they would have let pass. 2.1.92 asks,
but the first such version is unknown, and a hook that waits itself is right in all."""


PLAN_ASKS = release(325)
"""From here on a CLI that was started with leave to bypass permissions does not do so in plan mode.
Versions up to 2.1.120 do, and an agent enters that mode unasked."""
_HARMLESS = frozenset({
    "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Glob", "Grep", "LS", "Read", "Task",
    "TodoWrite", "WebSearch",
})  # fmt: skip
"""Tools that change nothing by themselves: what a subagent does is shown to the hook as well."""


class GateDecision(Value):
    """What the CLI is answered, and what is journalled. No body: a person is to be asked, or (for a
    hook) the CLI goes on by itself.
    """

    body: Part | None = None
    events: tuple[Event, ...] = ()
    verdict: Verdict | None = None
    held: CanUseTool | None = None
    """A person is asked while the hook waits: the call, in the form of a question about it."""
    branch: str | None = None
    narrowest: tuple[str, ...] = ()
    lasting: bool = True

    def shown_request(self, request: CanUseTool) -> CanUseTool:
        """The request that a person is asked about: with the input that would run."""
        if self.verdict is None or not self.verdict.input:
            return request
        return replace(request, input=self.verdict.input)

    def with_policy(self, opened: AskOpened) -> AskOpened:
        """The card, with why it is there, who may answer it, and for how long it waits."""
        verdict = self.verdict
        if verdict is None:
            return opened
        asking = verdict.ask_settings
        return replace(
            opened,
            coded=verdict.coded if verdict.ruled else (),
            rule=verdict.rule,
            source=verdict.source,
            answered_by=asking.answered_by,
            wait=asking.wait,
            then=asking.then,
            branch=self.branch,
            narrowest=self.narrowest,
            lasting=self.lasting,
        )


class _Shown(Value):
    """A call that the hook has shown, and that has no entry in the audit yet."""

    tool: str
    mode: str
    title: str = ""
    """What the call is about; empty in the state of an older hub."""
    branch: str | None = None
    rewritten: bool = False


class _Answered(Value):
    """What a person has answered to a question that a hook held."""

    tool: str
    body: AllowResult

    def to(self, request: CanUseTool) -> bool:
        """Whether the CLI asks about exactly what was allowed."""
        same = same_json(request.input, self.body.updated_input)
        return same and request.tool_name == self.tool


class Earlier(Value):
    """What is known of a call when the CLI asks about it."""

    answered: _Answered | None = None
    rewritten: bool = False


class PermissionGate(Mutable):
    """Decides about the calls of one run."""

    _cooldown: Cooldown
    _undecided: dict[str, _Shown] = field(default_factory=dict)
    _answered: dict[str, _Answered] = field(default_factory=dict)
    _places: dict[str, str] = field(default_factory=dict)
    """The working directory of each call that has not ended, from its hook."""
    _agents: dict[str, str] = field(default_factory=dict)
    """The types of the subagents, the oldest first."""
    _done: set[str] = field(default_factory=set)
    _writing: dict[str, frozenset[str]] = field(default_factory=dict)
    """The files that each call that has not ended would write."""
    _written: dict[str, None] = field(default_factory=dict)
    """The files that ended calls have written, the oldest first."""
    started_with_bypass: bool = False
    """Whether the process was started with permission to bypass permissions."""
    _may_bypass: bool = False
    """Whether the session has this permission now."""

    @classmethod
    def of(cls, spec: SessionSpec) -> PermissionGate:
        """The gate of a process that was started with this spec."""
        gate = cls(_cooldown=Cooldown(spec.plan_cooldown))
        gate.started_with_bypass = spec.skip_permissions
        gate.change(spec)
        return gate

    def change(self, spec: SessionSpec) -> None:
        """The session's spec has changed."""
        self._may_bypass = spec.skip_permissions
        self._cooldown.base = spec.plan_cooldown

    # --- memory: folded from the lines of the CLI and from journalled events ---------------------

    def hook_shown(self, seen: HookInput | UnknownHook, mode: str) -> None:
        """A hook shows a call, which would run in this mode."""
        if not isinstance(seen, PreToolUseInput):
            return
        if seen.agent_id and seen.agent_type:
            self._agents[seen.agent_id] = seen.agent_type
            if len(self._agents) > MOST_REMEMBERED:
                del self._agents[next(iter(self._agents))]
        if not seen.tool_use_id:
            return
        if seen.cwd and len(self._places) < MOST_REMEMBERED:
            self._places[seen.tool_use_id] = seen.cwd
        if len(self._undecided) < MOST_REMEMBERED:
            title = describe(seen.tool_name, seen.tool_input).title
            self._undecided[seen.tool_use_id] = _Shown(tool=seen.tool_name, mode=mode, title=title)
        files = files_written(seen.tool_name, seen.tool_input, seen.cwd or None)
        if files and len(self._writing) < MOST_REMEMBERED:
            self._writing[seen.tool_use_id] = files

    def call_asked(self, request: CanUseTool) -> Earlier:
        """The CLI asks about a call: what is known of it is forgotten, and returned."""
        shown = self._undecided.pop(request.tool_use_id, None)
        return Earlier(
            answered=self._answered.pop(request.tool_use_id, None),
            rewritten=shown is not None and shown.rewritten,
        )

    def left_to_cli(self, event: LeftToCli) -> None:
        """No rule decided a call that a hook has shown."""
        shown = self._undecided.get(event.tool_use_id)
        if shown is not None:
            self._undecided[event.tool_use_id] = replace(
                shown, branch=event.branch, rewritten=event.rewritten
            )

    def ask_opened(self, opened: AskOpened) -> None:
        """A person is asked about a call: the CLI does not decide it."""
        self._undecided.pop(opened.tool_use_id or "", None)

    def note_decision(self, event: Decided, at: int) -> None:
        """The audit has an entry for a call: the CLI does not decide it."""
        self._undecided.pop(event.tool_use_id or "", None)
        if event.verdict == Behavior.DENY.value:
            self._writing.pop(event.tool_use_id or "", None)
        if event.rule == PLAN_COOLDOWN and event.source == SESSION:
            self._cooldown.note_refusal(at)

    def note_answer(self, answer: Raw, at: int) -> None:
        """A person has answered a question, at a time in ms."""
        self._cooldown.note_answer(answer, at)

    def held_answered(self, opened: AskOpened, body: Struct | Raw) -> None:
        """A question that a hook held was answered. The CLI may ask the same once more.

        Some versions do so for calls that their own settings want to be asked about.
        """
        if isinstance(body, AllowResult) and opened.tool_use_id:
            self._answered[opened.tool_use_id] = _Answered(tool=opened.tool, body=body)

    def results(self, message: Message, mode: str) -> list[Event]:
        """Take note of ended calls. With a turn's end: the entries for what the CLI decided."""
        match message:
            case User():
                for block in message.blocks:
                    if isinstance(block, ToolResultBlock):
                        self._answered.pop(block.tool_use_id, None)
                        self._places.pop(block.tool_use_id, None)
                        self._wrote(block.tool_use_id)
                        if block.tool_use_id in self._undecided:
                            self._done.add(block.tool_use_id)
                return []
            case Result():
                self._answered.clear()
                self._places.clear()
                denied = {denial.tool_use_id for denial in message.permission_denials}
                done, self._done = self._done, set()
                return [
                    _by_cli(id_, shown, mode, denied=id_ in denied)
                    for id_ in sorted(done)
                    if (shown := self._undecided.pop(id_, None)) is not None
                ]
            case _:
                return []

    def _wrote(self, tool_use_id: str) -> None:
        """A call has ended: what it wrote is the agent's own from now on."""
        self._written |= dict.fromkeys(sorted(self._writing.pop(tool_use_id, ())))
        while len(self._written) > MOST_REMEMBERED:
            del self._written[next(iter(self._written))]

    def wrote_before(self, files: Iterable[str]) -> None:
        """Earlier runs of the session have written these files, the oldest first."""
        self._written = dict.fromkeys(files) | self._written

    @property
    def written(self) -> tuple[str, ...]:
        """The files that the session has written, the oldest first, for its next run.

        A call that has not ended counts as well: its process may have been killed in the midst.
        """
        unsure = [file for files in self._writing.values() for file in sorted(files)]
        kept: list[str] = []
        left = MOST_WRITTEN
        for file in reversed(dict.fromkeys((*self._written, *unsure))):
            left -= len(file)
            if left < 0 or len(kept) >= MOST_REMEMBERED:
                break
            kept.append(file)
        return tuple(reversed(kept))

    # --- questions: what the rules are to be asked -----------------------------------------------

    def hook_question(
        self, seen: HookInput | UnknownHook, mode: str, now: int, version: Version | None
    ) -> CallQuestion | None:
        """The question to the rules about a call that a hook shows; None if it shows none."""
        if not isinstance(seen, PreToolUseInput):
            return None
        return CallQuestion(
            tool=seen.tool_name,
            input=seen.tool_input,
            now=now,
            mode=mode,
            agent=seen.agent_type,
            subagent=True if seen.agent_id else False if _is_heeded(version) else None,
            cwd=seen.cwd or None,
            written=frozenset(self._written),
        )

    def ask_question(self, request: CanUseTool, mode: str, now: int) -> CallQuestion:
        """The question to the rules about a call that the CLI asks about."""
        return CallQuestion(
            tool=request.tool_name,
            input=request.input,
            now=now,
            mode=mode,
            agent=self._agents.get(request.agent_id or ""),
            subagent=request.agent_id is not None,
            cli_asks=True,
            written=frozenset(self._written),
        )

    def edit_question(
        self, request: CanUseTool, mode: str, now: int, *, from_hook: bool | None = None
    ) -> CallQuestion:
        """The question to the rules about a call that a person wants in place of the one shown.

        `from_hook`: whether a hook showed the call, which does not always tell of a subagent; None
        where that is unknown.
        """
        known = request.agent_id is not None or from_hook is False
        return CallQuestion(
            tool=request.tool_name,
            input=request.input,
            now=now,
            mode=mode,
            agent=self._agents.get(request.agent_id or ""),
            subagent=request.agent_id is not None if known else None,
            cwd=self._places.get(request.tool_use_id),
            cli_asks=True,
            written=frozenset(self._written),
        )

    # --- decisions: they change no memory --------------------------------------------------------

    def decide_ask(
        self, request: CanUseTool, earlier: Earlier, ruling: Ruling, now: int
    ) -> GateDecision:
        """The CLI asks about a call."""
        verdict, branch = ruling.verdict, ruling.branch
        if request.tool_name == PLAN and (wait := self._cooldown.wait(now)):
            why = CodedText(code=TextCode.PLAN_TOO_SOON, seconds=wait)
            verdict = Verdict(
                behavior=Behavior.DENY, coded=(why,), rule=PLAN_COOLDOWN, source=SESSION
            )
            branch = None
        answered = earlier.answered
        if verdict.behavior is not Behavior.DENY and answered is not None and answered.to(request):
            return GateDecision(body=answered.body, verdict=verdict)  # its entry is there already
        body: Part
        match verdict.behavior:
            case Behavior.ASK:
                return GateDecision(
                    verdict=verdict,
                    branch=branch,
                    narrowest=ruling.narrowest,
                    lasting=ruling.lasting,
                )
            case Behavior.ALLOW:
                body = allow(verdict.input or request.input)
            case Behavior.DENY:
                body = deny(_message(verdict))
        entry = _entry(request.tool_name, request.input, request.tool_use_id, verdict, branch)
        entry = replace(entry, rewritten=bool(verdict.input) or earlier.rewritten)
        return GateDecision(body=body, events=(entry,), verdict=verdict)

    def decide_hook(
        self,
        seen: HookInput | UnknownHook,
        mode: str,
        ruling: Ruling,
        version: Version | None,
    ) -> GateDecision:
        """The CLI is about to run a tool, or to ask about it."""
        if not isinstance(seen, PreToolUseInput):
            # Nothing else calls this hook: a call that no rule can be held against must not run.
            entry = _entry(UNREADABLE_TOOL, Raw(b"{}"), None, _UNREADABLE, None)
            return GateDecision(
                body=_hook_output(_UNREADABLE), events=(entry,), verdict=_UNREADABLE
            )
        branch = ruling.branch
        verdict = self._asked_in_plan(ruling.verdict, seen.tool_name, mode, version)
        asks = verdict.behavior is Behavior.ASK and verdict.ruled
        if asks and not _is_heeded(version) and _can_hold(seen):
            held = CanUseTool(
                tool_name=seen.tool_name,
                input=verdict.input or seen.tool_input,
                tool_use_id=seen.tool_use_id,
                agent_id=seen.agent_id,
            )
            return GateDecision(
                held=held,
                verdict=verdict,
                branch=branch,
                narrowest=ruling.narrowest,
                lasting=ruling.lasting,
            )
        rewritten = bool(verdict.input)
        if verdict.ruled and verdict.behavior is not Behavior.ASK:
            entry = _entry(seen.tool_name, seen.tool_input, seen.tool_use_id, verdict, branch)
            events: tuple[Event, ...] = (replace(entry, rewritten=rewritten),)
        else:
            # The CLI will ask, or let it pass by itself: that is when it is decided.
            events = _left_events(seen, branch, rewritten=rewritten)
        if not verdict.ruled and not rewritten:
            # No rule of ours: the CLI goes on as it would without us, and asks if it must.
            return GateDecision(events=events, verdict=verdict)
        return GateDecision(body=_hook_output(verdict), events=events, verdict=verdict)

    def _asked_in_plan(
        self, verdict: Verdict, tool: str, mode: str, version: Version | None
    ) -> Verdict:
        """Have a person asked where the CLI would use a permission that was taken away."""
        taken_away = self.started_with_bypass and not self._may_bypass
        uses_it = mode == "plan" and (version is None or version < PLAN_ASKS)
        if verdict.ruled or not taken_away or not uses_it or tool in _HARMLESS:
            return verdict
        return replace(
            verdict,
            behavior=Behavior.ASK,
            coded=(CodedText(code=TextCode.PLAN_MODE_SKIPS),),
            ruled=True,
            rule="plan-mode",
            source=SESSION,
        )


UNREADABLE_TOOL = "unknown"
"""The tool of a call that could not be read, in the audit."""

_UNREADABLE = Verdict(
    behavior=Behavior.DENY,
    coded=(CodedText(code=TextCode.CALL_UNREADABLE),),
    ruled=True,
    source="policy",
)


def _is_heeded(version: Version | None) -> bool:
    return version is not None and version >= HEEDED


def _left_events(
    seen: PreToolUseInput, branch: str | None, *, rewritten: bool
) -> tuple[Event, ...]:
    """What the entry of a call that the CLI decides will need and no line of the CLI tells."""
    if not seen.tool_use_id or (branch is None and not rewritten):
        return ()
    return (LeftToCli(tool_use_id=seen.tool_use_id, branch=branch, rewritten=rewritten),)


def _by_cli(tool_use_id: str, shown: _Shown, mode: str, *, denied: bool) -> Decided:
    return Decided(
        tool=shown.tool,
        title=shown.title or shown.tool,
        verdict=Behavior.DENY.value if denied else Behavior.ALLOW.value,
        by="cli",
        coded=(CodedText(code=TextCode.CLI_DECIDED, name=str(shown.mode or mode)),),
        tool_use_id=tool_use_id,
        branch=shown.branch,
        rewritten=shown.rewritten,
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
            permission_decision_reason=_message(verdict) if permission is not None else None,
            updated_input=verdict.input,
        )
    )


def _message(verdict: Verdict) -> str:
    """What the agent reads: the rule's own words, and which rule it was."""
    reasons = "; ".join(verdict.reasons)
    return f"{verdict.message} ({reasons})" if verdict.message else reasons


def _entry(
    tool: str, tool_input: Raw, tool_use_id: str | None, verdict: Verdict, branch: str | None
) -> Decided:
    return Decided(
        tool=tool,
        title=describe(tool, verdict.input or tool_input).title,
        verdict=verdict.behavior.value,
        by="policy",
        coded=verdict.coded,
        tool_use_id=tool_use_id or None,
        rule=verdict.rule,
        source=verdict.source,
        branch=branch,
    )
