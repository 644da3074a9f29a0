"""Where this machine's commands find a hub with a certificate, and whom they trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.config.settings import JournalSettings, Settings
from quarterdeck.fronts.http import Listen
from quarterdeck.fronts.http.origins import Places
from quarterdeck.service import service
from quarterdeck.service.service import ServeOptions

ALONE = JournalSettings()
BOUND = "https://0.0.0.0:8765"
ONE_OF_SEVERAL = JournalSettings(
    url="postgresql://deck@db/deck", hub_address="https://hub-a.example:8765", hub_ca_file="/ca.pem"
)


def options(journal: JournalSettings = ALONE, *, certificate: bool = True) -> ServeOptions:
    return ServeOptions(
        listen=Listen(host="0.0.0.0", certificate=Path("/hub.pem") if certificate else None),
        places=Places.of(hosts=("deck.example",)),
        settings=Settings(journal=journal),
    )


@pytest.mark.parametrize(
    ("given", "address", "authority"),
    [
        # The public name may be that of a proxy: the name for other hubs is in the certificate.
        (options(ONE_OF_SEVERAL), "https://hub-a.example:8765", Path("/ca.pem")),
        (options(), "https://deck.example:8765", None),
        (options(ONE_OF_SEVERAL, certificate=False), "https://127.0.0.1:8765", None),
    ],
)
def test_a_hub_is_called_by_a_name_of_its_certificate(
    given: ServeOptions, address: str, authority: Path | None
) -> None:
    assert service._from_here(BOUND, given) == address
    assert service._authority(given) == authority
