"""Compare our API with the stock one on program managers that were just compiled.

Runs as a process of its own: python -m tests.inspector.api_live_against_stock OUT [FOLDER…] writes
one JSON object to OUT, a list of differences for each case: the models here, or the programs of
session folders, lowered again from their records.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")

import torch  # noqa: E402
from executorch.backends.xnnpack.partition.xnnpack_partitioner import (  # noqa: E402
    XnnpackPartitioner,
)
from executorch.devtools import generate_etrecord as stock_generate  # noqa: E402
from executorch.devtools import parse_etrecord as stock_parse  # noqa: E402
from executorch.devtools.backend_debug import get_delegation_info as stock_info  # noqa: E402
from executorch.devtools.backend_debug import (  # noqa: E402
    print_delegation_info as stock_print_info,
)
from executorch.devtools.size_analysis_tool.size_analysis_tool import (  # noqa: E402
    generate_model_size_information as stock_size,
)
from executorch.exir import to_edge_transform_and_lower  # noqa: E402
from executorch.exir.backend.utils import (  # noqa: E402
    format_delegated_graph as stock_format,
)
from executorch.exir.backend.utils import (  # noqa: E402
    get_delegated_payload as stock_payload,
)
from executorch.runtime import Runtime  # noqa: E402
from executorch.util.activation_memory_profiler import (  # noqa: E402
    generate_memory_trace as stock_trace,
)

import inspector as ours  # noqa: E402
from tests.inspector.api_against_stock import differences  # noqa: E402
from tests.oracle.rebuilt import _lowerings  # noqa: E402


class Mixed(torch.nn.Module):
    """Convolutions that are delegated between operators that are not."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3)
        self.second = torch.nn.Conv2d(8, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cumsum(torch.relu(self.first(x)), 2)
        return self.second(y) * 2, torch.flip(y, (3,))


class Branches(torch.nn.Module):
    """A branch, so that nested graphs are there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), [x * x])


class Counter(torch.nn.Module):
    """State, and outputs of several types."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(4))
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.count.add_(x)
        return self.linear(self.count), torch.split(x, 2)[1]


IMAGE, ROW = (torch.rand(1, 3, 12, 12),), (torch.rand(4),)
MODELS: dict[str, tuple[torch.nn.Module, tuple[torch.Tensor, ...], bool]] = {
    "mixed portable": (Mixed(), IMAGE, False),
    "mixed xnnpack": (Mixed(), IMAGE, True),
    "branches": (Branches(), ROW, False),
    "counter portable": (Counter(), ROW, False),
    "counter xnnpack": (Counter(), ROW, True),
}


def differences_of(name: str) -> Iterator[str]:
    """Yield what differs between the tools for one model."""
    model, inputs, delegated = MODELS[name]
    exported = torch.export.export(model.eval(), inputs, strict=False)
    partitioner = [XnnpackPartitioner()] if delegated else None
    edge = to_edge_transform_and_lower(exported, partitioner=partitioner, generate_etrecord=True)
    yield from _graphs("edge", edge.exported_program())
    lowered = copy.deepcopy(edge)
    manager = edge.to_executorch()
    yield from _graphs("executorch", manager.exported_program())
    yield from _traces(manager)
    with tempfile.TemporaryDirectory() as folder:
        yield from _records(manager, lowered, Path(folder))
        yield from _written_by_ours(manager, lowered, Path(folder))
        yield from _live_record(manager, inputs, Path(folder))


def _graphs(stage: str, program: Any) -> Iterator[str]:
    module = program.graph_module
    one, two = ours.get_delegation_info(module), stock_info(module)
    numbers = ("num_delegated_subgraphs", "num_delegated_nodes", "num_non_delegated_nodes")
    for number in numbers:
        if getattr(one, number) != getattr(two, number):
            yield f"{stage} {number}: {getattr(one, number)} for {getattr(two, number)}"
    if one.get_summary() != two.get_summary():
        yield f"{stage} summary"
    if two.delegation_by_operator:
        frames = [info.get_operator_delegation_dataframe() for info in (one, two)]
        if not frames[0].equals(frames[1]) or list(frames[0].dtypes) != list(frames[1].dtypes):
            yield f"{stage} table: {frames[0]} for {frames[1]}"
        if _printed(ours.print_delegation_info, module) != _printed(stock_print_info, module):
            yield f"{stage} print_delegation_info"
    if ours.format_delegated_graph(module) != stock_format(module):
        yield f"{stage} format_delegated_graph"
    if ours.get_delegated_payload(module) != stock_payload(module):
        yield f"{stage} get_delegated_payload"
    yield from _sizes(stage, program)


def _sizes(stage: str, program: Any) -> Iterator[str]:
    extra = {"XnnpackBackend": lambda data: {"head": len(data[:7])}}
    for buffer in (None, b"x" * 100_000):
        size = [tool(program, extra, buffer) for tool in (_our_size, stock_size)]
        if json.dumps(size[0]) != json.dumps(size[1]):
            yield f"{stage} size: {size[0]} for {size[1]}"


_our_size = ours.generate_model_size_information


def _printed(show: Any, module: Any) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        show(module)
    return text.getvalue()


def _traces(manager: Any) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        for options in ((True, "forward", False), (False, "forward", True), (False,)):
            texts = []
            for tool in (ours.generate_memory_trace, stock_trace):
                path = Path(folder) / "trace.json"
                try:
                    tool(manager, str(path), *options)
                    texts.append(path.read_bytes())
                except ValueError as error:
                    texts.append(str(error))
            if texts[0] != texts[1]:
                yield f"memory trace {options}: {texts[0][:300]} for {texts[1][:300]}"
        messages = [_refusal(tool, folder) for tool in (ours.generate_memory_trace, stock_trace)]
        if messages[0] != messages[1]:
            yield f"refusal: {messages[0]} for {messages[1]}"


def _refusal(tool: Any, folder: str) -> str:
    try:
        tool(7, str(Path(folder) / "trace.json"))
    except ValueError as error:
        return str(error)
    return "accepted"


def _records(manager: Any, lowered: Any, folder: Path) -> Iterator[str]:
    """The record written by the stock tool, before delegation and after it."""
    path = folder / "before.etrecord"
    manager.get_etrecord().save(str(path))
    yield from _same_record("before", path)
    after = folder / "after.etrecord"
    try:
        stock = stock_parse(str(path))
        stock.edge_dialect_program = lowered.exported_program()
        stock.save(str(after))
    except Exception:  # noqa: BLE001 - graphs the stock tool cannot write
        return
    yield from _same_record("after", after)


def _same_record(stage: str, path: Path) -> Iterator[str]:
    record, stock = ours.parse_etrecord(path), stock_parse(str(path))
    graph = record.artifact.edge_graph()
    module = stock.edge_dialect_program.graph_module
    one, two = ours.get_delegation_info(graph), stock_info(module)
    if one.get_summary() != two.get_summary():
        yield f"{stage} recorded summary: {one} for {two}"
    counts = [
        sorted((row.op_type, row.delegated, row.non_delegated) for row in rows.values())
        for rows in (one.delegation_by_operator, two.delegation_by_operator)
    ]
    if counts[0] != counts[1]:
        yield f"{stage} recorded operators: {counts[0]} for {counts[1]}"
    payloads = [
        {key: (backend, len(data)) for key, (backend, _, data) in found.items()}
        for found in (ours.get_delegated_payload(graph), stock_payload(module))
    ]
    if payloads[0] != payloads[1]:
        yield f"{stage} recorded payloads: {payloads[0]} for {payloads[1]}"
    sizes = [_our_size(record), stock_size(stock.edge_dialect_program)]
    if sizes[0] != sizes[1]:
        yield f"{stage} recorded size: {sizes[0]} for {sizes[1]}"
    for name in ("_debug_handle_map", "_delegate_map", "_instruction_id_to_num_outs_map"):
        if getattr(record, name) != getattr(stock, name):
            yield f"{stage} {name}"
    if record.export_graph_id != stock.export_graph_id:
        yield f"{stage} export_graph_id"


def _written_by_ours(manager: Any, lowered: Any, folder: Path) -> Iterator[str]:
    """A record that our class writes of the stock tool's live programs."""
    path, other = folder / "ours.etrecord", folder / "theirs.etrecord"
    extra = {"again": manager.get_etrecord().exported_program}
    given = (lowered, manager, manager.get_etrecord().exported_program, extra)
    try:
        stock_generate(str(other), *given)
    except Exception:  # noqa: BLE001 - graphs the stock tool cannot write
        return
    ours.generate_etrecord(path, *given)
    one, two = stock_parse(str(path)), stock_parse(str(other))
    for name in ("_debug_handle_map", "_delegate_map", "_instruction_id_to_num_outs_map"):
        if getattr(one, name) != getattr(two, name):
            yield f"{name} written by ours"
    for name, pair in {
        "exported": (one.exported_program, two.exported_program),
        "edge": (one.edge_dialect_program, two.edge_dialect_program),
        "extra": (one.graph_map["again/forward"], two.graph_map["again/forward"]),
    }.items():
        texts = [_nodes(program) for program in pair]
        if texts[0] != texts[1]:
            yield f"{name} program written by ours: {texts[0]} for {texts[1]}"


def _nodes(program: Any) -> list[Any]:
    return [
        (node.name, str(node.target), node.meta.get("debug_handle"), str(node.args))
        for node in program.graph.nodes
        if node.op == "call_function"
    ]


def _live_record(manager: Any, inputs: tuple[torch.Tensor, ...], folder: Path) -> Iterator[str]:
    """A record object that was never a file, with a trace of the program."""
    path = folder / "model.pte"
    manager.save(str(path))
    program = Runtime.get().load_program(path, enable_etdump=True, debug_buffer_size=1 << 20)
    program.load_method("forward").execute(inputs)
    trace, buffer = folder / "run.etdp", folder / "run.debug"
    program.write_etdump_result_to_file(str(trace), str(buffer))
    arguments = {"etdump_path": str(trace), "debug_buffer_path": str(buffer)}
    record = folder / "model.etrecord"
    manager.get_etrecord().save(str(record))
    yield from differences({**arguments, "etrecord": str(record)}, {})
    # Given the object, the stock tool finds nothing in maps that have numbers for keys; ours does.
    live = ours.Inspector(**arguments, etrecord=manager.get_etrecord()).to_dataframe()
    saved = ours.Inspector(**arguments, etrecord=str(record)).to_dataframe()
    for column in ("op_types", "stack_traces", "module_hierarchy", "delegate_backend_name"):
        if list(live[column]) != list(saved[column]) or not any(live["op_types"]):
            yield f"{column} of a live record"


def differences_of_session(folder: Path) -> Iterator[str]:
    """Yield what differs for the program of a session, lowered again from its record."""
    program = folder / "model.pte"
    lowering = next(iter(_lowerings(program).values()))
    edge = lowering(stock_parse(str(folder / "model.etrecord")).exported_program)
    yield from _graphs("edge", edge.exported_program())
    manager = edge.to_executorch()
    yield from _graphs("executorch", manager.exported_program())
    yield from _traces(manager)


def main(out: str, *folders: str) -> int:
    """Compare every model here and every session given, and write what differs."""
    found = {name: list(differences_of(name))[:20] for name in MODELS if not folders}
    found |= {folder: list(differences_of_session(Path(folder)))[:20] for folder in folders}
    Path(out).write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
