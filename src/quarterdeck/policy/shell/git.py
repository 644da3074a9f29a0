"""git: the options, settings and subcommands that run other programs or write files."""

from __future__ import annotations

import re

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.effects import ProgramEffects, alters, reads, runs, writes
from quarterdeck.policy.shell.options import Options, option
from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.working_dir import WorkingDir

_SAFE_KEYS = re.compile(
    r"(?:user\.(?:name|email)|color\.\w+|advice\.\w+|core\.(?:quotepath|autocrlf|abbrev)"
    r"|init\.defaultbranch|commit\.gpgsign|tag\.gpgsign|log\.\w+|status\.\w+|diff\.(?:renames|context)"
    r"|rebase\.auto\w+|pull\.(?:rebase|ff)|push\.default|fetch\.prune|merge\.ff|column\.\w+)"
    r"(?:=.*)?",
    re.IGNORECASE | re.DOTALL,
)
"""Settings that change how git shows or merges things, never what it runs."""

_GLOBAL_VALUES = name_set(
    "-c -C --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr-source"
)
_GLOBAL_RISKS = name_set("--git-dir --work-tree --exec-path --config-env --namespace")
_ANYWHERE = (
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--ext-diff",
    "--textconv",
    "--extcmd",
    "--open-files-in-pager",
    "--template",
    "--config",
    "--filters",
    "--unsafe-paths",
    "--strategy",
    "--sendmail-cmd",
    "--smtp-server",
    "--to-cmd",
    "--cc-cmd",
    "--separate-git-dir",
    "--run",
    "--command",
)
_BY_SUBCOMMAND = {
    "rebase": ("-x", "-s"),
    "clone": ("-u", "-c"),
    "grep": ("-O",),
    "difftool": ("-x", "-t", "--tool", "difftool"),
    "mergetool": ("-t", "--tool", "mergetool"),
    "merge": ("-s",),
    "pull": ("-s",),
    "archive": ("--remote",),
    "svn": ("svn",),
    "p4": ("p4",),
    "bisect": ("run",),
    "submodule": ("foreach", "update", "add"),
    "filter-branch": ("filter-branch",),
    "filter-repo": ("filter-repo",),
    "hook": ("hook",),
    "send-email": ("send-email",),
    "config": ("config",),
    "credential": ("credential",),
    "daemon": ("daemon",),
    "instaweb": ("instaweb",),
    "web--browse": ("web--browse",),
    "help": ("-w", "-i", "--web", "--info"),
    "maintenance": ("start", "register"),
    "remote": ("add", "set-url"),
    "replace": ("replace",),
    "update-index": ("update-index",),
    "fast-import": ("fast-import",),
    "request-pull": ("request-pull",),
    "gui": ("gui",),
    "citool": ("citool",),
    "shell": ("shell",),
    "upload-pack": ("upload-pack",),
    "receive-pack": ("receive-pack",),
    "lfs": ("lfs",),
}
_WRITES = (
    "--output",
    "--output-directory",
)


