"""Programs that run code from their arguments: interpreters, editors, awk and sed."""

from __future__ import annotations

import re
from collections.abc import Callable

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.effects import ProgramEffects, reads, runs, writes
from quarterdeck.policy.shell.options import Options, operands, option
from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.working_dir import WorkingDir

_Reader = Callable[[tuple[Word, ...], WorkingDir], ProgramEffects]

_CODE = {
    "python": ("-c", "-i"),
    "pypy": ("-c", "-i"),
    "ipython": ("-c", "-i"),
    "perl": ("-e", "-E", "-i", "-M", "-m", "-p", "-n", "-x", "-d"),
    "ruby": ("-e", "-i", "-r", "-p", "-n", "-x"),
    "node": (
        "-e",
        "--eval",
        "-p",
        "--print",
        "-r",
        "--require",
        "--import",
        "--loader",
        "-i",
        "--experimental-loader",
        "--inspect",
        "--inspect-brk",
        "--env-file",
    ),
    "nodejs": ("-e", "--eval", "-p", "--print", "-r", "--require", "--import", "--loader", "-i"),
    "bun": ("-e", "--eval", "-p", "--print", "-r", "--preload"),
    "deno": ("eval", "-A", "--allow-run", "--allow-all", "--unstable"),
    "php": ("-r", "-B", "-R", "-E", "-d", "-a"),
    "lua": ("-e", "-l", "-i"),
    "luajit": ("-e", "-l", "-i"),
    "tclsh": (),
    "expect": ("-c",),
    "osascript": ("-e", "-l"),
    "Rscript": ("-e",),
    "julia": ("-e", "-E", "-L", "-i"),
    "ghci": ("-e",),
    "ghc": ("-e",),
    "jshell": ("-s",),
    "groovy": ("-e",),
    "scala": ("-e",),
    "elixir": ("-e", "--eval", "-r"),
    "erl": ("-eval", "-s", "-run"),
    "swift": ("-e",),
    "guile": ("-c", "-e"),
    "emacs": ("--eval", "-eval", "--load", "-l", "-f", "--execute", "--script", "-batch"),
    "vim": ("+", "-c", "-S", "-s", "-u", "-w", "-W", "-E", "-e", "-es", "-Es", "--cmd", "-i"),
    "vi": ("+", "-c", "-S", "-s", "-u", "-w", "-W", "--cmd"),
    "nvim": ("+", "-c", "-S", "-s", "-u", "-w", "-W", "--cmd", "-l", "-es", "--headless"),
    "view": ("+", "-c", "-S", "-s", "-u", "--cmd"),
    "ex": ("+", "-c", "-S", "-s", "-u", "--cmd"),
    "ed": (),
    "powershell": ("-c", "-Command", "-File", "-EncodedCommand", "-e", "-f"),
    "pwsh": ("-c", "-Command", "-File", "-EncodedCommand", "-e", "-f"),
}
_NUMBERED = re.compile(r"([A-Za-z]+?)(?:\d+(?:\.\d+)*)(?:-\w+)?")
_FROM_INPUT = name_set("python pypy perl ruby node nodejs php lua tclsh bun Rscript")


def language(name: str) -> _Reader | None:
    """The reader for an interpreter's arguments, by its name; also `python3.11`."""
    numbered = _NUMBERED.fullmatch(name)
    base = name if name in _CODE or numbered is None else numbered.group(1)
    if base not in _CODE:
        return None
    return lambda words, here: _interpreter(base, words, here)


