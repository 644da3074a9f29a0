"""The policies of this machine, for the agents of a local loop.

Owns which rules hold, and the audit of what was decided. The rules are those of the hub: the files
of the data folder, what people have granted there, the project of the folder, the built-in rules.
`hub.permissions` decides by them, as it does for sessions; here its decisions become the answers
of the library. What a rule asks goes to the person at the terminal, and is denied if nobody is
there, unless the rule itself says otherwise.

Every decision is in the audit before the CLI gets it. What cannot be recorded is denied.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.agent.asks import Allow, AnyAsk, Decision, Deny, ToolAsk, to_ask
from quarterdeck.agent.hooks import HookOutput, allow_call, deny_call
from quarterdeck.domain.errors import Forbidden, UsageError
from quarterdeck.domain.secrets import mask_tokens
from quarterdeck.domain.structs import Value
from quarterdeck.hub.permissions.context import CallQuestion, Ruling, ruling_on
from quarterdeck.hub.permissions.edits import MOST_BYTES, check_edit
from quarterdeck.hub.permissions.gate import GateDecision, PermissionGate
from quarterdeck.hub.permissions.policies import GRANTS, Policies
from quarterdeck.hub.permissions.sandbox import owners_rules, sandbox_request
from quarterdeck.hub.switches import Switches
from quarterdeck.loop.agent_worker import NOBODY, denial, denied_call
from quarterdeck.loop.arbiter import Person
from quarterdeck.loop.state import CallRecord
from quarterdeck.loop.store import LoopStore
from quarterdeck.loop.worker import TurnRequest
from quarterdeck.policy.decide import Behavior, Rules, Verdict
from quarterdeck.policy.facts import Private
from quarterdeck.policy.rules import AskSettings
from quarterdeck.protocol.coded_texts import with_texts
from quarterdeck.protocol.commands import AllowAnswer, AnswerAsk
from quarterdeck.protocol.events import AskKind, AskOpened, Decided, Event, LeftToCli
from quarterdeck.protocol.roles import Role, may_answer
from quarterdeck.protocol.sandbox import SandboxRequest
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.wire.answers import AllowResult, DenyResult, allow
from quarterdeck.wire.base import Message
from quarterdeck.wire.hook_outputs import SyncOutput
from quarterdeck.wire.hooks import HookInput, PreToolUseInput, UnknownHook
from quarterdeck.wire.messages import Result
from quarterdeck.wire.rawjson import dump, is_object, same_json
from quarterdeck.wire.requests import CanUseTool
from quarterdeck.wire.tools import describe
from quarterdeck.wire.versions import Version

log = logging.getLogger(__name__)

LONGEST_TITLE = 500
MOST_REASONS = 20
TIME_LIMIT = "time limit"


class MachinePolicies:
    """The rules of this machine; files that have changed are read again at each call."""

    def __init__(self, home: Path, *, file: Path | None, private: Private) -> None:
        """`file`: where the policy for all sessions is, if not in the data folder."""
        self._home = home
        self._file = file
        self._private = private
        self._granted = _stamp(home / GRANTS)
        self._policies = self._read()
        self._one_at_a_time = anyio.Lock()

    def _read(self) -> Policies:
        return Policies(self._home, file=self._file, private=self._private)

    def check(self, name: str | None) -> None:
        """Raise `UsageError` unless an agent may have this policy."""
        self._policies.check(name)

    @property
    def flaws(self) -> list[str]:
        """What is wrong with the files: for each what holds in its place."""
        held = {"kept": "its last good text holds", "asking": "everything is asked"}
        found = [
            f"{state.path}: {state.flaws[0]}; {held[state.in_force]}"
            for state in self._policies.states
            if state.flaws
        ]
        flaw = self._policies.grants_flaw
        return [*found, *([f"{flaw}; none of the grants holds"] if flaw else [])]

    async def rules_for(self, spec: SessionSpec) -> Rules:
        """All that holds now for an agent with this spec."""
        async with self._one_at_a_time:
            await anyio.to_thread.run_sync(self._look)
            return self._policies.rules_for(spec)

    async def sandbox_for(self, spec: SessionSpec, by: str) -> SandboxRequest:
        """The sandbox of an agent with this spec."""
        rules = owners_rules(await self.rules_for(spec), self._policies.grants)
        return sandbox_request(spec, rules, by)

    def _look(self) -> None:
        granted = _stamp(self._home / GRANTS)
        if granted != self._granted:  # a hub has changed them, and may have revoked some
            self._granted = granted
            self._policies = self._read()
        else:
            self._policies.load()


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


class PolicyArbiter:
    """Decides about the calls of a loop's agents by the policies of this machine."""

    def __init__(
        self, policies: MachinePolicies, spec: SessionSpec, store: LoopStore, by: str
    ) -> None:
        """`spec` is how the agents are started; `by` is the person at the terminal."""
        self._policies = policies
        self._spec = spec
        self._store = store
        self._by = by

    def turn(self, request: TurnRequest, person: Person | None) -> PolicyTurn:
        """The arbiter of a turn."""
        view = SessionView(
            session=request.loop, spec=self._spec, by=self._by, directory=request.directory
        )
        return PolicyTurn(self._policies, view, self._store, request, person)


