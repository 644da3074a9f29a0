"""A relay on loopback, with a small hub behind it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct

from quarterdeck.fronts.http import Access, Role
from quarterdeck.fronts.http.relay_access import RelayAccess
from quarterdeck.fronts.relay.endpoint import RelayEndpoint
from support.frontends import Frontend, frontend
from support.small_deck import SmallDeck

ALLOWED = "http://localhost:5173"


class Relay(Struct):
    """A running relay."""

    deck: SmallDeck
    access: Access
    who: RelayAccess
    endpoint: RelayEndpoint
    url: str

    def token(self, role: Role = Role.OWNER) -> str:
        """A new token."""
        return self.access.make_token(f"the {role.value}", role)

    def frontend(
        self, query: str = "", role: Role = Role.OWNER, **options: Any
    ) -> AbstractAsyncContextManager[Frontend]:
        """A frontend with a token of this role."""
        return frontend(f"{self.url}/ws{query}", token=self.token(role), **options)
