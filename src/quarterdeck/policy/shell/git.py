"""git: its own options, and the subcommands by a table for each (`tables/git-log.toml`).

This module knows what tables cannot say: settings that are given with `-c`, paths within `HEAD:a`
and pathspecs, subcommands that only look without some options, texts that git gives to a shell, and
the folder that it works in. A repository's own settings run programs, so git is only harmless in
the session's repository: `Target.repository` marks the folder, and `needs` decides.

A subcommand that is not listed may be an alias or any program called `git-NAME`: it is unknown.
"""

from __future__ import annotations

import re
import shlex

import msgspec

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.shell.effects import ProgramEffects, alters, reads, reads_only, runs, writes
from quarterdeck.policy.shell.options import Parsed, parse
from quarterdeck.policy.shell.pathspecs import files_within
from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.table_effects import effects_by_table
from quarterdeck.policy.shell.tables import Table, table_of
from quarterdeck.policy.shell.uses import Invocation, names_given, plain, words_of
from quarterdeck.policy.shell.working_dir import HARMLESS, WorkingDir

_SAFE_KEYS = re.compile(
    r"(?:user\.(?:name|email)|color\.\w+|advice\.\w+|core\.(?:quotepath|autocrlf|abbrev)"
    r"|init\.defaultbranch|commit\.gpgsign|tag\.gpgsign|log\.\w+|status\.\w+|diff\.(?:renames|context)"
    r"|rebase\.auto\w+|pull\.(?:rebase|ff)|push\.default|fetch\.prune|merge\.ff|column\.\w+)"
    r"(?:=.*)?",
    re.IGNORECASE | re.DOTALL,
)
"""Settings that change how git shows or merges things, never what it runs."""

_GLOBAL_VALUES = name_set(
    "-c -C --git-dir --work-tree --namespace --super-prefix --config-env --attr-source --list-cmds"
)
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
_ADDRESS = re.compile(r"(?i)(?:https?|ssh|git|ftps?)://|[\w.-]+@[\w.-]+:")
_REVISION = re.compile(
    r"\"?\$\(git (?:merge-base|describe|rev-parse(?: --short| --verify)*(?= HEAD))"
    r"(?: [\w./@~^=-]+)*\)(\.{2,3}[\w/~^-]*)?\"?"
)
"""The output of a command of git that prints a hash or the name of a tag. Such a name is no option,
and begins with no dot."""

_WITH_COMMIT = name_set(
    "--contains --no-contains --merged --no-merged --points-at --with --without"
)
"""Options that take a commit, or mean HEAD at the end of the command."""

_GLOBAL_CONFIG = Word(source="~/.gitconfig", text="~/.gitconfig", prefix="~/.gitconfig", tilde=True)
_RUNNING = {
    "difftool": "it starts a tool",
    "mergetool": "it starts a tool",
    "verify-commit": "it starts a program for signatures",
    "verify-tag": "it starts a program for signatures",
}
_CHANGING = {
    "branch": name_set("-d -D -m -M -c -C -u -f -t --unset-upstream --edit-description")
    | name_set("--create-reflog --set-upstream --recurse-submodules"),
    "tag": name_set("-a -s -u -d -m -F -f -e -v --create-reflog --cleanup --trailer"),
    "symbolic-ref": name_set("-d -m"),
}
"""Options with which a subcommand that lists things does something else."""

_LISTING = {
    "branch": _WITH_COMMIT | name_set("-l --list --show-current"),
    "tag": _WITH_COMMIT | name_set("-l --list -n"),
    "symbolic-ref": frozenset[str](),
}
"""Options with which operands do not make something."""

_MAKING = frozenset(_CHANGING) | frozenset(_LISTING) | name_set("symbolic-ref update-ref config")
"""Subcommands that list things, and also make things."""

_WITH_EXTRA = frozenset(_RUNNING) | name_set(
    "config remote submodule maintenance bisect symbolic-ref update-ref init format-patch clone"
)
"""Subcommands with effects that their tables cannot say."""

