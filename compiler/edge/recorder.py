"""Runs one operator on fake tensors and records the resulting edge operators."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from compiler.dialect import layout
from compiler.dialect.dim_order import (
    CLONE_DIM_ORDER,
    EMPTY_DIM_ORDER,
    TO_DIM_ORDER_COPY,
    dim_order_of,
    is_contiguous,
)
from compiler.dialect.functional_variants import (
    copy_variant,
    functional_variant,
    has_functional_variant,
    is_view,
)
from compiler.dialect.templates import ScalarConstant, StepResult, TemplateStep, tensors_in, walk
from compiler.edge.aliasing import Sharing
from compiler.edge.decompositions import decomposition_of
from compiler.edge.dtype_promotion import joined_dtype, promoted_dtype, promotes
from compiler.edge.fake_results import result_of
from compiler.errors import HardWriteError, UnsupportedError
from compiler.untyped import SYMBOLIC, DispatchMode, aten, native

_SYMBOL_DTYPES: dict[type[Any], torch.dtype] = {
    torch.SymInt: torch.int64,
    torch.SymFloat: torch.float32,
    torch.SymBool: torch.bool,
}


class Recorder(DispatchMode):
    """Intercepts every operator call; operators with a decomposition are replaced by it.

    Attributes:
        steps: the edge operators seen so far, in order
    """

    def __init__(
        self,
        preserved: frozenset[Any],
        *,
        skip_dim_order: bool,
        keeps: Callable[[Any, Any, Any], bool] | None = None,
        as_package: bool = False,
    ) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] - torch types none
        self.steps: list[TemplateStep] = []
        self._preserved = preserved
        self._keeps = keeps
        self._as_package = as_package
        self._skip_dim_order = skip_dim_order
        # keeps the tensors alive, so that ids are not reused
        self._known: dict[int, tuple[Any, Any]] = {}
        self._sharing = Sharing()

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        if func.namespace == "prim":  # a query about a tensor, such as its device
            return func(*args, **(kwargs or {}))
        return self.call(func, args, dict(kwargs or {}))

    def know(self, tensor: Any, name: Any) -> None:  # noqa: ANN401
        """Set the reference of a tensor."""
        self._known[id(tensor)] = (tensor, name)

    def name_of(self, leaf: Any) -> Any:  # noqa: ANN401
        """Return the reference of a tensor; other leaves are returned unchanged.

        Raises:
            UnsupportedError: the tensor was created outside of recorded operators
            HardWriteError: it was written through a view
        """
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if self._sharing.is_stale(leaf):
            raise HardWriteError("an operator")
        known = self._known.get(id(leaf))
        if known is not None:
            return known[1]
        if leaf.dim() == 0 and not hasattr(leaf, "fake_mode"):  # a scalar wrapped by torch
            return leaf.item()
        raise UnsupportedError("it uses a tensor that is neither an input nor computed")

    def call(self, op: Any, args: Any, kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """Run one operator, fully decomposed, and return its fake result."""
        stays = self._stays(op, args, kwargs)
        rule = None if stays else decomposition_of(op, as_package=self._as_package)
        if rule is not None:
            with self._seeing_composites(), self:
                result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._record(op, tuple(args), kwargs)

    def _seeing_composites(self) -> AbstractContextManager[Any]:
        # With autograd enabled torch decomposes composite operators before a mode sees them.
        below: Any = native._AutoDispatchBelowAutograd
        return contextlib.nullcontext() if self._keeps is None else below()

    def _stays(self, op: Any, args: Any, kwargs: dict[str, Any]) -> bool:  # noqa: ANN401
        if op in self._preserved:
            return True
        return self._keeps is not None and self._keeps(op, args, kwargs)

    def _record(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        if op._schema.is_mutable:
            return self._functional(op, args, kwargs)
        if op is aten.alias.default or op is aten.lift_fresh_copy.default:
            return self._alias(args[0])
        args = self._promoted(op, args, kwargs)
        if is_view(op):
            return self._copied_view(op, self._contiguous(args), kwargs)
        scalar = layout.scalar_overload(op, args)
        if scalar is not None and id(args[1]) not in self._known:
            op, args = scalar, (args[0], _number(args[1]), *args[2:])
        elif not layout.takes_layouts(op, args):
            args = self._contiguous(args)
        out = result_of(op, args, kwargs)
        if op is aten.slice_copy.Tensor and _sizes(out) == _sizes(args[0]):
            return self._alias(args[0])
        if layout.changes_order(op, args, out):
            if isinstance(args[0], torch.Tensor):  # parts to join are contiguous by now
                args = (self._as_contiguous(args[0]), *args[1:])
            out = walk(_fresh, out)
        return self._computed(op, args, kwargs, out)

    def _alias(self, tensor: Any) -> Any:  # noqa: ANN401
        out = aten.alias.default(tensor)  # torch refuses a view that is the same object
        self.know(out, self.name_of(tensor))
        self._sharing.view(tensor, [out])
        return out

    def _functional(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        if not has_functional_variant(op):
            raise HardWriteError(op)
        variant = functional_variant(op)
        with self:
            out = variant(*args, **kwargs)
        self.know(args[0], self.name_of(out))
        self._sharing.write(args[0])
        return args[0]

    def _copied_view(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        # Fake *_copy kernels fail for symbolic sizes; their result is contiguous anyway.
        out = walk(_fresh, op(*args, **kwargs))
        first = args[0]
        if op is aten.slice.Tensor and _sizes(out) == _sizes(first):
            return self._alias(first)
        self._sharing.view(first, tensors_in(out))
        return self.add(copy_variant(op), args, kwargs, out)

    def _computed(
        self,
        op: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        if not tensors_in(out):
            return out
        if self._skip_dim_order:
            return self.add(op, args, kwargs, out)
        if op is aten._to_copy.default:
            return self._cast(args[0], out)
        if op is aten.clone.default:
            return self.add(CLONE_DIM_ORDER, args, {"dim_order": [*dim_order_of(out)]}, out)
        if op is aten.empty.memory_format:
            options = {"dtype": out.dtype, "dim_order": [*dim_order_of(out)]}
            return self.add(EMPTY_DIM_ORDER, args, options, out)
        return self.add(op, args, kwargs, out)

    def _cast(self, source: Any, out: Any) -> Any:  # noqa: ANN401
        order = {"dim_order": [*dim_order_of(out)]}
        if source.dtype != out.dtype:
            return self.add(TO_DIM_ORDER_COPY, (source,), {"dtype": out.dtype, **order}, out)
        if source.shape == out.shape and source.stride() == out.stride():
            return source
        return self.add(TO_DIM_ORDER_COPY, (source,), order, out)

    def _promoted(
        self,
        op: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> tuple[Any, ...]:
        joined = joined_dtype(op, args)
        if joined is not None:
            return walk(lambda leaf: self._as_dtype(leaf, joined), args)
        dtype = promoted_dtype(op, args, kwargs)
        if dtype is None:
            return args
        return (*(self._as_dtype(a, dtype) for a in args[:2]), *args[2:])

    def _as_dtype(self, operand: Any, dtype: torch.dtype) -> Any:  # noqa: ANN401
        if id(operand) not in self._known or operand.dtype == dtype:
            return operand
        return self._computed(
            aten._to_copy.default,
            (operand,),
            {"dtype": dtype},
            aten._to_copy.default(operand, dtype=dtype),
        )

    def _contiguous(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return walk(self._as_contiguous, args)

    def _as_contiguous(self, leaf: Any) -> Any:  # noqa: ANN401
        if not isinstance(leaf, torch.Tensor) or is_contiguous(leaf) or self._skip_dim_order:
            return leaf
        out = aten.clone.default(leaf, memory_format=torch.contiguous_format)
        return self.add(TO_DIM_ORDER_COPY, (leaf,), {"dim_order": [*range(leaf.dim())]}, out)

    def add(self, target: Any, args: Any, kwargs: dict[str, Any], out: Any) -> Any:  # noqa: ANN401
        """Record one operator with its result, and return the result."""
        named = [*walk(self.name_of, tuple(args))]
        for place, formal in enumerate(target._schema.arguments[: len(named)]):
            if str(formal.type) == "Tensor":
                dtype = out.dtype if promotes(target) else None
                named[place] = self._as_tensor(named[place], dtype)
        built = StepResult(len(self.steps))
        self.steps.append(TemplateStep(target, tuple(named), walk(self.name_of, kwargs), out))
        if isinstance(out, torch.Tensor):
            self.know(out, built)
            return out
        for place, item in enumerate(out):
            if isinstance(item, torch.Tensor):
                self.know(item, StepResult(len(self.steps)))
                self.steps.append(TemplateStep(operator.getitem, (built, place), {}, item))
        return out

    def _as_tensor(self, value: Any, dtype: torch.dtype | None) -> Any:  # noqa: ANN401
        """Return the reference of a scalar if the operator expects a tensor."""
        if isinstance(value, (bool, int, float, complex)):
            return ScalarConstant(value, dtype)
        if not isinstance(value, SYMBOLIC):
            return value
        dtype = dtype or _SYMBOL_DTYPES[type(value)]
        fake = aten.empty.memory_format((), dtype=dtype)
        return self.name_of(self.add(aten.scalar_tensor.default, (value,), {"dtype": dtype}, fake))


def _sizes(tensor: torch.Tensor) -> list[str]:
    """Return sizes as expressions: data-dependent ones cannot be compared."""
    return [str(size) for size in tensor.shape]


def _fresh(leaf: Any) -> Any:  # noqa: ANN401
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return aten.empty.memory_format(leaf.shape, dtype=leaf.dtype, device=leaf.device)


def _number(operand: Any) -> Any:  # noqa: ANN401
    return operand.item() if isinstance(operand, torch.Tensor) else operand
