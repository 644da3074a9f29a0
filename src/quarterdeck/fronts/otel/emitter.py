"""Spans to the OpenTelemetry SDK: the one module that loads it.

Spans are queued in bounded memory and sent by a thread of the SDK: a slow or dead collector delays
nothing, and spans that do not fit into the queue are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from quarterdeck import __version__
from quarterdeck.fronts.otel.context import Ids
from quarterdeck.fronts.otel.settings import Telemetry, read_headers
from quarterdeck.fronts.otel.turns import Span

EXPORT_SECONDS = 10.0
_NS = 1_000_000


class _Given(IdGenerator):
    """Returns the ids that it was given: ours are derived from a span's subject."""

    def __init__(self) -> None:
        self.next = Ids(trace=1, span=1)

    def generate_span_id(self) -> int:
        return self.next.span

    def generate_trace_id(self) -> int:
        return self.next.trace


class Emitter:
    """Exports spans. Created and used by one thread."""

    def __init__(self, telemetry: Telemetry, exporter: SpanExporter | None = None) -> None:
        """Blocks: it reads a file, and loads packages. Raises `UsageError`."""
        self._ids = _Given()
        resource = {"service.name": telemetry.service_name, "service.version": __version__}
        self._provider = TracerProvider(
            resource=Resource.create(resource), id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter or _otlp(telemetry)))
        self._tracer = self._provider.get_tracer("quarterdeck", __version__)

    def emit(self, spans: Iterable[Span]) -> None:
        """Queue these for export."""
        for span in spans:
            self._emit(span)

    def close(self) -> None:
        """Send the queue, and close. Blocks for as long as one export may take."""
        self._provider.shutdown()

    def _emit(self, span: Span) -> None:
        self._ids.next = span.ids
        parent = Context()
        if span.parent is not None:
            above = _context(Ids(trace=span.ids.trace, span=span.parent))
            parent = set_span_in_context(NonRecordingSpan(above), parent)
        made = self._tracer.start_span(
            span.name,
            context=parent,
            kind=SpanKind.CLIENT if span.remote else SpanKind.INTERNAL,
            attributes={**span.attributes},
            links=[Link(_context(span.linked))] if span.linked is not None else [],
            start_time=span.start * _NS,
        )
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(end_time=span.end * _NS)


def _context(ids: Ids) -> SpanContext:
    return SpanContext(
        trace_id=ids.trace,
        span_id=ids.span,
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _otlp(telemetry: Telemetry) -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(
        endpoint=telemetry.endpoint, headers=read_headers(telemetry), timeout=EXPORT_SECONDS
    )
