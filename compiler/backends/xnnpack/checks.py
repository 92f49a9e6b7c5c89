"""Constraints of rules: each returns why a node cannot be delegated, empty if it can.

A reason names the offending value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from compiler.backends.xnnpack.facts import (
    Facts,
    argument,
    bounds_of,
    is_symbolic,
    is_tensor,
    numbers,
    op_of,
    rank_of,
    shape_of,
    unknown_sizes,
    value_of,
)
from compiler.backends.xnnpack.patterns import known_bias
from compiler.backends.xnnpack.quantization import (
    affine_of,
    affine_of_value,
    home_of,
    is_quantize,
    why_not_exact,
)
from compiler.backends.xnnpack.row_means import is_row_mean, why_no_row_mean
from compiler.backends.xnnpack.views import MAX_RANK
from compiler.partition.inferred_sizes import inferred_sizes
from compiler.partition.regions import results_taken
from compiler.untyped import aten

Node = torch.fx.Node
Check = Callable[[Node, Facts], str]
_SIGNAL, _IMAGE = 3, 4  # dimensions of a batch


def plain_sum(node: Node, facts: Facts) -> str:
    """The second operand must not be scaled."""
    del facts
    alpha = argument(node, "alpha")
    return "" if alpha is None or alpha == 1 else f"alpha is {alpha}, only 1 is supported"


def whole_division(node: Node, facts: Facts) -> str:
    """The dimension of a softmax must be the last, and its result of the operand's type."""
    del facts
    dim, rank = argument(node, "dim"), rank_of(node)
    if dim not in (-1, rank - 1):
        return f"dim is {dim} of {rank} dimensions, only the last one is supported"
    return "half_to_float is set" if argument(node, "half_to_float") else ""


def square(node: Node, facts: Facts) -> str:
    """The exponent must be 2."""
    del facts
    power = argument(node, "exponent")
    return "" if power == 2 else f"the exponent is {power}, only 2 is supported"


def exact_gelu(node: Node, facts: Facts) -> str:
    """The payload has the form with the error function, and not in float16."""
    del facts
    form = argument(node, "approximate")
    if form != "none":
        return f"approximate is {form!r}, and the payload has only the exact form"
    return "float16 is not supported" if value_of(node).dtype is torch.float16 else ""


def plain_elu(node: Node, facts: Facts) -> str:
    """Only alpha can be chosen."""
    del facts
    for name in ("scale", "input_scale"):
        if argument(node, name) != 1:
            return f"{name} is {argument(node, name)}, only 1 is supported"
    alpha = argument(node, "alpha")
    return "" if math.isfinite(alpha) else f"alpha is {alpha}, which the kernels refuse"


def numeric_bounds(node: Node, facts: Facts) -> str:
    """A clamp must have known bounds, the lower one below the upper one."""
    del facts
    found = bounds_of(node)
    if found is None:
        low, high = argument(node, "min"), argument(node, "max")
        return f"the bounds {low} and {high} are not both known"
    low, high = found
    return "" if low < high else f"min {low:g} is not below max {high:g}, which the kernels refuse"


def finite_slope(node: Node, facts: Facts) -> str:
    """The slope must be finite."""
    del facts
    slope = argument(node, "negative_slope")
    return "" if math.isfinite(slope) else f"the slope is {slope}, which the kernels refuse"


def simple_division(node: Node, facts: Facts) -> str:
    """Integer division and rounded division have no XNNPACK node."""
    del facts
    mode = argument(node, "rounding_mode")
    return f"rounding_mode is {mode!r}" if mode else ""


def several_parts(node: Node, facts: Facts) -> str:
    """A concatenation needs at least two tensors."""
    del facts
    count = len(argument(node, "tensors"))
    return "" if count > 1 else f"it concatenates {count} tensor, expected at least 2"


def positive_padding(node: Node, facts: Facts) -> str:
    """Padding must not be negative, and in float16 only with zeros, as the kernels do."""
    del facts
    given, value = list(argument(node, "pad")), argument(node, "value") or 0
    if value and value_of(node).dtype is torch.float16:
        return f"value is {value} in float16, where the kernels pad with 0 only"
    wrong = [size for size in given if is_symbolic(size) or size < 0]
    return f"pad is {given}, negative or symbolic sizes are not supported" if wrong else ""


