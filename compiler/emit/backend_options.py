"""Options of emission that select an implementation, with checks for those not supported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

from compiler.errors import UnsupportedError
from compiler.passes.standard.out_variants import ToOutVarPass
from compiler.passes.standard.sym_shapes import (
    ConstraintBasedSymShapeEvalPass,
    HintBasedSymShapeEvalPass,
)

_TARGET = "target_device"
_HOST = "cpu"


class DynamicMemoryPlanningMode(IntEnum):
    """How much memory is planned for dynamic sizes."""

    UPPER_BOUND = 0
    SYMBOLIC = 1


@dataclass
class PropagateDeviceConfig:
    """Whether inputs and results of a method are copied to and from the device of a delegate.

    Attributes:
        skip_h2d_for_method_inputs: the caller's inputs are on the device; or that by method
        skip_d2h_for_method_outputs: results stay on the device; or that by method
    """

    skip_h2d_for_method_inputs: bool | dict[str, bool] = False
    skip_d2h_for_method_outputs: bool | dict[str, bool] = False


def check_to_out_var_pass(value: Any) -> None:  # noqa: ANN401
    """Check that ``to_out_var_pass`` is a plain ToOutVarPass.

    Raises: ValueError if it is a custom pass
    """
    if value is None or type(value) is ToOutVarPass:
        return
    raise ValueError(
        f"to_out_var_pass={type(value).__name__} is not run: instructions are emitted from the "
        "edge program. Put a pass over it into `passes`"
    )


def check_planning_mode(value: Any) -> None:  # noqa: ANN401
    """Check that dynamic sizes are planned at their upper bounds.

    Raises: ValueError if not
    """
    if value is None or value == DynamicMemoryPlanningMode.UPPER_BOUND:
        return
    raise ValueError(
        f"dynamic_memory_planning_mode={value!r} is not possible: a program file has sizes in "
        "bytes, so that memory is planned at upper bounds"
    )


def takes_hints(value: Any, method: str | None = None) -> bool:  # noqa: ANN401
    """Return whether upper bounds are the sizes of the example inputs.

    Args:
        value: a pass, or passes by method
        method: name of the method; None for any method

    Raises: ValueError for any other pass
    """
    if isinstance(value, Mapping):
        named = cast("Mapping[str, Any]", value)
        requested = [*named.values()] if method is None else [named.get(method)]
        found = [_takes_hints(one) for one in requested]  # checks every pass
        return any(found)
    return _takes_hints(value)


def _takes_hints(named: Any) -> bool:  # noqa: ANN401
    if named is None or isinstance(named, ConstraintBasedSymShapeEvalPass):
        return False
    if isinstance(named, HintBasedSymShapeEvalPass):
        return True
    raise ValueError(
        f"sym_shape_eval_pass={type(named).__name__} is not run; upper bounds come from "
        "ConstraintBasedSymShapeEvalPass or HintBasedSymShapeEvalPass"
    )


def check_devices(delegates: Any, *, non_cpu: bool) -> None:  # noqa: ANN401 - BackendDelegates
    """Check that no delegate needs memory elsewhere.

    Args:
        delegates: of all methods
        non_cpu: whether memory of other devices is to be planned

    Raises: UnsupportedError naming a delegate and its device
    """
    for delegate in delegates if non_cpu else ():
        for spec in delegate.compile_specs:
            device = bytes(spec.value).decode("utf-8", "replace").strip("\0").strip()
            if spec.key == _TARGET and device.partition(":")[0].lower() != _HOST:
                raise UnsupportedError(
                    f"{delegate.id} needs its inputs and results in memory of {device}; memory is "
                    "planned on the host only: set enable_non_cpu_memory_planning=False for that"
                )
