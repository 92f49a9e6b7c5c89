"""Lowers one graph to one payload: values on first use, steps in order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.backends.xnnpack.facts import (
    is_symbolic,
    is_tensor,
    shape_of,
    static_size,
    unknown_sizes,
    value_of,
)
from compiler.backends.xnnpack.layout import (
    Layout,
    boundary,
    in_layout,
    in_memory,
    moves_data,
    plain,
    transposition,
)
from compiler.backends.xnnpack.placement import Placement
from compiler.backends.xnnpack.quantization import Affine, affine_of, dynamic_chain
from compiler.backends.xnnpack.shared_constants import stored_layout
from compiler.backends.xnnpack.steps import PayloadStep, PayloadSteps
from compiler.backends.xnnpack.writer import DATATYPES, QDINT8, PayloadWriter
from compiler.errors import UnsupportedError, at
from compiler.interface.external_weights import mark_behind
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack import nodes as n

Node = torch.fx.Node


class Lowering:
    """Writes the payload of a graph; steps request their operands by node and layout.

    Attributes:
        steps: the graph
        writer: the payload
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.steps = PayloadSteps(program)
        self._home = Placement(self.steps).home
        self.writer = PayloadWriter(len(self.steps.inputs) + len(self.steps.outputs))
        self._ids: dict[tuple[Node, Layout], int] = {}
        self._tensors: dict[tuple[Node, Layout, Affine | None], int] = {}
        self._leaving: dict[tuple[Node, Layout], int] = {}
        self._left: set[int] = set()
        self._rows: dict[tuple[int, int], tuple[int, int]] = {}
        self._step: PayloadStep | None = None
        self._enter()

    def _enter(self) -> None:
        for place, node in enumerate(self.steps.inputs):
            if not is_tensor(node):
                continue  # a size: its slot stays empty
            layout = self._home[node]
            dims = self._dims(node, layout)
            self._ids[node, layout] = self._value(
                node, dims, external=place, flags=m.EXTERNAL_INPUT
            )
        for place, node in enumerate(self.steps.outputs, len(self.steps.inputs)):
            key = self.steps.root(node), boundary(value_of(node))
            if key[0] in self.steps.built:
                self._leaving.setdefault(key, place)

    def home(self, node: Node) -> Layout:
        """Return the layout in which a value is computed."""
        return self._home[self.read(node)]

    def read(self, node: Node) -> Node:
        """Return the node whose value the current step reads for an operand."""
        return self.steps.root(self.steps.read_by(self._step, node))

    def begin(self, step: PayloadStep) -> None:
        """Set the step whose operands are requested from now on."""
        self._step = step
        self.writer.origins = tuple(node.name for node in step.nodes)

    def _value(self, node: Node, dims: Sequence[int], **where: Any) -> int:  # noqa: ANN401
        """Define a value with the dtype of a node, and its scale if it has one."""
        affine, dtype = self.steps.affine(node), value_of(node).dtype
        if affine is not None:
            return self.writer.value(
                DATATYPES[torch.int8], dims, quantization=_written(affine), **where
            )
        if dtype not in DATATYPES or dtype is torch.int8:
            raise UnsupportedError(f"{node} is {dtype}, which has no scale, {at(node)}")
        return self.writer.value(DATATYPES[dtype], dims, **where)

    def _dims(self, node: Node, layout: Layout) -> tuple[int, ...]:
        return tuple(map(static_size, in_memory(shape_of(node), layout)))

    def result(self, node: Node) -> int:
        """Define the value of a step in its assigned layout and return its id."""
        return self._defined(node, self._home[node])

    def _defined(self, root: Node, layout: Layout) -> int:
        external = self._leaving.get((root, layout), m.NO_VALUE)
        leaves = external != m.NO_VALUE
        if leaves:
            self._left.add(external)
        self._ids[root, layout] = self._value(
            root,
            self._dims(root, layout),
            external=external,
            flags=m.EXTERNAL_OUTPUT if leaves else 0,
        )
        return self._ids[root, layout]

    def operand(self, node: Node, layout: Layout | None = None) -> int:
        """Return the id of a value in a layout; None keeps its layout."""
        root = self.read(node)
        if self.steps.is_constant(root):
            requested = layout or plain(value_of(node).dim())
            return self.known(node, requested)
        requested = layout or self._home[root]
        if (root, requested) not in self._ids:
            self._convert(root, requested)
        return self._ids[root, requested]

    def rows(self, node: Node, layout: Layout, per_row: int) -> int:
        """Return the id of a dynamically quantized value.

        Args:
            node: a floating-point value
            layout: requested layout
            per_row: how many of the last dimensions in memory share a scale
        """
        source = self.operand(node, layout)
        key, handles = (source, per_row), self._chain_handles(node)
        outer, self.writer.origins = self.writer.origins, _chain_names(node)
        if key in self._rows:
            built, place = self._rows[key]
            self.writer.stands_for(place, handles)
        else:
            dims = self._dims(node, layout)
            built = self.writer.value(QDINT8, dims, quantization=m.PerTokenDynamicQuant(per_row))
            place = self.writer.node(n.Unary("Convert", source, built), handles)
            self._rows[key] = built, place
        self.writer.origins = outer
        return built

    def _chain_handles(self, node: Node) -> tuple[int, ...]:
        found = [one.meta.get("debug_handle") for one in dynamic_chain(node)]
        return tuple(handle for handle in reversed(found) if isinstance(handle, int))

    def known(self, node: Node, layout: Layout) -> int:
        """Return the id of an operand known at compile time, as the current step reads it."""
        read = self.steps.read_by(self._step, node)
        affine = affine_of(node) if read is not node else None
        root = self.steps.root(read)
        with self.filed_with(root):
            return self.constant(root, self.steps.constant(read), layout, affine=affine)

    def constant(
        self, node: Node, tensor: torch.Tensor, layout: Layout, affine: Affine | None = None
    ) -> int:
        """Return the id of a constant in a layout; one of lower rank is spread as by torch."""
        rank = max((d for d in layout), default=-1) + 1
        key = node, layout, affine
        stored = stored_layout(node, layout) if affine is None else None
        if key not in self._tensors and stored is not None:
            ident = self.constant(node, tensor, stored)
            self._tensors[key] = self._transposed(node, ident, (stored, layout))
        elif key not in self._tensors:
            whole = tensor.reshape((1,) * (rank - tensor.dim()) + tuple(tensor.shape))
            params = None if affine is None else _written(affine)
            self._tensors[key] = self.fixed(in_layout(whole, layout), params)
        return self._tensors[key]

    def _transposed(self, node: Node, ident: int, layouts: tuple[Layout, Layout]) -> int:
        """Transpose a constant when the payload runs; return the id of the result."""
        built: list[int] = []

        def define() -> int:
            built.append(self.inner(node, self._dims(node, layouts[1])))
            return built[-1]

        self.rearrange(node, ident, layouts, define)
        return built[-1]

    @contextmanager
    def filed_with(self, *weights: object) -> Generator[None]:
        """Store constants added in the context in the file of the first marked weight.

        Args:
            weights: nodes, or values derived from weights; other values are ignored
        """
        outer = self.writer.file
        marks = (mark_behind(node) for node in weights if isinstance(node, Node))
        self.writer.file = next((mark for mark in marks if mark is not None), outer)
        try:
            yield
        finally:
            self.writer.file = outer

    def fixed(self, tensor: torch.Tensor, params: m.QuantParams | None = None) -> int:
        """Add a constant in its memory layout and return the id of its value."""
        place, dtype = self.writer.constant(tensor), DATATYPES[tensor.dtype]
        return self.writer.value(dtype, tuple(tensor.shape), constant=place, quantization=params)

    def fixed_in(self, tensor: torch.Tensor, layout: Layout) -> int:
        """Add a constant in a layout and return the id of its value."""
        return self.fixed(in_layout(tensor, layout))

    def inner(self, like: Node, dims: Sequence[int]) -> int:
        """Add an internal value of the payload with the dtype of a node."""
        return self._value(like, dims)

    def _convert(self, root: Node, requested: Layout) -> None:
        sizes, home = shape_of(root), self._home[root]
        ident = self._ids[root, home]
        same = self._dims(root, home) == self._dims(root, requested)
        if same and not moves_data(sizes, home, requested) and not any(map(is_symbolic, sizes)):
            self._ids[root, requested] = ident
            return
        self.rearrange(root, ident, (home, requested), lambda: self._defined(root, requested))

    def rearrange(
        self,
        like: Node,
        ident: int,
        layouts: tuple[Layout, Layout],
        define: Callable[[], int],
        handles: Sequence[int] = (),
    ) -> None:
        """Add the nodes that convert a value to another layout: transpose, reshape, or both.

        Args:
            like: a node with the sizes of the value
            ident: the value
            layouts: current and requested one
            define: defines the result
            handles: debug handles of the operator that needs the conversion
        """
        sizes, (source, requested) = shape_of(like), layouts
        if source == requested:
            self.writer.node(n.Unary("Copy", ident, define()), handles)
            return
        layout = source
        # A reshape infers at most one size; a transposition handles any number of them.
        if moves_data(sizes, source, requested) or len(unknown_sizes(sizes)) > 1:
            order, layout = transposition(source, requested)
            built = define() if layout == requested else self.inner(like, self._dims(like, layout))
            form = n.StaticTranspose("StaticTranspose", len(order), order, ident, built)
            self.writer.node(form, handles)
            ident = built
        if layout != requested:
            self.reshape(in_memory(sizes, requested), ident, define(), handles)

    def reshape(
        self, sizes: Sequence[Any], source: int, built: int, handles: Sequence[int] = ()
    ) -> None:
        """Add a reshape; a size that is only known at run time is inferred.

        Raises: UnsupportedError if that are several sizes
        """
        unknown = unknown_sizes(sizes)
        if len(unknown) > 1:
            step = "" if self._step is None else f", {at(self._step.node)}"
            raise UnsupportedError(
                f"a reshape to [{', '.join(map(str, sizes))}] would have to infer the sizes "
                f"{', '.join(unknown)}, no runtime infers more than one; keep the node out of the "
                f"partition, or export with one of them fixed{step}"
            )
        shape = tuple(0 if is_symbolic(size) else size for size in sizes)
        form = n.StaticReshape("StaticReshape", len(shape), shape, source, built)
        self.writer.node(form, handles)

    def finish(self) -> None:
        """Copy every result that no step has written in place."""
        self._step = None
        for place, node in enumerate(self.steps.outputs, len(self.steps.inputs)):
            layout = boundary(value_of(node))
            source = self.operand(node, layout)
            if place in self._left:
                continue
            built = self._value(
                node,
                self._dims(node, layout),
                external=place,
                flags=m.EXTERNAL_OUTPUT,
            )
            self.writer.node(n.Unary("Copy", source, built))
            self._left.add(place)

    def add(self, step: PayloadStep, form: n.NodeForm) -> None:
        """Add the node of a step."""
        self.writer.node(form, step.handles, step.bounds)


def _chain_names(node: Node) -> tuple[str, ...]:
    return tuple(one.name for one in reversed(dynamic_chain(node)))


def _written(affine: Affine) -> m.PerTensorQuant:
    return m.PerTensorQuant(affine.scale, affine.zero_point)
