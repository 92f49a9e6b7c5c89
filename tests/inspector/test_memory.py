"""Memory plans: the stock tool's allocations, hand-made lifetimes, loops, state and aliases."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.join.operands import plan_operands
from inspector.memory.lifetimes import lifetimes
from inspector.memory.plan import analyse_memory
from schema.program import ProgramFile
from schema.program import model as m
from tests.inspector.sessions import DATA, folders, label, session


def tensor(offset: int | None, nbytes: int = 16, **changes: int) -> m.EValue:
    place = None if offset is None else m.AllocationDetails(1, offset, 0)
    fields = {"data_buffer_idx": 0, **changes}
    return m.EValue(
        m.Tensor(0, 0, (nbytes,), (0,), False, fields["data_buffer_idx"], place, 0, 0, None)
    )


def plan(
    values: list[m.EValue],
    steps: list[m.InstructionArgs],
    inputs: tuple[int, ...] = (),
    outputs: tuple[int, ...] = (),
    names: tuple[str, ...] = ("aten::relu",),
    arena: int = 64,
) -> m.ExecutionPlan:
    operators = tuple(m.Operator(name, "out") for name in names)
    chain = m.Chain((), (), tuple(m.Instruction(step) for step in steps), None)
    return m.ExecutionPlan(
        "forward", None, tuple(values), inputs, outputs, (chain,), operators, (), (0, arena), None
    )


def program(made: m.ExecutionPlan) -> ProgramFile:
    return ProgramFile(m.ProgramTable(0, (made,), None, None, None, None, None, None), None, ())


def call(*args: int, op: int = 0) -> m.KernelCall:
    return m.KernelCall(op, args)


@pytest.mark.parametrize("folder", folders("stock.json", "model.pte"), ids=label)
def test_allocations_equal_those_of_the_stock_memory_trace(folder: Path) -> None:
    stock = json.loads((folder / "stock.json").read_text())["memory_trace"]
    loaded = session(folder).program
    assert loaded is not None
    for method, rows in stock.items():
        if isinstance(rows, dict):  # the stock tool refused
            continue
        wanted = {(row["pid"], row["ts"], row["dur"]) for row in rows if row["dur"]}
        found = {
            (arena.mem_id, value.offset, value.nbytes)
            for arena in analyse_memory(loaded, method).arenas
            for value in arena.values
            if value.nbytes
        }
        assert wanted <= found


@pytest.mark.parametrize("folder", folders("model.pte"), ids=label)
def test_corpus_plan_is_sound(folder: Path) -> None:
    loaded = session(folder).program
    assert loaded is not None
    for one in loaded.plans:
        found = analyse_memory(loaded, one.name)
        assert found.issues == ()
        for arena in found.arenas:
            assert arena.lower_bound_bytes <= arena.peak_bytes <= arena.planned_bytes
            ends = [value.offset + value.nbytes for value in arena.values]
            assert max(ends, default=0) <= arena.planned_bytes
            if arena.peak_instruction is not None:
                alive = sum(value.peak_bytes for value in arena.at_peak())
                assert alive == arena.peak_bytes
                assert arena.live_bytes[arena.peak_instruction] == arena.peak_bytes


def test_straight_line_lifetimes_are_inclusive() -> None:
    made = plan(
        [tensor(0), tensor(16), tensor(32), tensor(0)],
        [call(0, 1, 1), call(1, 2, 2), call(2, 3, 3)],
        inputs=(0,),
        outputs=(3,),
    )
    lives = lifetimes(made)
    assert list(zip(lives.first, lives.last, strict=True)) == [(0, 0), (0, 1), (1, 2), (2, 2)]
    (arena,) = analyse_memory(program(made), "forward").arenas
    assert (arena.peak_bytes, arena.peak_instruction) == (32, 0)
    assert [value.role for value in arena.values] == ["input", "output", "activation", "activation"]


def test_views_that_became_aliases_count_once() -> None:
    made = plan(
        [tensor(0, 32), tensor(0, 32), tensor(32, 16)],
        [call(0, 0), call(1, 2, 2)],
        outputs=(2,),
    )
    (arena,) = analyse_memory(program(made), "forward").arenas
    assert arena.peak_bytes == 48


def test_overlapping_views_in_time_share_a_storage() -> None:
    made = plan(
        [tensor(0, 64), tensor(0, 64), tensor(0, 16)],
        [call(0, 1, 1), call(0, 1, 2, 2)],
        inputs=(0,),
        outputs=(2,),
    )
    (arena,) = analyse_memory(program(made), "forward").arenas
    assert len({value.storage for value in arena.values}) == 1
    assert arena.peak_bytes == 64


def test_view_of_a_view_that_nothing_reads_is_unused_and_no_state() -> None:
    made = plan(
        [tensor(0, 64), tensor(0, 64), tensor(0, 64), tensor(64, 16), tensor(0, 48), tensor(64)],
        [call(0, 0), call(3, 3), call(2, 3, 3), call(3, 4, 4), call(4, 5, 5)],
        outputs=(5,),
        arena=128,
    )
    (arena,) = analyse_memory(program(made), "forward").arenas
    found = {value.value: value for value in arena.values}
    assert (found[1].role, found[1].first, found[1].last) == ("unused", -1, -1)
    assert (found[2].role, found[2].first, found[2].last) == ("activation", 0, 2)
    assert (found[2].made_by, found[2].operator) == (0, "aten::relu.out")
    assert arena.live_bytes.tolist() == [64, 80, 80, 64, 64]
    listed = [(value.value, value.peak_bytes, value.shares_with) for value in arena.at_peak()]
    assert listed == [(2, 64, ()), (3, 16, ())]


def test_value_and_its_view_count_once_and_name_each_other() -> None:
    made = plan([tensor(0, 64), tensor(0, 64)], [call(0, 0), call(1, 0, 0)], outputs=(1,))
    (arena,) = analyse_memory(program(made), "forward").arenas
    listed = [(value.value, value.peak_bytes, value.shares_with) for value in arena.at_peak()]
    assert sorted(listed) == [(0, 64, (1,)), (1, 0, (0,))]
    assert arena.peak_bytes == arena.lower_bound_bytes == 64


def test_memory_shown_in_sizes_of_the_run_lives_as_long_as_the_view() -> None:
    made = plan(
        [tensor(0), tensor(None), tensor(16), tensor(32)],
        [call(0, 0), m.KernelCall(1, (0, 0, 1)), call(2, 2), call(1, 2, 3, 3)],
        names=("aten::relu", "executorch_prim::et_view"),
        outputs=(3,),
    )
    lives = lifetimes(made)
    assert (lives.first[0], lives.last[0]) == (0, 3)


def test_state_that_only_another_method_writes_is_read_as_state() -> None:
    made = plan([tensor(0), tensor(16)], [call(0, 1, 1)], outputs=(1,))
    (arena,) = analyse_memory(program(made), "forward").arenas
    assert {value.value: value.role for value in arena.values} == {0: "state", 1: "output"}


@pytest.mark.parametrize(
    ("values", "outputs", "needed"),
    [
        ([tensor(0, 32), tensor(16, 32), tensor(48, 16)], (2,), "instruction 2 still reads it"),
        ([tensor(0, 32), tensor(0, 32), tensor(48, 16)], (2,), "instruction 2 still reads it"),
        ([tensor(0, 32), tensor(0, 64), tensor(48, 16)], (0,), "it is an output"),
    ],
    ids=["in_part", "same_bytes", "inside"],
)
def test_values_that_overlap_in_time_are_an_issue_and_no_impossible_number(
    values: list[m.EValue], outputs: tuple[int, ...], needed: str
) -> None:
    reads = () if needed == "it is an output" else (0,)
    made = plan(values, [call(0, 0), call(1, 1), call(*reads, 1, 2, 2)], outputs=outputs)
    found = analyse_memory(program(made), "forward")
    messages = [issue.message for issue in found.issues if "v0 and v1" in issue.message]
    assert len(messages) == 1
    assert "on the same bytes at the same time: instruction 1 writes v1 over it" in messages[0]
    assert needed in messages[0]
    (arena,) = found.arenas
    assert arena.lower_bound_bytes <= arena.peak_bytes <= arena.planned_bytes == 64
    assert sum(value.peak_bytes for value in arena.at_peak()) == arena.peak_bytes


@pytest.mark.parametrize(("operator", "lost"), [("aten::_slice_copy_nop", 0), ("aten::relu", 1)])
def test_slice_that_moves_nothing_overwrites_nothing(operator: str, lost: int) -> None:
    """As Cadence's compiler plans them: a slice lies inside of what it is of, which is read on."""
    made = plan(
        [tensor(0, 32), tensor(16, 16), tensor(32, 32)],
        [call(0, 0), call(0, 1, 1, op=1), call(0, 1, 2, 2)],
        outputs=(2,),
        names=("aten::relu", operator),
    )
    found = analyse_memory(program(made), "forward")
    assert len(found.issues) == lost
    (arena,) = found.arenas
    assert arena.live_bytes.tolist() == [32, 32, 64]


