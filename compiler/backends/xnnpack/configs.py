"""Delegation rules, one per operator, under the names of the stock configurations.

A rule is data: operators, precisions, constraints in order, and whether it fuses
an activation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from compiler.backends.xnnpack import checks
from compiler.backends.xnnpack.checks import Check
from compiler.backends.xnnpack.precision import ConfigPrecisionType
from compiler.backends.xnnpack.steps import BATCH_NORM
from compiler.dialect.dim_order import CLONE_DIM_ORDER, TO_DIM_ORDER_COPY
from compiler.untyped import aten

_FLOAT = frozenset((ConfigPrecisionType.FP32,))
_STATIC = frozenset((ConfigPrecisionType.FP32, ConfigPrecisionType.STATIC_QUANT))
_QUANTIZED = frozenset((ConfigPrecisionType.STATIC_QUANT,))
_DYNAMIC = frozenset((ConfigPrecisionType.DYNAMIC_QUANT,))
_EVERY = frozenset(ConfigPrecisionType)


@dataclass(frozen=True, slots=True)
class XNNPartitionerConfig:
    """A delegation rule: the conditions under which an operator is supported.

    Attributes:
        name: of the stock configuration
        ops: overloads it covers; quantization overloads by name, since they exist only once their
            library is
            loaded
        precisions: supported patterns
        checks: constraints, the first that rejects a node decides
        keep: the operator to preserve for it, or its name; None if it is never decomposed
        weight: argument index of the weight of a layer
        quantizing: whether it covers quantize and dequantize operators
    """

    name: str
    ops: tuple[Any, ...]
    precisions: frozenset[ConfigPrecisionType] = _FLOAT
    checks: tuple[Check, ...] = ()
    keep: Any = None
    weight: int | None = None
    quantizing: bool = False

    def supported_precision_types(self) -> list[ConfigPrecisionType]:
        """Return the supported precisions, in the order of the enumeration."""
        return [one for one in ConfigPrecisionType if one in self.precisions]

    def __str__(self) -> str:
        return self.name


_Rule = XNNPartitionerConfig
AbsConfig = _Rule("AbsConfig", (aten.abs.default,))
AddConfig = _Rule("AddConfig", (aten.add.Tensor, aten.add.Scalar), _STATIC, (checks.plain_sum,))
AddmmConfig = _Rule("AddmmConfig", (aten.addmm.default,), _EVERY, (checks.linear_layer,), weight=2)
AvgPoolingConfig = _Rule("AvgPoolingConfig", (aten.avg_pool2d.default,), checks=(checks.average,))
BMMConfig = _Rule("BMMConfig", (aten.bmm.default,))
BatchNormConfig = _Rule("BatchNormConfig", (BATCH_NORM,), checks=(checks.inference_norm,))
CatConfig = _Rule("CatConfig", (aten.cat.default,), _STATIC, (checks.several_parts,))
CeilConfig = _Rule("CeilConfig", (aten.ceil.default,))
ChooseQParamsAffineConfig = _Rule(
    "ChooseQParamsAffineConfig",
    ("choose_qparams_affine.default",),
    _DYNAMIC,
    (checks.kept_for_layers,),
    keep="torchao::choose_qparams_affine",
    quantizing=True,
)
ClampConfig = _Rule("ClampConfig", (aten.clamp.default,), _STATIC, (checks.numeric_bounds,))
CloneConfig = _Rule(
    "CloneConfig", (aten.clone.default, aten.expand_copy.default), checks=(checks.same_sizes,)
)
CloneDimOrderConfig = _Rule("CloneDimOrderConfig", (CLONE_DIM_ORDER,))
ConstantPadConfig = _Rule(
    "ConstantPadConfig", (aten.constant_pad_nd.default,), checks=(checks.positive_padding,)
)
ConvolutionConfig = _Rule(
    "ConvolutionConfig",
    (aten.convolution.default,),
    _EVERY,
    (checks.image_convolution,),
    weight=1,
)
CosConfig = _Rule("CosConfig", (aten.cos.default,))
DeQuantizeAffineConfig = _Rule(
    "DeQuantizeAffineConfig",
    ("dequantize_affine.default",),
    _DYNAMIC,
    (checks.kept_for_layers,),
    keep="torchao::dequantize_affine",
    quantizing=True,
)
DeQuantizedPerTensorConfig = _Rule(
    "DeQuantizedPerTensorConfig",
    ("dequantize_per_tensor.default",),
    _QUANTIZED,
    (checks.one_scale,),
    quantizing=True,
)
DivConfig = _Rule("DivConfig", (aten.div.Tensor, aten.div.Scalar), checks=(checks.simple_division,))
EluConfig = _Rule("EluConfig", (aten.elu.default,), checks=(checks.plain_elu,))
ExpConfig = _Rule("ExpConfig", (aten.exp.default,))
FloorConfig = _Rule("FloorConfig", (aten.floor.default,))
GeluConfig = _Rule("GeluConfig", (aten.gelu.default,), checks=(checks.exact_gelu,))
HardswishConfig = _Rule("HardswishConfig", (aten.hardswish.default,), keep=aten.hardswish.default)
HardtanhConfig = _Rule(
    "HardtanhConfig", (aten.hardtanh.default,), _STATIC, (checks.numeric_bounds,)
)
LeakyReLUConfig = _Rule(
    "LeakyReLUConfig", (aten.leaky_relu.default,), checks=(checks.finite_slope,)
)
LinearConfig = _Rule(
    "LinearConfig",
    (aten.linear.default,),
    _EVERY,
    (checks.linear_layer,),
    keep=aten.linear.default,
    weight=1,
)
LogConfig = _Rule("LogConfig", (aten.log.default,))
MMConfig = _Rule("MMConfig", (aten.mm.default,), _EVERY, (checks.linear_layer,), weight=1)
MaxDimConfig = _Rule("MaxDimConfig", (aten.max.dim,), checks=(checks.max_of_images,))
MaxPool2dConfig = _Rule(
    "MaxPool2dConfig",
    (aten.max_pool2d.default, aten.max_pool2d_with_indices.default),
    _STATIC,
    (checks.maximum_pool,),
    keep=aten.max_pool2d.default,
)
MaximumConfig = _Rule("MaximumConfig", (aten.maximum.default,))
MeanDimConfig = _Rule("MeanDimConfig", (aten.mean.dim,), _STATIC, (checks.known_mean,))
MinimumConfig = _Rule("MinimumConfig", (aten.minimum.default,))
MulConfig = _Rule("MulConfig", (aten.mul.Tensor, aten.mul.Scalar), _STATIC)
NegConfig = _Rule("NegConfig", (aten.neg.default,))
PermuteConfig = _Rule("PermuteConfig", (aten.permute_copy.default,), _STATIC)
PowConfig = _Rule("PowConfig", (aten.pow.Tensor_Scalar,), checks=(checks.square,))
PreluConfig = _Rule(
    "PreluConfig",
    (aten.prelu.default, aten._prelu_kernel.default),
    checks=(checks.known_slope,),
    keep=aten.prelu.default,
)
QuantizeAffineConfig = _Rule(
    "QuantizeAffineConfig",
    ("quantize_affine.default",),
    _DYNAMIC,
    (checks.kept_for_layers,),
    keep="torchao::quantize_affine",
    quantizing=True,
)
QuantizedPerTensorConfig = _Rule(
    "QuantizedPerTensorConfig",
    ("quantize_per_tensor.default",),
    _QUANTIZED,
    (checks.one_scale,),
    quantizing=True,
)
ReLUConfig = _Rule("ReLUConfig", (aten.relu.default,), _STATIC)
ReciprocalSquareRootConfig = _Rule("ReciprocalSquareRootConfig", (aten.rsqrt.default,))
SigmoidConfig = _Rule("SigmoidConfig", (aten.sigmoid.default,))
SinConfig = _Rule("SinConfig", (aten.sin.default,))
SliceCopyConfig = _Rule("SliceCopyConfig", (aten.slice_copy.Tensor,), _STATIC, (checks.unit_step,))
SoftmaxConfig = _Rule("SoftmaxConfig", (aten._softmax.default,), checks=(checks.whole_division,))
SquareRootConfig = _Rule("SquareRootConfig", (aten.sqrt.default,))
SubConfig = _Rule("SubConfig", (aten.sub.Tensor, aten.sub.Scalar), _STATIC, (checks.plain_sum,))
TanhConfig = _Rule("TanhConfig", (aten.tanh.default,))
ToDimOrderCopyConfig = _Rule(
    "ToDimOrderCopyConfig", (TO_DIM_ORDER_COPY,), _STATIC, (checks.same_type,)
)
UnsqueezeCopyConfig = _Rule(
    "UnsqueezeCopyConfig", (aten.unsqueeze_copy.default,), _STATIC, (checks.one_unknown,)
)
UpsampleBilinear2dConfig = _Rule(
    "UpsampleBilinear2dConfig",
    (aten.upsample_bilinear2d.vec,),
    checks=(checks.exact_scale,),
)
ViewCopyConfig = _Rule("ViewCopyConfig", (aten.view_copy.default,), _STATIC, (checks.one_unknown,))

ALL_PARTITIONER_CONFIGS: tuple[XNNPartitionerConfig, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, XNNPartitionerConfig)
)
"""Every rule, by name of the operator."""

FLOAT_TYPES = frozenset((torch.float32, torch.float16))
