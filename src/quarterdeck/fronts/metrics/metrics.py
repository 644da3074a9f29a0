"""The page of metrics: a registry of its own, and one collector over the hub's state.

Owns the names, types and help texts of all metrics, and when the hub is queried. All sessions are
read once, then only those that changed since the last page: so a page costs the same for ten
sessions and for thousands. It knows no HTTP.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
from msgspec import Struct
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from quarterdeck import __version__
from quarterdeck.domain.errors import NotFound, QuarterdeckError
from quarterdeck.domain.structs import Value
from quarterdeck.fronts.metrics.tally import Tally, status_of
from quarterdeck.hub.api import HubApi
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionState
from quarterdeck.protocol.views import MachineView
from quarterdeck.runtime.tasks import background_tasks

FRESH_SECONDS = 1.0
"""Pages that are requested more often than this have the same values for sessions."""
PAGE = 500
ONE_BY_ONE = 20
"""If more sessions than this have changed, all are read again, page by page: that is faster."""
PAUSE_SECONDS = 5.0


class Deliveries(Value):
    """Counters of a webhook's deliveries since the hub started."""

    delivered: int
    failed: int
    given_up: int
    waiting: int


class Commits(Value):
    """The duration of the journal's commits since the hub started.

    `buckets` has an upper bound in seconds and the number of commits up to it; `seconds` is the sum
    of their durations.
    """

    buckets: Sequence[tuple[float, int]]
    count: int
    seconds: float


class Sources(NamedTuple):
    """Sources of values from other parts. Each call is fast and does not raise."""

    requests: Callable[[], Mapping[tuple[str, str, int], int]] = dict
    """HTTP requests by method, route and status."""
    streams: Callable[[], int] = int
    """Clients that follow the stream now."""
    deliveries: Callable[[], Mapping[str, Deliveries]] = dict
    """By the name of the webhook."""
    journal_bytes: Callable[[], int | None] = lambda: None
    commits: Callable[[], Commits | None] = lambda: None


class _SessionValues(Struct):
    """The stored values of a session."""

    state: SessionState
    archived: bool
    asks: int
    oldest_ask: int | None


