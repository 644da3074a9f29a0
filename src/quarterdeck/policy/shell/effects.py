"""Constructors for the effects of programs."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.domain.structs import Value
from quarterdeck.policy.shell.script import Effect, EffectKind, Target
from quarterdeck.policy.shell.working_dir import WorkingDir


class ProgramEffects(Value):
    """The effects of one use of a program."""

    effects: tuple[Effect, ...] = ()
    doubts: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    """Texts that it gives to a shell."""

    moves: WorkingDir | None = None
    fetches: tuple[str, ...] = ()
    """Hosts and addresses that it contacts; empty texts for those that are not known."""

    looks: bool = False
    """It is known to change nothing: it only reads files and shows something."""

    called: tuple[str, ...] = ()
    """The program, its subcommand and operands, each by its full name and without options."""

    judged: bool = False
    """Words that are known only at run time are among the effects already."""


def acts(effects: Iterable[Effect]) -> bool:
    """Whether one of them does more than reading, and not only by the name of a file."""
    for effect in effects:  # noqa: SIM110 - for every command: `any` would take twice as long
        if effect.kind is not EffectKind.READS and not effect.by_name:
            return True
    return False


def reads_only(effects: Iterable[Effect]) -> bool:
    """Whether all of them are reads."""
    for effect in effects:  # noqa: SIM110 - for every command: `all` would take twice as long
        if effect.kind is not EffectKind.READS:
            return False
    return True


def runs(why: str, token: str) -> Effect:
    """Runs code, or works on something unexpected; a rule that allows it must contain `token`."""
    return Effect(kind=EffectKind.RUNS, why=why, token=token)


def alters(why: str, token: str) -> Effect:
    """Changes what other commands do."""
    return Effect(kind=EffectKind.ALTERS, why=why, token=token)


def writes(target: Target, why: str, *, own: bool = False) -> Effect:
    """Writes, moves or removes a file. `own`: that is the purpose of the command."""
    return Effect(kind=EffectKind.WRITES, why=why, target=target, own=own)


def reads(target: Target, why: str) -> Effect:
    """Reads a file."""
    return Effect(kind=EffectKind.READS, why=why, target=target)
