"""What the routes about policy give. Above are the routes and the client of the commands.

It needs no web framework.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value
from quarterdeck.hub.api import Grant, Suggestion


class SuggestionList(Value, omit_defaults=False):
    """Rules that people's answers support, the best supported first."""

    suggestions: tuple[Suggestion, ...]


class PolicyGrants(Value, omit_defaults=False):
    """What people have granted, oldest first."""

    grants: tuple[Grant, ...]
