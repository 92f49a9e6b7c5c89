"""Partitions of one architecture, ours and the stock compiler's: ... partitions NAME FOLDER.

Both lower the same exported program to XNNPACK in float32; counts and bytes go into
`partitions.json`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import torch

from tests.zoo.models import make
from tests.zoo.ours import delegation, described

warnings.filterwarnings("ignore")
HEAD = """# Partitions

Partitions / delegated nodes / nodes outside of the architectures of [models.md](models.md), lowered
to XNNPACK in float32 by our compiler and by the stock one, as `get_delegation_info` of each tool
counts them; the bytes of the two files, and the CPU seconds of lowering. `make zoo
ZOO="--side partitions"` measures what was not measured yet, and writes this page.

Our compiler folds expressions of weights first and drops copies that only set a dim order: the
graph then has fewer nodes. Fewer delegated ones than the stock compiler's are counted as a defect
where more are left outside, too.

"""
_TITLES = ("model", "ours", "stock", "KiB ours / stock", "seconds ours / stock")


def main() -> int:
    name, folder = sys.argv[1], Path(sys.argv[2])
    model, inputs = make(name)
    found: dict[str, Any] = {}
    for side, lower in (("ours", _ours), ("stock", _stock)):
        try:
            exported = torch.export.export(model, inputs, strict=False)
            start = time.process_time()
            found[side] = lower(exported)
            found[side]["seconds"] = time.process_time() - start
        except Exception as error:  # noqa: BLE001  whatever it raises is what is found
            traceback.print_exc()
            found[side] = {"error": described(error)}
    (folder / "partitions.json").write_text(json.dumps(found, indent=1))
    sys.stdout.flush()
    os._exit(0)  # libraries of the stock package may abort while the interpreter ends


def _ours(exported: torch.export.ExportedProgram) -> dict[str, Any]:
    from compiler import to_edge_transform_and_lower
    from compiler.backends.xnnpack import XnnpackPartitioner
    from inspector import get_delegation_info

    manager = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    info = get_delegation_info(manager.exported_program().graph_module)
    return {"delegation": delegation(info), "bytes": len(manager.to_executorch().buffer)}


def _stock(exported: torch.export.ExportedProgram) -> dict[str, Any]:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.devtools.backend_debug import get_delegation_info
    from executorch.exir import to_edge_transform_and_lower

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
        info = get_delegation_info(edge.exported_program().graph_module)
        return {"delegation": delegation(info), "bytes": len(edge.to_executorch().buffer)}


def problems(found: dict[str, Any]) -> list[str]:
    """Return in what we are behind the stock compiler: partitions, delegated nodes, bytes."""
    ours, stock = found.get("ours", {}), found.get("stock", {})
    if "delegation" not in stock:
        return []
    if "delegation" not in ours:
        return [f"refused: {ours.get('error', 'nothing')}"]
    lines = []
    (parts, inside, outside), (others, taken, left) = ours["delegation"], stock["delegation"]
    if parts > others:
        lines.append(f"{parts} partitions, stock has {others}")
    if inside < taken and outside > left:
        lines.append(f"{inside} delegated nodes, stock has {taken}")
    if ours["bytes"] > stock["bytes"]:
        lines.append(f"{ours['bytes']:,} B, stock has {stock['bytes']:,} B")
    return lines


def write_partitions(results: Path, names: Any, page: Path) -> list[str]:
    """Write the page of what was measured; return what is wrong with any model."""
    rows, wrong = [], []
    for name in names:
        path = results / name / "partitions.json"
        if not path.exists():
            continue
        found = json.loads(path.read_text())
        rows.append(_row(name, found))
        wrong += [f"{name}: {line}" for line in problems(found)]
    lines = [_TITLES, ["---"] * len(_TITLES), *rows]
    known = {row[0] for row in rows}
    left = ", ".join(name for name in names if name not in known)
    missing = f"Not measured yet: {left}.\n\n" if left else ""
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    listed = "\n".join(f"- {line}" for line in wrong) or "Nothing."
    page.write_text(
        f"{HEAD}{table}\n\n{missing}## Behind the stock compiler\n\n{listed}\n", "utf-8"
    )
    return wrong


def _row(name: str, found: dict[str, Any]) -> list[str]:
    sides = [found.get(side, {}) for side in ("ours", "stock")]
    counts = ["/".join(map(str, one.get("delegation", ("refused",)))) for one in sides]
    sizes = [f"{one['bytes'] / 1024:,.0f}" if "bytes" in one else "–" for one in sides]
    times = [f"{one['seconds']:.2f}" if "seconds" in one else "–" for one in sides]
    return [name, *counts, " / ".join(sizes), " / ".join(times)]


if __name__ == "__main__":
    sys.exit(main())
