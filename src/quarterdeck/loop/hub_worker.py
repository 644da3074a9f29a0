"""Turns by a hub: a session for each turn, by the public client.

All sessions of a loop have its id as their family, so that clients show them as one. Ids of
sessions and prompts follow from the loop and the number of the turn: a loop that was killed finds
the turn that it began, and prompts nobody twice. Policy decides as for any session; what it asks
waits for a person, and is denied by the hub after the loop's `ask_timeout`.
"""

from __future__ import annotations

from contextlib import aclosing, suppress

import anyio
import msgspec
from msgspec import Raw
from msgspec.structs import replace

from quarterdeck.client.hub import HubClient
from quarterdeck.client.session import SessionClient
from quarterdeck.domain.errors import NotFound, QuarterdeckError
from quarterdeck.domain.ids import derived_id
from quarterdeck.loop.prompts import structured_result
from quarterdeck.loop.state import SHOWN_TEXT, Limited, TurnOutcome
from quarterdeck.loop.worker import EDITING_TOOLS, TurnKind, TurnRequest
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.coded_texts import end_text
from quarterdeck.protocol.commands import CreateSession, SendPrompt
from quarterdeck.protocol.sessions import SessionSpec, SessionState
from quarterdeck.protocol.views import SessionShape
from quarterdeck.wire.codec import from_cli
from quarterdeck.wire.messages import Assistant, AssistantError, Result

TOO_MANY_REQUESTS = 429
ABORTED = "aborted"
"""How the code of a turn begins that was interrupted."""
STOP_SECONDS = 30.0
REPORT_SECONDS = 3.0
"""How long the CLI may take to begin the turn that reports on a background task."""
_NAMES = {TurnKind.PLAN: "plan", TurnKind.WORK: "turn", TurnKind.REVIEW: "review"}


class HubWorker:
    """Runs each turn as a session of a hub. The client must be open."""

    def __init__(self, hub: HubClient, template: SessionSpec) -> None:
        self._hub = hub
        self._template = template
        self._session: SessionClient | None = None
        self._interrupted = False

    async def run(self, request: TurnRequest) -> TurnOutcome:
        """Run a turn to its end, with its background tasks."""
        session, prompt = await self._begin(request)
        self._interrupted = False
        try:
            outcome = await self._follow(session, prompt, request)
        except NotFound:
            by = "a person who deleted its session"
            return TurnOutcome(failed=True, outcome="session_deleted", stopped_by=by)
        except anyio.get_cancelled_exc_class():
            # A hub that stops lets its agents work on; a turn that did not end when it was
            # interrupted is ended with its process.
            if self._interrupted:
                await self._stop(session)
            raise
        finally:
            self._session = None
        if request.spec.fresh or not request.kind.changes_files:
            await self._stop(session)
        return outcome

    async def _follow(
        self, session: SessionClient, prompt: str, request: TurnRequest
    ) -> TurnOutcome:
        async with session:
            self._session = session
            seen = await self._watch(session, prompt)
            seen.undrained = await _drain(session, seen.seq, request.spec.background_seconds)
            await seen.rest(session)
            files = session.view.directory if request.spec.worktree else None
            return seen.outcome(session.id, files, interrupted_here=self._interrupted)

    async def interrupt(self) -> None:
        """End the running turn."""
        self._interrupted = True
        if self._session is not None:
            with suppress(QuarterdeckError, TimeoutError), anyio.fail_after(10):
                await self._session.interrupt()

    async def finish(self, session: str | None) -> None:
        """End the process of the one conversation. The session stays, and can be resumed."""
        if session is not None:
            await self._stop(self._hub.session(session))

    async def _begin(self, request: TurnRequest) -> tuple[SessionClient, str]:
        """The session of a turn, and the id of its prompt; found again if they are there."""
        prompt = derived_id(request.created, request.loop, "prompt", str(request.number))
        content = Raw(msgspec.json.encode(request.prompt))
        if request.session is not None:
            await self._hub.submit(
                SendPrompt(session=request.session, prompt=prompt, content=content)
            )
            return self._hub.session(request.session), prompt
        made = derived_id(
            request.created + request.number, request.loop, "session", str(request.number)
        )
        spec = self._spec(request)
        await self._hub.submit(
            CreateSession(spec=spec, session=made, prompt=content, prompt_id=prompt)
        )
        return self._hub.session(made), prompt

    def _spec(self, request: TurnRequest) -> SessionSpec:
        given = self._template
        limits = [each for each in (given.max_budget_usd, request.budget_usd) if each is not None]
        denied = given.disallowed_tools
        if not request.kind.changes_files:
            denied = (*denied, *(tool for tool in EDITING_TOOLS if tool not in denied))
        return replace(
            given,
            directory=request.spec.directory,
            worktree=request.spec.worktree,
            family=request.loop,
            name=f"{request.spec.title}: {_NAMES[request.kind]} {request.number}",
            disallowed_tools=denied,
            max_budget_usd=min(limits) if limits else None,
            ask_timeout=request.spec.ask_timeout,
            restart="never",  # the loop itself does a failed turn again
            model=request.model or given.model,
        )

    async def _watch(self, session: SessionClient, prompt: str) -> _Seen:
        """Read the events of a turn up to its end."""
        seen = _Seen(prompt)
        async with aclosing(session.events(0)) as events:
            async for shape in events:
                seen.take(shape.seq, shape.event)
                if seen.ended:
                    return seen
        seen.fail("the session was deleted")
        return seen

    async def _stop(self, session: SessionClient) -> None:
        with (
            suppress(QuarterdeckError),
            anyio.CancelScope(shield=True),
            anyio.move_on_after(STOP_SECONDS),
        ):
            await session.stop()