def test_value_outside_its_arena_counts_only_what_is_inside() -> None:
    made = plan([tensor(32, 64), tensor(96, 16)], [call(0, 0), call(0, 1, 1)], outputs=(1,))
    found = analyse_memory(program(made), "forward")
    assert [issue.message for issue in found.issues] == [
        "value 0 ends outside arena 1",
        "value 1 ends outside arena 1",
    ]
    (arena,) = found.arenas
    assert (arena.peak_bytes, arena.planned_bytes) == (32, 64)
    assert [value.peak_bytes for value in arena.at_peak()] == [32]


def test_arena_that_the_file_does_not_have_holds_nothing() -> None:
    place = m.AllocationDetails(7, 0, 0)
    lost = m.EValue(m.Tensor(0, 0, (16,), (0,), False, 0, place, 0, 0, None))
    found = analyse_memory(program(plan([lost], [call(0, 0)], outputs=(0,))), "forward")
    assert [(arena.mem_id, arena.peak_bytes) for arena in found.arenas] == [(1, 0), (7, 0)]
    assert [issue.message for issue in found.issues] == ["value 0 ends outside arena 7"]


def test_value_carried_through_a_loop_lives_for_all_passes() -> None:
    condition = m.EValue(m.Bool(False))
    made = plan(
        [tensor(0), tensor(16), tensor(32), condition],
        [call(0, 1, 1), call(1, 2, 2), call(2, 1, 1), m.JumpFalseCall(3, 1), call(0, 2, 2)],
        inputs=(0,),
    )
    lives = lifetimes(made)
    assert (lives.first[1], lives.last[1]) == (0, 3)  # read by the next pass
    assert (lives.first[0], lives.last[0]) == (0, 4)


