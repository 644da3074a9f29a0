"""The prompts of a loop, made from its spec and its state. Pure functions.

A fresh process knows nothing of earlier turns, so its prompt has what they left: the plan, the end
of the last answer, the output of the check, and what the reviewer wants changed.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import ABSENT, DECODE_ERRORS
from quarterdeck.loop.spec import LoopSpec
from quarterdeck.loop.state import LoopState, Turn, Verdict

RESULT_SCHEMA = (
    b'{"type":"object","properties":{"done":{"type":"boolean","description":"Whether the whole task'
    b' is done."},"summary":{"type":"string"}},"required":["done","summary"]}'
)
VERDICT_SCHEMA = (
    b'{"type":"object","properties":{"agree":{"type":"boolean","description":"Whether the work is'
    b' right and complete."},"reason":{"type":"string"}},"required":["agree","reason"]}'
)
_REVIEW = (
    "Review the work of another agent on the task below. Change nothing. Look at the files"
    " themselves, and do not trust what the agent says. Agree only if the task is done, and done"
    " right."
)
_FENCE = re.compile(r"```(?:json)?\s*\n(?P<json>\{.*?\})\s*\n```", re.DOTALL)


def schema_of(spec: LoopSpec) -> bytes | None:
    """The schema of the structured result of a turn, if one is wanted."""
    if not spec.stops.result:
        return None
    return bytes(spec.stops.result_schema) or RESULT_SCHEMA


def plan_prompt(spec: LoopSpec) -> str:
    """The prompt of the turn that makes the plan."""
    return (
        "Make a plan for the task below. Do not change any file and do not start with the work:"
        " others will carry the plan out, without your knowledge of this conversation. Look at what"
        " you need to know. Answer with the plan, as a list of small steps.\n\n"
        f"# The task\n\n{spec.task.strip()}\n"
    )


def work_prompt(state: LoopState) -> str:
    """The prompt of the next turn that works on the task."""
    spec = state.spec
    last = state.turns[-1] if state.turns else None
    continued = last is not None and not spec.fresh
    parts = [
        "Continue with the task." if continued else f"# The task\n\n{spec.task.strip()}",
    ]
    if state.plan is not None and not continued:
        parts.append(f"# The plan\n\n{state.plan.strip()}")
    if last is not None:
        parts.append(_so_far(last, fresh=spec.fresh))
    parts.append(_ending(spec))
    return "\n\n".join(part for part in parts if part) + "\n"


def review_prompt(state: LoopState, diff: str) -> str:
    """The prompt of the reviewer."""
    spec, last = state.spec, state.turns[-1]
    assert spec.review is not None
    parts = [
        _REVIEW,
        f"# The task\n\n{spec.task.strip()}",
        f"# What to look for\n\n{spec.review.prompt.strip()}" if spec.review.prompt.strip() else "",
        f"# What the agent said\n\n{_quote(last.outcome.text)}",
        f"# What has changed in this turn\n\n{_quote(diff)}" if diff else "",
    ]
    if last.check is not None:
        parts.append(_check_text(last))
    parts.append(as_json(VERDICT_SCHEMA))
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(schema: bytes) -> str:
    """The demand for an object of a schema, for CLIs that take no schema themselves."""
    return (
        "Give your structured result. If you have no tool for it, end your answer with one JSON"
        f" object in a block that begins with ```json, of this schema:\n\n{schema.decode()}"
    )


def structured_result(text: str, given: bytes) -> Raw:
    """The structured result of a turn: what the CLI gave, or the last JSON block of its text."""
    if given:
        return Raw(given)
    for candidate in reversed([found["json"] for found in _FENCE.finditer(text)] or [text.strip()]):
        try:
            found = msgspec.json.decode(candidate)
        except DECODE_ERRORS:
            continue
        if isinstance(found, dict):
            return Raw(candidate.encode())
    return ABSENT


class _GivenVerdict(msgspec.Struct):
    agree: bool
    reason: str = ""


def verdict_of(result: bytes, failed: str) -> Verdict:
    """The reviewer's verdict. One that cannot be read does not agree."""
    if failed:
        return Verdict(agree=False, reason=f"The review failed: {failed}")
    try:
        given = msgspec.json.decode(result, type=_GivenVerdict)
    except DECODE_ERRORS:
        return Verdict(agree=False, reason="The reviewer gave no verdict that could be read.")
    return Verdict(agree=given.agree, reason=given.reason[:4000])


def _so_far(last: Turn, *, fresh: bool) -> str:
    parts: list[str] = []
    if fresh:
        parts.append(
            f"# So far\n\nThis is turn {last.number + 1}. The files are as the turn before left"
            " them."
        )
        if last.outcome.text:
            parts.append(f"It ended with:\n\n{_quote(last.outcome.text)}")
    if last.outcome.failed:
        parts.append(f"The turn before failed: {last.outcome.outcome}")
    if last.outcome.denied:
        parts.append(
            "These calls were denied. Find another way: " + "; ".join(last.outcome.denied[:10])
        )
    if last.check is not None:
        parts.append(_check_text(last))
    if last.verdict is not None and not last.verdict.agree:
        parts.append(f"# The reviewer does not agree\n\n{last.verdict.reason}")
    return "\n\n".join(parts)


def _check_text(turn: Turn) -> str:
    check = turn.check
    assert check is not None
    how = "did not end in time" if check.code is None else f"exited with {check.code}"
    output = f"\n\n{_quote(check.output)}" if check.output.strip() else ""
    return f"# The check\n\n`{check.command}` {how}.{output}"


def _ending(spec: LoopSpec) -> str:
    stops = spec.stops
    parts: list[str] = []
    if stops.command is not None:
        parts.append(f"The task is done when this command exits with 0: `{stops.command}`")
    if stops.phrase is not None:
        parts.append(
            "When the whole task is done, and only then, write this on a line of its own:"
            f" {stops.phrase}"
        )
    if (schema := schema_of(spec)) is not None:
        parts.append(as_json(schema))
    return "\n\n".join(parts)


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.strip().splitlines())
