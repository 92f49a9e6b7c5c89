"""A kernel is one line in the table of its family."""

from __future__ import annotations

import pytest
import torch

from runtime import Runtime, kernels
from runtime.kernels.rule import result
from tests.runtime.one_op import one_operator

NAME = "toy::twice.out"
SCHEMA = "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"


def test_a_kernel_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernels.TABLE, NAME, result(lambda self: self * 2, SCHEMA))
    data, inputs = one_operator(NAME, [torch.arange(4.0)], [(torch.float32, (4,))])
    (found,) = Runtime.get().load_program(data).load_method("forward").execute(inputs)
    assert found.tolist() == [0.0, 2.0, 4.0, 6.0]
