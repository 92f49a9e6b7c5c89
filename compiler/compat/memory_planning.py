"""Helpers of ``executorch.exir.memory_planning`` that planners written for it use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.dialect.memory_ops import IN_PLACE_OF, view
from compiler.errors import PlanError
from compiler.memory.algorithms import MemoryAlgoResult
from compiler.memory.tensor_spec import TensorSpec

__all__ = [
    "AllocationSpec",
    "SharedObject",
    "_compute_total_sizes",
    "_does_not_overlap",
    "_extend_storage_base_lifetimes",
    "_find_max_overlapping_allocations_offset",
    "_is_inplace_node",
    "_resolve_storage_base_specs",
    "get_node_tensor_specs",
    "pick_shared_obj",
]


@dataclass
class AllocationSpec:
    """A tensor in a shared object.

    Attributes:
        offset: bytes from the start of the object
        spec: the tensor
    """

    offset: int
    spec: TensorSpec


@dataclass
class SharedObject:
    """A piece of a planned buffer that several tensors use one after the other.

    Attributes:
        idx: its place in the list of the objects of a buffer
        offset: bytes from the start of the buffer; -1 before it is known
        size: bytes
        first_used_index: first instruction that uses it
        last_used_index: last instruction that uses it
        allocations: the tensors in it
    """

    idx: int
    offset: int
    size: int
    first_used_index: int
    last_used_index: int
    allocations: list[AllocationSpec] = field(default_factory=list[AllocationSpec])


def _lifetime(spec: TensorSpec) -> tuple[int, int]:
    first, last = spec.lifetime
    assert first is not None
    assert last is not None
    return first, last


def _together(a: TensorSpec, b: TensorSpec) -> bool:
    first, last = _lifetime(a)
    begin, end = _lifetime(b)
    return first <= end and begin <= last


def _does_not_overlap(sobj: SharedObject, spec: TensorSpec) -> bool:
    """Return whether no tensor of an object is live at the same time as another one."""
    return not any(_together(one.spec, spec) for one in sobj.allocations)


def _find_max_overlapping_allocations_offset(sobj: SharedObject, spec: TensorSpec) -> int:
    """Return the end of the tensors of an object whose lifetimes overlap that of a tensor."""
    ends = [
        one.offset + one.spec.allocated_memory
        for one in sobj.allocations
        if _together(one.spec, spec)
    ]
    return max(ends, default=0)


def pick_shared_obj(
    shared_objects: list[SharedObject],
    spec: TensorSpec,
    allow_overlapping_allocations: bool = True,
) -> SharedObject:
    """Return the object a tensor was placed in; a new one is added if none has room.

    Args:
        shared_objects: those of one planned buffer
        spec: tensors must be passed largest first
        allow_overlapping_allocations: place it behind tensors that are live at the same time

    Raises: AssertionError if it is larger than a free object, so the order was violated
    """
    for sobj in shared_objects:
        if _does_not_overlap(sobj, spec):
            assert sobj.size >= spec.allocated_memory, "Allocation specs are not sorted"
            return _put(sobj, spec, 0)
    for sobj in shared_objects if allow_overlapping_allocations else ():
        end = _find_max_overlapping_allocations_offset(sobj, spec)
        if 0 < end <= sobj.size - spec.allocated_memory:
            return _put(sobj, spec, end)
    built = SharedObject(len(shared_objects), -1, spec.allocated_memory, *_lifetime(spec))
    shared_objects.append(built)
    return _put(built, spec, 0)


def _put(sobj: SharedObject, spec: TensorSpec, offset: int) -> SharedObject:
    first, last = _lifetime(spec)
    sobj.first_used_index = min(sobj.first_used_index, first)
    sobj.last_used_index = max(sobj.last_used_index, last)
    sobj.allocations.append(AllocationSpec(offset, spec))
    return sobj


def _extend_storage_base_lifetimes(specs: Collection[TensorSpec]) -> None:
    """Extend the lifetime of storage to the specs that alias it.

    Raises: PlanError for specs that alias each other in a cycle, or have no lifetime
    """
    for spec in specs:
        seen = {spec}
        base = spec.storage_base
        while base is not None:
            if base in seen:
                raise PlanError(f"{spec} and its storage_base alias each other: {base}")
            if None in (*spec.lifetime, *base.lifetime):
                raise PlanError(f"no lifetime of {spec} or of its storage_base {base}")
            seen.add(base)
            first, last = _lifetime(spec)
            begin, end = _lifetime(base)
            base.lifetime = [min(first, begin), max(last, end)]
            base = base.storage_base


def _resolve_storage_base_specs(
    deferred_storage_base: Sequence[TensorSpec],
    spec2obj: dict[TensorSpec, SharedObject],
    greedy_result: MemoryAlgoResult,
) -> None:
    """Assign aliasing specs the location of their base.

    Raises: PlanError if one has no offset in its base, or bases form a cycle
    """
    waiting = list(deferred_storage_base)
    while waiting:
        ready = [spec for spec in waiting if spec.storage_base in spec2obj]
        if not ready:
            shown = ", ".join(f"allocated_memory={spec.allocated_memory}" for spec in waiting)
            raise PlanError(f"Circular or unresolvable storage_base dependency chain: {shown}")
        for spec in ready:
            _put_into_base(spec, spec2obj, greedy_result)
        waiting = [spec for spec in waiting if spec not in ready]


def _put_into_base(
    spec: TensorSpec, spec2obj: dict[TensorSpec, SharedObject], result: MemoryAlgoResult
) -> None:
    base, offset = spec.storage_base, spec.storage_base_offset
    assert base is not None
    sobj = spec2obj[base]
    (start,) = [one.offset for one in sobj.allocations if one.spec is base]
    if offset < 0 or offset + spec.allocated_memory > base.allocated_memory:
        raise PlanError(
            f"storage_base_offset {offset} must be non-negative, and {spec.allocated_memory} bytes "
            f"must fit within storage_base, which has {base.allocated_memory}"
        )
    if (start + offset) % spec.alignment:
        raise PlanError(
            f"storage_base_offset {offset} in a base at {start} must respect alignment "
            f"{spec.alignment}"
        )
    result.spec_dict[spec].mem_id = result.spec_dict[base].mem_id
    spec2obj[spec] = _put(sobj, spec, start + offset)


def _compute_total_sizes(
    shared_objects: Mapping[int, Sequence[SharedObject]],
    graph_module: torch.fx.GraphModule,
    extra_padding: int,
    greedy_result: MemoryAlgoResult,
    num_specs_expected: int,
) -> list[int]:
    """Concatenate the objects of each buffer and return the sizes of the buffers.

    Raises: AssertionError if an object has a tensor without a result, or tensors are missing
    """
    given: Any = getattr(graph_module, "input_mem_buffer_sizes", None) or []
    sizes = [0] * (max(shared_objects, default=1) + 1)
    count = 0
    for mem_id, objects in shared_objects.items():
        end = given[mem_id] if len(given) > mem_id else 0
        for sobj in objects:
            sobj.offset = end
            end += sobj.size
            for one in sobj.allocations:
                place = greedy_result.spec_dict[one.spec]
                place.mem_obj_id, place.mem_offset = sobj.idx, sobj.offset + one.offset
                count += 1
        sizes[mem_id] = end + extra_padding
    assert count == num_specs_expected, f"{count} specs have a place, expected {num_specs_expected}"
    return sizes


def _is_inplace_node(node: torch.fx.Node) -> bool:
    """Return whether a call writes its result over an argument: by its operator, or as marked."""
    if node.op != "call_function":
        return False
    if IN_PLACE_OF in node.meta:
        return True
    below = getattr(node.target, "_op", node.target)
    schema: Any = getattr(node.target, "_schema", None) or getattr(below, "_schema", None)
    if schema is None:
        return False
    name = str(schema.name).split("::")[-1]
    written = any(
        one.alias_info is not None and one.alias_info.is_write for one in schema.arguments
    )
    return written and name.endswith("_") and not name.endswith("__")


def get_node_tensor_specs(node: torch.fx.Node) -> list[TensorSpec]:
    """Return the specs of a node's results; a view has those of its base."""
    source: Any = node.args[0] if node.target is view else node
    found = source.meta.get("spec")
    if isinstance(found, TensorSpec):
        return [found]
    items: list[Any] = [*found] if isinstance(found, (list, tuple)) else []
    return [spec for spec in items if isinstance(spec, TensorSpec)]