def unit_step(node: Node, facts: Facts) -> str:
    """A slice must have step 1; where sizes change, along a known one and computed with."""
    del facts
    step = argument(node, "step")
    if step != 1:
        return f"step is {step}, only 1 is supported"
    given: Any = node.args[0]
    dim = argument(node, "dim") % rank_of(node)
    for each, what in ((given, "the operand"), (node, "the result")):
        shape = shape_of(each)
        if is_symbolic(shape[dim]) or any(not is_symbolic(size) and size == 0 for size in shape):
            return (
                f"{what} has the shape {list(shape)}, the size of dimension {dim} must be static "
                "and none 0"
            )
    changing = any(map(is_symbolic, shape_of(given)))
    if changing and all(user.op == "output" or op_of(user) is op_of(node) for user in node.users):
        return "sizes are only known at run time, and nothing that computes reads the result"
    start = argument(node, "start")
    return (
        f"start is {start}, which is not known" if start is not None and is_symbolic(start) else ""
    )


def one_unknown(node: Node, facts: Facts) -> str:
    """At most one size of a reshaped value can be inferred."""
    del facts
    found = unknown_sizes(shape_of(node))
    if len(found) > 1:
        return f"sizes {', '.join(found)} are only known at run time, one can be inferred"
    return ""


def average(node: Node, facts: Facts) -> str:
    """The average must be over entire windows, without padding, and divide by their size."""
    del facts
    size = numbers(argument(node, "kernel_size"), 2)
    if argument(node, "ceil_mode"):
        return "ceil_mode is set"
    if argument(node, "count_include_pad") and any(numbers(argument(node, "padding"), 2)):
        padding = argument(node, "padding")
        return f"padding {padding} is included in the average, which is not supported"
    divisor = argument(node, "divisor_override")
    if divisor is not None and divisor != size[0] * size[1]:
        return f"divisor_override is {divisor}, windows have {size[0] * size[1]} elements"
    return _window(node, size)


def maximum_pool(node: Node, facts: Facts) -> str:
    """Windows must overlap or touch, and have more than one element."""
    del facts
    size = numbers(argument(node, "kernel_size"), 2)
    stride = numbers(argument(node, "stride") or size, 2)
    if stride[0] > size[0] or stride[1] > size[1]:
        return f"stride {list(stride)} is larger than the kernel {list(size)}"
    given: Any = node.args[0]
    if argument(node, "ceil_mode") and any(map(is_symbolic, shape_of(given)[2:])):
        return f"ceil_mode is set and the operand is {list(shape_of(given))}, sizes must be static"
    return _window(node, size) or _only_values(node)


def _window(node: Node, size: tuple[int, ...]) -> str:
    given: Any = node.args[0]
    if rank_of(given) != _IMAGE:
        return f"the operand has {rank_of(given)} dimensions, only 4 is supported"
    if size[0] * size[1] == 1:
        return "the kernel is [1, 1], which the kernels refuse"
    return ""


def _only_values(node: Node) -> str:
    wrong = [user.name for user in results_taken(node) if user.args[1] != 0]
    wrong += [u.name for u in node.users if u not in results_taken(node)] * _has_several(node)
    return f"{wrong[0]} is read for more than its values" if wrong else ""


def _has_several(node: Node) -> bool:
    return isinstance(node.meta.get("val"), (tuple, list))


def known_mean(node: Node, facts: Facts) -> str:
    """The mean must reduce height and width, or the last dimension."""
    given: Any = node.args[0]
    rank = rank_of(given)
    if argument(node, "dtype") is not None:
        return f"dtype is {argument(node, 'dtype')}"
    if is_row_mean(node):
        return why_no_row_mean(node)
    if rank != _IMAGE:
        return f"the operand has {rank} dimensions, only 4 is supported"
    dims = sorted(dim % rank for dim in numbers(argument(node, "dim"), 1) or range(rank))
    if dims != [2, 3]:
        return f"dims are {dims}, only [2, 3] and [3] are supported"
    return "" if argument(node, "keepdim") else one_unknown(node, facts)


def max_of_images(node: Node, facts: Facts) -> str:
    """The maximum must reduce height or width, and its indices must be unused."""
    given: Any = node.args[0]
    dim = argument(node, "dim")
    if rank_of(given) != _IMAGE:
        return f"the operand has {rank_of(given)} dimensions, only 4 is supported"
    if dim % _IMAGE not in (2, 3):
        return f"dim is {dim}, only 2 and 3 are supported"
    size = shape_of(given)[dim]
    if is_symbolic(size) or size == 1:
        return f"the dimension has size {size}, it must be static and more than 1"
    return _only_values(node) or ("" if argument(node, "keepdim") else one_unknown(node, facts))


