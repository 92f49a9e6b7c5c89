"""Which recorded node each instruction is, as a record holds it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schema.errors import FormatError
from schema.etrecord.parts.origins import VERSION, Origins, decode_origins, encode_origins

FOUND = {
    "forward": Origins(
        {0: "aten_add", 3: "cond/1/aten_mul"},
        {2: ("aten_relu", "getitem_1")},
        {2: {"node 0": ("aten_conv", "aten_relu"), "node 1": ("aten_cat",)}},
    ),
    "other": Origins(),
}


def test_origins_come_back_as_they_were() -> None:
    assert decode_origins(json.loads(encode_origins(FOUND))) == FOUND


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"version": VERSION + 1, "methods": {}},
        {"version": VERSION, "methods": {"forward": {}}},
        {"version": VERSION, "methods": {"forward": {"nodes": {"a": "b"}}}},
        {"version": VERSION, "methods": {"f": {"nodes": {"1": 2}, "results": {}, "inside": {}}}},
        {"version": VERSION, "methods": {"f": {"nodes": {}, "results": {"1": 3}, "inside": {}}}},
        [],
    ],
)
def test_origins_of_another_shape_are_refused(tree: Any) -> None:
    with pytest.raises(FormatError, match=r"origins_constants|version|origins by method"):
        decode_origins(tree)
