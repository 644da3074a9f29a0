"""The runner of a loop: carries out one step after the other, and stores the state after each.

`decide` says what is next; a `Worker` runs turns; `checks` and `folder` look at the work. Owns the
waits: for a turn, for the account's limit, and for a pause. Each of them ends at once when a person
stops the loop.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, assert_never

import anyio
import anyio.to_thread
from msgspec.structs import replace

from quarterdeck.domain.errors import LaunchError, QuarterdeckError
from quarterdeck.domain.ids import new_id
from quarterdeck.loop import decide, prompts
from quarterdeck.loop.boxes import Box, no_box
from quarterdeck.loop.checks import run_check
from quarterdeck.loop.decide import AskReviewer, MakePlan, RunCheck, Stop, WaitForLimit, Work
from quarterdeck.loop.folder import WorkFolder, check_directory, open_worktree
from quarterdeck.loop.report import write_reports
from quarterdeck.loop.spec import GOALS, LoopSpec, StopReason
from quarterdeck.loop.state import Check, Host, LoopState, Stopped, Turn, TurnOutcome
from quarterdeck.loop.store import LoopStore, Wanted
from quarterdeck.loop.worker import TurnKind, TurnRequest, Worker
from quarterdeck.runtime.clock import Clock
from quarterdeck.runtime.tasks import background_tasks

LOOK_SECONDS = 0.5
"""How often the runner looks at what people want."""
INTERRUPT_SECONDS = 20.0
"""How long an interrupted turn may take to end, before its process is ended."""

T = TypeVar("T")
Progress = Callable[[str], None]
"""Gets a line for people whenever something happens."""


def new_loop(
    spec: LoopSpec, *, host: Host = "local", by: str = "", at: float | None = None
) -> LoopState:
    """The state of a loop that has not begun."""
    now = time.time() if at is None else at
    return LoopState(id=new_id(now=now), spec=spec, created=now, host=host, by=by)


def reopen(state: LoopState) -> LoopState:
    """A loop that a person or a limit has stopped, to be continued. A task that is done stays so.

    A limit that is still reached stops it again at once.
    """
    if state.stopped is None or state.stopped.reason in GOALS:
        return state
    turns = state.turns
    if turns and turns[-1].outcome.stopped_by is not None:
        *before, last = turns
        outcome = replace(last.outcome, stopped_by=None)
        turns = (*before, replace(last, outcome=outcome))
    return replace(state, stopped=None, turns=turns)


async def run_loop(
    state: LoopState,
    worker: Worker,
    store: LoopStore,
    *,
    clock: Clock | None = None,
    report: Progress | None = None,
    box: Box = no_box,
) -> LoopState:
    """Run a loop until it stops, or go on with one that was cut off; gives its last state.

    `box` is the sandbox of the commands that check the work.

    Raises `Conflict` if another process runs it, `UsageError` or `LaunchError` for what no turn
    could mend. The manifest stays, and the loop can be continued.
    """
    with store.lock(state.id):
        runner = _Runner(state, worker, store, clock or Clock(), report or _silent, box)
        return await runner.run()


def _silent(_: str) -> None:
    pass


class _Runner:
    """One loop, while it runs."""

    def __init__(
        self,
        state: LoopState,
        worker: Worker,
        store: LoopStore,
        clock: Clock,
        report: Progress,
        box: Box,
    ) -> None:
        self._state = state
        self._worker = worker
        self._store = store
        self._clock = clock
        self._report = report
        self._box = box
        self._wanted = Wanted()
        self._news = anyio.Event()
        self._folder = WorkFolder(state.directory or state.spec.directory)
        self._diff = ""

    async def run(self) -> LoopState:
        if self._state.stopped is not None:
            return self._state
        await self._save()
        await self._look()
        if not self._wanted.stop:  # a folder that is gone must not keep a loop from being stopped
            await self._find_folder()
        async with background_tasks() as tasks:
            tasks.start_soon(self._watch)
            while not self._over:
                await self._look()  # a request from during the turn counts before the next one
                if self._wanted.stop:
                    by = self._wanted.by
                    text = f"It was stopped by {by}." if by else "A person has stopped it."
                    await self._end(Stop(reason=StopReason.PERSON, text=text), by)
                elif self._wanted.paused:
                    await self._pause()
                else:
                    await self._step()
        return self._state

    @property
    def _over(self) -> bool:
        return self._state.stopped is not None

    # --- steps ---

    async def _step(self) -> None:
        step = decide.next_step(self._state)
        match step:
            case MakePlan():
                await self._plan()
            case Work(number=number):
                await self._work(number)
            case RunCheck(command=command):
                await self._check(command)
            case AskReviewer(number=number):
                await self._review(number)
            case WaitForLimit(until=until):
                await self._wait_for_limit(until)
            case Stop():
                last = self._state.turns[-1] if self._state.turns else None
                await self._end(step, last.outcome.stopped_by if last else None)
            case _:
                assert_never(step)

    async def _plan(self) -> None:
        self._report("Makes a plan.")
        began = self._clock.now()
        outcome, cut = await self._turn(TurnKind.PLAN, prompts.plan_prompt(self._state.spec))
        self._add_time(began)
        if outcome.limited is not None:
            await self._pause_for_limit(outcome)
        elif cut is not None or outcome.failed:
            # A failed plan counts as a failed turn, so that it is not tried without end.
            await self._add(began, outcome, None, cut)
        else:
            await self._set(plan=outcome.text, plan_usd=self._state.plan_usd + outcome.cost_usd)

    async def _work(self, number: int) -> None:
        self._report(f"Turn {number} of at most {self._state.spec.stops.turns}.")
        began = self._clock.now()
        where = self._folder.directory
        before = await self._folder.state()
        spec = self._state.spec
        outcome, cut = await self._turn(
            TurnKind.WORK,
            prompts.work_prompt(self._state),
            schema=prompts.schema_of(spec),
            session=None if spec.fresh else self._state.session,
        )
        self._add_time(began)
        if outcome.limited is not None:
            await self._pause_for_limit(outcome)
            return
        after = await self._folder.state()
        if self._folder.directory != where:  # the worktree of the first turn in a hub
            before = None
        self._diff = await self._folder.diff(before, after)
        changed = None if before is None or after is None else before != after
        await self._add(began, outcome, changed, cut)
        if spec.commit and changed is not False:
            await self._commit(number)

    async def _add(
        self, began: float, outcome: TurnOutcome, changed: bool | None, cut: StopReason | None
    ) -> None:
        """Add a turn that is over."""
        turn = Turn(
            number=len(self._state.turns) + 1,
            began=began,
            ended=self._clock.now(),
            outcome=outcome,
            changed=changed,
            cut_off=cut,
        )
        keep = not self._state.spec.fresh and outcome.session is not None
        await self._set(
            turns=(*self._state.turns, turn),
            session=outcome.session if keep else self._state.session,
            limit_failures=0,
        )
        for call in outcome.denied:
            self._report(f"Denied: {call}")
        how = f"failed: {outcome.outcome}" if outcome.failed else "ended"
        self._report(f"Turn {turn.number} {how}; ${self._state.cost_usd:.4f} so far.")

    async def _commit(self, number: int) -> None:
        spec = self._state.spec
        last = self._state.turns[-1]
        summary = next(iter(last.outcome.text.strip().splitlines()), "")[:200]
        message = f"{spec.title}: turn {number}\n\n{summary}\n\nLoop: {self._state.id}\n"
        try:
            commit = await self._folder.commit(message)
        except LaunchError as error:
            self._report(f"Not committed: {error}")
            return
        if commit is not None:
            await self._change_last(commit=commit)
            self._report(f"Committed {commit[:12]}.")

    async def _check(self, command: str) -> None:
        check = await self._run_command(command)
        if check is None:
            return
        await self._change_last(check=check)
        how = "did not end in time" if check.code is None else f"exited with {check.code}"
        self._report(f"The check {how}.")

    async def _run_command(self, command: str) -> Check | None:
        """Run a command; None if a person stopped the loop before its end."""
        began = self._clock.now()
        seconds = self._state.spec.stops.command_seconds / self._clock.speed
        directory = self._folder.directory
        check = await self._unless_stopped(run_check(command, directory, seconds, self._box))
        self._add_time(began)
        return check

    async def _review(self, number: int) -> None:
        self._report(f"Reviews turn {number}.")
        began = self._clock.now()
        review = self._state.spec.review
        outcome, cut = await self._turn(
            TurnKind.REVIEW,
            prompts.review_prompt(self._state, self._diff),
            schema=prompts.VERDICT_SCHEMA,
            model=None if review is None else review.model,
        )
        self._add_time(began)
        if outcome.limited is not None:
            await self._pause_for_limit(outcome)
            return
        failed = outcome.outcome if outcome.failed or cut else ""
        verdict = prompts.verdict_of(bytes(outcome.result), failed)
        await self._change_last(verdict=verdict, review_usd=outcome.cost_usd)
        self._report("The reviewer agrees." if verdict.agree else "The reviewer does not agree.")

    # --- one turn of an agent ---

    async def _turn(
        self,
        kind: TurnKind,
        prompt: str,
        *,
        schema: bytes | None = None,
        session: str | None = None,
        model: str | None = None,
    ) -> tuple[TurnOutcome, StopReason | None]:
        """Run a turn; a limit of time and a person end it early, with the reason."""
        request = TurnRequest(
            loop=self._state.id,
            number=self._state.steps + 1,
            created=self._state.created,
            kind=kind,
            prompt=prompt,
            directory=self._folder.directory,
            spec=self._state.spec,
            schema=schema,
            budget_usd=decide.budget_left(self._state),
            session=session,
            model=model,
        )
        ended: list[TurnOutcome] = []
        cut: StopReason | None = None
        async with background_tasks() as tasks:
            done = anyio.Event()
            failure: list[QuarterdeckError] = []

            async def work() -> None:
                try:
                    ended.append(await self._worker.run(request))
                except QuarterdeckError as error:
                    failure.append(error)
                finally:
                    done.set()

            tasks.start_soon(work)
            cut = await self._until(done, decide.seconds_left(self._state))
            if cut is not None:
                await self._worker.interrupt()
                with anyio.move_on_after(INTERRUPT_SECONDS):
                    await done.wait()
            if failure:
                raise failure[0]
        outcome = ended[0] if ended else TurnOutcome(failed=True, outcome="cut_off")
        if cut is StopReason.PERSON:
            outcome = replace(outcome, stopped_by=self._wanted.by)
        if cut is not None:
            outcome = replace(outcome, limited=None)
        self._state = replace(self._state, steps=self._state.steps + 1)
        if outcome.files is not None and outcome.files != self._folder.directory:
            self._folder = WorkFolder(outcome.files)
            self._state = replace(self._state, directory=outcome.files)
        return outcome, cut

    async def _until(self, done: anyio.Event, seconds: float | None) -> StopReason | None:
        """Wait for the end of a turn, its time, or a person."""
        deadline = None if seconds is None else self._clock.now() + seconds
        while not done.is_set():
            if self._wanted.stop:
                return StopReason.PERSON
            left = None if deadline is None else deadline - self._clock.now()
            if left is not None and left <= 0:
                return StopReason.TIME
            async with background_tasks() as tasks:
                either = anyio.Event()
                tasks.start_soon(_ring, done, either)
                tasks.start_soon(_ring, self._news, either)
                await self._clock.wait(either, left)
        return None

    async def _unless_stopped(self, doing: Awaitable[T]) -> T | None:
        """Do something, unless a person stops the loop before its end."""
        found: list[T] = []
        failure: list[QuarterdeckError] = []
        async with background_tasks() as tasks:
            done = anyio.Event()

            async def work() -> None:
                try:
                    found.append(await doing)
                except QuarterdeckError as error:
                    failure.append(error)
                finally:
                    done.set()

            tasks.start_soon(work)
            await self._until(done, None)
        if failure:
            raise failure[0]
        return found[0] if found else None

    # --- waits ---

    async def _pause_for_limit(self, outcome: TurnOutcome) -> None:
        state = decide.after_usage_limit(self._state, outcome, self._clock.now())
        self._state = state
        await self._save()
        if state.waiting_until is not None:
            left = state.waiting_until - self._clock.now()
            self._report(f"The account's limit is reached. Waits {max(left, 0):.0f} s for it.")

    async def _wait_for_limit(self, until: float) -> None:
        began = self._clock.now()
        while not self._wanted.stop and (left := until - self._clock.now()) > 0:
            await self._clock.wait(self._news, left)
        waited = self._state.waited + self._clock.now() - began
        await self._set(waiting_until=None, waited=waited)

    async def _pause(self) -> None:
        self._report(f"Paused by {self._wanted.by}." if self._wanted.by else "Paused.")
        await self._set(paused=True)
        while self._wanted.paused and not self._wanted.stop:
            await self._news.wait()
        await self._set(paused=False)
        self._report("Continues.")

    async def _watch(self) -> None:
        """Look at what people want, again and again."""
        while True:
            await self._look()
            await anyio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        wanted = await anyio.to_thread.run_sync(self._store.requests, self._state.id)
        if wanted != self._wanted:
            self._wanted = wanted
            self._news.set()
            self._news = anyio.Event()

    # --- state ---

    async def _find_folder(self) -> None:
        spec = self._state.spec
        check_directory(spec.directory)
        directory = self._state.directory or spec.directory
        if (
            self._state.directory is None
            and spec.worktree is not None
            and self._state.host == "local"
        ):
            home = self._store.folder / "worktrees"
            directory = await open_worktree(home, spec.directory, spec.worktree)
            await self._set(directory=directory)
        check_directory(directory)
        self._folder = WorkFolder(directory)
        if spec.commit and not await self._folder.is_repository():
            raise LaunchError(f"commit: {directory} is not in a git repository")

    async def _end(self, stop: Stop, by: str | None) -> None:
        proof: list[Check] = []
        if stop.reason is not StopReason.PERSON:
            for command in self._state.spec.proof:
                check = await self._run_command(command)
                if check is not None:
                    proof.append(check)
        await self._worker.finish(self._state.session)
        stopped = Stopped(reason=stop.reason, text=stop.text, at=self._clock.now(), by=by)
        await self._set(stopped=stopped, proof=tuple(proof), paused=False, waiting_until=None)
        await anyio.to_thread.run_sync(write_reports, self._store, self._state)
        self._report(stop.text)

    def _add_time(self, began: float) -> None:
        worked = self._state.worked + max(0.0, self._clock.now() - began)
        self._state = replace(self._state, worked=worked)

    async def _change_last(self, **changes: object) -> None:
        *before, last = self._state.turns
        await self._set(turns=(*before, replace(last, **changes)))

    async def _set(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)
        await self._save()

    async def _save(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._store.save, self._state)


async def _ring(first: anyio.Event, then: anyio.Event) -> None:
    await first.wait()
    then.set()
