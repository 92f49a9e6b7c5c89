"""An error planted at a random place of a run is named as the first divergence."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.files.load import load_session
from inspector.files.session import Session
from inspector.join.operands import plan_operands
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import INSIDE, Row
from inspector.numerics.tensors import stored_tensors
from runtime import Runtime
from schema import etdump
from schema.etdump import debug_buffer
from schema.program import ProgramFile, encode, instructions, operator_name
from schema.program import model as m
from tests.inspector.sessions import DATA

pytestmark = pytest.mark.slow

MODEL = DATA / "extra/deep_mlp"
RECORD = MODEL / "model.etrecord"
PLACES = 20
# a kernel, and another one of the same arguments
OTHER = {"aten::relu.out": "aten::sigmoid.out", "aten::add.out": "aten::sub.out"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's deserialiser has its own
        yield


def traced(model: Path, folder: Path, inputs: list[Any]) -> tuple[Path, Path]:
    """Run a program on our runtime."""
    program = Runtime.get().load_program(str(model), enable_etdump=True, debug_buffer_size=1)
    method = program.load_method("forward")
    method.execute(inputs)
    trace, buffer = folder / "run.etdp", folder / "run.debug"
    program.write_etdump_result_to_file(str(trace), str(buffer))
    return trace, buffer


def with_kernel(program: ProgramFile, place: int, name: str) -> bytes:
    """Return a program that calls another kernel in one instruction."""
    (plan,) = program.plans
    (chain,) = plan.chains
    stem, _, overload = name.partition(".")
    steps = list(chain.instructions)
    call = steps[place].instr_args
    assert isinstance(call, m.KernelCall)
    other = replace(call, op_index=len(plan.operators))
    steps[place] = replace(steps[place], instr_args=other)
    operators = (
        *plan.operators,
        replace(plan.operators[call.op_index], name=stem, overload=overload),
    )
    chains = (replace(chain, instructions=tuple(steps)),)
    changed = replace(plan, operators=operators, chains=chains)
    return encode(replace(program, table=replace(program.table, execution_plan=(changed,))))


def with_run(session: Session, trace: Path, buffer: Path) -> Session:
    """Return a session with another run."""
    found = {
        "etdump": etdump.decode(memoryview(trace.read_bytes())),
        "debug_buffer": debug_buffer.DebugBuffer(memoryview(buffer.read_bytes())),
    }
    files = [replace(file, artifact=found.get(file.kind, file.artifact)) for file in session.files]
    return replace(session, files=tuple(files))


def first(session: Session) -> Row | None:
    (run,) = analyse_gap(session, Options(runs=(0,))).runs
    return run.first_divergence()


def recorded_inputs(session: Session) -> list[Any]:
    from inspector.compat.devtools.etrecord import opened

    assert session.record is not None
    (inputs,) = opened(session.record)._representative_inputs
    return list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]


@pytest.fixture(scope="module")
def model() -> Session:
    return load_session([str(MODEL)])


def test_planted_kernel_is_the_first_divergence_wherever_it_is(
    model: Session, tmp_path: Path
) -> None:
    assert model.program is not None
    plan = model.program.plan("forward")
    calls = [step for step, each in enumerate(instructions(plan)) if _name(plan, each[2]) in OTHER]
    for place in random.Random(7).sample(calls, PLACES // 2):
        path = tmp_path / "model.pte"
        name = OTHER[_name(plan, instructions(plan)[place][2])]
        path.write_bytes(with_kernel(model.program, place, name))
        run = traced(path, tmp_path, recorded_inputs(model))
        found = first(load_session([str(each) for each in (path, RECORD, *run)]))
        assert found is not None, place
        assert found.instruction == place, (place, found)


def _name(plan: m.ExecutionPlan, instruction: m.Instruction) -> str:
    args = instruction.instr_args
    return operator_name(plan, args) if isinstance(args, m.KernelCall) else ""


def test_run_with_nothing_planted_has_no_divergence(model: Session, tmp_path: Path) -> None:
    run = traced(MODEL / "model.pte", tmp_path, recorded_inputs(model))
    assert first(with_run(model, *run)) is None


def shifted(values: torch.Tensor) -> None:
    values[len(values) // 2] += 0.5


def narrow(values: torch.Tensor) -> None:
    """Round to bfloat16, as a node of that type does."""
    values.copy_(values.to(torch.bfloat16))


@pytest.mark.parametrize("change", [shifted, narrow])
def test_planted_weight_names_the_instruction_that_reads_it(
    change: Callable[[torch.Tensor], None], model: Session, tmp_path: Path
) -> None:
    assert model.program is not None
    data = (MODEL / "model.pte").read_bytes()
    stored = [each for each in stored_tensors(model, "forward") if each.data is not None]
    operands = plan_operands(model.program.plan("forward"))
    for tensor in random.Random(3).sample(stored, PLACES // 4):
        assert tensor.data is not None
        raw = bytes(tensor.data)
        assert data.count(raw) == 1
        at = data.index(raw)
        changed = torch.frombuffer(bytearray(raw), dtype=torch.float32)
        change(changed)
        path = tmp_path / "model.pte"
        path.write_bytes(data[:at] + changed.numpy().tobytes() + data[at + len(raw) :])
        found = first(with_run(model, *traced(path, tmp_path, recorded_inputs(model))))
        reads = [step for step, touched in enumerate(operands) if tensor.value in touched.reads]
        assert found is not None, tensor.name
        assert found.instruction == reads[0], (tensor.name, found)


def test_planted_weight_inside_a_delegate_names_the_node_inside(tmp_path: Path) -> None:
    """The head of the net is a linear inside its second delegate."""
    folder = DATA / "corpus/v1.5.1/convnet_xnnpack"
    session = load_session([str(folder)])
    inputs = recorded_inputs(session)
    whole = first(with_run(session, *traced(folder / "model.pte", tmp_path, inputs)))
    assert whole is None
    assert session.record is not None
    weights = _parameters(session)
    data = (folder / "model.pte").read_bytes()
    places = {
        name: data.index(raw) for name, raw in weights.items() if data.count(raw) == 1
    }  # convolutions hold theirs in another order
    assert places
    for name, at in places.items():
        path = tmp_path / "model.pte"
        raw = weights[name]
        changed = torch.frombuffer(bytearray(raw), dtype=torch.float32)
        changed += 0.25
        new = changed.numpy().tobytes()
        whole_file = data[:at] + new + data[at + len(raw) :]
        # XNNPACK weights are named by their hash.
        old_name, new_name = (sha256(each).hexdigest().encode() for each in (raw, new))
        path.write_bytes(whole_file.replace(old_name, new_name))
        found = first(with_run(session, *traced(path, tmp_path, inputs)))
        assert found is not None, name
        if "bias" not in name and found.place == INSIDE:
            assert found.module.split(".")[0] == name.split(".")[0], (name, found)
        assert found.place == INSIDE, (name, found)


def _parameters(session: Session) -> dict[str, bytes]:
    from inspector.compat.devtools.etrecord import opened

    assert session.record is not None
    program = opened(session.record).edge_dialect_program
    found: dict[str, bytes] = {}
    for name, value in program.state_dict.items():
        if value.dtype == torch.float32 and value.dim() == 2:
            found[name] = value.detach().contiguous().numpy().tobytes()
    return found
