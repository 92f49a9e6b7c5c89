"""The numeric gap of one architecture: python -m tests.zoo.gaps NAME FOLDER.

In four modes of quantization, on portable kernels and delegated to XNNPACK on both engines; no
error is planted, so none of the twelve runs may have a divergence. What comes of it is `gaps.json`.
"""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspector.numerics.report import Row, RunGap
from tests.inspector.gap_families import MODES, WAYS, Case, compiled_net, gap
from tests.zoo.models import make
from tests.zoo.ours import described


def main() -> int:
    name, folder = sys.argv[1], Path(sys.argv[2])
    model, inputs = make(name)
    found: dict[str, Any] = {}
    ways = [(backend, [*engines]) for backend, engines in itertools.groupby(WAYS, lambda w: w[0])]
    for mode, (backend, engines) in itertools.product(MODES, ways):
        case, place = Case(0, name, mode, backend, ""), folder / "gap"
        try:
            made = compiled_net(case, model, inputs, place)
            for _, engine in engines:
                with_engine = replace(made, case=replace(case, engine=engine))
                found[f"{mode} {backend} {engine}"] = summary(gap(with_engine))
        except Exception as error:  # noqa: BLE001  any error is what is found
            traceback.print_exc()
            found[f"{mode} {backend}"] = {"error": described(error)}
        shutil.rmtree(place, ignore_errors=True)
    (folder / "gaps.json").write_text(json.dumps(found, indent=1))
    return 0


def summary(run: RunGap) -> dict[str, Any]:
    """Return how many outputs were compared, and what diverges."""
    first, inside = run.first_divergence(), run.inside()
    return {
        "outputs": len(run.outside()),
        "compared": sum(row.compared for row in run.outside()),
        "nodes": len(inside),
        "nodes_compared": sum(row.compared for row in inside),
        "first_divergence": None if first is None else divergence(first),
    }


def divergence(row: Row) -> str:
    """Return the output that exceeds the tolerance by its own error, and by how much."""
    own = row.own or row.total
    amount = "" if own is None else f", off by {own.max_abs:.3g}"
    return f"{row.node or row.operator} (instruction {row.instruction}, {row.place}){amount}"


if __name__ == "__main__":
    sys.exit(main())
