"""Programs that run other programs, and the position of that command in their words.

A transparent wrapper changes how its command runs, not what it does: rules see through it. Any
other wrapper must be allowed itself, besides the command that it runs. A wrapper with unknown
options leaves a doubt, and a person is asked.
"""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.shell.environment import export_effect
from quarterdeck.policy.shell.inner import Inside, inside
from quarterdeck.policy.shell.options import operand_at
from quarterdeck.policy.shell.script import Effect, EffectKind, Word
from quarterdeck.policy.shell.tables import table_of
from quarterdeck.policy.shell.working_dir import UNKNOWN_DIR, WorkingDir


class InnerCommand(Value):
    """A command in a wrapper's words."""

    words: tuple[Word, ...]
    start: int
    stop: int | None = None
    open_ended: bool = False
    here: WorkingDir


class InnerScript(Value):
    """A text that a wrapper gives to a shell."""

    text: str
    here: WorkingDir


class Unwrapped(Value):
    """What a command runs. Empty for most commands."""

    name: str = ""
    commands: tuple[InnerCommand, ...] = ()
    scripts: tuple[InnerScript, ...] = ()
    effects: tuple[Effect, ...] = ()
    doubts: tuple[str, ...] = ()
    transparent: bool = False


class _Wrapper(Value):
    """How a wrapper parses its words."""

    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    skipped: int = 0
    """Operands before the command: a duration, a host, a folder."""

    transparent: bool = False
    sets: bool = False
    """Takes `NAME=value` before the command."""

    unknown_dir: bool = False
    """The command runs in a folder, or on a machine, that we do not know."""

    open_ended: bool = False
    joined: bool = False
    """The rest is one text for a shell."""

    subcommands: frozenset[str] = frozenset()
    """The command follows only after one of these: `poetry run`."""


def _wrapper(
    values: str = "", flags: str = "", *, subcommands: str = "", skipped: int = 0, **more: bool
) -> _Wrapper:
    return _Wrapper(
        values=frozenset(values.split()),
        flags=frozenset(flags.split()),
        subcommands=frozenset(subcommands.split()),
        skipped=skipped,
        **more,
    )


