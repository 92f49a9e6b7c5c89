"""Checks of a planned graph, as in `executorch.exir.memory_planning`.

They read the `TensorSpec`s that planning stored in the metadata of a graph's nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.export.graph_signature import ExportGraphSignature, InputKind

from compiler.compat.graphs import do_user_inputs_exist
from compiler.compat.memory_planning import get_node_tensor_specs
from compiler.dialect.templates import nodes_in
from compiler.errors import PlanError
from compiler.memory.tensor_spec import TensorSpec

Node = torch.fx.Node
_DYNAMIC_UNBOUND = 2


def filter_nodes(inputs: Iterable[Any]) -> list[Node]:
    """Return the nodes among arguments, also those inside of lists and dicts."""
    return [*nodes_in([*inputs])]


def collect_specs_from_nodes(  # noqa: PLR0913 - as documented
    nodes: Iterable[Node],
    graph_signature: ExportGraphSignature | None = None,
    ignore_graph_input: bool = False,
    ignore_graph_output: bool = False,
    ignore_mutable_buffers: bool = False,
    ignore_const: bool = True,
    ignore_out_var_node: bool = True,
    dedup: bool = True,
    do_assertion: bool = True,
    ignore_dynamic_unbound_tensor: bool = True,
) -> Iterator[TensorSpec]:
    """Yield the specs of nodes, each once, without those that need no planned memory.

    Args:
        nodes: of a graph
        graph_signature: with inputs that are buffers that are written
        ignore_graph_input: skip inputs of the user
        ignore_graph_output: skip results
        ignore_mutable_buffers: skip written buffers
        ignore_const: skip constants
        ignore_out_var_node: skip results of out variants: they use memory of their arguments
        dedup: yield a spec once
        do_assertion: accepted as documented
        ignore_dynamic_unbound_tensor: skip tensors without a largest size
    """
    del do_assertion
    listed = [*nodes]
    left_out: set[TensorSpec] = set()
    if ignore_graph_input:
        left_out |= _inputs(listed, graph_signature)
    if ignore_graph_output:
        left_out |= {s for n in listed if n.op == "output" for s in get_node_tensor_specs(n)}
    if ignore_mutable_buffers:
        left_out |= _written(listed, graph_signature)
    for node in listed:
        if node.op == "get_attr" or (ignore_out_var_node and _is_out_var(node)):
            continue
        for spec in get_node_tensor_specs(node):
            unbound = ignore_dynamic_unbound_tensor and spec.shape_dynamism == _DYNAMIC_UNBOUND
            if spec in left_out or unbound or (ignore_const and spec.const):
                continue
            if dedup:
                left_out.add(spec)
            yield spec


def _is_out_var(node: Node) -> bool:
    schema: Any = getattr(node.target, "_schema", None)
    formals: list[Any] = [] if schema is None else [*schema.arguments]
    return any(formal.is_out and formal.name in node.kwargs for formal in formals)


def _buffers(signature: ExportGraphSignature | None) -> set[str]:
    if signature is None:
        return set()
    written = {*signature.buffers_to_mutate.values()}
    kinds = (InputKind.BUFFER,)
    specs: list[Any] = [spec for spec in signature.input_specs if spec.kind in kinds]
    return {spec.arg.name for spec in specs if spec.target in written}


def _written(nodes: Sequence[Node], signature: ExportGraphSignature | None) -> set[TensorSpec]:
    names = _buffers(signature)
    return {s for n in nodes if n.name in names for s in get_node_tensor_specs(n)}


def _inputs(nodes: Sequence[Node], signature: ExportGraphSignature | None) -> set[TensorSpec]:
    own = _buffers(signature)
    given = [n for n in nodes if n.op == "placeholder" and n.name not in own]
    return {spec for node in given for spec in get_node_tensor_specs(node)}


class Verifier:
    """Checks the memory plan of a graph's specs.

    Args:
        graph_module: with specs in the metadata of its nodes
        alloc_graph_input: inputs have planned memory
        alloc_graph_output: results have planned memory
        alloc_mutable_buffers: buffers that are written have planned memory
        graph_signature: of the program, optional
    """

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        alloc_graph_input: bool,
        alloc_graph_output: bool,
        alloc_mutable_buffers: bool,
        graph_signature: ExportGraphSignature | None = None,
    ) -> None:
        self.graph_module = graph_module
        self.graph_signature = graph_signature
        self.alloc_graph_input = alloc_graph_input
        self.alloc_graph_output = alloc_graph_output
        self.alloc_mutable_buffers = alloc_mutable_buffers

    @classmethod
    def mem_obj_id_match(
        cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec, accept_both_none: bool = True
    ) -> bool:
        """Return whether two tensors are in one object of one planned buffer."""
        if lhs_spec.mem_id != rhs_spec.mem_id or lhs_spec.mem_obj_id != rhs_spec.mem_obj_id:
            return False
        return accept_both_none or lhs_spec.mem_obj_id is not None

    @classmethod
    def has_overlap(cls, lhs_ivl: Sequence[int], rhs_ivl: Sequence[int]) -> bool:
        """Return whether two intervals, both ends included, share a point."""
        if lhs_ivl[0] > lhs_ivl[1] or rhs_ivl[0] > rhs_ivl[1]:
            return False
        return lhs_ivl[0] <= rhs_ivl[1] and rhs_ivl[0] <= lhs_ivl[1]

    @classmethod
    def lifetime_overlap(cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec) -> bool:
        """Return whether two tensors are live at one instruction.

        Raises: PlanError if one has no lifetime
        """
        lives: list[list[int]] = []
        for spec in (lhs_spec, rhs_spec):
            first, last = spec.lifetime
            if first is None or last is None:
                raise PlanError(f"{spec} has no lifetime")
            lives.append([first, last])
        return cls.has_overlap(*lives)

    @classmethod
    def storage_overlap(cls, lhs_spec: TensorSpec, rhs_spec: TensorSpec) -> bool:
        """Return whether two tensors share bytes of a planned buffer.

        Raises: PlanError if one has no place in its buffer
        """
        if lhs_spec.mem_id != rhs_spec.mem_id:
            return False
        places: list[list[int]] = []
        for spec in (lhs_spec, rhs_spec):
            if spec.mem_offset is None or spec.mem_offset < 0:
                raise PlanError(f"{spec} has no place in its planned buffer")
            places.append([spec.mem_offset, spec.mem_offset + spec.allocated_memory - 1])
        return cls.has_overlap(*places)

    def verify_storage_reuse(self, allow_lifetime_and_storage_overlap: bool = False) -> int:
        """Return the number of pairs of tensors that share memory.

        Objects are not compared: tensors that share bytes at different times need not
        be in one, since the planners here place each by its lifetime.

        Args:
            allow_lifetime_and_storage_overlap: accept pairs that are live at the same time

        Raises: PlanError for such a pair, unless one aliases the other intentionally
        """
        specs = collect_specs_from_nodes(
            self.graph_module.graph.nodes,
            self.graph_signature,
            ignore_graph_input=not self.alloc_graph_input,
            ignore_graph_output=not self.alloc_graph_output,
            ignore_mutable_buffers=not self.alloc_mutable_buffers,
            ignore_out_var_node=False,
        )
        pairs = 0
        for one, other in itertools.combinations(specs, 2):
            if not self.storage_overlap(one, other):
                continue
            together = not allow_lifetime_and_storage_overlap and self.lifetime_overlap(one, other)
            if together and one not in _bases(other) and other not in _bases(one):
                raise PlanError(f"Unexpected storage overlap: {_shown(one)}; {_shown(other)}")
            pairs += 1
        return pairs

    def verify_graph_input_output(self) -> None:
        """Check that inputs and results have planned memory exactly if they are to have it.

        Raises: AssertionError with those that do not
        """
        nodes = [*self.graph_module.graph.nodes]
        results = {s for n in nodes if n.op == "output" for s in get_node_tensor_specs(n)}
        if _inputs(nodes, self.graph_signature) & results and (
            self.alloc_graph_input != self.alloc_graph_output
        ):
            return  # a tensor that is both cannot satisfy both requirements
        own = _written(nodes, self.graph_signature)
        exists = self.graph_signature is None or do_user_inputs_exist(self.graph_signature)
        for kind, requested in (
            ("placeholder", self.alloc_graph_input),
            ("output", self.alloc_graph_output),
        ):
            specs = [s for n in nodes if n.op == kind for s in get_node_tensor_specs(n)]
            planned = [s for s in specs if not s.const and s not in own]
            fixed = [s for s in planned if s.shape_dynamism != _DYNAMIC_UNBOUND]
            if kind == "output" or exists:
                wrong = [s for s in fixed if (s.mem_offset is not None) != requested]
                assert not wrong, f"Misallocate graph {kind}: {wrong[0]}, wanted {requested}"


def _bases(spec: TensorSpec) -> list[TensorSpec]:
    """Return the chain of specs that a spec aliases, itself first.

    Raises: PlanError if they form a cycle
    """
    found = [spec]
    while (base := found[-1].storage_base) is not None:
        if base in found:
            raise PlanError(f"Circular storage_base relationship of {spec}")
        found.append(base)
    return found


def _shown(spec: TensorSpec) -> str:
    place = f"mem_id {spec.mem_id} storage: {spec.mem_offset}, {spec.allocated_memory}"
    return f"lifetime {spec.lifetime}, {place}"
