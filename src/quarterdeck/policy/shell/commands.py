"""From one simple command to its parts: wrappers removed, effects looked up.

`reader` finds the commands; `wrappers` knows programs that run other programs, and `programs` knows
the effects of options and operands. Wrappers may be nested: unwrapping continues until a command is
left that runs nothing else.
"""

from __future__ import annotations

import re

import msgspec

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.shell.effects import ProgramEffects, acts, runs
from quarterdeck.policy.shell.environment import assignment_effect
from quarterdeck.policy.shell.listings import NARROWED, Listing, narrow
from quarterdeck.policy.shell.programs import look_up
from quarterdeck.policy.shell.script import (
    Assignment,
    Effect,
    Form,
    Part,
    Problem,
    Target,
    Word,
)
from quarterdeck.policy.shell.word_reader import join_words
from quarterdeck.policy.shell.working_dir import UNKNOWN_DIR, WorkingDir
from quarterdeck.policy.shell.wrappers import Input, Unwrapped, unwrap

RESERVED = name_set(
    "! { } [[ ]] case coproc do done elif else esac fi for function if in select then until while"
    " foreach end repeat always"
)
"""Words of the grammar: where one is taken for a command's name, the tree is wrong."""

UNTOUCHED = name_set("cd true false : test [ echo pwd exit return break continue")
"""Commands that change nothing beyond their own script, whatever their arguments."""

_SPECIAL = re.compile(r"[\s\"'\\$`]")

_IN_THIS_SHELL = name_set("command builtin time noglob nocorrect")
"""Wrappers whose command runs in the shell itself: `command cd x` changes the directory."""

LAYERS = 8
"""Wrappers around wrappers."""

INNER = 50
"""Commands that one command runs, as `find` does with each `-exec`."""


class Simple(Value):
    """A simple command in its place."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...]
    reads: tuple[Target, ...]
    writes: tuple[Target, ...]
    here: WorkingDir
    span: tuple[int, int]
    input: Listing | None = None
    """Names of files that it gets as its input."""

    text: str | None = None
    """The text that it gets as its input, if that is known."""

    fed: bool = False
    """Whether it gets an input at all: from a pipe, a file or a here-document."""


class Inner(Value):
    """A script that a command runs, as `bash -c` does."""

    text: str
    here: WorkingDir
    span: tuple[int, int]
    via: tuple[str, ...]
    outer: str
    """The text of the command around it: a rule may name all of that."""

    def wrap(self, part: Part) -> Part:
        """A part of the script, as a part of the whole."""
        whole = Form(text=self.outer, named=len(self.outer))
        return msgspec.structs.replace(
            part, via=self.via + part.via, forms=(*part.forms, whole) if part.forms else ()
        )


class Analysis(Value):
    """The analysis of a simple command."""

    parts: tuple[Part, ...] = ()
    problems: tuple[Problem, ...] = ()
    scripts: tuple[Inner, ...] = ()
    moves: WorkingDir | None = None
    """Where the script is after it, if it did well and this is a `cd`."""

    steps: int = 0


class _Layer(Value):
    """A command within its wrappers."""

    words: tuple[Word, ...]
    via: tuple[str, ...] = ()
    before: str = ""
    """The text of the wrappers before it, with a blank at the end."""

    after: str = ""
    open_ended: bool = False
    added: Word | None = None
    """The words that a wrapper adds, if they have bounds."""

    here: WorkingDir = UNKNOWN_DIR


def analyze(simple: Simple) -> Analysis:
    """Analyse a simple command."""
    if not simple.words:
        return _redirections_only(simple)
    effects: list[Effect] = []
    prefix = ""
    if simple.assignments:
        effects += [
            effect
            for each in simple.assignments
            if (effect := assignment_effect(each)) is not None
            and not (each.name == "IFS" and simple.words[0].literal == "read")
        ]
        prefix = "".join(f"{each.name}={each.value.source} " for each in simple.assignments)
    parts: list[Part] = []
    problems: list[Problem] = []
    scripts: list[Inner] = []
    moves: WorkingDir | None = None
    steps = 0
    layers = [_Layer(words=simple.words, here=simple.here)]
    while layers:
        layer = layers.pop()
        steps += len(layer.words)
        if len(layer.via) > LAYERS:
            why = "wrappers in wrappers are nested too deep"
            problems.append(
                Problem(source=join_words(layer.words)[:200], why=why, span=simple.span)
            )
            continue
        unnamed = _why_unnamed(layer.words[0])
        if unnamed is not None:
            source = join_words(layer.words)[:200]
            problems.append(Problem(source=source, why=unnamed, span=simple.span))
        found = unwrap(layer.words, layer.here, Input(simple.input, simple.text, simple.fed))
        problems += [
            Problem(source=join_words(layer.words)[:200], why=why, span=simple.span)
            for why in found.doubts
        ]
        if found.commands:
            layers += _inner(layer, found)
        if len(found.commands) > INNER:
            why = f"it runs more than {INNER} commands"
            problems.append(
                Problem(source=join_words(layer.words)[:200], why=why, span=simple.span)
            )
        text = join_words(layer.words)
        scripts += [
            Inner(
                text=each.text,
                here=each.here,
                span=simple.span,
                via=(*layer.via, found.name),
                outer=layer.before + text,
            )
            for each in found.scripts
        ]
        if found.transparent:
            effects.extend(found.effects)
            continue
        known = _look_up(layer, simple.text)
        if found.scripts and not found.doubts and _is_plain_shell(layer.words):
            # It does what its text does, and that is looked at for itself.
            known = msgspec.structs.replace(known, looks=True)
        parts.append(
            _part(simple, layer, text, prefix, (*effects, *found.effects), known, bool(found.name))
        )
        if known.moves is not None and _IN_THIS_SHELL.issuperset(layer.via):
            moves = known.moves
        problems += [Problem(source=text[:200], why=why, span=simple.span) for why in known.doubts]
        scripts += [
            Inner(
                text=each,
                here=layer.here,
                span=simple.span,
                via=(*layer.via, _name(layer.words)),
                outer=layer.before + text,
            )
            for each in known.scripts
        ]
    if parts and (simple.reads or simple.writes):
        parts[0] = msgspec.structs.replace(
            parts[0], reads=parts[0].reads + simple.reads, writes=parts[0].writes + simple.writes
        )
    return Analysis(
        parts=tuple(parts),
        problems=tuple(problems),
        scripts=tuple(scripts),
        moves=moves,
        steps=steps,
    )


def _look_up(layer: _Layer, text: str | None) -> ProgramEffects:
    """The effects of a command, with the words that are added to it and the text it reads."""
    if layer.added is not None:
        return look_up((*layer.words, layer.added), layer.here, None)
    via = layer.via[-1] if layer.open_ended and layer.via else None
    known = look_up(layer.words, layer.here, via, text)
    if layer.words[0].literal not in NARROWED:
        return known
    effects = tuple(narrow(layer.words, layer.here, known.effects))
    return known if effects == known.effects else msgspec.structs.replace(known, effects=effects)


def _redirections_only(simple: Simple) -> Analysis:
    """Redirections with no command: files are made or emptied all the same."""
    if not simple.reads and not simple.writes:
        return Analysis()
    bare = Part(
        words=(), text="", forms=(), span=simple.span, reads=simple.reads, writes=simple.writes
    )
    return Analysis(parts=(bare,))


def _why_unnamed(word: Word) -> str | None:
    """Why the command's name is unknown; None if it is known."""
    if word.literal is None:
        return "what it runs is known only at run time"
    if word.literal in RESERVED:
        return f"{word.source!r} is not understood here"
    return None


