"""How much may be spent, and how much is: budgets of runs, sessions, days and projects.

Owns the limits, the sums over all sessions, and the sentence that a person reads when one is
reached. What a session itself has spent stands in its account, which the journal keeps; the sums
over all are read from the journal when the hub starts, and grow with every event that is stored. So
both are what they were after a restart, and go on after a resume.

It decides nothing about the CLI: `supervisor` interrupts and holds prompts back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec import field

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value
from quarterdeck.hub.supervision.meter import Prices
from quarterdeck.journal.accounts import budget_key, portions, tokens_of
from quarterdeck.journal.base import Journal, Usage
from quarterdeck.journal.usage import SLOT_MS, day_of, midnight, total
from quarterdeck.protocol.accounts import Account
from quarterdeck.protocol.events import (
    BudgetReached,
    Metered,
    ModelTokens,
    SessionCreated,
    SpecChanged,
    TurnEnded,
)
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import Budget
from quarterdeck.protocol.stored_events import Stored
from quarterdeck.protocol.usage import UsageBy, UsageReport


async def usage_report(
    journal: Usage, by: UsageBy, since: int | None, until: int | None
) -> UsageReport:
    """What was used between two times."""
    rows = await journal.usage(by, since=since, until=until)
    return UsageReport(
        by=by,
        since=since,
        until=until,
        rows=tuple(rows),
        total=total(rows),
        limits=tuple(await journal.limits()),
    )


class Limit(Value, forbid_unknown_fields=True):
    """How much may be spent, in US dollars and in tokens. What is left out has no limit."""

    usd: float | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse a limit that nothing could keep."""
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            if limit is not None and not 0 < limit < float("inf"):
                raise UsageError(f"limit: {name}: must be a number above 0")


class Limits(Value, forbid_unknown_fields=True):
    """What all sessions together may spend."""

    day: Limit = Limit()
    """From midnight to midnight, by the clock of the hub's machine."""
    projects: dict[str, Limit] = field(default_factory=dict)
    """Each project, by its name or its directory, for as long as it lasts."""


class Spent(Value):
    """What was spent."""

    usd: float = 0.0
    tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(usd=self.usd + other.usd, tokens=self.tokens + other.tokens)


class Spending(Value):
    """What was spent within each scope that a limit can have."""

    run: Spent
    session: Spent
    day: Spent
    project: Spent
    family: tuple[tuple[Spent, Budget], ...] = ()
    """What the trees of the sessions above it have spent, and their budgets; the nearest last."""


class _Tree:
    """What a session and all that its agents have started have spent, and its budget."""

    def __init__(self) -> None:
        self.spent = Spent()
        self.budget: Budget | None = None


READS = 3
"""How often the sums are read anew when something is stored meanwhile: they are to be of one
moment, and the next events are added to them."""


