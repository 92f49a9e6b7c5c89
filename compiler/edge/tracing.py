"""Builds the template of one operator, once for each kind of arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, Protocol

import torch

from compiler.dialect.functional_variants import functional_variant
from compiler.dialect.templates import Input, Template, metadata_key, walk
from compiler.edge.fixed_sizes import sizes_kept
from compiler.edge.recorder import Recorder
from compiler.errors import HardWriteError
from compiler.untyped import aten, native


class PreservationPolicy(Protocol):
    """Decides which operators are not decomposed, node by node."""

    def kind(self, node: torch.fx.Node, op: Any) -> str:  # noqa: ANN401
        """Return ``whole``, ``parts``, ``refused`` (and nothing inside it), or an empty string."""
        ...

    def preserves_inside(self, op: Any, args: Any, kwargs: Any) -> bool:  # noqa: ANN401
        """Return whether an operator inside the decomposition of another one is preserved."""
        ...

    def as_package(self, node: torch.fx.Node) -> bool:
        """Return whether a node is decomposed as far as the package does it."""
        ...


class Templates:
    """The templates of one program."""

    def __init__(
        self,
        mode: Any,  # noqa: ANN401
        preserved: frozenset[Any],
        *,
        skip_dim_order: bool,
        keeps: PreservationPolicy | None = None,
    ) -> None:
        self._mode = mode
        self._preserved = preserved
        self._skip_dim_order = skip_dim_order
        self._keeps = keeps
        self._kept: dict[Any, Template] = {}

    def of(
        self,
        op: Any,  # noqa: ANN401
        args: Any,  # noqa: ANN401
        kwargs: dict[str, Any],
        node: torch.fx.Node | None = None,
    ) -> Template:
        """Return the template of an operator for these argument nodes.

        Args:
            op: the operator
            args: arguments in the new graph
            kwargs: likewise
            node: of the given graph, which may be preserved
        """
        kind = "" if self._keeps is None or node is None else self._keeps.kind(node, op)
        as_package = self._keeps is not None and node is not None and self._keeps.as_package(node)
        key = metadata_key(op, args, kwargs), kind, as_package
        template = self._kept.get(key)
        if template is None:
            template = self._kept[key] = self._trace(op, args, kwargs, (kind, as_package))
        return template

    def _keeps_of(self, op: Any, kind: str) -> Any:  # noqa: ANN401
        keeps = self._keeps
        if keeps is None or kind == "refused":
            return None
        if not kind:
            return keeps.preserves_inside

        def stays(met: Any, args: Any, kwargs: Any) -> bool:  # noqa: ANN401
            return kind == "whole" if met is op else keeps.preserves_inside(met, args, kwargs)

        return stays

    def _trace(self, op: Any, args: Any, kwargs: dict[str, Any], how: tuple[str, bool]) -> Template:  # noqa: ANN401
        recorder = Recorder(
            self._preserved,
            skip_dim_order=self._skip_dim_order,
            keeps=self._keeps_of(op, how[0]),
            as_package=how[1],
        )
        count = 0
        seen: set[int] = set()

        def bind(leaf: Any) -> Any:  # noqa: ANN401
            nonlocal count
            if not isinstance(leaf, torch.fx.Node):
                return leaf
            value = leaf.meta["val"]
            if isinstance(value, torch.Tensor):
                if id(value) in seen:  # the same node twice, another time two nodes
                    value = value.detach()
                seen.add(id(value))
                recorder.know(value, Input(count))
            count += 1
            return value

        bound, named = walk(bind, (args, kwargs))
        if op._schema.is_mutable:
            # dropout leaves a copy, this leaves no node
            if op is aten.dropout_.default and not bound[2]:
                return Template((), Input(0))
            op = functional_variant(op)
        try:
            sizes = sizes_kept(getattr(self._mode, "shape_env", None), op)
            with sizes, _tracing(self._mode):  # the recorder enters itself where a rule runs
                out = recorder.call(op, bound, named)
        except HardWriteError as error:
            raise HardWriteError(op) from error
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
