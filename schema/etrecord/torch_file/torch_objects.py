"""The globals of a torch.save pickle as plain data.

Known factories of torch and executorch become TensorData, containers and scalars; every other
global becomes an Opaque leaf with its name.

Source: torch/_utils.py (``_rebuild_*``), torch/serialization.py (persistent ids),
exir/serde/export_serialize.py (``_reconstruct_fake_tensor``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from schema.dtypes.scalar_type import numel, scalar_type
from schema.errors import FormatError, Issue, Severity
from schema.etrecord.archive.container import Archive
from schema.etrecord.graph.dtypes import STORAGE_TYPES, scalar_type_number, serde_dtype_names
from schema.etrecord.graph.json_text import parse_json
from schema.etrecord.torch_file.pickle_machine import Global
from schema.etrecord.torch_file.tensor_data import Opaque, TensorData, span_elements

Value: TypeAlias = Any
_MAX_RANK = 64  # the limit of torch
_MAX_BYTES = 1 << 62  # the sum of an offset and an extent then fits int64
_SHOWN_ISSUES = 50
_FORK_MAJOR = 5  # ExecuTorch's serializer stopped there, see FIRST_TORCH_MAJOR


@dataclass(frozen=True, slots=True)
class Storage:
    """A persistent id: bytes that several tensors may share.

    Attributes:
        scalar_type: scalar type code
        key: name of the member with the bytes
        data: the bytes, None if the archive lacks them
    """

    scalar_type: int
    key: str
    data: memoryview | None


class TorchObjects:
    """Converts the globals of one archive to plain data, with issues for those it cannot convert.

    Attributes:
        issues: what is missing, unknown or inconsistent
    """

    def __init__(self, archive: Archive, prefix: str, *, big_endian: bool = False) -> None:
        self.issues: list[Issue] = []
        self._archive = archive
        self._prefix = prefix
        self._big_endian = big_endian
        self._copies_left = 2 * len(archive.data)
        self._noted: set[str] = set()

    def note(self, message: str, severity: Severity = Severity.WARNING) -> None:
        """Record an issue once, up to a limit; nothing is damaged where it is but information."""
        if message not in self._noted and len(self._noted) < _SHOWN_ISSUES:
            self._noted.add(message)
            self.issues.append(Issue(severity, self._prefix, message))

    def persistent(self, identity: Value) -> Value:
        """Return the storage of a persistent id."""
        if not isinstance(identity, tuple) or len(cast("tuple[Value, ...]", identity)) != 5:
            return self._opaque("persistent id")
        kind, storage_type, key, _, count = cast("tuple[Value, ...]", identity)
        known = STORAGE_TYPES.get(storage_type.name) if isinstance(storage_type, Global) else None
        if kind != "storage" or known is None or not isinstance(key, str) or not _is_size(count):
            return self._opaque(_name_of(storage_type))
        return Storage(known, key, self._bytes_of(key, count * scalar_type(known).item_bytes))

    def _bytes_of(self, key: str, nbytes: int) -> memoryview | None:
        name = f"{self._prefix}/data/{key}"
        try:
            data = self._archive.read(name)
        except FormatError as error:
            self.note(f"the bytes of storage {key} are missing: {error}")
            return None
        if len(data) < nbytes:
            self.note(f"storage {key} has {len(data)} bytes where {nbytes} are announced")
        return data

    def construct(self, target: Value, arguments: Value) -> Value:
        """Return plain data for a call, an Opaque when the target is not known."""
        name = _name_of(target)
        if isinstance(target, Global) and isinstance(arguments, tuple):
            factory = _FACTORIES.get(name)
            if factory is not None:
                built = factory(self, cast("tuple[Value, ...]", arguments))
                if built is not None:
                    return built
        return self._opaque(name)

    def _opaque(self, name: str) -> Opaque:
        self.note(f"objects of type {name} are not loaded")
        return Opaque(name)

    # ---- factories: None if the arguments are invalid
    def tensor(self, arguments: tuple[Value, ...]) -> TensorData | None:
        """Return a tensor over a typed storage."""
        storage, offset, sizes, strides, requires_grad = (*arguments, *(None,) * 5)[:5]
        if not isinstance(storage, Storage):
            return None
        self._note_lazy_bits(arguments[6:])
        built = self._layout(storage.scalar_type, offset, sizes, strides)
        return built and self._filled(built, storage, requires_grad is True)

    def tensor_with_dtype(self, arguments: tuple[Value, ...]) -> TensorData | None:
        """Return a tensor over untyped bytes."""
        storage, offset, sizes, strides, requires_grad = (*arguments, *(None,) * 5)[:5]
        if not isinstance(storage, Storage) or len(arguments) < 7:
            return None
        self._note_lazy_bits(arguments[7:])
        built = self._layout(_dtype(arguments[6]), offset, sizes, strides)
        return built and self._filled(built, storage, requires_grad is True)

    def quantized_tensor(self, arguments: tuple[Value, ...]) -> TensorData | None:
        """Return the integers of a quantized tensor; its parameters are only reported."""
        self.note("quantized tensors are shown as their stored integers", Severity.INFO)
        return self.tensor((*arguments[:4], *arguments[5:6]))

    def meta_tensor(self, arguments: tuple[Value, ...]) -> TensorData | None:
        """Return a tensor that was saved without bytes."""
        dtype, sizes, strides = (*arguments, *(None,) * 3)[:3]
        return self._layout(_dtype(dtype), 0, sizes, strides)

    def wrapper_tensor(self, arguments: tuple[Value, ...]) -> TensorData | None:
        """Return the outer layout of a tensor subclass that wraps other tensors."""
        kind, dtype, sizes, strides = (*arguments, *(None,) * 4)[:4]
        words = f"tensors of type {_name_of(kind)} are shown without their bytes"
        self.note(words, Severity.INFO)
        return self._layout(_dtype(dtype), 0, sizes, strides)

    def constant(self, arguments: tuple[Value, ...]) -> str | None:
        """Return the string that a device or layout was created from."""
        return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], str) else None

    def fake_tensor(self, arguments: tuple[Value, ...]) -> TensorData | None:
        """Return a tensor that was only traced, from its JSON description."""
        if len(arguments) != 2 or not isinstance(arguments[0], bytes):
            return None
        meta = parse_json(arguments[0], self._archive.budget, "fake tensor")
        if not isinstance(meta, Mapping):
            return None
        found = cast("Mapping[str, Value]", meta)
        name = serde_dtype_names(_FORK_MAJOR).get(found.get("dtype", 0), "")
        sizes = _static(found.get("sizes"))
        built = self._layout(scalar_type_number(name), 0, sizes, _static(found.get("strides")))
        return built and replace(built, is_parameter=arguments[1] is True)

    def parameter(self, arguments: tuple[Value, ...]) -> TensorData | None:
        """Return the tensor of a parameter."""
        data = arguments[0] if arguments else None
        if not isinstance(data, TensorData):
            return None
        return replace(data, is_parameter=True, requires_grad=arguments[1:2] == (True,))

    def subclass(self, arguments: tuple[Value, ...]) -> Value:
        """Return the result of the inner factory of a tensor subclass; a second level is opaque."""
        if len(arguments) < 3 or _FACTORIES.get(_name_of(arguments[0])) is TorchObjects.subclass:
            return None
        return self.construct(arguments[0], arguments[2])

    def encoded(self, arguments: tuple[Value, ...]) -> bytes | None:
        """Return bytes that protocol 2 saved as a string."""
        if len(arguments) != 2 or not isinstance(arguments[0], str):
            return None
        self._copies_left -= len(arguments[0])
        if self._copies_left < 0:
            raise FormatError("byte strings that fit the file", "larger ones", field="pickle")
        return arguments[0].encode("latin-1", "replace")

    def ordered(self, arguments: tuple[Value, ...]) -> dict[Value, Value] | None:
        """Return an ordered dictionary; its items follow as opcodes."""
        return None if arguments else {}

    def size(self, arguments: tuple[Value, ...]) -> tuple[Value, ...] | None:
        """Return a torch.Size as a tuple."""
        sizes = arguments[0] if len(arguments) == 1 else None
        return cast("tuple[Value, ...]", sizes) if isinstance(sizes, tuple) else None

    def complex_number(self, arguments: tuple[Value, ...]) -> complex | None:
        """Return a complex value from its two parts."""
        parts = [part for part in arguments if isinstance(part, (int, float))]
        return complex(*parts) if len(parts) == len(arguments) == 2 else None

    # ---- helpers
    def _note_lazy_bits(self, rest: tuple[Value, ...]) -> None:
        metadata = rest[0] if rest else None
        if isinstance(metadata, dict) and any(cast("dict[Value, Value]", metadata).values()):
            self.note("a tensor with a conjugate or negative bit is shown as stored")

    def _layout(self, code: int, offset: Value, sizes: Value, strides: Value) -> TensorData | None:
        if not _are_sizes(sizes) or not _are_sizes(strides) or len(sizes) != len(strides):
            return None
        if not _is_size(offset) or numel(sizes) >= _MAX_BYTES or sum(strides) >= _MAX_BYTES:
            return None
        return TensorData(code, tuple(sizes), tuple(strides), offset)

    def _filled(self, built: TensorData, storage: Storage, requires_grad: bool) -> TensorData:
        """Return the tensor with its bytes, without them if they exceed the storage."""
        item = scalar_type(built.scalar_type).item_bytes
        start = built.storage_offset * item
        stop = start + span_elements(built.sizes, built.strides) * item
        data = storage.data
        if data is not None and (not item or stop > len(data)):
            text = f"a tensor needs {stop} bytes of storage {storage.key}, which has {len(data)}"
            self.note(text if item else f"a tensor of unknown type in storage {storage.key}")
            data = None
        return replace(
            built,
            storage_key=storage.key,
            data=None if data is None else data[start:stop],
            big_endian=self._big_endian,
            requires_grad=requires_grad,
        )


def _name_of(target: Value) -> str:
    return target.dotted if isinstance(target, Global) else type(target).__name__


def _dtype(target: Value) -> int:
    named = isinstance(target, Global) and target.module == "torch"
    return scalar_type_number(target.name) if named else -1


def _is_size(number: Value) -> bool:
    return type(number) is int and 0 <= number < _MAX_BYTES


def _are_sizes(sizes: Value) -> bool:
    if not isinstance(sizes, (tuple, list)):
        return False
    numbers = cast("tuple[Value, ...]", sizes)
    return len(numbers) <= _MAX_RANK and all(map(_is_size, numbers))


def _static(sizes: Value) -> list[Value] | None:
    """Return the values of a list of symbolic integers; a symbol has the value of its hint."""
    if not isinstance(sizes, list):
        return None
    return [_static_size(size) for size in cast("list[Value]", sizes)]


def _static_size(size: Value) -> Value:
    expression = _entry(size, "as_expr")
    return _entry(size if expression is None else _entry(expression, "hint"), "as_int")


def _entry(tree: Value, key: str) -> Value:
    return cast("dict[str, Value]", tree).get(key) if isinstance(tree, dict) else None


_Factory: TypeAlias = Callable[[TorchObjects, tuple[Value, ...]], Value]
_FACTORIES: dict[str, _Factory] = {
    "torch._utils._rebuild_tensor": TorchObjects.tensor,
    "torch._utils._rebuild_tensor_v2": TorchObjects.tensor,
    "torch._utils._rebuild_tensor_v3": TorchObjects.tensor_with_dtype,
    "torch._utils._rebuild_qtensor": TorchObjects.quantized_tensor,
    "torch._utils._rebuild_meta_tensor_no_storage": TorchObjects.meta_tensor,
    "torch._utils._rebuild_wrapper_subclass": TorchObjects.wrapper_tensor,
    "torch.device": TorchObjects.constant,
    "torch.serialization._get_layout": TorchObjects.constant,
    "torch._utils._rebuild_parameter": TorchObjects.parameter,
    "torch._utils._rebuild_parameter_with_state": TorchObjects.parameter,
    "torch._tensor._rebuild_from_type": TorchObjects.subclass,
    "torch._tensor._rebuild_from_type_v2": TorchObjects.subclass,
    "torch.tensor._rebuild_from_type": TorchObjects.subclass,
    "executorch.exir.serde.export_serialize._reconstruct_fake_tensor": TorchObjects.fake_tensor,
    "torch._export.serde.serialize._reconstruct_fake_tensor": TorchObjects.fake_tensor,
    "_codecs.encode": TorchObjects.encoded,
    "collections.OrderedDict": TorchObjects.ordered,
    "torch.Size": TorchObjects.size,
    "builtins.complex": TorchObjects.complex_number,
    "__builtin__.complex": TorchObjects.complex_number,
}
