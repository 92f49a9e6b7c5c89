"""Write a session folder with stock ExecuTorch: program, record, trace, tensors, stock facts.

Every recipe beside this file is run from tests/data, so that the paths in the records are
relative:  python zoo/recurrent.py extra
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import executorch.kernels.quantized  # noqa: E402, F401  registers quantized kernels
import torch  # noqa: E402
from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc  # noqa: E402
from executorch.exir import (  # noqa: E402
    ExecutorchBackendConfig,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.extension.pybindings import portable_lib  # noqa: E402
from torch.export import export  # noqa: E402

from tests.oracle.plain import plain  # noqa: E402
from tests.oracle.rebuilt import edge_facts, manager_facts  # noqa: E402

HERE = str(Path(__file__).resolve().parents[1]) + "/"
PACKAGES = str(Path(torch.__file__).resolve().parents[1]) + "/"
DEBUG_BUFFER_BYTES = 1 << 24  # the default of a recipe


@dataclass(frozen=True)
class Recipe:
    """How one session is compiled and run.

    `runs` are (method, inputs) in order; the first inputs of each method go into its export
    unless `exported` is given. `partitioner` None means to_edge, a list (empty too) means
    to_edge_transform_and_lower.
    """

    name: str
    runs: Sequence[tuple[str, tuple[Any, ...]]]
    model: torch.nn.Module | None = None
    exported: dict[str, Any] = field(default_factory=dict)
    partitioner: list[Any] | None = None
    config: ExecutorchBackendConfig = field(default_factory=ExecutorchBackendConfig)
    record: bool = True
    trace: bool = True
    debug: bool = True
    debug_bytes: int = DEBUG_BUFFER_BYTES
    reference: bool = True


def out_folder() -> Path:
    """Return the folder named on the command line."""
    return Path(sys.argv[1] if len(sys.argv) > 1 else "extra")


def write_all(recipes: Sequence[Callable[[], Recipe]]) -> None:
    """Write the sessions of a recipe file; names after the folder pick some of them."""
    chosen = sys.argv[2:]
    for make in recipes:
        if chosen and make.__name__ not in chosen:
            continue
        torch.manual_seed(0)
        recipe = make()
        write_session(out_folder() / recipe.name, recipe)


def write_session(folder: Path, recipe: Recipe) -> None:
    """Compile, run and save everything that the recipe asks for."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.iterdir():
        stale.unlink()
    exported = recipe.exported or {
        method: export(recipe.model, inputs, strict=False)
        for method, inputs in reversed(recipe.runs)
    }
    for program in exported.values():
        shorten_paths(program.graph_module)
    edge = _lower(recipe, exported)
    for method in edge.methods:
        shorten_paths(edge.exported_program(method).graph_module)
    facts = edge_facts(edge)
    manager = edge.to_executorch(recipe.config)
    program = folder / "model.pte"
    program.write_bytes(manager.buffer)
    manager.write_tensor_data_to_file(str(folder))
    found = sorted(folder.glob("*.ptd"))
    data = found[0].rename(folder / "model.ptd") if len(found) == 1 else None
    facts |= manager_facts(manager)
    facts["outputs"] = _run(recipe, folder, data) if recipe.trace else []
    _write_facts(folder, facts)
    if recipe.record:
        _write_record(folder, recipe, manager)
    check_no_absolute_paths(folder)
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    print(recipe.name, sizes)


def check_no_absolute_paths(folder: Path) -> None:
    """Refuse a session in which a path of this machine is left."""
    for path in folder.iterdir():
        data = path.read_bytes()
        found = [data]
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                found += [archive.read(name) for name in archive.namelist()]
        for each in found:
            for prefix in (HERE, PACKAGES, sys.prefix):
                assert prefix.encode() not in each, f"{path} holds {prefix}"


def shorten_paths(graph_module: torch.fx.GraphModule) -> None:
    """Make the file names in stack traces relative to tests/data and to site-packages."""
    for nested in graph_module.modules():
        for node in nested.graph.nodes if isinstance(nested, torch.fx.GraphModule) else ():
            trace = node.meta.get("stack_trace")
            if trace:
                node.meta["stack_trace"] = trace.replace(HERE, "").replace(PACKAGES, "")


def _lower(recipe: Recipe, exported: dict[str, Any]) -> Any:
    if recipe.partitioner is None:
        return to_edge(exported, generate_etrecord=recipe.record)
    return to_edge_transform_and_lower(
        exported, partitioner=recipe.partitioner, generate_etrecord=recipe.record
    )


def _run(recipe: Recipe, folder: Path, data: Path | None) -> list[Any]:
    module = portable_lib._load_for_executorch(
        str(folder / "model.pte"),
        None if data is None else str(data),
        enable_etdump=True,
        debug_buffer_size=recipe.debug_bytes if recipe.debug else 0,
    )
    outputs = [plain(module.run_method(method, inputs)) for method, inputs in recipe.runs]
    save_trace(module, folder, recipe.debug)
    return outputs


def save_trace(module: Any, folder: Path, debug: bool) -> None:
    """Write ETDump and debug buffer, the buffer cut after the last tensor in it."""
    etdump, buffer = folder / "run.etdp", folder / "run.debug"
    if not debug:
        module.write_etdump_result_to_file(str(etdump))
        return
    module.write_etdump_result_to_file(str(etdump), str(buffer))
    buffer.write_bytes(buffer.read_bytes()[: _used_bytes(etdump.read_bytes())])


def _used_bytes(etdump: bytes) -> int:
    ends = [0]
    for run in deserialize_from_etdump_flatcc(etdump).run_data:
        for event in run.events:
            entry = event.debug_event and event.debug_event.debug_entry
            ends += _ends(entry) if entry else []
    return max(ends)


def _ends(entry: Any) -> list[int]:
    tensors = [entry.tensor] if entry.tensor else []
    tensors += list(entry.tensor_list.tensors) if entry.tensor_list else []
    return [tensor.offset + _nbytes(tensor) for tensor in tensors]


def _nbytes(tensor: Any) -> int:
    count = 1
    for size in tensor.sizes:
        count *= size
    return count * 8  # no element type is wider


def _write_facts(folder: Path, facts: dict[str, Any]) -> None:
    kept = {
        "delegation": facts["delegation"],
        "memory_trace": {
            method: _allocations(traces["offsets"])
            for method, traces in facts["memory_trace"].items()
        },
        "outputs": facts["outputs"],
    }
    (folder / "stock.json").write_text(
        json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8"
    )


def _allocations(trace: Any) -> Any:
    """Return one row an allocation, with its first and last tid, for the stock row a step."""
    if isinstance(trace, dict):  # the stock tool refused
        return trace
    rows: dict[str, dict[str, Any]] = {}
    for event in trace:
        shared = {key: event[key] for key in ("name", "pid", "ts", "dur", "args")}
        row = rows.setdefault(json.dumps(shared), {**shared, "first_tid": event["tid"]})
        row["last_tid"] = event["tid"]
    return list(rows.values())


def _write_record(folder: Path, recipe: Recipe, manager: Any) -> None:
    record = manager.get_etrecord()
    if recipe.reference and recipe.model is not None and not recipe.exported:
        inputs = [list(inputs) for _, inputs in recipe.runs[:1]]
        record.update_representative_inputs(inputs)
        found = [recipe.model(*each) for each in inputs]
        record.update_reference_outputs(
            [list(each) if isinstance(each, tuple) else each for each in found]
        )
    record.save(str(folder / "model.etrecord"))
