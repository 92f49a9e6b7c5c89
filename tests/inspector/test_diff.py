"""Differences: none between equal files, each made one found and nothing else, by structure."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.compare.change import Change
from inspector.compare.differences import AREAS, diff_sessions, instruction_alignment
from inspector.compare.sequences import Alignment, align
from inspector.compare.sessions import compare_sessions
from inspector.files.load import load_session
from inspector.files.session import Session
from schema import program as programs
from schema.program import model as m
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA, folders, label, session

PORTABLE = DATA / "corpus/v1.5.1/convnet_portable"
items = st.lists(st.integers(0, 4), max_size=60)


def _check(old: list[int], new: list[int], found: Alignment) -> None:
    assert all(old[a] == new[b] for a, b in found.pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(found.pairs))
    assert sorted([a for a, _ in found.pairs] + list(found.removed)) == list(range(len(old)))
    assert sorted([b for _, b in found.pairs] + list(found.added)) == list(range(len(new)))


@given(items, items)
def test_align_any_lists_pairs_equal_entries_in_order(old: list[int], new: list[int]) -> None:
    _check(old, new, align(old, new))


@given(items, st.data())
def test_align_one_inserted_entry_is_one_difference(old: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(old)))
    new = [*old[:at], 9, *old[at:]]
    found = align(old, new)
    assert (found.removed, found.added) == ((), (at,))


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [2, 20, 4000])
def test_align_ten_thousand_entries_is_quick(kinds: int) -> None:
    pick = random.Random(kinds)
    old = [pick.randrange(kinds) for _ in range(10_000)]
    new = list(old)
    for _ in range(40):
        del new[pick.randrange(len(new))]
        new.insert(pick.randrange(len(new)), pick.randrange(kinds))
    start = time.process_time()
    found = align(old, new)
    unlike = align(old, [pick.randrange(kinds) for _ in range(10_000)])
    assert time.process_time() - start < 3
    assert len(found.pairs) > 9_800
    _check(old, new, found)
    assert unlike.removed


def _program(path: Path) -> programs.ProgramFile:
    return programs.decode((path / "model.pte").read_bytes())


def _changed(program: programs.ProgramFile, **fields: object) -> programs.ProgramFile:
    plans = (replace(program.plans[0], **fields), *program.plans[1:])
    return replace(program, table=replace(program.table, execution_plan=plans))


def _diff(tmp_path: Path, old: programs.ProgramFile, new: programs.ProgramFile) -> list[Change]:
    sessions: list[Session] = []
    for name, one in (("old", old), ("new", new)):
        path = tmp_path / f"{name}.pte"
        path.write_bytes(programs.encode(one))
        sessions.append(load_session([path]))
    return [change for change in diff_sessions(*sessions) if change.area != "size"]


def test_inserted_instruction_is_one_difference(tmp_path: Path) -> None:
    old = _program(PORTABLE)
    chain = old.plans[0].chains[0]
    steps = chain.instructions
    again = replace(chain, instructions=(*steps[:6], steps[5], *steps[6:]))
    found = _diff(tmp_path, old, _changed(old, chains=(again,)))
    operators = [change for change in found if change.area == "operators"]
    assert [(change.old, change.new) for change in operators] == [(1, 2)]
    (change,) = [change for change in found if change.area == "instructions"]
    assert change.old is None
    assert "aten::add" in change.what


def test_other_argument_of_an_operator_is_named(tmp_path: Path) -> None:
    old = _program(PORTABLE)
    values = list(old.plans[0].values)
    place = next(i for i, v in enumerate(values) if isinstance(v.val, m.Double))
    values[place] = m.EValue(m.Double(123.5))
    found = _diff(tmp_path, old, _changed(old, values=tuple(values)))
    assert {change.area for change in found} == {"instructions"}
    assert all("123.5" in str(change.new) and "123.5" not in str(change.old) for change in found)


def test_values_in_another_order_are_no_difference(tmp_path: Path) -> None:
    old = _program(PORTABLE)
    plan = old.plans[0]
    count = len(plan.values)

    def moved(index: int) -> int:
        return count - 1 - index

    def call(one: m.Instruction) -> m.Instruction:
        args = one.instr_args
        assert isinstance(args, m.KernelCall)
        return m.Instruction(replace(args, args=tuple(moved(i) for i in args.args)))

    def inner(entry: m.EValue) -> m.EValue:
        if isinstance(entry.val, (m.IntList, m.TensorList, m.OptionalTensorList)):
            inside = tuple(moved(i) if i >= 0 else i for i in entry.val.items)
            return m.EValue(replace(entry.val, items=inside))
        return entry

    chain = replace(
        plan.chains[0], instructions=tuple(call(one) for one in plan.chains[0].instructions)
    )
    new = _changed(
        old,
        values=tuple(inner(entry) for entry in reversed(plan.values)),
        inputs=tuple(moved(i) for i in plan.inputs),
        outputs=tuple(moved(i) for i in plan.outputs),
        chains=(chain,),
    )
    assert _diff(tmp_path, old, new) == []


def test_other_weight_says_how_much_it_differs(tmp_path: Path) -> None:
    path = tmp_path / "new.pte"
    program = _program(PORTABLE)
    data = bytearray((PORTABLE / "model.pte").read_bytes())
    tensor = next(
        entry.val
        for entry in program.plans[0].values
        if isinstance(entry.val, m.Tensor) and entry.val.data_buffer_idx
    )
    stored = program.constant_data(tensor)
    assert stored is not None
    at = data.index(bytes(stored))
    data[at : at + 4] = b"\x00\x00\x80\x42"  # 64.0
    path.write_bytes(data)
    found = diff_sessions(load_session([PORTABLE / "model.pte"]), load_session([path]))
    (change,) = [change for change in found if change.counts]
    assert change.area == "tensors"
    assert change.new == 64.0
    assert change.note.startswith("1 of 216 elements differ")


@pytest.mark.parametrize("places", [(0,), (3, 4, 200), tuple(range(0, 216, 9))])
@pytest.mark.parametrize("most", [0, 2, 10, 500])
def test_samples_are_the_first_elements_that_differ(
    places: tuple[int, ...], most: int, tmp_path: Path
) -> None:
    program = _program(PORTABLE)
    tensors = [e.val for e in program.plans[0].values if isinstance(e.val, m.Tensor)]
    stored = program.constant_data(next(t for t in tensors if t.data_buffer_idx))
    assert stored is not None
    numbers = np.frombuffer(stored, dtype=np.float32).copy()
    before = numbers.copy()
    numbers[list(places)] += np.float32(2.5)
    data = (PORTABLE / "model.pte").read_bytes().replace(bytes(stored), numbers.tobytes())
    path = tmp_path / "new.pte"
    path.write_bytes(data)
    sides = load_session([PORTABLE / "model.pte"]), load_session([path])
    (change,) = [change for change in diff_sessions(*sides, most) if change.counts]
    wanted = [(at, float(before[at]), float(numbers[at])) for at in places[:most]]
    assert [(each.at, each.old, each.new) for each in change.samples] == wanted
    assert (change.old, change.new) == (float(before[places[0]]), float(numbers[places[0]]))
    files = (PORTABLE / "model.pte", path, "--max-samples", most)
    answer = run("diff", *files, "--format", "json")
    assert answer.code == 1
    (counted,) = [each for each in valid(answer, "diff")["data"]["changes"] if each["counts"]]
    assert [tuple(each.values()) for each in counted["samples"]] == wanted
    assert ("elements that differ" in run("diff", *files).out.splitlines()) == bool(most)


def test_negative_count_of_samples_is_refused() -> None:
    path = PORTABLE / "model.pte"
    assert run("diff", path, path, "--max-samples", -1).code == 2


def test_instruction_alignment_keeps_what_both_call() -> None:
    old, new = session(PORTABLE), session(DATA / "corpus/v1.5.1/convnet_xnnpack")
    found = instruction_alignment(old, new, "forward")
    assert len(found.added) == 2
    assert all(a >= b for a, b in found.pairs)


@pytest.mark.parametrize("folder", folders("model.pte", "run.etdp"), ids=label)
def test_times_alone_make_no_difference(folder: Path) -> None:
    old = load_session([folder])
    new = load_session([folder / "model.pte"])
    assert not any(change.counts for change in diff_sessions(old, new))


@pytest.mark.parametrize("folder", folders("model.pte"), ids=label)
def test_verb_says_another_model_is_different(folder: Path) -> None:
    other = DATA / ("extra/kv_cache" if folder.name != "kv_cache" else "extra/deep_mlp")
    answer = run("diff", folder, other, "--format", "json")
    assert answer.code == 1
    data = valid(answer, "diff")["data"]
    assert data["different"] is True
    assert {change["area"] for change in data["changes"]} <= set(AREAS)


def test_verb_takes_lists_and_commas() -> None:
    folder = DATA / "extra/external_weights"
    files = [str(folder / "model.pte"), str(folder / "model.ptd")]
    for sides in ((",".join(files), folder), ("--base", *files, "--new", folder)):
        assert run("diff", *sides).code == 0
    assert run("diff", folder).code == 2
    assert run("diff", folder, folder, folder).code == 2


def test_verb_on_files_without_anything_in_common_is_different() -> None:
    folder = DATA / "extra/external_weights"
    answer = run("diff", folder / "model.ptd", folder / "run.etdp")
    assert answer.code == 1
    assert "no kind of file in common" in answer.out


@pytest.mark.parametrize("files", [("run.etdp",), ("model.pte", "model.etrecord", "run.etdp")])
def test_diff_shows_the_times_of_the_comparison(files: tuple[str, ...]) -> None:
    old, new = (
        load_session([DATA / "runs" / name / file for file in files])
        for name in ("convnet_portable", "convnet_xnnpack")
    )
    found = compare_sessions([old, new])
    (whole,) = [one for one in found.summary if one.area == "time"]
    times = {one.what: (one.old, one.new) for one in found.changes[0] if one.area == "time"}
    name = "run" if files == ("run.etdp",) else "forward"
    assert times.pop(name) == whole.values
    rows = {f"{name} {row.name}": tuple(row.ms) for row in found.operators}
    assert times
    assert all(rows[what] == values for what, values in times.items())
