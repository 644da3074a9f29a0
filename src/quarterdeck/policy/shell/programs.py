"""The effects of programs by their options and operands: files they read and write, code they run.

A table for regular programs, and functions for the others (`languages`, `git`, `builtins`). A
program that is not listed is taken to do what its name says: a rule that allows it allows that.
Listed programs can do more, and a rule must name that too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

import msgspec

from quarterdeck.domain.structs import Value, name_set
from quarterdeck.policy.shell import archives, builds, languages, transfers
from quarterdeck.policy.shell.builtins import BUILTINS
from quarterdeck.policy.shell.effects import ProgramEffects, alters, reads, runs, writes
from quarterdeck.policy.shell.git import git, git_program
from quarterdeck.policy.shell.languages import CODE, LANGUAGES
from quarterdeck.policy.shell.options import Options, operands
from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.table_effects import effects_by_table
from quarterdeck.policy.shell.tables import table_of
from quarterdeck.policy.shell.unlisted import possible_reads
from quarterdeck.policy.shell.uses import Invocation, Reader
from quarterdeck.policy.shell.working_dir import HARMLESS, WorkingDir

_SYSTEM = name_set("/bin /usr/bin /usr/local/bin /sbin /usr/sbin") | {""}
"""Folders of the programs that tables describe; empty for a name that is sought in PATH."""


class Use(StrEnum):
    """What a program does with the files in its operands."""

    NOTHING = "nothing"
    READS = "reads"
    WRITES = "writes"
    COPIES = "copies"
    """Reads all but the last, and writes the last."""

    MOVES = "moves"
    """Writes the last, and takes the others away."""


class Program(Value):
    """The known effects of a program."""

    use: Use = Use.NOTHING
    skipped: int = 0
    """Operands that are not files: a pattern, a mode."""

    runs: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    values: frozenset[str] = frozenset()
    alters: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    """Options that name the folder which operands are written to."""


def _program(
    use: Use = Use.NOTHING,
    *,
    skipped: int = 0,
    runs: str = "",
    writes: str = "",
    reads: str = "",
    values: str = "",
    target: str = "",
) -> Program:
    taken = f"{values} {writes} {reads} {target}".split()
    return Program(
        use=use,
        skipped=skipped,
        runs=tuple(runs.split()),
        writes=tuple(writes.split()),
        reads=tuple(reads.split()),
        values=frozenset(taken),
        target=tuple(target.split()),
    )


def _same(names: str, program: Program) -> dict[str, Program]:
    return dict.fromkeys(names.split(), program)


PROGRAMS: dict[str, Program] = {
    **_same(
        "cat tac nl wc file stat md5sum sha1sum sha256sum sha512sum b2sum cksum sum cmp comm cut"
        " paste fold rev strings base64 base32 expand unexpand fmt pr join tsort readlink realpath"
        " zcat bzcat xzcat zless zmore cksum ls dir vdir du df",
        _program(Use.READS, values="-n -c -d -f -w -b -t --bytes --lines"),
    ),
    "head": _program(Use.READS, values="-n -c --lines --bytes"),
    "tail": _program(Use.READS, values="-n -c --lines --bytes --pid -s"),
    "tree": _program(Use.READS, writes="-o", values="-L -P -I"),
    "od": _program(Use.READS, values="-A -j -N -t -w"),
    "hexdump": _program(Use.READS, values="-n -s -e -f"),
    "xxd": _program(Use.COPIES, values="-l -s -c -g"),
    "diff": _program(Use.READS, runs="--ext-diff", values="-U -C", writes="--output"),
    "grep": _program(Use.READS, skipped=1, reads="-f --file", values="-A -B -C -m -e --include"),
    "egrep": _program(Use.READS, skipped=1, reads="-f --file", values="-A -B -C -m -e"),
    "fgrep": _program(Use.READS, skipped=1, reads="-f --file", values="-A -B -C -m -e"),
    "rg": _program(
        Use.READS,
        skipped=1,
        runs="--pre --hostname-bin -z --search-zip",
        reads="-f --file",
        values="-A -B -C -m -e -g -t -T",
    ),
    "ag": _program(Use.READS, skipped=1, runs="--pager"),
    "jq": _program(Use.READS, skipped=1, reads="-f --from-file", runs="--slurpfile --rawfile -L"),
    "yq": _program(Use.READS, skipped=1, writes="-i --inplace"),
    "sort": _program(
        Use.READS, runs="--compress-program", writes="-o --output", values="-k -t -S -T"
    ),
    "uniq": _program(Use.COPIES, values="-f -s -w"),
    "less": _program(Use.READS, runs="-P +!", writes="-o -O --log-file", values="-p"),
    "more": _program(Use.READS),
    "man": _program(runs="-P --pager -H --html -M -C --config-file -l -r"),
    "tee": _program(Use.WRITES),
    "touch": _program(Use.WRITES, reads="-r --reference", values="-t -d"),
    "mkdir": _program(Use.WRITES, values="-m --mode"),
    "mkfifo": _program(Use.WRITES, values="-m"),
    "mknod": _program(Use.WRITES),
    "rm": _program(Use.WRITES),
    "rmdir": _program(Use.WRITES),
    "unlink": _program(Use.WRITES),
    "srm": _program(Use.WRITES),
    "trash": _program(Use.WRITES),
    "shred": _program(Use.WRITES, values="-n -s", reads="--random-source"),
    "truncate": _program(Use.WRITES, values="-s -r --size"),
    "fallocate": _program(Use.WRITES, values="-l -o"),
    "chmod": _program(Use.WRITES, skipped=1),
    "chown": _program(Use.WRITES, skipped=1),
    "chgrp": _program(Use.WRITES, skipped=1),
    "chattr": _program(Use.WRITES, skipped=1),
    "setfacl": _program(Use.WRITES, values="-m -x -M"),
    "cp": _program(Use.COPIES, target="-t --target-directory", values="-S --suffix"),
    "mv": _program(Use.MOVES, target="-t --target-directory", values="-S --suffix"),
    "ln": _program(Use.COPIES, target="-t --target-directory"),
    "link": _program(Use.COPIES),
    "install": _program(
        Use.COPIES, target="-t --target-directory", values="-m -o -g", runs="--strip-program"
    ),
    "rsync": _program(
        Use.COPIES,
        runs="-e --rsh --rsync-path --out-format",
        values="--exclude --include",
        writes="--log-file --write-batch --backup-dir --temp-dir --partial-dir",
        reads="--files-from --exclude-from --include-from --password-file",
    ),
    "scp": _program(Use.COPIES, runs="-S -o -F -D", values="-P -i -c -l -J", reads="-i"),
    "sftp": _program(runs="-S -o -F -D -b"),
    "split": _program(Use.COPIES, runs="--filter", values="-b -l -n -a"),
    "csplit": _program(runs="-f --prefix"),
    "patch": _program(
        Use.WRITES, writes="-o --output -r --reject-file", values="-p -d -i", runs="-e"
    ),
    "tar": _program(
        Use.WRITES,
        runs="-I -F --checkpoint-action --to-command --use-compress-program --info-script"
        " --new-volume-script --rsh-command --rmt-command",
        writes="-f --file -C --directory --index-file",
        values="--exclude",
    ),
    "zip": _program(Use.WRITES, runs="-T -TT --unzip-command", values="-x -i"),
    "unzip": _program(Use.READS, writes="-d", values="-x"),
    "7z": _program(Use.WRITES, runs="-o"),
    "gzip": _program(Use.WRITES, values="-S"),
    "gunzip": _program(Use.WRITES, values="-S"),
    "bzip2": _program(Use.WRITES),
    "bunzip2": _program(Use.WRITES),
    "xz": _program(Use.WRITES),
    "unxz": _program(Use.WRITES),
    "zstd": _program(Use.WRITES, writes="-o"),
    "cpio": _program(runs="--to-stdout --rsh-command", writes="-O -F --file"),
    "curl": _program(
        writes="-o --output -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr"
        " --output-dir --etag-save --hsts --alt-svc --libcurl",
        reads="-T --upload-file -K --config --netrc-file --cacert --cert --key",
        runs="-O --remote-name -J --remote-header-name --remote-name-all -K --config --engine"
        " -x --proxy --unix-socket --abstract-unix-socket",
    ),
    "wget": _program(
        writes="-O --output-document -o --output-file -a --append-output -P --directory-prefix"
        " --save-cookies --warc-file --hsts-file",
        reads="-i --input-file --post-file --body-file --load-cookies",
        runs="-e --execute --use-askpass --config",
    ),
    "ssh": _program(runs="-o -F -J -W -L -R -D -w -S -E -I -P --", values="-p -l -i"),
    "make": _program(runs="-f --file --makefile --eval -I --include-dir -C --directory"),
    "gmake": _program(runs="-f --file --makefile --eval -I --include-dir -C --directory"),
    "cmake": _program(runs="-P -C -E"),
    "ninja": _program(runs="-f -C"),
    "npm": _program(runs="--script-shell --prefix -C --node-options --userconfig --globalconfig"),
    "pnpm": _program(runs="--script-shell --shell-mode -C --dir -c"),
    "yarn": _program(runs="--cwd --use-yarnrc --script-shell"),
    "cargo": _program(runs="--config -Z -C --manifest-path --target-dir"),
    "go": _program(runs="-exec -toolexec -overlay -modfile -vettool -C"),
    "gcc": _program(runs="-wrapper -fplugin -specs -B", writes="-o"),
    "cc": _program(runs="-wrapper -fplugin -specs -B", writes="-o"),
    "clang": _program(runs="-fplugin -Xclang -B", writes="-o"),
    "pip": _program(runs="--index-url -i --extra-index-url --python --target -t --prefix --root"),
    "pip3": _program(runs="--index-url -i --extra-index-url --python --target -t --prefix --root"),
    "pytest": _program(runs="-c -p --rootdir --confcutdir --import-mode --basetemp --junit-xml"),
    "gdb": _program(runs="-ex -x --eval-command --command --args -iex -ix --init-command"),
    "lldb": _program(runs="-o -s -O -S --one-line --source"),
    "screen": _program(runs="-X -c -dm -d -S -s"),
    "tmux": _program(
        runs="-f new new-session send-keys run-shell run if-shell pipe-pane neww"
        " new-window split-window respawn-pane -c"
    ),
    "at": _program(runs="-f"),
    "batch": _program(runs="-f"),
    "date": _program(runs="-s --set", reads="-f --file -r --reference"),
    "hostname": _program(runs="-F --file -b"),
    "docker": _program(
        runs="-v --volume --mount --privileged --entrypoint --pid --device -H --host"
    ),
    "openssl": _program(runs="-engine -provider", writes="-out", reads="-in"),
    "nc": _program(runs="-e -c --exec --sh-exec -l"),
    "ncat": _program(runs="-e -c --exec --sh-exec --lua-exec -l"),
    "socat": _program(runs="EXEC: SYSTEM:"),
    "tcpdump": _program(runs="-z", writes="-w"),
    "logsave": _program(Use.WRITES),
    "sqlite3": _program(runs="-cmd -init .shell .system"),
    "psql": _program(runs="-c -f --command --file -v -o --output -L"),
    "mysql": _program(runs="-e --execute --pager --tee --init-command"),
    "ffmpeg": _program(Use.WRITES, reads="-i"),
    "pandoc": _program(runs="-F --filter -L --lua-filter --pdf-engine", writes="-o --output"),
    "gpg": _program(writes="-o --output", runs="--photo-viewer --exec-path --agent-program"),
    "codesign": _program(Use.WRITES),
    "defaults": _program(runs="write delete"),
    "journalctl": _program(runs="--vacuum-size --vacuum-time --rotate --flush"),
    "systemctl": _program(runs="edit link --root -H --host"),
    "ip": _program(runs="netns -b -batch"),
    "xdg-open": _program(Use.READS),
    "dmesg": _program(runs="-c -C -D -E"),
    "env": _program(),
}


def look_up(words: tuple[Word, ...], here: WorkingDir, via: str | None) -> ProgramEffects:
    """The effects of a command beyond its name. `via` is a wrapper that adds unknown words."""
    literal = words[0].literal
    if literal is None:
        return ProgramEffects()
    folder, _, name = literal.rpartition("/")
    table = table_of(name)
    if table is not None:
        reader = _READERS.get(table.name)
        if reader is None and table.name.startswith("git-"):
            reader = git_program
        if reader is None:
            found = effects_by_table(name, table, words, here, via=via, readers=CODE)
        else:
            use = Invocation(name=name, table=table, words=words, here=here, via=via)
            found = reader(use)
        # `./cat` may be any program.
        return found if folder in _SYSTEM else msgspec.structs.replace(found, looks=False)
    special = _SPECIAL.get(name)
    if special is not None:
        known = special(words, here)
    elif (program := PROGRAMS.get(name)) is not None:
        known = _regular(name, program, words, here)
    else:
        return ProgramEffects(effects=possible_reads(name, words, here))
    if via is None:
        return known
    return ProgramEffects(
        effects=(*known.effects, *_unknown_operands(name, via)),
        doubts=known.doubts,
        scripts=known.scripts,
        moves=known.moves,
    )


def _unknown_operands(name: str, via: str) -> list[Effect]:
    """The effects of words that are added later."""
    use = PROGRAMS[name].use if name in PROGRAMS else Use.NOTHING
    unknown = Target(source="…")
    match use:
        case Use.READS:
            return [reads(unknown, f"{name} reads files that {via} passes to it")]
        case Use.WRITES | Use.COPIES | Use.MOVES:
            return [writes(unknown, f"{name} writes files that {via} passes to it")]
        case _:
            return [runs(f"{via} may pass any option to {name}", via)]


def _regular(
    name: str, program: Program, words: tuple[Word, ...], here: WorkingDir
) -> ProgramEffects:
    effects: list[Effect] = []
    given = Options(words)
    for each in program.runs:
        effects.extend(
            runs(f"{name} {each} can run other code or change its target", each)
            for _ in given.find(each)
        )
    if program.runs:
        # A file that is called like an option becomes one where a pattern finds it.
        effects.extend(
            runs(f"{word.source} may match a file that {name} takes for an option", word.source)
            for word in words[1:]
            if word.glob and word.prefix[:1] in {"*", "?", "["}
        )
    for each in program.writes:
        effects.extend(
            writes(_value_target(value, word, here), f"{name} {each} writes it")
            for word, value in given.find(each)
            if value not in HARMLESS
        )
    for each in program.reads:
        effects.extend(
            reads(_value_target(value, word, here), f"{name} {each} reads it")
            for word, value in given.find(each)
            if value not in HARMLESS
        )
    effects.extend(_operands(name, program, words, here))
    return ProgramEffects(effects=tuple(effects))


def _value_target(value: str | None, word: Word, here: WorkingDir) -> Target:
    if value is None:
        return Target(source=word.source)
    tilde = value.startswith("~")
    return here.target(Word(source=value, text=value, prefix=value, tilde=tilde))


def _operands(
    name: str, program: Program, words: tuple[Word, ...], here: WorkingDir
) -> list[Effect]:
    if program.use is Use.NOTHING:
        return []
    # A pattern that is given by an option leaves every operand a file.
    given = program.skipped == 1 and any(
        word.prefix.startswith(("-e", "-f", "--regexp", "--file", "--from-file", "--files"))
        or re.match(r"-[A-Za-z]*[ef]", word.prefix)
        for word in words[1:]
    )
    named = list(operands(words, program.values))[0 if given else program.skipped :]
    files = [
        word
        for word in named
        # A process substitution is not a file: its commands are separate parts.
        if word.text not in HARMLESS and not word.source.startswith(("<(", ">("))
    ]
    folder = [found for each in program.target for found in Options(words).find(each)]
    effects = [
        writes(_value_target(value, word, here), f"{name} writes there") for word, value in folder
    ]
    deep = program.use is Use.MOVES or any(
        word.prefix == "--recursive" or re.match(r"-[A-Za-z]*[rR]", word.prefix)
        for word in words[1:]
    )
    for at, word in enumerate(files):
        last = at == len(files) - 1 and not folder and len(files) > 1
        target = here.target(word)
        match program.use:
            case Use.READS:
                effects.append(reads(target, f"{name} reads it"))
            case Use.WRITES | Use.MOVES:
                target = msgspec.structs.replace(target, deep=deep)
                effects.append(writes(target, f"{name} writes or removes it", own=True))
            case _ if last:
                effects.append(writes(target, f"{name} writes it", own=True))
            case _:
                effects.append(reads(target, f"{name} reads it"))
    return effects


def _dd(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    effects: list[Effect] = []
    for word in words[1:]:
        key, _, value = word.prefix.partition("=")
        target = _value_target(value if word.text is not None else None, word, here)
        if key == "of" or (word.text is None and not key):
            effects.append(writes(target, "dd writes it", own=True))
        elif key == "if" and value not in HARMLESS:
            effects.append(reads(target, "dd reads it"))
    return ProgramEffects(effects=tuple(effects))


def _find(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    effects: list[Effect] = []
    roots: list[Word] = []
    for word in words[1:]:
        if word.prefix.startswith(("-", "(", "!")):
            break
        roots.append(word)
    effects.extend(reads(here.target(word), "find searches it") for word in roots)
    for at, word in enumerate(words[1:], 1):
        if word.text == "-delete":
            effects.append(runs("find -delete removes the files that it finds", "-delete"))
            effects.extend(
                writes(here.target(root), "find -delete removes files in it") for root in roots
            )
        elif word.text in {"-fprint", "-fprint0", "-fprintf", "-fls"}:
            after = words[at + 1] if at + 1 < len(words) else word
            effects.append(writes(here.target(after), f"find {word.text} writes it"))
        elif word.text == "-files0-from":
            effects.append(runs("find takes its folders from a file", "-files0-from"))
    return ProgramEffects(effects=tuple(effects))


def _make(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    known = _regular("make", PROGRAMS["make"], words, here)
    sets = [
        alters(f"{word.source} changes the commands of make", word.prefix.partition("=")[0] + "=")
        for word in words[1:]
        if "=" in word.prefix and not word.prefix.startswith("-")
    ]
    return ProgramEffects(effects=(*known.effects, *sets))


_SENDING = (
    "-d --data --data-ascii --data-binary --data-urlencode -F --form --json -H --header -b -w"
)


def _curl(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    """It sends files that `@` or `<` names, and reads `file:` addresses."""
    known = _regular("curl", PROGRAMS["curl"], words, here)
    given = Options(words)
    sends = [
        runs(f"curl {each} may send a file", each)
        for each in sorted(name_set(_SENDING))
        for _, value in given.find(each)
        if value is None or "@" in value or "<" in value
    ]
    local = [
        runs("curl reads a local file", word.source)
        for word in words[1:]
        if not word.prefix.lower().startswith(("http:", "https:")) and ":/" in word.prefix
    ]
    return ProgramEffects(effects=(*known.effects, *sends, *local))


def _crontab(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del here
    if [word.text for word in words[1:]] == ["-l"]:
        return ProgramEffects()
    token = words[1].source if len(words) > 1 else ""
    return ProgramEffects(effects=(runs("crontab schedules commands", token),))


_READERS: dict[str, Reader] = {
    **archives.READERS,
    **builds.READERS,
    **transfers.READERS,
    **languages.READERS,
    "git": git,
}
"""Readers of programs for which a table alone is not enough, by the names of their tables."""

_SPECIAL: dict[str, Callable[[tuple[Word, ...], WorkingDir], ProgramEffects]] = {
    **BUILTINS,
    **LANGUAGES,
    "dd": _dd,
    "find": _find,
    "make": _make,
    "gmake": _make,
    "crontab": _crontab,
    "curl": _curl,
}
