"""Path patterns of rules, as in gitignore: `//abs/**`, `~/x`, `/x`, `./x`, `*.env`.

They work on text; the caller resolves links. A pattern that names a folder matches everything in
it. There are two strengths: to allow, a path must certainly match; to stop, it may match.
"""

from __future__ import annotations

import re

from quarterdeck.domain.structs import Value
from quarterdeck.policy.folders import Base, Folders, folder_of, relative_to
from quarterdeck.policy.overlap import names_overlap, overlap
from quarterdeck.policy.protected_files import (
    holds_protected_file,
    may_name_protected_file,
    names_protected_file,
)
from quarterdeck.policy.searches import SOURCES
from quarterdeck.policy.shell import Target
from quarterdeck.policy.trees import LEFT_OUT_NAMES

MOST_LINKS = 32
_FILE = re.compile(r"[^/.]\.[A-Za-z0-9]{1,5}$")
_WILDCARD = re.compile(r"[*?\[]")
_PLAIN_ENDING = re.compile(r"\*\.(?!pack|idx|rev|keep|bitmap|promisor|graph|mtimes)\w+")
"""Names that no object of git has."""

_ENDING = re.compile(r"\*+(\.\w+)")


PARTLY_SEEN = LEFT_OUT_NAMES | {".git"}
"""Names of folders in which not everything is looked at: a rule that names one may mean what is in
it, wherever that is."""


class BadPattern(ValueError):
    """A text is not a valid path pattern."""


class PathPattern(Value):
    """A pattern, taken apart and compiled."""

    base: Base
    text: str
    """Without the mark of its base."""

    sure: re.Pattern[str]
    """For an allow: matched against a path relative to the base."""

    possible: re.Pattern[str]
    """For a deny or an ask: what it may match."""

    literal: str
    """The part before its first wildcard."""

    everything: bool
    """It ends in `/**`, or names a folder: everything below matches."""

    anywhere: bool = False
    """It begins with `**`: to stop, it holds in every folder, not below its base only."""

    names: tuple[str, ...] = ()
    """Its names, from the base on. `**` is any number of them."""


def path_pattern(text: str) -> PathPattern:
    """Read the specifier of a rule for files. Raises `BadPattern`."""
    base = Base.CWD
    anchored = False
    rest = text
    if text.startswith("//"):
        base, rest, anchored = Base.ROOT, text[2:], True
    elif text == "~" or text.startswith("~/"):
        base, rest, anchored = Base.HOME, text[2:], True
    elif text.startswith("/"):
        base, rest, anchored = Base.SETTINGS, text[1:], True
    elif text.startswith("./"):
        rest, anchored = text[2:], True
    elif text == ".":
        rest, anchored = "", True
    rest = rest.rstrip("/")
    while rest.endswith("/**/**") or rest == "**/**":
        rest = rest[:-3]  # the second says nothing new
    inner = rest.removesuffix("/**")
    rooted = anchored or "/" in rest
    # An old CLI looked for `plain/**` at any depth: enough to stop by, not to allow by.
    wide = not anchored and "/" not in inner
    wildcard = re.search(r"[*?\[]", rest)
    return PathPattern(
        base=base,
        text=rest,
        sure=_compile(rest, rooted, self_too=False),
        possible=_compile(rest, rooted and not wide, self_too=True),
        literal=rest if wildcard is None else rest[: wildcard.start()],
        everything=rest.endswith("/**") or rest == "**" or wildcard is None,
        anywhere=text.startswith("**/"),
        names=tuple([] if rooted and not wide else ["**"])
        + tuple(name for name in inner.split("/") if name),
    )


