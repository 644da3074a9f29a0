"""Pages of a longer list: one meaning of `limit` and `offset` for the whole package."""

from __future__ import annotations

from quarterdeck.domain.errors import UsageError


def check_page(limit: int | None, offset: int) -> None:
    """Refuse pages that cannot be; `limit` None is everything, 0 is nothing."""
    if offset < 0:
        raise UsageError(f"offset must not be negative: {offset}")
    if limit is not None and limit < 0:
        raise UsageError(f"limit must not be negative: {limit}")
