"""Needs: the things that must each be allowed before a tool call may run.

A call is split once, and every rule, Claude Code's or ours, is compared with the parts: to allow a
call, every need must be allowed; deny and ask apply to any. It knows no rules. It looks nothing up:
facts that the caller does not give are unknown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import islice

import msgspec
from msgspec import Raw

from quarterdeck.domain.structs import Value
from quarterdeck.policy.cached_property import cached
from quarterdeck.policy.cli_files import OWN_TOOLS, is_own_file
from quarterdeck.policy.dashes import resolve_dashes
from quarterdeck.policy.folders import Folders
from quarterdeck.policy.hosts import host_in, host_of
from quarterdeck.policy.moves import Moved, moved_by, other_names
from quarterdeck.policy.paths import before_wildcard, is_inside, is_protected, linked_targets
from quarterdeck.policy.repositories import Looking, other_repositories, repositories_in
from quarterdeck.policy.searches import reach_of
from quarterdeck.policy.shell import (
    LIMIT,
    UNTOUCHED,
    Effect,
    EffectKind,
    Part,
    Script,
    Target,
    Word,
    finds_hidden,
    locate,
    read,
)
from quarterdeck.policy.shell.working_dir import LONGEST
from quarterdeck.policy.trees import LookBelow
from quarterdeck.policy.written_files import WRITTEN, mark_written, written_by

MOST_NEEDS = 120
"""The number of parts and files of one command that are checked. Every rule is compared with each
of them, and each path is resolved, while all agents wait. For a larger command a person is asked.
"""

MOST_WIDE = 16
"""Patterns, and folders that are used with all that is below them. To compare one of them with a
rule takes long."""

MOST_PAIRS = 1_500
"""Files under new names, times files that are used: each is compared with each."""

MOST_PROBLEMS = 100
"""The number of unknown parts that are listed for one command. A rule allows all of them or
none."""


class NeedKind(StrEnum):
    """The kind of a need."""

    TOOL = "tool"
    """The tool itself: MCP tools, Agent, WebSearch, and all tools without finer needs."""

    COMMAND = "command"
    """One part of a shell command, with its effects."""

    EDIT = "edit"
    """A path is written: by Edit and Write, a redirection, `tee`, `rm` …"""

    READ = "read"
    FETCH = "fetch"
    """A host is fetched from."""

    UNKNOWN = "unknown"
    """Unknown before it runs. Only a rule for the whole tool, or for exactly this command, allows
    it."""


class Need(Value):
    """One thing that has to be allowed."""

    kind: NeedKind
    what: str
    """For people: the command's text, the path, the host."""

    part: Part | None = None
    target: Target | None = None
    host: str | None = None
    why: str = ""
    """Why there is this need, where it is not plain: `tee writes it`."""

    free: bool = False
    """Needs no rule to be allowed, as with the CLI: a read in the session's folders, `cd` there,
    `echo`. Deny and ask rules catch it all the same."""

    own: bool = False
    """A rule that allows its part allows it too: a file in the session's folders which the command
    is there to write, as with `touch`."""


class Context(Value, dict=True):
    """The caller's knowledge about the place where a call would run. Nothing is looked up."""

    cwd: str | None = None
    home: str | None = None
    directories: tuple[str, ...] = ()
    """Folders besides `cwd` that the session may work in (`--add-dir`)."""

    settings: str | None = None
    """The project's folder, the base of rules from its settings; `cwd` if not given."""

    resolve: Callable[[str], str] | None = None
    """Gives the true path behind links, for a caller that can look. Without it, paths are taken by
    their text, and a path that a link could bend is not allowed by rule."""

    exists: Callable[[str], bool] | None = None
    """Says whether there is a file or folder at a path, for a caller that can look."""

    below: LookBelow | None = None
    """Says what is below a folder, for a caller that can look."""

    written: frozenset[str] = frozenset()
    """Files that earlier calls of the session have written. What is in them comes from the agent:
    a rule for a command does not mean running it."""

    @cached
    def folders(self) -> Folders:
        """Where the patterns of rules are relative to."""
        return Folders(
            cwd=self.cwd, home=self.home, settings=self.settings or self.cwd, below=self.below
        )

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that the session works in."""
        return self.directories if self.cwd is None else (self.cwd, *self.directories)


class Request(Value):
    """A tool call, taken apart."""

    tool: str
    needs: tuple[Need, ...]
    script: Script | None = None
    command: str | None = None
    """The whole command, for Bash: a rule without wildcards may name exactly it."""

    name: str | None = None
    """The subject of an Agent, Skill or similar call: the subagent's type."""


