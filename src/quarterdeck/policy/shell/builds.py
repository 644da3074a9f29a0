"""Build tools, containers and formatters: what depends on the form of a value.

The tables tell the options. The readers here know that a definition for cmake may name a compiler,
that `-v` of docker opens a folder of this machine to a container, and when a formatter writes.
"""

from __future__ import annotations

import re

import msgspec

from quarterdeck.domain.structs import name_set
from quarterdeck.policy.shell.effects import ProgramEffects, alters, reads, runs, writes
from quarterdeck.policy.shell.options import Parsed
from quarterdeck.policy.shell.script import Effect, Word
from quarterdeck.policy.shell.tables import table_of
from quarterdeck.policy.shell.transfers import address, local_file
from quarterdeck.policy.shell.uses import (
    Invocation,
    Reader,
    folders,
    names_given,
    plain,
    uses_of,
    words_of,
)

_SETS = re.compile(r"[^=\s]*=")
_PLAIN_VALUE = re.compile(
    r"[\w.:-]+=(?:ON|OFF|TRUE|FALSE|YES|NO|[0-9.]*|Release|Debug|RelWithDebInfo|MinSizeRel)",
    re.IGNORECASE,
)
_PLAIN_FLAGS = re.compile(
    r"(?:[\w./]+=)?(?:\s*(?:-[swNlmS]|-trimpath|-dwarf=\w+|-X[ =]\S+|'-X [^']+'))*\s*"
)


def _make(use: Invocation) -> ProgramEffects:
    """Every word with `=` sets a variable of the makefile, whatever its name is."""
    sets = [
        alters(f"{word.source} changes the commands of make", word.prefix.partition("=")[0] + "=")
        for word in use.parse().operands
        if _SETS.match(word.prefix)
    ]
    return use.effects(sets)


def _cmake(use: Invocation) -> ProgramEffects:
    more: list[Effect] = [
        runs("cmake -D may set a program or a file that is run", given.typed)
        for given in uses_of(use.parse(), "-D")
        if not _PLAIN_VALUE.fullmatch(given.values[0].text or "")
    ]
    literals = [word.literal for word in use.words]
    if "-E" in literals:
        # `cmake -E` has commands of its own: copy, rm, touch, env.
        rest = use.words[literals.index("-E") + 1 :]
        more += [writes(use.here.target(word), "cmake -E may write it") for word in rest]
        script = " ".join(word.source for word in rest)
        return msgspec.structs.replace(use.effects(more), scripts=(script,) if script else ())
    if "--" in literals:
        # Words for the build tool: a number of jobs and targets only.
        more += [
            runs(f"{word.source} is an option of the build tool", word.source)
            for word in use.words[literals.index("--") + 1 :]
            if not re.fullmatch(r"-j\d*|\w[\w.-]*", word.literal or "")
        ]
    return use.effects(more)


def _go(use: Invocation) -> ProgramEffects:
    more = [
        runs(f"go {given.typed} may name programs that the build runs", given.typed)
        for given in uses_of(use.parse(), "-ldflags", "-gcflags", "-asmflags")
        if not _PLAIN_FLAGS.fullmatch(given.values[0].text or "") or given.values[0].text is None
    ]
    # After -args, the test itself gets the words.
    more += [
        runs(f"{word.source} is an option of the test", word.source)
        for word in use.words[1:]
        if word.prefix.lstrip("-").startswith("test.") and uses_of(use.parse(), "-args")
    ]
    return _with_addresses(use, use.effects(more))


_LINT = re.compile(r"-[DWAF](?:\S+)?|--(?:deny|warn|allow|forbid)(?:=\S+)?|\w[\w:-]*|--check|-l")


def _cargo(use: Invocation) -> ProgramEffects:
    """Words after `--` are for the compiler, or for the formatter."""
    parsed = use.parse()
    more = [
        runs(f"{word.source} may be a path, not the name of a toolchain", word.source)
        for word in use.words[1:]
        if word.prefix.startswith("+") and "/" in word.prefix
    ]
    kind = parsed.table.name.rpartition(" ")[2]
    if kind in {"rustc", "rustdoc", "clippy", "fmt"}:
        more += [
            runs(f"{word.source} is for the program that cargo {kind} runs", word.source)
            for word in parsed.operands
            if not _LINT.fullmatch(word.literal or "")
        ]
    more += [
        reads(use.here.target(word), "cargo --config reads it")
        for word in words_of(parsed, "--config")
    ]
    return _with_addresses(use, use.effects(more))