class _Seen:
    """What was said and decided in a turn, from the prompt on."""

    def __init__(self, prompt: str) -> None:
        self.ended = False
        self.undrained = 0
        self._prompt = prompt
        self._begun = False
        self.seq = 0
        self._turns: list[ev.TurnEnded] = []
        self._error = ""
        self._denied: list[str] = []
        self._limit: Limited | None = None
        self._over = False
        self._stopped_by: str | None = None
        self._result = b""

    def fail(self, error: str) -> None:
        """The turn cannot end any more."""
        self._error = self._error or error
        self.ended = True

    async def rest(self, session: SessionClient) -> None:
        """Take the events that came after the turn, as far as they are there."""
        head = session.view.head
        if head <= self.seq:
            return
        async with aclosing(session.events(self.seq)) as events:
            async for shape in events:
                self.take(shape.seq, shape.event)
                if self.seq >= head:
                    return

    def take(self, seq: int, event: ev.Event) -> None:
        """Note an event."""
        self.seq = seq
        match event:
            case ev.PromptQueued(prompt=self._prompt):
                self._begun = True
            case _ if not self._begun:
                return
            case ev.TurnEnded(prompts=prompts):
                self._turns.append(event)
                self.ended = self.ended or self._prompt in prompts
            case ev.PromptCancelled(prompt=self._prompt, by=by):
                self._stopped_by = by
                self.fail("the prompt was cancelled")
            case ev.RunStopping(by=by) if not self.ended:
                self._stopped_by = by
            case ev.RunEnded() as over if not self.ended:
                self.fail(end_text(over))
            case ev.Decided(verdict="deny", by=by, title=title, tool=tool, caller=None):
                self._denied.append(f"{tool}: {title} ({by})"[:200])
            case ev.RateLimited(status=status, resets_at=resets):
                rejected = status == "rejected"
                at = None if resets is None else resets / 1000
                self._limit = Limited(resets_at=at) if rejected else None
            case ev.BudgetReached():
                self.fail("budget_reached")
            case ev.Said(line=line):
                self._say(bytes(line))
            case _:
                pass

    def _say(self, line: bytes) -> None:
        """Find what only the CLI's own lines tell."""
        if b'"result"' not in line and b'"rate_limit"' not in line:
            return
        match from_cli(line):
            case Result(api_error_status=status, structured_output=output):
                self._over = self._over or status == TOO_MANY_REQUESTS
                self._result = bytes(output) or self._result
            case Assistant(error=AssistantError.RATE_LIMIT):
                self._over = True
            case _:
                pass

    def outcome(self, session: str, files: str | None, *, interrupted_here: bool) -> TurnOutcome:
        """All of it as an outcome."""
        own = next((turn for turn in self._turns if self._prompt in turn.prompts), None)
        text = "\n\n".join(turn.text for turn in self._turns if turn.text)
        code = self._error or (own.outcome if own is not None else "no_result")
        failed = bool(self._error) or own is None or own.failed
        by = self._stopped_by
        if by is None and failed and code.startswith(ABORTED) and not interrupted_here:
            by = "a person who interrupted the turn"
        limited = (self._limit or (Limited() if self._over else None)) if failed else None
        return TurnOutcome(
            text=text[-SHOWN_TEXT:],
            failed=failed,
            outcome=code,
            cost_usd=sum(turn.cost_usd for turn in self._turns),
            session=session,
            result=structured_result(text, self._result),
            denied=tuple(self._denied[:50]),
            limited=limited if by is None else None,
            stopped_by=None if interrupted_here else by,
            undrained=self.undrained,
            files=files,
        )


async def _drain(session: SessionClient, seq: int, seconds: float) -> int:
    """Wait until the turn's background tasks have ended; gives how many have not, in that time."""

    def has_ended(view: SessionShape) -> bool:
        return view.state is SessionState.ENDED

    def quiet(view: SessionShape) -> bool:
        at_rest = view.state is SessionState.IDLE and not view.holds.tasks
        return view.head >= seq and (at_rest or has_ended(view))

    with anyio.move_on_after(seconds):
        await session.wait_for(lambda view: view.head >= seq)
        tasks = bool(session.view.holds.tasks)
        while not has_ended(session.view):
            await session.wait_for(quiet)
            if not tasks:
                return 0
            # The CLI begins a turn of its own to report on tasks that have ended.
            tasks = False
            with anyio.move_on_after(REPORT_SECONDS):
                await session.wait_for(lambda view: not quiet(view))
                tasks = True
        return 0
    return len(session.view.holds.tasks)
