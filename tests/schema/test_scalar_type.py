"""Element types: sizes and values are those of torch."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from schema.dtypes.scalar_type import (
    BY_CODE,
    BY_NAME,
    numel,
    scalar_type,
    tensor_nbytes,
    to_float64,
    widened,
)

PLAIN = [
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bfloat16",
    "bool", "complex32", "complex64", "complex128", "uint16", "uint32", "uint64",
    "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz",
]  # fmt: skip
WITHOUT_NUMBERS = ["quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2"]


def as_numbers(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype is torch.complex32:
        return torch.view_as_real(tensor).float().numpy().view(np.complex64)[..., 0]
    if tensor.dtype.is_floating_point and tensor.element_size() < 4:
        return tensor.float().numpy()
    return tensor.numpy()


def every_pattern(name: str) -> np.ndarray:
    """Raw bytes: all patterns of 8 and 16-bit types, random ones of wider types."""
    nbytes = BY_NAME[name].item_bytes
    if name == "bool":
        return np.array([0, 1], dtype=np.uint8)
    if nbytes <= 2:
        return np.arange(1 << (8 * nbytes), dtype=f"<u{nbytes}").view(np.uint8)
    return np.random.default_rng(1).integers(0, 256, 64 * nbytes, dtype=np.uint8)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")
@pytest.mark.parametrize("name", PLAIN)
def test_to_float64_of_every_pattern_gives_the_numbers_of_torch(name: str) -> None:
    kind, dtype = BY_NAME[name], getattr(torch, name)
    assert kind.item_bytes == torch.empty(0, dtype=dtype).element_size()
    raw = every_pattern(name)
    values = to_float64(raw, kind.code)
    assert values is not None
    np.testing.assert_array_equal(values, as_numbers(torch.from_numpy(raw.copy()).view(dtype)))


def test_bool_of_any_byte_but_zero_is_true() -> None:
    values = to_float64(np.array([0, 1, 2, 255], dtype=np.uint8), BY_NAME["bool"].code)
    assert values is not None
    assert values.tolist() == [False, True, True, True]


@pytest.mark.parametrize("name", WITHOUT_NUMBERS)
def test_to_float64_of_packed_type_gives_none(name: str) -> None:
    assert to_float64(np.zeros(8, dtype=np.uint8), BY_NAME[name].code) is None


def test_values_at_unaligned_bytes_are_read() -> None:
    raw = np.frombuffer(b"\0" + np.float32(1.5).tobytes(), dtype=np.uint8)[1:]
    values = to_float64(raw, BY_NAME["float32"].code)
    assert values is not None
    assert values.tolist() == [1.5]


def test_unknown_code_is_nameable_and_has_no_size() -> None:
    assert scalar_type(99).name == "scalar_type_99"
    assert tensor_nbytes(99, (2, 3)) == 0
    assert to_float64(np.zeros(8, dtype=np.uint8), 99) is None


@pytest.mark.parametrize(("sizes", "count"), [((), 1), ((0,), 0), ((2, 3), 6), ((4, 0, 9), 0)])
def test_numel_is_the_product_of_sizes(sizes: tuple[int, ...], count: int) -> None:
    assert numel(sizes) == count
    assert tensor_nbytes(BY_NAME["int16"].code, sizes) == 2 * count


def test_codes_and_names_are_unique_and_agree() -> None:
    assert len(BY_CODE) == len(BY_NAME) == 30
    assert all(BY_NAME[entry.name] is entry for entry in BY_CODE.values())
    assert sorted(BY_CODE) == list(range(30))


@pytest.mark.interop
def test_codes_are_those_of_the_stock_schema() -> None:
    package = importlib.util.find_spec("executorch")  # its files, without importing it
    assert package is not None
    folder = Path(next(iter(package.submodule_search_locations or ())))
    text = (folder / "schema" / "scalar_type.fbs").read_text(encoding="utf-8")
    theirs = {int(code): name for name, code in re.findall(r"^ *([A-Z0-9_]+) = (\d+)", text, re.M)}
    assert len(theirs) >= 20
    short = {"BYTE": "uint8", "CHAR": "int8", "SHORT": "int16", "INT": "int32", "LONG": "int64"}
    short |= {"HALF": "float16", "FLOAT": "float32", "DOUBLE": "float64"}
    for code, name in theirs.items():
        wanted = short.get(name, name.lower())
        assert scalar_type(code).name.replace("_", "") == wanted.replace("_", "")


@pytest.mark.parametrize(
    ("bits", "dtype"), [(0x7D00, "<f2"), (0xFD01, "<f2"), (0x7F800001, "<f4"), (0xFFA00000, "<f4")]
)
def test_signalling_nan_is_widened_without_a_warning(bits: int, dtype: str) -> None:
    values = np.array([bits, 0], "<u2" if dtype == "<f2" else "<u4").view(dtype)
    found = widened(values)
    assert found.dtype == np.float64
    assert np.isnan(found[0])
    assert found[1] == 0
