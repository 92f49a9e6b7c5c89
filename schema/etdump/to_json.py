"""Traces as trees of JSON in the form of flatc: the inverse of `from_json`."""

from __future__ import annotations

from typing import Any

from schema.etdump.events import AllocationEvent, AnyEvent, DebugEvent, ProfileEvent
from schema.etdump.from_json import SCALAR_TYPES, VALUE_TYPES
from schema.etdump.model import RunData
from schema.etdump.values import DebugTensor, DebugValue

Row = dict[str, Any]
_TYPES = {number: name for name, number in SCALAR_TYPES.items()}
_VALUES = {int(number): name for name, number in VALUE_TYPES.items()}


def tree_of_run(run: RunData) -> Row:
    """Return a block of a trace as a JSON object; unset fields are omitted."""
    return {
        "name": run.name,
        "bundled_input_index": run.bundled_input_index,
        "allocators": [{"name": name} for name in run.allocators],
        "events": [_event(event) for event in run.events],
    }


def _event(event: AnyEvent) -> Row:
    if isinstance(event, ProfileEvent):
        metadata = None if event.metadata is None else list(bytes(event.metadata))
        times = {"start_time": event.start_time, "end_time": event.end_time}
        more = {"chain_index": event.chain_index, "delegate_debug_metadata": metadata, **times}
        return {"profile_event": _set({**_ids(event), **more})}
    if isinstance(event, DebugEvent):
        value = None if event.value is None else _value(event.value)
        more = {"chain_index": event.chain_index % 2**64, "debug_entry": value}
        return {"debug_event": _set({**_ids(event), **more})}
    if isinstance(event, AllocationEvent):
        sizes = {"allocator_id": event.allocator_id, "allocation_size": event.allocation_size}
        return {"allocation_event": sizes}
    return {}


def _ids(event: ProfileEvent | DebugEvent) -> Row:
    return {
        "name": event.name,
        "instruction_id": event.instruction_id,
        "delegate_debug_id_int": event.delegate_id_int,
        "delegate_debug_id_str": event.delegate_id_str,
    }


def _value(value: DebugValue) -> Row:
    members = value.tensors
    return _set(
        {
            "val": _VALUES.get(value.type, value.type),
            "tensor": None if value.tensor is None else _tensor(value.tensor),
            "tensor_list": None if members is None else {"tensors": [*map(_tensor, members)]},
            "int_value": _boxed("int_val", value.int_value),
            "float_value": _boxed("float_val", value.float_value),
            "double_value": _boxed("double_val", value.double_value),
            "bool_value": _boxed("bool_val", value.bool_value),
            "output": _boxed("bool_val", value.output),
        }
    )


def _boxed(name: str, item: float | bool | None) -> Row | None:
    return None if item is None else {name: item}


def _tensor(tensor: DebugTensor) -> Row:
    return {
        "scalar_type": _TYPES.get(tensor.scalar_type, tensor.scalar_type),
        "sizes": list(tensor.sizes),
        "strides": list(tensor.strides),
        "offset": tensor.offset,
    }


def _set(row: Row) -> Row:
    return {name: item for name, item in row.items() if item is not None}
