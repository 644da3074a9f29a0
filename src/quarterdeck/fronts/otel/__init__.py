"""OpenTelemetry: a trace of each turn. An optional extra.

`Tracing` follows the journal, as every front does, and exports spans by the GenAI conventions.
`run_environment` makes the variables with which a CLI attaches its own spans to ours. The
OpenTelemetry packages are loaded when `Tracing` runs: they need not be installed.
"""

from __future__ import annotations

from quarterdeck.fronts.otel.context import run_environment
from quarterdeck.fronts.otel.front import Tracing
from quarterdeck.fronts.otel.settings import Telemetry

__all__ = ["Telemetry", "Tracing", "run_environment"]
