"""Partitioners of another interpreter: programs as here, rules, and answers that are damaged."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from compiler import export, to_edge
from compiler.named import NamedObject
from compiler.partition.reasons import operator_of
from compiler.partition.rules import PartitionRules
from compiler.partition.steered import SteeredPartitioner
from compiler.quantize.program import quantize_program
from inspector.recipes.compile_job import CompileJob, Rules
from inspector.recipes.source import Source
from inspector.toolchain.backend_cards import backend_card
from inspector.toolchain.backend_python import (
    NoEnvironmentError,
    interpreter_of,
    interpreter_of_all,
)
from inspector.toolchain.child import ToolchainError
from inspector.toolchain.stock import handing
from inspector.toolchain.stock.handing import PreprocessError, preprocessed
from inspector.worker import backend_python
from inspector.worker.backend_python import partitioner_of
from inspector.worker.compile_job import compile_into
from inspector.worker.exporter import AnswerError, sentence_of
from inspector.worker.handed_program import write_program
from runtime import Runtime
from schema import etrecord
from schema.etrecord.parts.verdicts import NodeOutcome
from schema.program import ProgramFile, decode
from schema.vendors import environments
from schema.vendors.environments import FACTS, python_in
from schema.vendors.needs import VendorNeed
from schema.vendors.table import Vendor
from tests.tools.forked import run_stock

pytestmark = pytest.mark.slow
NETS = Path(__file__).parents[1] / "data" / "backends" / "nets.py"
HELLO = {"type": "hello"}
ASKED = NamedObject("vendor")
VERSIONS = {"type": "versions", "executorch": "1.5.1"}


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    yield
    backend_python.close_interpreters()


def quiet(_kind: str, **_content: Any) -> None:
    """Take no notice."""


def source(folder: Path, name: str) -> Source:
    path = folder / "net.py"
    path.write_text(
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('nets_of_backends', {str(NETS)!r})\n"
        "nets = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(nets)\n"
        f"def build():\n    return nets.network({name!r})\n"
    )
    return Source(str(path), "build")


def compiled(folder: Path, job: CompileJob) -> tuple[dict[str, Any], ProgramFile]:
    folder.mkdir()
    report = compile_into(job, folder, quiet)
    return report, decode((folder / "model.pte").read_bytes())


def _interpreter(folder: Path, answers: list[dict[str, Any]], end: str = "sleep 30") -> str:
    """Return a program that answers the first question like this, and then ends like that."""
    lines = "\n".join(json.dumps(one) for one in (HELLO, VERSIONS, *answers))
    (folder / "answers").write_text(lines + "\n")
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat {folder / 'answers'}\n{end}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an interpreter with the installed packages, in which this project is not found."""
    home = tmp_path_factory.mktemp("alone")
    venv.create(home, with_pip=False, symlinks=True)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    (own / "packages.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    python = str(python_in(home))
    code = (
        "import importlib.util as u; print([u.find_spec(n) is None for n in ('compiler', 'torch')])"
    )
    found = subprocess.run([python, "-c", code], cwd=home, capture_output=True, check=True)
    assert found.stdout.decode().strip() == "[True, False]"
    return python


@pytest.mark.interop
@pytest.mark.timeout(600)
def test_payloads_are_made_there_and_rules_hold(tmp_path: Path, alone: str) -> None:
    job = CompileJob(
        source(tmp_path, "m1"),
        partitioners=("vulkan",),
        backend_python=alone,
        rules=Rules(deny_ops=("aten.sin.default",)),
    )
    report, built = compiled(tmp_path / "out", job)
    counts = report["verdicts"]["forward"]
    assert counts[NodeOutcome.VETOED.value] == 1
    assert counts[NodeOutcome.DELEGATED.value] >= 4
    (delegate,) = built.plans[0].delegates
    assert delegate.id == "VulkanBackend"
    record = etrecord.decode((tmp_path / "out" / "model.etrecord").read_bytes())
    (inside,) = record.origins()["forward"].inside.values()
    assert {*inside.values()} == {
        ("aten_convolution_default", "aten_relu_default"),
        ("aten_view_copy_default",),
        ("aten_addmm_default",),
    }
    method = Runtime().load_program(tmp_path / "out" / "model.pte").load_method("forward")
    inputs, (expected,), *_ = torch.load(NETS.with_name("vulkan_m1.pt"))
    torch.testing.assert_close(method.execute(inputs)[0], expected, rtol=1e-5, atol=1e-5)


_LIBRARY = """
import torch
library = torch.library.Library("toy_elsewhere", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
library.define("twice.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
library.define("raise_(Tensor(a!) x) -> ()")

def raise_(x):
    x.add_(1)
library.impl("raise_", raise_, "CompositeExplicitAutograd")
"""
_CALLS_IT = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        y = x.relu() + 1
        torch.ops.toy_elsewhere.raise_(y)
        return torch.ops.toy_elsewhere.twice(y) - x
def build():
    return Net(), (torch.randn(2, 3),)
"""


@pytest.mark.interop
@pytest.mark.timeout(600)
def test_operators_of_libraries_are_registered_there(tmp_path: Path, alone: str) -> None:
    """Plain ones and such that write; without the library the sentence names them."""
    library, net = tmp_path / "operators.py", tmp_path / "calls_it.py"
    library.write_text(_LIBRARY)
    net.write_text(_CALLS_IT)
    job = CompileJob(
        Source(str(net), "build"),
        partitioners=("vulkan",),
        backend_python=alone,
        libraries=(str(library),),
    )
    _, built = compiled(tmp_path / "out", job)
    assert [one.id for one in built.plans[0].delegates] == ["VulkanBackend", "VulkanBackend"]
    called = {one.full_name for one in built.plans[0].operators}
    assert {"toy_elsewhere::twice.out", "toy_elsewhere::raise_"} <= called
    backend_python.close_interpreters()
    with pytest.raises(
        ToolchainError, match=r"toy_elsewhere::raise_, toy_elsewhere::twice are not"
    ):
        compiled(tmp_path / "other", replace(job, libraries=()))  # registered here already


@pytest.mark.interop
@pytest.mark.timeout(600)
def test_unknown_partitioner_of_an_interpreter_is_one_sentence(tmp_path: Path) -> None:
    job = CompileJob(
        source(tmp_path, "m1"), partitioners=("nonesuch",), backend_python=sys.executable
    )
    with pytest.raises(AnswerError, match="unknown partitioner 'nonesuch' in this executorch"):
        compiled(tmp_path / "out", job)


_PREPARED = """
import json, sys
from inspector.toolchain.stock import handing
for number, name in enumerate(sys.argv[1:]):
    asked = {"number": number, "partitioner": {"name": name, "options": {}}, "libraries": []}
    spec = handing.prepare(asked, lambda *_, **__: None)["spec"]
    print(json.dumps(spec and spec["backend"]))
"""


@pytest.mark.interop
def test_partitioner_tells_its_backend_before_it_has_seen_a_program() -> None:
    done = run_stock(["-c", _PREPARED, "coreml", "vulkan", "webgpu"])
    told = [json.loads(line) for line in done.stdout.splitlines()[-3:]]
    assert told == ["CoreMLBackend", "VulkanBackend", None]  # that of WebGPU tells it by tag only


@pytest.mark.parametrize("backend", ["EthosUBackend", "TOSABackend", "OpenvinoBackend"])
@pytest.mark.parametrize(
    ("denied", "with_it"),
    [
        ("aten.relu.default", {"aten_addmm_default", "aten_permute_copy_default"}),
        ("aten.addmm.default", {"aten_relu_default", "aten_permute_copy_default"}),
        ("aten.sin.default", set[str]()),
    ],
)
def test_what_is_quantized_together_is_asked_there_to_stay_out(
    backend: str, denied: str, with_it: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules of a backend of integers are those of regions, wherever its partitioner runs."""
    spec = {"backend": backend, "settings": [], "together": False}
    vetoed: list[list[str]] = []

    def answered(_python: str, kind: Any, **asked: Any) -> Any:
        calls: list[tuple[str, Any]] = []
        if asked["do"] == "partition":
            calls = [*backend_python._calls(program.graph_module)]
            vetoed.append(asked["vetoed"])
        told: dict[str, Any] = {
            "prepare": {"name": "P", "spec": spec},
            "partition": {
                "nodes": [(path, operator_of(node), None) for path, node in calls],
                "data": [], "specs": {}, "reasons": {},
            },
        }  # fmt: skip
        return msgspec.convert(told[asked["do"]], kind)

    monkeypatch.setattr(backend_python, "_ask", answered)
    layers = torch.nn.Linear(4, 4), torch.nn.ReLU()
    net, inputs = torch.nn.Sequential(*layers).eval(), (torch.ones(2, 4),)
    quantized = quantize_program(export(net, inputs), "static", [inputs])
    program = to_edge(quantized).exported_program()
    rules = PartitionRules(deny_ops=(denied,))
    SteeredPartitioner(partitioner_of("python", ASKED), rules).partition(program)
    names = {one for one in vetoed[0] if operator_of_name(program, one) != denied}
    assert names == (with_it if backend != "OpenvinoBackend" else set())


def operator_of_name(program: Any, name: str) -> str:
    return next(operator_of(one) for one in program.graph.nodes if one.name == name)


_TABLES = """
import pathlib, runpy, sys
home = runpy.run_path(sys.argv[1], run_name="served")
home["let_parts_be_found"]()
from inspector.toolchain.stock import answering
from schema.backends import BACKENDS, resolve
from schema.flatbuf.spec import Spec
from schema.vendors.table import VENDORS
ours = [vars(module) for name, module in sys.modules.items() if name.startswith("schema.")]
home["forget_names"]()
places = [*(one.decoder for one in BACKENDS.values()), *(one.joins for one in VENDORS)]
print(sum(callable(resolve(place)) for place in places if place))
print(sum(len(one.fields) for names in ours for one in names.values() if isinstance(one, Spec)))
"""


@pytest.mark.interop
def test_whatever_another_interpreter_needs_of_ours_is_there(alone: str, tmp_path: Path) -> None:
    """Contexts of vendors, decoders and tables, after our names have been removed there."""
    main = Path(handing.__file__).with_name("__main__.py")
    done = subprocess.run(
        [alone, "-c", _TABLES, str(main)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    places, fields = map(int, done.stdout.split())
    assert places > 15
    assert fields > 100


_AGAIN = """
import runpy, sys
home = runpy.run_path(sys.argv[1], run_name="served")
home["let_parts_be_found"]()
from inspector.toolchain.stock import answering
home["forget_names"]()
sys.path.insert(0, sys.argv[2])
import torch
from compiler import export
from compiler.quantize.program import quantize_program
net, inputs = torch.nn.Linear(4, 4).eval(), (torch.ones(1, 4),)
program = quantize_program(export(net, inputs), "static", [inputs])
print(sum("quantize" in str(one.target) for one in program.graph.nodes))
"""


def test_source_may_import_our_compiler_in_another_toolchain() -> None:
    """Its operators are defined once in a process, which has copies of some of its modules."""
    main = Path(handing.__file__).with_name("__main__.py")
    words = [sys.executable, "-c", _AGAIN, str(main), str(main.parents[3])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4


class _Filtering:
    """A partitioner that wants activations whole, but none of those that it refuses."""

    def __init__(self, refused: Sequence[Any]) -> None:
        self._refused = refused

    def ops_to_not_decompose(self, _program: Any) -> Any:
        aten = torch.ops.aten
        ops = [aten.hardswish.default, aten.silu.default, aten.relu6.default]
        return ops, lambda node: node.target not in self._refused


@pytest.mark.parametrize("refused", [(), ("hardswish",), ("silu",), ("hardswish", "silu")])
def test_calls_in_place_are_preserved_as_the_filter_says(
    tmp_path: Path, refused: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = torch.nn.Hardswish(inplace=True), torch.nn.SiLU(inplace=True), torch.nn.ReLU()
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), *layers)
    torch.export.save(torch.export.export(net, (torch.ones(1, 4),)), tmp_path / "net.pt2")
    operators = [getattr(torch.ops.aten, name).default for name in refused]
    monkeypatch.setitem(handing._Kept.made, 1, _Filtering(operators))
    asked = {"number": 1, "program": tmp_path / "net.pt2"}
    found = handing.preserve(asked, quiet)
    assert sorted(found["refused"]) == [(f"aten::{name}", "default") for name in sorted(refused)]


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter is a shell script")
@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([{"type": "finished", "result": {"name": 5}}], r"damaged: Expected `str`, got `int`"),
        ([{"type": "finished", "result": {}}], r"damaged: Object missing required field `name`"),
        ([{"type": "finished", "result": None}], r"ended with exit code 3"),
        ([{"type": "failed", "sentence": "no licence"}], r"python: no licence$"),
        ([], r"ended with exit code 3"),
    ],
)
def test_damaged_answer_is_one_sentence(
    tmp_path: Path, answers: list[dict[str, Any]], why: str
) -> None:
    with pytest.raises(ToolchainError, match=why):
        partitioner_of(_interpreter(tmp_path, answers, "exit 3"), ASKED)


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter is a shell script")
def test_interpreter_that_crashes_or_is_missing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"crashed \(SIGKILL\)"):
        partitioner_of(_interpreter(tmp_path, [], "kill -9 $$"), ASKED)
    with pytest.raises(ToolchainError, match="cannot be started: No such file"):
        partitioner_of(str(tmp_path / "nothing" / "python"), ASKED)


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter is a shell script")
def test_tags_of_another_program_are_refused(tmp_path: Path) -> None:
    from compiler.pipeline.edge_manager import to_edge_transform_and_lower

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x)

    edge = to_edge_transform_and_lower(torch.export.export(Net(), (torch.ones(2),)))
    program = edge.exported_program()
    python = _interpreter(tmp_path, [{"type": "finished", "result": {"name": "P"}}])
    partitioner = partitioner_of(python, ASKED)
    backend_python.close_interpreters()
    spec = {"backend": "B", "settings": [["device", "Q1BV"]], "together": False}
    told: dict[str, Any] = {
        "nodes": [["aten_cos_default", "aten.cos.default", "t"]],
        "data": [], "specs": {"t": spec}, "reasons": {},
    }  # fmt: skip
    _interpreter(tmp_path, [{"type": "finished", "result": told}])
    with pytest.raises(ToolchainError, match="reads the program otherwise: aten_sin_default is"):
        partitioner.partition(program)
    backend_python.close_interpreters()
    right = {**told, "nodes": [["aten_sin_default", "aten.sin.default", "t"]]}
    _interpreter(tmp_path, [{"type": "finished", "result": right}])
    result = partitioner.partition(program)
    (node,) = [one for one in program.graph.nodes if one.op == "call_function"]
    assert node.meta["delegation_tag"] == "t"
    assert result.partition_tags["t"].backend_id == "B"
    assert result.partition_tags["t"].compile_specs[0].value == b"CPU"
    backend_python.close_interpreters()
    spec["settings"] = [["device", "%%%"]]
    _interpreter(tmp_path, [{"type": "finished", "result": right}])
    with pytest.raises(ToolchainError, match="is damaged"):
        partitioner.partition(program)


