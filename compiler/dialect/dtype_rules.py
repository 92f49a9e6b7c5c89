"""The dtypes an edge operator accepts, and the dtypes of its results.

A rule is torch's type promotion restricted to the dtypes of the runtime's kernels. Operators
without a
rule are not checked. A letter stands for a dtype, see ``_LETTERS``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

_LETTERS = {
    "b": torch.bool,
    "y": torch.uint8,
    "c": torch.int8,
    "s": torch.int16,
    "i": torch.int32,
    "l": torch.int64,
    "h": torch.float16,
    "g": torch.bfloat16,
    "f": torch.float32,
    "d": torch.float64,
    "u": torch.uint16,
    "z": torch.complex64,
    "Z": torch.complex128,
}
_ALL = "bycsilhgfdu"
_MOVED = _ALL + "zZ"  # by kernels that copy elements, or add and multiply complex ones too
_COMMON = "bycsilhgfd"  # all but uint16
_NUMBERS = "ycsilhgfd"  # those without bool
_FLOATS = "hgfd"

Dtype = torch.dtype
Inputs = Mapping[str, Dtype]
Results = Sequence[Dtype]


def _set(letters: str) -> frozenset[Dtype]:
    return frozenset(_LETTERS[letter] for letter in letters)


@dataclass(frozen=True)
class DtypeRule:
    """The dtype combinations that an operator accepts.

    Attributes:
        allowed: dtypes of the tensors that decide the result's
        results: returns the dtypes a result may have for given inputs; empty if the combination of
            inputs is invalid
        others: dtypes of further inputs, by name
        fixed: dtypes of further results, in order behind the first
    """

    allowed: frozenset[Dtype]
    results: Callable[[Sequence[Dtype]], frozenset[Dtype]]
    others: Mapping[str, frozenset[Dtype]]
    fixed: tuple[Dtype, ...] = ()

    def accepts(self, inputs: Inputs, results: Results) -> bool:
        """Return whether this combination of input and result dtypes is valid; None matches."""
        if any(dtype not in self.others[n] for n, dtype in inputs.items() if n in self.others):
            return False
        deciding = [dtype for name, dtype in inputs.items() if name not in self.others]
        if any(dtype not in self.allowed for dtype in deciding):
            return False
        allowed = self.results(deciding)
        first, rest = list(results), []
        if self.fixed:
            first, rest = first[:1], first[1:]
        return all(dtype in allowed for dtype in first) and list(self.fixed) == rest[: len(rest)]


def _one(dtypes: Sequence[Dtype]) -> frozenset[Dtype]:
    return frozenset(dtypes) if len(set(dtypes)) == 1 else frozenset()


def _promoted(dtypes: Sequence[Dtype]) -> frozenset[Dtype]:
    try:
        return frozenset((functools.reduce(torch.promote_types, dtypes),))
    except RuntimeError:  # uint16 promotes with few other dtypes
        return frozenset()


def _floating(dtypes: Sequence[Dtype]) -> frozenset[Dtype]:
    return frozenset(_float_of(dtype) for dtype in _promoted(dtypes))


def _float_of(dtype: Dtype) -> Dtype:
    return dtype if dtype.is_floating_point else torch.float32


def _length(dtypes: Sequence[Dtype]) -> frozenset[Dtype]:
    return frozenset(torch.float32 if dtype.is_complex else dtype for dtype in _one(dtypes))


def _with_number(dtypes: Sequence[Dtype]) -> frozenset[Dtype]:
    # A scalar may promote an integer tensor to floating point, and a bool tensor to integer.
    own = dtypes[0]
    more = [torch.int64] if own == torch.bool else []
    return frozenset((own, _float_of(own), *more))


def _number_with_number(dtypes: Sequence[Dtype]) -> frozenset[Dtype]:
    return _with_number(dtypes) - {torch.bool}


def _whole_with_number(dtypes: Sequence[Dtype]) -> frozenset[Dtype]:
    return frozenset(d for d in _with_number(dtypes) if not d.is_floating_point)


def _promoted_number(dtypes: Sequence[Dtype]) -> frozenset[Dtype]:
    return _promoted(dtypes) - {torch.bool}


def _always(letters: str) -> Callable[[Sequence[Dtype]], frozenset[Dtype]]:
    found = _set(letters)
    return lambda _: found


def _rule(
    allowed: str,
    results: Callable[[Sequence[Dtype]], frozenset[Dtype]] = _one,
    fixed: str = "",
    **others: str,
) -> DtypeRule:
    sets = {name: _set(letters) for name, letters in others.items()}
    return DtypeRule(_set(allowed), results, sets, tuple(_LETTERS[letter] for letter in fixed))


_BY_OPERATORS: tuple[tuple[str, DtypeRule], ...] = (
    (
        "acos acosh asin asinh atan atanh cos cosh erf exp log logit reciprocal rsqrt sigmoid sin "
        "sinh sqrt tan tanh",
        _rule(_ALL, _floating),
    ),
    (
        "alias_copy as_strided_copy cat clone detach_copy lift_fresh_copy repeat select_copy.int "
        "t_copy transpose_copy.int view_copy expand_copy permute_copy slice_copy.Tensor "
        "squeeze_copy.dim squeeze_copy.dims unsqueeze_copy",
        _rule(_MOVED),
    ),
    (
        "split_copy.Tensor split_with_sizes_copy stack unbind_copy.int constant_pad_nd fill.Scalar",
        _rule(_ALL),
    ),
    ("_log_softmax _softmax gelu glu var.dim elu leaky_relu native_layer_norm", _rule(_FLOATS)),
    ("amax amin pixel_shuffle sign tril", _rule(_COMMON)),
    ("neg relu mm addmm hardtanh", _rule(_NUMBERS)),
    ("bmm", _rule(_NUMBERS + "z")),
    ("abs", _rule(_NUMBERS + "z", _length)),
    ("ceil floor round", _rule(_NUMBERS + "u")),
    ("avg_pool2d", _rule("l" + _FLOATS)),
    ("bitwise_not", _rule("bycsil")),
    (
        "ge.Tensor gt.Tensor le.Tensor lt.Tensor eq.Tensor ne.Tensor logical_and logical_or "
        "logical_xor",
        _rule(_ALL, _always("b")),
    ),
    (
        "ge.Scalar gt.Scalar le.Scalar lt.Scalar eq.Scalar ne.Scalar isinf isnan",
        _rule(_ALL, _always("b")),
    ),
    ("logical_not", _rule(_COMMON, _always("b"))),
    ("any", _rule(_ALL, lambda d: _set("y") if d[0] == torch.uint8 else _set("b"))),
    ("argmax argmin", _rule(_NUMBERS, _always("l"))),
    ("nonzero", _rule(_COMMON, _always("l"))),
    ("add.Tensor mul.Tensor", _rule(_MOVED, _promoted)),
    ("minimum maximum", _rule(_ALL, _promoted)),
    ("sub.Tensor", _rule(_NUMBERS + "uz", _promoted)),
    (
        "div.Tensor_mode floor_divide fmod.Tensor pow.Tensor_Tensor remainder.Tensor",
        _rule(_ALL, _promoted_number),
    ),
    ("div.Tensor", _rule(_ALL, _floating)),
    ("div.Scalar", _rule(_ALL, _floating)),
    ("bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor", _rule("bycsilu", _promoted)),
    (
        "add.Scalar mul.Scalar pow.Tensor_Scalar",
        _rule(_ALL, _with_number),
    ),
    ("fmod.Scalar remainder.Scalar clamp", _rule(_ALL, _number_with_number)),
    ("sub.Scalar rsub.Scalar", _rule(_NUMBERS + "u", _with_number)),
    (
        "bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar",
        _rule("bycsilu", _whole_with_number),
    ),
    ("copy select_scatter slice_scatter", _rule(_ALL, src=_ALL)),
    ("fill.Tensor", _rule(_ALL, value=_ALL)),
    ("embedding", _rule(_MOVED, indices="il")),
    ("index_select", _rule(_MOVED, index="il")),
    ("index.Tensor", _rule(_COMMON + "z", indices="byil")),
    ("index_put", _rule(_COMMON, indices="byil")),
    ("masked_fill.Scalar", _rule(_COMMON, mask="b")),
    ("scatter_add", _rule(_COMMON, index="l")),
    ("where.self", _rule(_ALL, _promoted, condition="by")),
    ("convolution", _rule(_NUMBERS, bias=_ALL)),
    ("max.dim min.dim", _rule(_COMMON, fixed="l")),
    ("max_pool2d_with_indices", _rule(_NUMBERS, fixed="l")),
    ("_to_copy full_like", _rule(_ALL, _always(_ALL))),
    ("cumsum", _rule(_ALL, _always(_NUMBERS))),
    ("sum.dim_IntList", _rule(_MOVED, _always(_COMMON + "z"))),
    ("mean.dim", _rule(_ALL, _always(_FLOATS))),
    ("arange arange.start_step", _rule(_ALL, _always(_NUMBERS))),
    ("empty.memory_format ones zeros full scalar_tensor", _rule(_ALL, _always(_ALL))),
)
_RULES = {name: rule for names, rule in _BY_OPERATORS for name in names.split()}


def dtype_rule_of(op: Any) -> DtypeRule | None:  # noqa: ANN401 - an operator overload of torch
    """Return the rule of an operator, None if it has none."""
    if op.namespace != "aten":
        return None
    name, overload = op._schema.name.removeprefix("aten::"), op._schema.overload_name
    return _RULES.get(f"{name}.{overload}" if overload else name)


@functools.cache
def allowed_types(op: Any) -> Mapping[str, frozenset[Dtype]]:  # noqa: ANN401
    """Return the dtypes of each tensor argument and result of an operator, by name.

    Results without a name are ``__ret_0`` and so on. It is empty for operators without a rule.
    """
    rule = dtype_rule_of(op)
    if rule is None:
        return {}
    tensors = [a.name for a in op._schema.arguments if "Tensor" in str(a.type)]
    found = {name: rule.others.get(name, rule.allowed) for name in tensors}
    deciding = [name for name in tensors if name not in rule.others][:2]
    pairs = itertools.product(sorted(rule.allowed, key=str), repeat=len(deciding))
    results = frozenset(dtype for given in pairs for dtype in rule.results(given))
    returns = [r.name or f"__ret_{i}" for i, r in enumerate(op._schema.returns)]
    further = [frozenset((dtype,)) for dtype in rule.fixed] or [results] * (len(returns) - 1)
    return {**found, **dict(zip(returns, [results, *further], strict=False))}
