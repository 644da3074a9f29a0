"""The plot of row 12, as an SVG that is written by hand: two curves over sizes of ten to the n."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from bench.table import Measure, number

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 320, 60, 50, 30
COLOURS = {"sessions": "#2f6fb0", "events": "#b0562f"}
_SIZE = re.compile(r": ([\d,]+) (session|event)")


def points_of(measures: Sequence[Measure]) -> dict[str, list[tuple[int, float]]]:
    """The curves: sizes, and how much an event costs there beside the smallest size."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for measure in measures:
        found = _SIZE.search(measure.work)
        if measure.row == 12 and found and measure.ratio is not None:
            point = int(found[1].replace(",", "")), measure.ratio.median
            curves.setdefault(f"{found[2]}s", []).append(point)
    return curves


def growth_plot(measures: Sequence[Measure]) -> str | None:
    """The plot; None when row 12 was not measured."""
    curves = points_of(measures)
    if not curves:
        return None
    highest = max(2.2, *(value for curve in curves.values() for _, value in curve)) * 1.05
    widest = max(math.log10(size) for curve in curves.values() for size, _ in curve) or 1.0

    def at(size: float, value: float) -> tuple[float, float]:
        x = LEFT + math.log10(size) / widest * (WIDTH - LEFT - 20)
        return round(x, 1), round(HEIGHT - BOTTOM - value / highest * (HEIGHT - BOTTOM - TOP), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        '<g font-family="sans-serif" font-size="12">',
        "<title>What an event costs as sessions and events grow</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for value in (0, 1, 2):
        _, y = at(1, value)
        dash = ' stroke-dasharray="6 4"' if value == 2 else ""
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y}" y2="{y}" stroke="#bbb"{dash}/>'
            f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{value} ×</text>'
        )
    for power in range(int(widest) + 1):
        x, _ = at(10**power, 0)
        parts.append(
            f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**power:,}</text>'
        )
    for index, (name, curve) in enumerate(sorted(curves.items())):
        colour = COLOURS[name]
        where = [at(*point) for point in sorted(curve)]
        path = " ".join(f"{x},{y}" for x, y in where)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (across, y), (_, cost) in zip(where, sorted(curve), strict=True):
            parts.append(
                f'<circle cx="{across}" cy="{y}" r="3" fill="{colour}"/>'
                f'<text x="{across}" y="{y - 8}" text-anchor="middle" fill="{colour}">'
                f"{number(cost)}</text>"
            )
        parts.append(f'<text x="{LEFT + 10}" y="{TOP + 16 * index}" fill="{colour}">{name}</text>')
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">sessions with a follower '
        "each, or events in the journal</text></g></svg>"
    )
    return "\n".join(parts) + "\n"
