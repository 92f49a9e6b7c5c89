"""Reads the Value tables of debug events as columns."""

from __future__ import annotations

import numpy as np

from schema.etdump import values as v
from schema.etdump.tables import TENSOR, TENSOR_LIST, VALUE
from schema.flatbuf.columns import Array, Columns, Ints, columns, extents, follow, items

_BITS = (
    ("int_value", v.HAS_INT),
    ("float_value", v.HAS_FLOAT),
    ("double_value", v.HAS_DOUBLE),
    ("bool_value", v.HAS_BOOL),
)


def read_values(tables: Columns) -> v.DebugValues:
    """Return the values; the rows of damaged ones are marked.

    Raises: FormatError if they declare more bytes than the file can hold
    """
    count = len(tables)
    has = np.zeros(count, dtype=np.uint8)
    numbers = {name: _boxed(tables, name, bit, has) for name, bit in _BITS}
    single, owners = tables.children(VALUE.field("tensor"))
    tensor = np.full(count, -1, dtype=np.int32)
    tensor[owners] = np.arange(len(owners), dtype=np.int32)
    listed, list_start, list_count = _lists(tables, has, len(single))
    return v.DebugValues(
        v.ValueColumns(
            type=tables.scalar(VALUE.field("val")),
            output=_output(tables),
            has=has,
            int_value=numbers["int_value"],
            float_value=numbers["float_value"],
            double_value=numbers["double_value"],
            bool_value=numbers["bool_value"] != 0,
            tensor=tensor,
            list_start=list_start,
            list_count=list_count,
            **_tensors(single, listed),
        )
    )


def _box(tables: Columns, name: str) -> tuple[Array, Ints]:
    """Return the scalars of tables that hold just one, and the rows that have one."""
    field = VALUE.field(name)
    boxes, owners = tables.children(field)
    return boxes.scalar(field.type.fields[0]), owners


def _boxed(tables: Columns, name: str, bit: int, has: Array) -> Array:
    scalars, owners = _box(tables, name)
    out = np.zeros(len(tables), dtype=scalars.dtype)
    out[owners] = scalars
    has[owners] |= np.uint8(bit)
    return out


def _output(tables: Columns) -> Array:
    scalars, owners = _box(tables, "output")
    out = np.full(len(tables), -1, dtype=np.int8)
    out[owners] = scalars != 0
    return out


def _lists(tables: Columns, has: Array, shift: int) -> tuple[Columns, Array, Array]:
    lists, owners = tables.children(VALUE.field("tensor_list"))
    has[owners] |= np.uint8(v.HAS_LIST)
    starts, counts = extents(
        tables.region, tables.rows, lists.offsets(TENSOR_LIST.field("tensors")), lists.owners, 4
    )
    at = items(tables.region, starts, counts, 4)
    rows = np.repeat(lists.owners, counts)
    target, good = follow(tables.region, tables.rows, at, rows)
    built, _ = columns(tables.region, tables.rows, target[good], rows[good])
    # A damaged list shifts the following values; its rows are marked as damaged and are read again
    # without it.
    list_count = np.zeros(len(tables), dtype=np.int32)
    list_count[owners] = counts
    list_start = (shift + np.cumsum(list_count) - list_count).astype(np.int32)
    return built, list_start, list_count


def _tensors(single: Columns, listed: Columns) -> dict[str, Array]:
    both = (single, listed)

    def stacked(parts: list[Array]) -> Array:
        return np.concatenate(parts)

    sizes = [_vector(part, "sizes") for part in both]
    strides = [_vector(part, "strides") for part in both]
    sizes_count = stacked([count for _, count in sizes])
    strides_count = stacked([count for _, count in strides])
    return {
        "scalar_type": stacked([part.scalar(TENSOR.field("scalar_type")) for part in both]),
        "offset": stacked([part.scalar(TENSOR.field("offset")) for part in both]),
        "sizes_start": np.cumsum(sizes_count) - sizes_count,
        "sizes_count": sizes_count,
        "strides_start": int(sizes_count.sum()) + np.cumsum(strides_count) - strides_count,
        "strides_count": strides_count,
        "numbers": stacked([numbers for numbers, _ in (*sizes, *strides)]),
    }


def _vector(tensors: Columns, name: str) -> tuple[Array, Ints]:
    vectors = tensors.offsets(TENSOR.field(name))
    starts, counts = extents(tensors.region, tensors.rows, vectors, tensors.owners, 8)
    at = items(tensors.region, starts, counts, 8)
    return tensors.region.numbers(at, "<i8"), counts
