"""Runs every program of a folder on the stock runtime: ``python -m tests.schema.payload_stock``.

Prints one JSON object: program name -> event names of delegates, outputs, or the error.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")


def main(folder: Path) -> None:
    """Run all programs with every float input at one half."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from executorch.extension.pybindings import portable_lib

    found = {path.stem: _run(portable_lib, path) for path in sorted(folder.glob("*.pte"))}
    answers.write(json.dumps(found))
    answers.close()


def _run(portable_lib: Any, path: Path) -> dict[str, Any]:
    import torch

    from schema import etdump
    from schema.program import decode

    data = path.read_bytes()  # the stock loader keeps no reference to it
    (plan,) = decode(data).plans
    inputs = tuple(torch.full(plan.values[index].val.sizes, 0.5) for index in plan.inputs)
    try:
        module = portable_lib._load_for_executorch_from_buffer(data, enable_etdump=True)
        outputs = module.run_method("forward", inputs)
    except RuntimeError as error:
        return {"error": str(error)}
    trace = path.with_suffix(".etdp")
    module.write_etdump_result_to_file(str(trace))
    events = [
        event.delegate_id_str
        for event in etdump.decode(trace.read_bytes()).events
        if isinstance(event, etdump.ProfileEvent) and event.delegate_id_str
    ]
    del module
    return {"events": events, "outputs": [value.flatten().tolist() for value in outputs]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