def test_state_lives_for_the_whole_method() -> None:
    made = plan(
        [tensor(0), tensor(16), tensor(32, data_buffer_idx=1)],
        [call(2, 1, 1), m.KernelCall(1, (2, 1, 0, 2)), call(1, 0, 0)],
        names=("aten::relu", "aten::copy_"),
        outputs=(0,),
    )
    lives = lifetimes(made)
    assert 2 in lives.state
    assert (lives.first[2], lives.last[2]) == (0, 2)


def test_state_of_another_method_outlives_a_method_that_leaves_it_alone() -> None:
    found = session(DATA / "extra/shared_state")
    assert found.program is not None
    plan = analyse_memory(found.program, "plain")
    idle = [value for arena in plan.arenas for value in arena.values if value.role == "state"]
    assert sorted(value.nbytes for value in idle) == [4, 12]
    assert {(value.first, value.last) for value in idle} == {(0, plan.instruction_count - 1)}


def test_method_without_instructions_holds_its_inputs() -> None:
    found = session(DATA / "extra/identity")
    assert found.program is not None
    (arena,) = analyse_memory(found.program, "forward").arenas
    assert [(value.first, value.last, value.role) for value in arena.values] == [(0, 0, "input")]
    assert (arena.peak_bytes, arena.peak_instruction, len(arena.live_bytes)) == (8, 0, 1)


def test_lists_stand_for_their_members() -> None:
    made = plan(
        [tensor(0), tensor(16), m.EValue(m.TensorList((0, 1))), tensor(32)],
        [call(2, 3, 3)],
        inputs=(0, 1),
        outputs=(3,),
    )
    (touched,) = plan_operands(made)
    assert touched.reads == (2, 0, 1)
    assert touched.writes == (3,)


def test_impossible_sizes_are_issues_not_numbers() -> None:
    bad = m.Tensor(
        7, 0, (2**31 - 1,) * 3, (0, 1, 2), False, 0, m.AllocationDetails(1, 0, 0), 0, 0, None
    )
    found = analyse_memory(program(plan([m.EValue(bad)], [call(0, 0)])), "forward")
    assert [issue.message for issue in found.issues] == [
        "value 0 has an impossible size or place and is left out"
    ]
    assert found.arenas[0].values == ()


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(0, 6)), min_size=1, max_size=12
    )
)
def test_peak_equals_a_count_of_live_addresses(rows: list[tuple[int, int, int]]) -> None:
    # Value i is written at step i and read `hold` steps later, always at the last step at most.
    count = len(rows)
    values = [tensor(offset, size) for offset, size, _ in rows]
    reads: dict[int, list[int]] = {}
    for index, (_, _, hold) in enumerate(rows):
        reads.setdefault(min(index + hold, count - 1), []).append(index)
    steps = [call(*reads.get(step, ()), step, step) for step in range(count)]
    made = plan(values, list(steps), arena=64)
    lives = lifetimes(made)
    expected = []
    for step in range(count):
        alive: Counter[int] = Counter()
        for index, (offset, size, _) in enumerate(rows):
            if lives.first[index] <= step <= lives.last[index]:
                alive.update(range(offset, offset + size))
        expected.append(len(alive))
    (arena,) = analyse_memory(program(made), "forward").arenas
    assert arena.live_bytes.tolist() == expected
    assert arena.peak_bytes == max(expected) <= arena.planned_bytes
    assert sum(value.peak_bytes for value in arena.at_peak()) == arena.peak_bytes
