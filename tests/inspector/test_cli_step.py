"""`etscope step`: inside of a delegate call: nodes, values, replacements, refusals, engines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from schema import program as pte
from schema.payloads.xnnpack import codec
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow
NET = DATA / "corpus/v1.5.1/convnet_xnnpack"
MODEL = NET / "model.pte"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.jobs.run.Worker", Here)


def step(*arguments: object) -> dict[str, Any]:
    answer = run("step", MODEL, "--engine", "torch", *arguments, "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    return valid(answer, "step")["data"]


def test_step_lists_nodes_with_their_lines_and_every_value_once() -> None:
    data = step("--record", NET / "model.etrecord")
    kinds = [node["kind"] for node in data["nodes"]]
    assert kinds == ["StaticTranspose", "Conv2d", "DepthwiseConv2d", "Conv2d", *kinds[4:]]
    assert data["nodes"][1]["recorded"] == ["aten_convolution_default"]
    assert data["nodes"][1]["where"].endswith(":18")
    touched = {value for node in data["nodes"] for value in (*node["inputs"], *node["outputs"])}
    assert sorted(value["value"] for value in data["values"]) == sorted(touched)
    assert all(value["nan"] == 0 for value in data["values"])
    assert (data["call"], data["calls"]) == (0, 2)


def test_step_takes_the_folder_of_a_compile_and_its_record(tmp_path: Path) -> None:
    answer = run("step", NET, "--engine", "torch", "--format", "json")
    nodes = valid(answer, "step")["data"]["nodes"]
    assert nodes[1]["recorded"] == ["aten_convolution_default"]
    none = run("step", tmp_path)
    assert (none.code, "expected one program in the folder, found none" in none.err) == (2, True)


def test_step_to_a_node_shows_what_is_there_before_it() -> None:
    data = step("--to", 2)
    assert [node["ran"] for node in data["nodes"]] == [True, True, False, False, False, False]
    made = {value["made_by"] for value in data["values"]}
    assert made == {None, 0, 1}
    assert data["outputs"][0]["difference"] is None


def test_step_into_the_second_call_is_another_partition() -> None:
    data = step("--call", 1)
    assert data["instruction"] > 0
    assert "FullyConnected" in {node["kind"] for node in data["nodes"]}


def test_replaced_value_is_what_later_nodes_read_and_moves_the_outputs(tmp_path: Path) -> None:
    made = {node["node"]: node["outputs"][0] for node in step()["nodes"]}
    torch.save(torch.full((1, 16, 16, 8), 0.25), tmp_path / "v.pt")
    for what in ("zeros", "0.5", tmp_path / "v.pt"):
        data = step("--replace", f"{made[1]}={what}", "--save", tmp_path / "seen.pt", "--force")
        (found,) = (value for value in data["values"] if value["value"] == made[1])
        assert found["replaced"]
        assert found["min"] == found["max"]
        assert data["outputs"][0]["difference"] > 0
        saved = torch.load(tmp_path / "seen.pt", weights_only=True)
        assert saved[made[1]].unique().tolist() == [found["min"]]
    same = step("--value", made[1], "--save", tmp_path / "own.pt")
    assert [value["value"] for value in same["values"]] == [made[1]]
    data = step("--replace", f"{made[1]}={tmp_path / 'v.pt'}", "--to", 0)
    assert data["outputs"][0]["difference"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--call", 9), 2, "unknown delegate call 9: the run has 2"),
        (("--to", 99), 2, "the call has 6"),
        (("--value", 999), 2, "no node of the delegate call reads or computes value 999"),
        (("--replace", "2=zeros"), 4, "is a constant"),
        (("--replace", "nothing"), 2, "expected ID="),
        (("--replace", "3=missing.pt"), 3, "missing.pt"),
        (("--replace", f"3={MODEL}"), 3, "expected only tensors"),
        (("--method", "backward"), 2, "unknown method 'backward'"),
        (("--case", 0, "--inputs", "ones"), 2, "both name inputs"),
    ],
)
def test_step_that_cannot_be_done_is_one_sentence(
    arguments: tuple[object, ...], code: int, words: str
) -> None:
    answer = run("step", MODEL, "--engine", "torch", *arguments)
    assert answer.code == code, answer.err
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_step_in_a_program_without_delegates_says_so() -> None:
    answer = run("step", DATA / "corpus/v1.5.1/mm_portable/model.pte")
    assert answer.code == 2
    assert "the run calls no delegate" in answer.err


@pytest.mark.interop
def test_step_on_the_real_kernels_sees_the_same_values() -> None:
    theirs = step()["values"]
    answer = run("step", MODEL, "--engine", "native", "--format", "json")
    data = valid(answer, "step")["data"]
    assert data["source"] == "measured on real kernels"
    for one, other in zip(data["values"], theirs, strict=True):
        assert one["shape"] == other["shape"]
        assert one["mean"] == pytest.approx(other["mean"], rel=1e-4, abs=1e-6)


def damaged(path: Path) -> Path:
    """Write the program with an operand that is not there in one node."""
    program = pte.decode(memoryview(MODEL.read_bytes()))
    place = program.plan("forward").delegates[0].processed.index
    payload = codec.decode(program.segments[place])
    nodes = list(payload.table.xnodes)
    form: Any = nodes[2].xnode_union
    nodes[2] = replace(nodes[2], xnode_union=replace(form, filter_id=77))
    table = replace(payload.table, xnodes=tuple(nodes))
    segments = list(program.segments)
    segments[place] = memoryview(codec.encode(replace(payload, table=table)))
    path.write_bytes(pte.encode(replace(program, segments=tuple(segments))))
    return path


@pytest.mark.parametrize("verb", ["step", "run"])
def test_damaged_payload_names_node_and_line_through_the_record(verb: str, tmp_path: Path) -> None:
    model = damaged(tmp_path / "model.pte")
    more = ("-o", tmp_path / "out") if verb == "run" else ()
    answer = run(verb, model, "--record", NET / "model.etrecord", "--engine", "torch", *more)
    assert answer.code == 4
    assert "zoo/models.py:18: partition 0, node 2 (DepthwiseConv2d)" in answer.err
    assert "among the values" in answer.err


def test_step_runs_the_graph_that_the_record_keeps_where_only_hardware_runs_the_payload() -> None:
    model = DATA / "backends/ethosu_m1_int8.pte"
    record = ("--record", model.with_suffix(".etrecord"), "--format", "json")
    answer = run("step", model, *record)
    assert (answer.code, answer.err) == (0, "")
    kinds = [node["kind"] for node in valid(answer, "step")["data"]["nodes"]]
    assert kinds.count("CONV2D") == 2
    refused = run("step", model)
    assert "a command stream runs on its hardware only" in refused.err
