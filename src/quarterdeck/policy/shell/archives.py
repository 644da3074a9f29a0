"""Archive programs: what they read, write and run depends on their mode.

An archive is made by reading the operands, and extracted by writing files whose names are in the
archive: only the folder that they go to is known. Options that let a member leave that folder are
effects of their own, in the tables.
"""

from __future__ import annotations

import re

import msgspec

from quarterdeck.policy.shell.effects import ProgramEffects, reads, runs, writes
from quarterdeck.policy.shell.options import Parsed
from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.tables import Table
from quarterdeck.policy.shell.uses import (
    Invocation,
    Reader,
    folders,
    names_given,
    plain,
    uses_of,
    words_of,
)
from quarterdeck.policy.shell.working_dir import HARMLESS, WorkingDir

_REMOTE = re.compile(r"(?:[^/:@]+@)?([^/:]+):")
_SUFFIXES = (
    ".gz", "-gz", ".z", "-z", "_z", ".Z", ".tgz", ".taz", ".svgz", ".bz2", ".bz", ".tbz2", ".tbz",
    ".xz", ".txz", ".lzma", ".tlz", ".lz", ".zst", ".tzst", ".zstd", ".lz4", ".tlz4",
)  # fmt: skip


def _into(places: list[WorkingDir], name: str, text: str = ".") -> list[Effect]:
    """Files are written in a folder; their names are not known."""
    return [
        writes(place.target(plain(text)), f"{name} extracts files there", own=True)
        for place in places
    ]


# --- tar ---------------------------------------------------------------------------------------

_ADDS = frozenset({"-c", "-r", "-u", "-A", "--delete"})
_SHOWS = frozenset({"-t", "-d", "--test-label"})


