"""A bar chart as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 800, 600, 80, 60, 70
_FONT = 'font-family="sans-serif" font-size="14" fill="#222222"'


def bar_chart(title: str, label: str, values: Sequence[float | None]) -> str:
    """Return a chart with one bar per value; missing and non-finite values are written, not drawn.

    Args:
        title: over the chart
        label: under the axis
        values: one a bar
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)
    span = (high - low) * 1.15 or 1.0
    inner = _HEIGHT - _TOP - _BOTTOM
    zero = _TOP + inner * (high * 1.15 / span if high else 0.0)
    step = (_WIDTH - _LEFT - 20) / max(len(values), 1)
    parts = [_text(_WIDTH / 2, _TOP / 2, title), _text(_WIDTH / 2, _HEIGHT - 15, label)]
    parts.append(f'<path d="M{_LEFT} {zero:.1f}H{_WIDTH - 20}" stroke="#666666"/>')
    for index, value in enumerate(values):
        middle = _LEFT + step * (index + 0.5)
        parts += _bar(middle, step * 0.5, zero, inner / span, value)
        parts.append(_text(middle, _HEIGHT - _BOTTOM + 25, str(index)))
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _bar(middle: float, width: float, zero: float, scale: float, value: float | None) -> list[str]:
    if value is None or not math.isfinite(value):
        return [_text(middle, zero - 8, "none" if value is None else str(value))]
    length = abs(value) * scale
    top = zero - length if value > 0 else zero
    bar = (
        f'<rect x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}"'
        f' height="{length:.1f}" fill="#3b6ea5"/>'
    )
    return [bar, _text(middle, top - 6 if value >= 0 else top + length + 16, f"{value:.6g}")]


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" {_FONT}>{escape(text)}</text>'
