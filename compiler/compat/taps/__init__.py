"""Taps: intermediate values as further outputs of a program, which survive delegation."""

from compiler.compat.taps.reducers import FULL_TENSOR, STATS, StatReducer, get_reducer
from compiler.compat.taps.selectors import (
    NodeSelector,
    select_all,
    select_all_call_function,
    select_any,
    select_by_module_class,
    select_by_module_path,
    select_by_op_type,
    select_not,
)
from compiler.compat.taps.tapping import (
    TapRule,
    TapSpec,
    find_tap_nodes,
    is_tap_node,
    strip_taps_,
    tap_intermediate_outputs_,
)

__all__ = [
    "FULL_TENSOR",
    "STATS",
    "NodeSelector",
    "StatReducer",
    "TapRule",
    "TapSpec",
    "find_tap_nodes",
    "get_reducer",
    "is_tap_node",
    "select_all",
    "select_all_call_function",
    "select_any",
    "select_by_module_class",
    "select_by_module_path",
    "select_by_op_type",
    "select_not",
    "strip_taps_",
    "tap_intermediate_outputs_",
]
