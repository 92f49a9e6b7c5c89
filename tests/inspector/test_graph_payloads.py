"""Payloads that torch interprets in run, profile, summary, gap and step: nodes, joins, origins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.jobs import run as jobs
from inspector.join.links import Grade, Link
from inspector.join.lowered_kinds import recorded_of_kinds
from inspector.profile.methods import analyse_profile
from inspector.tables.operators import join_word
from schema.graph import GraphNode, NodeKind
from schema.origins import ValueOrigin, origin_of_mark, weakest
from tests.conftest import DATA
from tests.inspector.cli_runs import run, valid
from tests.inspector.jobs_here import Here

FOLDER = DATA / "backends"


def _files(name: str) -> tuple[Path, Path]:
    return FOLDER / f"{name}.pte", FOLDER / f"{name}.etrecord"


def _node(name: str, target: str) -> GraphNode:
    return GraphNode(name, NodeKind.CALL, target)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "Worker", Here)  # torch is loaded here already
        yield _ran(tmp_path_factory)


def _ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found: dict[str, Path] = {}
    vulkan = ("vulkan_m1", "vulkan_m1_fp16", "vulkan_sharing", "vulkan_sharing_fp16")
    vulkan += ("vulkan_strided_fp16", "vulkan_heads")
    for name in (
        *vulkan,
        "native_m1",
        "mps_m1",
        "mps_m1_fp16",
        "tosa_m1",
        "tosa_steps",
        "tosa_slopes_int8",
        "vgf_twice_int8",
        "tosa_grouped",
        "coreml_excite_int8",
    ):
        folder = tmp_path_factory.mktemp(name)
        asked = ("run", FOLDER / f"{name}.pte", "-o", folder, "--debug-level", "intermediate")
        answer = run(*asked, "--force", "--format", "json")
        assert answer.code == 0, answer.err
        for partition in valid(answer, "run")["data"]["partitions"]:
            assert partition["origin"] == "interpreted"
            assert partition["source"] == "interpreted: torch ran the payload"
        found[name] = folder
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("vulkan_m1", 4),
        ("vulkan_m1_fp16", 4),  # halves against a program in float32: held to what halves can do
        ("vulkan_heads", 4),  # handles of a call are those of another event as well
        ("vulkan_sharing", 10),  # which of its nodes each delegate has, the payloads tell
        ("vulkan_sharing_fp16", 10),  # the kernel between its delegates reads no halves
        ("vulkan_strided_fp16", 1),  # no value inside is joined, and all of them are halves
        ("native_m1", 5),
        ("mps_m1", 6),
        ("tosa_m1", 5),
        ("tosa_steps", 15),
        ("mps_m1_fp16", 6),  # its values are halves, though the payload calls them float32
        ("vgf_twice_int8", 1),  # its real clamp is of a quantization, not the activation
        ("tosa_grouped", 6),  # steps of a convolution in groups are not those of the tanh before it
        ("coreml_excite_int8", 16),  # values have the names of nodes; what leaves a group is known
        ("tosa_slopes_int8", 3),  # the last of its roundings is behind the delegate
    ],
)
def test_gap_inside_of_an_interpreted_payload_has_no_false_divergence(
    name: str, compared: int, ran: dict[str, Path]
) -> None:
    """The activation has the same size in three dimensions: a wrong layout would differ by 2.7."""
    answer = run("gap", *_files(name), ran[name])
    assert answer.code == 0, answer.err
    assert "no node exceeds the tolerance by its own error" in answer.out
    assert f"{compared} of " in answer.out
    assert name == "tosa_steps" or "joined by order only differ" not in answer.out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vulkan_m1", "native_m1", "mps_m1", "mps_m1_fp16", "tosa_m1"])
def test_profile_of_an_interpreted_payload_names_its_nodes_and_origin(
    name: str, ran: dict[str, Path]
) -> None:
    session = load_session([*_files(name), ran[name] / "run.etdp"])
    profile = analyse_profile(session)
    (time,) = profile.methods
    assert list(time.origins) == [ValueOrigin.INTERPRETED]
    assert time.origins[ValueOrigin.INTERPRETED] == pytest.approx(time.delegates_ms)
    inside = [row for row in profile.rows if row.link.payload_nodes or row.link.node]
    assert len(inside) >= 5
    joined = {row.link.node for row in inside if row.link.node}
    assert "aten_sin_default" in joined
    for verb in ("profile", "summary"):
        words = run(verb, *_files(name), ran[name] / "run.etdp").out
        assert "elegates are interpreted: torch ran the payload" in words, verb
    data = json.loads(run("profile", ran[name] / "run.etdp", "--format", "json").out)["data"]
    (method,) = data["methods"].values()
    assert list(method["origins"]) == ["interpreted"]
    assert method["emulated"] is False


@pytest.mark.slow
def test_step_shows_the_nodes_of_a_vulkan_payload_and_replaces_a_value() -> None:
    program, record = _files("vulkan_m1")
    answer = run("step", program, "--record", record, "--replace", "18=zeros", "--format", "json")
    assert answer.code == 0, answer.err
    data = json.loads(answer.out)["data"]
    assert next(node["kind"] for node in data["nodes"]) == "et_vk.conv_with_clamp.default"
    assert data["outputs"][0]["max"] == 0.0
    assert data["outputs"][0]["difference"] > 0.0


def test_payload_nodes_are_joined_by_name_else_by_kinds_that_are_equally_frequent() -> None:
    recorded = [
        _node("aten_relu_default", "aten.relu.default"),
        _node("aten_add_tensor", "aten.add.Tensor"),
        _node("aten_relu_default_1", "aten.relu.default"),
        _node("aten_sin_default", "aten.sin.default"),
    ]
    own = [
        _node("aten.relu.default_0", "aten.relu.default"),
        _node("aten.add.Tensor_1", "aten.add.Tensor"),
        _node("aten.add.Tensor_2", "aten.add.Tensor"),
        _node("aten.relu.default_3", "aten.relu.default"),
        _node("aten.sin.default_4", "aten.sin.default"),
    ]
    assert recorded_of_kinds(own, recorded) == {
        "aten.relu.default_0": ("aten_relu_default", False),
        "aten.relu.default_3": ("aten_relu_default_1", False),
        "aten.sin.default_4": ("aten_sin_default", True),
    }
    copies = [_node("clone", "dim_order_ops._clone_dim_order.default"), recorded[3]]
    inserted = [_node("aten.clone.default_3", "aten.clone.default"), own[4]]
    assert recorded_of_kinds(inserted, copies) == {  # a compiler removes copies, and adds its own
        "aten.clone.default_3": ("clone", False),
        "aten.sin.default_4": ("aten_sin_default", True),
    }
    same = [_node("aten_sin_default", "aten.sin.default"), _node("x", "aten.relu.default")]
    assert recorded_of_kinds(same, recorded) == {"aten_sin_default": ("aten_sin_default", True)}


def test_event_of_a_payload_node_without_a_recorded_node_is_not_called_exact() -> None:
    found = Link(Grade.DELEGATE_ID, 0, payload_nodes=("aten.permute_copy.default_1",))
    assert join_word(found) == "payload only"
    assert join_word(replace(found, nodes=("aten_permute_copy_default",))) == "exact"
    assert join_word(replace(found, grade=Grade.ORDER)) == "inferred"


def test_weakest_origin_labels_a_total() -> None:
    assert weakest([ValueOrigin.MEASURED, ValueOrigin.EMULATED, ValueOrigin.INTERPRETED]) == (
        ValueOrigin.EMULATED
    )
    assert weakest([]) is None
    assert origin_of_mark(b"host emulation") is ValueOrigin.INTERPRETED
    assert origin_of_mark(b"other") is None


def test_norm_whose_payload_has_its_mean_first_is_the_recorded_one(tmp_path: Path) -> None:
    files = [DATA / "backends" / f"mps_m2.{kind}" for kind in ("pte", "etrecord")]
    assert run("run", files[0], "--record", files[1], "-o", tmp_path / "run").code == 0
    answer = run("table", "operators", *files, tmp_path / "run/run.etdp", "--format", "json")
    (table,) = valid(answer, "table")["data"]["tables"]
    titles = [one["id"] for one in table["columns"]]
    rows = [dict(zip(titles, row["values"], strict=True)) for row in table["rows"]]
    (norm,) = (row for row in rows if row["operator"] == "LayerNorm_7")
    assert (norm["join"], norm["node"]) == ("exact", "aten_native_layer_norm_default")
