"""What is configured is what the parts of the hub go by, at the start and from then on."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from quarterdeck.config import parse
from quarterdeck.domain.errors import ConfigError
from quarterdeck.hub.supervision.budgets import Limit
from quarterdeck.hub.supervision.watchdog import Timeouts
from quarterdeck.protocol.retention import Retention
from quarterdeck.protocol.sessions import Budget, SessionSpec
from quarterdeck.service import settings as hub_settings
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.service import run_service, serve_options_of

pytestmark = pytest.mark.anyio

FULL = """
[server]
port = 0
hosts = ["hub.example"]
[budget]
run_usd = 1
session_tokens = 1000
day_usd = 20
day_tokens = 99
[watchdog]
after_tool = 1
result = inf
answer = 3
exit = 4
recover = false
[retention]
days = 30
megabytes = 2
archived_only = true
[projects.web]
directory = "/srv/web"
budget = { run_usd = 2, total_usd = 200, total_tokens = 5 }
[projects.plain]
directory = "/srv/plain"
[roots]
directories = ["/srv"]
"""


def test_every_setting_of_the_hubs_parts_arrives() -> None:
    settings = parse(FULL).settings
    limits = hub_settings.shared_limits(settings)
    assert limits.day == Limit(usd=20.0, tokens=99)
    assert limits.projects == {"web": Limit(usd=200.0, tokens=5)}
    assert hub_settings.session_budget(settings) == Budget(run_usd=1.0, session_tokens=1000)
    assert hub_settings.timeouts(settings) == Timeouts(
        after_tool=1.0, result=float("inf"), answer=3.0, exit=4.0, recover=False
    )
    kept = Retention(days=30.0, bytes=2 * 1024 * 1024, archived_only=True)
    assert hub_settings.retention(settings) == kept


def test_the_defaults_of_the_configuration_are_those_of_the_parts() -> None:
    nothing = parse("").settings
    assert hub_settings.timeouts(nothing) == Timeouts()
    assert hub_settings.retention(nothing) == Retention()
    assert hub_settings.session_budget(nothing) == Budget()


async def test_a_hub_that_runs_takes_over_what_is_new(tmp_path: Path) -> None:
    before = parse("[server]\nport = 0\n").settings
    async with run_service(tmp_path, serve_options_of(before, runner=False)) as deck:
        assert "hub.example" not in deck.access.places.hosts
        deck.take(parse(FULL).settings)
        assert "hub.example" in deck.access.places.hosts
        assert set(deck.hub.worktree_service.projects) == {"web", "plain"}
        made = deck.hub.worktree_service.resolve(SessionSpec(directory="/srv/web/x"))
        assert (made.project, made.budget) == ("web", Budget(run_usd=2.0, session_tokens=1000))
        plain = deck.hub.worktree_service.resolve(
            SessionSpec(directory="/tmp", budget=Budget(run_usd=9.0))
        )
        assert plain.budget == Budget(run_usd=9.0, session_tokens=1000)
        assert deck.hub._supervisor.limits.day == Limit(usd=20.0, tokens=99)
        assert deck.hub._supervisor.timeouts.exit == 4.0
        deck.take(before)
        assert deck.hub._supervisor.limits.day == Limit()
        assert "hub.example" not in deck.access.places.hosts
    logging.getLogger("quarterdeck").setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[server]\n\nproxies = ['nonsense']\n", ":3: server.proxies: 'nonsense' does not appear"),
        ("[server]\nhosts = ['a:80']\n", ":2: server.hosts: 'a:80' is not a name without a port"),
        (
            "[budget]\nday_usd = inf\n",
            ":2: budget.day_usd: expected a number above 0, got inf",
        ),
        ("[[webhooks]]\nurl = 'http://a b'\n", ":1: webhooks"),
        (
            "[[webhooks]]\nurl = 'http://a'\nprojects = ['wbe']\n",
            ":1: webhooks: unknown project 'wbe'",
        ),
    ],
)
def test_what_a_part_cannot_go_by_is_told_with_its_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "quarterdeck.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as wrong:
        Configuration(file, environ={})
    assert f"{file}{problem}" in wrong.value.problems[0]
