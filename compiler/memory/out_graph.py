"""The graph of out variants, for custom planning passes and algorithms, and for inspection.

It is created on first access; programs are emitted from the edge graph. Nodes keep their names.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from compiler.dialect.memory_ops import alloc, view
from compiler.dialect.ops import EdgeOp
from compiler.dialect.out_variants import OutVariant, find_out_variant
from compiler.dialect.templates import walk
from compiler.memory.instructions import PlannedView, SizedView, Slot, results_of
from compiler.memory.lifetimes import Schedule
from compiler.memory.options import SPECS
from compiler.memory.specs import FrozenSpec
from compiler.memory.tensor_spec import TensorSpec
from compiler.untyped import aten


class OutGraph:
    """The graph of a method, and the specs of its memory blocks.

    Attributes:
        module: the graph; `meta["spec"]` of a node is its spec, or a list of them
        of_block: by block, the spec with its location
    """

    def __init__(self, program: ExportedProgram, steps: Schedule) -> None:
        """Build the graph.

        Args:
            program: the edge program
            steps: its schedule
        """
        self._steps = steps
        self._views = {
            step.node for step in steps.steps if isinstance(step, PlannedView | SizedView)
        }
        self._specs: dict[Slot, TensorSpec] = {}
        self.of_block: dict[int, TensorSpec] = {}
        self.module = self._module(program.graph_module, written=steps.written)
        # A list: algorithms break ties by the order they are given, and plans are reproducible.
        planned = [
            spec for index, spec in self.of_block.items() if self._steps.blocks[index].planned
        ]
        self.module.meta[SPECS] = planned

    def _module(
        self, owner: torch.fx.GraphModule, written: Mapping[torch.fx.Node, Any] | None = None
    ) -> torch.fx.GraphModule:
        graph = torch.fx.Graph()
        built: dict[torch.fx.Node, torch.fx.Node] = {}
        home = torch.nn.Module()
        for node in owner.graph.nodes:
            if node.op == "output":
                for target, value in (written or {}).items():
                    if self._steps.resolve(value) == self._steps.resolve(target):
                        continue
                    self._write_back(graph, built[target], built.get(value, value))
            built[node] = self._node(graph, node, built)
            built[node].name = node.name
            if node.op == "get_attr":
                found = getattr(owner, str(node.target))
                setattr(home, str(node.target), self._body(found))
        return torch.fx.GraphModule(home, graph)

    def _body(self, found: Any) -> Any:  # noqa: ANN401
        plain = type(found).__name__.startswith("GraphModule")  # a lowered module is not changed
        return self._module(found) if plain else found

    def _node(
        self,
        graph: torch.fx.Graph,
        node: torch.fx.Node,
        built: Mapping[torch.fx.Node, torch.fx.Node],
    ) -> torch.fx.Node:
        def new(leaf: Any) -> Any:  # noqa: ANN401
            return built[leaf] if isinstance(leaf, torch.fx.Node) else leaf

        if node in self._views:
            sizes = [*self._steps.specs[node, 0].sizes]
            result = graph.call_function(view, (new(node.args[0]), sizes))
        elif isinstance(node.target, EdgeOp):
            result = self._out_call(graph, node, new)
        else:
            result = graph.node_copy(node, new)
        result.meta = dict(node.meta)
        if node.op == "output":
            result.meta["spec"] = walk(_spec_in, result.args[0])
        elif node.target is not operator.getitem:
            self._note(result, node)
        return result

    def _out_call(self, graph: torch.fx.Graph, node: torch.fx.Node, new: Any) -> torch.fx.Node:  # noqa: ANN401
        target = node.target
        assert isinstance(target, EdgeOp)
        variant = find_out_variant(target.op)
        assert variant is not None  # checked before, for all operators together
        args, kwargs = walk(new, (tuple(node.args), dict(node.kwargs)))
        taken = {formal.name for formal in variant.arguments}
        kwargs = {name: value for name, value in kwargs.items() if name in taken}
        return graph.call_function(
            variant.op, args, {**kwargs, **self._allocs(graph, node, variant)}
        )

    def _allocs(
        self, graph: torch.fx.Graph, node: torch.fx.Node, variant: OutVariant
    ) -> dict[str, Any]:
        outs = [formal for formal in variant.arguments if formal.is_out]
        built: list[torch.fx.Node | None] = []
        for index, value in enumerate(results_of(node)):
            if value is None:  # excluded by a mask
                built.append(None)
                continue
            spec = self._spec((node, index))
            one = graph.call_function(alloc, ((tuple(spec.shape), spec.dtype),))
            one.meta = {"spec": spec, "val": value}
            built.append(one)
        if len(outs) == 1 and "List" in outs[0].kind:
            return {outs[0].name: built}
        return {formal.name: one for formal, one in zip(outs, built, strict=True)}

    def _note(self, result: torch.fx.Node, node: torch.fx.Node) -> None:
        values = results_of(node)
        specs = [
            self._spec((node, index)) if isinstance(value, torch.Tensor) else None
            for index, value in enumerate(values)
        ]
        if isinstance(node.meta.get("val"), torch.Tensor):
            result.meta["spec"] = specs[0]
        elif any(specs):
            result.meta["spec"] = specs

    def _spec(self, slot: Slot) -> TensorSpec:
        """Return the spec of a slot; slots of one block and size share it."""
        found: Any = self._steps.stands_for.get(slot, slot)
        if found not in self._steps.specs:
            found = self._steps.resolve(slot[0])
        if found in self._specs:
            return self._specs[found]
        block = self._steps.block_of.get(found)
        shared = None if block is None else self.of_block.get(block)
        values: Any = results_of(slot[0])
        value: Any = values[slot[1]]
        spec = _spec_of(self._steps.specs[found], value.dtype, const=block is None)
        if shared is not None and shared.shape == spec.shape and shared.dtype == spec.dtype:
            spec = shared
        elif block is not None:
            self.of_block.setdefault(block, spec)
            spec.lifetime = [self._steps.blocks[block].first, self._steps.blocks[block].last]
        self._specs[found] = spec
        return spec

    def _write_back(self, graph: torch.fx.Graph, target: torch.fx.Node, value: Any) -> None:  # noqa: ANN401
        copied = graph.call_function(aten.copy_.default, (target, value))
        copied.meta = dict(target.meta)


def _spec_in(leaf: Any) -> Any:  # noqa: ANN401
    return leaf.meta.get("spec") if isinstance(leaf, torch.fx.Node) else None


def _spec_of(given: FrozenSpec, dtype: torch.dtype, *, const: bool) -> TensorSpec:
    spec = TensorSpec(dtype, given.sizes, const=const)
    spec.dim_order, spec.shape_dynamism = given.dim_order, given.dynamism
    return spec
