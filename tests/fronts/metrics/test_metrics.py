"""The metrics, read as Prometheus reads them: over HTTP, from a hub with a real journal."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest
from msgspec import Raw
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from quarterdeck.domain.errors import JournalError
from quarterdeck.fronts.http import Access, Listen, Requests, Role, make_app, serve
from quarterdeck.fronts.metrics import Commits, Deliveries, Metrics, Sources
from quarterdeck.fronts.metrics.tally import MOST_NAMES, OTHER, Tally
from quarterdeck.protocol import events as ev
from quarterdeck.protocol.commands import ArchiveSession, StopSession
from quarterdeck.protocol.session_view import SessionView
from quarterdeck.protocol.sessions import SessionSpec
from quarterdeck.protocol.stored_events import Stored
from support.bounds import SECONDS
from support.clis import PROJECT
from support.small_deck import SmallDeck
from support.waiting import until

pytestmark = pytest.mark.anyio

FULL = Sources(
    requests=lambda: {("GET", "/api/sessions", 200): 3},
    streams=lambda: 2,
    deliveries=lambda: {"ops": Deliveries(delivered=5, failed=2, given_up=1, waiting=4)},
    journal_bytes=lambda: 4096,
    commits=lambda: Commits(buckets=((0.01, 7), (0.1, 9)), count=10, seconds=0.5),
)


def read(page: bytes) -> dict[str, float]:
    """Every sample, as `name{label=value}`."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            found[key(sample)] = sample.value
    return found


def key(sample: Sample) -> str:
    labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
    return f"{sample.name}{{{labels}}}" if labels else sample.name


async def now(metrics: Metrics) -> dict[str, float]:
    """The numbers, whatever was told before."""
    metrics._fresh_until = 0.0
    body, _ = await metrics.page()
    return read(body)


@contextlib.asynccontextmanager
async def counting(
    deck: SmallDeck, sources: Sources = FULL, clock: float | None = None
) -> AsyncIterator[Metrics]:
    made = Metrics(deck, sources, clock=lambda: clock if clock is not None else time.time())
    async with made.run():
        yield made


async def heard(deck: SmallDeck, metrics: Metrics, since: int) -> None:
    """Wait until it has counted all that is in the journal."""
    with anyio.fail_after(SECONDS):
        await until(lambda: sum(metrics._tally.events.values()) == deck.position - since)


async def test_sessions_and_questions_are_told_as_they_are_now() -> None:
    deck = SmallDeck()
    one, two = await deck.have_session("one"), await deck.have_session("two")
    before = deck.position
    async with counting(deck) as metrics:
        first = await now(metrics)
        assert first["quarterdeck_sessions{state=starting}"] == 2
        assert first["quarterdeck_open_asks"] == 0
        assert first["quarterdeck_oldest_ask_age_seconds"] == 0
        await deck.ask(one)
        await deck.submit(StopSession(session=two, by="me"))
        await heard(deck, metrics, before)
        metrics._clock = lambda: time.time() + 60
        second = await now(metrics)
        assert second["quarterdeck_sessions{state=waiting}"] == 1
        assert second["quarterdeck_sessions{state=ended}"] == 1
        assert second["quarterdeck_sessions{state=starting}"] == 0
        assert second["quarterdeck_open_asks"] == 1
        assert 60 <= second["quarterdeck_oldest_ask_age_seconds"] < 90
        await deck.submit(ArchiveSession(session=two, archived=True, by="me"))
        await deck.journal.delete(one, by="me")
        with anyio.fail_after(SECONDS):
            await until(lambda: {one, two} <= metrics._tally.changed)
        third = await now(metrics)
        assert third["quarterdeck_sessions_archived"] == 1
        assert third["quarterdeck_open_asks"] == 0
        assert third["quarterdeck_sessions{state=ended}"] == 0


