"""The report of a loop, as Markdown and as JSON, and the text of a pull request. Pure but for
`write_reports`.

The texts of agents are quoted: what an agent writes cannot pass for a heading of the report.
"""

from __future__ import annotations

import re
import time

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import ABSENT, Value
from quarterdeck.loop.boxes import OFF
from quarterdeck.loop.spec import EXIT_CODES, GOALS, LoopSpec, StopReason
from quarterdeck.loop.state import Check, LoopState, Turn
from quarterdeck.loop.store import LoopStore
from quarterdeck.runtime.files import replace_file

_FENCES = re.compile(r"`{3,}")


class LoopReport(Value, omit_defaults=False):
    """The report as JSON."""

    loop: str
    title: str
    directory: str
    branch: str | None
    reason: StopReason | None
    """Why it stopped; null while it runs."""
    text: str
    exit_code: int | None
    done: bool
    turns: int
    cost_usd: float
    worked_seconds: float
    waited_seconds: float
    proof: tuple[Check, ...]
    result: Raw
    """The last structured result, or null."""
    history: tuple[Turn, ...]
    spec: LoopSpec


def report_of(state: LoopState) -> LoopReport:
    """The report of a loop, also of one that still runs."""
    reason = state.stopped.reason if state.stopped else None
    result = state.turns[-1].outcome.result if state.turns else ABSENT
    return LoopReport(
        loop=state.id,
        title=state.spec.title,
        directory=state.directory or state.spec.directory,
        branch=state.spec.worktree,
        reason=reason,
        text=state.stopped.text if state.stopped else "",
        exit_code=None if reason is None else EXIT_CODES[reason],
        done=reason in GOALS,
        turns=len(state.turns),
        cost_usd=state.cost_usd,
        worked_seconds=round(state.worked, 1),
        waited_seconds=round(state.waited, 1),
        proof=_proof(state),
        result=result or Raw(b"null"),
        history=state.turns,
        spec=state.spec,
    )


def _proof(state: LoopState) -> tuple[Check, ...]:
    """All that was run to check the result: the check of the last turn first."""
    last = state.turns[-1].check if state.turns else None
    return (*((last,) if last is not None else ()), *state.proof)


def as_markdown(state: LoopState) -> str:
    """The report for people."""
    report = report_of(state)
    stopped = "It still runs." if report.reason is None else f"{report.text}"
    lines = [
        f"# Loop: {_one_line(report.title)}",
        "",
        f"- Stopped: {report.reason or 'no'}"
        + (f" (exit code {report.exit_code}). {_one_line(stopped)}" if report.reason else ""),
        f"- Folder: `{report.directory}`"
        + (f", branch `{report.branch}`" if report.branch else ""),
        f"- Turns: {report.turns}, ${report.cost_usd:.4f}, {report.worked_seconds:g} s of work"
        + (f", {report.waited_seconds:g} s of waiting" if report.waited_seconds else ""),
        f"- Loop: {report.loop}",
        "",
        "## The task",
        "",
        _quote(state.spec.task),
    ]
    if state.plan is not None:
        lines += ["", "## The plan", "", _quote(state.plan)]
    lines += ["", "## Proof", ""]
    if not report.proof:
        lines.append("Nothing was run to check the result.")
    for check in report.proof:
        lines += [*_check_lines(check), ""]
    last = state.turns[-1].verdict if state.turns else None
    if last is not None:
        lines += ["", f"The reviewer {'agrees' if last.agree else 'does not agree'}:", ""]
        lines.append(_quote(last.reason))
    lines += ["", "## Turns", ""]
    for turn in state.turns:
        lines += [*_turn_lines(turn), ""]
    return "\n".join(lines).rstrip() + "\n"


def pull_request_text(state: LoopState) -> str:
    """A title and a description for a pull request."""
    report = report_of(state)
    lines = [
        _one_line(report.title),
        "",
        _quote(state.spec.task),
        "",
        f"Made by a loop: {report.turns} turns, ${report.cost_usd:.4f}. {_one_line(report.text)}",
        "",
        "## Proof",
        "",
    ]
    for check in report.proof:
        lines += [*_check_lines(check), ""]
    if not report.proof:
        lines.append("Nothing was run to check the result.")
    commits = [turn.commit for turn in state.turns if turn.commit]
    if commits:
        lines += ["", "Commits: " + ", ".join(commit[:12] for commit in commits)]
    return "\n".join(lines).rstrip() + "\n"


def write_reports(store: LoopStore, state: LoopState) -> None:
    """Write all of them beside the manifest. Blocks."""
    files = {
        "report.md": as_markdown(state).encode(errors="replace"),
        "report.json": msgspec.json.format(msgspec.json.encode(report_of(state)), indent=2),
        "pull-request.md": pull_request_text(state).encode(errors="replace"),
    }
    for name, data in files.items():
        replace_file(store.path(state.id, name), data)


def _turn_lines(turn: Turn) -> list[str]:
    facts = [
        "failed: " + _one_line(turn.outcome.outcome) if turn.outcome.failed else "ended",
        f"${turn.outcome.cost_usd + turn.review_usd:.4f}",
    ]
    if turn.cut_off is not None:
        facts.append(f"cut off ({turn.cut_off})")
    if turn.changed is not None:
        facts.append("files changed" if turn.changed else "no file changed")
    if turn.commit is not None:
        facts.append(f"commit {turn.commit[:12]}")
    if turn.check is not None:
        facts.append(f"check: {turn.check.code if turn.check.code is not None else 'timeout'}")
        if turn.check.failing:
            facts.append(f"{turn.check.failing} failing")
    if turn.verdict is not None:
        facts.append("reviewer agrees" if turn.verdict.agree else "reviewer does not agree")
    if turn.outcome.undrained:
        facts.append(f"{turn.outcome.undrained} background tasks did not end")
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(turn.began))
    lines = [f"### Turn {turn.number} ({began} UTC)", "", ", ".join(facts), ""]
    if turn.outcome.text:
        lines.append(_quote(turn.outcome.text))
    lines += [f"- denied: {_one_line(call)}" for call in turn.outcome.denied]
    if turn.verdict is not None and turn.verdict.reason:
        lines += ["", "The reviewer:", "", _quote(turn.verdict.reason)]
    return lines


def _check_lines(check: Check) -> list[str]:
    how = "did not end in time" if check.code is None else f"exited with {check.code}"
    fence = "`" * (1 + max([2, *map(len, _FENCES.findall(check.output + check.command))]))
    where = "" if check.sandbox == OFF else f", in the sandbox ({check.sandbox})"
    return [
        f"This command {how} after {check.seconds:g} s{where}:",
        "",
        f"{fence}console",
        f"$ {check.command}",
        check.output.rstrip(),
        fence,
    ]


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