class _Question(Value):
    """A call that a person is to decide about."""

    ask: AnyAsk
    decision: GateDecision
    mode: str
    from_hook: bool


class PolicyTurn:
    """Decides about the calls of one turn."""

    def __init__(
        self,
        policies: MachinePolicies,
        view: SessionView,
        store: LoopStore,
        request: TurnRequest,
        person: Person | None,
    ) -> None:
        self.denied: list[str] = []
        self._policies = policies
        self._view = view
        self._store = store
        self._request = request
        self._person = person
        self._gate = PermissionGate.of(view.spec)
        self._switches = Switches.of(view.spec)

    # --- what the CLI says ---------------------------------------------------------------------

    async def show(self, seen: HookInput | UnknownHook, version: Version | None) -> HookOutput:
        """The CLI is about to run a tool, or to ask about it."""
        mode = self._switches.mode_in_hook(seen)
        written = self._gate.written  # before this call is among it
        question = self._gate.hook_question(seen, mode, _now(), version)
        self._gate.hook_shown(seen, mode)
        self._switches.hook_shown(seen)
        if question is None or not isinstance(seen, PreToolUseInput):
            # Nothing else calls this hook: what cannot be read must not run.
            log.warning("a call of the CLI cannot be read, and is denied")
            return deny_call("The call could not be read, so that no rule can allow it.")
        ruling = await self._rule(question, written)
        decision = self._gate.decide_hook(seen, mode, ruling, version)
        if decision.held is not None:
            return await self._hold(decision, decision.held, mode)
        await self._record(decision.events)
        body = decision.body
        return body if isinstance(body, SyncOutput) else SyncOutput()

    async def decide(self, ask: AnyAsk) -> Decision:
        """The CLI asks about a call: the rules are held against it again."""
        request = ask.request
        mode = self._switches.mode_of_call(request.tool_use_id)
        self._switches.call_asked(request.tool_use_id)
        earlier = self._gate.call_asked(request)
        question = self._gate.ask_question(request, mode, _now())
        ruling = await self._rule(question, self._gate.written)
        decision = self._gate.decide_ask(request, earlier, ruling, _now())
        match decision.body:
            case AllowResult(updated_input=given):
                await self._record(decision.events)
                return Allow(input=given)
            case DenyResult(message=message):
                await self._record(decision.events)
                return Deny(message)
            case _:
                shown = to_ask(
                    ask.request_id, _with_reasons(decision.shown_request(request), decision)
                )
                return await self._ask(
                    _Question(ask=shown, decision=decision, mode=mode, from_hook=False)
                )

    async def observe(self, message: Message) -> None:
        """Take note of a message of the CLI: ended calls, the mode, the cost."""
        self._switches.receive(message, self._view.spec)
        if isinstance(message, Result):
            self._view = replace(self._view, cost_usd=message.total_cost_usd)
        by_cli = self._gate.results(message, self._switches.mode)
        if by_cli:
            await self._record(tuple(by_cli))

    # --- what a person says --------------------------------------------------------------------

    async def _hold(self, decision: GateDecision, held: CanUseTool, mode: str) -> HookOutput:
        """Ask the person while the hook waits: old versions do not ask when a hook says so."""
        ask = to_ask("", _with_reasons(held, decision))
        answer = await self._ask(_Question(ask=ask, decision=decision, mode=mode, from_hook=True))
        if isinstance(answer, Deny):
            return deny_call(answer.message)
        given = held.input if answer.input is None else dump(answer.input)
        # The CLI may ask the same once more: then it is allowed without another question.
        self._gate.held_answered(_as_card(held), allow(given))
        return allow_call(given)

    async def _ask(self, question: _Question) -> Decision:
        """Have the person decide, for as long as the loop and the rule allow."""
        ask, verdict = question.ask, question.decision.verdict
        settings = AskSettings() if verdict is None else verdict.ask_settings
        limits = (self._request.spec.ask_timeout, settings.wait)
        seconds = min((limit for limit in limits if limit is not None), default=None)
        answer: Decision | None = None
        why = NOBODY
        if self._person is None or not may_answer(settings.answered_by, *self._who):
            if self._person is not None:
                people = "; and ".join(" or ".join(each) for each in settings.answered_by)
                why = f"it needs an answer by {people}"
            if _then_allow(settings, seconds, ask):
                await anyio.sleep(seconds or 0.0)
        else:
            try:
                answer = await self._person(ask, seconds)
            except Exception as error:
                await self._note(question, "deny", "policy", (f"the question failed: {error!r}",))
                raise
        if isinstance(answer, Allow):
            return await self._apply_allow(question, answer)
        if isinstance(answer, Deny):
            await self._note(question, "deny", self._who[0], (answer.message,))
            return answer
        if _then_allow(settings, seconds, ask):
            reasons = ("nobody answered, and the rule says to allow it then",)
            await self._note(question, "allow", f"policy: {_rule_of(verdict)}", reasons)
            return Allow(input=ask.input)
        by = "policy" if self._person is None or why != NOBODY else TIME_LIMIT
        await self._note(question, "deny", by, (why,))
        return denial(ask.tool_name)

    async def _apply_allow(self, question: _Question, answer: Allow) -> Decision:
        """A person allows a call, perhaps another one than they were asked about."""
        ask = question.ask
        given = ask.input if answer.input is None else dump(answer.input)
        if not isinstance(ask, ToolAsk) or same_json(given, ask.input):
            await self._note(question, "allow", self._who[0], ())
            return replace(answer, input=given)
        try:
            verdict = await self._decide_edit(question, given)
        except (Forbidden, UsageError) as error:
            await self._note(question, "deny", "policy", (str(error),))
            return Deny(str(error))
        given = verdict.input or given
        reasons = verdict.reasons if verdict.ruled else ()
        await self._note(question, "allow", self._who[0], reasons, given=given)
        return replace(answer, input=given)

    async def _decide_edit(self, question: _Question, given: Raw) -> Verdict:
        """What the rules say about an edited call. Raises `Forbidden`, `UsageError`."""
        if len(bytes(given)) > MOST_BYTES or not is_object(given):
            raise UsageError(f"the edited input is not an object of at most {MOST_BYTES} bytes")
        request = replace(question.ask.request, input=given)
        edited = self._gate.edit_question(
            request, question.mode, _now(), from_hook=question.from_hook
        )
        verdict = (await self._rule(edited, self._gate.written)).verdict
        by, role = self._who
        check_edit(verdict, AnswerAsk(ask="", answer=AllowAnswer(), by=by, role=role))
        return verdict

    @property
    def _who(self) -> tuple[str, str]:
        """Who sits at the terminal: the user of this machine owns the data folder."""
        return self._view.by, Role.OWNER.value

    # --- rules and audit -----------------------------------------------------------------------

    async def _rule(self, question: CallQuestion, written: tuple[str, ...]) -> Ruling:
        """What the rules say. Calls that have not ended count as written: their result may be in a
        message that was not looked at yet.
        """
        view = self._view
        rules = await self._policies.rules_for(view.spec)
        asked = replace(question, written=frozenset(written))
        return await anyio.to_thread.run_sync(ruling_on, asked, rules, view)

    async def _note(
        self,
        question: _Question,
        verdict: str,
        by: str,
        reasons: tuple[str, ...],
        *,
        given: Raw | None = None,
    ) -> None:
        """Record what became of a question."""
        request, asked = question.ask.request, question.decision.verdict
        why = asked.reasons if asked is not None and asked.ruled else ()
        entry = Decided(
            tool=request.tool_name,
            title=describe(request.tool_name, given or request.input).title,
            verdict=verdict,
            by=by,
            reasons=tuple(filter(None, (*why, *reasons))),
            tool_use_id=request.tool_use_id or None,
            rule=asked.rule if asked is not None else None,
            source=asked.source if asked is not None else None,
            rewritten=given is not None or bool(asked is not None and asked.input),
        )
        await self._record((entry,))

    async def _record(self, events: tuple[Event, ...]) -> None:
        """Store entries, then remember them. Raises `ManifestError`: nothing is allowed then."""
        decided = [event for event in events if isinstance(event, Decided)]
        if decided:
            entries = [_entry(event, self._request.number) for event in decided]
            loop = self._request.loop
            await anyio.to_thread.run_sync(lambda: self._store.record(loop, *entries))
        for event in events:
            match event:
                case Decided():
                    self._gate.note_decision(event, _now())
                    if event.verdict == Behavior.DENY.value:
                        why = (
                            event.by
                            if event.by != "policy"
                            else "; ".join(with_texts(event).reasons)
                        )
                        self.denied.append(denied_call(event.tool, event.title, why))
                case LeftToCli():
                    self._gate.left_to_cli(event)
                case _:
                    pass


