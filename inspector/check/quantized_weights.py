"""Compares quantized weights that kernels read as they are stored with those of a record.

Passes replace the recorded operators behind such a weight (its values less a zero point, times a
scale) by one kernel, and pack values of few bits. The recorded weight is the only one of its size
that the recorded nodes of the instruction compute from constants alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inspector.join.facts import Finding
from inspector.join.node_index import base_operator
from inspector.join.operands import plan_operands
from inspector.join.saved_tensors import differs
from schema.errors import FormatError
from schema.etrecord.torch_file.tensor_data import TensorData
from schema.graph import Graph, GraphNode
from schema.program import ProgramFile
from schema.program import model as m

_BITS = {"embedding_byte": 8, "embedding_4bit": 4, "embedding_2bit": 2, "mixed_linear": 8}
_BYTES = frozenset((0, 1))  # ScalarType of program.fbs: uint8, int8
_INT8 = 1
_MOST = 8  # constants behind a value: a weight has its scales and zero points beside it
_NONE: frozenset[str] = frozenset()


def bits_read(operator: str) -> int:
    """Return the bits of the weights that a kernel reads as they are stored, 0 for others."""
    name, _, own = base_operator(operator).partition("::")
    return _BITS.get(own, 0) if name == "quantized_decomposed" else 0


class RecordedWeights:
    """The weights that nodes of a recorded graph compute from constants alone."""

    def __init__(self, graph: Graph, saved: Mapping[str, TensorData]) -> None:
        self._saved = saved
        self._behind: dict[str, frozenset[str]] = {
            name: frozenset((value.constant,))
            for name, value in graph.values.items()
            if value.constant in saved
        }
        for node in graph.nodes:
            parts = [self._behind.get(name, _NONE) for name in node.inputs]
            names = _NONE.union(*parts) if all(parts) else _NONE
            if 0 < len(names) <= _MOST:
                self._behind.update(dict.fromkeys(node.outputs, names))

    def of(self, nodes: Iterable[GraphNode], sizes: tuple[int, ...]) -> dict[str, TensorData]:
        """Return the tensors of int8 of a size that values read by nodes are computed from."""
        read = {name for node in nodes for name in node.inputs}
        names = _NONE.union(*(self._behind.get(name, _NONE) for name in read))
        known = {name: self._saved[name] for name in sorted(names)}
        return {
            name: one
            for name, one in known.items()
            if one.scalar_type == _INT8 and one.sizes == sizes
        }


def quantized_weights(
    program: ProgramFile,
    plan: m.ExecutionPlan,
    step: int,
    bits: int,
    nodes: Iterable[GraphNode],
    recorded: RecordedWeights,
) -> Finding:
    """Compare the weights that an instruction reads with those of its recorded nodes."""
    agree = 0
    for index in plan_operands(plan)[step].reads:
        tensor = plan.values[index].val
        if not isinstance(tensor, m.Tensor) or tensor.scalar_type not in _BYTES:
            continue
        if not tensor.sizes or tensor.data_buffer_idx <= 0 or tensor.allocation_info is not None:
            continue
        sizes = (*tensor.sizes[:-1], tensor.sizes[-1] * (8 // bits))
        candidates = recorded.of(nodes, sizes)
        if len(candidates) != 1:
            continue
        ((name, known),) = candidates.items()
        try:
            other = differs(known, program.constant_data(tensor), 0 if bits == 8 else bits)
        except FormatError:
            continue
        if other:
            return 0, f"the values of {name} in the program differ from the record"
        agree += other is False
    return agree, ""
