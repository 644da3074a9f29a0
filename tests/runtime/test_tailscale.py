from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quarterdeck.domain.errors import LaunchError
from quarterdeck.runtime import tailscale

pytestmark = pytest.mark.process

RUNNING = '{"BackendState": "Running", "CertDomains": ["box.tail1.ts.net"], "Self": {"x": 1}}'


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program `tailscale` on the path."""
    folder.mkdir()
    program = folder / "tailscale"
    program.write_text(f"#!{sys.executable}\nimport sys\narguments = sys.argv[1:]\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (RUNNING, "box.tail1.ts.net"),
        ('{"BackendState": "Running", "CertDomains": ["Box.Tail1.ts.net."]}', "box.tail1.ts.net"),
        ('{"BackendState": "Stopped", "CertDomains": ["box.tail1.ts.net"]}', None),
        ('{"BackendState": "Running", "CertDomains": null}', None),
        ('{"BackendState": "Running", "CertDomains": []}', None),
        ('{"BackendState": 7}', None),
        ("no JSON", None),
        ("", None),
    ],
)
def test_the_name_is_what_certificates_are_given_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, name: str | None
) -> None:
    install(tmp_path / "bin", monkeypatch, f"print({said!r})")
    assert tailscale.tailscale_name() == name


def test_without_tailscale_there_is_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tailscale.tailscale_name() is None


def test_one_that_fails_or_hangs_gives_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "failing", monkeypatch, "sys.exit('not logged in')")
    assert tailscale.tailscale_name() is None
    with pytest.raises(LaunchError, match="not logged in"):
        tailscale.fetch_certificate("box.tail1.ts.net", tmp_path / "c", tmp_path / "k")
    install(tmp_path / "hanging", monkeypatch, "import time; time.sleep(600)")
    monkeypatch.setattr(tailscale, "STATUS_SECONDS", 0.2)
    assert tailscale.tailscale_name() is None
