"""Compile specs as readable values: bytes whose meaning depends on backend and key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from schema.backends import backend_of, resolve
from schema.errors import FormatError
from schema.payloads.settings.options import SAMSUNG_OPTIONS, read_options
from schema.payloads.vulkan.tables import LAYOUT, STORAGE

_MAX_BYTES = 1 << 20
_SHOWN_BYTES = 64
Reader = Callable[[bytes], object]


def describe(backend_id: str, specs: Sequence[tuple[str, bytes]]) -> tuple[tuple[str, object], ...]:
    """Return (key, value) in order; see `schema.payloads.describe_compile_specs`."""
    return tuple((key, _describe(backend_id, key, bytes(value))) for key, value in specs)


def _describe(backend_id: str, key: str, value: bytes) -> object:
    traits = backend_of(backend_id)
    readers: Mapping[str, Reader] = resolve(traits.spec_readers) if traits.spec_readers else {}
    default = traits.default_spec_reader
    reader: Reader = readers.get(key) or (resolve(default) if default else plain)
    try:
        return reader(value)
    except (FormatError, ValueError, RecursionError):
        return plain(value)


def plain(value: bytes) -> object:
    """Return the bytes as a string if printable, else in hexadecimal digits."""
    if not value:
        return ""
    try:
        text = value[:_MAX_BYTES].decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and all(char.isprintable() or char in "\n\t" for char in text):
        return text
    digits = value[:_SHOWN_BYTES].hex()
    return f"0x{digits}{'…' if len(value) > _SHOWN_BYTES else ''}"


def _number(nbytes: int) -> Reader:
    def read(value: bytes) -> int:
        if len(value) != nbytes:
            raise ValueError(len(value))
        return int.from_bytes(value, "little")

    return read


def _truth(value: bytes) -> bool:
    if value not in (b"\0", b"\1"):
        raise ValueError(value)
    return value == b"\1"


def _named(names: Mapping[int, str]) -> Reader:
    def read(value: bytes) -> object:
        if len(value) not in (1, 4):
            raise ValueError(len(value))
        number = int.from_bytes(value, "little")
        return names.get(number, number)

    return read


def _json(value: bytes) -> object:
    if len(value) > _MAX_BYTES:
        raise ValueError(len(value))
    return json.loads(value.decode("utf-8"))


def _text_truth(value: bytes) -> bool:
    names = {"True": True, "False": False}
    text = value.decode("utf-8")
    if text not in names:
        raise ValueError(text)
    return names[text]


def _integer_text(value: bytes) -> int:
    return int(value.decode("utf-8"))


VULKAN: dict[str, Reader] = {
    "storage_type_override": _named(STORAGE),
    "memory_layout_override": _named(LAYOUT),
    "texture_limits_x": _number(4),
    "texture_limits_y": _number(4),
    "texture_limits_z": _number(4),
    "buffer_limit": _number(4),
    "external_constants_max_data_bytes": _number(8),
    **dict.fromkeys(
        (
            "require_dynamic_shapes",
            "force_fp16",
            "small_texture_limits",
            "skip_bool_tensors",
            "skip_tag_memory_metadata",
            "downcast_64_bit",
            "skip_memory_planning",
            "alias_buffer_mutations",
            "warmup_execute_after_compile",
        ),
        _truth,
    ),
}
COREML: dict[str, Reader] = {
    "op_linear_quantizer_config": _json,
    "enumerated_shapes": _json,
    "pass_pipeline": _json,
    "min_deployment_target": _integer_text,
}
ARM: dict[str, Reader] = {
    "preserve_io_quantization": _text_truth,
    "tosa_sw_dev_mode": _text_truth,
    "transform_pipeline_config": _json,
    "external_block_placements": _json,
}
MPS: dict[str, Reader] = {"use_fp16": _truth}
XNNPACK: dict[str, Reader] = {"dqlinear_partitioner": plain}
DEMO: dict[str, Reader] = {"max_value": _number(1)}
SAMSUNG: dict[str, Reader] = {
    "enn_compile_options": lambda value: read_options(SAMSUNG_OPTIONS, value)
}
