"""`quarterdeck run`: one prompt or a whole conversation, at a terminal or in a script.

Owns the life of the one agent that it starts: what is shown, who answers its questions, what Ctrl-C
means, when it is done, and the exit code. `request` makes its options; `screen` and `keyboard` are
its user interface.

It is done when the prompt's turn has ended and none of its background tasks is running. Ctrl-C
interrupts the turn; a second Ctrl-C ends the agent.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

import anyio
from rich.text import Text

from quarterdeck.agent.agent import Agent
from quarterdeck.agent.asks import AnyAsk, Decision
from quarterdeck.agent.background import Background
from quarterdeck.agent.options import Options
from quarterdeck.agent.start import start_link
from quarterdeck.claude.launch import ArgumentFiles
from quarterdeck.cli.exits import Exit, OutputClosed
from quarterdeck.cli.local.request import RunRequest, to_options, to_prompt
from quarterdeck.cli.terminal import console as consoles
from quarterdeck.cli.terminal.footer import footer_for
from quarterdeck.cli.terminal.keyboard import Keyboard, deny_unattended
from quarterdeck.cli.terminal.keys import Keys, keyboard_there
from quarterdeck.cli.terminal.output import write_all
from quarterdeck.cli.terminal.prompt_line import Silence, Typing, tick, typing_for
from quarterdeck.cli.terminal.screen import Screen
from quarterdeck.cli.terminal.text import plain
from quarterdeck.domain.errors import QuarterdeckError, UsageError
from quarterdeck.links.base import Dropped, Link, Resumed
from quarterdeck.links.recorder import RecordingLink
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.wire.messages import Result
from quarterdeck.wire.outbound import Prompt
from quarterdeck.wire.states import State
from quarterdeck.wire.tools import one_line

MARK = "> "
INTERRUPT_SECONDS = 10.0
"""How long an interrupt may take before the person is warned."""
IDLE_SECONDS = 3.0
"""How long an idle CLI may take to report that it is idle."""
_BUSY = frozenset({State.WORKING, State.WAITING, State.COMPACTING, State.RETRYING})
LEAVE_WORDS = frozenset({"/exit", "/quit"})


def run(request: RunRequest) -> int:
    """Run it; returns the exit code. Raises the library's errors."""
    options = to_options(request)
    prompt = to_prompt(request, at_terminal=keyboard_there())
    if prompt is None and not sys.stdout.isatty():
        raise UsageError("a conversation needs a terminal; give a PROMPT instead")
    return anyio.run(_Run(request, options, prompt).main)