def _pytest(use: Invocation) -> ProgramEffects:
    """A report may have a file of its own: `--cov-report=xml:file`."""
    files = [(word.text or "").partition(":")[2] for word in words_of(use.parse(), "--cov-report")]
    return use.effects(
        writes(use.here.target(plain(each)), "pytest writes it") for each in files if each
    )


def _patch(use: Invocation) -> ProgramEffects:
    """The patch names the files, unless an operand does."""
    parsed = use.parse()
    if parsed.operands or uses_of(parsed, "-o", "--dry-run"):
        return use.effects()
    return use.effects(
        writes(place.target(plain(".")), "patch changes files there", own=True)
        for place in folders(parsed, use.here)
    )


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def _packages(use: Invocation) -> ProgramEffects:
    """Package managers and clients: an operand or a value may be an address."""
    return _with_addresses(use, use.effects())


def _with_addresses(use: Invocation, found: ProgramEffects) -> ProgramEffects:
    """The same, and hosts and local files that are among the words as addresses."""
    parsed = use.parse()
    words = [*parsed.operands, *(word for given in parsed.options for word in given.values)]
    texts = [word.prefix.rpartition(" @ ")[2].removeprefix("=") for word in words]
    texts += [word.prefix.partition("=")[2] for word in use.words[1:] if word.prefix[:1] == "-"]
    paths = [local_file(text) for text in texts]
    more = [
        reads(use.here.target(plain(path)), f"{use.name} reads it")
        for path in paths
        if path is not None
    ]
    hosts = [address(each) for each in found.fetches]
    hosts += [
        address(text)
        for text, path in zip(texts, paths, strict=True)
        if path is None and _ADDRESS.match(text)
    ]
    hosts += [address(word.prefix) for word in parsed.operands if _by_name(parsed, word)]
    return msgspec.structs.replace(
        found,
        effects=(*found.effects, *more),
        fetches=tuple(dict.fromkeys(hosts)),
        looks=found.looks and not hosts,
    )


_REGISTRY = re.compile(r"(?:[\w-]+(?:\.[\w-]+)+|localhost|[\w.-]+:\d+)(?:/.*)?", re.DOTALL)
_BY_NAME = re.compile(
    r"go (?:get|install|run|build|test|list|mod download)|(?:docker|podman)(?: image| container)?"
    r" (?:pull|push|run|create|login|search)"
)
"""Subcommands whose operands begin with a host: `go get host/x`, `docker pull host/x`."""


def _by_name(parsed: Parsed, word: Word) -> bool:
    if _BY_NAME.fullmatch(parsed.table.name) is None:
        return False
    first = word.prefix.partition("@")[0]
    login = parsed.table.name.endswith("login")
    return _REGISTRY.fullmatch(first) is not None and ("/" in first or login)


_NEGATED = re.compile(r"-+(?:(?:no-)+|config\.)([^=]+)", re.IGNORECASE)


def _npm(use: Invocation) -> ProgramEffects:
    """npm, pnpm: `--no-x=value` gives `x` a value, with any number of `no-`; `--config.x`, too."""
    found = _packages(use)
    table = use.parse().table
    more = [
        runs(f"{use.name} {word.source} may set {name[1]}", word.prefix.partition("=")[0])
        for word in use.words[1:]
        if (name := _NEGATED.match(word.prefix)) is not None and table.may_act(name[1])
    ]
    more += [
        writes(use.here.target(word), f"{use.name} may write there")
        for word in words_of(use.parse(), "--prefix")
    ]
    return msgspec.structs.replace(
        found,
        effects=(*found.effects, *more),
        looks=found.looks and not more,
        scripts=_fallback(use) if use.table.name == "pnpm" else (),
    )


_OF_NODE = frozenset({"eslint", "jest", "prettier", "tsc", "vitest"})
"""Programs that a project has among its packages: `pnpm tsc`."""


