"""torch.save files that are written: what they hold for our reader, and for torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schema.dtypes.scalar_type import BY_NAME
from schema.etrecord import TensorData, read_torch_save
from schema.etrecord.torch_file.torch_write import write_zeros
from tests.tools.forked import run_stock

_TYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"),
    *("bfloat16", "complex64", "complex128", "uint16", "uint32", "uint64"),
    *("float8_e5m2", "float8_e4m3fn"),
)
_READ = """
import json, sys, torch
found = torch.load(sys.argv[1], weights_only=True)
print(json.dumps({
    name: [str(t.dtype), list(t.shape), list(t.stride()), t.storage_offset(), t.requires_grad,
           type(t).__name__, bool(t.to(torch.float32).any()) if t.numel() else False,
           t.untyped_storage().data_ptr() % 997]
    for name, t in found.items()
}))
"""


def _tensor(dtype: str, *sizes: int, key: str = "", **more: Any) -> TensorData:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    data = memoryview(b"") if key else None
    more = {"strides": tuple(reversed(strides)), **more}
    return TensorData(BY_NAME[dtype].code, sizes, storage_key=key, data=data, **more)


SAVED = {
    **{f"of {dtype}": _tensor(dtype, 2, 3, key=f"k {dtype}") for dtype in _TYPES},
    "rank 0": _tensor("float32", key="a"),
    "empty": _tensor("float32", 0, 4, key="b"),
    "whole": _tensor("float32", 4, 6, key="shared"),
    "part": _tensor("float32", 2, 2, key="shared", strides=(6, 1), storage_offset=8),
    "turned": _tensor("float32", 6, 4, key="shared", strides=(1, 6)),
    "parameter": _tensor("float32", 3, key="c", is_parameter=True, requires_grad=True),
    "traced": _tensor("float32", 1 << 10, 1 << 10),
    "n\u00e4me \u2026": _tensor("int64", 1, key="d"),
}


def test_zeros_are_read_with_the_same_layout() -> None:
    saved = read_torch_save(memoryview(write_zeros(SAVED)), "x")
    assert saved.issues == ()
    assert list(saved.value) == list(SAVED)
    for name, tensor in SAVED.items():
        found = saved.value[name]
        assert isinstance(found, TensorData)
        assert (found.sizes, found.is_parameter) == (tensor.sizes, tensor.is_parameter)
        assert found.scalar_type == tensor.scalar_type
        assert found.data is not None
        assert not any(found.data)
        if tensor.data is not None:
            assert (found.strides, found.storage_offset) == (tensor.strides, tensor.storage_offset)
    shared = {saved.value[name].storage_key for name in ("whole", "part", "turned")}
    assert len(shared) == 1


def test_tensor_without_bytes_costs_none() -> None:
    assert len(write_zeros({"traced": SAVED["traced"]})) < 2_000


def test_nothing_is_an_empty_dictionary() -> None:
    assert read_torch_save(memoryview(write_zeros({})), "x").value == {}


def test_type_without_storage_is_refused() -> None:
    with pytest.raises(ValueError, match="no storage"):
        write_zeros({"x": TensorData(-1, (2,), (1,), storage_key="a")})


@pytest.mark.interop
def test_torch_reads_zeros_with_the_same_layout(tmp_path: Path) -> None:
    path = tmp_path / "zeros.pt"
    path.write_bytes(write_zeros(SAVED))
    answer = json.loads(run_stock(["-c", _READ, path]).stdout)
    assert list(answer) == list(SAVED)
    for name, tensor in SAVED.items():
        dtype, sizes, strides, offset, grad, kind, not_zero, _ = answer[name]
        assert dtype == f"torch.{tensor.dtype}"
        assert (tuple(sizes), not_zero) == (tensor.sizes, False)
        assert kind == ("Parameter" if tensor.is_parameter else "Tensor")
        assert grad is tensor.requires_grad
        if tensor.data is not None:
            assert (tuple(strides), offset) == (tensor.strides, tensor.storage_offset)
    assert len({answer[name][-1] for name in ("whole", "part", "turned")}) == 1
