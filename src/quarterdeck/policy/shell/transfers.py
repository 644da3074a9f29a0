"""Programs that move data between this machine and others: hosts, local files among addresses.

Every host that a program contacts is among the `fetches` of its effects, as the URL of an `http`
scheme (`http://host/…`), whatever the protocol is. An empty text is a host that is not known.
Paths on other machines are no files here; a `file:` address is one.
"""

from __future__ import annotations

import re
from itertools import product
from math import prod
from urllib.parse import unquote

import msgspec

from quarterdeck.policy.shell.effects import ProgramEffects, reads, runs, writes
from quarterdeck.policy.shell.options import Parsed
from quarterdeck.policy.shell.script import Effect, Target, Word
from quarterdeck.policy.shell.uses import (
    Invocation,
    Reader,
    names_given,
    plain,
    uses_of,
    words_of,
)
from quarterdeck.policy.shell.working_dir import WorkingDir

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://?(.*)", re.DOTALL)
_LOCAL = re.compile(r"file:(?://(?:localhost|127\.0\.0\.1)?(?=/))?(.*)", re.IGNORECASE | re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*)\}")
_NUMERIC = re.compile(r"\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[^\]]*)?\]")
_WILD = re.compile(r"[*?\[]")
_HOST_PART = re.compile(r"(?:[^/]*:/*)?[^/?#]*[?]?")
MOST_ADDRESSES = 50
"""Addresses that one pattern with braces may stand for."""


def address(text: str | None) -> str:
    """The URL that a program contacts for an address as typed; empty if it is not known."""
    if not text:
        return ""
    found = _SCHEME.match(text)
    if found is not None:
        return f"http://{found[2].lstrip('/')}"
    return f"http://{text.lstrip('/')}"


def _expand(word: Word, *, globbed: bool) -> list[str] | None:
    """The addresses that curl makes of a word with `{a,b}`; None if they are not known."""
    text = word.text
    if text is None:
        return None
    before = _HOST_PART.match(text)
    host = _NUMERIC.sub("", "" if before is None else before[0])
    if ("[" in host and globbed) or (word.glob and _WILD.search(host)):
        return None
    if not globbed:
        return [text]
    choices = [
        piece.split(",") if at % 2 else [piece] for at, piece in enumerate(_BRACES.split(text))
    ]
    if prod(map(len, choices)) > MOST_ADDRESSES:
        return None
    return ["".join(each) for each in product(*choices)]


def local_file(text: str) -> str | None:
    """The path of a `file:` address."""
    found = _LOCAL.match(text)
    return None if found is None else unquote(found[1])


# --- curl --------------------------------------------------------------------------------------

_HOSTS = (
    "-x", "--preproxy", "--proxy1.0", "--socks4", "--socks4a", "--socks5", "--socks5-hostname",
    "--doh-url", "--ipfs-gateway",
)  # fmt: skip
_OUTPUT = re.compile(r"%output\{(>>)?([^}]*)\}")


