"""Partitions that kernels refuse when they are loaded are found while the program is compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler.backends.xnnpack.facts import shape_of
from compiler.backends.xnnpack.layout import in_memory
from compiler.backends.xnnpack.lowering import Lowering
from inspector.files.load import load_session
from inspector.findings.session import Tone, findings
from inspector.jobs.guard import AUTO, FIX, ON, GuardReport, guard_lines
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.source import Source
from inspector.worker import exporter, guarding
from inspector.worker.compile_job import compile_into
from runtime import ExecutionError, Runtime
from runtime.backends.xnnpack import backend
from runtime.backends.xnnpack.native.detect import Availability
from schema.objects.codec import from_json
from schema.payloads.xnnpack.nodes import StaticReshape
from tests.compiler import guard_sources
from tests.compiler.guard_sources import IMAGE
from tests.compiler.stock import Stock

pytestmark = pytest.mark.slow

SOURCES = Path(str(guard_sources.__file__))
BOLD = f"{SOURCES.with_name('bold_partitioner.py')}:Bold"


def silent(*_words: Any, **_content: Any) -> None:
    """Take no notice of messages."""


@pytest.fixture(autouse=True)
def _warnings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "redirect_logs", silent)


def compiled(
    function: str, folder: Path, way: str, partitioner: str = "xnnpack", **rules: Any
) -> GuardReport:
    """Compile a function of the sources and return what the guard says."""
    source = Source(str(SOURCES), function)
    job = CompileJob(source, partitioners=(partitioner,), rules=Rules(**rules))
    found = compile_into(job, folder, silent, way)
    again = from_json(json.loads(json.dumps(found["guard"])), GuardReport, "guard")
    assert again == from_json(found["guard"], GuardReport, "guard")
    return again


def line_of(mark: str) -> str:
    """Return ``file:line`` of a marked line of the sources."""
    lines = SOURCES.read_text("utf-8").splitlines()
    place = next(at for at, line in enumerate(lines, 1) if line.endswith(f"# line: {mark}"))
    return f"{SOURCES}:{place}"


def loads_on_stock(stock: Stock, folder: Path) -> list[Any] | str:
    """Return what the stock runtime makes of a program, or its error."""
    program = (folder / "model.pte").read_bytes()
    return stock.run_each([(program, [guard_sources.IMAGE])])[0]


def run_natively(folder: Path, given: torch.Tensor = IMAGE) -> torch.Tensor:
    """Return what our runtime makes of a program on the real kernels."""
    method = Runtime().load_program(folder / "model.pte").load_method("forward", engine="native")
    return method.execute([given])[0]


@pytest.mark.interop
def test_sound_program_loads_and_has_no_refusals(stock: Stock, tmp_path: Path) -> None:
    report = compiled("sound", tmp_path, AUTO)
    assert [one.verdict for one in report.partitions] == ["loads"]
    assert (report.refusals, report.rounds, report.vetoed) == ((), 1, ())
    assert "executorch 1.5.1" in report.partitions[0].engine
    assert isinstance(loads_on_stock(stock, tmp_path), list)
    session = load_session([str(tmp_path / "model.pte"), str(tmp_path / "model.etrecord")])
    assert session.record is not None
    assert session.record.refusals() == ()


@pytest.mark.interop
def test_refusal_of_the_stock_runtime_is_found_and_names_node_line_and_rule(
    stock: Stock, tmp_path: Path
) -> None:
    report = compiled("dead", tmp_path, AUTO)
    wrong = loads_on_stock(stock, tmp_path)  # it does not load there either
    assert isinstance(wrong, str)
    assert "0x14" not in wrong  # which would be an operator that is missing
    with pytest.raises(ExecutionError, match="Conv2d"):
        run_natively(tmp_path)
    (refusal,) = report.refusals
    assert (refusal.exported, refusal.operator) == ("conv2d_1", "aten.convolution.default")
    assert (refusal.partitioner, refusal.rule) == ("XnnpackPartitioner", "ConvolutionConfig")
    assert refusal.source == line_of("refused")
    assert refusal.remedies[0] == "--deny-node conv2d_1"
    assert refusal.kind == "Conv2d"
    session = load_session([str(tmp_path / "model.pte"), str(tmp_path / "model.etrecord")])
    assert session.record is not None
    assert session.record.refusals() == (refusal,)
    first = findings(session)[0]
    assert (first.tone, first.view, first.delegate) == (Tone.BAD, "partitions", 0)
    assert "aten_convolution_default_1" in first.text


@pytest.mark.interop
@pytest.mark.parametrize(
    ("remedy", "value"),
    [
        ("deny_nodes", "conv2d_1"),
        ("deny_ops", "aten.convolution.default"),
        ("deny_rules", "ConvolutionConfig"),
    ],
)
def test_each_remedy_makes_the_program_load(tmp_path: Path, remedy: str, value: str) -> None:
    report = compiled("dead", tmp_path, AUTO, **{remedy: (value,)})
    assert report.refusals == ()
    module, inputs = guard_sources.dead()
    assert torch.allclose(run_natively(tmp_path), module(*inputs), atol=1e-6)


@pytest.mark.interop
def test_fix_keeps_all_refused_nodes_out_and_loads_again(tmp_path: Path) -> None:
    report = compiled("twice_dead", tmp_path, FIX)
    assert (report.refusals, report.rounds) == ((), 2)
    assert report.vetoed == ("conv2d", "conv2d_2")
    assert {one.verdict for one in report.partitions} == {"loads"}
    recipe = json.loads((tmp_path / "recipe.json").read_text("utf-8"))
    assert recipe["job"]["rules"]["deny_nodes"] == ["conv2d", "conv2d_2"]
    module, inputs = guard_sources.twice_dead()
    assert torch.allclose(run_natively(tmp_path), module(*inputs), atol=1e-6)
    assert any("conv2d_2 was excluded" in line for line in guard_lines(report))


def written_before(lowering: Lowering, like: Any, ident: int, layouts: Any, define: Any, *_: Any):
    """Write a change of layout as a reshape that would have to infer two sizes."""
    dims = in_memory(shape_of(like), layouts[1])
    sizes = tuple(size if isinstance(size, int) else 0 for size in dims)
    lowering.writer.node(StaticReshape("StaticReshape", len(sizes), sizes, ident, define()))


@pytest.mark.interop
@pytest.mark.parametrize("way", [AUTO, FIX])
def test_inserted_node_that_is_refused_names_the_node_it_was_inserted_for(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lowering, "rearrange", written_before)
    report = compiled("one_channel", tmp_path, way)
    if way == AUTO:
        first = report.refusals[0]
        assert (first.exported, first.kind) == ("conv2d", "StaticReshape")
        with pytest.raises(ExecutionError, match=r"StaticReshape.*out of the partition"):
            run_natively(tmp_path, IMAGE[:, :1])
        return
    assert (report.refusals, report.vetoed) == ((), ("conv2d",))
    module, inputs, *_ = guard_sources.one_channel()
    found = run_natively(tmp_path, *inputs)
    assert torch.allclose(found, module(*inputs), atol=1e-6)


@pytest.mark.interop
@pytest.mark.parametrize("way", [AUTO, ON])
def test_fused_activation_is_to_blame_and_not_what_it_is_fused_into(
    way: str, tmp_path: Path
) -> None:
    report = compiled("squeezed", tmp_path, way, BOLD)
    (refusal,) = report.refusals
    assert (refusal.exported, refusal.operator) == ("clamp", "aten.clamp.default")
    assert refusal.source == line_of("squeezed")
    assert refusal.partitioner == "Bold"


def test_without_real_kernels_auto_asks_nobody_and_on_asks_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "availability", lambda: Availability(None, "there are none"))
    (tmp_path / "auto").mkdir()
    (tmp_path / "on").mkdir()
    source = Source(str(SOURCES), "plain")
    job = CompileJob(source, partitioners=("xnnpack",))
    assert compile_into(job, tmp_path / "auto", silent, AUTO)["guard"] is None
    made = compile_into(job, tmp_path / "on", silent, ON)
    report = from_json(made["guard"], GuardReport, "guard")
    assert [one.verdict for one in report.partitions] == ["loads"]
    assert "host emulation" in report.partitions[0].engine


def test_partitions_of_other_backends_are_not_checked(tmp_path: Path) -> None:
    source = Source(str(SOURCES), "plain")
    job = CompileJob(source, partitioners=("demo-all",))
    assert compile_into(job, tmp_path, silent, ON)["guard"] is None


@pytest.mark.interop
def test_large_program_is_loaded_only_when_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarding, "LARGEST", 100)
    report = compiled("sound", tmp_path, AUTO)
    assert [one.verdict for one in report.partitions] == ["not checked"]
    assert "--guard on" in guard_lines(report)[0]
    assert [one.verdict for one in compiled("sound", tmp_path, ON).partitions] == ["loads"]