_FILES = {
    "Read": ("file_path", NeedKind.READ),
    "NotebookRead": ("notebook_path", NeedKind.READ),
    "Edit": ("file_path", NeedKind.EDIT),
    "MultiEdit": ("file_path", NeedKind.EDIT),
    "Write": ("file_path", NeedKind.EDIT),
    "NotebookEdit": ("notebook_path", NeedKind.EDIT),
}
_SEARCHES = frozenset({"Glob", "Grep", "LS"})
_NAMES = {"Agent": "subagent_type", "Task": "subagent_type", "Skill": "skill"}
_COMMANDS = frozenset({"Bash", "Monitor"})
_NO_SHELL = frozenset({"SlashCommand", "Skill", "PowerShell"})
"""Tools whose `command` is not one of a shell."""

_PATHS = ("file_path", "notebook_path", "path")
_BLANKS = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What JavaScript's `trim` cuts off."""

_NAMES_ONLY = frozenset({None, "files_with_matches", "count"})
"""Output modes of a search that do not show lines of files."""

_LEADS_OUT = re.compile(r"^\s*[/~]|[{,]\s*[/~]|\.\.")
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_TEXT = msgspec.json.Decoder(str)
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def needs_of(tool: str, json: Raw, context: Context) -> Request:
    """Take a call apart. Never raises: an input that cannot be read is a need that is unknown."""
    try:
        return _needs_of(tool, json, context)
    except Exception as error:  # noqa: BLE001 - a fault of ours must not let anything pass
        return _unknown(tool, f"it could not be analysed ({type(error).__name__})")


def _needs_of(tool: str, json: Raw, context: Context) -> Request:
    try:
        members = _MEMBERS.decode(json)
    except _UNREADABLE:
        return _unknown(tool, "its input cannot be read")
    if tool in _COMMANDS:
        command = _text(members, "command")
        return (
            _unknown(tool, "it has no command")
            if command is None
            else _shell(tool, command, context)
        )
    if tool in _FILES:
        member, kind = _FILES[tool]
        path = _text(members, member)
        return (
            _unknown(tool, f"it has no {member}")
            if path is None
            else _file(tool, kind, path, context)
        )
    if tool in _SEARCHES:
        return _search(tool, members, context)
    if tool == "WebFetch":
        url = _text(members, "url")
        host = None if url is None else host_of(url)
        if host is None:
            return _unknown(tool, "its host is not clear")
        return Request(tool=tool, needs=(Need(kind=NeedKind.FETCH, what=host, host=host),))
    if tool == "PowerShell":
        return _unknown(tool, "PowerShell is not supported")
    name = _text(members, _NAMES[tool]) if tool in _NAMES else None
    what = f"{tool}({name})" if name else tool
    whole = Need(kind=NeedKind.TOOL, what=what, free=tool in OWN_TOOLS)
    if name is None and not tool.startswith("mcp__") and tool not in _NO_SHELL:
        return _unknown_tool(tool, whole, members, context)
    return Request(tool="Agent" if tool == "Task" else tool, needs=(whole,), name=name)


def _unknown_tool(tool: str, whole: Need, members: dict[str, Raw], context: Context) -> Request:
    """A tool of the CLI that is not known here. Its members are taken for what they are called, so
    that rules which stop commands, files and hosts hold for it. MCP tools are their own.
    """
    needs = [whole]
    for member in _PATHS:
        path = _text(members, member)
        if path is not None:
            for kind in (NeedKind.READ, NeedKind.EDIT):
                needs.extend(_file(tool, kind, path, context).needs)
    url = _text(members, "url")
    if url is not None:
        needs.append(Need(kind=NeedKind.FETCH, what=url[:200], host=host_of(url)))
    command = _text(members, "command")
    if command is None:
        return Request(tool=tool, needs=tuple(needs))
    shell = _shell(tool, command, context)
    return msgspec.structs.replace(shell, needs=(*needs, *shell.needs))


def files_written(tool: str, json: Raw, cwd: str | None) -> frozenset[str]:
    """The files that a call writes, as far as they are known. Never raises."""
    request = needs_of(tool, json, Context(cwd=cwd))
    return frozenset(
        written_by(
            (need.part, need.target)
            for need in request.needs
            if need.kind is NeedKind.EDIT and need.target is not None
        )
    )


def _text(members: dict[str, Raw], name: str) -> str | None:
    try:
        return _TEXT.decode(members[name])
    except (KeyError, *_UNREADABLE):
        return None


def _unknown(tool: str, why: str) -> Request:
    return Request(tool=tool, needs=(Need(kind=NeedKind.UNKNOWN, what=tool, why=why),))


