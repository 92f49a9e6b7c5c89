"""Tagged unions and symbolic sizes of the serde JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from schema.etrecord.graph.dtypes import scalar_type_number
from schema.etrecord.graph.json_text import Json
from schema.graph import Dim, TensorMeta

NONE = ("as_none", ())
_MAX_RANK = 64  # the limit of torch
_MAX_NUMEL = 1 << 62  # more elements than int64 byte positions can address
# raised when reading JSON of unexpected structure
BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def unfold(union: dict[str, Json]) -> tuple[str, Json]:
    """Return tag and value of a union: its only key, or in release 0.1 the one that is not null."""
    if len(union) == 1:
        for pair in union.items():
            return pair
    for tag, value in union.items():
        if value is not None:
            return tag, value
    return NONE


def mapping(tree: Json) -> dict[str, Json]:
    """Return an object of the JSON, an empty one for anything else."""
    return cast("dict[str, Json]", tree) if isinstance(tree, dict) else {}


def sequence(tree: Json) -> list[Json]:
    """Return an array of the JSON.

    Raises: TypeError if it is anything else
    """
    if not isinstance(tree, list):
        raise TypeError(f"a {type(tree).__name__} instead of a list")
    return cast("list[Json]", tree)


def text(value: Json) -> str:
    """Return a name.

    Raises: TypeError if it is not a string
    """
    if value.__class__ is not str:
        raise TypeError(f"a {type(value).__name__} instead of a name")
    return value


def dim(value: Json) -> tuple[Dim, int | None]:
    """Return an extent, an expression if it is symbolic, and its value if known."""
    if value.__class__ is int:
        return value, value
    tag, inner = unfold(value)
    if tag == "as_int":
        if inner.__class__ is not int:
            raise TypeError("an extent that is not an integer")
        return inner, inner
    if tag == "as_symbol":
        return text(inner), None
    hint: Json = inner.get("hint")
    if hint.__class__ is dict:
        hint = unfold(hint)[1]
    return text(inner["expr_str"]), hint if hint.__class__ is int else None


def dim_order(strides: Sequence[int | None]) -> tuple[int, ...]:
    """Return the dimensions from outermost to innermost, empty if a stride is unknown.

    Equal strides keep their order, as in exir/tensor.py ``dim_order_from_stride``.
    """
    known = [stride for stride in strides if stride is not None]
    if len(known) != len(strides):
        return ()
    return tuple(sorted(range(len(known)), key=lambda axis: -known[axis]))


class TensorMetaReader:
    """Decodes tensor metadata, each distinct one once."""

    def __init__(self, dtype_names: dict[int, str]) -> None:
        self._names = dtype_names
        self._known: dict[tuple[object, ...], TensorMeta] = {}

    def read(self, tree: Json) -> TensorMeta:
        """Return the metadata of one tensor value."""
        tree = tree.get("meta", tree)  # wrapped once more before torch 2.2
        number = tree["dtype"]
        sizes = tuple([dim(size)[0] for size in tree["sizes"]])
        strides = tuple([dim(stride)[1] for stride in tree["strides"]])
        key = (number, sizes, strides)
        known = self._known.get(key)
        if known is None:
            extents = [size for size in sizes if isinstance(size, int)]
            if (
                len(sizes) > _MAX_RANK
                or math.prod(extents) > _MAX_NUMEL
                or min(extents, default=0) < 0
            ):
                raise ValueError("extents no tensor can have")
            name = self._names.get(number, f"dtype_{number}")
            code = scalar_type_number(name)
            shown = name if code < 0 else ""
            known = TensorMeta(code, sizes, dim_order(strides), shown)
            self._known[key] = known
        return known
