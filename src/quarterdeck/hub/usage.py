"""What was used, as a front gets it: the journal's sums with their total and the limits."""

from __future__ import annotations

from quarterdeck.journal.base import Usage
from quarterdeck.journal.usage import total
from quarterdeck.protocol.usage import UsageBy, UsageReport


async def usage_report(
    journal: Usage, by: UsageBy, since: int | None, until: int | None
) -> UsageReport:
    """What was used between two times."""
    rows = await journal.usage(by, since=since, until=until)
    return UsageReport(
        by=by,
        since=since,
        until=until,
        rows=tuple(rows),
        total=total(rows),
        limits=tuple(await journal.limits()),
    )
