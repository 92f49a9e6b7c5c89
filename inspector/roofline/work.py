"""The work of one operator call, and the form in which rules see a call.

FLOPs are arithmetic operations of any dtype: a multiplication with an addition is two, a
comparison or an elementary function (exp, sqrt, tanh) is one. Bytes are those of each operand
once, the least that has to move; caches may save nothing of them or, between operators, all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from inspector.units import Quantity, format_bytes, format_quantity
from schema.dtypes.scalar_type import scalar_type
from schema.graph import Argument, GraphNode, GraphValue, QuantizationParameters, TensorMeta

UNBOUNDED = 2  # TensorShapeDynamism in program.fbs; 1 is an upper bound
BOUNDED = 1
_PACKED_BITS = {"qcint4": 4, "qbint4": 4, "qpint8": 8, "pfp32": 32}
_DTYPES = {
    **{name: name for name in ("float32", "float16", "bfloat16")},
    **dict.fromkeys(("int8", "uint8", "qint8", "quint8", "qcint8", "qdint8", "qpint8"), "int8"),
}
_ALIKE = 4096  # works that calls may share; layers repeat, so that a program has few
_CHANNEL_SCALE, _GROUP_SCALE = 4, 2  # bytes: float32 a channel, bfloat16 a group


class UnknownWorkError(Exception):
    """The work of a call cannot be computed; with the reason as its message."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a call or of several.

    Attributes:
        flops: arithmetic operations, None where unknown
        read: bytes read, each operand once; None where unknown
        written: bytes written; None where unknown
        bounded: sizes are dynamic, and their upper bounds were used
        reason: why something is unknown, else empty
        dtype: what is computed with: float32, float16, bfloat16, int8; else empty
    """

    flops: int | None
    read: int | None
    written: int | None
    bounded: bool = False
    reason: str = ""
    dtype: str = ""

    @property
    def nbytes(self) -> int | None:
        """Return the bytes read and written."""
        if self.read is None or self.written is None:
            return None
        return self.read + self.written

    @property
    def intensity(self) -> float | None:
        """Return FLOPs a byte; None where unknown or where nothing moves."""
        if self.flops is None or not self.nbytes:
            return None
        return self.flops / self.nbytes

    def times(self, passes: int) -> Work:
        """Return the work of that many passes."""
        if passes == 1:
            return self

        def product(value: int | None) -> int | None:
            return None if value is None else value * passes

        return replace(
            self,
            flops=product(self.flops),
            read=product(self.read),
            written=product(self.written),
        )


NO_WORK = Work(0, 0, 0)


def work_text(work: Work) -> str:
    """Return FLOPs, bytes and intensity in words."""
    at_most = "at most " if work.bounded else ""
    flops = format_quantity(work.flops, Quantity.OPERATIONS)
    flops = f"{at_most}{flops}" if work.flops is not None else "FLOPs missing"
    moved = f"{format_bytes(work.nbytes)} moved" if work.nbytes is not None else "bytes missing"
    words = f"{flops}, {moved}"
    return words if work.intensity is None else f"{words}, {work.intensity:.3g} FLOPs a byte"


def work_json(work: Work) -> dict[str, int | float | bool | str | None]:
    """Return the JSON of work; null where unknown."""
    return {
        "flops": work.flops,
        "read_bytes": work.read,
        "written_bytes": work.written,
        "intensity": work.intensity,
        "dtype": work.dtype or None,
        "upper_bound": work.bounded,
    }


def unknown(reason: str) -> Work:
    """Return work of which nothing is known."""
    return Work(None, None, None, reason=reason)


def total(parts: Iterable[Work]) -> Work:
    """Return the sum; a quantity that one part does not have is unknown."""
    found = tuple(parts)
    if len(found) == 1:
        return found[0]

    def add(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return Work(
        add([one.flops for one in found]),
        add([one.read for one in found]),
        add([one.written for one in found]),
        any(one.bounded for one in found),
        next((one.reason for one in found if one.reason), ""),
        _dominant(found),
    )


def _dominant(parts: tuple[Work, ...]) -> str:
    """Return the dtype of most of the FLOPs."""
    sums: dict[str, int] = {}
    for one in parts:
        sums[one.dtype] = sums.get(one.dtype, 0) + (one.flops or 0)
    return max(sums, key=lambda dtype: sums[dtype], default="")


@dataclass(frozen=True, slots=True)
class CallTensor:
    """A tensor that a call reads or writes.

    Attributes:
        name: of the value
        sizes: elements in each dimension
        bits: bits an element, None for an unknown dtype
        stored: bytes of a constant as it is stored, None for computed values
        parameters: bytes of scales stored beside the elements
        bounded: sizes are upper bounds
        quantization: scheme, empty for plain tensors
        dtype: as in ``Work``
    """

    name: str
    sizes: tuple[int, ...]
    bits: int | None
    stored: int | None = None
    parameters: int = 0
    bounded: bool = False
    quantization: str = ""
    dtype: str = ""

    @property
    def count(self) -> int:
        """Return the number of elements."""
        return math.prod(self.sizes)

    def bytes_of(self, elements: int) -> int:
        """Return the bytes of some of its elements.

        Raises: UnknownWorkError for an unknown dtype
        """
        if self.bits is None:
            raise UnknownWorkError(f"unknown dtype of {self.name}")
        return -(-elements * self.bits // 8)

    @property
    def nbytes(self) -> int:
        """Return its bytes: as stored for constants, else of a dense tensor.

        Raises: UnknownWorkError for an unknown dtype
        """
        dense = self.bytes_of(self.count) if self.stored is None else self.stored
        return dense + self.parameters


@dataclass(frozen=True, slots=True)
class Call:
    """A call as its rule sees it.

    Attributes:
        target: operator or kind of payload node
        args: in schema order; tensors of lists side by side
        tensors: operands of each argument
        outputs: tensors written
        facts: attributes of a payload node
    """

    target: str
    args: tuple[Argument, ...]
    tensors: tuple[tuple[CallTensor, ...], ...]
    outputs: tuple[CallTensor, ...]
    facts: Mapping[str, object]

    def _place(self, position: int, name: str) -> int | None:
        if name and any(arg.name for arg in self.args):
            return next((n for n, arg in enumerate(self.args) if arg.name == name), None)
        return position if position < len(self.args) else None

    def tensor(self, position: int, name: str = "") -> CallTensor:
        """Return the first tensor of an argument, by name where the source has names.

        Raises: UnknownWorkError if there is none
        """
        place = self._place(position, name)
        if place is None or not self.tensors[place]:
            raise UnknownWorkError(f"{self.target}: argument {name or position} is not a tensor")
        return self.tensors[place][0]

    def literal(self, position: int, name: str = "") -> object:
        """Return the constant of an argument, None where there is none."""
        place = self._place(position, name)
        return None if place is None else self.args[place].literal

    def fact(self, name: str) -> int:
        """Return an integer attribute.

        Raises: UnknownWorkError if it is missing
        """
        value = self.facts.get(name)
        if not isinstance(value, int):
            raise UnknownWorkError(f"{self.target}: {name} is missing")
        return value

    @property
    def output(self) -> CallTensor:
        """Return the first output.

        Raises: UnknownWorkError if there is none
        """
        if not self.outputs:
            raise UnknownWorkError(f"{self.target}: no output is a tensor")
        return self.outputs[0]

    @property
    def inputs(self) -> tuple[CallTensor, ...]:
        """Return the tensors read, each once."""
        found = {one.name: one for group in self.tensors for one in group}
        return tuple(found.values())

    @property
    def read(self) -> int:
        """Return the bytes of all inputs."""
        return sum(one.nbytes for one in self.inputs)

    @property
    def written(self) -> int:
        """Return the bytes of all outputs."""
        return sum(one.nbytes for one in self.outputs)

    def work(self, flops: int, read: int | None = None, written: int | None = None) -> Work:
        """Return work whose bytes are those of all operands unless they are given."""
        return Work(
            flops,
            self.read if read is None else read,
            self.written if written is None else written,
        )


Rule = Callable[[Call], Work]


def node_work(node: GraphNode, values: Mapping[str, GraphValue], rule: Rule | None) -> Work:
    """Return the work of a node by its rule; unknown without one."""
    if rule is None:
        return unknown(f"no rule for {node.target}")
    try:
        call = _call(node, values)
        found = rule(call)
    except UnknownWorkError as error:
        return unknown(str(error))
    bounded = found.nbytes != 0 and any(one.bounded for one in (*call.inputs, *call.outputs))
    dtype = next((one.dtype for one in (*call.inputs, *call.outputs)), "")
    return _shared(replace(found, bounded=bounded, dtype=dtype))


@lru_cache(maxsize=_ALIKE)
def _shared(work: Work) -> Work:
    """Return the first work that is equal: operators of a large program share their objects."""
    return work


def _call(node: GraphNode, values: Mapping[str, GraphValue]) -> Call:
    tensors = tuple(_operands(arg.values, values) for arg in node.args)
    outputs = _operands(node.outputs, values)
    return Call(node.target, node.args, tensors, outputs, MappingProxyType(dict(node.attributes)))


def _operands(names: Iterable[str], values: Mapping[str, GraphValue]) -> tuple[CallTensor, ...]:
    found: list[CallTensor] = []
    for name in names:
        value = values.get(name)
        if value is not None and value.tensor is not None:
            found.append(_operand(name, value, value.tensor))
        elif value is None or value.kind in ("tensor", "other"):
            raise UnknownWorkError(f"unknown shape of {name}")
    return tuple(found)


def _operand(name: str, value: GraphValue, tensor: TensorMeta) -> CallTensor:
    sizes: list[int] = []
    for size in tensor.sizes:
        if not isinstance(size, int) or size < 0 or tensor.dynamism == UNBOUNDED:
            raise UnknownWorkError(f"unknown size {size} of {name}: dynamic without a bound")
        sizes.append(size)
    stored = value.constant_bytes if value.constant else None
    scheme = tensor.quantization
    return CallTensor(
        name,
        tuple(sizes),
        _bits(tensor),
        stored,
        _scale_bytes(tuple(sizes), scheme) if scheme is not None and value.constant else 0,
        tensor.dynamism == BOUNDED,
        scheme.scheme if scheme is not None else "",
        _DTYPES.get(tensor.dtype, ""),
    )


def _bits(tensor: TensorMeta) -> int | None:
    packed = _PACKED_BITS.get(tensor.type_name)
    return packed or 8 * scalar_type(tensor.scalar_type).item_bytes or None


def _scale_bytes(sizes: tuple[int, ...], scheme: QuantizationParameters) -> int:
    """Return the bytes of the scales that kernels read with a quantized constant."""
    axis = scheme.axis if scheme.axis is not None and scheme.axis < len(sizes) else None
    if axis is None or scheme.scheme not in ("per_channel", "per_group"):
        return 0
    channels = sizes[axis]
    if scheme.scheme == "per_channel" or not scheme.group_size:
        return _CHANNEL_SCALE * channels
    each = math.prod(sizes) // channels if channels else 0
    return _GROUP_SCALE * channels * -(-each // scheme.group_size)