class Ledger:
    """What all sessions have spent today, and in each project; and what a token cost."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._day = ""
        self._loaded = 0
        self._today = Spent()
        self._projects: dict[str, Spent] = {}
        self._trees: dict[str, _Tree] = {}
        """By the session at the top of each: of all whose agents may start others."""
        self.prices = Prices()

    async def load(self, journal: Journal) -> None:
        """Become what the journal says, up to a position of it."""
        for _ in range(READS):
            self._loaded = journal.position
            await self._read(journal)
            if self._loaded == journal.position:
                return

    async def _read(self, journal: Journal) -> None:
        now = int(self._now() * 1000)
        today = total(await journal.usage(UsageBy.DAY, since=midnight(now)))
        self._day = day_of(now // SLOT_MS)
        self._today = Spent(usd=today.cost_usd, tokens=today.tokens)
        self._projects = {
            row.key: Spent(usd=row.used.cost_usd, tokens=row.used.tokens)
            for row in await journal.usage(UsageBy.PROJECT)
        }
        self.prices.learn(
            ModelTokens(
                model=row.key,
                cost_usd=row.used.cost_usd,
                input=row.used.input,
                output=row.used.output,
                cache_read=row.used.cache_read,
                cache_write=row.used.cache_write,
            )
            for row in await journal.usage(UsageBy.MODEL)
        )

    def know(self, view: SessionView) -> None:
        """Add a session of the journal to the trees that it belongs to. Once for each session."""
        if not view.spec.agents and not view.lineage:
            return
        if view.spec.agents:
            self._tree(view.session).budget = view.spec.budget
        own = Spent(usd=view.account.usd, tokens=view.account.tokens)
        for top in self._tops(view):
            self._tree(top).spent += own

    def _tree(self, session: str) -> _Tree:
        return self._trees.setdefault(session, _Tree())

    def _tops(self, view: SessionView) -> tuple[str, ...]:
        """The trees that a session belongs to, its own included."""
        return (*view.lineage, *((view.session,) if view.session in self._trees else ()))

    def note(self, before: SessionView | None, stored: Stored) -> None:
        """An event was stored on top of this view."""
        event = stored.event
        if stored.position <= self._loaded:
            return
        if isinstance(event, SessionCreated | SpecChanged) and event.spec.agents:
            if before is not None and stored.session not in self._trees:
                account = before.account
                self._tree(stored.session).spent = Spent(usd=account.usd, tokens=account.tokens)
            self._tree(stored.session).budget = event.spec.budget
        if before is None:
            return
        if not isinstance(event, Metered | TurnEnded):
            return
        if isinstance(event, Metered) and event.run != before.run:
            return
        more = Spent()
        for portion in portions(before.account, event):
            more += Spent(usd=portion.usd, tokens=portion.tokens)
        self._turn_page()
        self._today += more
        project = project_of(before)
        self._projects[project] = self._projects.get(project, Spent()) + more
        for top in self._tops(before):
            self._tree(top).spent += more
        if isinstance(event, TurnEnded):
            self.prices.learn(event.models)

    def spending(self, view: SessionView, open_turn: Spent | None = None) -> Spending:
        """What was spent, as far as it concerns a session.

        `open_turn` is what its turn has used so far, where more is known than was written down.
        """
        account = view.account
        more = Spent()
        if open_turn is not None:
            written = Spent(
                usd=sum(each.cost_usd for each in account.metered),
                tokens=tokens_of(account.metered),
            )
            more = Spent(usd=open_turn.usd - written.usd, tokens=open_turn.tokens - written.tokens)
        self._turn_page()
        tree = self._trees.get(view.session)
        own = Spent(usd=account.usd, tokens=account.tokens) if tree is None else tree.spent
        return Spending(
            run=Spent(usd=account.run_usd, tokens=account.run_tokens) + more,
            session=own + more,
            day=self._today + more,
            project=self._projects.get(project_of(view), Spent()) + more,
            family=tuple((above.spent + more, limit) for above, limit in self._above(view)),
        )

    def has_family_limit(self, view: SessionView) -> bool:
        """Whether a session above this one has a budget."""
        return any(True for _ in self._above(view))

    def _above(self, view: SessionView) -> Iterator[tuple[_Tree, Budget]]:
        for top in view.lineage:
            tree = self._trees.get(top)
            if tree is not None and tree.budget is not None and tree.budget != Budget():
                yield tree, tree.budget

    def _turn_page(self) -> None:
        """Another day begins with nothing."""
        today = day_of(int(self._now() * 1000) // SLOT_MS)
        if today != self._day:
            self._day, self._today = today, Spent()


def project_of(view: SessionView) -> str:
    """The project that a session's spending is put down to: its name, else the directory."""
    return view.spec.project or view.spec.directory


def reached_limits(
    budget: Budget | None, limits: Limits, project: str, spending: Spending
) -> list[BudgetReached]:
    """The limits that are reached, the nearest first."""
    own = budget or Budget()
    of_project = limits.projects.get(project, Limit())
    above = [
        ("family", spent, limit.session_usd, limit.session_tokens)
        for spent, limit in spending.family
    ]
    table: tuple[tuple[str, Spent, float | None, int | None], ...] = (
        ("run", spending.run, own.run_usd, own.run_tokens),
        ("session", spending.session, own.session_usd, own.session_tokens),
        ("day", spending.day, limits.day.usd, limits.day.tokens),
        ("project", spending.project, of_project.usd, of_project.tokens),
        *above,
    )
    found: list[BudgetReached] = []
    for scope, spent, usd, tokens in table:
        if usd is not None and spent.usd >= usd:
            found.append(BudgetReached(scope=scope, unit="usd", limit=usd, spent=spent.usd))
        if tokens is not None and spent.tokens >= tokens:
            found.append(
                BudgetReached(scope=scope, unit="tokens", limit=tokens, spent=spent.tokens)
            )
    return found


def any_limit(budget: Budget | None, limits: Limits, project: str) -> bool:
    """Whether there is anything to watch."""
    nothing = (None, Budget())
    return (
        budget not in nothing or limits.day != Limit() or limits.projects.get(project) is not None
    )


def news(
    account: Account, now: list[BudgetReached]
) -> tuple[list[BudgetReached], list[BudgetReached]]:
    """Of the limits that are reached, those not written down yet; and those written down that are
    not reached any more. One that was raised, and is reached again, is new.
    """
    present = {budget_key(each.scope, each.unit): each for each in now}
    fresh = [
        each
        for key, each in present.items()
        if key not in account.budgets or account.budgets[key].limit != each.limit
    ]
    freed = [each for key, each in account.budgets.items() if key not in present]
    return fresh, freed


def sentence(one: BudgetReached) -> str:
    """What a person reads."""
    whose = {
        "run": "this run of the session",
        "session": "the session",
        "day": "today, over all sessions",
        "project": "the project",
        "family": "the session whose agent started this one",
    }.get(one.scope, one.scope)
    if one.unit == "usd":
        amount, spent = f"${one.limit:,.2f}", f"${one.spent:,.2f}"
    else:
        amount, spent = f"{one.limit:,.0f} tokens", f"{one.spent:,.0f}"
    where = "the session's budget" if one.scope in _OWN else "the limit in the configuration"
    if one.scope == "family":
        where = "its budget"
    return f"the budget of {amount} for {whose} is used up ({spent}): raise {where} to continue"


_OWN = frozenset({"run", "session"})
