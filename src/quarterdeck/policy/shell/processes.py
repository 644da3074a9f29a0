"""Programs about processes: `ps` may show the secrets of one, `parallel` runs its input."""

from __future__ import annotations

import re

from quarterdeck.policy.shell.effects import ProgramEffects, runs
from quarterdeck.policy.shell.uses import Invocation, Reader

_SHOWS_ENVIRONMENT = re.compile(r"[A-Za-z]*e[A-Za-z]*|-[A-Za-z]*E[A-Za-z]*|.*\benviron.*")
"""`ps e`, `ps auxe`; `-E` on macOS. `-e` means all processes."""


def _ps(use: Invocation) -> ProgramEffects:
    shown = [
        runs("ps may show the environment of processes", word.source)
        for word in use.words[1:]
        if word.literal is None or _SHOWS_ENVIRONMENT.fullmatch(word.literal)
    ]
    return use.effects(shown)


def _parallel(use: Invocation) -> ProgramEffects:
    """Without a command, each line of the input is one."""
    if use.parse().operands:
        return use.effects()
    return use.effects([runs("parallel runs its input", "-")])


READERS: dict[str, Reader] = {"ps": _ps, "parallel": _parallel}