async def test_what_happens_is_counted() -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    before = deck.position
    run = f"run-{session}"
    async with counting(deck) as metrics:
        await deck.say(session, "a", "b")
        await deck.journal.append(
            session,
            [
                ev.Sent(run=run, number=1, line=Raw(b"{}")),
                ev.TurnEnded(
                    prompts=(),
                    failed=False,
                    outcome="success",
                    cost_usd=0.75,
                    models=(
                        ev.ModelTokens(model="large", cost_usd=0.5, input=10, cache_read=90),
                        ev.ModelTokens(model="small", cost_usd=0.25, output=7, cache_write=3),
                    ),
                ),
                ev.TurnEnded(prompts=(), failed=True, outcome="error", cost_usd=1.0),
                ev.Decided(tool="Bash", title="x", verdict="allow", by="policy"),
                ev.Decided(tool="Bash", title="x", verdict="made up", by="policy"),
                ev.RateLimited(status="allowed_warning", limit="5h", resets_at=5000, used=0.75),
                ev.RunEnded(run=run, reason="it crashed"),
                ev.RunStarting(run="next", machine="here"),
                ev.RunEnded(run="next", reason="done", clean=True),
            ],
        )
        await heard(deck, metrics, before)
        found = await now(metrics)
    wanted = {
        "quarterdeck_events_total{kind=said}": 2,
        "quarterdeck_events_total{kind=turn.ended}": 2,
        "quarterdeck_lines_total{direction=in}": 2,
        "quarterdeck_lines_total{direction=out}": 1,
        "quarterdeck_turns_total{outcome=ok}": 1,
        "quarterdeck_turns_total{outcome=failed}": 1,
        "quarterdeck_cost_usd_total{model=large}": 0.5,
        "quarterdeck_cost_usd_total{model=small}": 0.25,
        "quarterdeck_cost_usd_total{model=unknown}": 1.0,
        "quarterdeck_tokens_total{model=large,type=cache_read}": 90,
        "quarterdeck_tokens_total{model=small,type=output}": 7,
        "quarterdeck_tokens_total{model=small,type=cache_write}": 3,
        "quarterdeck_decisions_total{verdict=allow}": 1,
        "quarterdeck_decisions_total{verdict=other}": 1,
        "quarterdeck_rate_limit_used_ratio{limit=5h}": 0.75,
        "quarterdeck_rate_limit_resets_timestamp_seconds{limit=5h}": 5,
        "quarterdeck_rate_limit_state{limit=5h,state=allowed_warning}": 1,
        "quarterdeck_runs_started_total": 1,
        "quarterdeck_runs_ended_total{how=clean}": 1,
        "quarterdeck_runs_ended_total{how=died}": 1,
        "quarterdeck_journal_position": deck.position,
        "quarterdeck_journal_size_bytes": 4096,
        "quarterdeck_journal_commit_seconds_bucket{le=0.01}": 7,
        "quarterdeck_journal_commit_seconds_bucket{le=+Inf}": 10,
        "quarterdeck_journal_commit_seconds_count": 10,
        "quarterdeck_journal_commit_seconds_sum": 0.5,
        "quarterdeck_stream_clients": 2,
        "quarterdeck_http_requests_total{method=GET,route=/api/sessions,status=200}": 3,
        "quarterdeck_webhook_deliveries_total{outcome=delivered,webhook=ops}": 5,
        "quarterdeck_webhook_deliveries_total{outcome=failed,webhook=ops}": 2,
        "quarterdeck_webhook_deliveries_total{outcome=given_up,webhook=ops}": 1,
        "quarterdeck_webhook_waiting{webhook=ops}": 4,
        "quarterdeck_runner_connected{machine=here}": 1,
        "quarterdeck_runs{machine=here}": 0,
    }
    assert {name: found.get(name) for name in wanted} == wanted
    assert found["process_resident_memory_bytes"] > 0
    assert any(name.startswith("quarterdeck_build_info{python=3.") for name in found)


def test_names_from_outside_are_bounded() -> None:
    tally = Tally()
    for number in range(MOST_NAMES + 20):
        model = f"model {number}" + "x" * 1000
        used = ev.ModelTokens(model=model, cost_usd=-1.0 if number else 2.0)
        ended = ev.TurnEnded(
            prompts=(), failed=False, outcome="success", cost_usd=0.0, models=(used,)
        )
        tally.add(Stored(session="s", seq=1, position=1, at=0, event=ended, json=b""))
    assert len(tally.cost) == MOST_NAMES + 1
    assert OTHER in tally.cost
    assert max(map(len, tally.cost)) == 100
    assert sum(tally.cost.values()) == 2.0


