"""Built-in rules, which no policy file, grant, mode or setting of a session can override.

An agent must not read or change the data folder of the hub that controls it, and must not run the
command that talks to that hub: it could answer its own questions or make itself a token. `decide`
checks these rules before all others.

Nor must it reach the sockets of other Claude sessions: a process that writes to one prompts that
session.

There are three results. A call that certainly does such a thing is denied. So is a call that names
the folder or the command in unreadable code (`python -c`, `eval`, a variable). For an unreadable
call that names neither, `decide` asks a person where a rule would have allowed it.

The rules judge the text of a call. A program that an agent has written to a file runs with the
rights of its user, and no rule here sees what it does; `docs/explanation/hub.md` discusses that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.facts import Private
from quarterdeck.policy.needs import Context, Need, NeedKind, Request
from quarterdeck.policy.shell import EffectKind, Part, Target, Word, locate

SOURCE = "built-in"
FILES_RULE = "the hub's own files"
COMMAND_RULE = "the hub's own command"
FILES_MESSAGE = (
    "This is the data folder or the configuration of the hub that controls this session."
    " It is closed to agents, and no policy can change that."
)
COMMAND_MESSAGE = (
    "Agents may not run the quarterdeck command: it answers questions and makes tokens on a"
    " person's behalf. No policy can allow it, except --help and --version."
)

SOCKETS_RULE = "sockets of other sessions"
SOCKETS_MESSAGE = (
    "This folder has the sockets with which Claude sessions prompt each other. It is closed to"
    " agents, and no policy can change that."
)

COMMAND = "quarterdeck"
NAMED_IN_CODE = name_set(
    "acp answer archive asks attach audit backup budget config demo export fork interrupt journal"
    " loop mcp new policy relay rename restore resume retention rm runner schedule sdk search send"
    " serve service sessions stop telegram token top usage webhook worktree"
)
"""Subcommands that reveal a call of the command in unreadable code. `import`, `run` and a few more
are not listed: in Python code they are common beside the name of the package."""

_SOCKETS = re.compile(
    r"[/{,]cc-socks(?:-\d+)?(?![\w.-])|(?<![\w.-])cc-socks(?:-\d+)?[/},]", re.IGNORECASE
)
"""The CLI's folder for them, in the folder for temporary files. Paths of it are known by its name,
since each session may have a temporary folder of its own."""
_SOCKET_PATTERN = re.compile(r"/(c[^/\s]*[*?\[][^/\s]*)", re.IGNORECASE)
_SECRET_FILES = ("cli.token", "runner.token", "loops.token", "cli.secret")
_VARIABLES = ("QUARTERDECK_HOME", "XDG_DATA_HOME")
_CALLED = re.compile(
    rf"\b{COMMAND}(?:\.cli)?['\"\\,\[\]()\s]{{1,8}}(?:{'|'.join(sorted(NAMED_IN_CODE))})\b"
)
_NAMED = re.compile(rf"(?<![\w/.-]){COMMAND}(?![\w/.-])")
_UNQUOTED = str.maketrans("", "", "'\"\\")

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_STARTERS = frozenset({"uvx", "pipx"})
"""Programs that run a package named in their arguments."""
_MODULE_OPTION = re.compile(r"-[A-Za-z]*?m(?:[A-Za-z].*)?")
_MODULE = re.compile(rf"{COMMAND}(?:\.[\w.]+)?")
_PACKAGE = re.compile(rf"{COMMAND}(?:\[[\w,-]*\])?(?:[=@<>~!].*)?")
_FILE_OF_OURS = re.compile(rf"(?:.*/)?{COMMAND}(?:/(?:cli|runner))?(?:/__main__\.py)?")

_READS_BELOW = frozenset({"rg", "ag", "ack", "tar", "zip", "7z", "rsync"})
_READS_BELOW_WITH_OPTION = name_set(
    "grep egrep fgrep zgrep cp mv rm diff scp chmod chown chgrp chattr setfacl"
)
_LISTS_BELOW = frozenset({"find", "fd", "fdfind", "tree", "du"})
_RECURSIVE = re.compile(r"-[A-Za-z]*[rRa]|--recursive|--archive|--dereference-recursive")


DEEPEST = 16
LONGEST_PATH = 4096
MOST_WORDS = 256
"""The number of words of a command that are checked as paths; a longer command counts as
unreadable."""


class Touch(StrEnum):
    """How certain it is that a call touches something private."""

    SURE = "sure"
    """It does what is forbidden, or names it in unreadable code."""
    UNKNOWN = "unknown"
    """It is not known."""


class BuiltinHit(Value):
    """A hit of a built-in rule."""

    touch: Touch
    rule: str
    message: str
    parts: tuple[str, ...]


def check_builtin(
    call_input: Raw, request: Request, context: Context, private: Private
) -> BuiltinHit | None:
    """Hold the built-in rules against a call."""
    if commands := [need.what for need in request.needs if _runs_ours(need.part)]:
        return _hit(Touch.SURE, COMMAND_RULE, commands)
    if sockets := list(_sockets(call_input, request)):
        return _hit(Touch.SURE, SOCKETS_RULE, sockets)
    closed = _PrivatePaths(private, context)
    if files := [need.what for need in request.needs if closed.reaches(need, request)]:
        return _hit(Touch.SURE, FILES_RULE, files)
    if closed.names_private_path(request):
        return _hit(Touch.SURE, FILES_RULE, [request.needs[0].what])
    if all(need.kind is NeedKind.TOOL for need in request.needs):
        return _look_into_tool(call_input, request, closed)
    unread = list(_unreadable(request))
    if not unread:
        return None
    text = request.command or _plain(call_input)
    if closed.is_named_in(text):
        return _hit(Touch.SURE, FILES_RULE, [need.what for need in unread])
    given_later = any(_is_unknown(need) or _is_open(need.part) for need in unread)
    if given_later and any(closed.lists_private(need) for need in request.needs):
        return _hit(Touch.SURE, FILES_RULE, [need.what for need in unread])
    hidden = [need.what for need in unread if _is_unknown(need)]
    if _CALLED.search(text) or (
        _NAMED.search(text) and (hidden or any(_nameless(need.part) for need in unread))
    ):
        return _hit(Touch.SURE, COMMAND_RULE, [need.what for need in unread])
    return _hit(Touch.UNKNOWN, FILES_RULE, hidden) if hidden else None


def _look_into_tool(call_input: Raw, request: Request, closed: _PrivatePaths) -> BuiltinHit | None:
    """A tool that is not known in detail: its texts may be paths."""
    texts = list(_texts(call_input))
    named = request.tool.startswith("mcp__") and any(closed.is_named_in(text) for text in texts)
    if named or any(closed.is_path_there(text) for text in texts):
        return _hit(Touch.SURE, FILES_RULE, [request.tool])
    return None


def _plain(call_input: Raw) -> str:
    try:
        return "\n".join(_texts(call_input))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return bytes(call_input).decode(errors="replace")


def _texts(call_input: Raw) -> Iterable[str]:
    """Every text in an input, up to a depth that tools do not go beyond."""
    waiting: list[tuple[object, int]] = [(msgspec.json.decode(call_input), 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            yield value
        elif depth < DEEPEST and isinstance(value, dict):
            waiting += [(each, depth + 1) for each in value.values()]
        elif depth < DEEPEST and isinstance(value, list):
            waiting += [(each, depth + 1) for each in value]


_MESSAGES = {
    FILES_RULE: FILES_MESSAGE,
    COMMAND_RULE: COMMAND_MESSAGE,
    SOCKETS_RULE: SOCKETS_MESSAGE,
}


def _hit(touch: Touch, rule: str, parts: Iterable[str]) -> BuiltinHit:
    message = _MESSAGES[rule]
    return BuiltinHit(touch=touch, rule=rule, message=message, parts=tuple(dict.fromkeys(parts)))


# --- sockets -----------------------------------------------------------------------------------


def _sockets(call_input: Raw, request: Request) -> Iterable[str]:
    """The needs that name a socket of a session. What is written to a file names none.

    `SendMessage` is the CLI's own way to other sessions: rules decide about it.
    """
    if request.tool == "SendMessage":
        return
    if request.command is not None:
        texts = [request.command.translate(_UNQUOTED)]
    elif all(need.kind is NeedKind.TOOL for need in request.needs):
        texts = _plain(call_input).split("\n")
        if not request.tool.startswith("mcp__"):  # they know paths, and texts for people
            texts = [text for text in texts if not re.search(r"\s", text)]
    else:
        texts = []
    if any(_names_sockets(text) for text in texts):
        yield from (need.what for need in request.needs)
        return
    for need in request.needs:
        paths = need.target.paths if need.target is not None else ()
        if any(_names_sockets(path) for path in paths):
            yield need.what


def _names_sockets(text: str) -> bool:
    if _SOCKETS.search(text) is not None:
        return True
    return any(
        fnmatchcase(name, pattern.casefold())
        for pattern in _SOCKET_PATTERN.findall(text)
        for name in ("cc-socks", "cc-socks-0", "cc-socks-1000")
    )


# --- unreadable calls --------------------------------------------------------------------------


def _unreadable(request: Request) -> Iterable[Need]:
    """The needs whose effect is not known before they run."""
    for need in request.needs:
        if _is_unknown(need):
            yield need
        elif (part := need.part) is not None and need.kind is NeedKind.COMMAND:
            code = any(effect.kind is EffectKind.RUNS for effect in part.effects)
            if code or part.open_ended or part.name is None:
                yield need


def _is_unknown(need: Need) -> bool:
    if need.kind in {NeedKind.READ, NeedKind.EDIT}:
        return need.target is not None and not need.target.paths
    return need.kind is NeedKind.UNKNOWN


# --- the command -------------------------------------------------------------------------------


def _runs_ours(part: Part | None) -> bool:
    """Whether a part of a command runs `quarterdeck`, for more than its help or version."""
    if part is None or (name := part.name) is None:
        return False
    words = [word.literal for word in part.words[1:]]
    if name == COMMAND:
        return part.open_ended or not _is_harmless(words)
    if name in _STARTERS:
        return any(word is not None and _PACKAGE.fullmatch(word) for word in words)
    if _PYTHON.fullmatch(name) and _runs_our_file(words):
        return True
    # As `python -m quarterdeck`, and `coverage run -m quarterdeck`.
    return any(
        option is not None
        and _MODULE_OPTION.fullmatch(option)
        and (module := option.partition("m")[2] or after) is not None
        and _MODULE.fullmatch(module) is not None
        for option, after in zip(words, [*words[1:], None], strict=False)
    )


def _is_open(part: Part | None) -> bool:
    return part is not None and part.open_ended


def _nameless(part: Part | None) -> bool:
    return part is not None and bool(part.words) and part.name is None


def _is_harmless(words: list[str | None]) -> bool:
    """Whether the words after the command only ask for help or for the version."""
    if words == ["--version"]:
        return True
    before, last = words[:-1], words[-1] if words else None
    return (
        last in {"--help", "-h"}
        and len(before) <= 2
        and all(word is not None and re.fullmatch(r"[a-z-]+", word) for word in before)
        and not any(word is not None and word.startswith("-") for word in before)
    )


def _runs_our_file(words: list[str | None]) -> bool:
    """Whether the first word that is not an option is a script of ours."""
    for before, word in zip([None, *words], words, strict=False):
        if word is not None and not word.startswith("-") and before not in {"-W", "-X"}:
            return _FILE_OF_OURS.fullmatch(word) is not None
    return False


# --- files -------------------------------------------------------------------------------------


class _PrivatePaths:
    """The private paths, prepared for comparison."""

    def __init__(self, private: Private, context: Context) -> None:
        home = context.home
        self._home = home.rstrip("/") if home is not None else None
        self._context = context
        self._folders = [_names(self._full(path)) for path in private.folders]
        self._open = [_names(self._full(path)) for path in private.open]
        self._fixed = [_names(self._full(path)) for path in private.fixed]
        self._texts = _private_names(private.folders)

    def reaches(self, need: Need, request: Request) -> bool:
        """Whether a need certainly reaches something private."""
        target = need.target
        if target is None:
            return False
        deep = (target.deep and not target.names) or _reads_below(need, request)
        folders = self._folders
        if need.kind is NeedKind.EDIT:
            folders = [*folders, *self._fixed]
        return any(self._meets(path, target, folders, deep=deep) for path in target.paths)

    def names_private_path(self, request: Request) -> bool:
        """Whether a command names a private path, where it is not known what the program does with
        it.

        Also where a recursive program gets no folder: it then uses the working directory.
        """
        parts = {id(need.part): need.part for need in request.needs if need.part is not None}
        if not self._folders or not parts:
            return False
        left = MOST_WORDS
        for part in parts.values():
            if self._goes_through_own(part, request):
                return True
            words = part.words[1 : 1 + left]
            left -= len(words)
            if any(self._is_word_there(word) for word in words):
                return True
        return False

    def is_path_there(self, text: str) -> bool:
        """Whether a text is the path of something private."""
        if not text.startswith(("/", "~", ".")) and "/" not in text:
            return False
        if len(text) > LONGEST_PATH or "\n" in text:
            return False
        return self._is_word_there(Word(source=text, text=text, tilde=text.startswith("~")))

    def _is_word_there(self, word: Word) -> bool:
        text = word.text
        if text is None or len(text) > LONGEST_PATH:
            return False
        forms = [word]
        # An option with its value, `if=FILE`, `@FILE`.
        for mark in "=@:":
            rest = text.partition(mark)[2]
            if rest.startswith(("/", "~", "./", "../")):
                tilde = rest.startswith("~")
                forms.append(Word(source=rest, text=rest, tilde=tilde, glob=word.glob))
        for form in forms:
            target = locate(form, self._context.cwd)
            paths = [self._full(path) for path in target.paths]
            resolve = self._context.resolve
            if resolve is not None and not target.glob:
                paths += [resolve(path) for path in paths if path.startswith("/")]
            if any(self._meets(path, target, self._folders, deep=False) for path in paths):
                return True
        return False

    def _goes_through_own(self, part: Part, request: Request) -> bool:
        if not _goes_deep(part) or any(
            need.part is part and need.target is not None for need in request.needs
        ):
            return False
        entered = [
            path for n in request.needs if _enters(n) and n.target for path in n.target.paths
        ]
        if self._context.cwd is not None:
            entered.append(self._context.cwd)
        here = Target(source=".", deep=True)
        return any(self._meets(path, here, self._folders, deep=True) for path in entered)

    def lists_private(self, need: Need) -> bool:
        """Whether a need lists all names in a folder that contains something private."""
        part, target = need.part, need.target
        if part is None or target is None or not _lists_deep(part):
            return False
        return any(self._meets(path, target, self._folders, deep=True) for path in target.paths)

    def is_named_in(self, text: str) -> bool:
        """Whether a text names something private, in quotes or without."""
        plain = text.translate(_UNQUOTED).casefold()
        return any(name in plain for name in self._texts)

    def _meets(self, path: str, target: Target, folders: list[list[str]], *, deep: bool) -> bool:
        way = _names(self._full(path))
        for folder in folders:
            if target.glob:
                met = _glob_meets(way, folder, deep=deep)
            else:
                met = way[: len(folder)] == folder or (deep and folder[: len(way)] == way)
            if met and not any(way[: len(each)] == each for each in self._open):
                return True
        return False

    def _full(self, path: str) -> str:
        if self._home is not None and (path == "~" or path.startswith("~/")):
            return self._home + path[1:]
        return path


def _private_names(folders: tuple[str, ...]) -> list[str]:
    """The texts that would name something private."""
    texts = {name.casefold() for name in (*_SECRET_FILES, *_VARIABLES)}
    for folder in folders:
        texts.add(folder.casefold())
        last = _names(folder)[-2:]
        if len(last) == 2:
            texts.add("/".join(last))
    return sorted(texts)


def _names(path: str) -> list[str]:
    """A path's names in one case, for file systems that ignore case."""
    return [name for name in path.casefold().split("/") if name not in {"", "."}]


