"""Treemaps: areas are sizes, cells fill their box and do not overlap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from devtools_app.viewmodels.canvas_data import TreemapData
from devtools_app.viewmodels.layout.treemap import TreemapIndex, lay_out_treemap, squarify


def parts(tree: dict[str, object], name: str = "file") -> TreemapData:
    """Return columns of nested dicts of sizes."""
    names: list[str] = []
    nbytes: list[int] = []
    parent: list[int] = []

    def add(label: str, value: object, above: int) -> int:
        at = len(names)
        names.append(label)
        nbytes.append(0)
        parent.append(above)
        if isinstance(value, dict):
            nbytes[at] = sum(add(key, inner, at) for key, inner in value.items())
        else:
            nbytes[at] = int(str(value))
        return nbytes[at]

    add(name, tree, -1)
    return TreemapData(
        tuple(names),
        np.array(nbytes, np.int64),
        np.array(parent, np.int64),
        np.zeros(len(names), np.int64),
    )


sizes = st.lists(st.integers(1, 10**9), min_size=1, max_size=80).map(lambda s: sorted(s)[::-1])


@given(sizes, st.floats(10, 2000), st.floats(10, 2000))
@example([171614913, 1], 60.0, 58.0)
@example([171614913, 1], 58.0, 60.0)
def test_squarify_areas_are_proportional_and_fill_the_box(
    found: list[int], width: float, height: float
) -> None:
    boxes = np.array(squarify([float(size) for size in found], (3.0, 4.0, width, height)))
    areas = boxes[:, 2] * boxes[:, 3]
    expected = np.array(found) / sum(found) * width * height
    assert areas == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert (boxes[:, :2] >= [3.0 - 1e-6, 4.0 - 1e-6]).all()
    assert (boxes[:, 0] + boxes[:, 2] <= 3.0 + width + 1e-6).all()
    assert (boxes[:, 1] + boxes[:, 3] <= 4.0 + height + 1e-6).all()


@given(sizes)
def test_squarify_cells_do_not_overlap(found: list[int]) -> None:
    boxes = squarify([float(size) for size in found], (0.0, 0.0, 640.0, 480.0))
    for at, (x, y, w, h) in enumerate(boxes):
        for left, top, wide, high in boxes[at + 1 :]:
            across = min(x + w, left + wide) - max(x, left)
            down = min(y + h, top + high) - max(y, top)
            assert across <= 1e-6 or down <= 1e-6


def test_squarify_equal_sizes_are_nearly_square() -> None:
    boxes = squarify([1.0] * 16, (0.0, 0.0, 400.0, 400.0))
    assert all(max(w / h, h / w) < 1.01 for _, _, w, h in boxes)


def test_squarify_nothing_to_fill_gives_empty_cells() -> None:
    assert squarify([1.0, 1.0], (0.0, 0.0, 0.0, 10.0)) == [(0.0, 0.0, 0.0, 0.0)] * 2


@given(st.integers(1, 400), st.integers(1, 10**6))
def test_lay_out_treemap_gathered_cells_keep_count_and_bytes(count: int, largest: int) -> None:
    data = parts({"big": largest, "many": {f"p{i}": 1 + i % 7 for i in range(count)}})
    index = TreemapIndex(data)
    cells = lay_out_treemap(data, index, 0, (0.0, 0.0, 300.0, 200.0))
    top = [cell for cell in cells if cell.depth == 0]
    assert sum(cell.nbytes for cell in top) == int(data.nbytes[0])
    assert sum(cell.count for cell in top) == 2
    assert sum(cell.box[2] * cell.box[3] for cell in top) == pytest.approx(300 * 200)


def test_lay_out_treemap_small_parts_are_one_cell() -> None:
    data = parts({"big": 10**9, **{f"tiny{i}": 1 for i in range(1000)}})
    cells = lay_out_treemap(data, TreemapIndex(data), 0, (0.0, 0.0, 800.0, 600.0))
    assert [(cell.part, cell.count, cell.nbytes) for cell in cells] == [
        (1, 1, 10**9),
        (-1, 1000, 1000),
    ]


def test_lay_out_treemap_large_part_shows_its_parts_inside_itself() -> None:
    data = parts({"a": {"x": 60, "y": 40}, "b": 10})
    cells = lay_out_treemap(data, TreemapIndex(data), 0, (0.0, 0.0, 800.0, 600.0))
    by_name = {data.names[cell.part]: cell for cell in cells}
    x, y, w, h = by_name["a"].box
    for name in ("x", "y"):
        left, top, wide, high = by_name[name].box
        assert x <= left
        assert y < top
        assert left + wide <= x + w + 1e-6
        assert top + high <= y + h + 1e-6


def test_lay_out_treemap_parts_without_bytes_are_not_drawn() -> None:
    data = parts({"a": 0, "b": 0})
    assert lay_out_treemap(data, TreemapIndex(data), 0, (0.0, 0.0, 100.0, 100.0)) == []
