"""`quarterdeck relay`: the hub, with the relay on."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.domain.errors import Conflict
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.service.config_file import Configuration
from quarterdeck.service.local_hub import live_hub
from quarterdeck.service.service import run_serve

FLAG = "quarterdeck relay"


def run_relay(
    config: Path | None,
    port: int | None,
    allow_origin: list[str],
    role: str | None,
    *,
    runner: bool,
    with_link: bool,
) -> int:
    """Serve until a signal comes; returns the exit code."""
    hub = live_hub(data_home())
    if hub is not None:
        raise Conflict(
            "hub_is_there",
            f"a hub already serves at {hub.address}: set `enabled = true` in the section [relay]"
            " of its configuration, which it reads at once",
        )
    given: dict[str, tuple[str, object]] = {
        "enabled": (FLAG, True),
        "port": ("--port", port),
        "allow_origins": ("--allow-origin", allow_origin or None),
        "role": ("--role", role),
    }
    overrides = {("relay", name): value for name, value in given.items() if value[1] is not None}
    configuration = Configuration(config, overrides=overrides)
    return run_serve(configuration, runner=runner, with_link=with_link)
