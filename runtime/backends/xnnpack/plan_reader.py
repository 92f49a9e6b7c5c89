"""Reads a payload into a plan; errors name the partition and the node."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable

from runtime.backends.xnnpack.checks import check_node
from runtime.backends.xnnpack.model import (
    BITS,
    WEIGHT_ONLY,
    Datatype,
    PartitionPlan,
    PayloadNode,
    Value,
)
from runtime.backends.xnnpack.quant_params import quantization_of
from runtime.delegates.errors import DelegateError
from runtime.errors import ErrorCode, ExecutionError, usual_remedy
from runtime.program.named_data import NamedDataMap
from schema.dtypes.scalar_type import numel
from schema.errors import FormatError
from schema.flatbuf.spec import UnknownMember
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack.codec import constant_data, decode
from schema.payloads.xnnpack.graph import node_kind
from schema.payloads.xnnpack.kernels import input_ids, output_ids

MOST_DIMS = 6  # XNN_MAX_TENSOR_DIMS
_MOST_EXTERNS = 4096  # a damaged count must not allocate memory
_HASH = re.compile(r"(?:scale_)?([0-9a-f]{64})")


class NamedBlobs(dict[str, memoryview]):
    """Named data as a lazily filled mapping; the hash of each blob is checked once."""

    def __init__(self, data: NamedDataMap) -> None:
        super().__init__()
        self._data = data

    def get(self, key: str, default: memoryview | None = None) -> memoryview | None:  # pyright: ignore[reportIncompatibleMethodOverride] - keys are strings
        """Return the bytes of a key, None if absent.

        Raises: FormatError for bytes whose hash differs from the key
        """
        if key not in self and key in self._data:
            found = self._data.data(key)
            named = _HASH.fullmatch(key)
            if named is not None and hashlib.sha256(found).hexdigest() != named[1]:
                raise FormatError(
                    f"the bytes with the hash {named[1][:12]}…", "other bytes", field=key[:18]
                )
            self[key] = found
        return super().get(key, default)


def read_plan(processed: memoryview, names: NamedBlobs, partition: int) -> PartitionPlan:
    """Return the plan of a payload.

    Raises: DelegateError for the first node or value that cannot be run
    """
    try:
        graph = decode(processed)
    except FormatError as error:
        raise DelegateError(
            ErrorCode.DelegateInvalidCompatibility, str(error), partition=partition
        ) from None
    return _PlanReader(graph, names, partition).plan()


class _PlanReader:
    def __init__(self, graph: m.XNNGraph, names: NamedBlobs, partition: int) -> None:
        self._graph = graph
        self._names = names
        self._partition = partition
        self._values: dict[int, Value] = {}

    def plan(self) -> PartitionPlan:
        table = self._graph.table
        if table.num_externs > _MOST_EXTERNS:
            raise self._bad(f"{table.num_externs} arguments, at most {_MOST_EXTERNS} are supported")
        users = self._users()
        for place, value in enumerate(table.xvalues):
            self._add(place, value, users)
        nodes = self._nodes()
        ends = sorted(
            (value for value in self._values.values() if value.argument is not None),
            key=lambda value: value.argument or 0,
        )
        self._check_ends(ends)
        return PartitionPlan(
            self._partition,
            self._values,
            nodes,
            table.num_externs,
            tuple(value for value in ends if value.is_input),
            tuple(value for value in ends if value.is_output),
        )

    def _check_ends(self, ends: list[Value]) -> None:
        taken: dict[int | None, int] = {}
        for value in ends:
            if value.argument in taken:
                raise self._bad(
                    f"values {taken[value.argument]} and {value.ident} both claim argument "
                    f"{value.argument}"
                )
            taken[value.argument] = value.ident

    def _users(self) -> dict[int, m.XNode]:
        found: dict[int, m.XNode] = {}
        for node in self._graph.table.xnodes:
            form = node.xnode_union
            if form is None or isinstance(form, UnknownMember):
                continue
            for ident in (*(ident for _, ident in input_ids(form)), *output_ids(form)):
                found.setdefault(ident, node)
        return found

    def _bad(self, reason: str, node: m.XNode | None = None) -> DelegateError:
        if node is None:
            code = ErrorCode.DelegateInvalidCompatibility
            return DelegateError(code, reason, partition=self._partition)
        nodes = self._graph.table.xnodes
        place = next(index for index, entry in enumerate(nodes) if entry is node)
        return DelegateError(
            ErrorCode.DelegateInvalidCompatibility,
            reason,
            partition=self._partition,
            node=place,
            kind=node_kind(node),
            debug_handle=_handle(node),
        )

    def _add(self, place: int, value: m.XValue, users: dict[int, m.XNode]) -> None:
        tensor = value.tensor
        if tensor is None:
            raise self._bad(f"value {place} is of an unknown kind")
        user = users.get(tensor.id_out)

        def bad(reason: str) -> DelegateError:
            return self._bad(f"value {tensor.id_out} {reason}", user)

        if tensor.id_out in self._values or tensor.id_out == m.NO_VALUE:
            raise bad("is defined twice")
        try:
            self._values[tensor.id_out] = self._value(tensor, value.quantization, bad)
        except FormatError as error:
            raise bad(f"cannot be read: {error}") from None
        except ExecutionError as error:
            raise error if isinstance(error, DelegateError) else bad(error.reason) from None

    def _value(
        self,
        tensor: m.TensorValue,
        params: m.QuantParams | None,
        bad: Callable[[str], DelegateError],
    ) -> Value:
        if tensor.datatype not in BITS:
            raise bad(f"has the datatype {tensor.datatype}, which is not supported")
        datatype = Datatype(tensor.datatype)
        dims = self._dims(tensor, bad)
        data = self._data(tensor, dims, datatype, bad)
        if datatype in WEIGHT_ONLY and data is None:
            raise bad(f"is {datatype.name.lower()} but not a constant")
        quantization = quantization_of(
            datatype, dims, params, lambda index: self._constant(index, bad), bad
        )
        dynamic = tensor.dq_datatype == Datatype.QINT8 and datatype == Datatype.FLOAT32
        is_input = bool(tensor.flags & m.EXTERNAL_INPUT)
        is_output = bool(tensor.flags & m.EXTERNAL_OUTPUT)
        argument = self._argument(tensor, is_input or is_output, bad)
        if is_input and data is not None:
            raise bad("is an argument and a constant")
        return Value(
            tensor.id_out,
            datatype,
            dims,
            data,
            quantization,
            argument,
            is_input,
            is_output,
            dynamic and is_input,
        )

    def _argument(
        self, tensor: m.TensorValue, is_end: bool, bad: Callable[[str], DelegateError]
    ) -> int | None:
        if tensor.external_id == m.NO_VALUE:
            if is_end:
                raise bad("is an argument without an index")
            return None
        if tensor.external_id >= self._graph.table.num_externs:
            raise bad(
                f"is argument {tensor.external_id} of {self._graph.table.num_externs} arguments"
            )
        return tensor.external_id if is_end else None

    def _dims(self, tensor: m.TensorValue, bad: Callable[[str], DelegateError]) -> tuple[int, ...]:
        dims = tensor.dims
        if len(dims) > MOST_DIMS:
            raise bad(f"has {len(dims)} dimensions, at most {MOST_DIMS} are supported")
        if tensor.num_dims != len(dims):
            raise bad(f"has {len(dims)} sizes for {tensor.num_dims} dimensions")
        if math.prod(max(size, 1) for size in dims) > _MOST_ELEMENTS:
            raise bad(f"has the sizes {list(dims)}")
        return dims

    def _data(
        self,
        tensor: m.TensorValue,
        dims: tuple[int, ...],
        datatype: Datatype,
        bad: Callable[[str], DelegateError],
    ) -> memoryview | None:
        if not tensor.constant_buffer_idx:
            return None
        data = self._constant(tensor.constant_buffer_idx, bad)
        needed = -(-numel(dims) * BITS[datatype] // 8)
        if len(data) < needed:
            raise bad(f"needs {needed:,} bytes, its constant has {len(data):,}")
        return data[:needed]

    def _constant(self, index: int, bad: Callable[[str], DelegateError]) -> memoryview:
        data = constant_data(self._graph, index, self._names)
        if data is None:
            entry = (self._graph.table.constant_data or ())[index]
            error = bad(f"needs the named data {entry.named_key!r}, which was not found")
            error.remedy = usual_remedy(ErrorCode.InvalidExternalData)
            raise error
        return data

    def _nodes(self) -> tuple[PayloadNode, ...]:
        nodes: list[PayloadNode] = []
        ready = {
            ident
            for ident, value in self._values.items()
            if value.is_input or value.data is not None
        }
        fixed = frozenset(ready)
        for index, node in enumerate(self._graph.table.xnodes):
            form = node.xnode_union
            if form is None or isinstance(form, UnknownMember):
                raise self._bad("nodes of this kind are unknown", node)
            bounds = node.output_min_max
            one = PayloadNode(
                index,
                form.kind,
                form,
                tuple(ident for _, ident in input_ids(form)),
                output_ids(form),
                None if bounds is None else (bounds.output_min, bounds.output_max),
                _handle(node),
            )
            reason = check_node(one, self._values, ready, fixed)
            if reason:
                raise self._bad(reason, node)
            ready.update(one.outputs)
            nodes.append(one)
        for value in self._values.values():
            if value.is_output and value.ident not in ready:
                raise self._bad(f"value {value.ident} is a result that no node computes")
        return tuple(nodes)


def _handle(node: m.XNode) -> int | None:
    return None if node.debug_handle in (0, m.INSERTED_HANDLE) else node.debug_handle


_MOST_ELEMENTS = 1 << 48  # sizes, strides and bytes of any dtype then fit 64 bits
