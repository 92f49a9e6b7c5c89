"""What an edge program may contain; runs whenever an edge program is made."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._export.verifier import SpecViolationError, Verifier

from compiler.config import EdgeCompileConfig
from compiler.edge.dim_order import NAMESPACE
from compiler.edge.ops import EdgeOp
from compiler.untyped import OpOverload, aten

_CORE_TAGS = {torch.Tag.core, torch.Tag.view_copy}
# Outside the core set of torch, yet with kernels on the runtime or needed as they are.
_LET_THROUGH = frozenset(
    (
        aten.mkldnn_rnn_layer.default,
        aten._upsample_bilinear2d_aa.default,
        aten.quantize_per_tensor.default,
        aten.dequantize.self,
        aten.max.default,
        aten.min.default,
        aten.full_like.default,
    )
)
_NUMBERS = ("aten::sym_", "aten::_local_scalar_dense")


class EdgeVerifier(Verifier):
    """Accepts what the lowering may make, whatever the operators are."""

    dialect = "ETSCOPE_EDGE_UNCHECKED"

    def allowed_op_types(self) -> tuple[type[Any], ...]:
        """Return the kinds of call targets."""
        return (*super().allowed_op_types(), EdgeOp)


@functools.lru_cache(maxsize=64)
def _strict_verifier(exceptions: frozenset[Any], skip_dim_order: bool) -> type[Verifier]:
    class StrictEdgeVerifier(EdgeVerifier):
        """Accepts core ATen operators and what the configuration lets through."""

        dialect = "ETSCOPE_EDGE"

        def check_valid_op(self, op: Any) -> None:  # noqa: ANN401
            _check_operator(op, exceptions, skip_dim_order)

    return StrictEdgeVerifier


def verifier_for(config: EdgeCompileConfig) -> type[Verifier]:
    """Return the verifier a configuration asks for."""
    if not config.check_ir_validity:
        return EdgeVerifier
    return _strict_verifier(config.exceptions, config.skip_dim_order)


def _check_operator(op: Any, exceptions: frozenset[Any], skip_dim_order: bool) -> None:  # noqa: ANN401
    if not isinstance(op, EdgeOp):
        if isinstance(op, OpOverload) and not op.name().startswith(_NUMBERS):
            raise SpecViolationError(f"Operator {op} is not an Edge operator")
        return
    below = op.op
    if below._schema.is_mutable:
        raise SpecViolationError(f"Operator {op.name()} writes in place")
    if below.namespace == NAMESPACE:
        if skip_dim_order:
            raise SpecViolationError(f"{op.name()} should not be used in non-dim_order mode")
        return
    if below.namespace != "aten" or _CORE_TAGS & set(below.tags):
        return
    if below not in exceptions and below not in _LET_THROUGH:
        raise SpecViolationError(
            f"Operator {op.name()} is not in the Core ATen opset. Let it through with "
            f"EdgeCompileConfig(_core_aten_ops_exception_list=[torch.ops.{below}]), or export "
            "under torch.no_grad()"
        )
