"""The front dies between any two steps of a question: nothing is lost, and nothing is doubled.

A step is a commit to the front's file, a request to the hub, or a call of Telegram. The front is
ended after each of them, as a killed process ends, and started again. A permission is stepped
through from the prompt on. What comes before the card is alike for all, so a plan, questions and a
form are stepped through from their cards on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from quarterdeck.client import HubClient
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.telegram.api import BotApi
from quarterdeck.fronts.telegram.database import Database
from quarterdeck.runtime.tasks import background_tasks
from quarterdeck.testing import fake
from quarterdeck.testing.telegram.objects import Message
from support.bounds import SECONDS
from support.telegram_house import Guest, TelegramHouse

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def tool(name: str, given: fake.Line) -> tuple[fake.Line, ...]:
    """The model calls a tool, and the CLI asks."""
    return fake.assistant(fake.tool_use(name, given)), fake.can_use_tool(name, given)


def asking(*lines: fake.Line) -> tuple[fake.Step, ...]:
    """A CLI that asks one question in a turn."""
    return (
        fake.Initialize(),
        fake.Expect("user", polite=True),
        fake.say(*lines),
        fake.Expect("control_response", polite=True),
        fake.say(fake.assistant("Done."), fake.result("Done.")),
        fake.Serve(),
    )


COMMAND: fake.Line = {"command": "make test"}
PLAN: fake.Line = {"plan": "1. Split the parser."}
OPTIONS = [{"label": "A"}, {"label": "B"}]
QUESTIONS: fake.Line = {
    "questions": [
        {"question": "Which ones?", "header": "Many", "multiSelect": True, "options": OPTIONS},
        {"question": "Which one?", "header": "One", "options": OPTIONS},
        {"question": "Why?", "header": "Why", "options": []},
    ]
}
FORM: fake.Line = {
    "type": "object",
    "required": ["title"],
    "properties": {"title": {"type": "string"}, "kind": {"enum": ["bug", "idea"]}},
}


class Kind(Value):
    """A kind of question, and how a person answers it."""

    lines: tuple[fake.Line, ...]
    card: str
    """A text of its card."""
    answer: Callable[[Guest, Message], Awaitable[None]]
    verdict: str
    response: dict[str, Any]
    """What the CLI must be told, at least."""
    from_card: bool = True
    """Whether only the steps after the card are tried."""


async def allow(guest: Guest, card: Message) -> None:
    guest.press(card, "✅ Allow")


async def approve(guest: Guest, card: Message) -> None:
    guest.press(card, "✅ Approve (ask me)")


async def choose(guest: Guest, card: Message) -> None:
    """Choose several options, one of the next question, and answer the last one by a reply."""
    for label in ("A", "B"):
        guest.press(card, f"☐ {label}")
        card = await guest.sees(card.message_id, button=f"☑ {label}")
    guest.press(card, "✅ Done")
    card = await guest.sees(card.message_id, "Which one?")
    guest.press(card, "B")
    card = await guest.sees(card.message_id, "Why?")
    guest.type("Because.", to=card.message_id)


async def fill_in(guest: Guest, card: Message) -> None:
    guest.type("It breaks", to=card.message_id)
    card = await guest.sees(card.message_id, "2 of 2: kind")
    guest.press(card, "bug")
    card = await guest.sees(card.message_id, button="✅ Accept")
    guest.press(card, "✅ Accept")


KINDS = {
    "allow": Kind(
        lines=tool("Bash", COMMAND),
        card="🔐",
        answer=allow,
        verdict="✅ Allowed",
        response={"behavior": "allow"},
        from_card=False,
    ),
    "plan": Kind(
        lines=tool("ExitPlanMode", PLAN),
        card="has a plan",
        answer=approve,
        verdict="✅ Approved, every call asked about",
        response={"behavior": "allow"},
    ),
    "questions": Kind(
        lines=tool("AskUserQuestion", QUESTIONS),
        card="Which ones?",
        answer=choose,
        verdict="✅ Answered",
        response={
            "behavior": "allow",
            "updatedInput": {
                **QUESTIONS,
                "answers": {"Which ones?": "A, B", "Which one?": "B", "Why?": "Because."},
            },
        },
    ),
    "form": Kind(
        lines=(
            fake.control_request(
                "ask-1",
                subtype="elicitation",
                mcp_server_name="tracker",
                message="Describe it.",
                requested_schema=FORM,
            ),
        ),
        card="Describe it.",
        answer=fill_in,
        verdict="✅ Accepted",
        response={"action": "accept", "content": {"title": "It breaks", "kind": "bug"}},
    ),
}

STRIDES = {
    "allow": (4, (1, 2, 3, 4)),
    "plan": (2, (1,)),
    "questions": (7, (1, 4)),
    "form": (5, (1, 3)),
}
"""How many steps are between two that are tried, and the first ones. Each step of a permission is
tried. Of the others a part is: their presses have the same steps, so with an odd stride each press
is interrupted elsewhere."""

MORTAL = ContextVar("mortal", default=False)
"""Whether the task is one of the front that dies. Another front of the worker may run beside it."""


class Killed(BaseException):
    """The process is gone."""


class Wire:
    """Ends the front at a step."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.steps = 0
        self.names: list[str] = []

    def arm(self, at: int) -> None:
        """End it at this step, counted from now."""
        self.at, self.steps, self.names = at, 0, []

    def step(self, name: str) -> None:
        """A step is done."""
        if self.at is None or not MORTAL.get():
            return
        self.steps += 1
        self.names.append(name)
        if self.steps == self.at:
            self.at = None
            raise Killed(name)


