"""The edge operators that an operator of an exported program is decomposed into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram

from compiler.dialect.ops import edge_op
from compiler.dialect.templates import metadata_key
from compiler.edge.tracing import Templates
from compiler.errors import CompileError
from compiler.untyped import OpOverload


def operators_inside(program: ExportedProgram) -> Callable[[torch.fx.Node], tuple[str, ...]]:
    """Return a function from a node to the edge operators it is decomposed into.

    An operator that cannot be decomposed alone has no parts.
    """
    modes = (getattr(n.meta.get("val"), "fake_mode", None) for n in program.graph.nodes)
    mode = next((mode for mode in modes if mode is not None), None) or FakeTensorMode()
    templates = Templates(mode, frozenset(), skip_dim_order=False)
    known: dict[Any, tuple[str, ...]] = {}

    def inside(node: torch.fx.Node) -> tuple[str, ...]:
        if not isinstance(node.target, OpOverload):
            return ()
        key = metadata_key(node.target, node.args, node.kwargs)
        if key not in known:
            known[key] = _operators(templates, node)
        return known[key]

    return inside


def _operators(templates: Templates, node: torch.fx.Node) -> tuple[str, ...]:
    try:
        template = templates.of(node.target, tuple(node.args), dict(node.kwargs))
    except CompileError:
        return ()
    targets = [step.target for step in template.steps if isinstance(step.target, OpOverload)]
    return tuple(dict.fromkeys(edge_op(target).__name__ for target in targets))
