"""The members of a record that adding and updating write."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from inspector.api.exported_program import source_of
from inspector.api.tensors import MissingTensor
from inspector.api.torch_bridge import load_torch, tensor_over
from inspector.api.values import LazyValues
from schema.bundled import BundledBool, BundledDouble, BundledInt, BundledTensor, BundledValue
from schema.etrecord import members as m

COMPILED = (m.HANDLES, m.DELEGATES, m.COUNTS, m.OUTPUTS, m.INPUTS)
_RESERVED = (m.MARKER, m.EXPORTED, m.GRAPH_ID, m.EDGE, "et_dialect_graph_module", *COMPILED)
_MAPS = ("debug_handle_map", "delegate_map", "instruction_id_to_num_outs_map")
_FORWARD = "forward"


def already(what: str, adding: str) -> str:
    """Return the documented sentence for adding a thing twice."""
    return f"{what} already exists in the ETRecord. Cannot add {adding} when it already exists."


def check_name(name: str) -> None:
    """Raise RuntimeError for a module name with a reserved member name in it."""
    if any(reserved in name for reserved in _RESERVED):
        raise RuntimeError(
            f"The name {name} provided in the extra_recorded_export_modules dict"
            " is a reserved name in the ETRecord namespace."
        )


def program_members(
    program: object, name: str, *, with_graph_id: bool = False
) -> dict[str, bytes | None]:
    """Return the members of a program that was read from a record, under a new name.

    Raises: TypeError if it was not, or was changed since
    """
    artifact, member = source_of(program)
    names = [suffix for suffix in ("", *m.SIDE_FILES) if member + suffix in artifact.archive]
    members: dict[str, bytes | None] = {
        name + suffix: bytes(artifact.read(member + suffix)) for suffix in names
    }
    if with_graph_id and artifact.export_graph_id is not None:
        members[m.GRAPH_ID] = json.dumps(artifact.export_graph_id).encode()
    return members


def compiled_members(program: object) -> dict[str, bytes | None]:
    """Return the maps of a compiled program, and the values of a bundled one.

    Raises: TypeError for an object without the maps
    """
    inner = getattr(program, "executorch_program", program)
    if not all(hasattr(inner, name) for name in _MAPS[:2]):
        raise TypeError(
            "expected an executorch program with debug_handle_map and delegate_map,"
            f" found {type(program).__name__}"
        )
    found = {name: getattr(inner, name, None) for name in _MAPS}
    members: dict[str, bytes | None] = {
        name: json.dumps(value).encode() for name, value in found.items() if value is not None
    }
    if hasattr(program, "method_test_suites"):
        members[m.OUTPUTS] = saved_outputs(program)
        members[m.INPUTS] = saved_inputs(program)
    return members


def saved_inputs(given: object) -> bytes | None:
    """Return representative inputs as torch.save writes them, None when there are none.

    Raises: ValueError for a bundled program whose forward method has no case
    """
    suites = _suites(given)
    if suites is None:
        return _saved(given)
    for suite in suites:
        if suite.method_name == _FORWARD:
            if not suite.test_cases:
                raise ValueError("the 'forward' method has no test case to take inputs from")
            return _saved(list(suite.test_cases[0].inputs))
    return None


def saved_outputs(given: object) -> bytes | None:
    """Return reference outputs as torch.save writes them.

    Raises: ValueError if a case of a bundled program has no expected outputs
    """
    suites = _suites(given)
    if suites is None:
        lone = isinstance(given, list)
        return _saved({_FORWARD: cast("object", given)} if lone else given)
    cases: dict[str, list[list[object]]] = {}
    for suite in suites:
        outputs = [list(case.expected_outputs) for case in suite.test_cases]
        if not all(outputs):
            raise ValueError(f"a test case of method {suite.method_name} expects no outputs")
        cases[suite.method_name] = outputs
    return _saved(cases)


def _suites(given: object) -> list[Any] | None:
    suites = getattr(given, "method_test_suites", None)
    return None if suites is None else list(suites)


def _saved(tree: object) -> bytes | None:
    if tree is None:
        return None
    written = io.BytesIO()
    load_torch().save(_torch_tree(tree), written)
    return written.getvalue()


def _torch_tree(tree: object) -> object:
    """Return the values with torch tensors for arrays and for tensors of bundled programs."""
    if isinstance(tree, MissingTensor):
        raise TypeError(f"a missing tensor cannot be saved: {tree.reason}")
    if isinstance(tree, np.ndarray):
        return load_torch().from_numpy(np.array(cast("Any", tree)))
    if isinstance(tree, BundledValue):
        return _bundled(tree)
    if isinstance(tree, Mapping):
        items = cast("Mapping[object, object]", tree).items()
        return {key: _torch_tree(item) for key, item in items}
    if isinstance(tree, tuple):
        return tuple(_torch_tree(item) for item in cast("Iterable[object]", tree))
    if isinstance(tree, (list, LazyValues)):
        return [_torch_tree(item) for item in cast("Iterable[object]", tree)]
    return tree


def _bundled(value: BundledValue) -> object:
    inner = value.val
    if isinstance(inner, BundledTensor):
        steps = _strides(inner.sizes, inner.dim_order)
        memory = memoryview(bytearray(inner.data))
        return tensor_over(memory, inner.scalar_type, inner.sizes, steps)
    if isinstance(inner, BundledInt):
        return inner.int_val
    if isinstance(inner, BundledBool):
        return inner.bool_val
    return inner.double_val if isinstance(inner, BundledDouble) else None


def _strides(sizes: tuple[int, ...], dim_order: tuple[int, ...]) -> tuple[int, ...]:
    order = dim_order if len(dim_order) == len(sizes) else tuple(range(len(sizes)))
    steps, step = [1] * len(sizes), 1
    for axis in reversed(order):
        steps[axis] = step
        step *= sizes[axis]
    return tuple(steps)
