"""Grouping of events: the stock tool's order and samples, loops, odd clocks, many events."""

from __future__ import annotations

import math

import numpy as np
import pytest

from inspector.trace.blocks import trace_blocks
from schema import etdump
from schema.etdump import DebugEvent, DebugTensor, DebugValue, ProfileEvent


def timed(name: str, instruction: int, start: int, end: int, **more: object) -> ProfileEvent:
    return ProfileEvent(name, 0, instruction, start, end, **more)


def logged(instruction: int, offset: int, output: bool | None = None) -> DebugEvent:
    value = DebugValue(5, DebugTensor(6, (1,), (1,), offset), output=output)
    chain = -1 if output else 0
    return DebugEvent(value, chain, instruction)


def blocks_of(*runs: list[object], name: str = "Execute"):
    dump = etdump.dump([etdump.run(name, run) for run in runs])
    return trace_blocks((dump,))


def test_runs_of_one_pattern_become_samples_of_one_block() -> None:
    runs = [[timed("native_call_add.out", 0, k, k + 10 * (k + 1))] for k in range(3)]
    (block,) = blocks_of(*runs).blocks
    assert block.elapsed[:, 0].tolist() == [10, 20, 30]
    assert block.event_name(0) == "native_call_add.out"


def test_another_pattern_is_another_block() -> None:
    found = blocks_of([timed("a", 0, 0, 1)], [timed("b", 0, 0, 1)], [timed("a", 0, 0, 3)]).blocks
    assert [len(block.runs) for block in found] == [2, 1]


def test_loop_passes_are_counted_and_summed_and_the_last_is_the_sample() -> None:
    passes = [
        timed("OPERATOR_CALL", 4, start, start + length) for start, length in ((0, 5), (9, 7))
    ]
    (block,) = blocks_of([*passes]).blocks
    assert block.layout.occurrences.tolist() == [2]
    assert block.elapsed[0, 0] == 7
    assert block.total[0, 0] == 12


def test_times_of_events_in_order_are_those_of_the_trace_without_a_copy() -> None:
    runs = [
        [timed(name, at, 10 * k + at, 10 * k + at + 3) for at, name in enumerate("abc")]
        for k in range(3)
    ]
    (block,) = blocks_of(*runs).blocks
    assert block.start.tolist() == [[0, 1, 2], [10, 11, 12], [20, 21, 22]]
    assert block.end.tolist() == [[3, 4, 5], [13, 14, 15], [23, 24, 25]]
    assert block.total.tolist() == block.elapsed.tolist() == [[3.0] * 3] * 3
    store = block.runs[0].store
    assert np.shares_memory(block.start, store.start_time)
    assert np.shares_memory(block.end, store.end_time)
    assert not block.start.flags.writeable


@pytest.mark.parametrize("case", ["an instruction again", "a pass more", "another pattern between"])
def test_times_of_other_traces_are_put_in_the_order_of_their_rows(case: str) -> None:
    plain = [[timed("a", 0, k, k + 2), timed("b", 1, k + 5, k + 6)] for k in (0, 100)]
    runs = {
        "an instruction again": [
            [*run, timed("c", 0, k, k + 1)] for run, k in zip(plain, (7, 107), strict=True)
        ],
        "a pass more": [[*run, timed("b", 1, run[1].start_time + 3, 300)] for run in plain],
        "another pattern between": [plain[0], [timed("c", 0, 7, 8), timed("d", 1, 8, 9)], plain[1]],
    }[case]
    block = blocks_of(*runs).blocks[0]
    starts, instructions = {
        "an instruction again": ([[0, 7, 5], [100, 107, 105]], [0, 0, 1]),
        "a pass more": ([[0, 8], [100, 108]], [0, 1]),
        "another pattern between": ([[0, 5], [100, 105]], [0, 1]),
    }[case]
    assert block.start.tolist() == starts
    assert block.layout.instruction.tolist() == instructions
    assert block.end[:, 0].tolist() == [2, 102]


