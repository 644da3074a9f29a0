"""Small ways in and out: logins, proxies, push services, filters, plain HTTP, printed links."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quarterdeck.cli.hub.processes import run_runner
from quarterdeck.cli.hub.target import Target, address_of
from quarterdeck.cli.local.service import LAUNCHD, SYSTEMD, make_unit
from quarterdeck.client import HubClient
from quarterdeck.config import Settings
from quarterdeck.config.settings import ServerSettings
from quarterdeck.domain.addresses import is_public_address
from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http import Places
from quarterdeck.fronts.push.subscriptions import Subscription, SubscriptionStore
from quarterdeck.service.service import serve_options_of
from quarterdeck.worktrees.worktrees import Worktrees
from support.front import Front, front
from support.push_service import push_service


async def test_l1_wrong_codes_of_others_keep_nobody_from_a_login(hub: Front) -> None:
    code = hub.access.make_code()
    async with hub.client(None) as stranger:
        for _ in range(15):
            await stranger.post("/login", json={"code": "qd_0_0"})
        assert (await stranger.post("/login", json={"code": "qd_0_0"})).status_code == 429
        assert (await stranger.post("/login", json={"code": code})).status_code == 200


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://127.0.0.1:19443/x",
        "https://127.1/x",
        "https://0x7f000001/x",
        "https://2130706433/x",
        "https://localhost/x",
        "https://deck.localhost/x",
        "https://[::1]/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest",
        "https://metadata.google.internal/x",
        "https://printer.local/x",
        "https://intranet/x",
        "https://push.example:22/x",
    ],
)
async def test_l2_a_push_service_is_a_name_on_the_internet(tmp_path: Path, endpoint: str) -> None:
    async with push_service() as service:
        new = Subscription(grant="ada", endpoint=endpoint, **service.keys)
        with pytest.raises(UsageError, match="public push service"):
            SubscriptionStore(tmp_path).add(new)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "fe80::1%eth0", "100.64.0.1"])
def test_l2_an_address_of_a_local_net_is_not_public(address: str) -> None:
    assert not is_public_address(address)
    assert is_public_address("8.8.8.8")


@pytest.mark.process
async def test_l3_a_new_worktree_runs_no_filter_of_the_repository(tmp_path: Path) -> None:
    repository, mark = tmp_path / "project", tmp_path / "mark"
    repository.mkdir()

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", str(repository), *who, *arguments], check=True)

    git("init", "-q", "-b", "main")
    (repository / "file").write_text("text\n")
    (repository / ".gitattributes").write_text("* filter=x\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    git("config", "filter.x.smudge", f"touch {mark}; cat")
    trees = Worktrees(tmp_path / "trees", 30.0)
    for branch in ("one", "main-two"):
        tree = await trees.open(str(repository), branch)
        assert (tree / "file").read_text() == "text\n"
    assert not mark.exists()


@pytest.mark.parametrize("manager", [SYSTEMD, LAUNCHD])
def test_l5_a_service_prints_no_login_link(
    manager: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARTERDECK_HOME", str(tmp_path))
    assert "--no-login-link" in make_unit(manager, None).command


async def test_l7_a_forwarding_header_does_not_hide_a_strange_name(tmp_path: Path) -> None:
    places = Places.of(hosts=("hub.example",), proxies=("127.0.0.1",))
    async with front(tmp_path, places=places) as hub:
        forwarded = {"x-forwarded-host": "hub.example", "x-forwarded-proto": "https"}
        async with hub.client(None, host="evil.example", **forwarded) as rebound:
            assert (await rebound.get("/healthz")).status_code == 403
        async with hub.client(None, **forwarded) as proxied:
            assert (await proxied.get("/healthz")).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "deck.example"])
def test_m12_a_hub_beyond_loopback_needs_tls(host: str) -> None:
    def settings(**more: object) -> Settings:
        return Settings(server=ServerSettings(host=host, **more))  # type: ignore[arg-type]

    with pytest.raises(UsageError, match="without TLS"):
        serve_options_of(settings())
    for enough in ({"insecure": True}, {"proxies": ("10.0.0.0/8",)}, {"certificate": "/c.pem"}):
        assert serve_options_of(settings(**enough)).listen.host == host


def test_m12_loopback_needs_none() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        serve_options_of(Settings(server=ServerSettings(host=host)))


def test_m12_a_token_is_not_sent_in_the_clear(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("qd_a_b")
    far = "http://hub.example:8765"
    with pytest.raises(UsageError, match="not encrypted"):
        address_of(Target(hub=far, token_file=token))
    with pytest.raises(UsageError, match="not encrypted"):
        HubClient(far, "qd_a_b")
    with pytest.raises(UsageError, match="not encrypted"):
        run_runner(["ws://hub.example:8765"], token, None, tmp_path, {})
    assert address_of(Target(hub=far, token_file=token, insecure=True)).base == far
    HubClient("https://hub.example", "qd_a_b")
    HubClient("http://127.0.0.1:8765", "qd_a_b")
