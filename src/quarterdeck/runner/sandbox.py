"""The sandbox of a run: from the hub's request and the facts of this machine to a command.

Owns those facts (home, repository, temporary folder, the runner's own files), and what happens
where the machine has no sandbox: `protect` becomes `off`, and `strict` is refused. `start` is
above; `quarterdeck.sandbox` is below, and makes the sandbox.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import anyio.to_thread
import msgspec

from quarterdeck import sandbox as boxes
from quarterdeck.claude.launch import ARGUMENT_FOLDER
from quarterdeck.domain.errors import LaunchError
from quarterdeck.domain.structs import Value
from quarterdeck.protocol.sandbox import (
    OFF,
    STRICT,
    Network,
    SandboxPaths,
    SandboxReport,
    SandboxRequest,
    SandboxState,
)
from quarterdeck.runner.home import RunRecord
from quarterdeck.runner.launch import Prepared
from quarterdeck.runner.patterns import is_known, look_up
from quarterdeck.sandbox.placeholders import Placeholders, is_placeholder
from quarterdeck.sandbox.plan import is_pattern
from quarterdeck.transcripts.layout import config_dir_of

MIB = 1024 * 1024
MOST_SHOWN = 200
"""Paths of each kind that are reported to the hub."""

TEMPORARY_FOLDER = "quarterdeck-run-"
"""How the names of folders for temporary files begin."""
KERNEL = ("/proc/", "/sys/", "/dev/")
"""What is in these folders are no files: they come and go with processes and devices."""


def _no_op() -> None:
    pass


CHOSEN, NOT_AVAILABLE = "chosen", "not_available"


class Enclosed(Value):
    """A command that runs in a sandbox, or as it is."""

    report: SandboxReport
    close: Callable[[], None] = _no_op
    order: bytes | None = None
    """The line for a launcher that waits; None: the command is started as it is."""


def may_be_enclosed(request: SandboxRequest | None) -> bool:
    """Whether a run is asked to be in a sandbox, and nothing is known against it."""
    if request is None or request.mode == OFF:
        return False
    tried = boxes.last_probe()
    return tried is None or any(each.works for each in tried)


Matched = tuple[SandboxRequest, tuple[str, ...]]
"""A request with paths in the place of patterns, and what was not looked up."""


class OwnPaths(Value):
    """The runner's own files, which no agent may see."""

    hidden: tuple[str, ...] = ()
    worktrees: str = ""
    """The folder in those where agents work."""


def make_temporary() -> str:
    """A new folder for the temporary files of a run, private to its user. Blocks."""
    return tempfile.mkdtemp(prefix=TEMPORARY_FOLDER)


def remove_temporary(folder: str) -> None:
    """Remove it, with all that the agent left there. Blocks."""
    _remove(folder, TEMPORARY_FOLDER)


def _remove(folder: str, prefix: str) -> None:
    """Remove a folder of ours: a record that was changed by hand must not name another one."""
    if Path(folder).name.startswith(prefix):
        shutil.rmtree(folder, ignore_errors=True)


def clean_up(left: Iterable[RunRecord]) -> None:
    """Remove what a killed runner left of its runs' files and sandboxes. Blocks."""
    for record in left:
        if record.temporary is not None:
            remove_temporary(record.temporary)
        if record.arguments is not None:
            _remove(record.arguments, ARGUMENT_FOLDER)
        if record.sandbox is not None:
            Placeholders(_placeholders(record.sandbox.paths.read_only)).close()


def _placeholders(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if is_placeholder(path)]