def _glob_meets(pattern: list[str], folder: list[str], *, deep: bool) -> bool:
    """May a pattern mean something in the folder, or (`deep`) a folder around it?"""
    for wanted, name in zip(pattern, folder, strict=False):
        if wanted == "**":
            return True
        if any(mark in wanted for mark in "{[") or fnmatchcase(name, wanted):
            continue  # braces and classes are not worked out: they may mean it
        return False
    return deep or len(pattern) >= len(folder)


def _reads_below(need: Need, request: Request) -> bool:
    """Whether everything below a need's folder is read too."""
    if request.tool == "Grep":
        return True
    return need.part is not None and _goes_deep(need.part)


def _goes_deep(part: Part) -> bool:
    """Whether a program reads or changes everything below the folders that it is given."""
    if part.name is None or part.name in _LISTS_BELOW:
        return False
    if part.name in _READS_BELOW:
        return True
    return part.name in _READS_BELOW_WITH_OPTION and any(
        _RECURSIVE.match(word.prefix) is not None for word in part.words[1:]
    )


def _lists_deep(part: Part) -> bool:
    return part.name in _LISTS_BELOW or (
        part.name in {"ls", "dir", "vdir"} and any("R" in word.prefix for word in part.words[1:])
    )


def _enters(need: Need) -> bool:
    return need.part is not None and need.part.name in {"cd", "chdir", "pushd"}
