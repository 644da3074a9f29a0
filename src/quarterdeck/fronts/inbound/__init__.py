"""Inbound webhooks: requests of other systems that start a session.

A request to `/in/NAME` is checked here (a bearer token or a signature, its age, its size, its
rate) before anything else sees it. What it starts is not known here: `Trigger` is given. The
service's composition root is above.
"""

from __future__ import annotations

from quarterdeck.fronts.inbound.endpoint import InboundEndpoint, Trigger

__all__ = ["InboundEndpoint", "Trigger"]