async def enclose(
    request: SandboxRequest | None,
    ready: Prepared,
    own: OwnPaths,
    temporary: str,
    on_connection: Callable[[boxes.Connection], None],
    ahead: LookAhead | None = None,
) -> Enclosed:
    """Put a CLI that is ready to start into its sandbox. `ahead` has looked for it before.

    Raises `LaunchError` if there must be one and cannot be, or if it cannot be made.
    """
    if request is None or request.mode == OFF:
        reason = CHOSEN if request is not None else "not_asked"
        return Enclosed(report=SandboxReport(state=SandboxState(reason=reason)))
    matched = ahead.found_in(ready.directory) if ahead is not None else None
    planned = await anyio.to_thread.run_sync(_plan, request, matched, ready, own, temporary)
    kind, gaps, made = planned.kind, planned.gaps, planned.made
    if kind is None:
        return Enclosed(report=SandboxReport(state=await _without(request)))
    if made is None:
        made = await boxes.open_sandbox(
            planned.spec,
            (*ready.command, *ready.argv),
            ready.env,
            cwd=ready.directory,
            kind=kind,
            on_connection=on_connection,
        )
    with ExitStack() as undo:
        undo.callback(made.close)
        order = made.order_line()
        undo.pop_all()
    return Enclosed(
        report=SandboxReport(
            state=SandboxState(
                mode=request.mode,
                kind=kind.value,
                wanted=request.mode,
                network=_network_of(request),
                detail=_why(kind),
            ),
            paths=SandboxPaths(
                # The first is the folder of the session: relative paths begin there.
                writable=_few((ready.directory, *made.spec.writable)),
                # Placeholders are never cut off: the next runner may have to remove them.
                read_only=_few((*made.placeholders, *made.spec.read_only)),
                hidden=_few(made.spec.hidden),
                not_enforced=_few((*gaps, *made.not_enforced)),
            ),
        ),
        close=made.close,
        order=order,
    )


class _Plan(Value):
    """The sandbox of a run, as far as a thread can make it."""

    spec: boxes.SandboxSpec
    kind: boxes.Kind | None
    """None: no kind can make it."""
    gaps: tuple[str, ...]
    """What it will lack."""
    made: boxes.Sandbox | None = None
    """None: it needs the event loop, for a proxy."""


def _plan(
    request: SandboxRequest,
    matched: Matched | None,
    ready: Prepared,
    own: OwnPaths,
    temporary: str,
) -> _Plan:
    """Plan the sandbox that is asked for, and open it if its network is not limited. Blocks."""
    known, gaps = matched or with_paths(request, ready.directory)
    spec = spec_for(known, ready, own, temporary)
    kind = boxes.choose(spec)
    plan = _Plan(spec=spec, kind=kind, gaps=(*gaps, *_left_out(request, ready.env)))
    if kind is None or spec.network.kind is not boxes.NetworkKind.ALL:
        return plan
    command = (*ready.command, *ready.argv)
    made = boxes.open_now(spec, command, ready.env, cwd=ready.directory, kind=kind)
    return msgspec.structs.replace(plan, made=made)


class LookAhead:
    """What can be found out about a sandbox while other things are prepared: which kinds work on
    this machine, and what the patterns of the rules match in the project.
    """

    def __init__(self, request: SandboxRequest | None, project: str | None) -> None:
        """`project` is the folder of the session, if it is there already."""
        self._request = request if may_be_enclosed(request) else None
        self._project = None if project is None else os.fspath(Path(project))
        self._found: Matched | None = None

    async def look_up(self) -> None:
        """Look up the patterns in a project that is not known yet; else that takes little time, and
        both would only wait for each other. If it is cancelled, that takes effect when it is done.
        """
        asked, project = self._request, self._project
        if asked is None or project is None:
            return
        if not is_known(project, (*asked.deny_read, *asked.deny_edit)):
            self._found = await anyio.to_thread.run_sync(with_paths, asked, project)

    async def try_kinds(self) -> None:
        """Try which kinds work, once for all starts."""
        if self._request is not None and boxes.last_probe() is None:
            await anyio.to_thread.run_sync(boxes.probe)

    def found_in(self, project: str) -> Matched | None:
        """What the patterns match in this folder, if that was looked up."""
        return self._found if project == self._project else None


def with_paths(request: SandboxRequest, project: str) -> Matched:
    """The request with paths in the place of patterns for every depth of the project, and what was
    not looked up. Reads the disk.
    """
    found = look_up(project, (*request.deny_read, *request.deny_edit))

    def paths(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path for each in given for path in found.paths.get(each, (each,)))

    gaps = () if found.complete else (f"{project}/**: not all of its files were looked up",)
    made = msgspec.structs.replace(
        request, deny_read=paths(request.deny_read), deny_edit=paths(request.deny_edit)
    )
    return made, gaps


