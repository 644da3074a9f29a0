"""`decide`: the verdict on a tool call before a person is asked.

A pure function of the call and the rules: no clock, no disk, no event loop. The strictest rule
wins: deny, then ask, then rewrite, then allow. To allow a call, rules must cover every part of it;
to stop it, one part is enough. Calls that no rule decides get the policy's default, and finally the
CLI's decision. The verdict has reasons, for the person who is asked and for the audit log.

It fails closed: a person is asked about unknown parts, and about a call at which `decide` itself
fails.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.domain.coded import CodedText, TextCode
from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.policy.builtin import SOURCE, BuiltinHit, Touch, check_builtin
from quarterdeck.policy.doubts import doubts_of
from quarterdeck.policy.facts import Facts, Private
from quarterdeck.policy.needs import Context, Need, NeedKind, Request, needs_of
from quarterdeck.policy.parity import ClaudeRule, Outcome, names_exactly
from quarterdeck.policy.policy import STRICTNESS, Policy
from quarterdeck.policy.rewrite import CannotRewrite, PartEdit, rewrite_input
from quarterdeck.policy.rules import FAMILY, AskSettings, Hit, Rule, Verb, strictest
from quarterdeck.policy.specifiers import COMMANDS, Behavior
from quarterdeck.protocol.coded_texts import coded_text

__all__ = ["FOR_PEOPLE", "Behavior", "Call", "Rules", "Verdict", "decide"]

FOR_PEOPLE = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that ask a person something. No rule can answer in a person's place; one may deny."""

SHOWN = 3
"""So many parts of a call are named in a reason; the others are counted."""


class Call(Value):
    """A tool call, as far as a decision needs to know it."""

    tool: str
    input: Raw
    facts: Facts = Facts()
    context: Context = Context()
    cli_asks: bool = False
    """The CLI itself wants a person to be asked; without it, it would have let the call pass."""


class Rules(Value):
    """The rules of a session: all policies at once, and the session's own settings."""

    policies: tuple[Policy, ...] = ()
    auto_approve: tuple[str, ...] = ()
    skip_permissions: bool = False
    private: Private | None = None
    """The hub's private paths, for the built-in rules, which nothing else here can override. None:
    there is no hub, and there are no built-in rules."""


class Matched(Value):
    """A rule that hit a call, and the parts of it that it hit."""

    rule: str
    source: str
    verdict: str
    parts: tuple[str, ...]
    sure: bool = True
    """False: it is not known whether the rule applies, so it asks."""
    unknown: tuple[str, ...] = ()
    """What is not known, where that is why it is not sure: a word, and the reason."""

    @property
    def coded(self) -> CodedText:
        """As the reason of a verdict."""
        return CodedText(
            code=TextCode.RULE_APPLIES if self.sure else TextCode.RULE_MAY_APPLY,
            name=self.rule,
            other=self.source,
            verb=self.verdict,
            names=self.parts[:SHOWN],
            count=len(self.parts),
            detail="; ".join(self.unknown[:SHOWN]),
        )

    def __str__(self) -> str:
        """As people read it."""
        return coded_text(self.coded)


class Verdict(Value):
    """The decision on a call, with reasons."""

    behavior: Behavior
    coded: tuple[CodedText, ...] = ()
    """The reasons."""
    ruled: bool = False
    """Whether a rule or a default of ours decided it; otherwise the CLI decides."""
    rule: str | None = None
    """The rule that decided, and its source."""
    source: str | None = None
    message: str = ""
    """The message to the agent about a denial."""
    input: Raw = ABSENT
    """The input that runs instead."""
    ask_settings: AskSettings = AskSettings()
    matched: tuple[Matched, ...] = ()
    open: tuple[str, ...] = ()
    """The parts that no rule allows, where nothing stops them either."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons in words."""
        return tuple(map(coded_text, self.coded))


def decide(call: Call, rules: Rules, request: Request | None = None) -> Verdict:
    """Decide about a call. Total: whatever it is given, it gives a verdict.

    `request`: the call taken apart, if the caller has done that.
    """
    try:
        return _decide(call, rules, frozenset(), request)
    except Exception as error:  # noqa: BLE001 - fails closed: a fault of ours must not let anything pass
        why = CodedText(code=TextCode.POLICY_FAILED, detail=f"{type(error).__name__}: {error}")
        return Verdict(behavior=Behavior.ASK, coded=(why,), ruled=True, source="policy")