def _compile(text: str, rooted: bool, *, self_too: bool) -> re.Pattern[str]:
    """A regular expression with linear run time.

    A pattern is split at each `**` into runs of names. Each run is searched from left to right in
    an atomic group: its first match leaves the most text for the runs after it.
    """
    below = r"(?:/.*)?"
    if text.endswith("/**"):
        text, below = text[:-3], below if self_too else r"/.+"
    elif text in {"**", ""}:
        return re.compile(r".*" if self_too or text == "" else r".+", re.DOTALL)
    runs: list[list[str]] = [[]]
    for name in text.split("/"):
        if name == "**":
            runs.append([])
        else:
            runs[-1].append(_name(name))
    out: list[str] = []
    for number, run in enumerate(runs):
        if not run and number < len(runs) - 1:
            continue  # the pattern begins with `**`, or there are several in a row
        end = r"(?=/|\Z)" if number == len(runs) - 1 else "/"
        gap = r"(?:[^/]*/)*?" if number or not rooted else ""
        out.append(f"(?>{gap}{'/'.join(run)}{end})")
    try:
        # Some file systems ignore case: `.ENV` may be `.env`. That is enough to stop by.
        case = re.IGNORECASE if self_too else re.NOFLAG
        return re.compile("".join(out) + below, re.DOTALL | case)
    except (re.error, OverflowError) as error:
        raise BadPattern(f"{text!r} cannot be parsed: {error}") from error


def _name(text: str) -> str:
    """One name of a pattern. Of two pieces with a `*` between, the first is found once and kept."""
    pieces: list[str] = [""]
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "*":
            if len(pieces) == 1 or pieces[-1]:
                pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[" and (found := re.compile(r"[!^]?\]?[^\]]*\]").match(text, at)):
            inside = found.group()[:-1].replace("\\", r"\\").replace("[", r"\[")
            wanted = "^" + inside[1:] if inside[:1] in {"!", "^"} else inside
            pieces[-1] += f"(?!/)[{wanted}]"
            at = found.end()
        else:
            pieces[-1] += re.escape(char)
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    found_once = "".join(f"(?>[^/]*?{piece})" for piece in middle)
    return f"{first}{found_once}(?>[^/]*{last}(?=/|\\Z))"


def covers(pattern: PathPattern, target: Target, folders: Folders) -> bool:
    """Does the pattern certainly match the target, whichever of its paths it is?"""
    if not target.paths or not target.sure:
        return False
    for path in target.paths:
        relative = relative_to(path, pattern.base, folders)
        if relative is None:
            return False
        if target.glob:
            folder = before_wildcard(relative)
            if not pattern.everything or not pattern.sure.fullmatch(folder + "x"):
                return False
        elif not pattern.sure.fullmatch(relative):
            return False
    return True


def catches(
    pattern: PathPattern, target: Target, folders: Folders, *, edit: bool = False
) -> bool | None:
    """Does the pattern match the target, or something below the target that it affects?

    None: it may, which is not known before the command runs. `edit`: the target is changed or
    removed, not only read.
    """
    if not target.paths:
        return None
    may: bool | None = False
    for path in target.paths:
        caught = _catches(pattern, target, path, folders, edit=edit)
        if caught:
            return True
        may = None if caught is None else may
    return may


def _catches(
    pattern: PathPattern, target: Target, path: str, folders: Folders, *, edit: bool
) -> bool | None:
    relative = relative_to(path, pattern.base, folders)
    if relative is None and pattern.anywhere:
        relative = relative_to(path, Base.ROOT, folders)
    deep = target.deep and not target.names
    if relative is None:
        if deep and edit and _above(path, pattern, folders):
            return True
        if deep:
            return _meets_below(pattern, path, folders, hidden=target.hidden or edit)
        return None if _may_be_there(pattern, target, path, folders) else False
    if target.glob:
        # Every path that it can be is in a folder that the pattern matches.
        folder = before_wildcard(relative).rstrip("/")
        if folder and pattern.possible.fullmatch(folder):
            return True
        reach = [name for name in relative.split("/") if name]
        if target.hidden and _always(pattern, reach):
            return True
        if target.names:
            return False  # the names in a folder are no secret, unless all of the folder is
        if _is_unexpected(pattern, target, path, folders):
            return False
        if not overlap(
            list(pattern.names),
            reach,
            hidden=_folders_too(pattern, target, reach, folders),
            last=_last(target, reach),
        ):
            return False
        return _is_found(pattern, path, reach, folders)
    if pattern.possible.fullmatch(relative) is not None:
        return True
    if not deep:
        return False
    below = f"{relative}/" if relative else ""
    if edit and pattern.literal and f"{pattern.literal}/".startswith(below):
        return True
    if folders.below is None and ((edit and relative) or _FILE.search(relative)):
        # A file that goes with its folder is not given away, and `a.txt` is hardly a folder.
        return False
    if not edit and _is_unexpected(pattern, target, path, folders):
        return False
    return _meets_below(pattern, path, folders, hidden=target.hidden or edit)