def _fallback(use: Invocation) -> tuple[str, ...]:
    """Pnpm runs a word that is no script and no subcommand as a command."""
    parsed = use.parse()
    if parsed.table is not use.table or not parsed.operands:
        return ()
    name = parsed.operands[0].literal or ""
    if name in _PNPM or name in _OF_NODE or table_of(name) is None:
        return ()
    return (" ".join(word.source for word in parsed.operands),)


_PNPM = name_set(
    "add ci deploy fetch i import in inst install link ln pack patch prune publish rb rebuild"
    " remove rm run run-script t test tst start stop restart un uninstall unlink up update upgrade"
)
"""Subcommands of pnpm that are called like programs, and others that do not only look."""


def _yarn(use: Invocation) -> ProgramEffects:
    """`yarn workspace a exec command`, `yarn workspaces foreach exec command`."""
    operands = use.parse().operands
    texts = [word.literal for word in operands]
    found = _packages(use)
    if not texts or texts[0] not in {"workspace", "workspaces"} or "exec" not in texts:
        return found
    command = operands[texts.index("exec") + 1 :]
    return msgspec.structs.replace(found, scripts=(" ".join(word.source for word in command),))


# --- containers --------------------------------------------------------------------------------

_IN_CONTAINER = re.compile(r"[^/.:][^/:]*:.*", re.DOTALL)
_OWN_FOLDER = re.compile(r"\"?(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)\"?([^:$`\"]*)")
_SOURCE = re.compile(r"(?:^|,)(?:source|src)=([^,]*)")


