"""OpenTelemetry: a trace of each turn, for those who collect traces. An optional extra.

`Tracing` follows the journal, as every front does, and exports spans by the GenAI conventions.
`run_environment` is what a CLI needs to know to hang its own spans below ours. Nothing of the
OpenTelemetry packages is loaded before `Tracing` runs: they need not be installed.
"""

from __future__ import annotations

from quarterdeck.fronts.otel.context import run_environment
from quarterdeck.fronts.otel.settings import Telemetry
from quarterdeck.fronts.otel.tracing import Tracing

__all__ = ["Telemetry", "Tracing", "run_environment"]
