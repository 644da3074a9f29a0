"""Web Push: a browser that has asked for it is told that an agent waits, also with no page open.

`Push` keeps the subscriptions and follows the journal, as every front does. Above is whoever
composes the service, which gives it to the HTTP front for the routes; below is `hub.api`, and
nothing else of the hub. What is sent is sealed for the browser: the push service between the two,
which belongs to the browser's maker, cannot read it.
"""

from __future__ import annotations

from quarterdeck.fronts.push.push import Pace, Push

__all__ = ["Pace", "Push"]
