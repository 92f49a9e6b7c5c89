"""Edge operators: a core ATen overload under its name in the edge dialect.

``ops.edge.aten.add.Tensor`` is always the same object, so operators compare by identity.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from compiler.edge.dim_order import NAMESPACE as _OWN_NAMESPACE
from compiler.untyped import OpOverload


class EdgeOp:
    """One operator overload of the edge dialect; calling it runs the ATen overload.

    Attributes:
        op: the overload below
        namespace: as written into files, such as ``aten`` or ``dim_order_ops``
    """

    def __init__(self, op: Any) -> None:  # noqa: ANN401 - an operator overload of torch
        namespace, name = op._schema.name.split("::")
        self.op = op
        self.namespace = "dim_order_ops" if namespace == _OWN_NAMESPACE else namespace
        self.__name__ = f"{self.namespace}.{name}.{op._overloadname}"
        self.__qualname__ = self.__name__

    @property
    def _schema(self) -> Any:  # noqa: ANN401
        return self.op._schema

    @property
    def _op(self) -> Any:  # noqa: ANN401
        return self.op

    @property
    def schema_name(self) -> str:
        """Return ``namespace::operator`` as written into program files."""
        return f"{self.namespace}::{self.op._schema.name.split('::')[1]}"

    def name(self) -> str:
        """Return ``namespace::operator.overload``."""
        overload = self.op._schema.overload_name
        return f"{self.schema_name}.{overload}" if overload else self.schema_name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Run the overload below."""
        return self.op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<EdgeOp: {self.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.op._schema.name, self.op._overloadname)


@functools.cache
def edge_op(op: Any) -> EdgeOp:  # noqa: ANN401
    """Return the edge operator of an ATen overload."""
    return EdgeOp(op)


def _by_name(name: str, overload: str) -> EdgeOp:
    namespace, base = name.split("::")
    return edge_op(getattr(getattr(getattr(torch.ops, namespace), base), overload))


class _Level:
    """A step of the path ``ops.edge.namespace.operator.overload``."""

    def __init__(self, below: Any) -> None:  # noqa: ANN401
        self._below = below

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        below = getattr(self._below, name)
        if isinstance(below, OpOverload):
            return edge_op(below)
        return _Level(below)


class _Edge:
    def __getattr__(self, name: str) -> _Level:
        own = _OWN_NAMESPACE if name == "dim_order_ops" else name
        return _Level(getattr(torch.ops, own))


class _Ops:
    edge = _Edge()


ops = _Ops()
