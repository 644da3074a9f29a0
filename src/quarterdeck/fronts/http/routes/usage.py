"""The route of what was used: by day, project, model, machine or session."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Annotated, Literal

from litestar import get
from litestar.params import QueryParameter

from quarterdeck.domain.errors import UsageError
from quarterdeck.fronts.http.openapi import READ_ERRORS, documented
from quarterdeck.fronts.http.routes.handlers import Hub
from quarterdeck.protocol.usage import UsageBy, UsageReport

By = Annotated[
    Literal["day", "project", "model", "machine", "session"],
    QueryParameter(description="What a row is"),
]
Since = Annotated[
    str | None,
    QueryParameter(description="The first day or time, in ISO 8601", max_length=64),
]
Until = Annotated[
    str | None,
    QueryParameter(
        description="The last day, or the time of the end, in ISO 8601",
        max_length=64,
    ),
]


@get("/usage", opt=documented(READ_ERRORS))
async def get_usage(
    hub: Hub, by: By = "day", since: Since = None, until: Until = None
) -> UsageReport:
    """Usage: cost, tokens, turns, tool calls, and the time for which questions were open.

    Days and times without a zone are in the zone of the hub's machine. Times are rounded up to the
    next quarter of an hour. `estimated_usd` is the part of the cost that is estimated.
    """
    between = {"since": moment(since, "since"), "until": moment(until, "until")}
    return await hub.usage(UsageBy(by), **between)


def moment(text: str | None, name: str) -> int | None:
    """A day or a time in ms since 1970; the end of a day if it is `until`. Raises `UsageError`."""
    if text is None:
        return None
    try:
        if len(text) <= len("2026-01-31"):
            day = date.fromisoformat(text)
            if name == "until":
                day += timedelta(days=1)
            found = datetime(day.year, day.month, day.day).astimezone()
        else:
            found = datetime.fromisoformat(text).astimezone()
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{name}: not a day or a time: {text!r}") from error


HANDLERS = [get_usage]
