"""Web Push: notify a subscribed browser that an agent is waiting, also without an open page.

`Push` keeps the subscriptions and follows the journal, as every front does. The service's
composition root is above, and gives it to the HTTP front for the routes; `hub.api` is below, and
nothing else of the hub. Messages are encrypted for the browser: the push service between the two,
which belongs to the browser's vendor, cannot read them.
"""

from __future__ import annotations

from quarterdeck.fronts.push.push import Pace, Push

__all__ = ["Pace", "Push"]
