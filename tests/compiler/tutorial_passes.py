"""Passes as the documents write them, for any library that has their names."""

from __future__ import annotations

from typing import Any


def passes_of(ops: Any, base: Any) -> dict[str, Any]:
    """Return passes made with the operators and the base class of a library."""
    aten = ops.edge.aten

    class OneToOne(base):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op == aten.relu.default:
                return super().call_operator(aten.sigmoid.default, args, kwargs, meta)
            return super().call_operator(op, args, kwargs, meta)

    class OneToMany(base):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op != aten.add.Tensor:
                return super().call_operator(op, args, kwargs, meta)
            product = super().call_operator(aten.mul.Tensor, args, {}, meta)
            return super().call_operator(aten.sub.Tensor, (product, args[1]), {}, meta)

    class OneToNone(base):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op == aten.sin.default:
                return args[0]
            return super().call_operator(op, args, kwargs, meta)

    class Local(base):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op == aten.mm.default and args[0].to_tensor().shape[1] == 3:
                turned = super().call_operator(
                    aten.permute_copy.default, (args[0], [1, 0]), {}, meta
                )
                args = (
                    super().call_operator(aten.permute_copy.default, (turned, [1, 0]), {}, meta),
                    args[1],
                )
            return super().call_operator(op, args, kwargs, meta)

    return {kind.__name__: kind() for kind in (OneToOne, OneToMany, OneToNone, Local)}
