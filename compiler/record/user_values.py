"""Values that users pass to an ETRecord: programs, managers, bundled programs, plain values.

Objects are recognized by their attributes, so those of the stock package are accepted too. torch is
imported only when a tensor is created.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from schema.bundled import BundledBool, BundledDouble, BundledInt, BundledTensor, BundledValue
from schema.dtypes.scalar_type import scalar_type
from schema.etrecord import members as m

if TYPE_CHECKING:
    from torch.export import ExportedProgram

FORWARD = "forward"
_MAPS = (m.HANDLES, m.DELEGATES, m.COUNTS)


def check_name(name: str) -> None:
    """Raise RuntimeError for a module name with a reserved member name in it."""
    if any(reserved in name for reserved in m.RESERVED):
        raise RuntimeError(
            f"The name {name} provided in the extra_recorded_export_modules dict is a reserved"
            " name in the ETRecord namespace."
        )


def is_program(value: object) -> bool:
    """Return whether a value is a torch.export.ExportedProgram."""
    return hasattr(value, "graph_signature") and hasattr(value, "state_dict")


def exported_of(given: object) -> ExportedProgram | None:
    """Return the exported program for a record: the only one, or that of ``forward``.

    Raises: TypeError for anything but a program, programs by method, or None
    """
    if isinstance(given, Mapping):
        given = cast("Mapping[str, object]", given).get(FORWARD)
    if given is not None and not is_program(given):
        raise TypeError(f"expected a torch.export.ExportedProgram, found {_kind(given)}")
    return cast("Any", given)


def edge_programs_of(given: object) -> dict[str, ExportedProgram]:
    """Return edge programs by method.

    Args:
        given: an EdgeProgramManager, a program, or programs by method

    Raises: RuntimeError for anything else, as documented
    """
    programs = _programs_of(given)
    if programs is None:
        raise RuntimeError(f"Unsupported type of edge_dialect_program passed in {type(given)}.")
    return programs


def extra_programs_of(name: str, given: object) -> dict[str, ExportedProgram]:
    """Return further programs by the name that they have in a record.

    Raises: RuntimeError for a reserved name, or anything but a manager, a program or programs
    """
    check_name(name)
    programs = _programs_of(given)
    if programs is None:
        raise RuntimeError(f"Unsupported graph module type. {type(given)}")
    return {f"{name}/{method}": program for method, program in programs.items()}


def _programs_of(given: Any) -> dict[str, Any] | None:  # noqa: ANN401
    if is_program(given):
        return {FORWARD: given}
    if isinstance(given, Mapping):
        found = dict(cast("Mapping[str, Any]", given))
        return found if found and all(map(is_program, found.values())) else None
    if hasattr(given, "methods") and hasattr(given, "to_executorch"):
        return {method: given.exported_program(method) for method in sorted(given.methods)}
    held = getattr(given, "exported_program", None)  # of the older manager of one program
    return {FORWARD: held} if is_program(held) else None


def is_bundled(given: object) -> bool:
    """Return whether a value is a bundled program: ours, a decoded one, or the package's."""
    return hasattr(given, "method_test_suites")


def maps_of(program: object) -> tuple[Any, ...]:
    """Return debug handles, delegate maps and output counts of a compiled program.

    Args:
        program: an ExecutorchProgramManager, or a bundled program around one

    Raises: TypeError for an object without the maps
    """
    inner = getattr(program, "executorch_program", program) if is_bundled(program) else program
    if inner is None or not all(hasattr(inner, name) for name in _MAPS[:2]):
        raise TypeError(
            "expected an executorch program with debug_handle_map and delegate_map, found"
            f" {_kind(program if inner is None else inner)}"
        )
    return tuple(getattr(inner, name, None) for name in _MAPS)


def reference_outputs_of(bundled: Any) -> dict[str, list[Any]]:  # noqa: ANN401
    """Return by method the expected outputs of each case of a bundled program.

    Raises: ValueError if a case has no outputs
    """
    found: dict[str, list[Any]] = {}
    for suite in bundled.method_test_suites:
        cases = [case.expected_outputs for case in suite.test_cases]
        if not all(outputs is not None and len(outputs) for outputs in cases):
            raise ValueError(f"a test case of method {suite.method_name} expects no outputs")
        found[suite.method_name] = [[plain(value) for value in outputs] for outputs in cases]
    return found


def representative_inputs_of(bundled: Any) -> list[Any] | None:  # noqa: ANN401
    """Return the inputs of the first case of ``forward``, None if it has no suite.

    Raises: ValueError if the suite has no case
    """
    for suite in bundled.method_test_suites:
        if suite.method_name == FORWARD:
            if not suite.test_cases:
                raise ValueError("the 'forward' method has no test case to provide inputs")
            return [plain(value) for value in suite.test_cases[0].inputs]
    return None


def plain(given: object) -> Any:  # noqa: ANN401 - any tree of values
    """Return a tree of values with arrays and bundled tensors converted to torch tensors.

    A tree without them is returned unchanged.

    Raises: TypeError for a tensor of a trace or a record whose bytes are missing
    """
    tree = cast("Any", given)
    if isinstance(given, np.ndarray):
        import torch

        return cast("Any", torch).from_numpy(np.array(tree))
    if isinstance(tree, BundledValue):
        return _bundled(tree)
    if isinstance(tree, Mapping):
        items = cast("Mapping[Any, Any]", tree)
        changed = {key: plain(item) for key, item in items.items()}
        return items if _same(items.values(), changed.values()) else changed
    if isinstance(tree, (list, tuple)):
        values = cast("list[Any] | tuple[Any, ...]", tree)
        parts = [plain(item) for item in values]
        if _same(values, parts):
            return values
        return tuple(parts) if isinstance(tree, tuple) else parts
    if hasattr(tree, "reason") and hasattr(tree, "shape"):
        raise TypeError(f"a missing tensor cannot be recorded: {tree.reason}")
    if hasattr(tree, "arrays"):  # a list that creates its items on access
        return [plain(item) for item in tree]
    return given


def _same(one: Iterable[object], other: Iterable[object]) -> bool:
    return all(a is b for a, b in zip(one, other, strict=True))


def _bundled(value: BundledValue) -> object:
    inner = value.val
    if isinstance(inner, BundledTensor):
        return _tensor(inner)
    if isinstance(inner, BundledInt):
        return inner.int_val
    if isinstance(inner, BundledBool):
        return inner.bool_val
    return inner.double_val if isinstance(inner, BundledDouble) else None


def _tensor(value: BundledTensor) -> object:
    import torch

    name = scalar_type(value.scalar_type).name
    dtype = getattr(torch, name, None)
    if dtype is None:
        raise TypeError(f"torch has no dtype {name}, which a bundled tensor has")
    order = tuple(value.dim_order) or tuple(range(len(value.sizes)))
    if not len(value.data):
        return torch.empty(value.sizes, dtype=dtype)
    laid = torch.frombuffer(bytearray(value.data), dtype=dtype)
    back = [order.index(axis) for axis in range(len(order))]
    return laid.reshape([value.sizes[axis] for axis in order]).permute(back)


def _kind(value: object) -> str:
    return type(value).__name__