def test_environments_go_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "environments_folder", lambda: tmp_path)
    with pytest.raises(NoEnvironmentError, match=r"available: none.*install coreml` creates one"):
        interpreter_of("coreml", "coreml:precision=FLOAT32")
    python = python_in(tmp_path / "coreml")
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / "coreml" / FACTS).write_text('{"packages": ["a==1"], "created": "2026-11-23"}')
    assert interpreter_of("coreml", "coreml") == interpreter_of("auto", "core-ml") == str(python)
    assert interpreter_of("auto", "xnnpack") == interpreter_of("", "coreml") == ""
    assert interpreter_of("/opt/python", "coreml") == "/opt/python"
    monkeypatch.setattr(VendorNeed, "is_met", lambda *_: False)  # nor here, nor in any environment
    assert interpreter_of("", "coreml") == str(python)
    assert interpreter_of("", "xnnpack") == interpreter_of("", "vulkan") == ""
    with pytest.raises(NoEnvironmentError, match="no environment 'vulkan'"):
        interpreter_of("auto", "vulkan")
    assert importlib.util.find_spec("openvino") or environments.python_with("openvino") == ""
    card = backend_card("coreml")
    assert (card.missing, card.state) == ("", "available, in the environment coreml")
    (tmp_path / "coreml" / FACTS).write_text("{")
    with pytest.raises(NoEnvironmentError, match="no environment 'coreml'"):
        interpreter_of("coreml", "coreml")


