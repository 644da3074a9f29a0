"""How the test server refuses a call: with Telegram's code and words."""

from __future__ import annotations


class Refusal(Exception):
    """An answer that is not ok."""

    def __init__(
        self,
        code: int,
        description: str,
        *,
        retry_after: int | None = None,
        migrate_to: int | None = None,
    ) -> None:
        self.code = code
        self.description = description
        self.retry_after = retry_after
        self.migrate_to = migrate_to
        super().__init__(f"{code} {description}")

    @property
    def parameters(self) -> dict[str, int]:
        """For programs."""
        found: dict[str, int] = {}
        if self.retry_after is not None:
            found["retry_after"] = self.retry_after
        if self.migrate_to is not None:
            found["migrate_to_chat_id"] = self.migrate_to
        return found


def bad(description: str) -> Refusal:
    """A refusal with status 400."""
    return Refusal(400, f"Bad Request: {description}")


def forbidden(description: str) -> Refusal:
    """A refusal with status 403."""
    return Refusal(403, f"Forbidden: {description}")


def too_many(retry_after: int) -> Refusal:
    """A refusal with status 429."""
    text = f"Too Many Requests: retry after {retry_after}"
    return Refusal(429, text, retry_after=retry_after)
