"""The order in which `ps` lists sessions: each above those that its agent started.

It knows nothing of printing. Every session is in the list once, whatever their lineages say: one
whose parent is not listed is on the first level, and a circle is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quarterdeck.protocol.views import SessionShape


def by_lineage(shapes: Sequence[SessionShape]) -> Iterator[tuple[int, SessionShape]]:
    """The sessions with their levels, those of one level in the order in which they are given."""
    children: dict[str, list[SessionShape]] = {}
    for shape in shapes:
        for parent in shape.lineage[-1:]:
            children.setdefault(parent, []).append(shape)
    listed = {shape.session for shape in shapes}
    roots = [shape for shape in shapes if not listed.intersection(shape.lineage[-1:])]
    seen: set[str] = set()
    # What no root leads to is in a circle, or below one.
    for root in (*roots, *shapes):
        stack = [(0, root)]
        while stack:
            level, shape = stack.pop()
            if shape.session in seen:
                continue
            seen.add(shape.session)
            yield level, shape
            below = children.get(shape.session, ())
            stack += [(level + 1, child) for child in reversed(below)]
