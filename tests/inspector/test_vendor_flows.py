"""Flows of vendors without a partitioner: what they compile equals their references."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from inspector.cli.main import main
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.job_checks import job_problems
from inspector.recipes.source import Source
from inspector.toolchain.listing import own_partitioners
from inspector.toolchain.stock.flows import verdicts
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.vendors.names import flow_vendor, is_partitioner, partitioner_vendor
from tests.runtime.vendors.outputs import check_outputs

NETS = Path(__file__).parents[1] / "data" / "backends" / "nets.py"
_CORTEX = pytest.mark.skipif(
    importlib.util.find_spec("tosa_serializer") is None, reason="tosa-tools is not installed"
)
_CHANNELS_LAST = """
    last = torch.channels_last
    inputs = tuple(x.to(memory_format=last) if x.dim() == 4 else x for x in inputs)
    module = module.to(memory_format=last)"""


def source(folder: Path, name: str, more: str = "") -> str:
    path = folder / "net.py"
    path.write_text(
        "import importlib.util\nimport torch\n"
        f"spec = importlib.util.spec_from_file_location('nets_of_backends', {str(NETS)!r})\n"
        "nets = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(nets)\n"
        f"def build():\n    module, inputs = nets.network({name!r}){more}\n"
        "    return module, inputs\n"
    )
    return f"{path}:build"


def compiled(folder: Path, asked: str, *options: str) -> dict[str, Any]:
    target = folder / "out"
    assert main(["compile", asked, "-o", str(target), *options]) == 0
    return json.loads((target / "compile.json").read_text("utf-8"))


def compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, float]:
    """Return how many instructions a gap compares, and the largest difference."""
    made = str(folder / "out")
    run = str(folder / "run")
    assert main(["run", made, "-o", run, "--debug-level", "intermediate"]) == 0
    capsys.readouterr()
    assert main(["gap", made, run, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["data"]["runs"]
    return found["coverage"]["compared"], found["max_abs"]


def test_flow_has_names_like_a_partitioner_and_is_named_alone() -> None:
    assert is_partitioner("cortex-m")
    assert is_partitioner("cadence")
    assert partitioner_vendor("cortex-m") is None
    assert flow_vendor("cortexm:target=cortex-m4") is flow_vendor("cortex-m")
    assert flow_vendor("xnnpack") is None
    rows = [one for one in own_partitioners() if one["alias"] in ("cortex-m", "cadence")]
    assert [one["alias"] for one in rows] == ["cortex-m", "cadence"]
    job = CompileJob(Source("m.py", "m"), partitioners=("cadence", "xnnpack"))
    (problem,) = job_problems(job)
    assert problem.path == "partitioners"
    assert problem.sentence == "cadence compiles the whole program, so it is named alone"


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        (Rules(deny_ops=("aten.relu",)), "rules.deny_ops"),
        (Rules(min_nodes=3), "rules.min_nodes"),
        (Rules(allow_modules=("head",)), "rules.allow_modules"),
    ],
)
def test_rules_of_partitions_are_refused_for_a_flow(rules: Rules, path: str) -> None:
    job = CompileJob(Source("m.py", "m"), partitioners=("cortex-m:target=cortex-m4",), rules=rules)
    (problem,) = job_problems(job)
    assert problem.path == path
    assert "rules of partitions cannot apply" in problem.sentence
    assert job_problems(CompileJob(Source("m.py", "m"), partitioners=("cadence",))) == ()


def test_verdicts_tell_what_became_of_each_node() -> None:
    def call(node: str, operator: str, handle: int) -> dict[str, Any]:
        return {"node": node, "operator": operator, "debug_handle": handle, "source": ""}

    before = [
        call("q", "quantized_decomposed.quantize_per_tensor.default", 1),
        call("linear", "aten.linear.default", 2),
        call("sin", "aten.sin.default", 3),
        call("relu", "aten.relu.default", 4),
    ]
    after: list[dict[str, Any]] = [
        {"node": "x", "operator": "cortex_m.quantized_linear.default", "handles": (2, 4)},
        {"node": "y", "operator": "aten.sin.default", "handles": (3,)},
    ]
    found = verdicts(before, after, "cortex-m", "cortex_m")
    assert [one["outcome"] for one in found] == [
        NodeOutcome.DECOMPOSED,
        NodeOutcome.DELEGATED,
        NodeOutcome.NO_RULE,
        NodeOutcome.DELEGATED,
    ]
    assert "cortex_m.quantized_linear.default" in found[1]["reason"]


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "network", "options"),
    [
        ("cadence_m1", "m1", ("--partitioner", "cadence")),
        ("cadence_m1_int8", "m1", ("--partitioner", "cadence", "--quantize", "cadence")),
        ("cadence_attention", "attention", ("--partitioner", "cadence:mode=default:mem_algo=0")),
    ],
)
def test_cadence_computes_what_its_references_do(
    name: str,
    network: str,
    options: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = compiled(tmp_path, source(tmp_path, network), *options)
    check_outputs((tmp_path / "out/model.pte").read_bytes(), name)
    count, error = compared(tmp_path, capsys)
    assert error < 1e-6
    if name == "cadence_m1_int8":
        assert count == 7  # of 9; the others are the convolution and its weight
    taken = report["verdicts"]["forward"].get(NodeOutcome.DELEGATED.value, 0)
    assert (taken > 0) == (network == "m1")  # the attention has plain operators only
    assert "vendor passes" in [one["stage"] for one in report["stages"]]
    assert (tmp_path / "out" / "model.etrecord").is_file()


_IMAGES = """
import torch
from torch import nn


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        y = torch.relu(self.first(x))
        turned = y.permute(0, 2, 3, 1)
        y = torch.cat([y + torch.relu(self.second(y)), y], 1)[:, :8]
        y = nn.functional.max_pool2d(y, 2, 2)
        return self.head(torch.tanh(y).mean((2, 3))), torch.sigmoid(turned)


