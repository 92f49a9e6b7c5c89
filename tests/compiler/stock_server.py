"""Runs compiled programs on the stock runtime and asks the stock tools: a line in, a line out.

Tensors travel in torch.save files, whose paths the lines name.
"""

from __future__ import annotations

import collections
import copy
import importlib
import json
import os
import sys
import traceback
import warnings
from typing import Any

warnings.filterwarnings("ignore")


def main() -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    verbs = {
        "run": run,
        "run_each": run_each,
        "operators": operators,
        "record": record,
        "arena": arena,
        "compiled": compiled,
        "zoo": zoo,
        "load": load,
        "parsed": parsed,
        "recipe": recipe,
    }
    from tests.compiler.stock_delegation import VERBS

    verbs |= VERBS
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = verbs[question.pop("verb")](**question)
        except Exception:  # noqa: BLE001  whatever the stock tool raises is the answer
            answer = {"error": traceback.format_exc(limit=-3)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


def load(module: str) -> dict[str, Any]:
    """Load a module of the stock wheel, which registers operators and kernels."""
    importlib.import_module(module)
    return {}


def run(program: str, calls: str, outputs: str, trace: str = "", data: str = "") -> dict[str, Any]:
    """Call methods one after the other: `calls` holds (method, inputs), `outputs` the results."""
    import executorch.kernels.quantized  # noqa: F401  registers kernels
    import torch
    from executorch.extension.pybindings import portable_lib

    module = portable_lib._load_for_executorch(
        program, data or None, enable_etdump=bool(trace), debug_buffer_size=1 << 22 if trace else 0
    )
    results = []
    for method, inputs in torch.load(calls):
        found = module.run_method(method, tuple(inputs))
        results.append([v.clone() if isinstance(v, torch.Tensor) else v for v in found])
    torch.save(results, outputs)
    if trace:
        module.write_etdump_result_to_file(f"{trace}.etdp", f"{trace}.debug")
    return {"methods": sorted(module.method_names())}


def recipe(given: str, kind: str, options: dict[str, Any], outputs: str) -> dict[str, Any]:
    """Compile with a stock recipe for XNNPACK and run: `given` holds (module, inputs)."""
    import torch
    from executorch.backends.xnnpack.recipes import XNNPackRecipeType
    from executorch.export import ExportRecipe, export

    module, inputs = torch.load(given, weights_only=False)
    wanted = ExportRecipe.get_recipe(XNNPackRecipeType[kind], **options)
    session = export(module, inputs, wanted)
    found = [session.run_method("forward", list(one)) for one in inputs]
    torch.save([[value.clone() for value in values] for values in found], outputs)
    manager = session.get_edge_program_manager()
    graph = manager.exported_program().graph
    return {
        "operators": sorted(
            str(node.target)
            for node in graph.nodes
            if "getitem" not in node.name and node.op == "call_function"
        )
    }


def run_each(programs: str, outputs: str) -> dict[str, Any]:
    """Call `forward` of each program: `programs` holds (bytes, inputs), `outputs` the results.

    Each is called twice and the second results count: memory is not all zeros any more then.
    """
    import executorch.kernels.quantized  # noqa: F401  registers kernels
    import torch
    from executorch.extension.pybindings import portable_lib

    results: list[Any] = []
    for buffer, inputs in torch.load(programs):
        try:
            module = portable_lib._load_for_executorch_from_buffer(buffer)
            found: Any = ()
            for _ in range(2):
                found = module.run_method("forward", tuple(copy.deepcopy(inputs)))
            results.append([v.clone() if isinstance(v, torch.Tensor) else v for v in found])
        except RuntimeError as error:
            results.append(str(error))
    torch.save(results, outputs)
    return {}


def operators(exported: str) -> dict[str, Any]:
    """Return how often the stock lowering uses each operator for an exported program."""
    edge = _stock_edge(exported).exported_program()
    targets = [node.target for node in edge.graph.nodes if node.op == "call_function"]
    names = (t.__name__ for t in targets if hasattr(t, "_schema"))
    return dict(collections.Counter(name for name in names if name != "getitem"))


def arena(exported: str) -> dict[str, Any]:
    """Return the bytes of the stock plan's arenas."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    buffer = _stock_edge(exported).to_executorch().buffer
    plans = deserialize_pte_binary(buffer).program.execution_plan
    return {plan.name: sum(plan.non_const_buffer_sizes) for plan in plans}


def compiled(exported: str, program: str, delegated: bool) -> dict[str, Any]:
    """Write the program file of an exported program, portable or for XNNPACK."""
    if delegated:
        import torch
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower

        edge = to_edge_transform_and_lower(
            torch.export.load(exported), partitioner=[XnnpackPartitioner()]
        )
    else:
        edge = _stock_edge(exported)
    with open(program, "wb") as file:
        file.write(edge.to_executorch().buffer)
    return {}


def zoo(folder: str) -> dict[str, Any]:
    """Export the recipes of the corpus zoo: programs, calls, and what eager gives for them."""
    import importlib

    import torch
    from torch.utils import _pytree as pytree

    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../data/zoo"))
    names: list[str] = []
    for script in ("control", "keyword_net", "methods", "recurrent", "shapes", "state"):
        for make in vars(importlib.import_module(script)).values():
            if getattr(make, "__annotations__", {}) != {"return": "Recipe"}:
                continue
            torch.manual_seed(0)
            recipe = make()
            home = os.path.join(folder, recipe.name)
            os.makedirs(home)
            first = dict(reversed(recipe.runs))
            exported = recipe.exported or {
                name: torch.export.export(recipe.model, inputs) for name, inputs in first.items()
            }
            for name, program in exported.items():
                torch.export.save(program, os.path.join(home, f"{name}.pt2"))
            modules = {name: program.module() for name, program in exported.items()}
            with torch.no_grad():
                wanted = [pytree.tree_leaves(modules[name](*given)) for name, given in recipe.runs]
            runs = [(name, pytree.tree_leaves(given)) for name, given in recipe.runs]
            torch.save((runs, copy.deepcopy(wanted)), os.path.join(home, "runs.pt"))
            names.append(recipe.name)
    return {"names": names}


def _stock_edge(exported: str) -> Any:
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge

    config = EdgeCompileConfig(_check_ir_validity=False)
    return to_edge(torch.export.load(exported), compile_config=config)


def record(etrecord: str, trace: str, gap: str = "") -> dict[str, Any]:
    """Return what the stock Inspector joins a trace with."""
    from executorch.devtools import Inspector, parse_etrecord

    parsed = parse_etrecord(etrecord)
    inspector = Inspector(
        etdump_path=f"{trace}.etdp", etrecord=etrecord, debug_buffer_path=f"{trace}.debug"
    )
    rows = [
        {
            "name": event.name,
            "op_types": list(event.op_types),
            "lines": [text for text in (event.stack_traces or {}).values() if text],
            "modules": [str(name) for name in event.module_hierarchy or {}],
        }
        for block in inspector.event_blocks
        for event in block.events
    ]
    table = inspector.calculate_numeric_gap("MSE") if gap else None
    return {
        "rows": rows,
        "edge_nodes": [
            node.name
            for node in parsed.edge_dialect_program.graph.nodes
            if hasattr(node.target, "_schema")
        ],
        "gaps": [] if table is None else [float(value[0]) for value in table["gap"]],
        "gap_shapes": [] if table is None else _shapes(table),
        "nodes": len(list(parsed.exported_program.graph.nodes)),
    }


def parsed(etrecord: str) -> dict[str, Any]:
    """Return what the edge program of a record calls, as the stock tool reads it."""
    from executorch.devtools import parse_etrecord

    record = parse_etrecord(etrecord)
    graph = record.edge_dialect_program.graph
    return {
        "targets": [str(node.target) for node in graph.nodes if node.op == "call_function"],
        "graphs": sorted(record.graph_map),
        "export_graph_id": record.export_graph_id,
    }


def _shapes(table: Any) -> list[list[list[int]]]:
    columns = ("aot_intermediate_output", "runtime_intermediate_output")
    return [
        [list(getattr(value, "shape", ())) for value in pair]
        for pair in zip(*(table[column] for column in columns), strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main())