def _name(words: tuple[Word, ...]) -> str:
    return (words[0].literal or "?").rpartition("/")[2]


def _inner(layer: _Layer, found: Unwrapped) -> list[_Layer]:
    inner: list[_Layer] = []
    for each in found.commands[:INNER]:
        before = join_words(layer.words[: each.start])
        inner.append(
            _Layer(
                words=each.words,
                via=(*layer.via, found.name),
                before=layer.before + before + " " if before else layer.before,
                after=join_words(layer.words[each.stop :]) if each.stop is not None else "",
                open_ended=layer.open_ended or each.open_ended,
                added=each.added,
                here=each.here,
            )
        )
    return inner


def _unknowns(words: tuple[Word, ...]) -> list[Effect]:
    """Words that may be anything when the command runs, an option among them."""
    if words[0].literal in UNTOUCHED:
        return []
    return [
        runs(f"{word.source} is known only at run time", word.source)
        for word in words[1:]
        if word.text is None
    ]


def _is_plain_shell(words: tuple[Word, ...]) -> bool:
    """Is it `sh -c TEXT`, with no option that makes it read other files?"""
    names = [word.literal for word in words[:2]]
    return len(words) == 3 and names[0] in {"sh", "bash", "dash"} and names[1] == "-c"


def _part(
    simple: Simple,
    layer: _Layer,
    text: str,
    prefix: str,
    effects: tuple[Effect, ...],
    known: ProgramEffects,
    runs_others: bool,
) -> Part:
    head = len(layer.words[0].source)
    # A program that runs others must be named: a rule for `* --version` does not allow `sudo`.
    forms = [Form(text=text, named=head if runs_others else 0)]
    if layer.before:
        whole = layer.before + text + (" " + layer.after if layer.after else "")
        forms.append(Form(text=whole, named=len(layer.before) + head))
    if prefix:
        last = forms[-1]
        forms.append(Form(text=prefix + last.text, named=len(prefix) + max(last.named, head)))
    words = layer.words
    count = 0
    """The words that are known, from the first."""
    while count < len(words) and words[count].literal is not None:
        count += 1
    if count == len(words):
        decoded = [word.text or "" for word in words]
        plain = " ".join(decoded)
        if plain != text and all(each and not _SPECIAL.search(each) for each in decoded):
            # `'rm' x` and `\\rm x` are `rm x`, and rules know them by that.
            forms.insert(1, Form(text=plain, named=0))
    unknown = [] if known.judged else _unknowns(words)
    found = (*effects, *known.effects, *unknown)
    looks = known.looks or words[0].literal in UNTOUCHED
    return Part(
        words=layer.words,
        text=text,
        forms=tuple(forms),
        span=simple.span,
        assignments=simple.assignments,
        effects=found,
        fetches=known.fetches,
        called=known.called,
        looks=looks and not acts(found),
        via=layer.via,
        known=count,
        open_ended=layer.open_ended,
        dirs=tuple([each for each, _ in layer.here.dirs]),
    )