_WRAPPERS = {
    "timeout": _wrapper(
        "-s --signal -k --kill-after",
        "-v --verbose --preserve-status --foreground -f -p",
        skipped=1,
        transparent=True,
    ),
    "gtimeout": _wrapper("-s -k", "-v --foreground", skipped=1, transparent=True),
    "time": _wrapper("", "-p", transparent=True),
    "nice": _wrapper("-n --adjustment", "-#", transparent=True),
    "nohup": _wrapper(transparent=True),
    "stdbuf": _wrapper("-i -o -e --input --output --error", transparent=True),
    "command": _wrapper("", "-p", transparent=True),
    "builtin": _wrapper(transparent=True),
    "noglob": _wrapper(transparent=True),
    "nocorrect": _wrapper(transparent=True),
    "exec": _wrapper("-a", "-c -l"),
    "env": _wrapper(
        "-u --unset -C --chdir",
        "-i --ignore-environment -0 --null -v --debug",
        sets=True,
        unknown_dir=True,
    ),
    "sudo": _wrapper(
        "-u -g -h -p -C -D -R -r -t -T -U --user --group --host --prompt --close-from --chdir"
        " --chroot --role --type --command-timeout",
        "-n -k -E -H -b -S -A -P -B --non-interactive --preserve-env --set-home --background"
        " --stdin --askpass --reset-timestamp",
        sets=True,
        unknown_dir=True,
    ),
    "doas": _wrapper("-u -C", "-n -L", unknown_dir=True),
    "ionice": _wrapper("-c -n -p --class --classdata", "-t --ignore"),
    "chrt": _wrapper("-T -P -D", "-b -f -i -o -r -R", skipped=1),
    "taskset": _wrapper("", "-a -c --all-tasks --cpu-list", skipped=1),
    "setsid": _wrapper("", "-c -f -w --ctty --fork --wait"),
    "setarch": _wrapper("", "-R -v", skipped=1),
    "chroot": _wrapper("", "--skip-chdir", skipped=1, unknown_dir=True),
    "unshare": _wrapper("", "-i -m -n -p -u -U -f -r", unknown_dir=True),
    "nsenter": _wrapper("-t --target -S -G", "-a -m -u -i -n -p -U -C", unknown_dir=True),
    "flock": _wrapper("-w --timeout -E --conflict-exit-code", "-s -x -e -n -o -F", skipped=1),
    "strace": _wrapper(
        "-e -o -p -s -a -b -S -u -P", "-f -ff -c -C -q -qq -t -tt -T -v -x -y -i -r"
    ),
    "ltrace": _wrapper("-e -o -p -s -a -n -u", "-f -c -C -S -t -r -i -L"),
    "caffeinate": _wrapper("-t -w", "-d -i -m -s -u"),
    "watch": _wrapper(
        "-n --interval",
        "-b -c -d -e -g -t -x --color --differences --errexit --chgexit --no-title",
        joined=True,
    ),
    "ssh": _wrapper(
        "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w",
        "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y",
        skipped=1,
        unknown_dir=True,
        joined=True,
    ),
    "busybox": _wrapper(),
    "toybox": _wrapper(),
    "xargs": _wrapper(
        "-I -n -P -L -d -a -E -s --max-args --max-procs --max-lines --delimiter --arg-file"
        " --max-chars --replace",
        "-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit",
        open_ended=True,
    ),
    "parallel": _wrapper(
        "-j -P --jobs -a -n -I --colsep --delay --timeout --workdir",
        "-0 -k -X -m -u --keep-order --null --dry-run --will-cite --bar --halt",
        open_ended=True,
        joined=True,
    ),
    "poetry": _wrapper("", "-q -n -v", subcommands="run"),
    "pipenv": _wrapper("", "-q", subcommands="run"),
    "uv": _wrapper("", "-q --frozen --locked --no-sync --offline", subcommands="run"),
    "bundle": _wrapper("", "", subcommands="exec"),
    "rye": _wrapper("", "", subcommands="run"),
    "hatch": _wrapper("", "", subcommands="run"),
    "mise": _wrapper("", "", subcommands="exec x"),
    "direnv": _wrapper("", "", subcommands="exec", skipped=1, unknown_dir=True),
    "npm": _wrapper("", "-s --silent", subcommands="exec x"),
    "pnpm": _wrapper("", "-s --silent -r", subcommands="exec dlx"),
    "docker": _wrapper(
        "-e --env -u --user -w --workdir -v --volume --name -p --network --entrypoint --env-file",
        "-i -t -d --rm -it -ti --interactive --tty --detach --privileged",
        subcommands="exec run",
        skipped=1,
        unknown_dir=True,
    ),
    "kubectl": _wrapper(
        "-n --namespace -c --container --context",
        "-i -t -it --stdin --tty -q",
        subcommands="exec",
        skipped=1,
        unknown_dir=True,
    ),
}
_WRAPPERS["podman"] = _WRAPPERS["docker"]
_WRAPPERS["mosh"] = _WRAPPERS["ssh"]

_SHELLS = name_set("sh bash dash ash zsh ksh mksh yash fish rbash")
_SHELL_VALUES = name_set("-o +o -O +O --rcfile --init-file")


def unwrap(words: tuple[Word, ...], here: WorkingDir) -> Unwrapped:
    """The commands and scripts that a command runs."""
    literal = words[0].literal
    if literal is None:
        return Unwrapped()
    name = literal.rpartition("/")[2]
    table = table_of(name)
    if table is not None and table.commands:
        found = inside(words, table)
        return Unwrapped() if found is None else _by_table(name, words, here, found)
    wrapper = _WRAPPERS.get(name)
    if wrapper is not None:
        return _peel(name, literal, wrapper, words, here)
    custom = _CUSTOM.get(name)
    return Unwrapped() if custom is None else custom(name, words, here)


def _by_table(name: str, words: tuple[Word, ...], here: WorkingDir, found: Inside) -> Unwrapped:
    """The command that the table of a program tells."""
    place = UNKNOWN_DIR if found.elsewhere else here
    texts = [word.literal for word in found.scripts]
    doubtful = not found.known or None in texts
    start = found.start
    return Unwrapped(
        name=name,
        commands=()
        if start is None
        else (InnerCommand(words=words[start:], start=start, here=place),),
        scripts=tuple(InnerScript(text=text, here=place) for text in texts if text is not None),
        doubts=(f"the command of {name} is not known",) if doubtful else (),
    )