def _resolve_links(target: Target, context: Context) -> Target:
    """Add the path behind links, if the caller can resolve it."""
    if target.glob and not target.sure and target.paths and ".." not in target.source:
        # A folder that a pattern finds may be a link: is one there?
        plain = context.below is not None and not linked_targets(target, context.folders)
        target = msgspec.structs.replace(target, sure=plain)
    if context.resolve is None or not target.paths:
        return target
    true: list[str] = []
    for path in target.paths:
        full = path
        if path.startswith("~"):
            if context.home is None:
                return target
            full = context.home.rstrip("/") + path[1:]
        if not full.startswith("/"):
            return target
        # A link before a `..` changes the path: then the text is not enough.
        folder = (before_wildcard(full).rstrip("/") or "/") if target.glob else full
        found = context.resolve(folder)
        rest = full[len(folder) :].lstrip("/") if target.glob else ""
        true.append(f"{found.rstrip('/')}/{rest}" if rest else found)
    if not target.sure:
        return msgspec.structs.replace(target, paths=tuple(dict.fromkeys((*target.paths, *true))))
    return msgspec.structs.replace(
        target, paths=tuple(dict.fromkeys((*target.paths, *true))), sure=True
    )


def _file(tool: str, kind: NeedKind, path: str, context: Context) -> Request:
    target = _resolve_links(_locate(path, context), context)
    edit = kind is NeedKind.EDIT
    free = not edit and is_inside(target, context.roots, context.home)
    free = free or is_own_file(target, context.home, edit=edit)
    need = Need(kind=kind, what=path[:LONGEST], target=target, free=free)
    return Request(tool=tool, needs=(need,))


def _locate(path: str, context: Context) -> Target:
    """The file that a tool's path names: literally, and as the CLI reads it.

    The CLI strips blanks at both ends and composes characters. If that gives another path, both are
    used, because not every version does so.
    """
    if "\0" in path or len(path) > LONGEST:
        return Target(source=path[:200])
    found: list[Target] = []
    for text in dict.fromkeys((unicodedata.normalize("NFC", path.strip(_BLANKS)), path)):
        # A tool's path is not a shell word: only `~` is expanded.
        word = Word(source=path, text=text, prefix=text, tilde=text.startswith("~"))
        found.append(locate(word, context.cwd))
    if not all(target.paths for target in found):
        return Target(source=path)
    return msgspec.structs.replace(
        found[0],
        paths=tuple(dict.fromkeys(each for target in found for each in target.paths)),
        sure=all(target.sure for target in found),
    )


def _search(tool: str, members: dict[str, Raw], context: Context) -> Request:
    path = _text(members, "path") if "path" in members else context.cwd or "."
    pattern = _text(members, "pattern") or ""
    if path is None or len(pattern) > LIMIT:
        return _unknown(tool, "its path or pattern is not a text, or too long")
    request = _file(tool, NeedKind.READ, path, context)
    needs = list(request.needs)
    if tool == "Glob" and _LEADS_OUT.search(pattern):
        why = "its pattern leads out of its folder"
        needs.append(Need(kind=NeedKind.READ, what=pattern, target=Target(source=pattern), why=why))
    elif tool == "Glob" and (named := before_wildcard(f"{pattern}/").rstrip("/")):
        # The folders that the pattern writes out are looked into.
        why = "its pattern names it"
        needs.extend(
            msgspec.structs.replace(need, what=pattern[:200], why=why)
            for need in _file(tool, NeedKind.READ, f"{path.rstrip('/')}/{named}", context).needs
        )
    glob, shown = members.get("glob"), _text(members, "output_mode")
    if tool == "Grep" and needs[0].target is not None and (glob or shown not in _NAMES_ONLY):
        reach = reach_of(needs[0].target, _text(members, "glob"), _text(members, "type"))
        why = "it reads all files there"
        needs.append(Need(kind=NeedKind.READ, what=reach.source, target=reach, why=why, free=True))
    return Request(tool=tool, needs=tuple(needs))


# --- shell commands ----------------------------------------------------------------------------


def _shell(tool: str, command: str, context: Context) -> Request:
    script = mark_written(read(command, cwd=context.cwd), context.written, context.resolve)
    script = resolve_dashes(script, context.cwd, context.below)
    needs: list[Need] = []
    for part in script.parts:
        needs.extend(islice(_of_part(part, context), MOST_NEEDS + 1 - len(needs)))
    wide = [
        at for at, each in enumerate(needs) if each.target is not None and _is_wide(each.target)
    ]
    if len(wide) > MOST_WIDE:
        why = f"it has more than {MOST_WIDE} patterns and folders"
        needs[wide[MOST_WIDE] :] = [Need(kind=NeedKind.UNKNOWN, what=command[:200], why=why)]
    if any(map(finds_hidden, script.parts)):
        needs = [_with_hidden(need) for need in needs]
    if len(needs) > MOST_NEEDS:
        why = f"it has more than {MOST_NEEDS} parts and files"
        needs[MOST_NEEDS:] = [Need(kind=NeedKind.UNKNOWN, what=command[:200], why=why)]
    moved = moved_by(script.parts)
    if moved or any([each.target is not None and each.target.glob for each in needs]):  # noqa: C419
        needs.extend(islice(_by_other_names(script, needs, moved, context), MOST_NEEDS))
    if used := repositories_in(script):
        look = Looking(
            root=context.settings or context.cwd, resolve=context.resolve, exists=context.exists
        )
        why = "git may work in another repository there, whose settings run programs"
        needs.extend(
            Need(kind=NeedKind.UNKNOWN, what=f"git in {target.source}", why=why)
            for target in islice(other_repositories(script, used, look), 1)
        )
    needs += [
        Need(kind=NeedKind.UNKNOWN, what=problem.source or command[:200], why=problem.why)
        for problem in script.problems[:MOST_PROBLEMS]
    ]
    if not needs:
        # Only assignments, tests and comments: there is nothing to allow, and nothing to name.
        needs.append(Need(kind=NeedKind.COMMAND, what=command[:200], free=True))
    return Request(tool=tool, needs=tuple(needs), script=script, command=command)


