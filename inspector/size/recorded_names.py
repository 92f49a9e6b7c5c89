"""Names that the recorded program has for the constants of its delegates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspector.files.session import Session
from inspector.join.saved_tensors import saved_tensors
from schema.dtypes.scalar_type import numel
from schema.etrecord.torch_file.tensor_data import TensorData
from schema.graph import Graph, GraphNode, GraphValue, TensorMeta

_ARGUMENTS = {"filter": ("weight", "mat2"), "bias": ("bias", "self")}  # of recorded operators
# names that compilers number, which tell less than the module
_MADE_UP = re.compile(r".*_?(?:frozen_param|lifted_tensor|prop_tensor|tensor_constant)(?:_|\d|$)")
_MOST_DIMS = 5  # 120 orders


class RecordedNames:
    """Finds the recorded constant of a constant in a payload, of one method."""

    def __init__(self, session: Session, method: str, graph: Graph | None) -> None:
        """Follow the constants of a recorded graph.

        Args:
            session: with the record
            method: of the graph
            graph: the recorded graph before delegation, None if there is none
        """
        self._record, self._method = session.record, method
        self._origins: Mapping[str, tuple[GraphValue, ...]] = (
            _origins(graph) if graph is not None else {}
        )

    def find(
        self,
        nodes: Iterable[GraphNode],
        role: str,
        tensor: TensorMeta | None,
        data: memoryview | None,
    ) -> str | None:
        """Return the name of the constant that nodes read in a role.

        It has as many elements as the tensor of the payload, whose layout may be another one.
        Of several, argument or equal bytes decide.

        Args:
            nodes: the recorded nodes that a node of the payload stands for
            role: argument of that node
            tensor: type and shape of the constant in the payload
            data: its bytes, None if they are missing

        Returns: an empty string where the nodes have several that are not distinguishable,
            None where they have none of this size, or one without a name of its own
        """
        size = _elements(tensor)
        read = [(node, name, value) for node in nodes for name, value in self._constants(node)]
        weighted = {node.name for node, _, value in read if _dims(value) > 1}
        same = [one for one in read if size is not None and _elements(one[2].tensor) == size]
        if role == "bias":  # a batch norm beside, folded into the layer, has one as well
            same = [one for one in same if one[0].name in weighted] or same
        names = {value.constant for _, _, value in same}
        if len(names) > 1:
            named = {v.constant for _, name, v in same if name in _ARGUMENTS.get(role, ())}
            names = named if len(named) == 1 else self._with_bytes(names, data)
        if len(names) > 1 or not names:
            return "" if names else None
        found = names.pop()
        return None if _MADE_UP.match(found) else found

    def _constants(self, node: GraphNode) -> Iterator[tuple[str, GraphValue]]:
        """Return argument and constant for each that a node reads, also rearranged or scaled."""
        for argument in node.args:
            for value in argument.values:
                for constant in self._origins.get(value, ()):
                    yield argument.name, constant

    def _with_bytes(self, names: set[str], data: memoryview | None) -> set[str]:
        """Return the only name whose recorded values are these bytes, else all of them."""
        record = self._record
        if data is None or record is None:
            return names
        saved = saved_tensors(record, record.roles.edge.get(self._method) or "")
        equal = {name for name in names if name in saved and _is_in_any_order(saved[name], data)}
        return equal if len(equal) == 1 else names


def _origins(graph: Graph) -> Mapping[str, tuple[GraphValue, ...]]:
    """Return value -> the constants that it is computed of, without those that take an input."""
    found = {name: (value,) for name, value in graph.values.items() if value.constant}
    for node in graph.calls():
        if node.inputs and all(name in found for name in node.inputs):
            origins = {one.name: one for name in node.inputs for one in found[name]}
            found |= {name: tuple(origins.values()) for name in node.outputs}
    return found


def _is_in_any_order(saved: TensorData, data: memoryview) -> bool:
    """Return whether bytes are a recorded tensor in some order of its dimensions."""
    values: NDArray[Any] | None = None
    if not saved.big_endian and saved.nbytes == len(data):
        values = saved.to_numpy()
    if values is None or values.ndim > _MOST_DIMS or values.nbytes != saved.nbytes:
        return False
    orders = permutations(range(values.ndim))
    given = bytes(data)
    return any(np.transpose(values, order).tobytes() == given for order in orders)


def _elements(tensor: TensorMeta | None) -> int | None:
    sizes: Sequence[int | str] = () if tensor is None else tensor.sizes
    static = tuple(size for size in sizes if isinstance(size, int))
    return numel(static) if tensor is not None and len(static) == len(sizes) else None


def _dims(value: GraphValue) -> int:
    return 0 if value.tensor is None else len(value.tensor.sizes)
