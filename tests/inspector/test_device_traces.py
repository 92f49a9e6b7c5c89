"""Traces as devices write them, of backends that run nowhere else, joined with the program.

The stock tool writes them. Events are what the runtimes of the vendors log: QNN names an operation
after its node, with its cycles and no begin; its intermediate tensors, and events of Core ML, have
the strings of the compiler's map; NXP logs numbers of that map after the run.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler import export, to_edge_transform_and_lower
from compiler.interface.backend import BackendDetails, PreprocessResult
from compiler.interface.partitioner import TAG, DelegationSpec, Partitioner, PartitionResult
from inspector.cli.main import main
from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.join.links import Grade, Link, link_block
from inspector.trace.timed_blocks import timed_blocks

pytestmark = [pytest.mark.interop, pytest.mark.slow]
UNITS = (" (cycles)", " (us)", "")
DATA = Path(__file__).parents[1] / "data" / "backends"
CORE_ML = [DATA / "coreml_m1.pte", DATA / "coreml_m1.etrecord"]
Handles = Mapping[Any, tuple[int, ...]]


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x + 1.5)
        return torch.sigmoid(y * y) - y


class Whole(Partitioner):
    """Gives a whole graph to a backend."""

    def __init__(self, backend_id: str) -> None:
        self.backend_id = backend_id

    def partition(self, exported_program: Any) -> PartitionResult:
        for node in exported_program.graph.nodes:
            if node.op == "call_function":
                node.meta[TAG] = "whole"
        return PartitionResult(exported_program, {"whole": DelegationSpec(self.backend_id, [])})


@pytest.fixture
def backend() -> Iterator[Callable[[str, Callable[[list[Any]], Handles]], str]]:
    """Return what registers a backend by its id and by what maps the calls it takes."""
    made: list[type[BackendDetails]] = []

    def register(backend_id: str, mapped: Callable[[list[Any]], Handles]) -> str:
        def preprocess(edge_program: Any, compile_specs: Any) -> PreprocessResult:
            del compile_specs
            calls = [node for node in edge_program.graph.nodes if node.op == "call_function"]
            return PreprocessResult(b"opaque", {**mapped(calls)})

        members = {"preprocess": staticmethod(preprocess)}
        made.append(type(backend_id, (BackendDetails,), members))
        return backend_id

    yield register
    made.clear()
    gc.collect()


def compiled(folder: Path, backend_id: str) -> list[Path]:
    inputs = (torch.linspace(-2, 2, 6).reshape(2, 3),)
    program = to_edge_transform_and_lower(
        export(Net().eval(), inputs), partitioner=[Whole(backend_id)], generate_etrecord=True
    ).to_executorch()
    paths = [folder / "model.pte", folder / "model.etrecord"]
    program.save(paths[0])
    program.get_etrecord().save(paths[1])
    return paths


def values() -> dict[str, torch.Tensor]:
    """Return what each node of the program computes for its recorded input."""
    x = torch.linspace(-2, 2, 6).reshape(2, 3)
    y = torch.relu(x + 1.5)
    named = {"add_tensor": x + 1.5, "relu_default": y, "mul_tensor": y * y}
    named["sigmoid_default"] = torch.sigmoid(y * y)
    return {f"aten_{name}": value for name, value in named.items()}


def event(name: str | int, begin: int, end: int) -> Any:
    return {"name": name, "begin": begin, "end": end}


def named(unit: str) -> list[str]:
    return [f"{node}:OpId_{at + 3}{unit}" for at, node in enumerate(values())]


def wrong() -> dict[str, torch.Tensor]:
    """Return the tensors of a device that multiplies wrongly."""
    found = {f"{name}_0": value.clone() for name, value in values().items()}
    found["aten_mul_tensor_0"][0, 2] += 0.5
    return found


def core_ml_names() -> list[str]:
    record = load_session(CORE_ML).record
    assert record is not None
    (of_call,) = (record.delegate_map or {})["forward"].values()
    return [*of_call.handles]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the traces, which the stock tool has written."""
    folder = tmp_path_factory.mktemp("device")
    found: dict[str, list[Any]] = {}
    for unit in UNITS:
        cycles = [event(name, 0, 100 + at) for at, name in enumerate(named(unit))]
        found[f"qnn{unit}"] = [*cycles, event(f"Input:OpId_2{unit}", 0, 50)]
    found["nxp"] = [event(number, 0, 10 + number) for number in (0, 1, 5, 6)]
    found["coreml"] = [
        event(name, 2000 + 10 * at, 2010 + 10 * at) for at, name in enumerate(core_ml_names())
    ]
    data, found["tensors"] = bytearray(64), list[Any]()
    for name, value in wrong().items():
        place = {"sizes": [*value.shape], "strides": [*value.stride()], "offset": len(data)}
        found["tensors"].append({"name": name, **place})
        data += value.contiguous().numpy().tobytes()
        data += bytes(-len(data) % 64)
    (folder / "tensors.debug").write_bytes(data)
    script = Path(__file__).with_name("stock_trace_writer.py")
    subprocess.run(
        [sys.executable, str(script), str(folder)], input=json.dumps(found), text=True, check=True
    )
    return folder


