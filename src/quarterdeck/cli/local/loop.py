"""`quarterdeck loop run --local`: a loop in this process, without a hub.

`service.local_loops` decides how its agents are started, and about their calls. Owns who answers
their questions (a person at the terminal, if there is one), and what Ctrl-C means: the first stops
the loop, the second ends the process at once.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import msgspec
from msgspec import Raw
from msgspec.structs import asdict, replace

from quarterdeck.agent.service import Decide
from quarterdeck.cli.exits import Exit
from quarterdeck.cli.hub import spec as values
from quarterdeck.cli.local.launch_texts import LaunchTexts
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.keyboard import Keyboard
from quarterdeck.cli.terminal.keys import Keys, keyboard_there
from quarterdeck.cli.terminal.output import print_json, print_line
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.cli.terminal.text import plain
from quarterdeck.domain.errors import QuarterdeckError, UsageError
from quarterdeck.domain.structs import DECODE_ERRORS
from quarterdeck.loop.agent_worker import AgentWorker
from quarterdeck.loop.report import LoopReport, report_of
from quarterdeck.loop.runner import new_loop, reopen, run_loop
from quarterdeck.loop.spec import EXIT_CODES, GOALS, LONGEST_TASK, LoopSpec
from quarterdeck.loop.state import LoopState
from quarterdeck.loop.store import LoopStore, Wanted
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.local_hub import person_here
from quarterdeck.service.local_loops import local_agents


class AgentSettings(LaunchTexts):
    """How the agents of a loop are started, as the command line says it; kept in the manifest."""

    claude: str | None = None
    env: tuple[str, ...] = ()
    api_billing: bool = False
    policy: str | None = None
    sandbox: str | None = None

    def session(self, directory: str, *, here: bool) -> SessionSpec:
        """How its agents are started. Raises `UsageError`."""
        return SessionSpec(
            **values.launch_members(asdict(self), here=here),
            directory=directory,
            claude=self.claude,
            env=values.variables(self.env),
            api_billing=self.api_billing,
            policy=self.policy,
            sandbox=values.sandbox_mode(self.sandbox),
        )


def task_of(task: str | None, file: Path | None) -> str:
    """The task: an argument, stdin, or a file. Raises `UsageError`."""
    if (task is None) == (file is None):
        raise UsageError("give a TASK, or a file with --file")
    if file is None:
        return values.read_prompt(task or "")
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(LONGEST_TASK + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--file: cannot read {file}: {error}") from error
    if len(text) > LONGEST_TASK:
        raise UsageError(f"--file: {file} has more than {LONGEST_TASK} characters")
    return text


def directory_of(cwd: str | None, *, here: bool) -> str:
    """The folder to work in, absolute."""
    if cwd is None and not here:
        raise UsageError("--cwd: name the folder on the hub's machine")
    return values.absolute(cwd or os.getcwd(), here=here)  # noqa: PTH109 - as the shell shows it


def read_schema(path: Path) -> bytes:
    """The JSON of a schema file. Raises `UsageError`."""
    try:
        data = path.read_bytes()
        msgspec.json.decode(data)
    except (*DECODE_ERRORS, OSError) as error:
        raise UsageError(f"--result-schema: {path}: {error}") from error
    return data


def run_local(spec: LoopSpec, settings: AgentSettings, *, json_output: bool, zero: bool) -> int:
    """Run a new loop to its end; returns the exit code."""
    state = replace(new_loop(spec, by=person_here()), settings=Raw(msgspec.json.encode(settings)))
    return _run(state, settings, json_output=json_output, zero=zero)


def continue_local(loop: str, *, json_output: bool, zero: bool) -> int:
    """Go on with a loop; returns the exit code."""
    store = LoopStore(data_home())
    state = store.load(store.find(loop))
    if state.host != "local":
        raise UsageError(f"the loop {state.id} belongs to the hub, which continues it by itself")
    try:
        settings = msgspec.json.decode(bytes(state.settings), type=AgentSettings)
    except DECODE_ERRORS as error:
        raise UsageError(f"the manifest of {state.id} has no settings: {error}") from error
    if not store.runs(state.id):
        store.want(state.id, Wanted())  # an old request to stop
    return _run(reopen(state), settings, json_output=json_output, zero=zero)


def _run(state: LoopState, settings: AgentSettings, *, json_output: bool, zero: bool) -> int:
    host = _LocalLoop(state, settings, json_output=json_output)
    ended = anyio.run(host.main)
    if ended is None:
        return host.code
    if json_output:
        print_json([report_of(ended)])
    else:
        print_line(f"Report: {host.store.path(ended.id, 'report.md')}")
    return exit_code_of(report_of(ended), zero=zero)


def exit_code_of(report: LoopReport, *, zero: bool) -> int:
    """The exit code of a loop that has stopped."""
    assert report.reason is not None
    return 0 if zero and report.reason in GOALS else EXIT_CODES[report.reason]


class _LocalLoop:
    """The loop of this process."""

    def __init__(self, state: LoopState, settings: AgentSettings, *, json_output: bool) -> None:
        self.store = LoopStore(data_home())
        self.code = int(Exit.SUCCESS)
        self._state = state
        # What cannot be right is told before anything is stored.
        session = settings.session(state.spec.directory, here=True)
        self._agents = local_agents(state.id, session, data_home(), person_here())
        self._out = consoles.stderr() if json_output else consoles.stdout()
        self._signals_seen = 0

    async def main(self) -> LoopState | None:
        """Run it; None if a signal ended it before its end."""
        ended: LoopState | None = None
        failure: QuarterdeckError | None = None
        self._report(f"Loop {self._state.id}: {self._state.spec.title}")
        for warning in self._agents.warnings:
            self._report(f"Policy: {warning}.")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._signals, tasks.cancel_scope)
            agents = self._agents
            worker = AgentWorker(
                agents.options, decide=self._decide(), arbiter=agents.arbiter, box=agents.box
            )
            try:
                ended = await run_loop(
                    self._state, worker, self.store, report=self._report, box=agents.box
                )
            except QuarterdeckError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if ended is None:
            self._report(f"Continue it with: quarterdeck loop continue {self._state.id}")
        return ended

    def _decide(self) -> Decide | None:
        if not keyboard_there():
            return None
        keyboard = Keyboard(
            self._out, Keys(sys.stdin.fileno()), Screen(self._out), settle=anyio.lowlevel.checkpoint
        )
        return keyboard.decide

    def _report(self, line: str) -> None:
        self._out.print(plain(line), highlight=False, markup=False, soft_wrap=True)

    async def _signals(self, everything: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                self._signals_seen += 1
                if number == signal.SIGINT and self._signals_seen == 1:
                    self._report("Stops … (Ctrl-C again ends it at once)")
                    self.store.want(self._state.id, Wanted(stop=True, by=person_here()))
                    continue
                self.code = Exit.INTERRUPTED if number == signal.SIGINT else Exit.TERMINATED
                everything.cancel()
                return