def test_environment_serves_every_vendor_whose_needs_it_meets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "environments_folder", lambda: tmp_path)
    python = python_in(tmp_path / "ethos-u")
    library = tmp_path / "ethos-u/lib/python3.11/site-packages"
    for module in ("executorch/backends/cortex_m", "tosa_serializer", "ethosu"):
        (library / module).mkdir(parents=True)
    python.parent.mkdir(parents=True)
    python.touch()
    facts = '{"packages": ["tosa-tools==2026.5.0"], "created": "2026-11-23"}'
    (tmp_path / "ethos-u" / FACTS).write_text(facts)
    monkeypatch.setattr(Vendor, "missing", _missing_but_in_environments)
    for name in ("ethos-u", "tosa", "cortex-m"):
        assert interpreter_of("", name) == interpreter_of("auto", name) == str(python)
        assert backend_card(name).state == "available, in the environment ethos-u"
    assert interpreter_of("", "vgf") == ""  # its converter is not there
    program = python.parent / "model-converter"
    program.touch()
    program.chmod(0o755)
    assert interpreter_of("", "vgf") == str(python)
    # the stock toolchain compiles there as well
    assert interpreter_of_all(["vgf:spec=TOSA-1.0+INT", "tosa", "xnnpack"]) == str(python)
    assert interpreter_of_all(["xnnpack", "openvino"]) == interpreter_of_all([]) == ""


