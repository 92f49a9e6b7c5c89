"""Elements of tensors where they are stored: every dtype and layout, pieces, places, statistics."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from inspector.files.load import load_session
from inspector.numerics.metrics import Tolerance, measure
from inspector.size.constant_names import constant_names
from inspector.tables.filter import parse_filter
from inspector.tables.registry import build
from inspector.tables.row_order import RowOrder
from inspector.tables.selection import AUTOMATIC
from inspector.tables.table import Table
from inspector.tables.tensor import tensor_groups, values_table
from inspector.tensors.differences import difference, distance, partners
from inspector.tensors.elements import (
    Elements,
    NibbleElements,
    RealElements,
    StoredElements,
    row_major,
    strides_of,
)
from inspector.tensors.images import (
    SIDE,
    SliceChoice,
    fitting,
    image_of,
    layout_of,
    place_of,
    usual_slice,
)
from inspector.tensors.logged_places import logged_places
from inspector.tensors.sources import TensorSource, array_source, session_tensors
from inspector.tensors.summary import BINS, summary, summary_of
from schema.dtypes.scalar_type import BY_NAME
from tests.inspector.cli_runs import run
from tests.inspector.sessions import DATA, folders, label, session

QUANTIZED = ("corpus/special/xnnpack_int8_static", "extra/xnnpack_8da4w")


def held(array: np.ndarray) -> TensorSource:
    """Return an array as a tensor of a session."""
    return array_source(array, "key", "name", "constant", "forward")


def every(elements: Elements) -> np.ndarray:
    """Return all elements in their shape, read by place."""
    places = np.argwhere(np.ones(elements.sizes, bool))
    return elements.at(places).reshape(elements.sizes)


SHAPES = st.lists(st.integers(1, 5), max_size=4).map(tuple)


@given(SHAPES, st.randoms(use_true_random=False))
def test_elements_are_found_by_ordinal_and_by_place_in_any_layout(shape, random) -> None:
    order = tuple(random.sample(range(len(shape)), len(shape)))
    values = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    stored = np.ascontiguousarray(values.transpose(order))
    strides = strides_of(shape, order)
    elements = StoredElements(memoryview(stored).cast("B"), 6, shape, strides)
    assert np.array_equal(every(elements), values)
    at = np.arange(elements.count)
    whole = elements.piece(0, elements.count)
    assert np.array_equal(elements.at(elements.places(at)), whole)
    assert sorted(whole.tolist()) == at.tolist()
    halves = np.concatenate([piece for _, piece in elements.pieces(3)])
    assert np.array_equal(halves, whole)


def test_elements_with_gaps_between_them_are_read_by_place() -> None:
    data = np.arange(24, dtype="<f4")
    elements = StoredElements(memoryview(data).cast("B"), 6, (3, 2), (8, 3))
    assert every(elements).tolist() == [[0, 3], [8, 11], [16, 19]]
    assert summary(elements).facts == {
        "count": 6,
        "min": 0.0,
        "max": 19.0,
        "mean": 9.5,
        "nan": 0,
        "inf": 0,
        "zero": 1,
        "std": pytest.approx(np.std([0, 3, 8, 11, 16, 19])),
    }


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "bool", "int64", "uint8"])
def test_narrow_types_have_their_values(name: str) -> None:
    kind = BY_NAME[name]
    raw = np.arange(6 * kind.item_bytes, dtype=np.uint8)
    if name == "bfloat16":
        raw = (
            (np.array([1.5, -2, 0, 3, 4, np.nan], "<f4").view("<u4") >> 16).astype("<u2").view("u1")
        )
    elements = StoredElements(memoryview(raw), kind.code, (2, 3), row_major((2, 3)))
    assert every(elements).shape == (2, 3)
    if name == "bfloat16":
        assert every(elements)[0].tolist() == [1.5, -2.0, 0.0]
        found = summary(elements)
        assert [one.place for one in found.special] == [(1, 2)]


def test_values_of_four_bits_and_what_they_stand_for() -> None:
    data = np.array([0x10, 0x32, 0xF8], np.uint8)
    stored = NibbleElements(memoryview(data), (2, 3))
    assert every(stored).tolist() == [[0, 1, 2], [3, 8, 15]]
    assert stored.piece(1, 5).tolist() == [1, 2, 3, 8]
    real = RealElements(stored, np.array([0.5, 2.0]), np.array([8.0]), 3)
    assert every(real).tolist() == [[-4, -3.5, -3], [-10, 0, 14]]
    assert real.piece(2, 4).tolist() == [-3, -10]


def test_a_buffer_that_is_too_short_has_no_elements() -> None:
    with pytest.raises(ValueError, match="12 bytes, and the shape has 24"):
        StoredElements(memoryview(bytes(12)), 6, (2, 3), (3, 1))
    with pytest.raises(ValueError, match="has no values to show"):
        StoredElements(memoryview(bytes(12)), 18, (2, 3), (3, 1))


def test_statistics_name_what_is_not_finite_and_the_extremes() -> None:
    values = np.ones((4, 5), np.float32)
    values[1, 2], values[3, 4], values[2, 0], values[0, 1] = np.nan, np.inf, -7, 9
    found = summary(held(values).elements())
    assert found.facts is not None
    assert (found.facts["nan"], found.facts["inf"]) == (1, 1)
    assert [one.place for one in found.special] == [(1, 2), (3, 4)]
    assert [(one.place, one.value) for one in found.lowest] == [((2, 0), -7.0)]
    assert [(one.place, one.value) for one in found.highest] == [((0, 1), 9.0)]
    assert int(found.counts.sum()) == 18
    assert len(found.counts) == BINS
    assert (found.edges[0], found.edges[-1]) == (-7, 9)


@pytest.mark.parametrize("values", [[3.0, 3.0], [0.0], [-1.7e308, 1.7e308], [np.nan], []])
def test_histogram_of_any_values_counts_all_that_are_finite(values: list[float]) -> None:
    found = summary(held(np.array(values)).elements())
    assert int(found.counts.sum()) == int(np.isfinite(values).sum())


def test_share_at_the_limits_of_a_quantized_type() -> None:
    stored = np.array([[-128, 127, 127, 0]], np.int8)
    found = summary_of(held(stored)).clipped
    assert found is not None
    assert (found.at_low, found.at_high, found.share) == (1, 2, 0.75)
    assert summary_of(held(stored.astype(np.int32))).clipped is None


def test_difference_is_of_the_same_elements_in_other_layouts() -> None:
    generator = np.random.default_rng(0)
    one, other = generator.normal(size=(2, 3, 4, 5)).astype("f4")
    a, b = held(one), held(other)
    last = np.ascontiguousarray(other.transpose(1, 2, 0))
    sizes, order = other.shape, (1, 2, 0)
    b = held(other)
    moved = StoredElements(memoryview(last).cast("B"), 6, sizes, strides_of(sizes, order))
    apart = difference(a, b)
    from inspector.tensors.elements import DifferenceElements

    mixed = DifferenceElements(a.elements(), moved)
    assert np.allclose(every(mixed), one.astype(float) - other)
    expected = measure(other, one, "float32", Tolerance())
    assert distance(apart, "float32", lambda: None) == expected
    again = distance(mixed, "float32", lambda: None)
    assert again.max_abs == expected.max_abs
    with pytest.raises(ValueError, match="is not the shape"):
        difference(a, held(other[0]))


def test_tensors_of_one_shape_may_be_compared_the_namesake_first() -> None:
    one, other, third = (held(np.zeros((2, 2), "f4")) for _ in range(3))
    named = array_source(np.zeros((2, 2), "f4"), "b", "another", "constant", "")
    alone = held(np.zeros((3,), "f4"))
    assert partners(one, (one, named, alone, other, third)) == (other, third, named)


@given(st.lists(st.integers(1, 4), max_size=4).map(tuple), st.booleans())
def test_cells_of_an_image_are_the_elements_at_their_places(shape, tiled) -> None:
    values = np.arange(1.0, math.prod(shape) + 1).reshape(shape)
    usual = usual_slice(shape)
    choice = fitting(SliceChoice(usual.rows, usual.columns, usual.fixed, tiled), shape)
    found = image_of(held(values).elements(), choice)
    grid, tile = layout_of(choice, shape)
    assert found.values.shape == grid == found.grid
    seen = set()
    for row in range(grid[0]):
        for column in range(grid[1]):
            place = place_of(choice, shape, tile, (row, column))
            assert place == found.cell(row, column)
            if place is None:
                assert np.isnan(found.values[row, column])
            else:
                assert found.values[row, column] == values[place]
                seen.add(place)
    assert len(seen) == (values.size if choice.tiled else grid[0] * grid[1])


def test_wide_filters_are_tiled_in_lines_that_fit_a_drawing() -> None:
    shape = (32, 1, 3, 40)
    rows, columns = layout_of(usual_slice(shape), shape)[0]
    assert 1 < columns / rows < 4
    assert layout_of(usual_slice((8, 3, 3, 3)), (8, 3, 3, 3))[0] == (31, 11)  # outputs go down


def test_large_images_show_the_outlier_of_each_patch() -> None:
    values = np.zeros((1500, 700), np.float32)
    values[1234, 567] = -3
    values[3, 4] = np.nan
    found = image_of(held(values).elements(), usual_slice(values.shape))
    assert max(found.values.shape) <= SIDE
    assert not found.sampled
    assert found.values.min() == -3
    assert np.isinf(found.values).sum() == 1


def test_values_are_listed_with_their_places() -> None:
    values = np.arange(12, dtype=np.int8).reshape(2, 2, 3)
    table = values_table(held(values).elements(), SliceChoice(1, 2, (1, 0, 0)))
    assert [column.title for column in table.columns] == ["d0", "d1", "d2", "value"]
    assert table.length == 6
    rows = RowOrder(table).rows((), parse_filter("value>9", table))
    assert [[int(column.values[row]) for column in table.columns] for row in rows] == [
        [1, 1, 1, 10],
        [1, 1, 2, 11],
    ]


@pytest.mark.parametrize("path", folders("model.pte"), ids=label)
def test_every_tensor_of_a_session_is_read_or_missing_with_a_reason(path: Path) -> None:
    found = session_tensors(session(path))
    assert len({one.key for one in found}) == len(found)
    for one in found:
        if one.missing:
            with pytest.raises(ValueError, match="miss"):
                one.elements()
            continue
        report = summary_of(one)
        assert report.facts is None or report.facts["count"] == math.prod(one.sizes)
        real = one.real()
        if real is not None:
            assert np.isfinite(real.piece(0, real.count)).all()


@pytest.mark.parametrize("name", QUANTIZED)
def test_weights_in_payloads_have_scales_and_the_range_they_clip(name: str) -> None:
    found = [one for one in session_tensors(session(DATA / name)) if one.quantization is not None]
    weights = [one for one in found if one.delegate is not None and one.scaling() is not None]
    assert weights
    for one in weights:
        groups = tensor_groups(one, summary_of(one), AUTOMATIC)
        facts = {fact.label: fact.value for group in groups for fact in group.facts}
        assert facts["parameters"]
        if one.dtype in ("qcint8", "qint8", "qcint4", "qbint4"):
            assert "at the limits" in facts
            assert "…" in facts["clips to"]


def marks_of_limits(source: TensorSource) -> list[str]:
    groups = tensor_groups(source, summary_of(source), AUTOMATIC)
    return [fact.badge for one in groups for fact in one.facts if fact.label == "at the limits"]


@pytest.mark.parametrize("levels", [(-127, 127), (-128, 127), (0, 255)])
@pytest.mark.parametrize("size", [6, 100, 20_000])
def test_largest_element_of_each_scale_is_not_called_clipped(
    levels: tuple[int, int], size: int
) -> None:
    dtype = np.uint8 if levels[0] == 0 else np.int8
    stored = np.linspace(*levels, size).round().astype(dtype)
    assert marks_of_limits(held(stored)) == [""]
    clipped = np.clip(np.linspace(-400, 600, 20_000), *levels).astype(dtype)
    assert marks_of_limits(held(clipped)) == ["clipped"]


@pytest.mark.parametrize("name", QUANTIZED)
def test_weights_quantized_by_their_range_are_not_called_clipped(name: str) -> None:
    found = [one for one in session_tensors(session(DATA / name)) if one.delegate is not None]
    marks = [mark for one in found if one.scaling() is not None for mark in marks_of_limits(one)]
    assert marks
    assert set(marks) == {""}


def test_external_weights_that_are_not_there_are_missing() -> None:
    alone = load_session([str(DATA / "extra/external_weights/model.pte")])
    found = [one for one in session_tensors(alone) if one.origin == "external"]
    assert found
    assert all(one.missing for one in found)
    table = build("tensor", alone)
    assert isinstance(table, Table)
    low = next(column for column in table.columns if column.title == "min")
    note = next(column for column in table.columns if column.title == "note")
    for row, one in enumerate(session_tensors(alone)):
        if one.missing:
            assert low.cell(row) == ""
            assert note.cell(row) == one.missing


def test_command_line_shows_the_figures_of_a_named_tensor() -> None:
    folder = DATA / "corpus/v1.5.1/convnet_portable"
    whole = session_tensors(session(folder))
    one = next(one for one in whole if one.origin == "constant" and len(one.sizes) == 4)
    shown = run("table", "tensor", folder, "--filter", one.name, "--format", "json").json
    (table,) = shown["data"]["tables"]
    titles = [column["id"] for column in table["columns"]]
    rows = [dict(zip(titles, row["values"], strict=True)) for row in table["rows"]]
    values = next(row for row in rows if row["where"] == "constant")
    facts = summary_of(one).facts
    assert facts is not None
    assert (values["min"], values["max"], values["std"]) == (
        facts["min"],
        facts["max"],
        facts["std"],
    )
    assert values["name"] == one.name


@pytest.mark.parametrize(
    "values",
    [
        np.array([[2**53 + 1, 2**53 + 3], [2**53 + 2, 2**53 + 1]]),
        np.array([1_764_000_000_000_000_001, 1_764_000_000_000_000_002]),  # times in ns
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**64 - 1], np.uint64),
        np.array([1.0, np.nextafter(1.0, 2.0)]),
        np.array(np.finfo(np.float64).max),
    ],
)
def test_integers_are_exact_and_values_that_touch_have_bins(values: NDArray[Any]) -> None:
    found = summary_of(array_source(values, "key", "name", "logged", "forward"))
    assert found.facts is not None
    assert (found.facts["min"], found.facts["max"]) == (values.min().item(), values.max().item())
    assert values[found.lowest[0].place] == values.min()
    assert int(found.counts.sum()) == values.size
    assert (np.diff(found.edges) > 0).all()


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ([2**53 + 1, 2**62], [2**53, -(2**62)], [1, 2.0**63]),
        ([np.inf, -np.inf, 3.0], [np.inf, np.inf, 1.0], [0, -np.inf, 2]),
        ([True, False], [False, False], [1, 0]),
    ],
)
def test_differences_of_large_integers_and_of_infinities(
    one: list[float], other: list[float], apart: list[float]
) -> None:
    pair = (array_source(np.array(each), "key", "x", "logged", "forward") for each in (one, other))
    found = difference(*pair)
    assert found.piece(0, len(one)).tolist() == apart


@pytest.mark.slow
def test_a_tensor_of_half_a_gigabyte_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    count = 1 << 27
    written = np.memmap(path, np.float32, "w+", shape=(count,))
    written[5] = 2.0
    written.flush()
    del written
    raw = np.memmap(path, np.uint8, "r")
    elements = StoredElements(memoryview(raw), 6, (8192, 16384), (16384, 1))
    tracemalloc.start()
    found = summary(elements)
    image = image_of(elements, usual_slice(elements.sizes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.facts is not None
    assert found.facts["max"] == 2.0
    assert found.highest[0].place == (0, 5)
    assert image.sampled
    assert peak < 256 << 20


def test_logged_tensors_are_named_by_their_values() -> None:
    found = logged_places(session(DATA / "corpus/v1.5.1/convnet_xnnpack"))
    names = [(one.name, one.slot) for one in found]
    assert names[:3] == [
        ("x into 0", None),
        ("_lifted_tensor_constant3 into 0", None),
        ("aten_relu_default", 0),
    ]
    assert names[-1] == ("aten__log_softmax_default (output)", None)
    program = session(DATA / "corpus/v1.5.1/convnet_xnnpack").program
    assert program is not None
    plan = program.plan("forward")
    for one in found:
        assert one.value is not None
        assert plan.values[one.value].val.sizes == one.tensor.sizes


def test_tensors_logged_inside_a_delegate_are_named_by_their_node() -> None:
    demo = DATA.parents[1] / "devtools_app" / "sample_data" / "demo"
    files = [str(demo / "keyword_spotter"), str(demo / "keyword_spotter.etrecord")]
    found = logged_places(load_session(files))
    inside = {one.tensor.event: one.name for one in found if one.tensor.instruction == 2}
    assert [inside[f"node {number}"] for number in range(7)] == [
        "aten_mul_tensor",
        "aten_add_tensor",
        "aten_mul_tensor_2",
        "aten_add_tensor_1",
        "StaticTranspose_4 · 2",  # added by the compiler: the name of the payload
        "StaticReshape_5 · 2",
        "aten_convolution_default_3",
    ]
    first = {one.tensor.event: one.name for one in found if one.tensor.instruction == 0}
    assert first["node 2"] == "Conv2d_2 · 0"  # a part of a fused operator: no recorded node
    alone = logged_places(load_session([files[0]]))  # without the record
    assert not any(one.name.startswith("aten_mul") for one in alone if one.tensor.row >= 0)


def test_constants_without_names_have_those_of_the_record() -> None:
    found = constant_names(session(DATA / "corpus/v1.5.1/convnet_portable"), "forward")
    assert {"stem.0.weight", "fc.bias", "stem.1.running_mean"} <= {*found.values()}
    alone = load_session([str(DATA / "corpus/v1.5.1/convnet_portable/model.pte")])
    assert all(name.startswith("v") for name in constant_names(alone, "forward").values())


def test_usual_slice_shows_dimensions_of_more_than_one_element() -> None:
    assert usual_slice((32, 1, 1, 48)) == SliceChoice(0, 3, (0, 0, 0, 0))
    assert usual_slice((8, 3, 3, 3)) == SliceChoice(2, 3, (0, 0, 0, 0), tiled=True)
    assert usual_slice((1, 3, 32, 32)) == SliceChoice(2, 3, (0, 0, 0, 0))
    assert usual_slice((1, 1, 7)) == SliceChoice(1, 2, (0, 0, 0))
    assert usual_slice((7,)) == SliceChoice(None, 0, (0,))
    assert usual_slice(()) == SliceChoice(None, None, ())