def _interpreter(name: str, words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    effects: list[Effect] = []
    given = Options(_before_script(words) if name in _FROM_INPUT else words)
    for each in _CODE[name]:
        effects.extend(
            runs(f"{name} {each} runs code that is given in the command", each)
            for word, _ in given.find(each)
            if word.text != "--version"
        )
    named = list(operands(words, frozenset(("-m", "-c", "-e", "-W", "-X"))))
    own = _before_script(words)[1:]
    has_code = any(word.prefix.startswith(("-m", "-c", "-e", "--")) for word in own)
    if name in _FROM_INPUT and not has_code and (not named or named[0].text == "-"):
        effects.append(runs(f"{name} runs its input", "-"))
    elif name in _FROM_INPUT and not has_code:
        effects.append(reads(here.target(named[0]), f"{name} runs it"))
    if (first := next(iter(words[1:]), None)) is not None and first.text is None:
        effects.append(runs(f"the command of {name} is known only at run time", first.source))
    return ProgramEffects(effects=tuple(effects))


def _before_script(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """An interpreter's own options: they end at the name of its script."""
    for at, word in enumerate(words[1:], 1):
        if word.text is not None and not word.text.startswith("-"):
            before = words[at - 1].text or ""
            if at == 1 or before not in {"-W", "-X", "-I", "-C", "-r", "--require"}:
                return words[:at]
    return words


_AWK_RISKS = re.compile(
    r"system|getline|\||>|@|ENVIRON|PROCINFO|ARGV|-\s*f|close|fflush|\bextension\b|/inet"
)
_AWK_VALUES = name_set("-F -v -f --field-separator --assign --file -e --source")


def _awk(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    """It runs programs with system() and pipes, and writes files with `>`."""
    effects: list[Effect] = []
    for each in (
        "-f",
        "--file",
        "-i",
        "--include",
        "-l",
        "--load",
        "-e",
        "--source",
        "-E",
        "--exec",
        "-d",
        "--dump-variables",
        "-o",
        "--pretty-print",
        "-p",
        "--profile",
        "-D",
    ):
        effects.extend(
            runs(f"awk {each} runs code or writes a file", each)
            for word, _ in option(words, each)
            if word.prefix.startswith(each)
        )
    named = list(operands(words, _AWK_VALUES))
    if named:
        program = named[0].text
        if program is None:
            effects.append(runs("awk's program is known only at run time", named[0].source))
        elif (risk := _AWK_RISKS.search(program)) is not None:
            token = "system" if "system" in program else risk.group()
            effects.append(runs("awk's program may run commands, read or write files", token))
    files = [word for word in named[1:] if "=" not in word.prefix]
    effects.extend(reads(here.target(word), "awk reads it") for word in files)
    return ProgramEffects(effects=tuple(effects))


_SED_ADDRESS = (
    r"(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)(?:\s*,\s*(?:\+?\d+|\$|/(?:[^/\\\n]|\\.)*/I?))?\s*!?\s*)?"
)
_SED_COMMAND = (
    r"(?:s(?:/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/|\|(?:[^|\\\n]|\\.)*\|(?:[^|\\\n]|\\.)*\||"
    r"#(?:[^#\\\n]|\\.)*#(?:[^#\\\n]|\\.)*#|,(?:[^,\\\n]|\\.)*,(?:[^,\\\n]|\\.)*,|"
    r"@(?:[^@\\\n]|\\.)*@(?:[^@\\\n]|\\.)*@)[gpiI0-9]*|[pdqQnNhHgGxlPD=]\d*|"
    r"y/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/)"
)
_SED_SAFE = re.compile(
    rf"(?>\s*)(?>(?>{_SED_ADDRESS}){_SED_COMMAND}(?>\s*(?:[;\n]\s*|$)))*", re.DOTALL
)
"""sed scripts that only change the text passing through: any other may write a file or run a
command.

There is one way to parse each command, and the groups are atomic so that only that one is tried:
the blanks between two commands can be divided in many equivalent ways.
"""


def _sed(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    effects: list[Effect] = []
    in_place = any(
        word.prefix.startswith("--i") or re.match(r"-[nrEsuz]*i", word.prefix) for word in words[1:]
    )
    scripts: list[Word] = []
    given = False
    for at, word in enumerate(words[1:], 1):
        text = word.prefix
        if text.startswith(("-f", "--f")) or re.match(r"-[nrEsuz]+f", text):
            effects.append(runs("sed runs a script from a file", "-f"))
            given = True
        elif text in {"-e", "--expression", "-ne", "-re", "-Ee"} and at + 1 < len(words):
            scripts.append(words[at + 1])
            given = True
        elif text.startswith(("-e", "--expression=")):
            effects.append(runs("sed's script is part of an option", text[:2]))
            given = True
    named = list(operands(words, frozenset(("-e", "--expression", "-f", "--file", "-l"))))
    if not given and named:
        scripts.append(named.pop(0))
    effects.extend(
        runs("sed's script may run commands or write files", script.source)
        for script in scripts
        if script.text is None or not _sed_safe(script.text)
    )
    for word in named:
        target = here.target(word)
        effects.append(
            writes(target, "sed -i changes it") if in_place else reads(target, "sed reads it")
        )
    return ProgramEffects(effects=tuple(effects))


def _sed_safe(script: str) -> bool:
    # The pattern is run on short scripts only: a long one is asked about.
    return len(script) <= 500 and _SED_SAFE.fullmatch(script) is not None


def _package_runner(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    """A package runner: runs a program from a registry."""
    del here
    named = list(operands(words, frozenset()))
    if any(word.prefix.startswith(("-c", "--call", "--node-options", "-p")) for word in words[1:]):
        return ProgramEffects(
            effects=(runs(f"{words[0].source} runs code given in the command", "-c"),)
        )
    if named and named[0].text is None:
        return ProgramEffects(
            doubts=(f"the program of {words[0].source} is known only at run time",)
        )
    return ProgramEffects()


def _xdotool(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del here
    return ProgramEffects(effects=(runs("it controls other programs", words[0].source),))


def _unknown_target(words: tuple[Word, ...], here: WorkingDir) -> ProgramEffects:
    del here
    return ProgramEffects(
        effects=(writes(Target(source=words[0].source), "it writes files that are not named"),)
    )


LANGUAGES: dict[str, _Reader] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("npx", "bunx", "pnpx", "uvx", "pipx"), _package_runner),
    "xdotool": _xdotool,
    "fio": _unknown_target,
}
