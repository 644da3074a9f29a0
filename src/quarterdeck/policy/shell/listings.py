"""Names of files that one command gives to another: `find … | xargs`, `$(git ls-files)`, `-exec`.

They are not known before the command runs, but they have bounds: `find src -name '*.py'` finds no
`.env`. A listing has those bounds as patterns, in which `**` is any number of folders. A command
that is not understood completely has no listing, and the names are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.shell.script import Effect, EffectKind, Word
from quarterdeck.policy.shell.working_dir import WorkingDir

MOST = 16
"""Patterns of one listing."""

_FIND_LEADING = re.compile(r"-P|-O\d*")
_FIND_SHOWS = name_set(
    "-exec -execdir -ok -okdir -printf -fprintf -ls -fls -fprint -fprint0 -files0-from"
)
_FIND_COMMANDS = name_set("-exec -execdir -ok -okdir")
_FIND_ACTIONS = {
    **dict.fromkeys(("-print", "-print0", "-delete", "-ls"), 0),
    **dict.fromkeys(("-printf", "-fprint", "-fprint0", "-fls", *_FIND_COMMANDS), 1),
    "-fprintf": 2,
}
"""What is done with a file at that place, and the number of arguments."""

_FIND_ALONE = name_set(
    "( ) -a -and -empty -readable -writable -executable -daystart -depth -d -mount -xdev"
    " -noleaf -true -false -prune -quit -nouser -nogroup -warn -nowarn -ignore_readdir_race"
)
_FIND_TAKES = re.compile(
    r"-(?:i?path|i?wholename|i?regex|regextype|x?type|newer\w*|anewer|cnewer|[acm]time|[acm]min"
    r"|size|maxdepth|mindepth|user|group|uid|gid|perm|i?lname|inum|links|samefile|fstype|context"
    r"|used)"
)
"""Tests with one argument."""

_LETTER = re.compile(r"[A-Za-z]")
_LEADS_AWAY = re.compile(r"(?:^|/)\.\.(?:/|$)")
_LS_FILES = re.compile(
    r"-[zcdmost]+|--cached|--deleted|--modified|--others|--exclude-standard|--recurse-submodules"
    r"|--deduplicate|--error-unmatch|--"
)
_NAMES_ONLY = re.compile(r"--name-only|--diff-filter=\w+|--cached|--staged|-r|-z|[\w./~^@-]+")
_GREP_LISTS = re.compile(r"-[A-Za-z]*l[A-Za-z]*|--files-with-matches|--files-without-match")
_FOLLOWS = re.compile(r"-[A-Za-z]*[RL][A-Za-z]*|--dereference-recursive|--follow")
"""Goes into folders that are links."""

_GREP_PATTERN = re.compile(r"-[A-Za-z]*[ef]|--regexp(?:=.*)?|--file(?:=.*)?")
_FILTER = {
    "head": re.compile(r"-\d+|-[nc]|-[nc]\d+|--lines=\d+|\d+"),
    "tail": re.compile(r"-\d+|-[nc]|-[nc]\+?\d+|--lines=\d+|\+?\d+"),
    "sort": re.compile(r"-[bdfghinrRuVz]+|--unique|--reverse|--version-sort"),
    "uniq": re.compile(r"-[iuz]+"),
    "shuf": re.compile(r"-n|-n\d+|\d+|-z"),
    "tac": re.compile(r"(?!)"),
    "cat": re.compile(r"(?!)"),
}
_GREP_FILTER = re.compile(r"-[vEiFPwxza]+|--invert-match|--ignore-case|--extended-regexp")


class Listing(Value):
    """Bounds for names of files."""

    texts: tuple[str, ...]
    """Patterns, relative to the folder where the names were found. None of them begins with a
    dash."""

    hidden: bool = True
    """Whether names that begin with a dot are among them."""

    def word(self, source: str) -> Word:
        """The names as one word of a command."""
        if len(self.texts) == 1:
            text = self.texts[0]
            return Word(source=source, text=text, prefix=text, glob=True, hidden=self.hidden)
        return Word(source=source, texts=self.texts, glob=True, hidden=self.hidden)


def listing_of(words: tuple[Word, ...], given: Listing | None) -> Listing | None:
    """The names that a command writes to its output. `given`: those that it gets as its input."""
    name = words[0].literal if words else None
    match name:
        case "find":
            return found_by(words, shown=True)
        case "git":
            return _by_git(words)
        case "grep" | "egrep" | "fgrep" | "rg":
            listing = _by_grep(words)
            return listing if listing is not None else _filter(words, given)
        case "ls":
            return _by_ls(words)
        case "echo" | "printf":
            return _echo_listing(words)
        case "tr":
            plain = [word.literal for word in words[1:]] in (["\\n", "\\0"], ["\\n", " "])
            return given if plain else None
        case _:
            return _filter(words, given)


def _filter(words: tuple[Word, ...], given: Listing | None) -> Listing | None:
    """What a filter leaves of the names."""
    name = words[0].literal if words else None
    if given is None or name is None:
        return None
    texts = [word.literal for word in words[1:]]
    if name in {"grep", "egrep", "fgrep"}:
        options = [text for text in texts if text is not None and text.startswith("-")]
        return (
            given
            if len(texts) - len(options) == 1
            and all(_GREP_FILTER.fullmatch(text) for text in options)
            else None
        )
    allowed = _FILTER.get(name)
    if allowed is None or not all(text is not None and allowed.fullmatch(text) for text in texts):
        return None
    return given


def _bounded_listing(texts: list[str], *, hidden: bool = True) -> Listing | None:
    """A listing of these patterns. A name could begin with a dash only if a pattern does."""
    unique = tuple(dict.fromkeys(texts))
    if not 0 < len(unique) <= MOST or any(text.startswith(("-", "~")) for text in unique):
        return None
    return Listing(texts=unique, hidden=hidden)


# --- find --------------------------------------------------------------------------------------


def found_by(words: tuple[Word, ...], *, shown: bool) -> Listing | None:
    """What `find` finds. `shown`: it must only print the names."""
    at = 1
    while at < len(words) and _FIND_LEADING.fullmatch(words[at].literal or ""):
        at += 1
    roots: list[str] = []
    while at < len(words) and not words[at].prefix.startswith(("-", "(", "!", ",", ")")):
        text = words[at].text
        if text is None or words[at].tilde:
            return None
        roots.append(text.rstrip("/") or "/")
        at += 1
    rest = words[at:]
    if any(word.text is None and not word.prefix for word in rest):
        return None
    tests = [word.text for word in rest]
    if shown and not _FIND_SHOWS.isdisjoint(text for text in tests if text is not None):
        return None
    if "-files0-from" in tests:
        return None
    names = _find_names(rest)
    texts: list[str] = []
    for root in roots or ["."]:
        base = root if root.startswith(("/", ".")) else f"./{root}"
        if names is None:
            texts.append(f"{base.rstrip('/')}/**")
            continue
        texts += [f"{base.rstrip('/')}/**/{name}" for name in names]
        # A root that is a file is found too, if it is called so.
        texts += [base] if base.rpartition("/")[2] not in {".", "..", ""} else []
    return _bounded_listing(texts)


def _find_names(words: tuple[Word, ...]) -> list[str] | None:
    """The patterns of which every file that is found fits one; None if it may be any file.

    A pattern counts for what comes after it, up to the next `-o`. What is not understood may find
    anything.
    """
    texts = [word.text for word in words]
    acts = not _FIND_ACTIONS.keys().isdisjoint(texts)
    names: list[str] = []
    here: str | None = None
    negated, pruned, at = False, False, 0
    while at < len(texts):
        text = texts[at]
        at += 1
        if text in {"-o", "-or", ","}:
            # `-path x -prune -o …`: what is left out is not shown, if anything is shown explicitly.
            if here is None and not (pruned and acts):
                return None
            names += [here] if here is not None else []
            here, pruned = None, False
        elif text in {"!", "-not"}:
            if texts[at : at + 1] == ["("]:
                return None
            negated = True
            continue
        elif text in {"-name", "-iname"}:
            pattern = texts[at] if at < len(texts) else None
            at += 1
            if not negated and pattern and not re.search(r"[\\/]", pattern):
                bound = pattern if text == "-name" else _LETTER.sub("?", pattern)
                here = here or bound
        elif text in _FIND_ACTIONS:
            if here is None:
                return None
            if text in _FIND_COMMANDS:
                while at < len(texts) and texts[at] not in {";", "+"}:
                    at += 1
                at += 1
            else:
                at += _FIND_ACTIONS[text or ""]
        elif text is not None and _FIND_TAKES.fullmatch(text):
            at += 1
        elif text not in _FIND_ALONE:
            return None
        pruned = pruned or text == "-prune"
        negated = False
    if here is None:
        return None
    return [*names, here]


# --- what a search reads -----------------------------------------------------------------------

_TYPES = {
    "c": ("*.c", "*.h"),
    "cpp": ("*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh", "*.h", "*.inl"),
    "css": ("*.css", "*.scss"),
    "go": ("*.go",),
    "html": ("*.htm", "*.html", "*.ejs"),
    "java": ("*.java", "*.jsp", "*.jspx", "*.properties"),
    "js": ("*.js", "*.jsx", "*.vue", "*.cjs", "*.mjs"),
    "md": ("*.md", "*.markdown", "*.mdown", "*.mkd", "*.mdx", "*.mdwn", "*.mkdn"),
    "py": ("*.py", "*.pyi"),
    "rust": ("*.rs",),
    "ts": ("*.ts", "*.tsx", "*.cts", "*.mts"),
}
TYPES = {
    **_TYPES,
    "markdown": _TYPES["md"],
    "python": _TYPES["py"],
    "typescript": _TYPES["ts"],
}
"""Types of ripgrep, and their patterns."""

_GREPS = name_set("grep egrep fgrep zgrep")
NARROWED = _GREPS | {"rg", "find"}
"""Programs of which `narrowed` knows what they look for."""


def included_patterns(words: tuple[Word, ...]) -> tuple[str, ...] | None:
    """The patterns of which every file that a search reads fits one; None if it may be any."""
    name = words[0].literal if words else None
    texts = [word.text for word in words[1:]]
    if any(text is None and not word.prefix for text, word in zip(texts, words[1:], strict=True)):
        return None
    found: list[str] = []
    for text, following in zip(texts, [*texts[1:], None], strict=True):
        if text == "--":
            break
        if name in _GREPS and text is not None and text.startswith("--include"):
            found.append(text.partition("=")[2] if "=" in text else following or "")
        elif name == "rg" and text is not None:
            if text in {"-t", "--type"}:
                found += TYPES.get(following or "", ("",))
            elif text.startswith(("--type=", "-t")) and not text.startswith("--type-"):
                found += TYPES.get(text.partition("=")[2] or text[2:], ("",))
            elif text.startswith(("-g", "--glob", "--iglob", "--type-", "--pre")):
                return None
    plain = all(each and not re.search(r"[\\/{!]", each) for each in found)
    return tuple(found) if found and plain and len(found) <= MOST else None


def narrow(words: tuple[Word, ...], here: WorkingDir, effects: Iterable[Effect]) -> list[Effect]:
    """The effects of a search on folders, bounded by what it looks for."""
    found = list(effects)
    deep = [
        at
        for at, effect in enumerate(found)
        if effect.target is not None and effect.target.deep and effect.target.paths
    ]
    if not deep or words[0].literal not in NARROWED:
        return found
    if words[0].literal == "find":
        names = found_by(words, shown=False)
        bounds = here.target(names.word(".")) if names is not None else None
        for at in deep:
            if found[at].kind is EffectKind.WRITES and bounds is not None and bounds.paths:
                found[at] = replace(found[at], target=bounds)
        return found
    patterns = included_patterns(words)
    for at in deep if patterns is not None else ():
        target = found[at].target
        if target is not None and patterns is not None and not target.glob:
            paths = [f"{path.rstrip('/')}/**/{each}" for path in target.paths for each in patterns]
            bounds = replace(target, paths=tuple(paths), glob=True, hidden=True, deep=False)
            found[at] = replace(found[at], target=bounds)
    return found


# --- others ------------------------------------------------------------------------------------


def _by_git(words: tuple[Word, ...]) -> Listing | None:
    texts = [word.text for word in words[1:]]
    match texts[:1]:
        case ["ls-files"]:
            return _ls_files(list(texts[1:]))
        case ["diff" | "ls-tree" | "show"] if "--name-only" in texts:
            plain = all(text is not None and _NAMES_ONLY.fullmatch(text) for text in texts[1:])
            return Listing(texts=("./**",)) if plain else None
        case _:
            return None


def _ls_files(texts: list[str | None]) -> Listing | None:
    specs: list[str] = []
    for text in texts:
        if text is None:
            return None
        if text.startswith("-"):
            if not _LS_FILES.fullmatch(text):
                return None
        elif text.startswith((":", "/", "~")) or _LEADS_AWAY.search(text) or "\\" in text:
            return None
        else:
            specs.append(text.removeprefix("./").rstrip("/"))
    found: list[str] = []
    for spec in specs or ["**"]:
        folder, slash, last = spec.rpartition("/")
        if any(sign in folder for sign in "*?["):
            folder, slash, last = "", "", "**"
        # In a pathspec, `*` stands for folders too.
        base = f"./{folder}{slash}"
        if any(sign in last for sign in "*?["):
            found.append(f"{base}**/{last}" if last != "**" else f"{base}**")
        else:
            found.append(f"{base}{last}/**" if last not in {"", "."} else f"{base}**")
    return _bounded_listing(found)


def _by_grep(words: tuple[Word, ...]) -> Listing | None:
    """Files with matches: they are among the operands, or below them."""
    texts = [word.text for word in words[1:]]
    if any(text is None for text in texts) or any(word.tilde for word in words):
        return None
    plain = [text for text in texts if text is not None]
    options = [text for text in plain if text.startswith("-")]
    if not any(_GREP_LISTS.fullmatch(each) for each in options) or any(
        _FOLLOWS.fullmatch(each) for each in options
    ):
        return None
    given = any(_GREP_PATTERN.fullmatch(each) for each in options)
    operands = [text for text in plain if not text.startswith("-")][0 if given else 1 :]
    included = [each.partition("=")[2] for each in options if each.startswith("--include=")]
    base = [each.rstrip("/") or "/" for each in operands] or ["."]
    roots = [each if each.startswith(("/", ".")) else f"./{each}" for each in base]
    if included and all(each and "\\" not in each and "{" not in each for each in included):
        below = [f"{root}/**/{each}" for root in roots for each in included]
        return _bounded_listing([*below, *(each for each in roots if each not in {".", "./."})])
    return _bounded_listing([f"{root}/**" for root in roots])


def _by_ls(words: tuple[Word, ...]) -> Listing | None:
    texts = [word.text for word in words[1:]]
    hidden = False
    for text in texts:
        if text is None or text.startswith(("/", "~")) or _LEADS_AWAY.search(text):
            return None
        if text.startswith("-"):
            if not re.fullmatch(r"-[1aAdrtSX]+", text):
                return None
            hidden = hidden or "a" in text.lower()
        hidden = hidden or text.startswith(".") or "/." in text
    return Listing(texts=("./**",), hidden=hidden)


def _echo_listing(words: tuple[Word, ...]) -> Listing | None:
    """What `echo` and `printf` are given to write."""
    texts = [word.literal for word in words[1:]]
    if words[0].literal == "printf":
        if texts[:1] not in (["%s\\n"], ["%s\\0"], ["%s "]):
            return None
        texts = texts[1:]
    elif texts[:1] == ["-n"]:
        texts = texts[1:]
    if any(text is None or "\\" in text or "'" in text or '"' in text for text in texts):
        return None
    names = [name for text in texts if text is not None for name in text.split()]
    if any(sign in name for name in names for sign in "*?["):
        return None
    return _bounded_listing(names)