def _curl(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    given = names_given(parsed)
    more: list[Effect] = []
    fetches = [address(word.text) for word in words_of(parsed, *_HOSTS)]
    for word in words_of(parsed, "--connect-to", "--resolve"):
        # `host:port:host:port`, `host:port:address,address`: the last ones are contacted.
        rest = (word.text or "").split(":", 2)[2:]
        fetches += [address(each.strip("+")) for each in (rest or [""])[0].split(",")]
    fetches += [
        address(each)
        for word in words_of(parsed, "--dns-servers")
        for each in (word.text or "").split(",")
    ]
    texts: list[str | None] = []
    for word in (*parsed.operands, *words_of(parsed, "--url")):
        expanded = _expand(word, globbed="-g" not in given)
        if expanded is None:
            more.append(runs(f"the address {word.source} is not known", word.source))
            more.append(reads(Target(source=word.source), "curl may read a local file"))
            texts.append(None)
        else:
            texts += expanded
    for text in texts:
        path = None if text is None else local_file(text)
        if path is None and text is not None and _uses_file(parsed) and "://" not in text:
            path = "/" + text.partition("/")[2]
        if path is not None:
            more.append(runs("curl reads a local file", "file:"))
            more.append(reads(_file(use, path, globbed="-g" not in given), "curl reads it"))
        else:
            fetches.append(address(text))
            if "--url" in given and text is not None and text.startswith("@"):
                more.append(reads(use.here.target(plain(text[1:])), "curl reads it"))
                more.append(runs("curl takes addresses from a file", "--url"))
    more += _curl_files(use, parsed, given, texts)
    return use.effects(more, _with_unknown(fetches, use, given & {"-K"}))


def _with_unknown(fetches: list[str], use: Invocation, files: frozenset[str]) -> list[str]:
    """The same, and an unknown host where a file, or a wrapper, gives more addresses."""
    return [*fetches, ""] if files or use.via is not None else fetches


def _file(use: Invocation, path: str, *, globbed: bool) -> Target:
    """A local file; not known where curl makes several names of one by `[a-z]`."""
    return Target(source=path) if globbed and "[" in path else use.here.target(plain(path))


def _uses_file(parsed: Parsed) -> bool:
    return any(
        (word.text or "file").lower() == "file" for word in words_of(parsed, "--proto-default")
    )


def _curl_files(
    use: Invocation, parsed: Parsed, given: frozenset[str], texts: list[str | None]
) -> list[Effect]:
    """Files that curl reads or writes without an option that names them."""
    found: list[Effect] = []
    if given & {"-n", "--netrc-optional"}:
        home = Word(source="~/.netrc", text="~/.netrc", prefix="~/.netrc", tilde=True)
        found.append(reads(use.here.target(home), "curl --netrc reads it"))
    for word in words_of(parsed, "-T"):
        sent = _expand(word, globbed=True) or [word.source]
        found += [reads(_file(use, each, globbed=True), "curl sends it") for each in sent]
    for word in words_of(parsed, "-F"):
        # `x=@"a",b;type=c;headers=@d`: every piece may be a file.
        pieces = re.split(r"[@<,;=]", word.text or "")
        names = dict.fromkeys(each.strip().strip('"') for each in pieces[1:] if each.strip())
        if re.search(r"[@<]", word.text or "@"):
            found += [reads(use.here.target(plain(each)), "curl may send it") for each in names]
    for word in words_of(parsed, "-o"):
        if re.search(r"#\d", word.prefix):
            # A part of the address is a part of the name.
            found.append(writes(Target(source=word.source), "curl -o writes it"))
    if uses_of(parsed, "-K"):
        unknown = Target(source="-K")
        found.append(reads(unknown, "curl -K takes options from a file"))
        found.append(writes(unknown, "curl -K takes options from a file"))
    found += [
        reads(use.here.target(word), "curl --cookie reads it")
        for word in words_of(parsed, "-b")
        if word.text is None or "=" not in word.text
    ]
    found += [
        writes(use.here.target(plain(each[2])), "curl --write-out writes it")
        for word in words_of(parsed, "-w")
        for each in _OUTPUT.finditer(word.text or "")
    ]
    if given & {"-O", "--remote-name-all"}:
        folder = use.here
        for word in words_of(parsed, "--output-dir"):
            folder = folder.into(word)
        for text in texts:
            name = "" if text is None else re.split(r"[?#]", text)[0].rstrip("/").rpartition("/")[2]
            target = folder.target(plain(name) if name else Word(source="-O"))
            found.append(writes(target, "curl -O writes it"))
    return found


# --- wget --------------------------------------------------------------------------------------

_MANY = frozenset({"-r", "-m", "-p"})
_WITH_FOLDERS = frozenset({"-x", "--protocol-directories"}) | _MANY


def _wget(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    given = names_given(parsed)
    more: list[Effect] = [
        runs("the server names the files that wget writes", each.typed)
        for each in uses_of(parsed, *_MANY)
    ]
    fetches = [address(word.text) for word in (*parsed.operands, *words_of(parsed, "-B"))]
    fetches = _with_unknown(fetches, use, given & {"-i", "--config"})
    if given & {"-O", "--spider"}:
        return use.effects(more, fetches)
    folder = use.here
    for word in words_of(parsed, "-P"):
        folder = folder.into(word)
    for word in parsed.operands:
        more += _download_effects(folder, word.text, with_folders=bool(given & _WITH_FOLDERS))
    more += [
        writes(folder.target(word), "wget writes it", own=True)
        for word in words_of(parsed, "--default-page")
    ]
    return use.effects(more, fetches)


def _download_effects(folder: WorkingDir, url: str | None, *, with_folders: bool) -> list[Effect]:
    """The file that wget makes of an address: its last name, or all of its path."""
    why = "wget writes it"
    path = re.split(r"[?#]", address(url).removeprefix("http://"))[0]
    if url is None:
        return [writes(folder.target(Word(source="…")), why, own=True)]
    rest = unquote(path.partition("/")[2])
    name = rest.rpartition("/")[2] or "index.html"
    if not with_folders:
        return [writes(folder.target(plain(name)), why, own=True)]
    # Options may leave out the host, and folders from the left.
    names = rest.split("/")
    ways = [path, *("/".join(names[at:]) or "." for at in range(min(len(names), MOST_ADDRESSES)))]
    below = msgspec.structs.replace(folder.target(plain(".")), deep=True)
    return [
        writes(below, "wget writes files there", own=True),
        *(writes(folder.target(plain(each)), why, own=True) for each in dict.fromkeys(ways)),
    ]


# --- programs of ssh, rsync --------------------------------------------------------------------

_THERE = re.compile(
    r"(?:(?:ssh|scp|sftp|rsync)://)?(?:[^/:@]*@)?(\[[^\]]*\]|[^/:\[]+)::?.*", re.DOTALL
)
_URL_THERE = re.compile(r"(?:scp|sftp|rsync|ssh)://(?:[^/@]*@)?([^/]*)", re.IGNORECASE)


def there(text: str) -> str | None:
    """The host of an operand such as `user@host:path`; None if it is a local path."""
    found = _URL_THERE.match(text) or _THERE.match(text)
    return None if found is None else found[1]


def _copy_between(use: Invocation) -> ProgramEffects:
    """scp, rsync: operands on other machines are hosts, the others are files."""
    parsed = use.parse()
    fetches: list[str] = []
    for word in parsed.operands:
        host = there(word.text if word.text is not None else word.prefix)
        if host is not None:
            fetches.append(f"http://{host}/")
        elif word.text is None:
            fetches.append("")
    fetches += [f"http://{_bare(word.text)}/" for word in words_of(parsed, "-J")]
    listed = [
        reads(Target(source=each.typed), f"{use.name} {each.typed} takes names from a file")
        for each in uses_of(parsed, "--files-from")
    ]
    found = use.effects(listed, fetches)
    if not fetches:
        return found
    effects = tuple(
        each for each in found.effects if each.target is None or there(each.target.source) is None
    )
    return msgspec.structs.replace(found, effects=effects)


def _bare(text: str | None) -> str:
    return (text or "").rpartition("@")[2]


_RUNS = re.compile(r"\s*\w*command\s*[=\s]\s*(.+)", re.IGNORECASE | re.DOTALL)
"""A setting of ssh that is a command: ProxyCommand, LocalCommand."""


_LEADS = re.compile(r"\s*(?:proxyjump|hostname)\s*[=\s]\s*(\S+)", re.IGNORECASE)


def _destination(use: Invocation) -> ProgramEffects:
    """ssh, sftp, ftp, telnet, nc, dig, ping: hosts are named without a scheme."""
    parsed = use.parse()
    named = parsed.operands
    if use.table.name in {"ssh", "telnet", "nc", "ncat", "sftp"}:
        named = named[:1]
    elif use.table.name in {"dig", "host", "nslookup"}:
        named = tuple(
            word for word in named if word.text is None or "." in word.text or "@" in word.text
        )
    elif use.table.name == "ftp":
        named = named if any("://" in (word.text or "") for word in named) else named[:1]
    words = [*named, *words_of(parsed, "-J", "-W", "-q", "--proxy", "-u")]
    if use.table.name in {"nc", "ncat", "dig"}:
        words += words_of(parsed, "-x")
    more: list[Effect] = []
    fetches: list[str] = []
    for word in words:
        text = word.text
        path = None if text is None else local_file(text)
        if path is not None:
            more.append(reads(use.here.target(plain(path)), f"{use.name} reads it"))
        elif text is None:
            fetches.append("")
        else:
            for each in text.split(","):
                host = there(each) or _bare(each) if "://" not in each else each
                fetches.append(address(host))
    if use.table.name == "ftp":
        more += [writes(use.here.target(plain(".")), "ftp writes files here", own=True)]
    settings = [word.prefix for word in words_of(parsed, "-o")]
    fetches += [address(_bare(each[1])) for each in map(_LEADS.match, settings) if each is not None]
    for word in words_of(parsed, "-L", "-R") if use.table.name == "ssh" else ():
        fetches += [address(each) for each in word.prefix.split(":") if "." in each]
    commands = [_RUNS.match(each) for each in settings]
    scripts = tuple(each[1] for each in commands if each is not None)
    return msgspec.structs.replace(use.effects(more, fetches), scripts=scripts)


# --- HTTPie and socat --------------------------------------------------------------------------

_METHOD = re.compile(r"[A-Za-z]+")
_FILE_ITEM = re.compile(r"[^=@]*?(?::=@|=@|@)(.*)", re.DOTALL)


def _httpie(use: Invocation) -> ProgramEffects:
    parsed = use.parse()
    named = list(parsed.operands)
    if len(named) > 1 and _METHOD.fullmatch(named[0].text or "") and not _is_item(named[1]):
        named.pop(0)
    more: list[Effect] = []
    fetches = [address(word.prefix.partition(":")[2]) for word in words_of(parsed, "--proxy")]
    if named:
        text = named.pop(0).text
        local = text is not None and text.startswith(":")
        fetches.append("http://localhost/" if local else address(text))
    for word in named:
        found = _FILE_ITEM.match(word.text) if word.text is not None else None
        if word.text is None or (found is not None and "==" not in word.text):
            target = use.here.target(plain(found[1].partition(";")[0]) if found else word)
            more.append(runs(f"{use.name} may send a file", word.source))
            more.append(reads(target, f"{use.name} sends it"))
    return use.effects(more, fetches)


def _is_item(word: Word) -> bool:
    text = word.text or ""
    return "=" in text.partition("/")[0] or "@" in text.partition("/")[0]


_FILES = frozenset({"open", "file", "gopen", "create", "creat", "pipe", "fifo"})
_CONTACTS = re.compile(
    r"(?:tcp|udp|sctp|openssl|ssl|dtls|udplite|dccp)[46]?(?:-connect|-datagram|-sendto)?"
)
_SILENT = frozenset({"-", "stdio", "stdin", "stdout", "stderr", "fd"})


def _socat(use: Invocation) -> ProgramEffects:
    """Each address is `kind:values,options`, or the path of a file."""
    more: list[Effect] = []
    fetches: list[str] = []
    scripts: list[str] = []
    for word in use.parse().operands:
        text = word.text
        if text is None:
            more.append(runs(f"the address {word.source} is not known", word.source))
            fetches.append("")
            continue
        for each in text.split("!!"):
            head, _, settings = each.partition(",")
            kind, _, value = head.partition(":")
            kind = kind.lower()
            if kind in _FILES or "/" in kind:
                path = plain(head if "/" in kind else value)
                if path.text:
                    more.append(reads(use.here.target(path), "socat reads it"))
                    more.append(writes(use.here.target(path), "socat writes it"))
            elif _CONTACTS.fullmatch(kind):
                fetches.append(address(value))
            elif kind.startswith(("proxy", "socks")):
                fetches += [address(each) for each in value.split(":")[:2]]
            elif kind not in _SILENT:
                more.append(runs(f"socat {kind} can run code or listen", head.partition(":")[0]))
                if kind in {"exec", "system", "shell"}:
                    scripts.append(value)
            if settings and kind not in _SILENT:
                more.append(runs(f"socat has settings for {kind}", settings))
    return msgspec.structs.replace(use.effects(more, fetches), scripts=tuple(scripts))


READERS: dict[str, Reader] = {
    "curl": _curl,
    "wget": _wget,
    "scp": _copy_between,
    "rsync": _copy_between,
    "ssh": _destination,
    "sftp": _destination,
    "telnet": _destination,
    "ftp": _destination,
    "nc": _destination,
    "ncat": _destination,
    "dig": _destination,
    "host": _destination,
    "nslookup": _destination,
    "ping": _destination,
    "http": _httpie,
    "socat": _socat,
}
