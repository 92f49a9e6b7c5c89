"""Edge operators: a core ATen overload under its name in the edge dialect.

``ops.edge.aten.add.Tensor`` is always the same object, so operators compare by identity.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from compiler.dialect.out_variants import find_out_variant
from compiler.dialect.schema import EdgeSchema
from compiler.dialect.templates import walk
from compiler.dialect.written import WRITTEN_NAMESPACES, schema_name
from compiler.untyped import OpOverload

# Printed graphs and generated code name operators by it; scripts and FileCheck patterns match it.
_PRINTED_MODULE = "executorch.exir.dialects.edge._ops"


class EdgeOp:
    """One operator overload of the edge dialect; calling it runs the ATen overload.

    Attributes:
        op: the overload below
        namespace: as written into files, such as ``aten`` or ``dim_order_ops``
    """

    namespace: str

    def __init__(self, op: Any) -> None:  # noqa: ANN401 - an operator overload of torch
        self.op = op
        self.__module__ = _PRINTED_MODULE

    @functools.cached_property
    def _schema(self) -> EdgeSchema:
        return EdgeSchema(self.op)

    @property
    def _op(self) -> Any:  # noqa: ANN401
        return self.op

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Return an attribute of the ATen overload: its packet, tags, whether it is a view.

        Raises: AttributeError if it has no such attribute
        """
        if name in ("namespace", "__name__", "__qualname__"):
            vars(self).update(self._names())
            return vars(self)[name]
        if name == "op" or name.startswith("__"):  # not created yet, or probed by copy and pickle
            raise AttributeError(name)
        return getattr(self.op, name)

    def _names(self) -> dict[str, str]:
        """Return the name of the operator; `__init__` cannot set it, as Dynamo traces that."""
        namespace, name = schema_name(self.op).split("::")
        whole = f"{namespace}.{name}.{self.op._overloadname}"
        return {"namespace": namespace, "__name__": whole, "__qualname__": whole}

    def to_out_variant(self) -> Any:  # noqa: ANN401 - an operator overload of torch
        """Return torch's overload that writes into memory of the caller.

        Raises: RuntimeError if it does not exist
        """
        found = find_out_variant(self.op)
        if found is None:
            raise RuntimeError(f"SchemaKind.out variant of operator {self.name()} can't be found.")
        return found.op

    @property
    def schema_name(self) -> str:
        """Return ``namespace::operator`` as written into program files."""
        return schema_name(self.op)

    def name(self) -> str:
        """Return ``namespace::operator.overload``."""
        overload = self.op._schema.overload_name
        return f"{self.schema_name}.{overload}" if overload else self.schema_name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Run the ATen overload; while a function is traced, create a node instead."""
        tracers: list[Any] = []
        walk(lambda leaf: _note_tracer(leaf, tracers), (args, kwargs))
        if tracers:
            return tracers[0].create_proxy("call_function", self, args, kwargs)
        return self.op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<EdgeOp: {self.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.op._schema.name, self.op._overloadname)


def _note_tracer(leaf: Any, tracers: list[Any]) -> None:  # noqa: ANN401
    if isinstance(leaf, torch.fx.Proxy):
        tracers.append(leaf.tracer)


@functools.cache
def edge_op(op: Any) -> EdgeOp:  # noqa: ANN401
    """Return the edge operator of an ATen overload."""
    return EdgeOp(op)


def _by_name(name: str, overload: str) -> EdgeOp:
    namespace, base = name.split("::")
    return edge_op(getattr(getattr(getattr(torch.ops, namespace), base), overload))


class _Level:
    """A step of the path ``ops.edge.namespace.operator.overload``."""

    def __init__(self, *below: Any) -> None:  # noqa: ANN401
        self._below = below

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Level) and self._below == other._below

    def __hash__(self) -> int:  # passes look up operators of any overload in sets
        return hash(self._below)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = [getattr(below, name, None) for below in self._below]
        known = [below for below in found if below is not None]
        if not known:
            return getattr(self._below[0], name)  # raises an error that names the unknown operator
        if isinstance(known[0], OpOverload):
            return edge_op(known[0])
        return _Level(*known)


class _Edge:
    def __getattr__(self, name: str) -> _Level:
        if name == "quantized_decomposed":  # torch defines its operators with this import
            from torch.ao.quantization.fx import _decomposed  # a call would not be traced by Dynamo

            del _decomposed
        own = [
            getattr(torch.ops, home)
            for home, written in WRITTEN_NAMESPACES.items()
            if written == name
        ]
        return _Level(*own, getattr(torch.ops, name))


class _Backend(_Edge):
    """Operators of the user that are defined by patterns."""

    def __getattr__(self, name: str) -> _Level:
        if name == "aten":
            raise RuntimeError("aten op library does not belong to backend ops: use ops.edge.aten")
        return super().__getattr__(name)


class _Ops:
    edge = _Edge()
    backend = _Backend()


ops = _Ops()