def exact_scale(node: Node, facts: Facts) -> str:
    """The scale factor must be the ratio of the sizes, from which the kernels compute it."""
    del facts
    given: Any = node.args[0]
    if any(map(is_symbolic, (*shape_of(node), *shape_of(given)[2:]))):
        return f"the result is {list(shape_of(node))}, sizes must be static"
    factors = argument(node, "scale_factors")
    if factors is None or argument(node, "align_corners"):
        return ""
    for size, built, factor in zip(shape_of(given)[2:], shape_of(node)[2:], factors, strict=True):
        if size * factor != built:
            return (
                f"scale factor {factor} of size {size} gives {built}, which is a different factor"
            )
    return ""


def known_slope(node: Node, facts: Facts) -> str:
    """The slope of a prelu must be a constant."""
    slope: Any = node.args[1]
    if not facts.is_constant(slope):
        return f"its weight {slope} is not a static parameter"
    return one_unknown(node, facts) if rank_of(node) == _SIGNAL else ""


def same_type(node: Node, facts: Facts) -> str:
    """A copy must not change the dtype."""
    del facts
    given: Any = node.args[0]
    first, second = value_of(given).dtype, value_of(node).dtype
    return "" if first == second else f"it converts {first} to {second}"


def same_sizes(node: Node, facts: Facts) -> str:
    """An expand must be a no-op."""
    del facts
    given: Any = node.args[0]
    before, after = shape_of(given), shape_of(node)
    same = [*map(str, before)] == [*map(str, after)]  # comparing symbols themselves would fix them
    return "" if same else f"it expands {list(before)} to {list(after)}"


def inference_norm(node: Node, facts: Facts) -> str:
    """The parameters of a batch norm must be constants, and only its first result used."""
    for given in node.args[1:5]:
        if given is not None and not facts.is_constant(given):
            return f"{given} is not a static parameter"
    return _only_values(node)


def image_convolution(node: Node, facts: Facts) -> str:
    """Weights must be constants, and the convolution one- or two-dimensional."""
    weight: Any = node.args[1]
    dims = rank_of(weight) - 2
    if dims not in (1, 2):
        return f"it has {dims} spatial dimensions, only 1 and 2 are supported"
    given: Any = node.args[0]
    unknown = unknown_sizes(shape_of(given))
    if dims == 1 and len(unknown) > 1:
        return f"sizes {', '.join(unknown)} of a signal are symbolic, one can be inferred"
    if argument(node, "transposed") and value_of(node).dtype is torch.float16:
        return "it is transposed and float16, which the kernels of most processors refuse to run"
    return _beyond_stride(node, dims) or _static(node, facts, (1, 2))


def _beyond_stride(node: Node, dims: int) -> str:
    """Return why the output sizes of a transposed convolution are not supported."""
    if not argument(node, "transposed"):
        return ""
    more, stride = (numbers(argument(node, name), dims) for name in ("output_padding", "stride"))
    if all(extra < step for extra, step in zip(more, stride, strict=True)):
        return ""
    return f"output_padding {list(more)} is not below the stride {list(stride)}"


def linear_layer(node: Node, facts: Facts) -> str:
    """Weight and bias must be constants, a matrix and a vector, and ``addmm`` without scaling."""
    places = (2, 0) if op_of(node) is aten.addmm.default else (1, 2)
    weight: Any = node.args[places[0]]
    if rank_of(weight) != 2:
        return f"its weight {weight} has {rank_of(weight)} dimensions, not 2"
    return _plain_product(node, facts) or _static(node, facts, places)


def layer_with_given_weight(node: Node, facts: Facts) -> str:
    """``addmm`` must be without scaling, and its bias a vector; both may be runtime values."""
    if op_of(node) is not aten.addmm.default:
        return ""
    bias: Any = node.args[0]
    wrong = "" if rank_of(bias) == 1 else f"its bias {bias} has {rank_of(bias)} dimensions, not 1"
    return _plain_product(node, facts) or wrong


