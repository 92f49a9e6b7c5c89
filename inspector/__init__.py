"""The analysis API and command line: load, join, analyse and export ExecuTorch artifacts.

The documented names of the API are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "DelegationBreakdown": "compat.devtools.delegation_info",
    "DelegationInfo": "compat.devtools.delegation_info",
    "ETRecord": "compat.devtools.etrecord",
    "Event": "compat.devtools.event",
    "EventBlock": "compat.devtools.event_block",
    "Inspector": "compat.devtools.inspector",
    "L1Comparator": "compat.devtools.numerical_comparator",
    "MSEComparator": "compat.devtools.numerical_comparator",
    "MissingTensor": "compat.devtools.tensors",
    "NumericalComparatorBase": "compat.devtools.numerical_comparator",
    "RebuildError": "rebuild.serde_rewrite",
    "PerfData": "compat.devtools.perf_data",
    "SNRComparator": "compat.devtools.numerical_comparator",
    "TimeScale": "compat.devtools.time_scale",
    "compare_results": "compat.devtools.compare",
    "format_delegated_graph": "compat.devtools.delegated_graph",
    "generate_memory_trace": "compat.devtools.memory_trace",
    "generate_etrecord": "compat.devtools.etrecord",
    "generate_model_size_information": "compat.devtools.size_information",
    "get_delegated_payload": "compat.devtools.delegated_graph",
    "get_delegation_info": "compat.devtools.delegation_info",
    "parse_etrecord": "compat.devtools.etrecord",
    "print_delegated_graph": "compat.devtools.delegated_graph",
    "print_delegation_info": "compat.devtools.delegation_info",
    "table": "render.table_result",
}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] - for scripts that import *


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"inspector.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
