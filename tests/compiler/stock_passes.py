"""Asks the stock compiler, in a process of its own, what its passes and its verifier say."""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from typing import Any

warnings.filterwarnings("ignore")


def main() -> int:
    import torch
    from executorch.exir import to_edge

    program = torch.export.load(sys.argv[1])
    edge = to_edge(program)
    answer = {
        "graphs": {name: _nodes(edge.transform([one])) for name, one in _passes().items()},
        "dtypes": _accepted(json.loads(sys.argv[2])),
    }
    sys.stdout.write(json.dumps(answer))
    return 0


def _passes() -> dict[str, Any]:
    from executorch.exir.dialects._ops import ops
    from executorch.exir.pass_base import ExportPass

    from tests.compiler.tutorial_passes import passes_of

    return passes_of(ops, ExportPass)


def _nodes(manager: Any) -> list[list[Any]]:
    nodes = manager.exported_program().graph.nodes
    return [
        [n.target.__name__, n.meta["debug_handle"], str(tuple(n.meta["val"].shape))]
        for n in nodes
        if n.op == "call_function"
    ]


def _accepted(questions: dict[str, Any]) -> dict[str, list[str]]:
    """Return for each operator the combinations of element types its table accepts."""
    import torch
    from executorch.exir.dialects._ops import ops
    from executorch.exir.dialects.edge._ops import EdgeDialectFunctionSchema  # noqa: F401

    letters = {letter: getattr(torch, name) for letter, name in questions["letters"].items()}
    found: dict[str, list[str]] = {}
    for name, formals in questions["operators"].items():
        packet, _, overload = name.partition(".")
        op = getattr(getattr(ops.edge.aten, packet), overload or "default")
        constraint = getattr(op._schema, "dtype_constraint", None)
        if constraint is None:
            continue
        choices = questions["letters"] if len(formals) <= 3 else "bylf"
        every = list(itertools.product(choices, repeat=len(formals)))
        accepted = [
            "".join(given)
            for given in every
            if constraint.validate(dict(zip(formals, (letters[g] for g in given), strict=True)))
        ]
        if len(accepted) < len(every):  # those without a table take everything
            found[name] = accepted
    return found


if __name__ == "__main__":
    sys.exit(main())
