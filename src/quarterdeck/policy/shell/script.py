"""The analysis of a shell command as plain values: `Script` and its parts.

The rest of policy uses these types; `reader` makes them from a text. They do not know bash's
grammar, rules, or the machine.
"""

from __future__ import annotations

from enum import StrEnum

from quarterdeck.domain.structs import Value
from quarterdeck.policy.cached_property import cached
from quarterdeck.policy.shell.aliases import MOST_WORDS, has_other_names, other_names


class Word(Value):
    """One word of a command, as far as it is known before the command runs."""

    source: str
    """As it was written, quotes and all."""

    text: str | None = None
    """Its value after expansion; None if it is known only at run time (`$x`, `$(…)`)."""

    prefix: str = ""
    """Its known beginning: all of it when `text` is known."""

    glob: bool = False
    """Unquoted `*`, `?`, `[` or braces: the shell may replace it by other words."""

    tilde: bool = False
    """Begins with an unquoted `~`: a home folder."""

    quoted: bool = False

    texts: tuple[str, ...] = ()
    """All that it can become, where `text` is not known and there are only a few: `{a,b}`."""

    hidden: bool = False
    """As a pattern, it finds names that begin with a dot: it comes from `find`, not from the
    shell."""

    @property
    def literal(self) -> str | None:
        """The text, if it is exactly the argument that the command gets."""
        return None if self.glob or self.tilde else self.text


class Assignment(Value):
    """`NAME=value`, before a command or alone."""

    name: str
    value: Word


class Target(Value):
    """A file that is read or written."""

    source: str
    paths: tuple[str, ...] = ()
    """Every path it may be: absolute (or from `~/`, or relative when the folder is unknown),
    normalised as text. Several after a `cd` that may fail; empty when unknown."""

    sure: bool = True
    """False where a link could lead elsewhere (`name/../x`): good enough to deny, not to allow."""

    glob: bool = False
    """The paths are globs: any matching file may be the target."""

    hidden: bool = False
    """As patterns, they find names that begin with a dot: a search does, a shell does not."""

    deep: bool = False
    """All that is below it goes with it: `rm -r`, `mv`, `grep -r`."""

    names: bool = False
    """Only names and sizes are read, no contents: `ls -R`, `find`."""

    repository: bool = False
    """A folder that git works in. In another repository than the session's, its settings may run
    programs."""


class EffectKind(StrEnum):
    """An effect of an option or a word beyond the command's name."""

    WRITES = "writes"
    """Writes, moves or removes a file: an edit of that path."""

    READS = "reads"

    RUNS = "runs"
    """Runs code that is not a separate part here: an interpreter's text, a build's recipe."""

    ALTERS = "alters"
    """Changes what later commands do: PATH, an alias, a trap, a shell option."""


class Effect(Value):
    """Something that a part does beyond what its name says."""

    kind: EffectKind
    why: str
    """For people: `tar --checkpoint-action runs a program`."""

    token: str = ""
    """The text that a rule must contain to name this effect: `--checkpoint-action`."""

    target: Target | None = None
    own: bool = False
    """The command's name says it: `touch` writes its operands, `curl` does not."""

    by_name: bool = False
    """Only if a pattern finds a file whose name begins with a dash."""

    maybe: bool = False
    """It is only possible: enough to stop the command, and it needs no rule to be allowed."""


class Form(Value):
    """A text by which a rule may match a part: with its wrappers, or without."""

    text: str
    named: int
    """So many characters from the start must be written out in a rule that is to allow the part.
    They reach to the end of the name of the command that really runs."""


class Part(Value, dict=True):
    """One simple command as it would run, anywhere in the script.

    A wrapper that only changes how its command runs (`timeout`, `nice`) gives one part, with the
    wrapper in `via`. One that changes what it means (`sudo`, `ssh`, `bash -c`, `xargs -I`) gives a
    part for itself, and one for each command that it runs.
    """

    words: tuple[Word, ...]
    text: str
    """The command without wrappers and assignments; its words as written, joined by one space."""

    forms: tuple[Form, ...]
    """`text` first, then the same with the wrappers around it, the outermost last."""

    span: tuple[int, int]
    """Its position in the script, in characters. A part of a quoted script has the quote's."""

    assignments: tuple[Assignment, ...] = ()
    reads: tuple[Target, ...] = ()
    writes: tuple[Target, ...] = ()
    effects: tuple[Effect, ...] = ()
    via: tuple[str, ...] = ()
    """Names of the wrappers around it, the outermost first."""

    fetches: tuple[str, ...] = ()
    """Hosts and addresses that it contacts, as written; an empty text for an unknown one."""

    called: tuple[str, ...] = ()
    """The same command by full names: `npm publish x` for `npm --tag y publ x`. Only for programs
    whose table has subcommands. Rules that stop know it by this, too."""

    looks: bool = False
    """It is known to change nothing, redirections aside: it reads files and shows something."""

    known: int = 0
    """The number of known words from the first; the next one is known only at run time."""

    open_ended: bool = False
    """More words are added at run time (`xargs rm`, `find -exec rm {} +`)."""

    dirs: tuple[str, ...] | None = None
    """The folders that it may run in, if the script changed to another one; empty: unknown."""

    @cached
    def same(self) -> tuple[tuple[str, ...], ...]:
        """The words of the same command under its other names: `pip install x` for `python3 -m pip
        install x`. Rules that stop know it by these, too. Empty for most.
        """
        if self.name is None:
            return ()
        others = self.words[1:MOST_WORDS]
        texts = [word.source if word.text is None else word.text for word in others]
        typed = (self.name, *texts)
        found = other_names(typed)
        # By its full names, it may have others.
        return found + other_names(self.called) if self.called not in {(), typed} else found

    @cached
    def subcommand(self) -> str | None:
        """The second word, if a rule that stops another subcommand of the program cannot mean it.

        None if it is an option or not known, or if what follows it is not known, and may make
        another name of a subcommand: `docker image $x` may be `docker push`.
        """
        second = self.words[1].literal if len(self.words) > 1 else None
        if second is None or second[:1] in {"", "-"}:
            return None
        if self.known == len(self.words) and not self.open_ended:
            return second
        return None if self.name is not None and has_other_names(self.name) else second

    @cached
    def name(self) -> str | None:
        """The command's name, without the folder it is in; None if it is not known."""
        if not self.words or (literal := self.words[0].literal) is None:
            return None
        return literal.rpartition("/")[2]


class Problem(Value):
    """Something that cannot be known before the command runs: to be asked about."""

    source: str
    why: str
    span: tuple[int, int]


class Script(Value):
    """A whole command, understood as far as it can be."""

    source: str
    parts: tuple[Part, ...] = ()
    problems: tuple[Problem, ...] = ()
    steps: int = 0
    """How much work it was to read: it grows with the length of the text, and no faster."""
