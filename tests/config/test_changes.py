"""What a new version of the configuration changes, in words that may be logged."""

from __future__ import annotations

import tomllib

from quarterdeck.config import changes_between, parse
from quarterdeck.config.show import as_toml, as_values

FULL = """
[server]
port = 9000
[projects.web]
directory = "/srv/web"
env = { KEY = "hunter2" }
budget = { total_usd = 3 }
[projects.api]
directory = "/srv/api"
[[webhooks]]
url = "https://hooks.example/T0/hunter2"
events = ["turn.ended"]
[roots]
directories = ["/srv", "a \\u007f \\" b"]
"""


def texts(before: str, after: str) -> list[str]:
    return [each.text for each in changes_between(parse(before).settings, parse(after).settings)]


def test_nothing_changes_between_two_that_mean_the_same() -> None:
    assert texts("", "[server]\nport = 8765 # as ever") == []


def test_each_change_is_told_with_what_was_and_what_is() -> None:
    before = "[log]\nlevel = 'info'\n[budget]\nday_usd = 5\n"
    after = "[log]\nlevel = 'debug'\n[server]\nhosts = ['a', 'b']\n"
    assert texts(before, after) == [
        "server.hosts: none -> a, b",
        "log.level: info -> debug",
        "budget.day_usd: 5 -> none",
    ]


def test_what_is_read_at_the_start_only_says_so() -> None:
    (port,) = changes_between(parse("").settings, parse("[server]\nport = 1").settings)
    (level,) = changes_between(parse("").settings, parse("[log]\nlevel = 'error'").settings)
    assert (port.at_start, level.at_start) == (True, False)


def test_a_project_that_comes_and_goes_is_told_by_what_it_says() -> None:
    project = "[projects.web]\ndirectory = '/srv/web'\nmodel = 'opus'\n"
    assert texts("", project) == [
        "projects.web.directory: not there -> /srv/web",
        "projects.web.model: not there -> opus",
    ]
    assert texts(project, "")[0] == "projects.web.directory: /srv/web -> not there"


def test_a_secret_is_named_and_not_shown() -> None:
    said = texts("", FULL) + texts(FULL, FULL.replace("hunter2", "hunter3"))
    assert "projects.web.env: changed" in said
    assert "webhooks[1].url: changed" in said
    assert "hunter" not in "".join(said)


def test_what_is_shown_is_a_configuration_that_means_the_same_but_for_its_secrets() -> None:
    loaded = parse(FULL)
    shown = as_toml(loaded)
    assert "hunter2" not in shown
    assert tomllib.loads(shown)["projects"]["web"]["env"] == {"KEY": "…"}
    again = parse(shown.replace('url = "…"', 'url = "https://hooks.example/T0/hunter2"'))
    left = changes_between(loaded.settings, again.settings)
    assert [change.name for change in left] == ["projects.web.env"]
    assert "port = 9000  # line 3" in shown
    assert 'host = "127.0.0.1"  # default' in shown
    assert as_values(loaded)["projects.api.directory"] == "/srv/api"
    assert "hunter2" not in str(as_values(loaded))
