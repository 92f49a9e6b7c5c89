"""The same architecture with the stock package: python -m tests.zoo.stock NAME FOLDER.

Its runtime runs the programs that `tests.zoo.ours` left in the folder, its compiler lowers the
network to XNNPACK; what comes of it is `stock.json`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import torch

from tests.zoo.models import make
from tests.zoo.ours import WAYS, delegation, described, distance

warnings.filterwarnings("ignore")


def main() -> int:
    name, folder = sys.argv[1], Path(sys.argv[2])
    found: dict[str, Any] = {}
    for way in WAYS:
        if (folder / f"{way}.eager.pt").exists():
            found[way] = attempt(run, folder, way)
    found["stock"] = attempt(lowered, name)
    (folder / "stock.json").write_text(json.dumps(found, indent=1))
    # Its libraries may abort while the interpreter ends; what was found is written.
    sys.stdout.flush()
    os._exit(0)


def attempt(what: Any, *arguments: Any) -> dict[str, Any]:
    try:
        return what(*arguments)
    except Exception as error:  # noqa: BLE001  whatever it raises is what is found
        traceback.print_exc()
        return {"error": described(error)}


def run(folder: Path, way: str) -> dict[str, Any]:
    """Run a program of ours; return its distance from eager mode and from our engines."""
    import executorch.kernels.quantized  # noqa: F401
    from executorch.runtime import Runtime

    inputs = torch.load(folder / "inputs.pt")
    program = Runtime.get().load_program(folder / way / "model.pte")
    outputs = program.load_method("forward").execute(list(inputs))
    found = {"eager": distance(outputs, torch.load(folder / f"{way}.eager.pt"))}
    for path in folder.glob(f"{way}.*.pt"):
        found[path.name.split(".")[1]] = distance(torch.load(path), outputs)
    return found


def lowered(name: str) -> dict[str, Any]:
    """Lower to XNNPACK; return partitions, delegated and other nodes, and bytes."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.devtools.backend_debug import get_delegation_info
    from executorch.exir import to_edge_transform_and_lower

    model, inputs = make(name)
    exported = torch.export.export(model, inputs, strict=False)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
        info = get_delegation_info(edge.exported_program().graph_module)
        nbytes = len(edge.to_executorch().buffer)
    return {"delegation": delegation(info), "bytes": nbytes}


if __name__ == "__main__":
    sys.exit(main())
