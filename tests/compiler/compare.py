"""Compiles samples, and compares outputs with what eager gives."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tests.compiler.programs import Sample


def exported(sample: Sample, module: torch.nn.Module) -> torch.export.ExportedProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        return torch.export.export(module, sample.inputs, dynamic_shapes=sample.dynamic)


def module_of(sample: Sample) -> torch.nn.Module:
    torch.manual_seed(0)
    return sample.make().eval()


def eager_outputs(module: torch.nn.Module, calls: list[tuple[Any, ...]]) -> list[list[Any]]:
    """Return the flat outputs of each call of a copy of the module."""
    module = copy.deepcopy(module)
    results: list[list[Any]] = []
    with torch.no_grad():
        for inputs in calls:
            leaves = pytree.tree_leaves(module(*copy.deepcopy(inputs)))
            results.append([v.clone() if isinstance(v, torch.Tensor) else v for v in leaves])
    return results


def calls_of(sample: Sample) -> list[tuple[Any, ...]]:
    return [sample.inputs, *sample.further]


def flat(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(pytree.tree_leaves(inputs))


def assert_equal(found: list[list[Any]], wanted: list[list[Any]], tolerance: float) -> None:
    assert [len(outputs) for outputs in found] == [len(outputs) for outputs in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            _assert_value(a, b, tolerance)


def _assert_value(a: Any, b: Any, tolerance: float) -> None:
    if not isinstance(b, torch.Tensor):
        assert a == b
        return
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    if not b.dtype.is_floating_point:
        assert torch.equal(a, b)
    elif b.numel():
        wide = b.double()
        assert (a.double() - wide).abs().max() <= tolerance * wide.abs().max().clamp(min=1e-30)
