"""The launch options that commands share, as they are kept.

Written by tools/write_launch_options.py from `domain.launch_options`: do not edit.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value


class LaunchTexts(Value):
    """What was said on the command line."""

    model: str | None = None
    effort: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    mode: str | None = None
    skip_permissions: bool = False
    settings: str | None = None
    mcp_config: tuple[str, ...] = ()
