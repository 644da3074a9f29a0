from __future__ import annotations

import re
import socket
import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http.trust import Trust, serve_trust, terminal_code
from quarterdeck.runtime.client_tls import client_context
from quarterdeck.runtime.local_ca import LocalCa, Names, read_certificate
from quarterdeck.service import auto_tls
from quarterdeck.service.auto_tls import AutoTls, trust_lines
from support.bounds import SECONDS

ANYWHERE = "0.0.0.0"
NOW = datetime.now(UTC)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The names of the machine, which a test may change. There is no Tailscale."""
    names = ["192.168.1.20", "fd00::20", "box.local", "box"]
    monkeypatch.setattr(auto_tls, "names_of_machine", lambda: tuple(names))
    monkeypatch.setattr(auto_tls, "host_name", lambda: "box")
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))
    return names


async def test_on_loopback_the_certificate_is_for_loopback_only(tmp_path: Path) -> None:
    tls = await AutoTls.open(tmp_path, "127.0.0.1", ("hub.example",))
    names = read_certificate(tls.file.certificate).names
    assert names == Names.of(["localhost", "127.0.0.1", "::1", "hub.example"])
    assert tls.far_names == ()
    assert tls.plain_name is None


async def test_for_other_machines_it_has_all_names_of_this_one(tmp_path: Path) -> None:
    tls = await AutoTls.open(tmp_path, ANYWHERE, ())
    names = set(read_certificate(tls.file.certificate).names)
    assert names >= {"localhost", "127.0.0.1", "192.168.1.20", "fd00::20", "box.local", "box"}
    assert set(tls.hosts) == names
    assert tls.far_names == ("192.168.1.20", "box.local", "box"), "none of IPv6 on an IPv4 address"
    assert tls.plain_name == "192.168.1.20"


async def test_while_the_hub_runs_names_and_dates_are_followed(
    tmp_path: Path, machine: list[str]
) -> None:
    clock = Clock()
    tls = await AutoTls.open(tmp_path, ANYWHERE, (), clock)
    first = read_certificate(tls.file.certificate)
    changed = anyio.Event()

    async def until_new(before: str) -> None:
        with anyio.fail_after(SECONDS):
            while read_certificate(tls.file.certificate).fingerprint == before:  # noqa: ASYNC110
                await anyio.sleep(0.01)

    async with anyio.create_task_group() as tasks:

        async def keep() -> None:
            await tls.keep(changed.set, seconds=0.01)

        tasks.start_soon(keep)
        machine.append("10.1.2.3")
        with anyio.fail_after(SECONDS):
            await changed.wait()
        second = read_certificate(tls.file.certificate)
        assert "10.1.2.3" in second.names
        assert "10.1.2.3" in tls.hosts
        clock.now = NOW + timedelta(days=29)
        await until_new(second.fingerprint)
        third = read_certificate(tls.file.certificate)
        assert third.ends > first.ends + timedelta(days=25)
        tasks.cancel_scope.cancel()


async def test_a_renewal_that_fails_is_logged_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    tls = await AutoTls.open(tmp_path, "127.0.0.1", (), clock)
    tls.file.certificate.chmod(0o644)
    async with anyio.create_task_group() as tasks:

        async def keep() -> None:
            await tls.keep(lambda: None, seconds=0.01)

        tasks.start_soon(keep)
        with anyio.fail_after(SECONDS):
            while "was not renewed" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                await anyio.sleep(0.01)
        before = read_certificate(tls.file.certificate).fingerprint
        clock.now = NOW + timedelta(days=29)
        tls.file.certificate.chmod(0o600)
        with anyio.fail_after(SECONDS):
            while read_certificate(tls.file.certificate).fingerprint == before:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def test_a_name_that_the_authority_may_not_sign_is_told(tmp_path: Path) -> None:
    await AutoTls.open(tmp_path, "127.0.0.1", ())
    with pytest.raises(UsageError, match=r"hub\.example"):
        await AutoTls.open(tmp_path, "127.0.0.1", ("hub.example",))


async def test_names_of_a_changed_configuration_are_signed_where_that_is_allowed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = await AutoTls.open(tmp_path, "127.0.0.1", ())
    tls.use(("new.local", "hub.example"))
    tls.renew()
    assert "hub.example" in caplog.text
    names = set(read_certificate(tls.file.certificate).names)
    assert names == {"localhost", "127.0.0.1", "::1", "new.local"}


TAILSCALE = """
import shutil, sys
if sys.argv[1] == "status":
    print('{"BackendState": "Running", "CertDomains": ["box.tail1.ts.net"]}')
