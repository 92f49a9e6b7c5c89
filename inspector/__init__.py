"""The analysis API and command line: load, join, analyse and export ExecuTorch artifacts.

The documented names of the API are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "DelegationBreakdown": "delegation_info",
    "DelegationInfo": "delegation_info",
    "ETRecord": "etrecord",
    "Event": "event",
    "EventBlock": "event_block",
    "Inspector": "inspector",
    "L1Comparator": "numerical_comparator",
    "MSEComparator": "numerical_comparator",
    "MissingTensor": "tensors",
    "NumericalComparatorBase": "numerical_comparator",
    "RebuildError": "serde_rewrite",
    "PerfData": "perf_data",
    "SNRComparator": "numerical_comparator",
    "TimeScale": "time_scale",
    "compare_results": "compare",
    "format_delegated_graph": "delegated_graph",
    "generate_memory_trace": "memory_trace",
    "generate_etrecord": "etrecord",
    "generate_model_size_information": "size_information",
    "get_delegated_payload": "delegated_graph",
    "get_delegation_info": "delegation_info",
    "parse_etrecord": "etrecord",
    "print_delegated_graph": "delegated_graph",
    "print_delegation_info": "delegation_info",
    "table": "table",
}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] - for scripts that import *


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"inspector.api.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