def _now() -> int:
    return int(time.time() * 1000)


def _rule_of(verdict: Verdict | None) -> str:
    return "" if verdict is None or verdict.rule is None else verdict.rule


def _then_allow(settings: AskSettings, seconds: float | None, ask: AnyAsk) -> bool:
    """Whether a rule allows the call when its own time is over."""
    in_time = settings.wait is not None and seconds == settings.wait
    return in_time and settings.then == "allow" and isinstance(ask, ToolAsk)


def _with_reasons(request: CanUseTool, decision: GateDecision) -> CanUseTool:
    """The request with why a person is asked. A rule that asks does so again, whatever is allowed
    for longer: so that is not offered.
    """
    verdict = decision.verdict
    if verdict is None or not verdict.ruled:
        return request
    return replace(
        request,
        decision_reason="; ".join(verdict.reasons),
        suppress_always_allow_rule=True,
    )


def _as_card(held: CanUseTool) -> AskOpened:
    """A question of a hook, as far as the gate wants to know it."""
    return AskOpened(
        ask="",
        run="",
        request_id="",
        ask_kind=AskKind.TOOL,
        tool=held.tool_name,
        title="",
        request=Raw(b"{}"),
        tool_use_id=held.tool_use_id or None,
    )


def _entry(event: Decided, turn: int) -> CallRecord:
    return CallRecord(
        at=round(time.time(), 3),
        turn=turn,
        tool=event.tool[:LONGEST_TITLE],
        title=mask_tokens(event.title[:LONGEST_TITLE]),
        verdict=event.verdict,
        by=event.by,
        reasons=tuple(
            mask_tokens(each[:LONGEST_TITLE]) for each in with_texts(event).reasons[:MOST_REASONS]
        ),
        rule=event.rule,
        source=event.source,
        rewritten=event.rewritten,
    )
