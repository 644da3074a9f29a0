"""Addresses of remotes: none of them starts a program, and none shows a password."""

from __future__ import annotations

import pytest

from quarterdeck.worktrees.publish import logins_for
from quarterdeck.worktrees.remotes import address_of


@pytest.mark.parametrize(
    ("url", "shown", "host", "repository", "tool"),
    [
        ("git@github.com:a/b.git", "git@github.com:a/b.git", "github.com", "a/b", "gh"),
        ("https://x:y@gitlab.example.org/g/s/b.git", "https://gitlab.example.org/g/s/b.git",
         "gitlab.example.org", "g/s/b", "glab"),
        ("ssh://git@example.org:2222/a/b", "ssh://git@example.org:2222/a/b",
         "example.org", "a/b", ""),
    ],
)  # fmt: skip
def test_an_address_says_its_host_and_repository(
    url: str, shown: str, host: str, repository: str, tool: str
) -> None:
    found = address_of(url)
    assert (found.shown, found.host, found.repository, found.tool) == (
        shown,
        host,
        repository,
        tool,
    )
    assert not found.problem


@pytest.mark.parametrize("url", ["/srv/there.git", "file:///srv/there.git"])
def test_a_repository_of_this_machine_is_known_as_such(url: str) -> None:
    assert address_of(url).local


@pytest.mark.parametrize(
    "url",
    ["ext::sh -c x", "fd::3", "-oProxyCommand=x", "git://host/x", "a\nb", "there", "ftp://h/x",
     "https:///x", "https://[x", "ssh://-oProxyCommand=x/y", "-host:path"],
)  # fmt: skip
def test_nothing_is_pushed_to_what_is_no_address(url: str) -> None:
    assert address_of(url).problem


@pytest.mark.parametrize(
    ("tool", "host", "names"),
    [
        ("gh", "github.com", {"GH_TOKEN", "GH_CONFIG_DIR"}),
        ("gh", "github.company.org", {"GH_ENTERPRISE_TOKEN", "GH_CONFIG_DIR"}),
        ("gh", "github.hostile.org", {"GH_CONFIG_DIR"}),
        ("glab", "gitlab.company.org", {"GITLAB_TOKEN", "GH_CONFIG_DIR"}),
        ("glab", "gitlab.com", {"GH_CONFIG_DIR"}),
        ("glab", "gitlab.hostile.org", {"GH_CONFIG_DIR"}),
    ],
)
def test_a_token_is_given_for_its_own_host_only(tool: str, host: str, names: set[str]) -> None:
    environ = dict.fromkeys(
        ("GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITLAB_TOKEN", "GH_CONFIG_DIR", "OTHER"), "x"
    )
    environ |= {"GH_HOST": "github.company.org", "GITLAB_HOST": "https://gitlab.company.org/"}
    assert logins_for(tool, host, environ).keys() == names
    assert "GITLAB_TOKEN" in logins_for("glab", "gitlab.com", {"GITLAB_TOKEN": "x"})