def _decide(
    call: Call,
    rules: Rules,
    spent: frozenset[tuple[str, int, str]],
    request: Request | None = None,
) -> Verdict:
    built_in: BuiltinHit | None = None
    if rules.private is not None:
        request = request or needs_of(call.tool, call.input, call.context)
        built_in = check_builtin(call.input, request, call.context, rules.private)
        if built_in is not None and built_in.touch is Touch.SURE:
            return _builtin_denial(built_in)
    if not rules.policies:
        return _without_policy(call, rules)
    request = request or needs_of(call.tool, call.input, call.context)
    found = _Found(rules, request, call)
    if found.denied:
        return found.verdict(Behavior.DENY, found.denied)
    asked = sorted(found.asked, key=lambda one: not one.sure)  # what is certain is told first
    for hit in found.rewriting:
        new = _new_input(hit, call)
        if hit.rule.key in spent:
            # It has rewritten the call already: if there is still something to rewrite, it failed.
            if new is not None:
                asked = [*asked, _to_matched(hit, sure=False, why="it still applies")]
            continue
        spent |= {hit.rule.key}
        if isinstance(new, str):
            asked = [*asked, _to_matched(hit, sure=False, why=new)]
        elif new is not None:
            return _after(hit, _decide(replace(call, input=new), rules, spent), asked, found, new)
    if asked:
        return found.verdict(Behavior.ASK, asked)
    verdict = _allow_or_default(call, rules, found)
    if built_in is not None and verdict.behavior is Behavior.ALLOW and found.decides(verdict):
        # A rule allows an unreadable call that a built-in rule might forbid, so a person is asked.
        return found.verdict(Behavior.ASK, [_builtin_matched(built_in, sure=False)])
    return verdict


def _builtin_denial(found: BuiltinHit) -> Verdict:
    """The verdict of a built-in rule."""
    matched = _builtin_matched(found)
    return Verdict(
        behavior=Behavior.DENY,
        coded=(matched.coded,),
        ruled=True,
        rule=found.rule,
        source=SOURCE,
        message=found.message,
        matched=(matched,),
    )


def _builtin_matched(found: BuiltinHit, *, sure: bool = True) -> Matched:
    return Matched(
        rule=found.rule, source=SOURCE, verdict=Behavior.DENY.value, parts=found.parts, sure=sure
    )


def _after(hit: Hit, result: Verdict, asked: list[Matched], found: _Found, new: Raw) -> Verdict:
    """The verdict on a rewritten call. A rule that asks about the old call asks about the new
    one.
    """
    how = _to_matched(hit)
    if asked and result.behavior is not Behavior.DENY:
        result = replace(found.verdict(Behavior.ASK, asked), ask_settings=found.ask_settings(asked))
    return replace(
        result,
        input=result.input or new,
        coded=(how.coded, *result.coded),
        matched=(how, *result.matched),
        rule=result.rule or how.rule,
        source=result.source or how.source,
    )


def _allow_or_default(call: Call, rules: Rules, found: _Found) -> Verdict:
    if call.tool in FOR_PEOPLE:
        return replace(_for_person(call), matched=found.all)
    if not found.open and found.allowing and found.unread:
        return found.unreadable()
    if not found.open and found.allowing:
        return found.verdict(Behavior.ALLOW, found.allowing)
    if call.tool in rules.auto_approve:
        return replace(_auto_approval(call), matched=found.all)
    if not found.open:
        # It needs no rule: the CLI lets such calls pass, whatever holds for others.
        return replace(_cli_verdict(call, rules), matched=found.all)
    left = tuple(need.what for need in found.open)
    strict = max(rules.policies, key=lambda policy: STRICTNESS.index(policy.default))
    if strict.default != "cli":
        behavior = Behavior.ASK if strict.default == "ask" else Behavior.DENY
        missing = left or (call.tool,)
        why = CodedText(
            code=TextCode.DEFAULT_APPLIES,
            names=missing[:SHOWN],
            count=len(missing),
            other=strict.name,
            verb=behavior.value,
        )
        return Verdict(
            behavior=behavior,
            coded=(why,),
            ruled=True,
            rule="default",
            source=strict.name,
            ask_settings=found.ask_settings(()),
            matched=found.all,
            open=left,
        )
    verdict = _cli_verdict(call, rules)
    return replace(verdict, matched=found.all, open=left, ask_settings=found.ask_settings(()))


