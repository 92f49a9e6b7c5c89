"""The stock runtime as a server: a question a line on stdin, an answer a line on stdout."""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")


def main() -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    verbs = {"each": each, "run": run, "inspect": inspect, "names": names}
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = verbs[question.pop("verb")](**question)
        except Exception:  # noqa: BLE001  whatever the stock tool raises is the answer
            answer = {"error": traceback.format_exc(limit=-3)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


def _plain(values: Any) -> list[Any]:
    import torch

    return [value.clone() if isinstance(value, torch.Tensor) else value for value in values]


def names() -> dict[str, Any]:
    """Return the names of all operators, with the quantized library."""
    import executorch.kernels.quantized  # noqa: F401
    from executorch.runtime import Runtime

    return {"names": sorted(Runtime.get().operator_registry.operator_names)}


def each(programs: str, outputs: str, start: int) -> dict[str, Any]:
    """Run `forward` of each program from one on; results are appended to a file one by one."""
    import executorch.kernels.quantized  # noqa: F401
    from executorch.extension.pybindings import portable_lib

    given = pickle.loads(Path(programs).read_bytes())
    with Path(outputs).open("ab") as file:
        for buffer, inputs in given[start:]:
            try:
                module = portable_lib._load_for_executorch_from_buffer(buffer)
                found: Any = _plain(module.run_method("forward", tuple(inputs)))
            except RuntimeError as error:
                found = str(error)
            pickle.dump(found, file)
            file.flush()
    return {}


def run(program: str, calls: str, outputs: str, data: str = "", trace: str = "") -> dict[str, Any]:
    """Call methods one after the other: `calls` holds (method, inputs), `outputs` the results."""
    from executorch.extension.pybindings import portable_lib

    module = portable_lib._load_for_executorch(
        program,
        data or None,
        enable_etdump=bool(trace),
        debug_buffer_size=1 << 22 if trace else 0,
    )
    given = pickle.loads(Path(calls).read_bytes())
    results = [_plain(module.run_method(method, tuple(inputs))) for method, inputs in given]
    Path(outputs).write_bytes(pickle.dumps(results))
    if trace:
        module.write_etdump_result_to_file(f"{trace}.etdp", f"{trace}.debug")
    return {}


def inspect(trace: str, record: str, outputs: str) -> dict[str, Any]:
    """Return what the stock Inspector reads in a trace: names of events, and their tensors."""
    from executorch.devtools import Inspector

    inspector = Inspector(
        etdump_path=f"{trace}.etdp",
        etrecord=record or None,
        debug_buffer_path=f"{trace}.debug",
    )
    rows, tensors = [], []
    for block in inspector.event_blocks:
        for event in block.events:
            rows.append([block.name, event.name, event._instruction_id])
            tensors.append(_plain(event.debug_data))
    Path(outputs).write_bytes(pickle.dumps(tensors))
    return {"rows": rows}


if __name__ == "__main__":
    sys.exit(main())