def refused_rule(path: str, env: Mapping[str, str]) -> str:
    """Why a path of a rule cannot be part of a sandbox; empty if it can."""
    if path.startswith(KERNEL):
        return "it is of the kernel, and not a file"
    home = env.get("HOME") or str(Path.home())
    if path.startswith("~"):
        path = home + path[1:]
    path = path.removesuffix("/**") or "/"
    around = _around(config_dir_of(env) or f"{home}/.claude", f"{home}/.claude.json")
    if path in around or (is_pattern(path) and any(fnmatchcase(each, path) for each in around)):
        return "the CLI needs what is in it"
    return ""


@lru_cache(maxsize=64)
def _around(*needed: str) -> frozenset[str]:
    """Paths, and the folders that they are in."""
    return frozenset(str(each) for path in needed for each in (Path(path), *Path(path).parents))


def _left_out(request: SandboxRequest, env: Mapping[str, str]) -> Iterator[str]:
    for path in dict.fromkeys((*request.deny_read, *request.deny_edit)):
        if why := refused_rule(path, env):
            yield f"{path}: {why}"


def _few(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))[:MOST_SHOWN]


async def _without(request: SandboxRequest) -> SandboxState:
    """The state of a run on a machine without a sandbox. Raises `LaunchError` if that must not be.

    A limited network is a must, too: nobody would expect it to be open.
    """
    found = await anyio.to_thread.run_sync(boxes.probe)
    why = "; ".join(f"{each.kind.value}: {each.why}" for each in found)
    if request.mode == STRICT or _network_of(request) != "all":
        raise LaunchError(
            "sandbox: this session must have one, and this machine cannot make it"
            f" ({why or 'there is no kind for this system'}). Install bubblewrap, see `quarterdeck"
            " doctor`, or start the session with another mode."
        )
    return SandboxState(wanted=request.mode, reason=NOT_AVAILABLE, detail=why)


def spec_for(
    request: SandboxRequest, ready: Prepared, own: OwnPaths, temporary: str
) -> boxes.SandboxSpec:
    """The sandbox that is asked for, on this machine. Reads the disk."""
    options, env = request.options, ready.env
    return boxes.plan(
        boxes.SandboxMode(request.mode),
        project=ready.directory,
        home=env.get("HOME") or str(Path.home()),
        temporary=temporary,
        repository=boxes.find_repository(ready.directory),
        config_dir=env.get("CLAUDE_CONFIG_DIR"),
        private=(*request.private, *own.hidden),
        open_folders=(*request.open, *((own.worktrees,) if own.worktrees else ())),
        deny_read=tuple(path for path in request.deny_read if not refused_rule(path, env)),
        deny_edit=tuple(path for path in request.deny_edit if not refused_rule(path, env)),
        allow_edit=(*request.allow_edit, *options.writable),
        network=_as_network(_network_of(request)),
        limits=boxes.Limits(
            memory=_bytes(options.memory_mb),
            processes=options.processes,
            file_size=_bytes(options.file_size_mb),
        ),
        model_url=model_url(env),
        user=os.getuid(),
    )


class _UserSettings(msgspec.Struct):
    """The user's settings of the CLI, as far as they name the model's address."""

    env: dict[str, object] = msgspec.field(default_factory=dict)


def model_url(env: Mapping[str, str]) -> str | None:
    """The address of the model, if it is not Anthropic's: from the environment of the CLI, or from
    the user's settings. Those of a project do not count: an agent may have written them.
    """
    if given := env.get("ANTHROPIC_BASE_URL"):
        return given
    folder = config_dir_of(env)
    if folder is None:
        return None
    try:
        text = (Path(folder) / "settings.json").read_bytes()
        found = msgspec.json.decode(text, type=_UserSettings).env.get("ANTHROPIC_BASE_URL")
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, str) and found else None


def _network_of(request: SandboxRequest) -> Network:
    if request.options.network is not None:
        return request.options.network
    return "model" if request.mode == STRICT else "all"


def _as_network(network: Network) -> boxes.Network:
    if network == "all":
        return boxes.Network()
    if network == "model":
        return boxes.Network(kind=boxes.NetworkKind.MODEL)
    return boxes.Network(kind=boxes.NetworkKind.HOSTS, hosts=tuple(network))


def _bytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes * MIB


def _why(kind: boxes.Kind) -> str:
    """What this kind cannot do, for a person. The kinds were probed before."""
    return next((each.why for each in boxes.probe() if each.kind is kind), "")