def _without_policy(call: Call, rules: Rules) -> Verdict:
    if call.tool in FOR_PEOPLE:
        return _for_person(call)
    return _auto_approval(call) if call.tool in rules.auto_approve else _cli_verdict(call, rules)


def _for_person(call: Call) -> Verdict:
    why = CodedText(code=TextCode.QUESTION_TO_PERSON, name=call.tool)
    return Verdict(behavior=Behavior.ASK, coded=(why,))


def _auto_approval(call: Call) -> Verdict:
    return Verdict(
        behavior=Behavior.ALLOW,
        coded=(CodedText(code=TextCode.AUTO_APPROVED, name=call.tool),),
        ruled=True,
        rule="auto-approve",
        source="session",
    )


def _cli_verdict(call: Call, rules: Rules) -> Verdict:
    if rules.skip_permissions:
        return Verdict(
            behavior=Behavior.ALLOW,
            coded=(CodedText(code=TextCode.PERMISSIONS_SKIPPED),),
            rule="skip-permissions",
            source="session",
        )
    if call.cli_asks:
        return Verdict(behavior=Behavior.ASK, coded=(CodedText(code=TextCode.NO_RULE_CLI_ASKS),))
    mode = call.facts.mode or "default"
    return Verdict(
        behavior=Behavior.ALLOW,
        coded=(CodedText(code=TextCode.NO_RULE_CLI_ALLOWS, name=str(mode)),),
    )