def test_events_come_instruction_by_instruction_as_first_met() -> None:
    run = [
        logged(2, 0),
        timed("native_call_b", 3, 0, 1),
        timed("native_call_a", 2, 1, 2),
        timed("OPERATOR_CALL", 3, 0, 2),
        timed("OPERATOR_CALL", 2, 1, 3),
    ]
    (block,) = blocks_of(run).blocks
    names = [(block.event_name(event), block.instruction(event)) for event in range(len(block))]
    assert names == [
        ("native_call_a", 2),
        ("OPERATOR_CALL", 2),
        ("native_call_b", 3),
        ("OPERATOR_CALL", 3),
    ]
    (value,) = block.debug_values(1, 0)
    assert value is not None
    assert value.tensor == DebugTensor(6, (1,), (1,), 0)


def test_value_without_a_timed_event_is_an_event_without_samples() -> None:
    (block,) = blocks_of([timed("a", 0, 0, 1), logged(1, 8)]).blocks
    assert [block.instruction(event) for event in range(len(block))] == [0, 1]
    assert math.isnan(block.elapsed[0, 1])
    assert len(block.debug_values(1, 0)) == 1


def test_program_outputs_are_no_events() -> None:
    (block,) = blocks_of([timed("a", 0, 0, 1), logged(0, 8, output=True)]).blocks
    assert len(block) == 1
    assert len(block.outputs(0)) == 1


def test_values_may_differ_from_run_to_run() -> None:
    runs = [[logged(0, offset), timed("a", 0, 0, 1)] for offset in (0, 64)]
    (block,) = blocks_of(*runs).blocks
    offsets = [block.debug_values(0, run)[0].tensor.offset for run in range(2)]
    assert offsets == [0, 64]


def test_delegate_ids_name_events() -> None:
    run = [
        ProfileEvent(None, 0, 1, 0, 5, delegate_id_int=0),
        ProfileEvent(None, 0, 1, 5, 9, delegate_id_str="Add (ND) #1"),
        timed("DELEGATE_CALL", 1, 0, 9),
    ]
    (block,) = blocks_of(run).blocks
    assert [block.event_name(event) for event in range(3)] == ["0", "Add (ND) #1", "DELEGATE_CALL"]
    assert [block.delegate_id(event) for event in range(3)] == [0, "Add (ND) #1", None]


def test_clock_of_32_bits_wraps() -> None:
    (block,) = blocks_of([timed("a", 0, 2**32 - 11, 10)]).blocks
    assert block.elapsed[0, 0] == 20
    assert blocks_of([timed("a", 0, 2**32 - 11, 10)]).issues == ()


def test_end_before_start_of_a_long_clock_is_missing_and_named() -> None:
    trace = blocks_of([timed("a", 0, 2**40, 5)])
    assert math.isnan(trace.blocks[0].elapsed[0, 0])
    assert "a ends before it starts" in trace.issues[0].message


def test_bundled_cases_are_separate_blocks() -> None:
    runs = [
        etdump.run("Execute", [timed("a", 0, 0, 1)], bundled_input_index=case) for case in (0, 1, 0)
    ]
    found = trace_blocks((etdump.dump(runs),)).blocks
    assert [(block.bundled_input_index, len(block.runs)) for block in found] == [(0, 2), (1, 1)]


def test_empty_runs_give_no_block() -> None:
    assert trace_blocks((etdump.dump([etdump.run("Execute", [])]),)).blocks == ()


@pytest.mark.parametrize("seed", range(4))
def test_columns_agree_with_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    run = [
        timed(
            f"op{rng.integers(3)}", int(rng.integers(5)), int(start), int(start + rng.integers(9))
        )
        for start in rng.integers(0, 100, 40)
    ]
    (block,) = blocks_of(run).blocks
    groups: dict[int, dict[str, list[int]]] = {}
    for event in run:
        group = groups.setdefault(event.instruction_id, {})
        group.setdefault(event.name or "", []).append(event.end_time - event.start_time)
    wanted = [
        (name, number, samples[-1], sum(samples), len(samples))
        for number, group in groups.items()
        for name, samples in group.items()
    ]
    found = [
        (
            block.event_name(event),
            block.instruction(event),
            block.elapsed[0, event],
            block.total[0, event],
            block.layout.occurrences[event],
        )
        for event in range(len(block))
    ]
    assert found == wanted
