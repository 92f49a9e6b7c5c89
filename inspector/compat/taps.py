"""Compares tap values ahead of time with those of the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler.compat.taps.reducers import FULL_TENSOR
from compiler.compat.taps.tapping import TapRule, TapSpec, strip_taps_, tap_intermediate_outputs_
from compiler.pipeline.edge_manager import to_edge_transform_and_lower
from inspector.compat.devtools.numerical_comparator import SNRComparator
from inspector.export.pandas_bridge import DataFrame, load_pandas
from runtime import Runtime


def tap_compare(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    partitioner: list[Any] | None = None,
    *,
    rules: Sequence[TapRule] | TapRule | None = None,
    error_on_empty: bool = True,
) -> tuple[DataFrame, list[TapSpec]]:
    """Export, tap, lower and run a model; return its taps ahead of time and at run time.

    Args:
        model: eager
        example_inputs: positional arguments of ``forward``
        partitioner: partitioners; empty for portable kernels
        rules: as for ``tap_intermediate_outputs_``
        error_on_empty: likewise

    Returns: a frame with one row per tap, and the taps
    """
    tree: Any = pytree
    exported = torch.export.export(model, example_inputs, strict=True)
    tapped, specs = tap_intermediate_outputs_(exported, rules, error_on_empty=error_on_empty)
    expected = tree.tree_leaves(tapped.module()(*example_inputs))
    edge = to_edge_transform_and_lower(tapped, partitioner=partitioner or [])
    strip_taps_(edge)
    program = Runtime.get().load_program(edge.to_executorch().buffer)
    found = program.load_method("forward").execute(tree.tree_leaves(example_inputs))
    return compare_aot_runtime_dataframe(specs, expected, found), specs


def compare_aot_runtime_dataframe(
    specs: Sequence[TapSpec], aot_flat: Sequence[Any], rt_flat: Sequence[Any]
) -> DataFrame:
    """Return one row per tap with its values ahead of time and at run time.

    A tensor gets the signal to noise ratio in dB (``sqnr_db``), a reducer two columns per
    field.

    Args:
        specs: the taps
        aot_flat: flat outputs of the tapped exported program
        rt_flat: flat outputs of the program compiled from it
    """
    rows = [_row(one, aot_flat[one.output_index], rt_flat[one.output_index]) for one in specs]
    return load_pandas().DataFrame(rows)


def _row(spec: TapSpec, expected: Any, found: Any) -> dict[str, Any]:  # noqa: ANN401
    row: dict[str, Any] = {
        "node_name": spec.node_name,
        "module_path": spec.module_path,
        "module_class": spec.module_class,
        "op_target": spec.op_target,
        "reducer_name": spec.reducer_name,
        "output_index": spec.output_index,
    }
    one, other = _values(expected), _values(found)
    if spec.reducer_name == FULL_TENSOR.name:
        row["sqnr_db"] = SNRComparator().element_compare(one, other)
        return {**row, "aot_numel": one.numel(), "rt_numel": other.numel()}
    count = max(one.numel(), other.numel())
    for at, name in enumerate(spec.fields or [f"v{at}" for at in range(count)]):
        row[f"aot_{name}"] = float(one[at]) if at < one.numel() else float("nan")
        row[f"rt_{name}"] = float(other[at]) if at < other.numel() else float("nan")
    return row


def _values(found: Any) -> torch.Tensor:  # noqa: ANN401 - a tensor, or a scalar
    return torch.as_tensor(found).detach().to(torch.float32).reshape(-1)
