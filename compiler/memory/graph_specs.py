"""Lifetimes of the tensors of a graph with specs that was not built for planning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch

from compiler.memory.tensor_spec import TensorSpec


def specs_to_plan(
    module: torch.fx.GraphModule,
    signature: Any,  # noqa: ANN401 - ExportGraphSignature, or None
    *,
    inputs: bool,
    outputs: bool,
) -> list[TensorSpec]:
    """Return the specs of a graph that need memory, in node order, with their lifetimes set.

    Args:
        module: nodes have ``meta["spec"]``, set by SpecPropPass
        signature: marks placeholders that are weights and constants
        inputs: whether inputs of the user need memory
        outputs: whether results do
    """
    skipped: set[TensorSpec] = set()
    found: dict[TensorSpec, None] = {}
    constants = _constants(signature)
    for now, node in enumerate(module.graph.nodes):
        own = list(_specs(node.meta.get("spec")))
        if node.op == "placeholder" and (not inputs or node.name in constants):
            skipped.update(own)
        if node.op == "output" and not outputs:
            skipped.update(own)
        read = [spec for given in node.all_input_nodes for spec in _specs(given.meta.get("spec"))]
        for spec in (*own, *read):
            if spec not in found:
                found[spec] = None
                spec.lifetime = [now, now]
            spec.lifetime[1] = now
    return [spec for spec in found if not spec.const and spec not in skipped]


def _specs(value: Any) -> Iterator[TensorSpec]:  # noqa: ANN401
    if isinstance(value, TensorSpec):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in cast("Any", value):
            yield from _specs(item)


def _constants(signature: Any) -> set[str]:  # noqa: ANN401
    if signature is None:
        return set()
    written = {spec.target for spec in signature.output_specs}
    return {s.arg.name for s in signature.input_specs if s.target and s.target not in written}
