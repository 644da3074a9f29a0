"""A policy's verdict on a call, for a person: the reasons, the parts of the call, the rules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from rich.console import Console
from rich.text import Text

from quarterdeck.cli.terminal.text import plain
from quarterdeck.policy.explain import Explanation, PartExplained
from quarterdeck.policy.readings import ShownToken, Unknown
from quarterdeck.policy.tries import Tried

COLOURS = {"allow": "green", "deny": "red", "ask": "yellow"}
"""The colour of each verdict."""


BOXED = {"read_only": "refused: it is read-only", "hidden": "refused: it is hidden"}
"""What a sandbox does, where its code is not a word for people."""

WORDS = {
    "rewritten": "allow, but only as changed",
    "cli": "left to the CLI",
    "free": "nothing to allow",
}
"""Verdicts whose code is not a word for people."""


def show_explanation(explanation: Explanation, console: Console) -> None:
    """Show a verdict, its reasons, and the rules that match each part of the call."""
    _show_verdict(explanation.verdict, explanation.reasons, explanation, console)
    for part in explanation.parts:
        _show_part(part, console)
    _show_unknowns(explanation, console)


def _show_verdict(
    code: str, reasons: tuple[str, ...], explanation: Explanation, console: Console
) -> None:
    head = Text(WORDS.get(code, code), COLOURS.get(explanation.verdict, "bold"))
    if explanation.rule is not None:
        head.append(f"  by {explanation.rule} ({explanation.source})", "bold")
    console.print(head, soft_wrap=True)
    for reason in reasons:
        console.print(Text(plain(f"  {reason}")), soft_wrap=True)
    if explanation.message:
        console.print(
            Text(plain(f"  message for the agent: {explanation.message}")), soft_wrap=True
        )
    if explanation.rewritten is not None:
        console.print(Text(plain(f"  it would run with {explanation.rewritten}")), soft_wrap=True)
    for people in explanation.answered_by:
        console.print(Text(f"  to be answered by {' or '.join(people)}"), soft_wrap=True)
    if explanation.wait is not None:
        wait = timedelta(seconds=round(explanation.wait))
        text = f"  after {wait} without an answer: {explanation.then}"
        console.print(Text(text), soft_wrap=True)


def show_tried(tried: Tried, console: Console) -> None:
    """Show a verdict, how the call was read, what it needs, and what was not known."""
    _show_verdict(tried.verdict, tried.reasons, tried.explanation, console)
    if tried.tokens:
        _show_heading("tokens: what bash would read", console)
        for token in tried.tokens:
            _show_token(token, console)
    _show_heading("needs: what rules must allow", console)
    for part in tried.explanation.parts:
        _show_part(part, console, indent="  ")
    _show_unknowns(tried.explanation, console)


class _Boxed(Protocol):
    """What a sandbox does with one need of a call."""

    @property
    def access(self) -> str:
        """`write`, `read` or `connect`."""

    @property
    def target(self) -> str:
        """The path, or the host."""

    @property
    def verdict(self) -> str:
        """`allowed`, or why not."""


def show_sandbox(answers: Sequence[_Boxed], console: Console) -> None:
    """Show what the sandbox would do with the files and hosts that a call names."""
    if not answers:
        return
    _show_heading("sandbox: what the kernel would do in the mode protect", console)
    for each in answers:
        colour = "green" if each.verdict == "allowed" else "yellow"
        line = Text(f"  {each.access:<8}{_one_line(each.target)}  ")
        console.print(line.append(BOXED.get(each.verdict, each.verdict), colour), soft_wrap=True)


def _show_unknowns(explanation: Explanation, console: Console) -> None:
    if explanation.unknown:
        _show_heading("unknown: what only running it would show", console)
        for unknown in explanation.unknown:
            _show_unknown(unknown, console)


def _show_heading(text: str, console: Console) -> None:
    console.print(Text(text, "bold"))


def _show_token(token: ShownToken, console: Console) -> None:
    line = Text(f"  {token.kind:<12}", "dim").append(_one_line(token.text))
    if token.kind == "word":
        if token.value is None:
            line.append("  (known only when it runs)", "dim")
        elif token.value != token.text:
            line.append(f"  (is {_one_line(token.value)})", "dim")
    console.print(line, soft_wrap=True)


def _show_unknown(unknown: Unknown, console: Console) -> None:
    line = Text(f"  {_one_line(unknown.what)}")
    if unknown.start is not None:
        line.append(f"  (at character {unknown.start + 1})", "dim")
    console.print(line.append(plain(f": {unknown.why}")), soft_wrap=True)


def _one_line(text: str) -> str:
    return plain(text.replace("\n", "⏎"))


def _show_part(part: PartExplained, console: Console, *, indent: str = "") -> None:
    line = Text(f"{indent}{part.kind:<8}", "dim").append(plain(part.what))
    if part.why:
        line.append(f"  ({part.why})", "dim")
    console.print(line, soft_wrap=True)
    for rule in part.rules:
        verdict = rule.verdict if rule.sure else f"may {rule.verdict}"
        text = Text(f"{indent}  {verdict:<12}", COLOURS.get(rule.verdict, ""))
        console.print(text.append(plain(f"{rule.rule} ({rule.source})")), soft_wrap=True)
    if not part.rules:
        said = "needs no rule" if part.free else "no rule"
        console.print(Text(f"{indent}  {said}", "dim"))