_SETTING = name_set("add set-url set-branches set-head rename remove rm update prune")
_NEW_FOLDERS = name_set("clone init worktree submodule bundle")
"""Their operands are addresses and folders, no pathspecs."""

_SAME_TABLE = {
    ("stash", "list"): "git-log",
    ("stash", "show"): "git-diff",
    ("reflog", "show"): "git-log",
}


class _Call(Value):
    """A call of git: its subcommand, the words of that, and where it works."""

    name: str
    words: tuple[Word, ...]
    """The name and what comes after it."""

    table: Table
    parsed: Parsed
    here: WorkingDir
    via: str | None = None
    moved: bool = False
    """It does not work in the folder that the session started in."""

    @property
    def given(self) -> frozenset[str]:
        """Its options by their first names."""
        return names_given(self.parsed)


_PLAIN = ProgramEffects(judged=True)
"""The effects of git itself, without options of its own."""


def git(use: Invocation) -> ProgramEffects:
    """The effects of a git command beyond its usual work."""
    if [word for word in use.words if word.text is None]:
        use = msgspec.structs.replace(use, words=tuple(map(_revision, use.words)))
    parsed = use.parse()
    own, where = _PLAIN, use.here
    effects: list[Effect] = []
    if parsed.options or parsed.unknown or parsed.open or use.via is not None:
        own = effects_by_table("git", use.table, use.words, use.here, via=use.via, parsed=parsed)
        where = _where(parsed, use.here)
        effects += [*own.effects, *_settings(parsed)]
    if "--icase-pathspecs" in [each.typed for each in parsed.options]:
        effects.append(reads(Target(source="--icase-pathspecs"), "git finds other spellings"))
    rest = parsed.operands
    if not rest:
        return msgspec.structs.replace(own, effects=tuple(effects), looks=reads_only(effects))
    name = rest[0].literal
    if name is None:
        effects.append(runs("the git command is known only at run time", rest[0].source))
        return ProgramEffects(effects=(*effects, *_every_word(rest, where)), judged=True)
    effects.extend(_place(use, parsed, where))
    scripts = _alias(name, parsed, rest[1:]) if parsed.options else ()
    table = table_of(f"git-{name}")
    if table is None:
        effects.append(runs(f"git {name} is not known: it may run any program", name))
        if name == "lfs" and any(word.text in {"install", "uninstall"} for word in rest):
            effects.extend(_installs(where))
        return ProgramEffects(
            effects=(*effects, *_every_word(rest[1:], where)), scripts=scripts, judged=True
        )
    found = _subcommand(name, table, rest, where, use.via, bool(words_of(parsed, "-C")))
    quiet = reads_only(effects)
    return msgspec.structs.replace(
        found,
        effects=(*effects, *found.effects),
        fetches=(*own.fetches, *found.fetches),
        scripts=(*scripts, *found.scripts),
        looks=found.looks and quiet,
        judged=True,
    )


def _revision(word: Word) -> Word:
    """A word that is certainly a revision, although git finds it out at run time."""
    found = _REVISION.fullmatch(word.source) if word.text is None else None
    return word if found is None else plain(f"HEAD{found[1] or ''}")


def git_program(use: Invocation) -> ProgramEffects:
    """`git-push`, or `/usr/lib/git-core/git-push`: the subcommand as a program of its own."""
    words = ("git", use.table.name.removeprefix("git-"))
    texts = [word.source for word in use.words[1:]]
    called = (use.words[0].literal or "").rpartition("/")[2].removeprefix("git-")
    script = " ".join((words[0], shlex.quote(called or words[1]), *texts))
    return ProgramEffects(scripts=(script,), judged=True)


def _where(parsed: Parsed, here: WorkingDir) -> WorkingDir:
    for word in words_of(parsed, "-C"):
        if word.text != "":
            here = here.into(word)
    return here


def _settings(parsed: Parsed) -> list[Effect]:
    """Settings that are given with -c: some of them run programs."""
    return [
        runs("a setting may make git run a program", word.prefix.partition("=")[0] or word.source)
        for word in words_of(parsed, "-c")
        if word.text is None or not _SAFE_KEYS.fullmatch(word.text)
    ]


