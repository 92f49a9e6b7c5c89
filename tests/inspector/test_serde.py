"""Programs saved as bytes and files: what is read back computes and compiles to the same."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import Dim, export

from compiler import to_edge, to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.compat.emission import emit_program
from compiler.pipeline.edge_manager import EdgeProgramManager
from inspector.compat import serde
from inspector.rebuild.serde_rewrite import RebuildError
from runtime.compat.portable_lib import _load_for_executorch_from_buffer
from schema.errors import FormatError
from tests.tools.forked import run_stock

pytestmark = pytest.mark.slow


class Branches(torch.nn.Module):
    """A weight, a buffer that is written, several results of one operator, a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.count.add_(y[0])
        first, second = torch.split(self.linear(x), 2, dim=1)
        values, places = torch.topk(first.reshape(-1), 2)
        chosen = torch.cond(y.sum() > 0, lambda a: a + 1, lambda a: a * 2, (second,))
        return values, places, chosen, self.count * 2


class Dynamic(torch.nn.Module):
    """A dynamic batch in a view."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0] * 2, -1).softmax(-1) - x.shape[0]


class Layouts(torch.nn.Module):
    """A convolution behind a change of the memory format."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolution(x.to(memory_format=torch.channels_last)).relu()


def _case(name: str) -> tuple[Any, tuple[torch.Tensor, ...]]:
    """Return an exported program and inputs of it."""
    torch.manual_seed(5)
    if name == "branches":
        given: tuple[torch.Tensor, ...] = (torch.randn(3, 4), torch.randn(3, 4))
        with torch.no_grad():  # torch warns about gradients of what a branch is given
            return export(Branches().eval(), given), given
    if name == "dynamic":
        given = (torch.randn(3, 4),)
        shapes = ({0: Dim("batch", min=2, max=9)},)
        return export(Dynamic(), given, dynamic_shapes=shapes), (torch.randn(5, 4),)
    given = (torch.randn(1, 3, 6, 6),)
    return export(Layouts().eval(), given), given


NAMES = ["branches", "dynamic", "layouts"]


def _again(program: Any) -> Any:
    stream = io.BytesIO()
    serde.save(program, stream, extra_files={"note": "text"})
    kept: dict[str, str] = {}
    made = serde.load(stream, extra_files=kept)
    assert kept == {"note": "text"}
    return made


def _graph(program: Any) -> list[Any]:
    return [
        (n.name, n.op, str(n.target), n.op == "call_function" and n.meta.get("debug_handle"))
        for n in program.graph.nodes
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_program_read_back_is_the_same_at_every_stage(name: str) -> None:
    exported, inputs = _case(name)
    edge = to_edge(exported)
    for program in (exported, edge.exported_program()):
        made = _again(program)
        assert _graph(made) == _graph(program)
        torch.testing.assert_close(made.module()(*inputs), program.module()(*inputs))
    compiled = edge.to_executorch()
    assert EdgeProgramManager(_again(edge.exported_program())).to_executorch().buffer == (
        compiled.buffer
    )


def test_planned_program_is_read_back_with_its_memory() -> None:
    exported, inputs = _case("layouts")
    planned = to_edge(exported).to_executorch().exported_program()
    made = _again(planned)
    kept = [node for node in _graph(planned) if node[1] == "call_function"]
    assert [node for node in _graph(made) if node[1] == "call_function"] == kept
    assert any("alloc" in target for _, _, target, _ in kept)
    torch.testing.assert_close(made.module()(*inputs), exported.module()(*inputs))


@pytest.mark.parametrize("name", NAMES)
def test_delegated_program_read_back_compiles_to_the_same_bytes(name: str) -> None:
    exported, inputs = _case(name)
    edge = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    made = _again(edge.exported_program())
    wanted = edge.to_executorch().buffer
    assert EdgeProgramManager(made).to_executorch().buffer == wanted
    found = _load_for_executorch_from_buffer(wanted).forward([*inputs])
    if name != "branches":  # a program that writes its state gives another result the second time
        torch.testing.assert_close(made.module()(*inputs), found[0], rtol=1e-4, atol=1e-5)


def test_tensors_without_elements_stay_such() -> None:
    exported, _ = _case("layouts")
    program: Any = to_edge(exported).exported_program()
    mode = FakeTensorMode()
    program._state_dict = {name: mode.from_tensor(t) for name, t in program.state_dict.items()}
    made = serde.deserialize(serde.serialize(program))
    for name, tensor in made.state_dict.items():
        assert isinstance(tensor, FakeTensor)
        assert isinstance(tensor, torch.nn.Parameter)
        assert tensor.shape == program.state_dict[name].shape


def test_file_without_program_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.pt2", "w") as archive:
        archive.writestr("version", "5.4")
    with pytest.raises(RebuildError, match=r"serialized_exported_program\.json"):
        serde.load(tmp_path / "x.pt2")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pt2"
    for data in (b"", b"no archive", b"PK" + bytes(40)):
        path.write_bytes(data)
        with pytest.raises(FormatError):
            serde.load(path)


@pytest.mark.interop
@pytest.mark.slow
def test_stock_reads_what_is_saved_and_is_read(tmp_path: Path) -> None:
    exported, inputs = _case("layouts")
    serde.save(to_edge(exported).exported_program(), tmp_path / "ours.pt2")
    torch.save(inputs, tmp_path / "inputs.pt")
    code = (
        "import sys, torch\n"
        "from executorch import exir\n"
        "x = torch.load(sys.argv[1] + '/inputs.pt')\n"
        "program = exir.load(sys.argv[1] + '/ours.pt2')\n"
        "torch.save(program.module()(*x), sys.argv[1] + '/result.pt')\n"
        "exir.save(program, sys.argv[1] + '/theirs.pt2')\n"
    )
    run_stock(["-c", code, tmp_path])
    wanted = exported.module()(*inputs)
    torch.testing.assert_close(torch.load(tmp_path / "result.pt"), wanted)
    torch.testing.assert_close(serde.load(tmp_path / "theirs.pt2").module()(*inputs), wanted)


# planned methods as one program


def test_planned_methods_become_one_program_with_shared_weights() -> None:
    exported, _ = _case("layouts")
    managers = [to_edge(exported).to_executorch() for _ in range(2)]
    methods = {"b": managers[0].exported_program(), "a": managers[1].exported_program()}
    found = emit_program(methods, prim_getters={"size": 3})
    assert [plan.name for plan in found.program.plans] == ["a", "b", "size"]
    constants = found.program.table.constant_segment
    assert constants is not None
    assert len(constants.offsets) == 3  # one is reserved
    alone = emit_program(methods["a"]).program
    assert alone.table.execution_plan == managers[1].executorch_program.table.execution_plan
    methods["a"].graph.output_node().args[0][0].append(
        methods["a"].graph.create_node(
            "call_function",
            torch.ops.aten.relu.default,
            (methods["a"].graph.output_node().args[0][0],),
        )
    )
    with pytest.raises(RuntimeError, match="method a was not planned"):
        emit_program(methods)
