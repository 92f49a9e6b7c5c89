"""Metadata of the methods of a program, without loading them."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.memory.slots import TensorShapeDynamism
from schema.dtypes.scalar_type import scalar_type, tensor_nbytes
from schema.program import model as m
from schema.program.program import instructions

_NAMES = {
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "bool": "Bool",
    "bfloat16": "BFloat16",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Metadata of a tensor."""

    _tensor: m.Tensor

    def sizes(self) -> tuple[int, ...]:
        """Return the size of each dimension, the upper bound if it is dynamic."""
        return self._tensor.sizes

    def dtype(self) -> int:
        """Return the scalar type code."""
        return self._tensor.scalar_type

    def dim_order(self) -> tuple[int, ...]:
        """Return the dimensions, outermost first."""
        return self._tensor.dim_order

    def is_static(self) -> bool:
        """Return whether it has these sizes in every run."""
        return self._tensor.shape_dynamism == TensorShapeDynamism.STATIC

    def is_memory_planned(self) -> bool:
        """Return whether the plan has memory for it."""
        return self._tensor.allocation_info is not None

    def nbytes(self) -> int:
        """Return the bytes of the tensor."""
        return tensor_nbytes(self._tensor.scalar_type, self._tensor.sizes)

    def name(self) -> str:
        """Return its qualified name, empty if it has none."""
        return _name(self._tensor)

    def __repr__(self) -> str:
        kind = scalar_type(self.dtype()).name
        return (
            f"TensorInfo(sizes=[{', '.join(map(str, self.sizes()))}], "
            f"dtype={_NAMES.get(kind, kind)}, "
            f"is_memory_planned={self.is_memory_planned()}, nbytes={self.nbytes()})"
        )


@dataclass(frozen=True, slots=True)
class MethodMeta:
    """Metadata of a method."""

    _plan: m.ExecutionPlan

    def name(self) -> str:
        """Return the name of the method."""
        return self._plan.name

    def num_inputs(self) -> int:
        """Return the number of user inputs."""
        return len(self._plan.inputs)

    def num_outputs(self) -> int:
        """Return the number of user outputs, without mutated state."""
        return len(self._plan.outputs)

    def num_attributes(self) -> int:
        """Return the number of tensors with a qualified name."""
        return len(self._attributes())

    def input_tag(self, index: int) -> str:
        """Return the kind of an input, as in ``Tensor`` or ``Int``.

        Raises: IndexError
        """
        return _tag(self._value(self._plan.inputs, index, "input"))

    def output_tag(self, index: int) -> str:
        """Return the kind of an output, as in ``Tensor`` or ``Int``.

        Raises: IndexError
        """
        return _tag(self._value(self._plan.outputs, index, "output"))

    def input_tensor_meta(self, index: int) -> TensorInfo:
        """Return the metadata of an input.

        Raises: IndexError; TypeError for an input that is not a tensor
        """
        return self._info(self._plan.inputs, index, "input")

    def output_tensor_meta(self, index: int) -> TensorInfo:
        """Return the metadata of an output.

        Raises: IndexError; TypeError for an output that is not a tensor
        """
        return self._info(self._plan.outputs, index, "output")

    def attribute_tensor_meta(self, index: int) -> TensorInfo:
        """Return the metadata of a tensor with a qualified name.

        Raises: IndexError
        """
        attributes = self._attributes()
        if not 0 <= index < len(attributes):
            raise IndexError(f"Cannot get attribute tensor meta at {index}")
        return TensorInfo(attributes[index])

    def num_memory_planned_buffers(self) -> int:
        """Return the number of planned buffers."""
        return max(0, len(self._plan.non_const_buffer_sizes) - 1)

    def memory_planned_buffer_size(self, index: int) -> int:
        """Return the size in bytes of a planned buffer; the first one has index 0.

        Raises: IndexError
        """
        if not 0 <= index < self.num_memory_planned_buffers():
            raise IndexError(f"planned buffer {index} not found")
        return self._plan.non_const_buffer_sizes[index + 1]

    def uses_backend(self, backend_name: str) -> bool:
        """Return whether a partition of the method is delegated to this backend."""
        return any(delegate.id == backend_name for delegate in self._plan.delegates)

    def num_backends(self) -> int:
        """Return the number of distinct backends."""
        return len(self.backend_names())

    def get_backend_name(self, index: int) -> str:
        """Return the id of a backend.

        Raises: IndexError
        """
        return self.backend_names()[index]

    def backend_names(self) -> tuple[str, ...]:
        """Return the ids of all backends, in order of first use."""
        return tuple(dict.fromkeys(delegate.id for delegate in self._plan.delegates))

    def num_instructions(self) -> int:
        """Return the number of instructions of all chains."""
        return len(instructions(self._plan))

    def _attributes(self) -> list[m.Tensor]:
        values = (value.val for value in self._plan.values)
        return [entry for entry in values if isinstance(entry, m.Tensor) and _name(entry)]

    def _value(self, indices: tuple[int, ...], index: int, what: str) -> m.KernelType:
        if not 0 <= index < len(indices):
            raise IndexError(f"Cannot get {what} tensor meta at {index}")
        place = indices[index]
        if not 0 <= place < len(self._plan.values):
            raise IndexError(f"{what} {index} is value {place}, which does not exist")
        return self._plan.values[place].val

    def _info(self, indices: tuple[int, ...], index: int, what: str) -> TensorInfo:
        value = self._value(indices, index, what)
        if not isinstance(value, m.Tensor):
            raise TypeError(f"{what} {index} is not a tensor but {_tag(value)}")
        return TensorInfo(value)

    def __repr__(self) -> str:
        ins, outs = (self._all(part, text) for part, text in self._parts())
        return (
            f"MethodMeta(name='{self.name()}', num_inputs={self.num_inputs()}, "
            f"input_tensor_meta={ins}, num_outputs={self.num_outputs()}, "
            f"output_tensor_meta={outs})"
        )

    def _parts(self) -> tuple[tuple[tuple[int, ...], str], tuple[tuple[int, ...], str]]:
        return (self._plan.inputs, "input"), (self._plan.outputs, "output")

    def _all(self, indices: tuple[int, ...], what: str) -> list[str]:
        values = [self._value(indices, index, what) for index in range(len(indices))]
        return [str(TensorInfo(v)) if isinstance(v, m.Tensor) else _tag(v) for v in values]


def _name(tensor: m.Tensor) -> str:
    extra = tensor.extra_tensor_info
    return "" if extra is None else extra.fully_qualified_name


def _tag(value: m.KernelType) -> str:
    return "None" if isinstance(value, m.Null) or value is None else type(value).__name__