def _missing_but_in_environments(
    self: Vendor, paths: Sequence[str] | None = None, commands: str = ""
) -> str:
    if paths is None:
        return "not here"
    return next((one.sentence for one in self.needs if not one.is_met(paths, commands)), "")


@pytest.mark.parametrize("together", [False, True])
def test_vendor_that_fails_there_is_told_by_its_first_cause(*, together: bool) -> None:
    class Failing:
        __name__ = "Failing"

        def preprocess(self, *_: object) -> None:
            try:
                {}["MUL does not take float32"]
            except KeyError as error:
                passes = ["DecomposePass"] * 90
                raise RuntimeError(f"An error occurred after the passes: {passes}") from error

        preprocess_multimethod = preprocess

    program = torch.export.export(torch.nn.ReLU(), (torch.ones(1),))
    with pytest.raises(PreprocessError) as caught:
        preprocessed(Failing(), {"forward": [program]}, {"forward": [None]}, together=together)
    assert sentence_of(caught.value) == "KeyError: 'MUL does not take float32'"


_READING = """
import json, pathlib, sys
from inspector.toolchain.stock import handing
from inspector.toolchain.stock.handing import read
program = read(pathlib.Path(sys.argv[1]))
modules = program.graph_module.named_modules()
print(json.dumps({f"{path}/{node.name}": node.meta["custom"] for path, module in modules
                  for node in module.graph.nodes if "custom" in node.meta}))
"""