def _docker(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    more: list[Effect] = []
    for word in words_of(parsed, "-v", "--volume"):
        more += _mount_effects(
            use, word, word.text if word.text is None else word.text.split(":")[0]
        )
    for word in words_of(parsed, "--mount"):
        source = _SOURCE.search(word.text or "")
        if word.text is None or source is not None:
            more += _mount_effects(use, word, None if source is None else source[1])
    for word in words_of(parsed, "--secret"):
        source = _SOURCE.search(word.text or "")
        if source is not None:
            more.append(reads(use.here.target(plain(source[1])), f"{use.name} reads it"))
    return _with_addresses(use, _copies(use.effects(more), parsed))


def _copies(found: ProgramEffects, parsed: Parsed) -> ProgramEffects:
    """Without the files in a container, which a `cp` names as `container:path`."""
    if not parsed.table.name.endswith(" cp"):
        return found
    here = tuple(
        each
        for each in found.effects
        if each.target is None or not _IN_CONTAINER.fullmatch(each.target.source)
    )
    return msgspec.structs.replace(found, effects=here)


def _kubectl(use: Invocation) -> ProgramEffects:
    """kubectl, helm: files that are given as `key=path`, or a path alone."""
    parsed = use.parse()
    more = [
        reads(
            use.here.target(word if word.text is None else plain(word.text.rpartition("=")[2])),
            f"{use.name} {given.typed} sends it",
        )
        for given in uses_of(parsed, "--from-file", "--set-file")
        for word in given.values
    ]
    shown = [word.prefix for word in words_of(parsed, "-o")]
    files = [each.partition("=")[2] for each in shown if "file" in each.partition("=")[0]]
    files += [word.prefix for word in words_of(parsed, "--template") if files]
    more += [reads(use.here.target(plain(each)), f"{use.name} reads it") for each in files if each]
    return _with_addresses(use, _copies(use.effects(more), parsed))


_ADDRESSED = re.compile(r"\w+://")


def _storage(use: Invocation) -> ProgramEffects:
    """aws, gh: operands with a scheme are not files here; `file#name` is a file with a name."""
    found = use.effects()
    here = [
        each
        for each in found.effects
        if each.target is None or not _ADDRESSED.match(each.target.source)
    ]
    named = [word.prefix.partition("#")[0] for word in use.parse().operands if "#" in word.prefix]
    here += [reads(use.here.target(plain(each)), f"{use.name} reads it") for each in named if each]
    return _with_addresses(use, msgspec.structs.replace(found, effects=tuple(here)))


def _mount_effects(use: Invocation, word: Word, path: str | None) -> list[Effect]:
    """A folder of this machine that a container may use. A name without a slash is a volume."""
    if path is None and (own_folder := _OWN_FOLDER.match(word.source)) is not None:
        path = "." + own_folder[1]
    if path is None:
        target = use.here.target(word)
    elif path.startswith(("/", ".", "~")) or "/" in path:
        tilde = path.startswith("~") and word.tilde
        target = use.here.target(Word(source=path, text=path, prefix=path, tilde=tilde))
    else:
        return []
    own = {base for base, _ in use.here.dirs}
    inside = all(any(f"{each}/".startswith(f"{base}/") for base in own) for each in target.paths)
    # The project's folder is what containers are for; all that is below another one is opened.
    target = msgspec.structs.replace(target, deep=bool(target.paths) and not inside)
    readonly = word.text is not None and re.search(r":ro\b|readonly|,ro\b", word.text) is not None
    why = f"{use.name} opens it to a container"
    return [reads(target, why)] if readonly else [reads(target, why), writes(target, why)]


# --- formatters and checkers -------------------------------------------------------------------

_FIXES = {
    "ruff check": frozenset({"--fix", "--fix-only", "--add-noqa", "--add-ignore"}),
    "eslint": frozenset({"--fix"}),
    "prettier": frozenset({"-w"}),
    "gofmt": frozenset({"-w"}),
}


def _formatter(use: Invocation) -> ProgramEffects:
    """ruff, black, prettier, eslint: they write with an option, or without one."""
    parsed = use.parse()
    if not _writes(parsed):
        return use.effects()
    named = parsed.operands or (plain("."),)
    why = f"{use.name} changes files there"
    return use.effects(writes(use.here.target(word), why, own=True) for word in named)


def _writes(parsed: Parsed) -> bool:
    given = names_given(parsed)
    if parsed.table.name in {"ruff format", "black"}:
        return not given & {"--check", "--diff", "-c"}
    return bool(given & _FIXES.get(parsed.table.name, frozenset()))


# --- for later ---------------------------------------------------------------------------------


def _crontab(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    if "-l" in names_given(parsed) and not parsed.operands:
        return use.effects()
    named = parsed.operands[0].source if parsed.operands else "-"
    return use.effects([runs("crontab schedules commands", named)])


def _at(use: Invocation) -> ProgramEffects:
    """It runs its input later, unless it lists, shows or removes jobs."""
    if names_given(use.parse()) & {"-l", "-c", "-r", "-f"}:
        return use.effects()
    return use.effects([runs(f"{use.name} runs its input", "-")])


def _gcc(use: Invocation) -> ProgramEffects:
    """The preprocessor writes to its second operand."""
    use = use.with_table(operands="read write") if use.name == "cpp" else use
    passed = words_of(use.parse(), "-Wl,", "-Xlinker", "-C", "--emit", "-XX:", "-Xlog:", "--config")
    return use.effects(_pieces(use, passed))


def _pieces(use: Invocation, words: list[Word]) -> list[Effect]:
    """Files in a value that another program takes apart: `-Wl,-Map=x`, `--emit=link=x`."""
    found: list[Effect] = []
    for word in words:
        for each in re.split(r"[,=:]", word.prefix):
            if each and not each.startswith("-"):
                target = use.here.target(plain(each))
                found.append(reads(target, f"{use.name} may read it"))
                if "/" in each:
                    found.append(writes(target, f"{use.name} may write it"))
    return found


READERS: dict[str, Reader] = {
    "make": _make,
    "gcc": _gcc,
    "rustc": _gcc,
    "java": _gcc,
    "cmake": _cmake,
    "go": _go,
    "npm": _npm,
    "pnpm": _npm,
    "yarn": _yarn,
    "cargo": _cargo,
    "pytest": _pytest,
    "patch": _patch,
    **dict.fromkeys(
        (
            "pip",
            "uv",
            "gem",
            "composer",
            "brew",
            "poetry",
            "terraform",
            "apt",
            "apt-get",
            "dnf",
            "conda",
            "gcloud",
            "az",
            "glab",
            "dotnet",
            "mvn",
        ),
        _packages,
    ),
    "docker": _docker,
    "podman": _docker,
    "docker-compose": _docker,
    "kubectl": _kubectl,
    "helm": _kubectl,
    "aws": _storage,
    "gh": _storage,
    "ruff": _formatter,
    "black": _formatter,
    "prettier": _formatter,
    "gofmt": _formatter,
    "eslint": _formatter,
    "crontab": _crontab,
    "at": _at,
}