def _peel(
    name: str, literal: str, wrapper: _Wrapper, words: tuple[Word, ...], here: WorkingDir
) -> Unwrapped:
    base = 0
    if wrapper.subcommands:
        if len(words) < 2 or words[1].literal not in wrapper.subcommands:
            return Unwrapped()
        base = 1
    elif len(words) == 1:
        return Unwrapped()
    if name == "command" and words[1].literal in {"-v", "-V", "-pv", "-pV"}:
        return Unwrapped()
    if name == "flock" and any(word.text in {"-c", "--command"} for word in words):
        return _after(name, words, here, {"-c", "--command"})
    if name == "env" and any(_splits(word) for word in words[1:]):
        return Unwrapped(name=name, doubts=("env splits a text into a command",))
    at = operand_at(words[base:], wrapper.values, wrapper.flags)
    if at is None:
        return Unwrapped(name=name, doubts=(f"the command of {name} is not known",))
    at += base + wrapper.skipped
    effects: list[Effect] = []
    while wrapper.sets and at < len(words) and _sets(words[at]):
        effect = export_effect(words[at].prefix)
        if effect is not None:
            effects.append(effect)
        at += 1
    if wrapper.subcommands and at < len(words) and words[at].literal == "--":
        at += 1
    if any(word.literal is None for word in words[1:at]) or at > len(words):
        return Unwrapped(name=name, doubts=(f"the command of {name} is not known",))
    if at == len(words):
        return Unwrapped(name=name, effects=tuple(effects))
    inside = UNKNOWN_DIR if wrapper.unknown_dir and at > base + 1 + wrapper.skipped else here
    if wrapper.unknown_dir and name in {"ssh", "mosh", "docker", "podman", "kubectl", "chroot"}:
        inside = UNKNOWN_DIR
    if wrapper.joined:
        return _shell_text(name, words[at:], inside, wrapper.open_ended)
    rest = words[at:]
    bare = name == "xargs" and at == 1
    if wrapper.open_ended:
        rest = _mask_placeholders(rest, words[1:at])
    inner = InnerCommand(words=rest, start=at, open_ended=wrapper.open_ended, here=inside)
    # A wrapper with a path (`./timeout`) may be any program.
    plain = literal == name
    return Unwrapped(
        name=name,
        commands=(inner,),
        effects=tuple(effects),
        transparent=plain and (wrapper.transparent or bare),
    )


def _sets(word: Word) -> bool:
    name, equals, _ = word.prefix.partition("=")
    return bool(equals) and name.isidentifier()


def _splits(word: Word) -> bool:
    text = word.prefix
    return text.startswith("--s") or (
        text.startswith("-") and not text.startswith("--") and "S" in text
    )


