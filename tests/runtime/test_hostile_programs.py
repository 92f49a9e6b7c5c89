"""Programs that contradict themselves: one error with its code, never a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime import ErrorCode, ExecutionError, Runtime
from schema.program import encode
from schema.program import model as m
from tests.runtime.one_op import Builder, encoded, one_operator, program_of
from tests.runtime.samples import DATA, inputs_of

pytestmark = pytest.mark.slow

F32 = torch.float32


def plan_of_add() -> m.ExecutionPlan:
    """x + y -> z, one instruction."""
    build = Builder()
    x, y = build.input(torch.ones(4)), build.input(torch.ones(4))
    alpha, z = build.value(1), build.tensor(F32, (4,))
    call = m.KernelCall(0, (x, y, alpha, z, z))
    return build.plan([call], [z], ["aten::add.out"])


def run(plan: m.ExecutionPlan, budget: int = 10_000) -> list[Any]:
    method = Runtime.get().load_program(encode(program_of(plan))).load_method("forward")
    method.instruction_budget = budget
    return method.execute([torch.ones(4), torch.ones(4)])


def instructions(plan: m.ExecutionPlan, *args: m.InstructionArgs) -> m.ExecutionPlan:
    chain = replace(plan.chains[0], instructions=tuple(map(m.Instruction, args)))
    return replace(plan, chains=(chain,))


def value(plan: m.ExecutionPlan, index: int, **fields: Any) -> m.ExecutionPlan:
    values = list(plan.values)
    tensor = values[index].val
    assert isinstance(tensor, m.Tensor)
    values[index] = m.EValue(replace(tensor, **fields))
    return replace(plan, values=tuple(values))


def with_values(plan: m.ExecutionPlan, *more: m.KernelType) -> m.ExecutionPlan:
    return replace(plan, values=(*plan.values, *map(m.EValue, more)))


FAULTS: dict[str, tuple[ErrorCode, Callable[[m.ExecutionPlan], m.ExecutionPlan]]] = {
    "argument": (
        ErrorCode.InvalidProgram,
        lambda p: instructions(p, m.KernelCall(0, (0, 1, 2, 99, 99))),
    ),
    "operator": (
        ErrorCode.InvalidProgram,
        lambda p: instructions(p, m.KernelCall(7, (0, 1, 2, 3, 3))),
    ),
    "too_few": (ErrorCode.InvalidProgram, lambda p: instructions(p, m.KernelCall(0, (0, 1, 2, 3)))),
    "too_many": (
        ErrorCode.InvalidProgram,
        lambda p: instructions(p, m.KernelCall(0, (0, 1, 2, 3, 3, 3))),
    ),
    "out_is_number": (
        ErrorCode.InvalidProgram,
        lambda p: instructions(p, m.KernelCall(0, (0, 1, 2, 2, 2))),
    ),
    "delegate": (ErrorCode.InvalidProgram, lambda p: instructions(p, m.DelegateCall(0, (0, 3)))),
    "move": (ErrorCode.InvalidProgram, lambda p: instructions(p, m.MoveCall(0, 99))),
    "free": (ErrorCode.InvalidProgram, lambda p: instructions(p, m.FreeCall(99))),
    "jump_out": (ErrorCode.InvalidProgram, lambda p: instructions(p, m.JumpFalseCall(0, 99))),
    "jump_on_number": (ErrorCode.InvalidType, lambda p: instructions(p, m.JumpFalseCall(2, 0))),
    "endless": (
        ErrorCode.InvalidProgram,
        lambda p: instructions(with_values(p, m.Bool(False)), m.JumpFalseCall(4, 0)),
    ),
    "nothing": (ErrorCode.InvalidProgram, lambda p: instructions(p, None)),
    "input": (ErrorCode.InvalidProgram, lambda p: replace(p, inputs=(0, 99))),
    "output": (ErrorCode.InvalidProgram, lambda p: replace(p, outputs=(99,))),
    "unknown_operator": (
        ErrorCode.OperatorMissing,
        lambda p: replace(p, operators=(m.Operator("my::op", "out"),)),
    ),
    "list_of_itself": (
        ErrorCode.InvalidProgram,
        lambda p: with_values(p, m.TensorList((4,))),
    ),
    "list_beyond": (ErrorCode.InvalidProgram, lambda p: with_values(p, m.IntList((99,)))),
    "list_negative": (ErrorCode.InvalidProgram, lambda p: with_values(p, m.TensorList((-2,)))),
    "list_of_wrong": (ErrorCode.InvalidProgram, lambda p: with_values(p, m.IntList((0,)))),
    "no_value": (ErrorCode.InvalidProgram, lambda p: with_values(p, None)),
    "arena": (
        ErrorCode.MemoryAllocationFailed,
        lambda p: replace(p, non_const_buffer_sizes=(0, 8)),
    ),
    "no_arena": (ErrorCode.InvalidProgram, lambda p: replace(p, non_const_buffer_sizes=(0,))),
    "huge_arena": (
        ErrorCode.MemoryAllocationFailed,
        lambda p: replace(p, non_const_buffer_sizes=(0, 1 << 55)),
    ),
    "offset": (
        ErrorCode.MemoryAllocationFailed,
        lambda p: value(p, 3, allocation_info=m.AllocationDetails(1, 0, 1 << 20)),
    ),
    "huge_tensor": (
        ErrorCode.MemoryAllocationFailed,
        lambda p: value(p, 3, sizes=(1 << 30,) * 3, dim_order=(0, 1, 2), allocation_info=None),
    ),
    "negative_size": (ErrorCode.InvalidProgram, lambda p: value(p, 3, sizes=(-4,))),
    "rank": (
        ErrorCode.InvalidProgram,
        lambda p: value(p, 3, sizes=(1,) * 17, dim_order=tuple(range(17))),
    ),
    "dim_order": (ErrorCode.InvalidProgram, lambda p: value(p, 3, dim_order=(3,))),
    "storage_offset": (ErrorCode.InvalidProgram, lambda p: value(p, 3, storage_offset=4)),
    "dtype": (ErrorCode.InvalidType, lambda p: value(p, 3, scalar_type=99)),
    **{
        f"packed_{code}": (
            ErrorCode.InvalidType,
            lambda p, code=code: value(p, 3, scalar_type=code),
        )
        for code in (12, 13, 14, 16, 17, 18, 21, 22)
    },
    "dynamism": (ErrorCode.InvalidProgram, lambda p: value(p, 3, shape_dynamism=9)),
    "constant": (
        ErrorCode.InvalidProgram,
        lambda p: value(p, 3, data_buffer_idx=5, allocation_info=None),
    ),
    "static_shape": (ErrorCode.NotSupported, lambda p: value(p, 3, sizes=(2,))),
    "static_rank": (ErrorCode.NotSupported, lambda p: value(p, 3, sizes=(2, 2), dim_order=(0, 1))),
    "result_type": (ErrorCode.InvalidArgument, lambda p: value(p, 3, scalar_type=3)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_load_and_run_contradicting_program_raises_its_code(name: str) -> None:
    code, damage = FAULTS[name]
    with pytest.raises(ExecutionError) as raised:
        run(damage(plan_of_add()))
    assert raised.value.code == code
    assert f"0x{code:02x}" in str(raised.value)
    assert raised.value.reason


def test_run_sound_program_gives_the_sum() -> None:
    assert torch.equal(run(plan_of_add())[0], torch.full((4,), 2.0))


def test_error_of_a_kernel_names_method_instruction_operator_and_remedy() -> None:
    with pytest.raises(ExecutionError) as raised:
        run(value(plan_of_add(), 3, sizes=(2,)))
    error = raised.value
    assert (error.method, error.instruction, error.operator) == ("forward", 0, "aten::add.out")
    assert "Attempted to resize a static tensor" in str(error)
    assert error.remedy in str(error)
    assert "No input of this method can have other sizes" in error.remedy


def test_missing_operators_are_all_named() -> None:
    plan = replace(plan_of_add(), operators=(m.Operator("b::op", ""), m.Operator("a::op", "out")))
    with pytest.raises(ExecutionError, match=r"a::op\.out, b::op"):
        run(plan)


def test_writing_to_a_constant_is_refused_and_the_bytes_stay() -> None:
    build = Builder()
    x = build.input(torch.ones(4))
    constant = build.add(m.Tensor(6, 0, (4,), (0,), False, 1, None, 0, 0, None))
    no = build.value(False)
    plan = build.plan([m.KernelCall(0, (constant, x, no, constant))], [x], ["aten::copy_"])
    program = program_of(plan)
    table = replace(
        program.table,
        constant_segment=m.SubsegmentOffsets(0, (0, 0)),
        segments=(m.DataSegment(0, 16),),
    )
    data = encode(replace(program, table=table, segments=(memoryview(bytes(16)),)))
    before = bytes(bytearray(data))
    with pytest.raises(ExecutionError, match="constant"):
        Runtime.get().load_program(data).load_method("forward")
    assert data == before


def test_sizes_asked_of_factories_never_exceed_the_plan() -> None:
    for name, arguments in (
        ("aten::full.out", [[1 << 40], 1.0]),
        ("aten::arange.out", [1 << 40]),
        ("aten::repeat.out", [torch.ones(2), [1 << 40]]),
        ("aten::constant_pad_nd.out", [torch.ones(2), [1 << 40, 0], 0]),
        (
            "aten::convolution.out",
            [torch.ones(1, 1, 4), torch.ones(1, 1, 1), None, [1], [1 << 40], [1], False, [0], 1],
        ),
        ("aten::upsample_nearest2d.vec_out", [torch.ones(1, 1, 2, 2), [1 << 20, 1 << 20], None]),
        ("aten::expand_copy.out", [torch.ones(1), [1 << 40], False]),
    ):
        data, inputs = one_operator(name, arguments, [(F32, (4,))])
        with pytest.raises(ExecutionError) as raised:
            Runtime.get().load_program(data).load_method("forward").execute(inputs)
        assert raised.value.code == ErrorCode.NotSupported, name


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("aten::_fft_r2c.out", [torch.ones(2, 8), [1 << 40], 0, True]),
        (
            "aten::_native_batch_norm_legit.no_stats_out",
            [torch.ones(2, 3, 4), None, None, False, 0.1, 1e-5],
        ),
        (
            "aten::_native_batch_norm_legit_no_training.out",
            [torch.ones(2, 3), *(torch.ones(1) for _ in range(4)), 0.1, 1e-5],
        ),
        ("aten::native_group_norm.out", [torch.ones(2, 4, 3), None, None, 9, 4, 3, 2, 1e-5]),
        (
            "aten::max_pool2d_with_indices_backward.grad_input",
            [
                torch.ones(1, 1, 1, 1),
                torch.ones(1, 1, 2, 2),
                [2, 2],
                [2, 2],
                [0, 0],
                [1, 1],
                False,
                torch.full((1, 1, 1, 1), 1 << 40),
            ],
        ),
    ],
)
def test_arguments_that_torch_trusts_are_checked(name: str, arguments: list[Any]) -> None:
    """torch checks these where eager mode calls it; called directly, some end the process."""
    outs = [(F32, (1, 1, 2, 2))] * (3 if "norm" in name else 1)
    data, inputs = one_operator(name, arguments, outs)
    with pytest.raises(ExecutionError) as raised:
        Runtime.get().load_program(data).load_method("forward").execute(inputs)
    assert raised.value.code == ErrorCode.InvalidArgument


def _samples() -> list[Path]:
    names = ("corpus/v1.5.1/mm_portable", "extra/counter_state", "corpus/special/control_flow")
    return [DATA / name / "model.pte" for name in names]


SAMPLES = [path.read_bytes() for path in _samples()]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.sampled_from(SAMPLES), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4)
)
def test_run_flipped_bytes_only_raises_execution_errors(
    data: bytes, flips: list[tuple[float, int]]
) -> None:
    damaged = bytearray(data)
    for place, byte in flips:
        damaged[int(place * (len(damaged) - 1))] = byte
    try:
        program = Runtime.get().load_program(bytes(damaged))
        for name in program.method_names:
            meta = program.metadata(name)
            method = program.fresh_method(name)
            method.instruction_budget = 2_000
            method.execute(inputs_of(meta))
    except (ExecutionError, TypeError, IndexError) as error:
        if not isinstance(error, ExecutionError):
            _from_metadata(error)


def _from_metadata(error: BaseException) -> None:
    """Inputs that are no tensors, or not there, are said by the metadata, not by a run."""
    trace = error.__traceback__
    names: list[str] = []
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "_value" in names or "_info" in names, names


def test_same_bytes_for_equal_plans() -> None:
    assert encoded(plan_of_add()) == encoded(plan_of_add())
