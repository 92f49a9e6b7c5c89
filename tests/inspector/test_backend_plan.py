"""Cards of backends, and the plan of which share of a model each would take."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch

import inspector
from compiler.backends.vendors import vulkan
from compiler.backends.vendors.listed import listed_operators
from compiler.backends.xnnpack.partitioner import XnnpackPartitioner
from inspector.cli.progress import Progress
from inspector.jobs.backend_plan import (
    BackendFacts,
    BackendOption,
    BackendPlan,
    BackendPlanJob,
    BackendShare,
)
from inspector.jobs.commands import command_of
from inspector.jobs.messages import Log
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.source import Source
from inspector.tables.backends import card_table, plan_table, with_short_states
from inspector.toolchain.backend_cards import AVAILABLE, backend_card, backend_cards, card_lines
from schema.vendors.needs import VendorNeed
from schema.vendors.table import VENDORS, vendor_called
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA, session

SAMPLE = DATA / "corpus/v1.5.1/convnet_xnnpack"


def test_every_backend_has_a_card_and_every_card_a_way_to_get_it() -> None:
    cards = backend_cards()
    assert {one.alias for one in VENDORS} <= {one.name for one in cards}
    assert [one.name for one in cards if not (one.hardware and one.runs)] == []
    assert [one.name for one in cards if one.missing and not one.install] == []
    lines = card_lines(backend_card("EthosU"))
    assert lines["known traps"].startswith("it takes integers only")
    with pytest.raises(KeyError, match="did you mean vulkan"):
        backend_card("vulcan")


def test_show_tells_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # without environments of vendors
    monkeypatch.setattr(VendorNeed, "is_met", lambda *_: False)
    data = valid(run("backends", "show", "--format", "json"), "backends")["data"]
    rows = {one["name"]: one for one in data["backends"]}
    assert rows["xnnpack"]["state"] == AVAILABLE
    assert rows["openvino"]["state"] == "the executorch package is not installed"
    assert rows["openvino"]["install"].startswith("pip install 'openvino>=")
    one = valid(run("backends", "show", "qnn", "--format", "json"), "backends")["data"]["backends"]
    assert one[0]["details"]["options"] == "not known here"
    text = run("backends", "show", "zzz")
    assert (text.code, "available: openvino" in text.err) == (2, True)


@pytest.mark.slow
def test_show_prints_no_warnings_of_the_package_that_it_imports() -> None:
    stream, noise = io.StringIO(), Log("Failed to load _MLModelProxy")
    for verbose, words in ((False, ""), (True, "Failed to load _MLModelProxy\n")):
        Progress(stream, logs=False, verbose=verbose).show([noise])
        assert stream.getvalue().endswith(words)
        assert bool(stream.getvalue()) is verbose
    Progress(stream := io.StringIO()).show([noise])  # of a job that runs the user's code
    assert "Failed to load" in stream.getvalue()
    if importlib.util.find_spec("coremltools") is None:  # it is imported in a worker alone
        pytest.skip("coremltools is not installed")
    answer = run("backends", "show", "coreml")
    assert "precision=FLOAT16|FLOAT32" in answer.out
    assert answer.err == ""


@pytest.mark.parametrize(
    ("name", "source", "text", "expected"),
    [
        (
            *("qnn", "qualcomm/builders/op_add.py"),
            'class Add:\n    target = ["aten.add.Tensor", "x"]\n    other = "aten.no.default"\n',
            ["aten.add.Tensor"],
        ),
        (
            *("nxp", "nxp/neutron_partitioner.py"),
            "more = {ops.edge.aten.no.default: 1}\n"
            "supported_ops = {exir_ops.edge.aten.abs.default: A, exir_ops.edge.aten.mm.default: M}",
            ["aten.abs.default", "aten.mm.default"],
        ),
        (
            *("mlx", "mlx/ops.py"),
            "import absent\n_OPS: list = [(torch.ops.aten.neg.default, Neg, 'aten.neg')]\n"
            "@REGISTRY.register(target=[torch.ops.aten.mul.Tensor])\n"
            "def one(n):\n    return torch.ops.aten.no.default\n",
            ["aten.mul.Tensor", "aten.neg.default"],
        ),
        ("cuda", "cuda/a.py", "target = 'aten.add.Tensor'", []),
    ],
)
def test_operators_of_devices_are_read_from_sources_that_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name, source, text, expected
) -> None:
    path = tmp_path / "executorch/backends" / source
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    vendor = vendor_called(name)
    assert vendor is not None
    assert listed_operators(vendor) == [(one, "any") for one in expected]


def test_words_of_tables_have_dtypes_and_say_what_is_missing() -> None:
    facts = BackendFacts((BackendOption("a", ("x", "y")), BackendOption("b")), (("op", "float32"),))
    assert (facts.option_words(), facts.operator_words()) == ("a=x|y; b", "1: op (float32)")
    assert BackendFacts(operators=(("op", "any"),), error="gone").operator_words() == "1: op"
    assert BackendFacts(error="gone").operator_words() == "gone"
    assert BackendFacts().operator_words().startswith("no table here lists them")
    mine = dict(XnnpackPartitioner().operators())
    assert mine["aten.add.Tensor"] == "FP32, STATIC_QUANT"


def test_dtypes_of_vulkan_are_those_of_the_first_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    every = {torch.float32, torch.float16, torch.int32}
    sets = {"a": [set(), {torch.float32, torch.float16}], "b": [every], "c": [set()]}
    registry = {key: SimpleNamespace(inputs_dtypes=SimpleNamespace(vals=sets[key])) for key in sets}
    parts = {
        "vulkan.op_registry": SimpleNamespace(vulkan_supported_ops=registry),
        "vulkan.utils": SimpleNamespace(ALL_T=every),
    }
    monkeypatch.setattr(vulkan, "backend_part", parts.__getitem__)
    assert vulkan.operators() == [("a", "float16, float32"), ("b", "any"), ("c", "any")]


def test_plan_has_a_row_for_each_backend_with_the_rest_explained(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.erf(torch.relu(x)) + x\n"
        "def build():\n"
        "    return Net().eval(), (torch.rand(2, 3),)\n",
        "utf-8",
    )
    words = [
        word for name in ("xnnpack", "demo-add-mul", "nothing") for word in ("--backend", name)
    ]
    answer = run("backends", "plan", f"{source}:build", *words, "--format", "json")
    rows = {one["backend"]: one for one in valid(answer, "backends")["data"]["plan"]}
    own = rows["xnnpack"]
    assert (own["taken"], own["nodes"], own["method"]) == (2, 3, "forward")
    assert "aten.erf.default: no rule" in own["reasons"][0]
    assert rows["demo-add-mul"]["taken"] == 1
    assert "unknown partitioner 'nothing'" in rows["nothing"]["error"]
    assert run("backends", "plan").code == 2


def test_plan_is_a_table_with_the_largest_share_first() -> None:
    rows = (
        BackendShare("a", "forward", 4, 1, 1, ("x: why",)),
        BackendShare("b", error="not here"),
        BackendShare("c", "forward", 4, 4, 2),
    )
    table = plan_table(BackendPlan(rows))
    keys = [cast("tuple[str, ...]", table.key(at)) for at in range(3)]
    assert [key[0] for key in keys] == ["c", "a", "b"]
    text = str(table)
    assert "nothing is left" in text
    assert "not here" in text


def test_table_of_a_session_counts_its_delegates() -> None:
    table = inspector.table(session(SAMPLE), "backends")
    line = next(one for one in str(table).splitlines() if one.startswith("xnnpack"))
    assert line.rstrip().endswith("2")


def test_plan_of_the_window_is_a_command() -> None:
    job = BackendPlanJob(CompileJob(Source("m.py", "build")), ("xnnpack",))
    assert "backends plan job-recipe.json --backend=xnnpack" in command_of(job)


def test_states_in_short_keep_what_they_stand_for() -> None:
    table = card_table(backend_cards())
    short = with_short_states(table)
    at = next(number for number, one in enumerate(table.columns) if one.title == "here")
    words = {short.text(row, at) for row in range(short.length)}
    assert words <= {"available", "not installed", "not here"}
    assert "available" in words
    for row in range(table.length):
        whole = table.text(row, at)
        assert short.columns[at].exact(short.columns[at].values[row]) == whole
        assert (short.text(row, at) == "available") == whole.startswith("available")
        assert (short.text(row, at) == "not installed") == whole.endswith("is not installed")