def inside(session: Session) -> dict[str, Link]:
    """Return the links of the events inside of delegates."""
    (block,) = timed_blocks(session.timed_dumps).blocks
    links = link_block(session, block)
    inner = [at for at in range(len(block)) if block.delegate_id(at) is not None]
    return {block.event_name(at): links.link(at) for at in inner}


@pytest.mark.parametrize("unit", UNITS)
def test_operations_of_qnn_are_the_nodes_they_are_named_after(
    unit: str, backend: Any, tmp_path: Path, traces: Path
) -> None:
    paths = compiled(tmp_path, backend("QnnBackend", lambda _calls: {}))
    found = inside(load_session([*paths, traces / f"qnn{unit}.etdp"]))
    assert [found[name].node for name in named(unit)] == [*values()]
    assert {found[name].grade for name in named(unit)} == {Grade.DELEGATE_ID}
    assert found[f"Input:OpId_2{unit}"].grade is Grade.DELEGATE_CALL_ONLY


def test_cycles_of_qnn_are_no_time_of_its_call(
    backend: Any, tmp_path: Path, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = compiled(tmp_path, backend("QnnBackend", lambda _calls: {}))
    trace = traces / "qnn (cycles).etdp"
    assert main(["profile", *map(str, (*paths, trace)), "--format", "json"]) == 0
    words = capsys.readouterr().out
    assert "aten_mul_tensor" in words
    assert json.loads(words)["data"]


def test_tensors_of_qnn_are_compared_by_the_map_of_their_names(
    backend: Any, tmp_path: Path, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def mapped(calls: list[Any]) -> Handles:
        return {f"{node.name}_0": (node.meta["debug_handle"],) for node in calls}

    paths = compiled(tmp_path, backend("QnnBackend", mapped))
    files = [*paths, traces / "tensors.etdp", traces / "tensors.debug"]
    assert main(["gap", *map(str, files)]) in (0, 1)
    words = capsys.readouterr().out
    assert "aten_mul_tensor" in next(line for line in words.splitlines() if "diverg" in line)


def test_numbers_of_nxp_stand_for_all_nodes_that_an_operator_fused(
    backend: Any, tmp_path: Path, traces: Path
) -> None:
    def mapped(calls: list[Any]) -> Handles:
        handles = [node.meta["debug_handle"] for node in calls]
        return {0: (*handles[:2],), 1: (handles[2],), 5: (*handles[3:],)}

    paths = compiled(tmp_path, backend("NeutronBackend", mapped))
    found = inside(load_session([*paths, traces / "nxp.etdp"]))
    assert found["0"].nodes == ("aten_add_tensor", "aten_relu_default")
    assert found["1"].node == "aten_mul_tensor"
    assert found["5"].nodes == ("aten_sigmoid_default", "aten_sub_tensor")
    assert found["6"].grade is Grade.DELEGATE_CALL_ONLY


def test_strings_of_core_ml_are_those_of_its_own_map(traces: Path) -> None:
    found = inside(load_session([*CORE_ML, traces / "coreml.etdp"]))
    assert len(found) > 3
    assert {link.grade for link in found.values()} == {Grade.DELEGATE_ID}
    assert all(link.nodes for link in found.values())