def _tar(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    given = names_given(parsed)
    adds = bool(given & _ADDS)
    takes = "-x" in given
    known = not parsed.unknown and not parsed.open
    if not known or not (adds or takes or given & _SHOWS):
        adds = takes = True  # the mode is not certain
    more = [*_other_machine(use, parsed, given), *_list_effects(use, parsed, "-T", "-I")]
    streamed = bool(given & {"-O", "--to-command"})
    shown = use.with_table(options={"-f": "read"}, operands="read*", looks=True)
    if takes:
        shown = use.with_table(
            options={"-f": "value" if adds else "read"},
            operands="skip*" if streamed and not adds else "read*" if adds else "write*",
        )
        if not streamed or not known:
            more += _into(folders(parsed, use.here), use.name)
        if adds:
            more += [
                writes(use.here.target(each), "tar may extract it") for each in parsed.operands
            ]
    elif adds:
        shown = use.with_table(options={"-f": "value"})
        # bsdtar: `@archive` adds the members of another archive.
        more += [
            reads(use.here.target(plain(word.text[1:])), "tar reads it")
            for word in parsed.operands
            if word.text is not None and word.text.startswith("@")
        ]
    elif "-d" not in given:
        shown = use.with_table(options={"-f": "read"}, operands="skip*", looks=True)
    if adds:
        more += [
            writes(use.here.target(word), f"{use.name} writes it", own=True)
            for word in words_of(parsed, "-f")
            if word.text not in HARMLESS
        ]
    return shown.effects(more, _hosts(parsed, given))


def _hosts(parsed: Parsed, given: frozenset[str]) -> list[str]:
    if "--force-local" in given:
        return []
    found = [_REMOTE.match(word.text or "") for word in words_of(parsed, "-f")]
    return [f"http://{each[1]}/" for each in found if each is not None]


def _other_machine(use: Invocation, parsed: Parsed, given: frozenset[str]) -> list[Effect]:
    """`-f host:file` runs a program on another machine."""
    if not _hosts(parsed, given):
        return []
    typed = uses_of(parsed, "-f")[0].typed
    return [runs(f"{use.name} {typed} works on another machine", typed)]


def _list_effects(use: Invocation, parsed: Parsed, *names: str) -> list[Effect]:
    """Names of files that come from a file: any file may be read."""
    return [
        reads(Target(source=each.typed), f"{use.name} {each.typed} takes names from a file")
        for each in uses_of(parsed, *names)
        if "read" in each.option.values
    ]


# --- compressors -------------------------------------------------------------------------------

_KEEPS = {
    "gzip": frozenset({"-c", "-l", "-t"}),
    "bzip2": frozenset({"-c", "-t"}),
    "xz": frozenset({"-c", "-l", "-t"}),
    "zstd": frozenset({"-c", "-l", "-t", "-o", "-b"}),
}
"""Options with which no file is replaced."""


def _compressor(use: Invocation) -> ProgramEffects:
    """A file is replaced by one with another suffix, unless the result goes to the output."""
    parsed = use.parse()
    given = names_given(parsed)
    listed = _list_effects(use, parsed, "--files", "--files0", "--filelist")
    if given & _KEEPS[use.table.name] and not parsed.unknown and not parsed.open:
        return use.with_table(looks=True).effects(listed)
    deep = "-r" in given
    suffixes = (*(word.text or "" for word in words_of(parsed, "-S")), *_SUFFIXES)
    more: list[Effect] = listed
    for word in parsed.operands:
        if word.text in HARMLESS:
            continue
        for target in _with_suffixes(use.here.target(word), suffixes):
            found = msgspec.structs.replace(target, deep=deep)
            more.append(writes(found, f"{use.name} writes or replaces it", own=True))
    return use.effects(more)


def _with_suffixes(target: Target, suffixes: tuple[str, ...]) -> list[Target]:
    """A file, and the same with a suffix more or less."""
    if not target.paths or target.glob:
        return [target]
    names: list[str] = []
    for path in target.paths:
        names += [path[: -len(each)] for each in suffixes if each and path.endswith(each)]
        names += [f"{path}.gz", f"{path}.bz2", f"{path}.xz", f"{path}.zst"]
    return [target, msgspec.structs.replace(target, paths=tuple(dict.fromkeys(names)))]


# --- zip ---------------------------------------------------------------------------------------


def _zip(use: Invocation) -> ProgramEffects:
    words = (use.words[0], *_zip_words(use.words[1:], use.table))
    use = msgspec.structs.replace(use, words=words)
    parsed = use.parse()
    more: list[Effect] = []
    if parsed.operands and parsed.operands[0].text not in HARMLESS:
        # `zip a` writes `a.zip`.
        target = use.here.target(parsed.operands[0])
        paths = tuple(f"{path}.zip" for path in target.paths)
        if paths:
            named = msgspec.structs.replace(target, paths=paths)
            more.append(writes(named, "zip writes it", own=True))
    return use.effects(more)


def _zip_words(words: tuple[Word, ...], table: Table) -> list[Word]:
    """Options of one or two letters, each as a word; without the lists of patterns after -x, -i."""
    out: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        at += 1
        if text == "--":
            return [*out, *words[at - 1 :]]
        if text in {"--exclude", "--include"}:
            at = _after_list(words, at)
            continue
        if text is None or not text.startswith("-") or text[:2] == "--" or text == "-":
            out.append(word)
            continue
        split = _zip_letters(text, table)
        if split is None:
            out.append(word)
            continue
        if split and split[-1] in {"-x", "-i"}:
            at = _after_list(words, at)
            split.pop()
        out += [plain(each) for each in split]
    return out


def _after_list(words: tuple[Word, ...], at: int) -> int:
    """A list of patterns ends at the next option or at `@`."""
    while at < len(words):
        text = words[at].text
        if text == "@":
            return at + 1
        if text is None or text.startswith("-"):
            return at
        at += 1
    return at


def _zip_letters(text: str, table: Table) -> list[str] | None:
    """`-rqTTcmd` is `-r -q -TT cmd`. None if a letter is not known."""
    found: list[str] = []
    at = 1
    while at < len(text):
        name = next(
            (f"-{text[at:end]}" for end in (at + 2, at + 1) if _is(table, text[at:end])), ""
        )
        if not name or (len(name) == 3 and at + 2 > len(text)):
            return None
        at += len(name) - 1
        found.append(name)
        if name in {"-x", "-i"}:
            if at < len(text):
                at = len(text)  # one pattern, attached
                found.pop()
            return found
        if table.options[name].values:
            if at < len(text):
                found.append(text[at:].removeprefix("="))
            return found
        if text[at : at + 1] == "-":
            at += 1  # `-X-`: the option is off
    return found


def _is(table: Table, letters: str) -> bool:
    return f"-{letters}" in table.options


def _unzip(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    given = names_given(parsed)
    known = not parsed.unknown and not parsed.open
    if known and given & {"-l", "-t", "-z", "-Z", "-p", "-c", "-v"}:
        return use.with_table(looks=True).effects()
    more: list[Effect] = []
    if not uses_of(parsed, "-d"):
        more = _into([use.here], "unzip")
        more += [
            writes(use.here.target(word), "unzip extracts it", own=True)
            for word in parsed.operands[1:]
        ]
    return use.effects(more)


_INCLUDED = re.compile(r"[^!@]*!(.+)", re.DOTALL)


def _seven_zip(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    more: list[Effect] = []
    if parsed.table.name.rpartition(" ")[2] in {"x", "e"} and not uses_of(parsed, "-o", "-so"):
        more = _into([use.here], use.name)
    for word in parsed.operands:
        if word.text is not None and word.text.startswith("@"):
            more.append(runs(f"{use.name} takes names of files from {word.source}", word.source))
            more.append(reads(use.here.target(plain(word.text[1:])), f"{use.name} reads it"))
            more.append(reads(Target(source=word.source), f"{use.name} takes names from it"))
    for word in words_of(parsed, "-i", "-ai"):
        # `-ir!pattern`, `-i@list`: files besides the operands.
        pattern = _INCLUDED.match(word.text or "")
        target = Target(source=word.source)
        if pattern is not None:
            target = use.here.target(plain(pattern[1]))
        more.append(reads(msgspec.structs.replace(target, deep=True), f"{use.name} reads it"))
    return use.effects(more)


def _ar(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    given = names_given(parsed)
    known = not parsed.unknown and not parsed.open
    more: list[Effect] = [
        runs(f"ar takes options from {word.source}", word.source)
        for word in parsed.operands
        if word.prefix.startswith("@")
    ]
    if known and given & {"-t", "-p"} and not given & {"-d", "-m", "-q", "-r", "-x", "-s"}:
        return use.with_table(operands="read skip*", looks=True).effects(more)
    if known and "-x" in given:
        if not uses_of(parsed, "--output"):
            more += _into([use.here], "ar")
        return use.with_table(operands="read write*").effects(more)
    if given & {"-a", "-b", "-N"}:
        # A member's name or a number comes before the archive.
        return use.with_table(operands="skip write read*").effects(more)
    return use.effects(more)


READERS: dict[str, Reader] = {
    "tar": _tar,
    "bsdtar": _tar,
    "gzip": _compressor,
    "bzip2": _compressor,
    "xz": _compressor,
    "zstd": _compressor,
    "zip": _zip,
    "unzip": _unzip,
    "7z": _seven_zip,
    "ar": _ar,
}
