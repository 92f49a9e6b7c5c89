"""Arguments for any core ATen operator: from its schema, or from a line of a table."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

aten: Any = torch.ops.aten
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
DTYPES = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)


@functools.cache
def core_operators() -> tuple[Any, ...]:
    """Return every overload that torch tags as core, by name."""
    found: list[Any] = []
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        packet = getattr(aten, base, None) if namespace == "aten" else None
        op = getattr(packet, overload or "default", None)
        if op is not None and torch.Tag.core in op.tags:
            found.append(op)
    return tuple(found)


def name_of(op: Any) -> str:
    return op.name().removeprefix("aten::")


def channels_last_of(op: Any) -> Arguments:
    """Return the arguments of one call on images whose channels are innermost in memory."""

    def lay_out(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dim() == 4:
            return leaf.contiguous(memory_format=torch.channels_last)
        return leaf

    return pytree.tree_map(lay_out, arguments_of(op, torch.float32, (2, 3, 4, 5)))


def arguments_of(op: Any, dtype: torch.dtype, shape: tuple[int, ...] = (2, 3, 4)) -> Arguments:
    """Return positional and keyword arguments of one call; the same whenever asked.

    The shape is that of tensors about which a table says nothing.
    """
    torch.manual_seed(0)
    make = _BY_NAME.get(name_of(op))
    if make is not None:
        args = make(functools.partial(values, dtype))
        return (args, {}) if isinstance(args, tuple) else (args.pop("args"), args)
    return _from_schema(op, dtype, shape)


def values(dtype: torch.dtype, *shape: int, least: int = -4) -> torch.Tensor:
    """Return numbers in and around the domain of most functions."""
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if dtype.is_floating_point:
        return (torch.randn(shape) if least < 0 else torch.rand(shape) * 3 + least).to(dtype)
    return torch.randint(max(least, torch.iinfo(dtype).min), 6, shape).to(dtype)


def _from_schema(op: Any, dtype: torch.dtype, shape: tuple[int, ...]) -> Arguments:
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for formal in op._schema.arguments:
        if formal.kwarg_only and formal.has_default_value():
            continue
        value = _default(formal, dtype, shape, first=not positional)
        if formal.kwarg_only:
            named[formal.name] = value
        else:
            positional.append(value)
    return tuple(positional), named


def _default(formal: Any, dtype: torch.dtype, shape: tuple[int, ...], *, first: bool) -> Any:
    kind = str(formal.type)
    if formal.name == "dim":
        return [1] if "List" in kind else 1
    if formal.has_default_value() and "Tensor" not in kind:
        return formal.default_value
    if "List[Tensor]" in kind:
        return [values(dtype, *shape), values(dtype, *shape)]
    if "Tensor" in kind:
        return values(dtype, *shape, least=-4 if first else 1)
    return {"number": 2, "bool": False, "Optional[str]": "floor"}[kind]


def _index(*shape: int, below: int = 3) -> torch.Tensor:
    return torch.randint(0, below, shape)


def _complex(real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
    if real.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"no complex numbers of {real.dtype} in torch")
    return torch.complex(real, imaginary)


def _norm(make: Callable[..., torch.Tensor], *, moments: bool) -> tuple[torch.Tensor, ...]:
    found = (make(2, 3, 4, 4), make(3), make(3))
    return (*found, make(3), make(3, least=1)) if moments else found


Make = Callable[[Callable[..., torch.Tensor]], Any]
_IMAGE = (2, 3, 6, 6)
_VOLUME = (1, 2, 5, 6, 6)
_CONVOLUTION = ([2, 1], [1, 1], [1, 1], False, [0, 0], 1)
_FIXED = {"dtype": torch.float32}

# What a schema does not say: shapes that fit together, indices, modes.
_BY_NAME: dict[str, Make] = {
    "_adaptive_avg_pool2d": lambda v: (v(*_IMAGE), [3, 2]),
    "_adaptive_avg_pool2d_backward": lambda v: (v(2, 3, 3, 2), v(*_IMAGE)),
    "_adaptive_avg_pool3d": lambda v: (v(*_VOLUME), [1, 2, 3]),
    "_cdist_forward": lambda v: (v(4, 3), v(5, 3), 2.0, None),
    "_embedding_bag": lambda v: (v(7, 4), _index(6, below=7), torch.tensor([0, 2, 4])),
    "_fft_c2r": lambda v: (_complex(v(3, 4), v(3, 4)), [1], 0, 6),
    "_fft_r2c": lambda v: (v(3, 6), [1], 0, True),
    "_local_scalar_dense": lambda v: (v(1),),
    "_log_softmax": lambda v: (v(2, 5), 1, False),
    "_native_batch_norm_legit": lambda v: (*_norm(v, moments=True), True, 0.1, 1e-5),
    "_native_batch_norm_legit.no_stats": lambda v: (*_norm(v, moments=False), True, 0.1, 1e-5),
    "_native_batch_norm_legit_no_training": lambda v: (*_norm(v, moments=True), 0.1, 1e-5),
    "_pdist_forward": lambda v: (v(5, 3), 2.0),
    "_softmax": lambda v: (v(2, 5), 1, False),
    "_to_copy": lambda v: {"args": (v(2, 3),), "dtype": torch.float32},
    "adaptive_avg_pool1d": lambda v: (v(2, 3, 6), [2]),
    "addmm": lambda v: (v(4), v(2, 3), v(3, 4)),
    "any.dims": lambda v: (v(2, 3, 4), [0, 2]),
    "arange.start_step": lambda v: {"args": (1, 9, 2), "dtype": v().dtype},
    "as_strided": lambda v: (v(3, 4), [2, 2], [4, 1], 1),
    "avg_pool1d": lambda v: (v(2, 3, 6), [2]),
    "avg_pool2d": lambda v: (v(*_IMAGE), [2, 3], [1, 2], [1, 1]),
    "avg_pool2d_backward": lambda v: (
        *(v(2, 3, 3, 3), v(*_IMAGE), [2, 2], [2, 2], [0, 0], False, True, None),
    ),
    "avg_pool3d": lambda v: (v(*_VOLUME), [2, 2, 2]),
    "bmm": lambda v: (v(2, 3, 4), v(2, 4, 5)),
    "clamp": lambda v: (v(2, 3), -1, 1),
    "clamp.Tensor": lambda v: (v(2, 3), v(3), v(2, 3, least=1)),
    "col2im": lambda v: (v(1, 12, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
    "constant_pad_nd": lambda v: (v(2, 3), [1, 2, 0, 1], 1),
    "convolution": lambda v: (v(*_IMAGE), v(4, 3, 3, 3), v(4), *_CONVOLUTION),
    "convolution_backward": lambda v: (
        *(v(2, 4, 3, 6), v(*_IMAGE), v(4, 3, 3, 3), [4], *_CONVOLUTION, [True, True, True]),
    ),
    "diagonal": lambda v: (v(3, 4), 1),
    "embedding": lambda v: (v(7, 4), _index(2, 3, below=7)),
    "embedding_dense_backward": lambda v: (v(2, 3, 4), _index(2, 3), 5, -1, False),
    "empty.memory_format": lambda v: {"args": ([2, 3],), "dtype": v().dtype},
    "empty_strided": lambda v: {"args": ([2, 3], [3, 1]), "dtype": v().dtype},
    "expand": lambda v: (v(2, 1, 3), [2, 4, 3]),
    "flip": lambda v: (v(2, 3, 4), [0, 2]),
    "full": lambda v: {"args": ([2, 3], 1), "dtype": v().dtype},
    "gather": lambda v: (v(3, 4), 1, _index(3, 2)),
    "grid_sampler_2d": lambda v: (v(*_IMAGE), v(2, 4, 4, 2), 0, 0, False),
    "index.Tensor": lambda v: (v(3, 4, 5), [None, _index(2, below=4), _index(2)]),
    "index_put": lambda v: (v(3, 4), [_index(2)], v(2, 4)),
    "index_select": lambda v: (v(3, 4), 1, _index(5, below=4)),
    "isinf": lambda v: (v(2, 3) / 0,) if v().is_floating_point() else (v(2, 3),),
    "isnan": lambda v: (v(2, 3) * math.nan,) if v().is_floating_point() else (v(2, 3),),
    "masked_scatter": lambda v: (v(3, 4), torch.rand(3, 4) > 0.5, v(12)),
    "max_pool2d_with_indices": lambda v: (v(*_IMAGE), [3, 2], [2, 2], [1, 0]),
    "max_pool2d_with_indices_backward": lambda v: (
        *(v(2, 3, 3, 3), v(*_IMAGE), [2, 2], [2, 2], [0, 0], [1, 1], False),
        aten.max_pool2d_with_indices(torch.rand(_IMAGE), [2, 2])[1],
    ),
    "max_pool3d_with_indices": lambda v: (v(*_VOLUME), [2, 2, 2]),
    "mean": lambda v: (v(2, 3),),
    "mm": lambda v: (v(2, 3), v(3, 4)),
    "native_dropout": lambda v: (v(2, 3), 0.5, False),
    "native_group_norm": lambda v: (v(2, 4, 3), v(4), v(4), 2, 4, 3, 2, 1e-5),
    "native_group_norm_backward": lambda v: (
        *(v(2, 4, 3), v(2, 4, 3), v(2, 2), v(2, 2), v(4), 2, 4, 3, 2, [True, True, True]),
    ),
    "native_layer_norm": lambda v: (v(2, 3, 4), [4], v(4), v(4), 1e-5),
    "native_layer_norm_backward": lambda v: (
        *(v(2, 4), v(2, 4), [4], v(2, 1), v(2, 1), v(4), v(4), [True, True, True]),
    ),
    "permute": lambda v: (v(2, 3, 4), [2, 0, 1]),
    "rand": lambda v: {"args": ([2, 3],), "dtype": v().dtype},
    "randn": lambda v: {"args": ([2, 3],), "dtype": v().dtype},
    "randperm": lambda v: {"args": (5,), "dtype": v().dtype},
    "reflection_pad1d": lambda v: (v(2, 3, 4), [1, 2]),
    "reflection_pad2d": lambda v: (v(*_IMAGE), [1, 2, 0, 1]),
    "reflection_pad3d": lambda v: (v(*_VOLUME), [1, 2, 0, 1, 1, 1]),
    "repeat": lambda v: (v(2, 3), [2, 1, 2]),
    "replication_pad2d": lambda v: (v(*_IMAGE), [1, 2, 0, 1]),
    "replication_pad3d": lambda v: (v(*_VOLUME), [1, 2, 0, 1, 1, 1]),
    "resize_": lambda v: (v(2, 3), [2, 3]),  # an input keeps its shape
    "scalar_tensor": lambda v: {"args": (2,), "dtype": v().dtype},
    "scatter.src": lambda v: (v(3, 4), 1, torch.tensor([[0, 2], [1, 3], [3, 0]]), v(3, 2)),
    "scatter.value": lambda v: (v(3, 4), 1, _index(3, 2), 1),
    "scatter_add": lambda v: (v(3, 4), 1, _index(3, 2), v(3, 2)),
    "scatter_reduce.two": lambda v: (v(3, 4), 1, _index(3, 2), v(3, 2), "amax"),
    "select.int": lambda v: (v(3, 4), 1, 2),
    "select_scatter": lambda v: (v(3, 4), v(3), 1, 2),
    "slice.Tensor": lambda v: (v(3, 6), 1, 1, 6, 2),
    "slice_scatter": lambda v: (v(3, 4), v(3, 2), 1, 1, 3),
    "split_with_sizes": lambda v: (v(5, 2), [2, 3]),
    "squeeze.dim": lambda v: (v(2, 1, 3), 1),
    "squeeze.dims": lambda v: (v(2, 1, 3, 1), [1, 3]),
    "topk": lambda v: (torch.randperm(10).reshape(2, 5).to(v().dtype), 2),
    "max.dim": lambda v: (torch.randperm(12).reshape(3, 4).to(v().dtype), 1),
    "min.dim": lambda v: (torch.randperm(12).reshape(3, 4).to(v().dtype), 1),
    "argmax": lambda v: (torch.randperm(12).reshape(3, 4).to(v().dtype), 1),
    "argmin": lambda v: (torch.randperm(12).reshape(3, 4).to(v().dtype), 1),
    "sort": lambda v: (torch.randperm(10).reshape(2, 5).to(v().dtype),),
    "upsample_bilinear2d.vec": lambda v: (v(*_IMAGE), [9, 8], False, None),
    "upsample_nearest2d.vec": lambda v: (v(*_IMAGE), None, [2.0, 1.5]),
    "view": lambda v: (v(2, 6), [3, 4]),
    "where.self": lambda v: (torch.rand(2, 3) > 0.5, v(2, 3), v(2, 3)),
}
