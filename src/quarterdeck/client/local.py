"""Which hub a program means: one by its address, the one of the environment, or this user's own.

Owns the order of these, and reading the local hub's files. It makes no token: `quarterdeck serve`
does. An agent's process is refused the token of this machine's person.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from quarterdeck.client.calls import HubAddress, HubOffline
from quarterdeck.domain.errors import UsageError
from quarterdeck.runtime.agent_process import refuse_agents
from quarterdeck.runtime.data_dir import data_home
from quarterdeck.runtime.local_hub import CLI_TOKEN, live_hub

URL_VARIABLE = "QUARTERDECK_URL"
TOKEN_VARIABLE = "QUARTERDECK_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE_VARIABLE = "QUARTERDECK_TOKEN_FILE"  # noqa: S105 - the name of a variable
INSECURE_VARIABLE = "QUARTERDECK_INSECURE"
"""`1` allows plain HTTP to another machine."""
CA_VARIABLE = "QUARTERDECK_CA_FILE"
"""The only certificate authority to trust."""


def local_address() -> HubAddress:
    """The hub that serves from this user's data folder now. Raises `HubOffline`."""
    home = data_home(create=False)
    state = live_hub(home)
    if state is None:
        raise HubOffline("no hub runs on this machine; start one with: quarterdeck serve")
    refuse_agents("the token of this machine's commands")
    # Our own hub: `serve` has checked where it listens.
    return HubAddress(
        address=state.address,
        token=read_token(home / CLI_TOKEN),
        insecure=True,
        ca_file=None if state.ca_file is None else Path(state.ca_file),
    )


def read_token(file: Path) -> str:
    """The token in a file. Raises `UsageError`."""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the token file {file} cannot be read: {error}") from error
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(f"there is no token in {file}")
    return token


def address_in(environment: Mapping[str, str] | None = None) -> HubAddress | None:
    """The hub that the environment names; None if it names none. Raises `UsageError`."""
    given = os.environ if environment is None else environment
    address = given.get(URL_VARIABLE)
    if not address:
        return None
    token, file = given.get(TOKEN_VARIABLE), given.get(TOKEN_FILE_VARIABLE)
    if not token and not file:
        raise UsageError(
            f"{URL_VARIABLE} is set, and neither {TOKEN_VARIABLE} nor {TOKEN_FILE_VARIABLE} is"
        )
    ca_file = given.get(CA_VARIABLE)
    return HubAddress(
        address=address,
        token=token or read_token(Path(file or "").expanduser()),
        insecure=given.get(INSECURE_VARIABLE) == "1",
        ca_file=Path(ca_file) if ca_file else None,
    )