class _Run:
    """One agent, from its start to the exit code."""

    def __init__(self, request: RunRequest, options: Options, prompt: Prompt | None) -> None:
        self._request = request
        self._options = options
        self._prompt = prompt
        self._silent = request.quiet or request.json
        self._out = consoles.stdout()
        self._err = consoles.stderr()
        self._footer = None if self._silent else footer_for(self._out)
        self._screen = Screen(self._out, self._footer)
        self._keys = Keys(sys.stdin.fileno()) if keyboard_there() else None
        self._typing = self._make_typing()
        self._silence = self._make_silence()
        self._keyboard = self._make_keyboard()
        self._background = Background()
        self._typed: list[str | None] = []
        self._news = anyio.Event()
        self._tee: TeeLink | None = None
        self._shown = 0
        self._agent: Agent | None = None
        self._link: Link | None = None
        self._in_turn = False
        self._ending = False
        self._interrupts = 0
        self._code = Exit.SUCCESS
        self._error: QuarterdeckError | OutputClosed | None = None

    def _make_keyboard(self) -> Keyboard | None:
        if self._keys is None:
            return None
        where = self._err if self._silent or not self._out.is_terminal else self._out
        screen = self._screen if where is self._out else Screen(where)
        return Keyboard(
            where,
            self._keys,
            screen,
            settle=self._settle,
            typing=self._typing or self._silence,
        )

    def _make_typing(self) -> Typing | None:
        """The prompt line of a conversation. A single prompt leaves nothing to type but answers."""
        if self._keys is None or self._prompt is not None:
            return None
        return typing_for(self._keys, self._footer)

    def _make_silence(self) -> Silence | None:
        if self._keys is None or self._footer is None or self._typing is not None:
            return None
        return Silence(self._keys)

    # --- the whole ------------------------------------------------------------------------

    async def main(self) -> int:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._signals, tasks.cancel_scope)
            if self._footer is not None:
                tasks.start_soon(tick, self._footer)
            if self._silence is not None:
                self._silence.take_terminal()
            try:
                with ArgumentFiles() as files:
                    version, link = await start_link(self._options, files, None, hooked=True)
                    self._link = link
                    try:
                        agent = Agent(
                            self._options,
                            decide=self._decide,
                            link=self._wrap(link),
                            version=version,
                        )
                        tasks.start_soon(self._show, agent, tasks.cancel_scope)
                        await anyio.lowlevel.checkpoint()
                        async with agent:
                            self._agent = agent
                            await self._talk(agent)
                    finally:
                        with anyio.CancelScope(shield=True):
                            await link.close()
            except (QuarterdeckError, OutputClosed) as error:
                self._error = error
            finally:
                self._leave_terminal()
            tasks.cancel_scope.cancel()
        if self._error is not None and self._code is Exit.SUCCESS:
            if not isinstance(self._error, OutputClosed):
                self._screen.end_line()
            raise self._error
        return self._code

    def _leave_terminal(self) -> None:
        """The terminal is as it was before."""
        with suppress(OutputClosed):
            if self._typing is not None:
                self._typing.release_terminal()
            if self._silence is not None:
                self._silence.release_terminal()
            if self._footer is not None:
                self._footer.close()

    def _wrap(self, link: Link) -> Link:
        if self._request.record is not None:
            try:
                link = RecordingLink(link, self._request.record)
            except OSError as error:
                raise UsageError(f"--record: {self._request.record}: {error.strerror}") from error
        if self._request.json:
            self._tee = TeeLink(link, sys.stdout.fileno())
            link = self._tee
        return link

    # --- what is said ---------------------------------------------------------------------

    async def _show(self, agent: Agent, everything: anyio.CancelScope) -> None:
        """Show the CLI's messages until they end."""
        try:
            async for message in agent.messages():
                self._shown += 1
                self._background.observe(message)
                if not self._silent:
                    self._screen.show(message)
                if self._tee is not None and self._tee.gone:
                    raise OutputClosed
        except OutputClosed as error:
            self._error = error
            everything.cancel()
        except QuarterdeckError:
            pass  # the task that waits for the turn gets the error too, and reports it

    async def _settle(self) -> None:
        """Wait until all received messages are shown."""
        before = -1
        while before != self._shown:
            before = self._shown
            for _ in range(3):
                await anyio.lowlevel.checkpoint()

    async def _talk(self, agent: Agent) -> None:
        if self._prompt is not None:
            await self._turn(agent, self._prompt)
            await self._wait_for_rest(agent)
            return
        if self._typing is not None:
            await self._converse(agent, self._typing)
            return
        while (text := await self._read_prompt()) is not None:
            self._interrupts = 0
            await self._turn(agent, text)
            self._forget_failure()

    async def _converse(self, agent: Agent, typing: Typing) -> None:
        """Turn by turn. What is typed during a turn is the next prompt."""
        async with background_tasks() as tasks:
            tasks.start_soon(self._read_prompts, typing)
            while (text := await self._next_prompt()) is not None:
                self._screen.echo_prompt(text)
                # Not after the turn: the person may have pressed Ctrl-C once since it ended.
                self._interrupts = 0
                await self._turn(agent, text)
                self._forget_failure()

    def _forget_failure(self) -> None:
        """A turn of a conversation may fail, and the conversation does not fail with it."""
        if not self._ending:
            self._code = Exit.SUCCESS

    async def _read_prompts(self, typing: Typing) -> None:
        """Read prompts until the person leaves; they wait for the turn that runs."""
        while (text := await typing.line()) is not None and text.strip() not in LEAVE_WORDS:
            if text.strip():
                self._typed.append(text)
                self._news.set()
                if self._in_turn:
                    self._screen.note(f"next: {one_line(text, 200)}")
        self._typed.append(None)
        self._news.set()

    async def _next_prompt(self) -> str | None:
        while not self._typed:
            self._news = anyio.Event()
            await self._news.wait()
        return self._typed.pop(0)

    async def _turn(self, agent: Agent, prompt: str | Prompt) -> None:
        self._in_turn = True
        if self._footer is not None:
            self._footer.begin_work()
        try:
            query = await agent.prompt(prompt)
            turn = await query.finish()
        finally:
            self._in_turn = False
            if self._footer is not None:
                self._footer.end_work()
        await self._settle()
        if turn.failed:
            self._code = Exit.INTERRUPTED if self._interrupts else Exit.FAILED
        if self._request.quiet:
            self._print_result(turn.result)

    def _print_result(self, result: Result | None) -> None:
        """`--quiet`: the answer on stdout, or the error on stderr."""
        if result is None or result.failed:
            text = result.error_text if result else "the turn ended without a result"
            self._err.print(Text(f"quarterdeck: {plain(text)}"), soft_wrap=True)
        elif result.structured_output:
            self._out.print(Text(bytes(result.structured_output).decode()), soft_wrap=True)
        else:
            self._out.print(Text(plain(result.result or "")), soft_wrap=True)

    async def _wait_for_rest(self, agent: Agent) -> None:
        """Wait until the background tasks of the turn have ended and were reported."""
        announced = False
        while not self._background.quiet or agent.state in _BUSY:
            waiting = self._background.running
            if waiting and not announced and not self._silent:
                announced = True
                what = ", ".join(title or "a task" for title in waiting.values())
                self._screen.note(f"waiting for background tasks: {what} (Ctrl-C leaves)")
            busy = bool(waiting) or agent.state in _BUSY
            if not await self._background.change(1.0 if busy else IDLE_SECONDS) and not busy:
                return
        await self._settle()

    # --- who answers ----------------------------------------------------------------------

    async def _decide(self, ask: AnyAsk) -> Decision:
        if self._keyboard is not None:
            return await self._keyboard.decide(ask)
        if not self._silent:
            await self._settle()
            self._screen.note(
                f"denied, because no person can be asked here: {one_line(ask.tool_name, 80)}"
                " (see --allow and --permission-mode)",
                "yellow",
            )
        return deny_unattended(ask)

    async def _read_prompt(self) -> str | None:
        """The person's next prompt; None when they leave."""
        assert self._keys is not None
        lines: list[str] = []
        while True:
            self._screen.prompt(MARK if not lines else "… ")
            line = await self._keys.line()
            self._screen.prompt_taken()
            if line is None or line.strip() in LEAVE_WORDS:
                return None
            if line.endswith("\\"):
                lines.append(line[:-1])
                continue
            text = "\n".join([*lines, line])
            if text.strip():
                return text
            lines = []

    # --- Ctrl-C ---------------------------------------------------------------------------

    async def _signals(self, everything: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:
                async for number in signals:
                    if number == signal.SIGINT and self._keyboard and self._keyboard.editing:
                        continue  # it was meant for the editor
                    if number == signal.SIGINT and self._first_interrupt():
                        tasks.start_soon(self._interrupt)
                        continue
                    self._ending = True
                    self._code = Exit.INTERRUPTED if number == signal.SIGINT else Exit.TERMINATED
                    if self._link is not None:
                        # No orderly end: after two Ctrl-C it must be fast.
                        await self._link.close()
                    everything.cancel()
                    return

    def _first_interrupt(self) -> bool:
        """Whether this signal only interrupts; the next one ends everything."""
        self._interrupts += 1
        if self._interrupts > 1 or self._agent is None:
            return False
        return self._in_turn or self._prompt is None

    async def _interrupt(self) -> None:
        assert self._agent is not None
        if not self._in_turn:
            self._print("Ctrl-C again, Ctrl-D or /exit leaves")
            return
        self._print("interrupting … (Ctrl-C again ends the agent)")
        try:
            with anyio.fail_after(INTERRUPT_SECONDS):
                await self._agent.interrupt()
        except (QuarterdeckError, TimeoutError):
            self._print("the CLI does not respond; Ctrl-C again ends it")

    def _print(self, text: str) -> None:
        if self._silent:
            self._err.print(Text(f"quarterdeck: {text}", "dim"))
        else:
            self._screen.note(text)


class TeeLink:
    """A link that copies everything it receives to a file descriptor, unchanged, for `--json`."""

    def __init__(self, inner: Link, descriptor: int) -> None:
        self._inner = inner
        self._descriptor = descriptor
        self.gone = False

    @property
    def resumable(self) -> bool:
        """As the inner link."""
        return self._inner.resumable

    async def receive(self) -> bytes | Dropped | Resumed:
        """As the inner link; the bytes are copied first."""
        item = await self._inner.receive()
        if isinstance(item, bytes) and not self.gone:
            try:
                write_all(self._descriptor, item)
            except OutputClosed:
                # The agent must keep reading in order to end well; `run` checks `gone`.
                self.gone = True
        return item

    async def send(self, data: bytes) -> None:
        """As the inner link."""
        await self._inner.send(data)

    async def end_input(self) -> None:
        """As the inner link."""
        await self._inner.end_input()

    async def close(self) -> None:
        """As the inner link."""
        await self._inner.close()
