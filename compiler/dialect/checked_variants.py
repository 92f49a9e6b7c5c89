"""Whether every operator of a graph has an out variant, which the runtime calls."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from compiler.dialect.mutating_ops import is_write, writer_of
from compiler.dialect.ops import EdgeOp
from compiler.dialect.out_variants import find_out_variant
from compiler.errors import MissingOutVariantsError, source_line


def check_out_variants(nodes: Iterable[torch.fx.Node]) -> None:
    """Check that every edge operator has an out variant.

    Raises: MissingOutVariantsError naming all operators without one
    """
    first: dict[EdgeOp, torch.fx.Node] = {}
    for node in nodes:
        if isinstance(node.target, EdgeOp):
            first.setdefault(node.target, node)
        elif is_write(node) and writer_of(node).op._schema.returns:
            first.setdefault(writer_of(node), node)
    missing = {op.name(): node for op, node in first.items() if find_out_variant(op.op) is None}
    if missing:
        lines = dict.fromkeys(source_line(node) for node in missing.values())
        raise MissingOutVariantsError(sorted(missing), [line for line in lines if line])