def _place(use: Invocation, parsed: Parsed, where: WorkingDir) -> list[Effect]:
    """The folder that git works in: it may be another repository than the session's."""
    moves = words_of(parsed, "-C")
    paths = tuple([path for path, _ in where.dirs])
    if not moves:
        here = Target(source="the working folder", paths=paths, repository=True)
        return [reads(here, "git works there")]
    # A `..` behind a link leads elsewhere, and the folder is not known then.
    sure = all(use.here.target(word).sure for word in moves[:1]) and len(moves) < 2
    source = " ".join(word.source for word in moves)
    target = Target(source=source, paths=paths, sure=sure, repository=True)
    return [reads(target, "git works there")]


def _alias(name: str, parsed: Parsed, words: tuple[Word, ...]) -> tuple[str, ...]:
    """What an alias that is set in the command runs."""
    found: list[str] = []
    rest = " ".join(word.source for word in words)
    for word in words_of(parsed, "-c"):
        key, _, value = (word.text or "").partition("=")
        if key.lower() != f"alias.{name.lower()}" or not value:
            continue
        text = value[1:] if value.startswith("!") else f"git {value}"
        found.append(f"{text} {rest}".strip())
    return tuple(found)


# --- subcommands -------------------------------------------------------------------------------


def _subcommand(
    name: str,
    table: Table,
    rest: tuple[Word, ...],
    where: WorkingDir,
    via: str | None,
    moved: bool,
) -> ProgramEffects:
    words = rest
    second = rest[1].literal if len(rest) > 1 else None
    other = _SAME_TABLE.get((name, second or ""))
    if name == "reflog" and (second is None or second not in table.subcommands) and other is None:
        other = "git-log"
    elif other is not None:
        words = (rest[0], *rest[2:])
    if other is not None:
        table = table_of(other) or table
    if name in _LISTING or name == "for-each-ref":
        words = _without_last(words)
    parsed = parse(words, table)
    found = effects_by_table(f"git {name}", table, words, where, via=via, parsed=parsed)
    if len(rest) == 1 and name not in _WITH_EXTRA and name not in _MAKING:
        # There are no words that could be files, addresses or texts for a shell.
        return found
    call = _Call(
        name=name,
        words=words,
        table=table,
        parsed=parsed,
        here=where,
        via=via,
        moved=moved or any(loose for _, loose in where.dirs),
    )
    more = _extra(call) if name in _WITH_EXTRA else []
    looks = found.looks and (name not in _MAKING or _only_lists(call))
    more = [*_files(call), *more, *_addresses(call)]
    return msgspec.structs.replace(
        found,
        effects=(*found.effects, *more),
        fetches=(*found.fetches, *_hosts(call)),
        scripts=_scripts(name, rest),
        looks=looks and reads_only(more),
    )


