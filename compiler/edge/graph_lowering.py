"""Lowers one graph node by node: that of a program, or a body of its control flow."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.dialect.delegate_call import is_lowered_module
from compiler.dialect.templates import ScalarConstant, walk
from compiler.edge.inline import inline
from compiler.edge.lineage import Lineage
from compiler.edge.quantize_pairs import integers_before
from compiler.edge.symbols import Symbols
from compiler.edge.tracing import Templates
from compiler.errors import CompileError, UnsupportedError, at
from compiler.untyped import SYMBOLIC, HigherOrderOperator, OpOverload, aten

_CHECKS = ("aten::_assert", "aten::sym_constrain", "aten::_functional_assert")
_READ_NUMBER = (aten.item.default, aten._local_scalar_dense.default)


@dataclass(frozen=True, slots=True)
class SharedState:
    """State shared by the graphs of one program.

    Attributes:
        templates: lowered form of each operator
        lineage: assigns debug handles to the nodes of all graphs
        mode: creates fake tensors
        control_flow: lowers a call with bodies and returns the replacement of its results
    """

    templates: Templates
    lineage: Lineage
    mode: Any
    control_flow: Callable[[GraphLowering, torch.fx.Node, Any], Any]


@dataclass
class GraphLowering:
    """Lowers the nodes of a graph into a new one; subclasses define its inputs and constants.

    Attributes:
        shared: of all graphs of the program
        owner: module with the bodies that the given graph names
        graph: the new graph
        bodies: the new bodies, by name
        built: replacement of each node of the given graph
    """

    shared: SharedState
    owner: Any
    graph: torch.fx.Graph = field(default_factory=torch.fx.Graph)
    bodies: dict[str, torch.fx.GraphModule] = field(default_factory=dict[str, torch.fx.GraphModule])
    built: dict[torch.fx.Node, Any] = field(default_factory=dict[torch.fx.Node, Any])
    roots: dict[torch.fx.Node, torch.fx.Node] = field(
        default_factory=dict[torch.fx.Node, torch.fx.Node]
    )

    def __post_init__(self) -> None:
        self.current: dict[str, Any] = {}
        self.symbols = Symbols(self.graph, lambda: self.current)

    def placeholder(self, node: torch.fx.Node) -> None:
        """Create an input."""
        raise NotImplementedError

    def output(self, node: torch.fx.Node) -> None:
        """Create the results."""
        raise NotImplementedError

    def constant(self, scalar: ScalarConstant) -> torch.fx.Node:
        """Return the node of a scalar as a tensor."""
        raise NotImplementedError

    def held(self, tensor: torch.Tensor) -> torch.fx.Node:
        """Return the node of a tensor that a body of control flow holds."""
        raise NotImplementedError

    def wrote_input(self, node: torch.fx.Node, new: Any) -> None:  # noqa: ANN401
        """Record that an input is mutated."""
        raise NotImplementedError

    def lower(self, nodes: Iterable[torch.fx.Node]) -> None:
        """Lower all nodes of a graph.

        Raises: UnsupportedError naming the node and the user's line
        """
        handlers = {
            "placeholder": self.placeholder,
            "call_function": self._call,
            "get_attr": self._body,
            "output": self.output,
        }
        for node in nodes:
            handler = handlers.get(node.op)
            if handler is None:
                raise UnsupportedError(f"{node.op} {node.target} is not supported: {at(node)}")
            try:
                handler(node)
            except UnsupportedError as error:
                raise UnsupportedError(f"{error}: {at(node)}") from error
        self.eliminate_dead_code()

    def eliminate_dead_code(self) -> None:
        """Remove the calls whose results are not read."""
        self.graph.eliminate_dead_code(is_impure_node=_is_fixed)

    def new(self, leaf: Any) -> Any:  # noqa: ANN401
        """Return the new node of an old one; other leaves are returned unchanged."""
        return self.built[leaf] if isinstance(leaf, torch.fx.Node) else leaf

    def node_of(self, value: Any) -> Any:  # noqa: ANN401
        """Return a symbolic value as a node; other values are returned as they are."""
        return self.symbols.node(value) if isinstance(value, SYMBOLIC) else value

    def call(self, target: Any, args: Any, kwargs: Any, value: Any) -> torch.fx.Node:  # noqa: ANN401
        """Create a node with the metadata of the node that is being lowered."""
        node = self.graph.create_node("call_function", target, args, kwargs)
        node.meta = {**self.current, "val": value}
        return node

    def plain(self, value: Any) -> Any:  # noqa: ANN401
        """Return a contiguous fake tensor like another; other values are returned unchanged."""
        if not isinstance(value, torch.Tensor):
            return value
        with self.shared.mode:
            return aten.empty.memory_format(value.shape, dtype=value.dtype)

    def _body(self, node: torch.fx.Node) -> None:
        found = getattr(self.owner, str(node.target), None)
        if isinstance(found, torch.Tensor):
            self.built[node] = self.held(found)
            return
        if not isinstance(found, torch.fx.GraphModule) and not is_lowered_module(found):
            raise UnsupportedError(f"the attribute {node.target} is not a body of control flow")
        self.built[node] = found

    def _call(self, node: torch.fx.Node) -> None:
        target: Any = node.target
        args, kwargs = walk(self.new, (tuple(node.args), dict(node.kwargs)))
        value = node.meta.get("val")
        if target in _READ_NUMBER:
            self._read_number(node, args)
        elif isinstance(value, SYMBOLIC):
            self.built[node] = value  # sizes are computed where they are used
        elif target is operator.getitem:
            self.built[node] = args[0][args[1]]
        elif isinstance(target, OpOverload):
            if not target.name().startswith(_CHECKS):
                self._operator(node, target, args, kwargs)
        elif isinstance(target, HigherOrderOperator):
            self.current = self.shared.lineage.metadata(node)
            self.built[node] = self.shared.control_flow(self, node, args)
        elif value is not None and not isinstance(value, bool):
            raise UnsupportedError(f"{target} cannot be compiled")

    def _read_number(self, node: torch.fx.Node, args: Any) -> None:  # noqa: ANN401
        self.current = self.shared.lineage.metadata(node)
        value = node.meta["val"]
        given: torch.fx.Node = args[0]
        if given.meta["val"].dtype in (torch.float16, torch.bfloat16):  # no stock kernel reads them
            given = self._operator(node, aten.to.dtype, (given, torch.float32), {})
        new = self.call(aten._local_scalar_dense.default, (given,), {}, value)
        if isinstance(value, SYMBOLIC):
            self.symbols.learn(new)
        self.built[node] = value if isinstance(value, SYMBOLIC) else new

    def _operator(self, node: torch.fx.Node, op: Any, args: Any, kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        self.current = self.shared.lineage.metadata(node)
        integers = integers_before(op, args)
        if integers is not None:
            self.built[node] = integers
            return integers
        try:
            template = self.shared.templates.of(op, args, kwargs, node)
        except CompileError:
            raise
        except Exception as error:
            raise UnsupportedError(f"{op} cannot be lowered ({error})") from error
        new = inline(
            self.graph, template, (args, kwargs), self.current, self.constant, self.symbols
        )
        found = torch.Tag.dynamic_output_shape in op.tags or node.meta.get("unbacked_bindings")
        if found and op is node.target:  # not one that precedes the inputs of the node
            self._learn_sizes(new, node.meta["val"])
        self.built[node] = new
        if op._schema.is_mutable:
            self._rebind(node, new)
        return new

    def _learn_sizes(self, new: Any, value: Any) -> None:  # noqa: ANN401
        """Use the sizes of the given graph for results with data-dependent sizes."""
        single = isinstance(new, torch.fx.Node)
        for node, known in [(new, value)] if single else zip(new, value, strict=True):
            if isinstance(node, torch.fx.Node) and node.op == "call_function":
                node.meta["val"] = self.plain(known)
                self.symbols.learn(node)

    def _rebind(self, node: torch.fx.Node, new: Any) -> None:  # noqa: ANN401
        """Rebind every alias of a mutated value to the new one."""
        base = node.args[0]
        assert isinstance(base, torch.fx.Node)  # simple writes only
        root = self.roots[node] = self.roots.get(base, base)
        for alias in (root, *(other for other, of in self.roots.items() if of is root)):
            self.built[alias] = new
        if root.op == "placeholder":
            self.wrote_input(root, new)


def _is_fixed(node: torch.fx.Node) -> bool:
    return node.op in ("placeholder", "output")
