"""What the stock Inspector says about a trace."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from executorch.devtools import Inspector
from executorch.devtools.inspector import TimeScale

from tests.oracle.plain import plain

MODULES_ASKED = 12


def inspector_facts(
    etdump: Path,
    etrecord: Path | None = None,
    debug_buffer: Path | None = None,
    source_time_scale: str = "NS",
    target_time_scale: str = "MS",
) -> dict[str, Any]:
    """Build a stock Inspector and return all that it can be asked about the events."""
    inspector = Inspector(
        etdump_path=str(etdump),
        etrecord=None if etrecord is None else str(etrecord),
        debug_buffer_path=None if debug_buffer is None else str(debug_buffer),
        source_time_scale=TimeScale[source_time_scale],
        target_time_scale=TimeScale[target_time_scale],
    )
    return {
        "blocks": [_block(block) for block in inspector.event_blocks],
        "dataframe": _frame(inspector.to_dataframe()),
        "dataframe_without_units": _frame(inspector.to_dataframe(include_units=False)),
        "tabular": _text(inspector.print_data_tabular),
        "tsv": _text(inspector.save_data_to_tsv),
        "totals": _totals(inspector),
    }


def _block(block: Any) -> dict[str, Any]:
    return {
        "name": block.name,
        "bundled_input_index": block.bundled_input_index,
        "run_output": plain(block.run_output),
        "reference_output": plain(block.reference_output),
        "events": [_event(event) for event in block.events],
    }


def _event(event: Any) -> dict[str, Any]:
    perf = event.perf_data
    names = ("avg", "p10", "p50", "p90", "min", "max")
    return {
        "name": event.name,
        "raw": None if perf is None else plain(perf.raw),
        "perf": None if perf is None else {name: float(getattr(perf, name)) for name in names},
        "op_types": list(event.op_types),
        "delegate_debug_identifier": event.delegate_debug_identifier,
        "debug_handles": plain(event.debug_handles),
        "num_outputs": event.num_outputs,
        "is_delegated_op": event.is_delegated_op,
        "delegate_backend_name": event.delegate_backend_name,
        "stack_traces": plain(event.stack_traces),
        "module_hierarchy": plain(event.module_hierarchy),
        "raw_delegate_debug_metadatas": plain(event.raw_delegate_debug_metadatas),
        "instruction_id": event._instruction_id,
        "start_time": plain(event.start_time),
        "debug_data": plain(event.debug_data),
    }


def _frame(frame: Any) -> dict[str, Any]:
    hidden = frame.drop(columns=["debug_data"])
    rows = [[str(value) for value in row] for row in hidden.itertuples(index=False, name=None)]
    return {"columns": [str(name) for name in frame.columns], "rows_without_debug_data": rows}


def _text(write: Any) -> str:
    stream = io.StringIO()
    write(stream)
    return stream.getvalue()


def _totals(inspector: Any) -> dict[str, float]:
    paths: dict[str, None] = {}
    for block in inspector.event_blocks:
        for event in block.events:
            for hierarchy in event.module_hierarchy.values():
                paths.update(dict.fromkeys(hierarchy or ()))
    asked = [*sorted(paths)[:MODULES_ASKED], "no such module"]
    return {path: float(inspector.find_total_for_module(path)) for path in asked}