class Metrics:
    """The front."""

    def __init__(
        self,
        hub: HubApi,
        sources: Sources | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._hub = hub
        self._sources = sources or Sources()
        self._clock = clock
        self._tally = Tally()
        self._sessions: dict[str, _SessionValues] | None = None
        self._machines: list[MachineView] = []
        self._lock = anyio.Lock()
        self._fresh_until = 0.0
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(self.collect))
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Count while the block runs."""
        after = self._hub.position
        async with background_tasks() as tasks:
            tasks.start_soon(self._follow, after)
            yield

    async def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page and its content type, in the format of the reader's `Accept` header."""
        async with self._lock:
            if time.monotonic() >= self._fresh_until:
                await self._refresh()
                self._fresh_until = time.monotonic() + FRESH_SECONDS
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    @property
    def registry(self) -> CollectorRegistry:
        """All metrics, in the client library's registry."""
        return self._registry

    # --- the state -------------------------------------------------------------------------------

    async def _follow(self, after: int) -> None:
        while True:
            try:
                async for batch in self._hub.follow(after=after):
                    for stored in batch:
                        self._tally.add(stored)
                    after = batch[-1].position
                return
            except QuarterdeckError:  # an unreadable disk: the next append reports it
                await anyio.sleep(PAUSE_SECONDS)

    async def _refresh(self) -> None:
        self._machines = await self._hub.machines()
        changed, self._tally.changed = self._tally.changed, set()
        try:
            if self._sessions is None or len(changed) > ONE_BY_ONE:
                self._sessions = await self._read_all()
            else:
                for session in changed:
                    await self._read(self._sessions, session)
        except BaseException:
            self._tally.changed |= changed  # they are read again
            raise

    async def _read_all(self) -> dict[str, _SessionValues]:
        found: dict[str, _SessionValues] = {}
        for archived in (False, True):
            after: str | None = None
            while views := await self._hub.sessions(after=after, limit=PAGE, archived=archived):
                after = views[-1].session
                found |= {view.session: _values_of(view) for view in views}
        return found

    async def _read(self, sessions: dict[str, _SessionValues], session: str) -> None:
        try:
            sessions[session] = _values_of(await self._hub.session(session))
        except NotFound:
            sessions.pop(session, None)

    # --- the metrics -----------------------------------------------------------------------------

    def collect(self) -> Iterable[Metric]:
        """All of the hub's own metrics, with their current values."""
        build = InfoMetricFamily("quarterdeck_build", "The version of the hub.")
        build.add_metric((), {"version": __version__, "python": platform.python_version()})
        yield build
        yield from self._of_sessions()
        yield from self._of_machines()
        yield from self._of_events()
        yield from self._of_money()
        yield from self._of_limits()
        yield from self._of_journal()
        yield from self._of_fronts()

    def _of_sessions(self) -> Iterable[Metric]:
        seen = list((self._sessions or {}).values())
        states = Counter(each.state for each in seen if not each.archived)
        yield _gauge(
            "quarterdeck_sessions",
            "Sessions that are not archived, by state.",
            "state",
            {state.value: states[state] for state in SessionState},
        )
        yield _plain("quarterdeck_sessions_archived", "Archived sessions.",
                     sum(each.archived for each in seen))  # fmt: skip
        yield _plain("quarterdeck_open_asks", "Questions that wait for a person.",
                     sum(each.asks for each in seen))  # fmt: skip
        oldest = min(
            (each.oldest_ask for each in seen if each.oldest_ask is not None), default=None
        )
        age = 0.0 if oldest is None else max(0.0, self._clock() - oldest / 1000)
        yield _plain(
            "quarterdeck_oldest_ask_age_seconds",
            "How long the oldest open question has been waiting, in seconds; 0 without questions.",
            age,
        )

    def _of_machines(self) -> Iterable[Metric]:
        machines = self._machines
        yield _gauge(
            "quarterdeck_runner_connected",
            "1 if the machine's runner is connected, otherwise 0.",
            "machine",
            {each.name: int(each.connected) for each in machines},
        )
        yield _gauge(
            "quarterdeck_runs",
            "Running CLI processes on a machine.",
            "machine",
            {each.name: each.runs for each in machines},
        )
        yield _gauge(
            "quarterdeck_machine_load",
            "The machine's load, reported by its runner.",
            "machine",
            {each.name: each.load for each in machines if each.load is not None},
        )
        yield _gauge(
            "quarterdeck_machine_memory_available_bytes",
            "The machine's available memory, reported by its runner.",
            "machine",
            {each.name: each.memory_available for each in machines if each.memory_available},
        )

    def _of_events(self) -> Iterable[Metric]:
        tally = self._tally
        yield _counter("quarterdeck_events", "Appended events, by kind.", "kind", tally.events)
        yield _counter(
            "quarterdeck_lines",
            "Journalled lines of the CLIs: in (from the CLI) and out (to it).",
            "direction",
            {"in": tally.lines["in"], "out": tally.lines["out"]},
        )
        yield CounterMetricFamily(
            "quarterdeck_runs_started", "CLI processes that were requested.", tally.runs_started
        )
        yield _counter(
            "quarterdeck_runs_ended",
            "CLI processes that have ended, by whether they ended cleanly.",
            "how",
            {"clean": tally.runs_ended["clean"], "died": tally.runs_ended["died"]},
        )
        yield _counter(
            "quarterdeck_turns",
            "Turns that have ended, by outcome.",
            "outcome",
            {"ok": tally.turns["ok"], "failed": tally.turns["failed"]},
        )
        yield _counter(
            "quarterdeck_decisions",
            "Tool calls that were decided, by verdict.",
            "verdict",
            tally.decisions,
        )

    def _of_money(self) -> Iterable[Metric]:
        tally = self._tally
        yield _counter(
            "quarterdeck_cost_usd", "The cost of turns, in US dollars.", "model", tally.cost
        )
        tokens = CounterMetricFamily(
            "quarterdeck_tokens", "Tokens used by turns.", labels=("model", "type")
        )
        for (model, kind), number in tally.tokens.items():
            tokens.add_metric((model, kind), number)
        yield tokens

    def _of_limits(self) -> Iterable[Metric]:
        limits = self._tally.limits
        yield _gauge(
            "quarterdeck_rate_limit_used_ratio",
            "Used share of a limit of the account, from 0 to 1.",
            "limit",
            {name: each.used for name, each in limits.items() if each.used is not None},
        )
        yield _gauge(
            "quarterdeck_rate_limit_resets_timestamp_seconds",
            "When a limit of the account resets.",
            "limit",
            {name: each.resets_at / 1000 for name, each in limits.items() if each.resets_at},
        )
        states = GaugeMetricFamily(
            "quarterdeck_rate_limit_state",
            "1 for the current state of a limit of the account.",
            labels=("limit", "state"),
        )
        for name, each in limits.items():
            states.add_metric((name, status_of(each)), 1)
        yield states

    def _of_journal(self) -> Iterable[Metric]:
        yield _plain(
            "quarterdeck_journal_position",
            "The position of the journal's last event.",
            self._hub.position,
        )
        size = self._sources.journal_bytes()
        if size is not None:
            yield _plain("quarterdeck_journal_size_bytes", "The journal's files on disk.", size)
        commits = self._sources.commits()
        if commits is not None:
            histogram = HistogramMetricFamily(
                "quarterdeck_journal_commit_seconds", "Duration of the journal's commits."
            )
            buckets = [*((str(bound), float(upto)) for bound, upto in commits.buckets)]
            buckets.append(("+Inf", float(commits.count)))
            histogram.add_metric((), buckets, commits.seconds)
            yield histogram

    def _of_fronts(self) -> Iterable[Metric]:
        yield _plain(
            "quarterdeck_stream_clients",
            "Clients that follow the stream now.",
            self._sources.streams(),
        )
        requests = CounterMetricFamily(
            "quarterdeck_http_requests",
            "Answered HTTP requests and WebSocket handshakes.",
            labels=("method", "route", "status"),
        )
        for (method, route, status), number in self._sources.requests().items():
            requests.add_metric((method, route, str(status)), number)
        yield requests
        outcomes = CounterMetricFamily(
            "quarterdeck_webhook_deliveries",
            "Webhooks: payloads delivered, failed attempts, payloads given up.",
            labels=("webhook", "outcome"),
        )
        waiting = GaugeMetricFamily(
            "quarterdeck_webhook_waiting", "Payloads that wait for an attempt.", labels=("webhook",)
        )
        for name, each in self._sources.deliveries().items():
            outcomes.add_metric((name, "delivered"), each.delivered)
            outcomes.add_metric((name, "failed"), each.failed)
            outcomes.add_metric((name, "given_up"), each.given_up)
            waiting.add_metric((name,), each.waiting)
        yield outcomes
        yield waiting


class _Collector(Collector):
    """Calls a function when it is collected."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()


def _plain(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value)


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=(label,))
    for each, value in values.items():
        family.add_metric((each,), value)
    return family


def _counter(name: str, text: str, label: str, values: Mapping[str, float]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=(label,))
    for each, value in values.items():
        family.add_metric((each,), value)
    return family


def _values_of(view: SessionView) -> _SessionValues:
    return _SessionValues(
        state=view.state,
        archived=view.archived,
        asks=len(view.asks),
        oldest_ask=min((card.at for card in view.asks.values()), default=None),
    )