class Watched:
    """A connection to the front's file, whose commits are steps."""

    def __init__(self, connection: Any, wire: Wire) -> None:
        self._connection = connection
        self._wire = wire

    def execute(self, sql: str, *rest: Any) -> Any:
        writes = sql.startswith(("INSERT", "UPDATE", "DELETE", "COMMIT"))
        alone = writes and (sql == "COMMIT" or not self._connection.in_transaction)
        done = self._connection.execute(sql, *rest)
        if alone:
            self._wire.step(sql[:40])
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def watched(wire: Wire, what: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """A call that is a step."""

    @wraps(call)
    async def run(self: object, first: object, *rest: object, **named: object) -> Any:
        done = await call(self, first, *rest, **named)
        wire.step(f"{what} {getattr(first, 'path', first)}")
        return done

    return run


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """Steps of fronts that are started from now on."""
    made = Wire()
    open_database = Database.__init__

    def init(self: Database, path: Path) -> None:
        open_database(self, path)
        self.connection = Watched(self.connection, made)  # type: ignore[assignment]

    monkeypatch.setattr(Database, "__init__", init)
    monkeypatch.setattr(HubClient, "call", watched(made, "hub", HubClient.call))
    monkeypatch.setattr(BotApi, "call", watched(made, "Telegram", BotApi.call))
    return made


async def keep_running(house: TelegramHouse) -> None:
    """Start the front again whenever it was killed."""
    MORTAL.set(True)
    while True:
        try:
            await house.run()
        except BaseExceptionGroup as group:
            if group.subgroup(Killed) is None:
                raise


async def question(guest: Guest, kind: Kind, record: Path, wire: Wire, at: int) -> None:
    """Have a question asked and answered, while the front dies at a step of it."""
    guest.play(*asking(*kind.lines), record=record)
    if not kind.from_card:
        wire.arm(at)
    guest.type("go")
    card = await guest.hears(kind.card)
    if kind.from_card:
        wire.arm(at)
    await kind.answer(guest, card)
    await guest.sees(card.message_id, f"{kind.verdict} by {guest.name}")
    await guest.hears("Done.")


def responses(record: Path) -> list[dict[str, Any]]:
    """The answers to the question that the CLI has read."""
    rows = [msgspec.json.decode(line) for line in record.read_bytes().splitlines()[1:]]
    return [
        row["response"]["response"]
        for row in rows
        if row.get("type") == "control_response" and row["response"].get("request_id") == "ask-1"
    ]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "first"), [(name, first) for name in KINDS for first in STRIDES[name][1]]
)
async def test_a_front_that_dies_between_any_two_steps_loses_and_doubles_nothing(
    bare_house: TelegramHouse, wire: Wire, tmp_path: Path, name: str, first: int
) -> None:
    house = bare_house
    kind, stride, at, ran = KINDS[name], STRIDES[name][0], first, 0
    async with background_tasks() as tasks:
        tasks.start_soon(keep_running, house)
        while True:
            guest = await house.person()
            record = tmp_path / f"record-{at}"
            with anyio.fail_after(SECONDS):
                await question(guest, kind, record, wire, at)
            died = wire.at is None
            wire.at = None
            where = wire.names[-1]
            texts = [message.shown for message in house.sim.from_bot(guest.user)][2:]
            counts = [
                sum(kind.verdict in text for text in texts),
                sum("Done." in text for text in texts),
                len(texts),
            ]
            assert counts == [1, 1, 2], (at, where, texts)
            (session,) = await guest.sessions()
            assert session.turns == 1, (at, where)
            (response,) = responses(record)
            assert response | kind.response == response, (at, where)
            await house.clear()
            if not died:
                break
            at, ran = at + stride, ran + 1
    assert ran > 10 // stride, wire.names
