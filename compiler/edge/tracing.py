"""Makes the template of one operator, once for each kind of arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import torch

from compiler.edge.recorder import Recorder
from compiler.edge.templates import Input, Template, metadata_key, walk
from compiler.edge.twins import functional_twin
from compiler.untyped import aten, native


class Templates:
    """The templates of one program."""

    def __init__(self, mode: Any, preserved: frozenset[Any], *, skip_dim_order: bool) -> None:  # noqa: ANN401
        self._mode = mode
        self._preserved = preserved
        self._skip_dim_order = skip_dim_order
        self._kept: dict[Any, Template] = {}

    def of(self, op: Any, args: Any, kwargs: dict[str, Any]) -> Template:  # noqa: ANN401
        """Return what an operator becomes for these argument nodes."""
        key = metadata_key(op, args, kwargs)
        template = self._kept.get(key)
        if template is None:
            template = self._kept[key] = self._trace(op, args, kwargs)
        return template

    def _trace(self, op: Any, args: Any, kwargs: dict[str, Any]) -> Template:  # noqa: ANN401
        recorder = Recorder(self._preserved, skip_dim_order=self._skip_dim_order)
        count = 0

        def bind(leaf: Any) -> Any:  # noqa: ANN401
            nonlocal count
            if not isinstance(leaf, torch.fx.Node):
                return leaf
            value = leaf.meta["val"]
            if isinstance(value, torch.Tensor):
                value = value.detach()
                recorder.know(value, Input(count))
            count += 1
            return value

        bound, named = walk(bind, (args, kwargs))
        if op._schema.is_mutable:
            if op is aten.dropout_.default and not bound[2]:  # dropout leaves a copy, this nothing
                return Template((), Input(0))
            op = functional_twin(op)
        with _tracing(self._mode):  # the recorder enters itself where a rule runs
            out = recorder.call(op, bound, named)
        return Template(tuple(recorder.steps), walk(recorder.name_of, out))


@contextlib.contextmanager
def _tracing(mode: Any) -> Generator[None, None, None]:  # noqa: ANN401
    # With mkldnn on, aten.lstm would become an operator that has no kernel elsewhere.
    # torch.backends.mkldnn.flags would set TF32 too, which warns on most machines.
    before = native._get_mkldnn_enabled()
    native._set_mkldnn_enabled(False)
    try:
        with mode, torch.no_grad():
            yield
    finally:
        native._set_mkldnn_enabled(before)