def build():
    return Images().eval(), (torch.randn({shape}),)
"""


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", ["1, 3, 8, 8", "2, 3, 6, 10"], ids=["square", "oblong"])
def test_images_that_the_passes_move_to_channels_last_are_compared_in_their_order(
    shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.py").write_text(_IMAGES.replace("{shape}", shape))
    options = ("--partitioner", "cadence", "--quantize", "cadence")
    compiled(tmp_path, f"{tmp_path / 'net.py'}:build", *options)
    count, error = compared(tmp_path, capsys)
    assert error == 0
    assert count >= 14


_CHANNELS = """
import torch
from torch import nn


class Channels(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        sizes = ({rows}, 16)
        self.register_buffer("stored", torch.randint(-127, 128, sizes, dtype=torch.int8))
        self.register_buffer("scales", torch.linspace(0.001, 0.1, sizes[0]))
        self.register_buffer("zeros", torch.zeros(sizes[0], dtype=torch.int64))

    def forward(self, x):
        real = torch.ops.quantized_decomposed.dequantize_per_channel(
            self.stored, self.scales, self.zeros, 0, -127, 127, torch.int8
        )
        return nn.functional.linear(x, real)


def build():
    import torchao.quantization.pt2e.quantize_pt2e  # which has the operators

    return Channels().eval(), (torch.randn(4, 16),)
"""


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rows", [16, 24], ids=["square", "oblong"])
def test_scales_of_channels_stay_with_their_channels(
    rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.py").write_text(_CHANNELS.replace("{rows}", str(rows)))
    compiled(tmp_path, f"{tmp_path / 'net.py'}:build", "--partitioner", "cadence")
    count, error = compared(tmp_path, capsys)
    assert error < 1e-6
    assert count == 2


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(600)
def test_option_that_a_flow_lacks_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = source(tmp_path, "m1")
    target = str(tmp_path / "out")
    assert main(["compile", asked, "-o", target, "--partitioner", "cadence:mode=fast"]) != 0
    words = capsys.readouterr().err
    assert "mode cannot be 'fast'; available: minimal, default, size" in words


@_CORTEX
@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.vendor
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["m1", "convs"])
def test_cortex_m_computes_what_its_references_do(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = source(tmp_path, name, _CHANNELS_LAST)
    options = ("--partitioner", "cortex-m", "--quantize", "cortex-m")
    report = compiled(tmp_path, asked, *options)
    check_outputs((tmp_path / "out/model.pte").read_bytes(), f"cortexm_{name}_int8")
    count, error = compared(tmp_path, capsys)
    assert error <= 1  # CMSIS-NN scales in integers
    if name == "m1":
        assert count == 7  # of 8; none of the recorded graph is a quantized copy
    assert report["verdicts"]["forward"][NodeOutcome.DELEGATED.value] > 0


_ACTIVATIONS = """
import torch
from torch import nn


class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.first = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x):
        y = nn.functional.hardswish(self.conv(x)).mean((2, 3))
        return nn.functional.hardswish(self.first(y))


def build():
    return Activations().eval(), (torch.randn(2, 3, 8, 8),)
"""


@_CORTEX
@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.vendor
@pytest.mark.timeout(600)
def test_cortex_m_computes_activations_that_it_does_not_fuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.py").write_text(_ACTIVATIONS)  # channels first, whose layer it leaves real
    options = ("--partitioner", "cortex-m", "--quantize", "cortex-m")
    compiled(tmp_path, f"{tmp_path / 'net.py'}:build", *options)
    count, error = compared(tmp_path, capsys)
    assert error <= 1
    assert count >= 11


@pytest.mark.slow
def test_gap_computes_the_vendors_operators_of_a_recorded_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(NETS.with_name(f"cadence_m1_int8.{kind}")) for kind in ("pte", "etrecord")]
    run = str(tmp_path / "run")
    assert main(["run", files[0], "-o", run, "--debug-level", "intermediate"]) == 0
    capsys.readouterr()
    assert main(["gap", *files, run, "--format", "json"]) == 0
    words = capsys.readouterr().out
    assert "not registered" not in words
    (made,) = json.loads(words)["data"]["runs"]
    assert made["coverage"]["compared"] >= 4
    assert made["max_abs"] == 0
