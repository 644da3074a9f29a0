"""A call that is tried against rules: the verdict as a code, and everything that led to it. Pure.

For `policy try`: one call for a person, or many cases for a program. The caller reads the policies
and looks at the disk.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from quarterdeck.domain.structs import Value
from quarterdeck.policy.decide import Behavior, Call, Rules, Verdict, decide
from quarterdeck.policy.explain import Explanation, explain
from quarterdeck.policy.needs import Request, needs_of
from quarterdeck.policy.readings import ShownToken, tokens_of

REWRITTEN, LEFT, FREE = "rewritten", "cli", "free"


class Tried(Value, omit_defaults=False):
    """What becomes of a call, and how it was read."""

    verdict: str
    """`allow`, `rewritten` (allowed, but only as changed), `ask`, `deny`, `cli` (left to Claude
    Code's own prompt), or `free` (nothing in it needs to be allowed)."""
    reasons: tuple[str, ...]
    explanation: Explanation
    tokens: tuple[ShownToken, ...] = ()
    """For a shell command: as bash would read it."""


class Case(Value):
    """One line of a corpus. Members that are not listed here are ignored."""

    policy: str
    """The text of a policy file."""
    tool: str
    input: Raw
    id: Raw = Raw(b"null")
    cwd: str | None = None
    home: str | None = None
    local: bool = False
    """The folders are on this machine: links are followed, and the branch is looked up."""
    mode: str = "default"
    branch: str | None = None
    project: str = ""
    user: str | None = None
    origin: str = "main"


class CaseId(Value):
    """The id of a line that has other faults."""

    id: Raw = Raw(b"null")


class CaseResult(Value):
    """What becomes of a case."""

    id: Raw
    verdict: str
    reason: str
    input: Raw | UnsetType = UNSET
    """For `rewritten`: what would run instead."""


class CaseError(Value):
    """A line that could not be tried."""

    id: Raw
    line: int
    error: str


def try_call(call: Call, rules: Rules) -> Tried:
    """Decide about a call, and list how it was read."""
    request = needs_of(call.tool, call.input, call.context)
    code, reasons = outcome(decide(call, rules), request)
    return Tried(
        verdict=code,
        reasons=reasons,
        explanation=explain(call, rules),
        tokens=() if request.script is None else tokens_of(request.script),
    )


def try_case(case: Case, call: Call, rules: Rules) -> CaseResult:
    """Decide about a case of a corpus."""
    verdict = decide(call, rules)
    code, reasons = outcome(verdict, needs_of(call.tool, call.input, call.context))
    return CaseResult(
        id=case.id,
        verdict=code,
        reason="; ".join(reasons),
        input=verdict.input if code == REWRITTEN else UNSET,
    )


def outcome(verdict: Verdict, request: Request) -> tuple[str, tuple[str, ...]]:
    """A verdict as a code, with its reasons. `Tried.verdict` lists the codes."""
    if verdict.ruled or verdict.behavior is not Behavior.ALLOW:
        allowed = verdict.behavior is Behavior.ALLOW
        return REWRITTEN if allowed and verdict.input else verdict.behavior.value, verdict.reasons
    left = [need.what for need in request.needs if not need.free]
    if not left:
        return FREE, ("nothing in it needs to be allowed",)
    # What a rule allows is not listed, if it is known.
    parts = ", ".join(dict.fromkeys(verdict.open or left))
    return LEFT, (f"no rule decides about {parts}: Claude Code's own settings do",)


def read_case(line: bytes) -> Case:
    """A line of a corpus. Raises `msgspec.DecodeError` with what is wrong, and where."""
    case = msgspec.json.decode(line, type=Case)
    if not bytes(case.input).lstrip().startswith(b"{"):
        raise msgspec.ValidationError("Expected `object` - at `$.input`")
    return case


def case_id(line: bytes) -> Raw:
    """The id of a line that cannot be tried; `null` where it has none."""
    try:
        return msgspec.json.decode(line, type=CaseId).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Raw(b"null")
