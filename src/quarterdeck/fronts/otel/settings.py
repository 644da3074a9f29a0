"""The target of traces. Plain values, made from the configuration."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from quarterdeck.domain.errors import UsageError
from quarterdeck.domain.structs import Value

LARGEST_FILE = 64 * 1024


class Telemetry(Value, forbid_unknown_fields=True):
    """The target of traces, by OTLP over HTTP."""

    endpoint: str
    """The whole URL, as http://127.0.0.1:4318/v1/traces."""
    headers_file: str | None = None
    """A file with headers for it, as `Authorization: …`, one per line; they may be secrets."""
    service_name: str = "quarterdeck"

    def __post_init__(self) -> None:
        """Refuse invalid settings."""
        parts = urlsplit(self.endpoint)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise UsageError("telemetry: endpoint: an http or https URL is required")
        if not self.service_name:
            raise UsageError("telemetry: service_name: must not be empty")


def read_headers(telemetry: Telemetry) -> dict[str, str]:
    """The headers of the file. Blocks. Raises `UsageError`, without anything of the file."""
    if telemetry.headers_file is None:
        return {}
    place = Path(telemetry.headers_file).expanduser()
    try:
        with place.open("rb") as file:
            text = file.read(LARGEST_FILE).decode("ascii")
    except OSError as error:
        raise UsageError(f"telemetry: headers_file {place}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageError(f"telemetry: headers_file {place}: not a text file") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise UsageError(
                f"telemetry: headers_file {place}: line {number}: NAME: VALUE is required"
            )
        found[name.strip().lower()] = value.strip()
    return found