@pytest.mark.interop
def test_notes_of_quantizers_at_nodes_go_along(tmp_path: Path) -> None:
    class Branching(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x.relu(),))

    program = to_edge(export(Branching().eval(), (torch.ones(3),))).exported_program()
    wanted: dict[str, Any] = {}
    for path, module in program.graph_module.named_modules():
        nodes = module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ()
        for node in [one for one in nodes if one.op == "call_function" and one.kwargs == {}][:1]:
            node.meta["custom"] = {"_arm_annotation_info": {"quantized": True}, "odd": object()}
            wanted[f"{path}/{node.name}"] = {"_arm_annotation_info": {"quantized": True}}
    assert {one.partition("/")[0] for one in wanted} == {"", "true_graph_0", "false_graph_0"}
    write_program(program, tmp_path)
    assert json.loads(run_stock(["-c", _READING, tmp_path]).stdout.splitlines()[-1]) == wanted


_NAMING = """
import json, pathlib, sys
from inspector.toolchain.stock.handing import read
program = read(pathlib.Path(sys.argv[1]))
print(json.dumps([one.name for one in program.graph.nodes if one.op == "call_function"]))
"""


@pytest.mark.interop
def test_calls_keep_their_names(tmp_path: Path) -> None:
    """A call of several results whose name a number ends, as where one before it was folded."""

    class Norms(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first, second = (torch.nn.functional.layer_norm(one, (4,)) for one in (x, x.sin()))
            return first * second

    program = to_edge(export(Norms().eval(), (torch.ones(3, 4),))).exported_program()
    first, second = (one for one in program.graph.nodes if "layer_norm" in one.name)
    first.name, second.name = "aten_native_layer_norm_default_1", "aten_native_layer_norm_default_2"
    write_program(program, tmp_path)
    calls = [one.name for one in program.graph.nodes if one.op == "call_function"]
    assert json.loads(run_stock(["-c", _NAMING, tmp_path]).stdout.splitlines()[-1]) == calls


_SQUEEZED = """
import json, pathlib, sys
from inspector.toolchain.stock import handing
from inspector.toolchain.stock.nodes import operator_of

class Tagging:
    def partition(self, program):
        found = type("Result", (), {})()
        found.partition_tags, found.tagged_exported_program = {}, program
        self.seen = [[operator_of(one), repr(one.args[1:])] for one in program.graph.nodes
                     if ("squeeze" in one.name or "fill" in one.name) and one.op == "call_function"]
        self.values = program.module()(torch_ones)
        return found

import torch
torch_ones = torch.arange(24.0).reshape(2, 1, 3, 4)
handing._Kept.made[0] = one = Tagging()
told = handing.partition({"folder": sys.argv[1], "number": 0, "vetoed": []}, lambda *a, **k: None)
named = [operator for _, operator, _ in told["nodes"]
         if "squeeze_copy.d" in operator or "fill" in operator]
print(json.dumps([one.seen, named, [list(value.shape) for value in one.values]]))
"""


@pytest.mark.interop
def test_vendors_see_the_forms_of_operators_that_the_package_has(tmp_path: Path) -> None:
    class Squeezing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            one, last = torch.ops.aten.fill.Scalar(x, 3), x.squeeze((1, 2))
            return *x.unbind(0), x.squeeze(1), x.squeeze(-3), x.squeeze(2), last, one

    program = to_edge(export(Squeezing().eval(), (torch.ones(2, 1, 3, 4),))).exported_program()
    write_program(program, tmp_path)
    answer = run_stock(["-c", _SQUEEZED, tmp_path]).stdout.splitlines()[-1]
    seen, named, shapes = json.loads(answer)
    dims = "aten.squeeze_copy.dims"
    given = [[dims, f"({one},)"] for one in ("[0]", "[0]", "[1]", "[-3]", "[2]", "[1, 2]")]
    filled = ["aten.full_like.default", "(3,)"]
    assert sorted(seen) == sorted([*given, filled])
    assert sorted(named) == ["aten.fill.Scalar", *["aten.squeeze_copy.dim"] * 5, dims]  # as here
    shapes_of_squeezed = [[1, 3, 4], [1, 3, 4], [2, 3, 4], [2, 3, 4], [2, 1, 3, 4], [2, 3, 4]]
    assert shapes == [*shapes_of_squeezed, [2, 1, 3, 4]]
