"""What a resumed CLI writes into its transcript about a turn that was cut off, and does not say.

A CLI that resumes a conversation whose last turn was cut off closes that turn in its transcript,
when it gets its first prompt: 2.1.325 adds a result to each tool call without one, and an answer in
the model's place; 2.1.37 adds the answer if the turn has none, and leaves the call out. None of
this is in its output. So after the first turn of such a run its machine is asked for the messages
between the two runs, and they are journalled as recalled, with the run that was cut off.

Owns which run was cut off, what the journal has of it, and what is taken of the machine's answer.
`session_process` is above. Reading the transcript is the machine's work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from quarterdeck.hub.lines import uuid_of
from quarterdeck.journal.base import Log
from quarterdeck.protocol.events import (
    Event,
    PromptSent,
    Recalled,
    RunEnded,
    RunStarting,
    Said,
)
from quarterdeck.protocol.runner_frames import TranscriptQuery

PAGE = 500
MOST_EVENTS = 20_000
"""How many events of each of the two runs are looked at. A run with more is not asked about."""

TRIES = 5
"""How often a transcript is read, about once a second: the CLI writes it later than it speaks."""


class ResumeGap:
    """The messages between a run and the one before, as far as a session in memory knows of it.

    Nothing of it is stored: a hub that starts looks into the journal again, and asks again.
    """

    def __init__(self) -> None:
        self._run = ""
        self._tries = 0
        self._cut_off: str | None = None
        self._known: set[str] = set()

    async def next_query(
        self, log: Log, session: str, run: str, began: int, cli_session: str | None
    ) -> TranscriptQuery | None:
        """What to ask the machine of a run for, after its first turn; None: nothing more.

        `began` is the number of the event with which the run began.
        """
        if run != self._run:
            self._run, self._tries, self._cut_off, self._known = run, 0, None, set()
        if self._tries >= TRIES:
            return None
        self._tries += 1
        self._cut_off, known = await _cut_off(log, session, began)
        prompts = await _known_prompts(log, session, began, known) if self._cut_off else None
        if prompts is None:
            self._tries = TRIES
            return None
        self._known.update(known)
        return TranscriptQuery(
            cli_session=cli_session, known=tuple(known), prompts=tuple(prompts), earlier=True
        )

    def is_unanswered(self, run: str) -> bool:
        """Whether the machine was asked, and has found nothing yet."""
        return run == self._run and 0 < self._tries < TRIES

    def between(self, run: str) -> tuple[str | None, frozenset[str]]:
        """The run that was cut off before this one, and the messages that are known of it.

        None: nobody asked, or it is more than can be between two runs.
        """
        if run != self._run or self._cut_off is None or len(self._known) > 2 * MOST_EVENTS:
            return None, frozenset()
        return self._cut_off, frozenset(self._known)

    def close(self, messages: Iterable[str]) -> None:
        """The machine's answer had these messages, and they are journalled."""
        self._known.update(messages)
        self._tries = TRIES


async def _cut_off(log: Log, session: str, began: int) -> tuple[str | None, dict[str, None]]:
    """The run before, if a turn of it was cut off and its conversation is resumed.

    And the messages that the journal has of it, and of runs before it that were cut off, too.
    """
    known: dict[str, None] = {}
    cut_off: str | None = None
    first = last = began + 1
    while first > max(1, began - MOST_EVENTS):
        first, last = max(1, first - PAGE), first
        for event in reversed([each async for each in _read(log, session, first, last)]):
            match event:
                case RunStarting(origin=origin) if origin.cli_session is None or origin.fork:
                    return cut_off, known
                case RunEnded(cut_off=False):
                    return cut_off, known
                case RunEnded(run=run):
                    cut_off = cut_off or run
                case Recalled(uuid=uuid):
                    known[uuid] = None
                case Said(line=line) if said := uuid_of(line):
                    known[said] = None
                case _:
                    pass
    return cut_off, known


async def _known_prompts(
    log: Log, session: str, began: int, known: dict[str, None]
) -> dict[str, None] | None:
    """The prompts that a run was given; None for a run of very many events.

    What was recalled already since it began is added to `known`.
    """
    if await log.head(session) - began > MOST_EVENTS:
        return None
    prompts: dict[str, None] = {}
    async for event in _read(log, session, began, began + MOST_EVENTS + PAGE):
        match event:
            case PromptSent(prompt=prompt, uuid=given):
                prompts[given or prompt] = None
            case Recalled(uuid=uuid):
                known[uuid] = None
            case _:
                pass
    return prompts


async def _read(log: Log, session: str, first: int, last: int) -> AsyncIterator[Event]:
    """The events from the number `first` on, and before `last`, that matter here."""
    seq = first - 1
    while seq < last - 1 and (page := await log.read(session, after=seq, limit=PAGE)):
        seq = page[-1].seq
        for stored in page:
            if stored.seq >= last:
                return
            if isinstance(stored.event, RunStarting | RunEnded | Recalled | Said | PromptSent):
                yield stored.event