def _is_unexpected(pattern: PathPattern, target: Target, path: str, folders: Folders) -> bool:
    """If nobody can look: is it unlikely that a rule such as `**/.env` means something there?

    Only in the project, and for what only lists names, finds no hidden files, or looks for files of
    another name or ending: to ask about each `rg x src` would be one question too many.
    """
    here = relative_to(path, Base.CWD, folders)
    if folders.below is not None or not pattern.anywhere or not pattern.names or here is None:
        return False
    if target.names:
        return True
    last = here.rpartition("/")[2]
    if not target.glob or not last.strip("*"):
        return not target.glob and not target.hidden
    ending = _ENDING.fullmatch(last)
    if ending is not None and not pattern.names[-1].endswith(ending[1]):
        return True
    return not names_overlap(pattern.names[-1], last, target.hidden)


def _last(target: Target, reach: list[str]) -> bool:
    """Does the last name of a search find names that begin with a dot?

    For files of programs and texts it is taken not to: a file called `.env.ts` is not to be
    expected, and to ask about every search for `*.ts` would be one question too many.
    """
    return target.hidden and not (reach and reach[-1] in SOURCES)


def _folders_too(pattern: PathPattern, target: Target, reach: list[str], folders: Folders) -> bool:
    """Does a search go into folders that begin with a dot, as far as a rule may mean one?

    That a rule such as `**/.env` means a folder is not to be expected either, if nobody can look.
    """
    sources = bool(reach) and reach[-1] in SOURCES
    return target.hidden and (
        not sources or pattern.text.endswith("/**") or folders.below is not None
    )


def _may_be_there(pattern: PathPattern, target: Target, path: str, folders: Folders) -> bool:
    """May a path be one that the rule means, although it is not known to be below its base?"""
    if target.glob and _around(path, pattern, target, folders):
        return True
    base = folder_of(pattern.base, folders)
    reach = [name for name in path.split("/") if name not in {"", "~"}]
    if base is None or (path.startswith("~") and folders.home is None):
        return overlap(["**", *pattern.names], reach, hidden=True, last=True)
    if not path.startswith(("/", "~")):
        # The working directory is not known.
        return overlap(_absolute(pattern, base), ["**", *reach], hidden=True, last=True)
    return False


def _absolute(pattern: PathPattern, base: str) -> list[str]:
    return [name for name in base.split("/") if name] + list(pattern.names)


def _meets_below(pattern: PathPattern, path: str, folders: Folders, *, hidden: bool) -> bool | None:
    """Is there something below a folder that the rule means? None: yes, or it is not known.

    It is never certain: the rule is about a file, and the command is about a folder.
    """
    base = folder_of(pattern.base, folders)
    full = relative_to(path, Base.ROOT, folders)
    if base is None or full is None:
        return None
    if not pattern.anywhere:
        if pattern.names[:1] != ("**",) and _apart(f"{base.rstrip('/')}/{pattern.literal}", full):
            return False
        reach = [*(name for name in full.split("/") if name), "**"]
        if not overlap(_absolute(pattern, base), reach, hidden=hidden, last=hidden):
            return False
    return _is_found(pattern, f"/{full}", ["**"], folders, hidden=hidden)


def _apart(start: str, full: str) -> bool:
    """Whether nothing that begins with `start` is below a folder, without comparing the names."""
    folder = f"/{full}/" if full else "/"
    return not start.startswith(folder) and not folder.startswith(start)


def _is_found(
    pattern: PathPattern, path: str, reach: list[str], folders: Folders, *, hidden: bool = True
) -> bool | None:
    """Looks whether a file that the rule means is where a command reaches. None: it may be."""
    full = relative_to(path, Base.ROOT, folders)
    if folders.below is None or full is None or not pattern.names:
        return None
    top = f"/{before_wildcard(full)}" if _WILDCARD.search(full) else f"/{full}"
    tree = folders.below(top.rstrip("/") or "/")
    last = reach[-1] if reach else "**"
    if tree is None or not LEFT_OUT_NAMES.isdisjoint(pattern.names):
        return None
    if ".git" in pattern.names and not _PLAIN_ENDING.fullmatch(last):
        return None  # not all of it is looked at
    for found in tree.paths_called(pattern.names[-1]):
        name = found.rpartition("/")[2]
        if not hidden and (found.startswith(".") or "/." in found):
            continue
        if (
            last != "**"
            and not names_overlap(last, name, True)
            and not (found in tree.folders and tree.has_below(found, last))
        ):
            continue
        relative = relative_to(f"{top.rstrip('/')}/{found}", pattern.base, folders)
        if relative is None and pattern.anywhere:
            relative = relative_to(f"{top.rstrip('/')}/{found}", Base.ROOT, folders)
        if relative is not None and pattern.possible.fullmatch(relative):
            return None
    return False


