"""The table of writers by operator, and the payload of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from torch.export import ExportedProgram

from compiler.backends.xnnpack import convolution, matmul, operators
from compiler.backends.xnnpack.facts import op_of
from compiler.backends.xnnpack.lowering import Lowering
from compiler.backends.xnnpack.quantization import quantizing_name
from compiler.backends.xnnpack.steps import BATCH_NORM
from compiler.errors import UnsupportedError, at
from compiler.interface.backend import PreprocessResult
from compiler.partition.reasons import operator_of
from compiler.untyped import aten
from schema.payloads.identity import node_identity

EMITTERS = MappingProxyType(
    {
        **dict.fromkeys(operators.UNARY, operators.unary),
        **dict.fromkeys(operators.BINARY, operators.binary),
        aten._prelu_kernel.default: operators.prelu,
        aten._softmax.default: operators.softmax,
        aten.addmm.default: matmul.linear,
        aten.avg_pool2d.default: convolution.pool,
        aten.bmm.default: matmul.bmm,
        aten.cat.default: operators.cat,
        aten.clamp.default: operators.clamp,
        aten.constant_pad_nd.default: operators.pad,
        aten.convolution.default: convolution.convolution,
        aten.elu.default: operators.elu,
        aten.hardtanh.default: operators.clamp,
        aten.leaky_relu.default: operators.leaky_relu,
        aten.linear.default: matmul.linear,
        aten.max.dim: convolution.largest,
        aten.max_pool2d.default: convolution.pool,
        aten.max_pool2d_with_indices.default: convolution.pool,
        aten.mean.dim: convolution.mean,
        aten.mm.default: matmul.linear,
        aten.permute_copy.default: operators.permute,
        aten.prelu.default: operators.prelu,
        aten.relu.default: operators.clamp,
        aten.slice_copy.Tensor: operators.slices,
        aten.unsqueeze_copy.default: operators.view,
        aten.upsample_bilinear2d.vec: convolution.resize,
        aten.view_copy.default: operators.view,
        BATCH_NORM: operators.norm,
    }
)
"""Writer of each operator; copies and activations may be eliminated before."""
_CONVERSIONS: Mapping[str, operators.Emit] = MappingProxyType(
    dict.fromkeys(
        ("quantize_per_tensor.default", "dequantize_per_tensor.default"), operators.convert
    )
)


def written(program: ExportedProgram) -> PreprocessResult:
    """Return the payload of a graph, with debug handles by node index.

    Raises: UnsupportedError naming an operator the payload has no node for
    """
    lowering = Lowering(program)
    for node, step in lowering.steps.built.items():
        lowering.begin(step)
        emit = EMITTERS.get(op_of(node)) or _CONVERSIONS.get(quantizing_name(node))
        if emit is None:
            name = operator_of(node)
            raise UnsupportedError(f"{name} has no node in an XNNPACK payload, {at(node)}")
        emit(lowering, step)
    lowering.finish()
    payload, handles, blobs = lowering.writer.finish()
    known = {node_identity(place): found for place, found in handles.items()}
    origins = lowering.writer.origins_by_place().items()
    names = {node_identity(place): found for place, found in origins}
    return PreprocessResult(payload, known, blobs, origins=names)
