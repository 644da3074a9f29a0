"""Permission modes: which allow more than others, and which one people chose. Pure.

`switches` follows them through a run, and says why two are kept for a session.
"""

from __future__ import annotations

from msgspec.structs import replace

from quarterdeck.protocol.sessions import SessionSpec

DEFAULT = "default"
ACCEPT_EDITS = "acceptEdits"
BYPASS = "bypassPermissions"
_ORDER = ("plan", "dontAsk", DEFAULT, ACCEPT_EDITS, "auto", BYPASS)
"""The modes, each of which allows no less without a person than the one before it."""


def allows_more(mode: str, than: str) -> bool:
    """Whether a mode may let more pass than another. An unknown one may."""
    if mode == than:
        return False
    if mode not in _ORDER or than not in _ORDER:
        return mode not in _ORDER
    return _ORDER.index(mode) > _ORDER.index(than)


def is_within(mode: str, limit: str) -> bool:
    """Whether a mode certainly lets no more pass than another. Of two modes of which one is
    unknown, only the same one does.
    """
    if mode not in _ORDER or limit not in _ORDER:
        return mode == limit
    return not allows_more(mode, limit)


def chosen_mode(spec: SessionSpec) -> str | None:
    """The mode that people chose; None where they left it to the CLI and its settings."""
    return spec.mode or (BYPASS if spec.skip_permissions else None)


def resumed_spec(spec: SessionSpec, now: str | None) -> SessionSpec:
    """What the next process of a conversation is started with, that was in the mode `now`."""
    chosen = chosen_mode(spec) or DEFAULT
    if now is None or now == chosen or not is_within(now, chosen):
        return spec
    return replace(spec, mode=now)


def with_mode(spec: SessionSpec, mode: str, *, asked_for: bool) -> SessionSpec:
    """The spec after a person switched the mode.

    Leave to skip permissions does not outlive a mode in which a person wants to be asked, nor any
    other mode that was `asked_for` in its place: versions up to 2.1.120 also use it in plan mode,
    which an agent enters unasked. A plan that is approved with its edits leaves it as it was.
    """
    # A CLI bypasses permissions on request only if it was launched with leave to.
    skip = mode == BYPASS if asked_for else spec.skip_permissions and allows_more(mode, DEFAULT)
    return replace(spec, mode=mode, skip_permissions=skip)
