"""Results of operators on fake tensors, and the metadata ``val`` computed from them."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable
from typing import Any, cast

import torch
import torch._dispatch.python as _dispatch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from compiler.dialect.dim_order import is_contiguous
from compiler.dialect.layout import changes_order
from compiler.dialect.ops import EdgeOp
from compiler.dialect.templates import tensors_in, walk
from compiler.untyped import aten

_python_dispatcher: Any = cast("Any", _dispatch).enable_python_dispatcher
Node = torch.fx.Node


def fake_mode_of(nodes: Iterable[Node]) -> Any:  # noqa: ANN401 - torch's fake tensor mode
    """Return the fake mode of the tensors of a graph, or a new one."""
    for node in nodes:
        for tensor in tensors_in(node.meta.get("val")):
            if isinstance(tensor, FakeTensor):
                return tensor.fake_mode
    return FakeTensorMode()


@contextlib.contextmanager
def fake_run(mode: Any) -> Generator[None, None, None]:  # noqa: ANN401
    """Run operators on fake tensors; real tensors among their inputs are constants."""
    before = mode.allow_non_fake_inputs
    mode.allow_non_fake_inputs = True
    try:
        with mode, _python_dispatcher(), torch.no_grad():
            yield
    finally:
        mode.allow_non_fake_inputs = before


def fake_result(target: Any, args: Any, kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the result of a call on fake tensors; to be used inside ``fake_run``."""
    if not isinstance(target, EdgeOp):
        return target(*args, **kwargs)
    view = _view_of(target.op)
    if view is None:
        built = target.op(*args, **kwargs)
        if changes_order(target.op, args, built) and is_contiguous(tensors_in(args)[0]):
            return walk(_fresh, built)  # as the kernels of the runtime lay it out
        return built
    # Fake *_copy kernels fail for symbolic sizes; their result is contiguous anyway.
    return walk(_fresh, view(*args, **kwargs))


def _view_of(op: Any) -> Any:  # noqa: ANN401
    name = op._schema.name.split("::")[1]
    if op.namespace != "aten" or torch.Tag.view_copy not in op.tags:
        return None
    packet = getattr(aten, name.removesuffix("_copy"), None)
    return getattr(packet, op._overloadname, None)


def _fresh(leaf: Any) -> Any:  # noqa: ANN401
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return aten.empty.memory_format(leaf.shape, dtype=leaf.dtype, device=leaf.device)


def value_of(node: Node) -> Any:  # noqa: ANN401
    """Return the fake result of a node, computed from the ``val`` of its arguments."""
    args, kwargs = walk(_val, (tuple(node.args), dict(node.kwargs)))
    return fake_result(node.target, args, kwargs)


def _val(leaf: Any) -> Any:  # noqa: ANN401
    return leaf.meta["val"] if isinstance(leaf, Node) else leaf


def same_kind(a: Any, b: Any) -> bool:  # noqa: ANN401
    """Return whether two fake results have equal dtypes, sizes and strides."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return (
            a.dtype == b.dtype
            and a.device == b.device
            and _shown(a.shape) == _shown(b.shape)
            and _shown(a.stride()) == _shown(b.stride())
        )
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        ours: list[Any] = [*cast("Any", a)]
        others: list[Any] = [*cast("Any", b)]
        return len(ours) == len(others) and all(map(same_kind, ours, others))
    return f"{a}" == f"{b}"


def _shown(sizes: Iterable[Any]) -> list[Any]:
    return [size if isinstance(size, int) else str(size) for size in sizes]