class _Found:
    """All that the rules of all policies say about a call."""

    def __init__(self, rules: Rules, request: Request, call: Call) -> None:
        self.denied: list[Matched] = []
        self.asked: list[Matched] = []
        self.allowing: list[Matched] = []
        self.rewriting: list[Hit] = []
        self.open: list[Need] = []
        self._policies = rules.policies
        self._rules: dict[tuple[str, str], Rule] = {}
        covered: set[int] = set()
        self.unread = [need for need in request.needs if need.kind is NeedKind.UNKNOWN]
        """Unreadable needs: a rule for the whole tool does not allow them, only a rule that names
        them."""
        for policy in rules.policies:
            for hit in policy.hits(request, call.context, call.facts):
                self._add(hit, request, covered)
            outcome = policy.weigh(request, call.context)
            if outcome is not None:
                self._add_claude(policy, outcome, request, covered)
        if self.unread:
            self._add_hidden(request)
        self.open = [n for n in request.needs if id(n) not in covered and not n.free]

    def decides(self, verdict: Verdict) -> bool:
        """Whether it is rules of these policies that made the verdict."""
        return any(one.rule == verdict.rule and one.source == verdict.source for one in self.all)

    @property
    def all(self) -> tuple[Matched, ...]:
        """Every rule that hit."""
        rewriting = [_to_matched(hit) for hit in self.rewriting]
        return (*self.denied, *self.asked, *rewriting, *self.allowing)

    def _add(self, hit: Hit, request: Request, covered: set[int]) -> None:
        matched = _to_matched(hit, sure=hit.sure)
        self._rules[matched.rule, matched.source] = hit.rule
        match hit.rule.verb:
            case Verb.ALLOW:
                if any(names_exactly(rule, request) for rule in hit.rule.what.claude):
                    self.unread = []
                self.allowing.append(matched)
                covered.update(id(need) for need in hit.needs)
            case _ if not hit.sure:
                self.asked.append(matched)
            case Verb.DENY:
                self.denied.append(matched)
            case Verb.ASK:
                self.asked.append(matched)
            case Verb.REWRITE:
                self.rewriting.append(hit)

    def _add_claude(
        self, policy: Policy, outcome: Outcome, request: Request, covered: set[int]
    ) -> None:
        where = {
            Behavior.DENY: self.denied,
            Behavior.ASK: self.asked,
            Behavior.ALLOW: self.allowing,
        }
        for placed, match in outcome.decided:
            if names_exactly(placed.rule, request):
                self.unread = []
            parts = tuple(need.what for need in match.needs)
            behavior = placed.behavior if match.sure else Behavior.ASK
            unknown = () if match.sure else doubts_of(match.needs)
            where[behavior].append(
                replace(_claude(policy, placed, parts), sure=match.sure, unknown=unknown)
            )
        if outcome.behavior in {None, Behavior.ALLOW}:
            left = {id(need) for need in outcome.open}
            some = [need for need in request.needs if id(need) not in left and not need.free]
            covered.update(id(need) for need in some)
            if some and not outcome.decided:
                # It allows a part, and perhaps another policy allows the others.
                parts = tuple(need.what for need in some)
                self.allowing.append(
                    Matched(rule="[claude]", source=policy.name, verdict="allow", parts=parts)
                )

    def _add_hidden(self, request: Request) -> None:
        """An unreadable part may hide what a rule would stop: that rule then asks."""
        hidden = tuple(need.what for need in self.unread)
        for policy in self._policies:
            for placed in policy.stopping:
                if placed.rule.specifier is not None and placed.rule.tool in {
                    request.tool,
                    *FAMILY.values(),
                    *(COMMANDS if request.tool in COMMANDS or request.command else ()),
                }:
                    unknown = doubts_of(self.unread)
                    self.asked.append(
                        replace(_claude(policy, placed, hidden), sure=False, unknown=unknown)
                    )
                    break

    def ask_settings(self, deciding: Iterable[Matched]) -> AskSettings:
        """The settings of the question: those of its rules, and the general ones of the
        policies.
        """
        own = [
            rule.ask_settings
            for one in deciding
            if (rule := self._rules.get((one.rule, one.source))) is not None
        ]
        general = [
            policy.ask_settings for policy in self._policies if policy.ask_settings != AskSettings()
        ]
        whole = strictest([*own, *general])
        # Only a rule can say `allow`; what holds for every question does not change that.
        return replace(whole, then="allow" if own and strictest(own).then == "allow" else "deny")

    def unreadable(self) -> Verdict:
        """The verdict on a call that rules would allow, if it could be read."""
        whys = ", ".join(dict.fromkeys(need.why for need in self.unread if need.why))
        why = CodedText(code=TextCode.EFFECT_UNKNOWN, detail=whys)
        asked = self.verdict(Behavior.ASK, self.allowing)
        return replace(asked, coded=(why,), rule="unreadable", source="policy")

    def verdict(self, behavior: Behavior, deciding: list[Matched]) -> Verdict:
        """The verdict that these rules make."""
        rules = [self._rules.get((one.rule, one.source)) for one in deciding]
        messages = [rule.message for rule in rules if rule is not None and rule.message]
        return Verdict(
            behavior=behavior,
            coded=tuple(one.coded for one in deciding),
            ruled=True,
            rule=deciding[0].rule,
            source=deciding[0].source,
            message=" ".join(dict.fromkeys(messages)) if behavior is Behavior.DENY else "",
            ask_settings=self.ask_settings(deciding) if behavior is Behavior.ASK else AskSettings(),
            matched=self.all,
            open=tuple(need.what for need in self.open),
        )


def _to_matched(hit: Hit, *, sure: bool = True, why: str = "") -> Matched:
    parts = tuple(need.what for need in hit.needs)
    return Matched(
        rule=hit.rule.name,
        source=hit.rule.place,
        verdict=f"{hit.rule.verb.value} ({why})" if why else hit.rule.verb.value,
        parts=parts,
        sure=sure,
        unknown=() if sure or why else doubts_of(hit.needs),
    )


def _claude(policy: Policy, placed: ClaudeRule, parts: tuple[str, ...]) -> Matched:
    return Matched(
        rule=placed.rule.text, source=policy.name, verdict=placed.behavior.value, parts=parts
    )


def _new_input(hit: Hit, call: Call) -> Raw | str | None:
    """The new input, None where nothing changes, or why it cannot be made."""
    rule = hit.rule
    if rule.rewrite is None:
        return "it has no rewrite"
    edited: list[PartEdit] = []
    seen: set[int] = set()
    for need in hit.needs:
        if need.part is None or id(need.part) in seen:
            continue
        seen.add(id(need.part))
        positions = [at for p in rule.what.commands if (at := p.place(need.part)) is not None]
        edited.append(PartEdit(part=need.part, at=max(positions, default=0)))
    if rule.rewrite.edits_command and not edited:
        return "there is no command to rewrite"
    try:
        return rewrite_input(rule.rewrite, call.input, edited)
    except CannotRewrite as error:
        return str(error)