def linked_targets(target: Target, folders: Folders) -> list[Target]:
    """What a pattern finds behind links, as far as a caller has looked."""
    found: list[Target] = []
    for path in target.paths if folders.below is not None else ():
        full = relative_to(path, Base.ROOT, folders)
        if full is None or folders.below is None:
            continue
        top = f"/{before_wildcard(full)}".rstrip("/")
        tree = folders.below(top or "/")
        reach = [name for name in full.split("/") if name]
        above = len([name for name in top.split("/") if name])
        for link, true in tree.links if tree is not None else ():
            names = link.split("/")
            if not overlap(names, reach[above:], hidden=target.hidden):
                continue
            if target.hidden and "**" in reach:
                # A search finds links, and does not go into them.
                if reach[-1] != "**" and not names_overlap(reach[-1], names[-1], True):
                    continue
                rest = ""
            else:
                rest = "/".join(reach[above + len(names) :]) if "**" not in reach else "**"
            behind = f"{true.rstrip('/')}/{rest}" if rest else true
            found.append(
                Target(
                    source=target.source,
                    paths=(behind,),
                    glob=bool(rest),
                    hidden=bool(rest),
                    sure=False,
                )
            )
    return found[:MOST_LINKS]


def _always(pattern: PathPattern, reach: list[str]) -> bool:
    """Does everything that a search reaches match, in any folder?"""
    plain = [name for name in reach if name != "**"]
    if not plain or any(_WILDCARD.search(name) for name in plain):
        return False
    deep = ["/".join(name if name != "**" else each for name in reach) for each in ("x", "x/y")]
    return all(pattern.possible.fullmatch(path) for path in ("/".join(plain), *deep))


def _around(path: str, pattern: PathPattern, target: Target, folders: Folders) -> bool:
    """May a command's glob, which starts above the base, reach something that the rule matches?"""
    folder = folder_of(pattern.base, folders)
    full = relative_to(path, Base.ROOT, folders)
    if folder is None or full is None:
        return False
    rule = [name for name in folder.split("/") if name] + list(pattern.names)
    reach = [name for name in full.split("/") if name]
    return overlap(rule, reach, hidden=target.hidden, last=_last(target, reach))


def before_wildcard(path: str) -> str:
    """The folder of a pattern that is written out, with its slash."""
    found = re.search(r"[*?\[{]", path)
    start = path if found is None else path[: found.start()]
    return start[: start.rfind("/") + 1]


def _above(path: str, pattern: PathPattern, folders: Folders) -> bool:
    folder = folder_of(pattern.base, folders)
    return folder is not None and f"{folder}/".startswith(path.rstrip("/") + "/")


def is_inside(target: Target, roots: tuple[str, ...], home: str | None) -> bool:
    """Is the target certainly below one of these folders?"""
    if not target.paths or not target.sure:
        return False
    for path in target.paths:
        if path.startswith("~"):
            if home is None:
                return False
            path = home.rstrip("/") + path[1:]  # noqa: PLW2901 - the same path, in full
        if not any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots):
            return False
    return True


def names_protected(pattern: PathPattern) -> bool:
    """Does a pattern name a protected file or folder literally? Only then does it allow one."""
    return names_protected_file("/" + pattern.text.removesuffix("/**"))


def is_protected(target: Target) -> bool:
    """Is it a file that makes programs run, or says what agents may do? In any case of letters."""
    return any(
        may_name_protected_file(path, hidden=target.hidden)
        if target.glob
        else names_protected_file(path) or (target.deep and holds_protected_file(path))
        for path in target.paths
    )