class _Counted(SmallDeck):
    """Counts how often sessions are read."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = 0
        self.single = 0

    async def sessions(
        self, *, after: str | None = None, limit: int = 100, archived: bool = False
    ) -> list[SessionView]:
        self.pages += 1
        return await super().sessions(after=after, limit=limit, archived=archived)

    async def session(self, session: str) -> SessionView:
        self.single += 1
        return await super().session(session)


async def test_a_page_reads_only_the_sessions_in_which_something_happened() -> None:
    deck = _Counted()
    for number in range(1000):
        created = ev.SessionCreated(spec=SessionSpec(directory="/"), by="me")
        await deck.journal.append(f"s{number}", [created])
    before = deck.position
    async with counting(deck) as metrics:
        assert (await now(metrics))["quarterdeck_sessions{state=ended}"] == 1000
        deck.pages = deck.single = 0
        running = ev.RunStarting(run="r", machine="here")
        await deck.journal.append("s7", [running])
        await deck.journal.append("s8", [ev.Noted(level="info", text="nothing new")])
        await heard(deck, metrics, before)
        found = await now(metrics)
        assert (deck.pages, deck.single) == (0, 1)
        assert found["quarterdeck_sessions{state=starting}"] == 1
        # Readers that come at the same time make no more work than one.
        await deck.journal.append("s9", [running])
        await metrics.page()
        await metrics.page()
        assert deck.single == 1


async def test_a_failure_to_read_is_an_error_and_nothing_is_forgotten() -> None:
    deck = SmallDeck()
    session = await deck.have_session()
    before = deck.position
    async with counting(deck) as metrics:
        await now(metrics)
        await deck.ask(session)
        await heard(deck, metrics, before)

        async def broken(session: str) -> SessionView:
            raise JournalError(f"{session} cannot be read")

        whole = deck.session
        setattr(deck, "session", broken)  # noqa: B010 - a disk that fails for a while
        with pytest.raises(JournalError):
            await now(metrics)
        setattr(deck, "session", whole)  # noqa: B010
        assert (await now(metrics))["quarterdeck_open_asks"] == 1


# --- over HTTP -----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[SmallDeck, Access, str]]:
    deck, access, requests = SmallDeck(), Access(folder), Requests()
    sources = Sources(requests=lambda: requests.counts, streams=requests.streams)
    metrics = Metrics(deck, sources)
    app = make_app(deck, access, metrics=metrics.page, requests=requests)
    async with metrics.run(), serve(app, Listen(port=0)) as url:
        yield deck, access, url


async def test_whoever_may_read_and_the_role_for_it_get_the_page_and_nobody_else(
    tmp_path: Path,
) -> None:
    async with (
        served(tmp_path) as (_, access, url),
        httpx.AsyncClient(base_url=url, timeout=SECONDS) as client,
    ):
        for role in Role:
            token = {"authorization": f"Bearer {access.make_token('x', role)}"}
            status = (await client.get("/metrics", headers=token)).status_code
            assert status == (403 if role in {Role.RUNNER, Role.PROGRAM} else 200), role
        bearer = {"authorization": f"Bearer {access.make_token('prometheus', Role.METRICS)}"}
        answer = await client.get("/metrics", headers=bearer)
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert answer.headers["cache-control"] == "no-store"
        assert (await client.get("/metrics")).status_code == 401
        assert (await client.post("/metrics", headers=bearer)).status_code == 405
        assert (await client.head("/metrics", headers=bearer)).content == b""
        # The role for metrics opens nothing else.
        assert (await client.get("/api/sessions", headers=bearer)).status_code == 403
        newer = {**bearer, "accept": "application/openmetrics-text; version=1.0.0"}
        answer = await client.get("/metrics", headers=newer)
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        assert answer.text.endswith("# EOF\n")


async def test_requests_are_counted_by_route_and_never_by_path(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as (deck, access, url),
        httpx.AsyncClient(base_url=url, timeout=SECONDS) as client,
    ):
        bearer = {"authorization": f"Bearer {access.make_token('x', Role.OWNER)}"}
        session = await deck.have_session()
        for path in (f"/api/sessions/{session}", "/api/sessions/a", "/api/none/such", "/x", "/"):
            await client.get(path, headers=bearer)
        await client.get("/api/sessions")
        await client.request("BREW", "/healthz")
        page = (await client.get("/metrics", headers=bearer)).text
    found = {
        name: value for name, value in read(page.encode()).items() if "http_requests_total" in name
    }
    labels = [re.sub(r".*\{method=|status=|route=|\}", "", name) for name in found]
    assert "GET,/api/sessions/{session_id,200" in labels
    assert "GET,/api/sessions/{session_id,404" in labels
    assert session not in page
    assert any(name.startswith("GET,unknown,404") for name in labels)
    assert any(name.startswith("GET,page,") for name in labels)
    assert any(name.startswith("other,") for name in labels)


# --- the page that describes them ----------------------------------------------------------------


async def test_every_metric_is_described_and_none_that_is_not_there() -> None:
    deck = SmallDeck()
    text = (PROJECT / "docs/reference/metrics.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \| (.*?) \|", text, re.MULTILINE)
    described = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    async with counting(deck) as metrics:
        await now(metrics)
        families = [
            family
            for family in metrics.registry.collect()
            if not family.name.startswith(("process_", "python_"))
        ]
    there = {
        family.name + {"counter": "_total", "info": "_info"}.get(family.type, ""): (
            family.type,
            set(getattr(family, "_labelnames", ())),
        )
        for family in families
    }
    there["quarterdeck_build_info"] = ("info", {"version", "python"})
    assert described == there
    assert "`process_`…" in text
