"""Exported programs of torch as recorded graphs that can be run, with their nested graphs."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from inspector.rebuild.lowered_programs import CALL, inside_of
from inspector.rebuild.torch_bridge import Torch, load_torch
from runtime.emulation.control import CONDITION, DELEGATE, LOOP, MAP, SCAN
from runtime.emulation.recorded import (
    UNKNOWN,
    FixedOperand,
    GraphCall,
    GraphOperand,
    NestedCall,
    RecordedGraph,
)

Node: TypeAlias = Any  # of torch.fx
Program: TypeAlias = Any  # torch.export.ExportedProgram
# higher-order operator -> places of its graphs among the arguments, and those of its operands
_NESTED = {
    CONDITION: ((1, 2), (0, 3)),
    MAP: ((0,), (1, 2)),
    SCAN: ((0,), (1, 2, 3)),
    LOOP: ((0, 1), (2, 3)),
}


def exported_graph(program: Program) -> RecordedGraph:
    """Return a program ready to run."""
    signature = program.graph_signature
    graph = _ModuleReader(program.graph_module, inside_of(program))
    inputs: list[str] = []
    for spec in signature.input_specs:
        name, kind = spec.arg.name, spec.kind.name
        if kind == "USER_INPUT":
            inputs.append(name)
            if getattr(spec.arg, "value", None) is not None:
                graph.constants[name] = spec.arg.value
            continue
        held = program.state_dict.get(spec.target)
        held = program.constants.get(spec.target, UNKNOWN) if held is None else held
        if kind == "BUFFER":
            graph.buffers[name] = (spec.target, held)
        else:
            graph.constants[name] = held
    results = list(zip(signature.output_specs, graph.outputs, strict=False))
    return RecordedGraph(
        tuple(graph.calls),
        tuple(inputs),
        tuple(item for spec, item in results if spec.kind.name == "USER_OUTPUT"),
        graph.constants,
        graph.buffers,
        {spec.target: item for spec, item in results if spec.kind.name == "BUFFER_MUTATION"},
        graph.writes,
    )


def _module_graph(module: Torch, inside: Mapping[str, Program]) -> RecordedGraph:
    """Return a nested graph ready to run."""
    graph = _ModuleReader(module, inside)
    inputs = tuple(node.name for node in module.graph.nodes if node.op == "placeholder")
    return RecordedGraph(
        tuple(graph.calls), inputs, graph.outputs, graph.constants, writes=graph.writes
    )


class _ModuleReader:
    """The nodes of one graph module.

    Attributes:
        calls: calls in execution order
        constants: values of the module's attributes by node name
        buffers: as in `RecordedGraph`
        outputs: flat outputs
        writes: whether an operator writes to its inputs
    """

    def __init__(self, module: Torch, inside: Mapping[str, Program]) -> None:
        self.calls: list[GraphCall | NestedCall] = []
        self.constants: dict[str, Any] = {}
        self.buffers: dict[str, tuple[str, Any]] = {}
        self.outputs: tuple[GraphOperand, ...] = ()
        self.writes = False
        self._inside = inside
        for node in module.graph.nodes:
            if node.op == "get_attr":
                self.constants[node.name] = operator.attrgetter(node.target)(module)
            elif node.op == "output":
                self.outputs = _operands(node.args[0])
            elif node.op != "placeholder":
                self._add(node)

    def _add(self, node: Node) -> None:
        nested = self._nested(node)
        self.writes |= bool(getattr(getattr(node.target, "_schema", None), "is_mutable", False))
        if nested is not None:
            self.calls.append(nested)
            self.writes |= any(graph.writes for graph in nested.graphs)
            return
        reads = tuple(each.name for each in node.all_input_nodes)
        picks = node.target is operator.getitem
        run = partial(_called, node)
        self.calls.append(GraphCall(node.name, reads, (node.name,), run, True, not picks))

    def _nested(self, node: Node) -> NestedCall | None:
        """Return the call of a node that runs nested graphs, or None."""
        kind = getattr(node.target, "__name__", "")
        if not isinstance(node.target, load_torch()._ops.HigherOrderOperator):
            return None
        if kind == CALL:
            program = self._inside[node.args[0]]
            given = (_operands(node.args[1:]),)
            return NestedCall(node.name, DELEGATE, (exported_graph(program),), given)
        if kind not in _NESTED:
            return None
        modules = (self.constants[node.args[place].name] for place in _NESTED[kind][0])
        graphs = tuple(_module_graph(module, self._inside) for module in modules)
        operands = [node.args[at] if at < len(node.args) else () for at in _NESTED[kind][1]]
        return NestedCall(node.name, kind, graphs, tuple(map(_operands, operands)))


def _called(node: Node, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - results
    def of(argument: Node) -> Any:  # noqa: ANN401
        return values[argument.name]

    fx = load_torch().fx.node
    return node.target(*fx.map_arg(node.args, of), **fx.map_arg(node.kwargs, of))


def _operands(item: Any) -> tuple[GraphOperand, ...]:  # noqa: ANN401
    return tuple(each.name if hasattr(each, "op") else FixedOperand(each) for each in _flat(item))


def _flat(item: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the items of nested lists."""
    if isinstance(item, (tuple, list)):
        for each in cast("Sequence[Any]", item):
            yield from _flat(each)
    else:
        yield item