def git(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    """The effects of a git command beyond its usual work."""
    effects, at = _global(words, here)
    rest = words[at:]
    if not rest:
        return ProgramEffects(effects=tuple(effects))
    name = rest[0].literal
    if name is None:
        effects.append(runs("the git command is known only at run time", rest[0].source))
        return ProgramEffects(effects=tuple(effects))
    given = Options(rest)
    for each in _ANYWHERE if given else ():
        effects.extend(runs(f"git {each} may run other code", each) for _ in given.find(each))
    for each in _BY_SUBCOMMAND.get(name, ()):
        if each == name or (not each.startswith("-") and any(w.text == each for w in rest[1:])):
            effects.append(_subcommand(name, each))
        elif each.startswith("-"):
            effects.extend(
                runs(f"git {name} {each} may run other code", each) for _ in given.find(each)
            )
    effects.extend(_files(name, rest, here))
    for word in rest[1:]:
        if "ext::" in word.prefix or "fd::" in word.prefix or "oProxyCommand" in word.prefix:
            effects.append(runs("this address makes git run a program", word.source))
    scripts = _scripts(name, rest)
    return ProgramEffects(effects=tuple(effects), scripts=scripts)


def _subcommand(name: str, each: str) -> Effect:
    what = name if each == name else f"{name} {each}"
    if name in {"config", "remote", "submodule", "replace", "update-index"}:
        return alters(f"git {what} changes the effect of later commands", each)
    return runs(f"git {what} may run other code", each)


def _global(words: tuple[Word, ...], here: WorkingDir) -> tuple[list[Effect], int]:
    """Options of git itself, before the subcommand."""
    effects: list[Effect] = []
    at = 1
    while at < len(words):
        text = words[at].text
        if text is None or not text.startswith("-"):
            if text is None and not words[at].prefix.strip("-"):
                effects.append(runs("an option of git is known only at run time", words[at].source))
            break
        name, equals, value = text.partition("=")
        takes = name in _GLOBAL_VALUES and not equals and name != "--exec-path"
        if text.startswith("-c") and not text.startswith("--"):
            key = text[2:] or (words[at + 1].prefix if at + 1 < len(words) else "")
            if not _SAFE_KEYS.fullmatch(key):
                effects.append(runs("a setting may make git run a program", key.partition("=")[0]))
            takes = text == "-c"
        elif text == "-C" and at + 1 < len(words):
            # A repository's own settings may run programs: another one is not for free.
            effects.append(reads(here.target(words[at + 1]), "git works there"))
        elif name in _GLOBAL_RISKS or (
            name not in _GLOBAL_VALUES
            and len(name) > 3
            and any(each.startswith(name) for each in _GLOBAL_RISKS)
        ):
            effects.append(runs(f"git {name} works on another repository or program", name))
        at += 2 if takes else 1
        del value
    return effects, at


def _files(name: str, rest: tuple[Word, ...], here: WorkingDir) -> list[Effect]:
    effects: list[Effect] = []
    given = Options(rest)
    for each in _WRITES if given else ():
        for word, value in given.find(each):
            target = Target(source=word.source)
            if value is not None:
                target = here.target(Word(source=value, text=value, prefix=value))
            effects.append(writes(target, f"git {each} writes it"))
    if name in {"archive", "format-patch"}:
        for word, value in option(rest, "-o"):
            target = Target(source=word.source)
            if value is not None:
                target = here.target(Word(source=value, text=value, prefix=value))
            effects.append(writes(target, f"git {name} -o writes it"))
    if name == "bundle" and len(rest) > 2 and rest[1].text == "create":
        effects.append(writes(here.target(rest[2]), "git bundle writes it"))
    if any(word.text == "--no-index" for word in rest):
        effects.extend(
            reads(here.target(word), "git diff --no-index reads it")
            for word in rest[1:]
            if not word.prefix.startswith("-")
        )
    if name in {"worktree", "clone", "init"}:
        operands = [word for word in rest[1:] if not word.prefix.startswith("-")]
        made = operands[1:2] if name != "init" else operands[:1]
        effects.extend(writes(here.target(word), f"git {name} makes it") for word in made)
    return effects


def _scripts(name: str, rest: tuple[Word, ...]) -> tuple[str, ...]:
    """Texts that git gives to a shell, where they are written out."""
    found: list[str] = []
    if name == "rebase":
        found += [value for each in ("-x", "--exec") for _, value in option(rest, each) if value]
    if name in {"bisect", "submodule"}:
        mark = "run" if name == "bisect" else "foreach"
        for at, word in enumerate(rest):
            if word.text == mark:
                texts = [each.text or each.source for each in rest[at + 1 :]]
                found.append(" ".join(text for text in texts if text != "--recursive"))
    return tuple(found)


def git_without_options(words: list[str]) -> list[str]:
    """The words of git from the subcommand on: `git -C x push` is a push too."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        name, equals, _ = words[at].partition("=")
        at += 2 if name in _GLOBAL_VALUES and not equals and name != "--exec-path" else 1
    return words[at:]