def _by_other_names(
    script: Script, needs: list[Need], moved: list[Moved], context: Context
) -> Iterator[Need]:
    """Files that are used under a name which the script itself, or a link, gives to them."""
    if len(moved) * len(needs) > MOST_PAIRS:
        why = "it moves, copies or links too many files"
        yield Need(kind=NeedKind.UNKNOWN, what=(script.source)[:200], why=why)
        return
    for need in list(needs):
        target = need.target
        if target is None or need.kind not in {NeedKind.READ, NeedKind.EDIT}:
            continue
        edit = need.kind is NeedKind.EDIT
        by_others = [each for each in moved if each.part is not need.part]
        others = list(other_names(target, by_others, edit=edit)) if by_others else []
        if target.glob:
            others += linked_targets(target, context.folders)
        for other in others:
            true = _resolve_links(other, context)
            free = not edit and is_inside(true, context.roots, context.home)
            why = f"{target.source} may be another name of it"
            yield msgspec.structs.replace(need, target=true, why=why, free=free, own=False)


def _is_wide(target: Target) -> bool:
    return target.glob or (target.deep and not target.names)


def _with_hidden(need: Need) -> Need:
    target = need.target
    if target is None or not target.glob:
        return need
    found = msgspec.structs.replace(target, hidden=True)
    return msgspec.structs.replace(need, target=found)


def _of_part(part: Part, context: Context) -> Iterator[Need]:
    if part.words:
        whys = [effect.why for effect in part.effects if effect.token == WRITTEN]
        free = _free(part, context)
        why = whys[0] if whys else ""
        yield Need(kind=NeedKind.COMMAND, what=part.text, part=part, why=why, free=free)
    for effect in part.effects:
        if effect.target is not None and not effect.target.repository:
            yield _of_effect(part, effect, effect.target, context)
    for target in part.reads:
        yield _read(part, target, "it is read as input", context)
    for address in part.fetches:
        # A command that contacts a host needs no second rule for that, but rules for hosts stop it.
        yield Need(
            kind=NeedKind.FETCH,
            what=address or part.text,
            part=part,
            host=host_in(address),
            why=f"{part.name} contacts it",
            free=True,
        )
    for target in part.writes:
        true = _resolve_links(target, context)
        why = "it is written as output"
        yield Need(kind=NeedKind.EDIT, what=target.source, part=part, target=true, why=why)


def _free(part: Part, context: Context) -> bool:
    # `cat` alone passes its input on, as in `git commit -m "$(cat <<'EOF' …)"`.
    passes = part.name == "cat" and len(part.words) == 1 and not part.open_ended
    if part.via or not (passes or part.name in UNTOUCHED) or part.words[0].source != part.name:
        return False
    if any(effect.target is None for effect in part.effects):
        return False
    if part.name != "cd":
        return True
    targets = [each.target for each in part.effects if each.target is not None]
    return all(
        is_inside(_resolve_links(each, context), context.roots, context.home) for each in targets
    )


def _read(part: Part, target: Target, why: str, context: Context) -> Need:
    true = _resolve_links(target, context)
    free = is_inside(true, context.roots, context.home)
    free = free or is_own_file(true, context.home, edit=False)
    return Need(kind=NeedKind.READ, what=target.source, part=part, target=true, why=why, free=free)


def _of_effect(part: Part, effect: Effect, target: Target, context: Context) -> Need:
    if effect.kind is EffectKind.READS:
        need = _read(part, target, effect.why, context)
        return msgspec.structs.replace(need, free=True) if effect.maybe else need
    true = _resolve_links(target, context)
    own = effect.own and is_inside(true, context.roots, context.home) and not is_protected(true)
    return Need(
        kind=NeedKind.EDIT, what=target.source, part=part, target=true, why=effect.why, own=own
    )