def _plain_product(node: Node, facts: Facts) -> str:
    for name in ("alpha", "beta") if op_of(node) is aten.addmm.default else ():
        if argument(node, name) != 1:
            return f"{name} is {argument(node, name)}, only 1 is supported"
    return vector_bias(node, facts)


def vector_bias(node: Node, facts: Facts) -> str:
    """The bias of a matmul must have one value per column."""
    del facts
    given: Any = node.args
    if op_of(node) is aten.addmm.default:
        bias, last = given[0], shape_of(given[2])[1]
    elif op_of(node) is aten.linear.default and len(given) > 2 and given[2] is not None:
        bias, last = given[2], shape_of(given[1])[0]
    else:
        return ""
    sizes = shape_of(bias)
    if sizes not in ((last,), (1, last)):
        return f"the summand {bias} has the shape {list(sizes)}, not one value a column"
    return ""


def _static(node: Node, facts: Facts, places: tuple[int, int]) -> str:
    for place, what in zip(places, ("weight", "bias"), strict=True):
        given: Any = node.args[place] if place < len(node.args) else None
        if given is None:
            continue
        known = home_of(given, facts) if what == "weight" else known_bias(given, facts)
        if not known:
            return f"its {what} {given} is not a static parameter"
    return ""


def one_scale(node: Node, facts: Facts) -> str:
    """A value must be statically quantized to int8 with one scale."""
    affine = affine_of(node)
    if affine is None:
        return "it is not quantized to int8 with one scale that is static"
    given: Any = node.args[0]
    if facts.is_constant(given):
        return f"its operand {given} is a static parameter"
    if rank_of(node) > MAX_RANK:
        return f"it has {rank_of(node)} dimensions, more than {MAX_RANK}"
    if not is_quantize(node) and affine_of_value(given) != affine:
        return f"{given} has other quantization parameters at its source, or at other users"
    return why_not_exact(affine) or common(node, _QUANTIZING, mixed=True)


def kept_for_layers(node: Node, facts: Facts) -> str:
    """A torchao quantize operator is delegated with its layer; alone it has no XNNPACK node."""
    del node, facts
    return "no layer uses it"


_QUANTIZING = frozenset((torch.float32, torch.int8))


def common(node: Node, dtypes: frozenset[torch.dtype], *, mixed: bool = False) -> str:
    """Return why any node is unsupported: dtypes, sizes, ranks.

    Args:
        node: a call
        dtypes: dtypes it may have
        mixed: operands may differ in theirs
    """
    given = [n for n in node.all_input_nodes if n.op != "get_attr"]
    if inferred_sizes(node) is not None:
        given = given[:1]
    reference: torch.dtype | None = None
    # Placeholder results of an operator inside another one have no value yet.
    for each in (*given, *([node] if "val" in node.meta else [])):
        if not is_tensor(each) and each is not node:
            if isinstance(each.meta.get("val"), (tuple, list)):
                continue
            return _no_tensor(each, node)
        value = value_of(each)
        where = "its result" if each is node else each.name
        found = _wrong(value, dtypes)
        if found:
            return f"{where} {found}"
        if each is not node and not mixed and value.dtype != (reference or value.dtype):
            return f"operands are {reference} and {value.dtype}"
        reference = reference or value.dtype
    return ""


def _no_tensor(given: Node, node: Node) -> str:
    """Return why a node cannot take a non-tensor operand, with all of them for symbolic sizes."""
    values = [n.meta.get("val") for n in node.all_input_nodes]
    sizes = [str(value) for value in values if isinstance(value, torch.SymInt)]
    if not isinstance(given.meta.get("val"), torch.SymInt):
        return f"{given.name} is not a tensor"
    return f"its arguments {', '.join(sizes)} are sizes that are only known at run time"


def _wrong(value: torch.Tensor, dtypes: frozenset[torch.dtype]) -> str:
    if value.dtype not in dtypes:
        return f"is {str(value.dtype).removeprefix('torch.')}"
    if value.dim() > MAX_RANK:
        return f"has {value.dim()} dimensions, more than {MAX_RANK}"
    sizes: tuple[Any, ...] = tuple(value.shape)
    if any(not is_symbolic(size) and size == 0 for size in sizes):
        return f"is empty: {list(sizes)}"
    unknown = [str(size) for size in sizes if is_symbolic(size) and size.node.hint is None]
    return f"has sizes that depend on data: {', '.join(unknown)}" if unknown else ""
