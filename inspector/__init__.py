"""The analysis API and command line: load, join, analyse and export ExecuTorch artifacts.

The documented names of the API are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "DelegationBreakdown": "api.delegation_info",
    "DelegationInfo": "api.delegation_info",
    "ETRecord": "api.etrecord",
    "Event": "api.event",
    "EventBlock": "api.event_block",
    "Inspector": "api.inspector",
    "L1Comparator": "api.numerical_comparator",
    "MSEComparator": "api.numerical_comparator",
    "MissingTensor": "api.tensors",
    "NumericalComparatorBase": "api.numerical_comparator",
    "RebuildError": "api.serde_rewrite",
    "PerfData": "api.perf_data",
    "SNRComparator": "api.numerical_comparator",
    "TimeScale": "api.time_scale",
    "compare_results": "api.compare",
    "format_delegated_graph": "api.delegated_graph",
    "generate_memory_trace": "api.memory_trace",
    "generate_etrecord": "api.etrecord",
    "generate_model_size_information": "api.size_information",
    "get_delegated_payload": "api.delegated_graph",
    "get_delegation_info": "api.delegation_info",
    "parse_etrecord": "api.etrecord",
    "print_delegated_graph": "api.delegated_graph",
    "print_delegation_info": "api.delegation_info",
    "table": "render.table_result",
}

__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll] - for scripts that import *


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"inspector.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
