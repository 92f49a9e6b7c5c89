"""From the graph of torch.export to an edge graph, node by node; the given graph stays as it is.

No pass traces the whole graph anew: each operator becomes its template, traced once for each
kind of arguments, and metadata is handed down from the node it replaces.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from compiler.config import EdgeCompileConfig
from compiler.edge.dim_order import CLONE_DIM_ORDER, dim_order_of
from compiler.edge.inline import inline
from compiler.edge.lineage import Lineage
from compiler.edge.ops import edge_op
from compiler.edge.symbols import Symbols
from compiler.edge.templates import Scalar, walk
from compiler.edge.tracing import Templates
from compiler.errors import CompileError, UnsupportedError, at
from compiler.untyped import OpOverload

_MUTATIONS = tuple(
    kind
    for name, kind in OutputKind.__members__.items()
    if name in ("BUFFER_MUTATION", "USER_INPUT_MUTATION", "PARAMETER_MUTATION")
)
_CHECKS = ("aten::_assert", "aten::sym_constrain", "aten::_functional_assert")


@dataclass(frozen=True, slots=True)
class LoweredGraph:
    """An edge graph without its signature.

    Attributes:
        graph: placeholders, calls, and an output of the written values followed by the results
        lifted: numbers that became constants, by the name of their placeholder
        written: name of a placeholder and the value written back into it at the end
        outputs: the results of the user
    """

    graph: torch.fx.Graph
    lifted: dict[str, torch.Tensor]
    written: dict[str, Any]
    outputs: tuple[Any, ...]


def lower(program: ExportedProgram, config: EdgeCompileConfig) -> LoweredGraph:
    """Return the edge graph of a program whose writes are simple (see ``functional``).

    Raises: UnsupportedError naming the node and the user's line
    """
    return _Lowering(program, config).run()


@dataclass
class _Lowering:
    program: ExportedProgram
    config: EdgeCompileConfig
    graph: torch.fx.Graph = field(default_factory=torch.fx.Graph)
    made: dict[torch.fx.Node, Any] = field(default_factory=dict[torch.fx.Node, Any])
    roots: dict[torch.fx.Node, torch.fx.Node] = field(
        default_factory=dict[torch.fx.Node, torch.fx.Node]
    )
    placeholders: dict[str, torch.fx.Node] = field(default_factory=dict[str, torch.fx.Node])
    lifted: dict[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])
    written: dict[str, Any] = field(default_factory=dict[str, Any])
    outputs: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self.lineage = Lineage()
        self.current: dict[str, Any] = {}
        self.symbols = Symbols(self.graph, lambda: self.current)
        self.numbers: dict[Any, torch.fx.Node] = {}
        self.anchor: torch.fx.Node | None = None
        self.last_placeholder: torch.fx.Node | None = None
        specs = self.program.graph_signature.input_specs
        self.kinds = {spec.arg.name: spec for spec in specs}
        self.names = {spec.target: spec.arg.name for spec in specs if spec.target}
        self.mode = _fake_mode(self.program)
        self.templates = Templates(
            self.mode,
            frozenset(self.config.preserve_ops),
            skip_dim_order=self.config.skip_dim_order,
        )

    def run(self) -> LoweredGraph:
        handlers = {
            "placeholder": self._placeholder,
            "call_function": self._call,
            "output": self._output,
        }
        for node in self.program.graph.nodes:
            handler = handlers.get(node.op)
            if handler is None:
                raise UnsupportedError(f"{node.op} {node.target} is not supported: {at(node)}")
            try:
                handler(node)
            except UnsupportedError as error:
                raise UnsupportedError(f"{error}: {at(node)}") from error
        self.graph.eliminate_dead_code(is_impure_node=_is_fixed)
        return LoweredGraph(self.graph, self.lifted, self.written, self.outputs)

    def _placeholder(self, node: torch.fx.Node) -> None:
        new = self.graph.placeholder(node.name)
        new.name = node.name  # fx renames builtins such as "input"; the signature would not match
        new.meta = dict(node.meta)
        self.made[node] = self.placeholders[node.name] = self.last_placeholder = new
        self.symbols.learn(new)
        spec = self.kinds.get(node.name)
        if self.anchor is None and spec is not None and spec.kind == InputKind.USER_INPUT:
            self.anchor = new

    def _call(self, node: torch.fx.Node) -> None:
        target: Any = node.target
        args, kwargs = walk(self._new, (tuple(node.args), dict(node.kwargs)))
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            self.made[node] = value  # sizes are computed where they are used
        elif target is operator.getitem:
            self.made[node] = args[0][args[1]]
        elif isinstance(target, OpOverload):
            if not target.name().startswith(_CHECKS):
                self._operator(node, target, args, kwargs)
        elif value is not None and not isinstance(value, (bool, torch.SymBool)):
            raise UnsupportedError(f"{target} cannot be compiled")

    def _operator(self, node: torch.fx.Node, op: Any, args: Any, kwargs: dict[str, Any]) -> None:  # noqa: ANN401
        self.current = self.lineage.metadata(node)
        try:
            template = self.templates.of(op, args, kwargs)
        except CompileError:
            raise
        except Exception as error:
            raise UnsupportedError(f"{op} cannot be lowered ({error})") from error
        new = inline(
            self.graph, template, (args, kwargs), self.current, self._constant, self.symbols
        )
        self.made[node] = new
        if op._schema.is_mutable:
            self._rebind(node, new)

    def _rebind(self, node: torch.fx.Node, new: Any) -> None:  # noqa: ANN401
        """Let every name of a value that was written in place mean the result."""
        base = node.args[0]
        assert isinstance(base, torch.fx.Node)  # simple writes only
        root = self.roots[node] = self.roots.get(base, base)
        for alias in (root, *(other for other, of in self.roots.items() if of is root)):
            self.made[alias] = new
        if root.op == "placeholder":
            self.written[root.name] = new

    def _new(self, leaf: Any) -> Any:  # noqa: ANN401
        return self.made[leaf] if isinstance(leaf, torch.fx.Node) else leaf

    def _constant(self, scalar: Scalar) -> torch.fx.Node:
        """Return the placeholder of a lifted number, in front of the user's inputs."""
        tensor = torch.tensor(scalar.value, dtype=scalar.dtype)
        key = (tensor.dtype, type(scalar.value), repr(scalar.value))
        if key not in self.numbers:
            name = f"_lifted_tensor_constant{len(self.lifted)}"
            with self._before_inputs():
                node = self.graph.placeholder(name)
            with self.mode:
                node.meta = {"val": torch.empty((), dtype=tensor.dtype)}
            self.numbers[key] = node
            self.lifted[name] = tensor
        return self.numbers[key]

    def _before_inputs(self) -> Any:  # noqa: ANN401
        if self.anchor is not None:
            return self.graph.inserting_before(self.anchor)
        if self.last_placeholder is not None:
            return self.graph.inserting_after(self.last_placeholder)
        return self.graph.inserting_before(next(iter(self.graph.nodes)))

    def _output(self, node: torch.fx.Node) -> None:
        results: Any = node.args[0]
        outputs: list[Any] = []
        specs = self.program.graph_signature.output_specs
        for result, spec in zip(results, specs, strict=True):
            value = self._new(result)
            if isinstance(value, torch.SymInt):
                value = self.symbols.node(value)
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

    def _kept(self, value: Any, target: str) -> Any:  # noqa: ANN401
        """Copy a value that lies in a written placeholder, which is overwritten at the end."""
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


def _is_fixed(node: torch.fx.Node) -> bool:
    return node.op in ("placeholder", "output")
