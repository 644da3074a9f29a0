"""Metrics: the hub in numbers, as Prometheus reads them.

`Metrics` follows the journal, as every front does, and gives the page of `GET /metrics`. Above is
whoever composes the service and hands it what other fronts count; below is `hub.api`.
Each metric is described in `docs/reference/metrics.md`.
"""

from __future__ import annotations

from quarterdeck.fronts.metrics.metrics import Metrics
from quarterdeck.fronts.metrics.sources import Commits, Deliveries, Sources

__all__ = ["Commits", "Deliveries", "Metrics", "Sources"]
