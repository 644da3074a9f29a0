"""The command `quarterdeck-claude`: what a program starts in place of `claude`.

Owns which CLI is run, which hub is used, and what happens when there is none: nothing is run then,
unless a variable says so. Modules that take time to load are loaded when they are needed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from quarterdeck.domain.errors import LinkRefused, QuarterdeckError
from quarterdeck.program.arguments import (
    CommandLine,
    command_line,
    prints_only,
    speaks_stream_json,
    with_settings,
)

if TYPE_CHECKING:
    from quarterdeck.protocol.runner_frames import Program
    from quarterdeck.runner.hublink import Hub

NAME = "quarterdeck-claude"
URL, TOKEN, TOKEN_FILE = "QUARTERDECK_URL", "QUARTERDECK_TOKEN", "QUARTERDECK_TOKEN_FILE"
CA_FILE = "QUARTERDECK_CA_FILE"
WITHOUT = "QUARTERDECK_WITHOUT_HUB"
"""`1` lets the program run without the hub when none can be reached, or when it refuses."""
PROGRAM = "QUARTERDECK_PROGRAM"
"""What the program is called in the hub."""
FAILED = 1
_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb")


def main() -> None:
    """Run the CLI for a program. The exit code is the CLI's."""
    try:
        sys.exit(run(sys.argv[1:], os.environ))
    except QuarterdeckError as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        sys.exit(FAILED)


def run(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one command line to its end. Raises `QuarterdeckError`."""
    command = real_claude(environ)
    if not speaks_stream_json(argv):
        if prints_only(argv):
            sys.stderr.write(
                f"{NAME}: runs without the hub: without --input-format and --output-format"
                " stream-json there is nobody to ask\n"
            )
        _replace_by(command, argv, environ)
    line = command_line(argv, environ)
    try:
        find = hub_finder(environ)
        code = _bridge(command, line, find, _program(line, environ))
    except LinkRefused as error:
        if environ.get(WITHOUT) != "1":
            raise LinkRefused(
                f"{error}. Nothing was run. Start a hub with `quarterdeck serve`, or set"
                f" {WITHOUT}=1 to run without one."
            ) from error
        sys.stderr.write(f"{NAME}: runs without the hub ({WITHOUT}=1): {error}\n")
        _replace_by(command, argv, environ)
    if code < 0:
        # As the CLI ended: who started us sees the same signal.
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def real_claude(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command of the real CLI: never ourselves, also where we are `claude` on the PATH."""
    from quarterdeck.claude.locate import find_claude

    me = _own_file()
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [folder for folder in folders if not _is_ours(folder, me)]
    return find_claude(environ={**environ, "PATH": os.pathsep.join(kept)})


def _own_file() -> Path | None:
    found = shutil.which(sys.argv[0]) if os.sep not in sys.argv[0] else sys.argv[0]
    return Path(found).resolve() if found else None


def _is_ours(folder: str, me: Path | None) -> bool:
    there = Path(folder or ".") / "claude"
    if not there.exists():
        return False
    return there.resolve() == me or there.resolve().name == NAME


def _replace_by(
    command: Sequence[str], argv: Sequence[str], environ: Mapping[str, str]
) -> NoReturn:
    """Become the real CLI. Does not return."""
    from quarterdeck.program.arguments import agent_environment

    os.execvpe(command[0], [*command, *argv], agent_environment(environ))  # noqa: S606


def hub_finder(environ: Mapping[str, str]) -> Callable[[], Hub]:
    """Finds the hub, for each attempt anew. Raises `LinkRefused` if there is none to look for."""
    from quarterdeck.runner.hublink import Hub
    from quarterdeck.runtime.agent_process import is_agent
    from quarterdeck.runtime.data_dir import PROGRAM_TOKEN, data_home
    from quarterdeck.runtime.local_hub import live_hub, read_state

    token: str | Path = environ.get(TOKEN, "")
    if not token and (file := environ.get(TOKEN_FILE)):
        token = Path(file)
    if not token:
        if is_agent(environ):
            raise LinkRefused("this process was started by an agent, which has no token of its own")
        token = data_home(create=False) / PROGRAM_TOKEN
    ca_file = Path(environ[CA_FILE]) if environ.get(CA_FILE) else None
    if url := environ.get(URL):
        hub = Hub(url, token, ca_file=ca_file)
        return lambda: hub

    home = data_home(create=False)
    if live_hub(home) is None and read_state(home) is None:
        raise LinkRefused("no hub runs on this machine")

    def local() -> Hub:
        state = live_hub(home) or read_state(home)
        if state is None:
            raise LinkRefused("no hub runs on this machine")
        authority = ca_file or (Path(state.ca_file) if state.ca_file else None)
        return Hub(state.address, token, ca_file=authority)

    return local


def _program(line: CommandLine, environ: Mapping[str, str]) -> Program:
    from msgspec.structs import asdict

    from quarterdeck.domain.ids import new_id
    from quarterdeck.protocol.runner_frames import (
        PROTOCOL,
        Program,
        ProgramLimits,
        program_session,
    )

    began, key = round(time.time(), 3), os.urandom(32).hex()
    return Program(
        protocol=PROTOCOL,
        session=program_session(began, key),
        run=new_id(),
        key=key,
        began=began,
        name=environ.get(PROGRAM) or _parent_name(),
        directory=str(Path.cwd()),
        mode=line.given.mode,
        skip_permissions=line.given.skip_permissions,
        model=line.given.model,
        limits=ProgramLimits(**asdict(line.given.limits)),
        own_options=line.given.own_options,
    )


def _parent_name() -> str:
    """What the program that started us is called: its script, or its command."""
    try:
        words = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "program"
    parts = [Path(word).name for word in words.split("\0") if word]
    scripts = (part for part in parts if part.endswith(_SCRIPTS))
    return next(scripts, parts[0] if parts else "program")[:80]


def _bridge(
    command: Sequence[str], line: CommandLine, find: Callable[[], Hub], program: Program
) -> int:
    import anyio
    from msgspec.structs import replace

    from quarterdeck.claude.launch import ArgumentFiles
    from quarterdeck.claude.locate import cli_version
    from quarterdeck.program.bridge import Bridge
    from quarterdeck.program.hub_link import HubLink
    from quarterdeck.program.settings import guarded_settings
    from quarterdeck.runner.limits import Bounds
    from quarterdeck.runner.spool import Spool

    async def serve(line: CommandLine) -> int:
        folder = Path(tempfile.mkdtemp(prefix="quarterdeck-program-"))
        spool = Spool.create(folder, Bounds())
        try:
            bridge = Bridge(line)
            hub = HubLink(find, program, spool, bridge.take_hub, bridge.stop)
            return await bridge.run(command, hub)
        finally:
            spool.remove()

    with ArgumentFiles() as files:
        settings = guarded_settings(line.given, Path.cwd(), files, cli_version(command))
        guarded = replace(line, argv=with_settings(line.argv, settings))
        return anyio.run(serve, guarded)
