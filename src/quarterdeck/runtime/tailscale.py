"""Certificates from Tailscale, where it is installed and gives them.

Owns how the program `tailscale` is called: with time limits, and never as a condition for a hub to
start. Such a certificate is for this machine's name in the user's tailnet; every device trusts it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec

from quarterdeck.domain.errors import LaunchError

STATUS_SECONDS = 5.0
CERTIFICATE_SECONDS = 60.0
"""A first certificate is made by an authority on the Internet, which takes some seconds."""
LARGEST_STATUS = 16 * 1024 * 1024


class _Status(msgspec.Struct, rename="pascal"):
    backend_state: str = ""
    cert_domains: list[str] | None = None


def tailscale_name() -> str | None:
    """The name of this machine that Tailscale gives certificates for; None without one. Blocks."""
    if shutil.which("tailscale") is None:
        return None
    try:
        said = _run("status", "--json", "--peers=false", seconds=STATUS_SECONDS)
        status = msgspec.json.decode(said[:LARGEST_STATUS], type=_Status)
    except (LaunchError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if status.backend_state != "Running" or not status.cert_domains:
        return None
    return status.cert_domains[0].rstrip(".").lower() or None


def fetch_certificate(name: str, certificate: Path, key: Path) -> None:
    """Have Tailscale write a certificate for a name, or renew it. Blocks; raises `LaunchError`."""
    _run(
        *("cert", "--cert-file", str(certificate), "--key-file", str(key), name),
        seconds=CERTIFICATE_SECONDS,
    )


def _run(*arguments: str, seconds: float) -> bytes:
    try:
        done = subprocess.run(
            ["tailscale", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"tailscale {arguments[0]}: {error}") from error
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip()[-300:]
        raise LaunchError(f"tailscale {arguments[0]}: {words or done.returncode}")
    return done.stdout