else:
    values = dict(zip(sys.argv[2:-1:2], sys.argv[3:-1:2]))
    shutil.copy(FOLDER + "/hub.pem", values["--cert-file"])
    shutil.copy(FOLDER + "/hub.pem", values["--key-file"])
"""


@pytest.mark.process
async def test_where_tailscale_gives_certificates_its_name_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names.of(["box.tail1.ts.net"])
    public = LocalCa.open(tmp_path / "public", names, NOW, owner="public")
    public.renew(names, NOW)
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "tailscale"
    script = TAILSCALE.replace("FOLDER", repr(str(tmp_path / "public")))
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    tls = await AutoTls.open(tmp_path / "data", ANYWHERE, ())
    assert tls.far_names[0] == "box.tail1.ts.net"
    assert "box.tail1.ts.net" in tls.hosts
    assert tls.plain_name == "192.168.1.20"
    (found,) = tls.named.values()
    assert read_certificate(found.certificate).names == names
    assert found.key is not None
    assert found.key.stat().st_mode & 0o077 == 0
    assert "box.tail1.ts.net" not in read_certificate(tls.file.certificate).names
    quiet = await AutoTls.open(tmp_path / "other", "127.0.0.1", ())
    assert quiet.named == {}, "nobody reaches it by that name"


async def test_the_page_without_tls_has_the_certificate_and_nothing_to_compare_it_with(
    tmp_path: Path,
) -> None:
    tls = await AutoTls.open(tmp_path, "127.0.0.1", ())
    fingerprint = tls.authority.fingerprint
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1]
        async with (
            serve_trust(tls.ca.pem, "127.0.0.1", wanted) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", verify=False) as client,
        ):
            assert port != wanted
            page = await client.get("/")
            assert "/ca.crt" in page.text
            assert fingerprint not in page.text
            got = await client.get("/ca.crt")
            assert got.content == tls.ca.pem
            assert b"PRIVATE" not in got.content
            assert got.headers["content-type"] == "application/x-x509-ca-cert"
            for path in ("/hub.pem", "/authority.pem", "/api/whoami", "/../tls/authority.pem"):
                assert (await client.get(path)).status_code == 404
            assert (await client.post("/ca.crt", content=b"x")).status_code == 405


async def test_the_pages_over_tls_and_the_terminal_show_the_fingerprint(tmp_path: Path) -> None:
    tls = await AutoTls.open(tmp_path, ANYWHERE, ())
    authority = tls.authority
    trust = Trust(
        certificate=tls.ca.pem,
        title=authority.subject,
        fingerprint=authority.fingerprint,
        address="http://192.168.1.20:8766/",
    )
    pages = trust.pages()
    text = pages["/trust"][0].decode()
    assert authority.fingerprint in text
    assert "<svg" in text
    assert not re.search(r"<script|style=|onload", text), "the content security policy forbids it"
    assert pages["/ca.crt"][0] == tls.ca.pem
    lines = trust_lines(tls, trust, 8765, with_code=True)
    said = "\n".join(lines)
    assert "https://192.168.1.20:8765, https://box.local:8765" in said
    assert authority.fingerprint in said
    assert terminal_code("http://192.168.1.20:8766/").strip() in said
    assert "█" not in "".join(trust_lines(tls, trust, 8765, with_code=False))


async def test_a_client_trusts_the_authority_of_the_hub_and_no_other(tmp_path: Path) -> None:
    tls = await AutoTls.open(tmp_path, "127.0.0.1", ())
    context = client_context(tls.ca.ca_file)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1
