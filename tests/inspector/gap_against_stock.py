"""Numeric gaps of the stock Inspector and ours in one process, on one session after the other.

python -m tests.inspector.gap_against_stock OUT FOLDER… writes one JSON object to OUT, a pair of
tables or refusals for each session, distance and reference graph.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

import torch  # noqa: E402
from executorch.devtools import Inspector as StockInspector  # noqa: E402

from inspector import Inspector  # noqa: E402

DISTANCES = ("MSE", "L1", "SNR")
REFERENCES = ("exported_program", "edge_dialect_exported_program")


def opened(kind: Any, folder: Path) -> Any:
    """Return an Inspector of a session, or the sentence of its failure."""
    try:
        return kind(
            etdump_path=str(folder / "run.etdp"),
            etrecord=str(folder / "model.etrecord"),
            debug_buffer_path=str(folder / "run.debug"),
        )
    except BaseException as error:  # noqa: BLE001 - the stock tool asserts, and its flatc exits
        return f"{type(error).__name__}: {error}"


def table(inspector: Any, distance: str, reference: str | None) -> Any:
    """Return the rows of a gap table as JSON, or the sentence of its failure."""
    if isinstance(inspector, str):
        return inspector
    try:
        frame = inspector.calculate_numeric_gap(distance, reference_graph=reference)
    except BaseException as error:  # noqa: BLE001 - likewise
        return f"{type(error).__name__}: {error}"
    return {
        "columns": list(frame.columns),
        "rows": [_row(row) for row in frame.to_dict("records")],
    }


def _row(row: dict[str, Any]) -> dict[str, Any]:
    recorded, run = row["aot_intermediate_output"], row["runtime_intermediate_output"]
    return {
        "key": [list(row["aot_debug_handle"]), list(row["runtime_debug_handle"])],
        "aot_ops": row["aot_ops"],
        "runtime_ops": row["runtime_ops"],
        "gap": [repr(float(value)) for value in row["gap"]],
        "stacktraces": {key: value or "" for key, value in row["stacktraces"].items()},
        "shapes": [_shape(recorded), _shape(run)],
    }


def _shape(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    return [_shape(item) for item in value] if isinstance(value, (list, tuple)) else None


def tables(folder: Path) -> dict[str, list[Any]]:
    """Return the tables of both tools by distance and reference graph."""
    stock, ours = opened(StockInspector, folder), opened(Inspector, folder)
    distances = DISTANCES if "corpus" in folder.parts else DISTANCES[:1]
    asked = [(distance, None) for distance in distances]
    asked += [("MSE", reference) for reference in REFERENCES]
    return {
        f"{distance} {reference or 'default'}": [
            table(stock, distance, reference),
            table(ours, distance, reference),
        ]
        for distance, reference in asked
    }


if __name__ == "__main__":
    out, *folders = sys.argv[1:]
    answer = {folder: tables(Path(folder)) for folder in folders}
    Path(out).write_text(json.dumps(answer), "utf-8")
