"""Bundled programs with one and two suites, their records, and traces whose runs name their inputs."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from executorch.devtools import generate_etrecord
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.core import BundledProgram
from executorch.devtools.bundled_program.serialize import (
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.devtools.etdump.serialize import (
    deserialize_from_etdump_flatcc,
    serialize_to_etdump_flatcc,
)
from executorch.exir import to_edge
from executorch.extension.pybindings import portable_lib
from torch.export import export
from writing import DEBUG_BUFFER_BYTES, out_folder, save_trace, shorten_paths


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.lin(x)) * factor


class Score(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(x * x, 1)


def write_bundled(folder: Path, two_methods: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    scale, score = Scale().eval(), Score()
    cases = [(torch.randn(2, 3), torch.full((1,), float(n))) for n in (1, 2)]
    exported = {"forward": export(scale, cases[0], strict=False)}
    suites = [MethodTestSuite("forward", [_case(scale, case) for case in cases])]
    if two_methods:
        exported["score"] = export(score, (torch.randn(2, 3),), strict=False)
        suites.append(MethodTestSuite("score", [_case(score, (torch.randn(2, 3),))]))
    for program in exported.values():
        shorten_paths(program.graph_module)
    edge = to_edge(exported)
    kept = copy.deepcopy(edge)
    manager = edge.to_executorch()
    bundle = BundledProgram(manager, suites)
    (folder / "model.pte").write_bytes(manager.buffer)
    (folder / "model.bpte").write_bytes(serialize_from_bundled_program_to_flatbuffer(bundle))
    generate_etrecord(str(folder / "model.etrecord"), kept, bundle)
    _trace(folder, cases)


def _case(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> MethodTestCase:
    return MethodTestCase(inputs=inputs, expected_outputs=[model(*inputs)])


def _trace(folder: Path, cases: list[tuple[torch.Tensor, ...]]) -> None:
    bundle = portable_lib._load_bundled_program_from_buffer((folder / "model.bpte").read_bytes())
    module = portable_lib._load_for_executorch_from_bundled_program(
        bundle, enable_etdump=True, debug_buffer_size=DEBUG_BUFFER_BYTES
    )
    for case in cases:
        module.forward(case)
    save_trace(module, folder, debug=True)
    _name_inputs(folder / "run.etdp")


def _name_inputs(path: Path) -> None:
    """Number the runs as the C++ runner does; the Python binding has no call for it."""
    dump = deserialize_from_etdump_flatcc(path.read_bytes())
    index = -1
    runs: list[Any] = []
    for run in dump.run_data:
        executes = any(_is_call(event) for event in run.events)
        index += executes
        runs.append(replace(run, bundled_input_index=index) if executes else run)
    data = serialize_to_etdump_flatcc(replace(dump, run_data=runs))
    path.write_bytes(len(data).to_bytes(4, "little") + data)


def write_unprefixed(folder: Path, source: Path) -> None:
    """Write the same trace without the size in front, as flatc does and as old tools kept it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("model.pte", "run.debug"):
        (folder / name).write_bytes((source / name).read_bytes())
    (folder / "run.etdp").write_bytes((source / "run.etdp").read_bytes()[4:])


def _is_call(event: Any) -> bool:
    profile = event.profile_event
    return profile is not None and profile.name == "Method::execute"


if __name__ == "__main__":
    write_bundled(out_folder() / "bundled_two_suites", two_methods=True)
    write_bundled(out_folder() / "bundled_cases", two_methods=False)
    write_unprefixed(out_folder() / "etdump_unprefixed", out_folder() / "bundled_cases")