def _without_last(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """`git branch --merged` is `git branch --merged HEAD`."""
    if len(words) > 1 and words[-1].literal in _WITH_COMMIT:
        return (*words, plain("HEAD"))
    return words


def _only_lists(call: _Call) -> bool:
    """Whether a subcommand that can also make things just lists them."""
    given, operands = call.given, call.parsed.operands
    if given & _CHANGING.get(call.name, frozenset()):
        return False
    if call.name == "symbolic-ref":
        return len(operands) < 2
    if call.name == "update-ref":
        return False
    if call.name in _LISTING:
        return not operands or bool(given & _LISTING[call.name])
    if call.name == "config":
        return not _sets(call)
    return True


def _sets(call: _Call) -> bool:
    """Does `git config` set something?"""
    given = call.given
    if given & {"--replace-all", "-e"}:
        return True
    return not given & {"--get"} and len(call.parsed.operands) > 1


def _extra(call: _Call) -> list[Effect]:
    """Effects of single subcommands that their tables cannot say."""
    name, operands = call.name, call.parsed.operands
    # The subcommand of the subcommand, such as `add` of remote.
    first = call.parsed.table.name.partition(" ")[2]
    if name == "config" and _sets(call):
        return _config(call)
    if name in _RUNNING:
        return [runs(f"git {name} may run other code: {_RUNNING[name]}", name)]
    if name == "remote" and first in _SETTING:
        return [alters(f"git remote {first} changes the effect of later commands", first)]
    if name == "submodule" and first in {"foreach", "update", "add", "set-url", "sync"}:
        return [runs(f"git submodule {first} may run other code", first)]
    if name == "maintenance" and first != "run":
        return _installs(call.here)
    if name == "bisect" and first == "run":
        return [runs("git bisect run runs a command", "run")]
    if name in {"symbolic-ref", "update-ref"} and operands and not _only_lists(call):
        # Any file in `.git` may be taken for a reference.
        named = operands[0].text or ""
        inside = call.here.target(plain(f".git/{named}") if named else operands[0])
        plainly = named == "HEAD" or named.startswith("refs/")
        return [] if plainly else [writes(inside, f"git {name} writes it")]
    if name == "init" and "--template" in call.given:
        folder = (operands[0].text or "") if operands else "."
        target = call.here.target(plain(f"{folder or '.'}/.git"))
        target = msgspec.structs.replace(target, deep=True)
        return [writes(target, "git init --template copies files into it")]
    if name == "format-patch" and not call.given & {"--stdout", "-o", "--output"}:
        return [writes(call.here.target(plain(".")), "git format-patch writes files", own=True)]
    if name == "clone" and len(operands) == 1:
        made = (operands[0].text or "").rstrip("/").removesuffix("/.git").removesuffix(".git")
        made = re.split(r"[/:]", made)[-1]
        target = call.here.target(plain(made)) if made else Target(source=operands[0].source)
        return [writes(target, "git clone makes it", own=True)]
    return []


def _config(call: _Call) -> list[Effect]:
    """Settings change what git runs later. They are in files that rules may protect."""
    key = call.parsed.operands[0].text if call.parsed.operands else None
    effects: list[Effect] = [alters("git config changes the effect of later commands", "config")]
    if key is not None and _SAFE_KEYS.fullmatch(key) and not call.given & {"-f", "-e"}:
        return effects
    files = words_of(call.parsed, "-f")
    places = {each.typed[:4] for each in call.parsed.options if each.option.name == "--global"}
    if "--sy" in places:
        files.append(plain("/etc/gitconfig"))
    elif "--gl" in places:
        files.append(_GLOBAL_CONFIG)
    elif not files:
        files.append(plain(".git/config"))
        if call.moved:
            files.append(plain("config"))
    effects.extend(writes(call.here.target(word), "git config changes it") for word in files)
    return effects


def _scripts(name: str, rest: tuple[Word, ...]) -> tuple[str, ...]:
    """Texts that git gives to a shell, where they are written out."""
    found: list[str] = []
    if name == "rebase":
        table = table_of("git-rebase")
        values = words_of(parse(rest, table), "-x") if table is not None else []
        found += [word.text for word in values if word.text]
    if name in {"bisect", "submodule"}:
        mark = "run" if name == "bisect" else "foreach"
        for at, word in enumerate(rest):
            if word.text == mark:
                texts = [each.text or each.source for each in rest[at + 1 :]]
                found.append(" ".join(text for text in texts if text != "--recursive"))
    return tuple(found)


# --- files and addresses -----------------------------------------------------------------------


def _files(call: _Call) -> list[Effect]:
    """Files that are named within other words: `HEAD:a`, `:(top)a`, `1,3:a`, `'*.env'`."""
    kinds = {each.kind for each in call.parsed.table.operands or ()}
    named = list(_file_words(call)) if kinds & {"read", "write", "move"} else []
    named += words_of(call.parsed, "-L", "--blob", "--find-object")
    # For git, `-` is a file of that name.
    effects: list[Effect] = [
        writes(call.here.target(plain("./-")), "git writes it")
        for word in words_of(call.parsed, "--output")
        if word.text == "-"
    ]
    for word in named:
        for target in files_within(word, call.here):
            if kinds <= {"write", "move"}:
                effects.append(writes(target, f"git {call.name} changes it", own=True))
            else:
                effects.append(reads(target, f"git {call.name} reads it"))
    if _outside_of_repository(call):
        effects.extend(_deep(call))
    if call.name in {"checkout", "restore", "reset"} and "-p" in call.given:
        effects.extend(
            reads(call.here.target(word), f"git {call.name} -p shows it")
            for word in call.parsed.operands
        )
    return effects


def _file_words(call: _Call) -> tuple[Word, ...]:
    """The operands that are files or revisions: not the pattern of `git grep`."""
    if call.name in _NEW_FOLDERS:
        return ()
    spec = call.parsed.table.operands or ()
    skipped = bool(spec) and spec[0].kind == "skip"
    instead = any("instead" in each.option.marks for each in call.parsed.options)
    return call.parsed.operands[1 if skipped and not instead else 0 :]


def _outside_of_repository(call: _Call) -> bool:
    """Whether `git diff` compares any files, with all below them: also where it is not said."""
    if call.name != "diff":
        return False
    texts = [word.prefix for word in call.parsed.operands]
    return "--no-index" in call.given or any(
        text.startswith(("/", "~")) or ".." in text.split("/") for text in texts
    )


def _deep(call: _Call) -> list[Effect]:
    targets = [call.here.target(word) for word in call.parsed.operands if word.text not in HARMLESS]
    return [
        reads(msgspec.structs.replace(each, deep=True, hidden=True), "git diff reads all below it")
        for each in targets
        if not each.glob
    ]


def _installs(here: WorkingDir) -> list[Effect]:
    """What `git lfs install` and `git maintenance register` change."""
    hooks = msgspec.structs.replace(here.target(plain(".git/hooks")), deep=True)
    return [
        writes(here.target(_GLOBAL_CONFIG), "it sets filters or tasks for all repositories"),
        writes(hooks, "it may make hooks"),
    ]


def _every_word(words: tuple[Word, ...], here: WorkingDir) -> list[Effect]:
    """For a subcommand that is not known: every word may be a file."""
    found: list[Effect] = []
    for word in words[:300]:
        text = word.text
        if text is not None and text.startswith("-"):
            value = text.partition("=")[2]
            targets = [here.target(plain(value))] if value else []
        else:
            targets = [here.target(word), *files_within(word, here)]
        for target in targets:
            found.append(reads(target, "git may read it"))
            found.append(writes(target, "git may write it"))
    return found


def _addresses(call: _Call) -> list[Effect]:
    """Addresses that make git run a program, and repositories in other folders."""
    effects: list[Effect] = []
    for word in call.words[1:]:
        text = word.prefix
        value = text.partition("=")[2] if text.startswith("-") else text
        if _HELPER.match(value) or "oProxyCommand" in text or "://-" in text:
            effects.append(runs("this address makes git run a program", word.source))
    if call.name not in {"fetch", "pull", "push", "ls-remote", "clone"}:
        return effects
    for word in call.parsed.operands[:1]:
        path = word.prefix.removeprefix("file://")
        if word.text is not None and path.startswith(("/", ".", "~")):
            near = Word(source=word.source, text=path, prefix=path, tilde=word.tilde)
            target = msgspec.structs.replace(call.here.target(near), deep=True)
            effects.append(reads(target, f"git {call.name} uses the repository"))
            if call.name == "push":
                effects.append(writes(target, "git push changes the repository"))
    return effects


def _hosts(call: _Call) -> list[str]:
    if call.name not in {"clone", "fetch", "pull", "push", "ls-remote", "remote", "submodule"}:
        return []
    return [
        word.text
        for word in call.parsed.operands
        if word.text is not None and _ADDRESS.match(word.text)
    ]


def git_without_options(words: list[str]) -> list[str]:
    """The words of git from the subcommand on: `git -C x push` is a push too."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        name, equals, _ = words[at].partition("=")
        at += 2 if name in _GLOBAL_VALUES and not equals else 1
    return words[at:]