def _mask_placeholders(words: tuple[Word, ...], options: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words of a command in which `{}`, or the text given with -I, is replaced at run time."""
    marks = {"{}"}
    for at, word in enumerate(options):
        text = word.text or ""
        if text.startswith("-I"):
            marks.add(text[2:] or (options[at + 1].text or "{}" if at + 1 < len(options) else "{}"))
        elif text.startswith("--replace="):
            marks.add(text.partition("=")[2])
    return tuple(
        Word(source=word.source, prefix="")
        if word.text is not None and any(mark and mark in word.text for mark in marks)
        else word
        for word in words
    )


def _shell_text(
    name: str, words: tuple[Word, ...], here: WorkingDir, open_ended: bool
) -> Unwrapped:
    texts = [word.text for word in words]
    doubts: list[str] = []
    if any(text is None for text in texts) or any(word.glob or word.tilde for word in words):
        doubts.append(f"the command of {name} is known only at run time")
    if open_ended:
        doubts.append(f"{name} adds words to a text for a shell")
    text = " ".join(
        word.source if text is None else text for word, text in zip(words, texts, strict=True)
    )
    return Unwrapped(name=name, scripts=(InnerScript(text=text, here=here),), doubts=tuple(doubts))


def _after(name: str, words: tuple[Word, ...], here: WorkingDir, marks: set[str]) -> Unwrapped:
    """The word after a mark is a text for a shell."""
    scripts: list[InnerScript] = []
    doubts: list[str] = []
    for at, word in enumerate(words[:-1]):
        if word.text in marks:
            text = words[at + 1].literal
            if text is None:
                doubts.append(f"the command of {name} is known only at run time")
            else:
                scripts.append(InnerScript(text=text, here=here))
    if not scripts and not doubts:
        doubts.append(f"the command of {name} is not known")
    return Unwrapped(name=name, scripts=tuple(scripts), doubts=tuple(doubts))


def _shell(name: str, words: tuple[Word, ...], here: WorkingDir) -> Unwrapped:
    """`bash -c text`, `bash file`, or bash that reads its commands from its input."""
    at, takes_text = 1, False
    while at < len(words):
        text = words[at].literal
        if text is None:
            return Unwrapped(
                name=name, doubts=(f"the command of {name} is known only at run time",)
            )
        if text in {"--version", "--help"}:
            return Unwrapped()
        if text == "--" or not text.startswith(("-", "+")) or text == "-":
            at += text in {"--", "-"}
            break
        if text in {"--rcfile", "--init-file"} or text.startswith(("--rcfile=", "--init-file=")):
            return Unwrapped(name=name, doubts=(f"{name} runs a file at its start",))
        takes_text = takes_text or (not text.startswith("--") and "c" in text[1:])
        at += 2 if text in _SHELL_VALUES else 1
    if not takes_text:
        file = words[at].source if at < len(words) else ""
        why = f"{name} runs the file {file}" if file else f"{name} runs its input"
        runs = Effect(kind=EffectKind.RUNS, why=why, token=file)
        return Unwrapped(name=name, effects=(runs,))
    script = words[at].literal if at < len(words) else None
    if script is None:
        return Unwrapped(name=name, doubts=(f"the command of {name} is known only at run time",))
    return Unwrapped(name=name, scripts=(InnerScript(text=script, here=here),))


def _su(name: str, words: tuple[Word, ...], here: WorkingDir) -> Unwrapped:
    del here
    return _after(name, words, UNKNOWN_DIR, {"-c", "--command", "--session-command", "-lc"})


def _script(name: str, words: tuple[Word, ...], here: WorkingDir) -> Unwrapped:
    return _after(name, words, here, {"-c", "--command", "-qc", "-qec", "-ec", "-qfc", "-fc"})


def _eval(name: str, words: tuple[Word, ...], here: WorkingDir) -> Unwrapped:
    return _shell_text(name, words[1:], here, False) if len(words) > 1 else Unwrapped()


def _trap(name: str, words: tuple[Word, ...], here: WorkingDir) -> Unwrapped:
    del here
    given = [word for word in words[1:] if word.text not in {"--", "-p", "-l"}]
    if len(given) < 2 or given[0].text in {"", "-"}:
        return Unwrapped()
    return _shell_text(name, (given[0],), UNKNOWN_DIR, False)


def _find(name: str, words: tuple[Word, ...], here: WorkingDir) -> Unwrapped:
    marks = {"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}
    if name == "find":
        marks = {mark for mark in marks if mark.endswith(("exec", "execdir", "ok", "okdir"))}
    commands: list[InnerCommand] = []
    at = 1
    while at < len(words):
        if words[at].text not in marks:
            at += 1
            continue
        stop = at + 1
        while stop < len(words) and words[stop].text not in {";", "+"}:
            stop += 1
        inner = _mask_placeholders(words[at + 1 : stop], ())
        if inner:
            place = UNKNOWN_DIR if words[at].text in {"-execdir", "-okdir"} else here
            commands.append(
                InnerCommand(words=inner, start=at + 1, stop=stop, open_ended=True, here=place)
            )
        at = stop + 1
    return Unwrapped(name=name, commands=tuple(commands)) if commands else Unwrapped()


_CUSTOM: dict[str, Callable[[str, tuple[Word, ...], WorkingDir], Unwrapped]] = {
    **dict.fromkeys(_SHELLS, _shell),
    "su": _su,
    "runuser": _su,
    "script": _script,
    "eval": _eval,
    "trap": _trap,
    "find": _find,
    "fd": _find,
    "fdfind": _find,
}
