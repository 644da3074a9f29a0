"""Metrics of the hub, for Prometheus.

`Metrics` follows the journal, as every front does, and makes the page of `GET /metrics`. The
service's composition root is above, and passes the counters of other fronts; `hub.api` is below.
Each metric is described in `docs/reference/metrics.md`.
"""

from __future__ import annotations

from quarterdeck.fronts.metrics.metrics import Commits, Deliveries, Metrics, Sources

__all__ = ["Commits", "Deliveries", "Metrics", "Sources"]
