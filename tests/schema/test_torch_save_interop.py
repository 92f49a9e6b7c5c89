"""torch.save files against torch itself, in the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schema.etrecord import SavedTree, read_torch_save


def read(data: bytes) -> SavedTree:
    return read_torch_save(memoryview(data), "sample")


def torch_values() -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    base = torch.randn(4, 6)
    scaled = torch.quantize_per_tensor(base, 0.1, 3, torch.qint8)
    return {
        "plain": base,
        "transposed": base.t(),
        "slice": base[1:3, ::2],
        "expanded": base[0].expand(3, 6),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(base.clone()),
        "bf16": base.bfloat16(),
        "half": base.half(),
        "complex": torch.randn(3, dtype=torch.complex64),
        "bool": base > 0,
        "u16": torch.tensor([1, 65535], dtype=torch.uint16),
        "u64": torch.tensor([1, 2**63], dtype=torch.uint64),
        "e4m3": base.to(torch.float8_e4m3fn),
        "e5m2": base.to(torch.float8_e5m2),
        "quantized": scaled,
        "nested": [[base], [base[0], (base[1], {"k": base[2]})]],
        "state_dict": torch.nn.Linear(3, 2).state_dict(),
        "other": [1, 2.5, "text", None, True, b"bytes", 1 + 2j, base.shape, 1 << 40],
    }


def assert_same(found: Any, expected: Any) -> None:
    import torch

    if isinstance(expected, torch.Tensor):
        detached = expected.detach()
        numbers = detached.int_repr() if detached.is_quantized else detached
        assert found.dtype == str(expected.dtype).removeprefix("torch.")
        assert (found.sizes, found.strides) == (tuple(expected.shape), expected.stride())
        floats = numbers.dtype.itemsize <= 2 and numbers.dtype.is_floating_point
        shown = numbers.float() if floats and numbers.dtype != torch.half else numbers
        np.testing.assert_array_equal(found.to_numpy(), shown.numpy())
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, item in expected.items():
            assert_same(found[key], item)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for mine, item in zip(found, expected, strict=True):
            assert_same(mine, item)
    else:
        assert found == expected


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("protocol", [2, 4])
def test_file_written_by_torch_has_the_same_values(protocol: int, tmp_path: Path) -> None:
    import torch

    for name, expected in torch_values().items():
        path = tmp_path / name
        torch.save(expected, path, pickle_protocol=protocol)
        found = read(path.read_bytes())
        assert found.loaded
        assert_same(found.value, expected)


@pytest.mark.interop
def test_file_in_the_old_format_of_torch_is_not_loaded(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "old"
    torch.save(torch.ones(2), path, _use_new_zipfile_serialization=False)
    assert not read(path.read_bytes()).loaded
