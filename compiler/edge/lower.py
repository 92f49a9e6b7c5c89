"""Lowers the graph of torch.export to an edge graph, node by node; the given graph is not changed.

The graph is never retraced as a unit: each operator is replaced by its template, traced once for
each kind of arguments, and metadata is inherited from the node it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from compiler.dialect.dim_order import CLONE_DIM_ORDER, dim_order_of, is_dense, is_stored_as_it_is
from compiler.dialect.ops import edge_op
from compiler.dialect.templates import ScalarConstant, describe_output
from compiler.edge.config import EdgeCompileConfig
from compiler.edge.constant_results import constant_results
from compiler.edge.graph_lowering import GraphLowering, SharedState
from compiler.edge.lineage import Lineage, renumber
from compiler.edge.outside_core import kept_whole
from compiler.edge.schemaless_calls import lower_call
from compiler.edge.tracing import PreservationPolicy, Templates

_MUTATIONS = tuple(
    kind
    for name, kind in OutputKind.__members__.items()
    if name in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION")
)


@dataclass(frozen=True, slots=True)
class LoweredGraph:
    """An edge graph without its signature.

    Attributes:
        graph: placeholders, calls, and an output of the written values followed by the results
        bodies: of its control flow, by the names the graph uses
        lifted: scalars that became constants, by the name of their placeholder
        written: name of a placeholder and the value written back into it at the end
        outputs: the results of the user
    """

    graph: torch.fx.Graph
    bodies: dict[str, torch.fx.GraphModule]
    lifted: dict[str, torch.Tensor]
    written: dict[str, Any]
    outputs: tuple[Any, ...]


def lower(
    program: ExportedProgram, config: EdgeCompileConfig, keeps: PreservationPolicy | None = None
) -> LoweredGraph:
    """Return the edge graph of a program whose writes are simple (see ``functional``).

    Args:
        program: as exported
        config: operators to keep, dim order
        keeps: decides for each node whether it is decomposed

    Raises: UnsupportedError naming the node and the user's line
    """
    mode = _fake_mode(program)
    templates = Templates(
        mode, kept_whole(config), skip_dim_order=config.skip_dim_order, keeps=keeps
    )
    shared = SharedState(templates, Lineage(), mode, lower_call)
    lowering = _ProgramLowering(shared, program)
    lowering.lower(program.graph.nodes)
    lowering.compute_outside_core(program.constants, config)
    renumber(lowering.graph, lowering.bodies)
    return LoweredGraph(
        lowering.graph, lowering.bodies, lowering.lifted, lowering.written, lowering.outputs
    )


class _ProgramLowering(GraphLowering):
    def __init__(self, shared: SharedState, program: ExportedProgram) -> None:
        super().__init__(shared, program.graph_module)
        self.placeholders: dict[str, torch.fx.Node] = {}
        self.lifted: dict[str, torch.Tensor] = {}
        self.written: dict[str, Any] = {}
        self.outputs: tuple[Any, ...] = ()
        self.numbers: dict[Any, torch.fx.Node] = {}
        self.anchor: torch.fx.Node | None = None
        self.last_placeholder: torch.fx.Node | None = None
        self.signature = program.graph_signature
        specs = self.signature.input_specs
        self.kinds = {spec.arg.name: spec for spec in specs}
        self.names = {spec.target: spec.arg.name for spec in specs if spec.target}

    def placeholder(self, node: torch.fx.Node) -> None:
        """Create an input of the method, or a parameter, buffer or constant."""
        new = self.graph.placeholder(node.name)
        new.name = node.name  # fx renames builtins such as "input"; the signature would not match
        new.meta = {**node.meta, "val": self._as_given(node)}
        self.built[node] = self.placeholders[node.name] = self.last_placeholder = new
        self.symbols.learn(new)
        spec = self.kinds.get(node.name)
        if self.anchor is None and spec is not None and spec.kind == InputKind.USER_INPUT:
            self.anchor = new

    def _as_given(self, node: torch.fx.Node) -> Any:  # noqa: ANN401
        """Return the fake tensor of an input; a view, as of a weight, counts as contiguous."""
        value, spec = node.meta.get("val"), self.kinds.get(node.name)
        if not isinstance(value, torch.Tensor) or spec is None:
            return value
        sizes: Any = (*value.shape, *value.stride())
        if not all(isinstance(n, int) for n in sizes):
            return value
        given = is_dense if spec.kind == InputKind.USER_INPUT else is_stored_as_it_is
        return value if given(value) else self.plain(value)

    def wrote_input(self, node: torch.fx.Node, new: Any) -> None:  # noqa: ANN401
        """Record the values that are written back at the end."""
        self.written[node.name] = new

    def constant(self, scalar: ScalarConstant) -> torch.fx.Node:
        """Return the placeholder of a lifted scalar, in front of the user's inputs."""
        tensor = torch.tensor(scalar.value, dtype=scalar.dtype)
        key = (tensor.dtype, type(scalar.value), repr(scalar.value))
        if key not in self.numbers:
            self.numbers[key] = self._lifted(tensor)
        return self.numbers[key]

    def held(self, tensor: torch.Tensor) -> torch.fx.Node:
        """Return the placeholder of a tensor that a body holds, in front of the user's inputs."""
        key = id(tensor)  # it is kept alive by the given program
        if key not in self.numbers:
            self.numbers[key] = self._lifted(tensor.detach().contiguous())
        return self.numbers[key]

    def _lifted(self, tensor: torch.Tensor) -> torch.fx.Node:
        name = f"_lifted_tensor_constant{len(self.lifted)}"
        with self._before_inputs():
            node = self.graph.placeholder(name)
        with self.shared.mode:
            node.meta = {"val": torch.empty(tuple(tensor.shape), dtype=tensor.dtype)}
        self.lifted[name] = tensor
        return node

    def _before_inputs(self) -> Any:  # noqa: ANN401
        if self.anchor is not None:
            return self.graph.inserting_before(self.anchor)
        if self.last_placeholder is not None:
            return self.graph.inserting_after(self.last_placeholder)
        return self.graph.inserting_before(next(iter(self.graph.nodes)))

    def compute_outside_core(self, constants: Mapping[str, Any], config: EdgeCompileConfig) -> None:
        """Replace operators that no edge program may have where they read constants alone."""
        known: dict[str, torch.Tensor] = {}
        for name, spec in self.kinds.items():
            value = constants.get(spec.target or "")
            fixed = spec.kind == InputKind.CONSTANT_TENSOR and name not in self.written
            if fixed and isinstance(value, torch.Tensor):
                known[name] = value
        found = constant_results(self.graph, {**known, **self.lifted}, config)
        for node, value in found.items():
            node.replace_all_uses_with(self._lifted(value.contiguous()))
        if found:
            self.eliminate_dead_code()

    def output(self, node: torch.fx.Node) -> None:
        """Create the results: mutated values first, then the user's."""
        results: Any = node.args[0]
        outputs: list[Any] = []
        for result, spec in zip(results, self.signature.output_specs, strict=True):
            value = self.node_of(self.new(result))
            if spec.kind in _MUTATIONS:
                target = spec.target or ""
                self.written[self.names.get(target, target)] = value
            else:
                outputs.append(value)
        self.outputs = tuple(self._kept(value, "") for value in outputs)
        for name, value in self.written.items():
            self.written[name] = self._kept(value, name)
        last = self.graph.output((*self.written.values(), *self.outputs))
        last.meta = dict(node.meta)
        describe_output(self.graph)

    def _kept(self, value: Any, target: str) -> Any:  # noqa: ANN401
        """Copy a value that aliases a mutated placeholder, which is overwritten at the end."""
        if not isinstance(value, torch.fx.Node) or value.op != "placeholder":
            return value
        if value.name not in self.written or value.name == target:
            return value
        order = [*dim_order_of(value.meta["val"])]
        copied = self.graph.create_node(
            "call_function", edge_op(CLONE_DIM_ORDER), (value,), {"dim_order": order}
        )
        copied.meta = {"val": value.meta["val"], "debug_handle": 0}
        return copied


def _fake_mode(program: ExportedProgram) -> Any:  # noqa: ANN401
    for node in program.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode
    return FakeTensorMode()
