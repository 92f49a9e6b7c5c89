"""Tensors with a size below zero: their bytes are unknown, which is not the same as none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inspector.files.load import load_session
from inspector.memory.plan import analyse_memory
from inspector.numerics.tensors import stored_tensors
from schema.dtypes.scalar_type import known_nbytes
from schema.errors import FormatError
from schema.graph import TensorMeta
from schema.program import ProgramFile, decode, encode
from schema.program import model as m
from tests.inspector.cli_runs import run, valid
from tests.inspector.sessions import DATA

SIZES = ((-1,), (-2, -3), (4, -1), (0, -5))
SOURCE = DATA / "extra/kv_cache/model.pte"


def _with_sizes(sizes: tuple[int, ...], *, planned: bool) -> tuple[ProgramFile, int]:
    """Return a program whose first constant or first activation has these sizes, and which."""
    program = decode(SOURCE.read_bytes())
    plan = program.plans[0]
    index, tensor = next(
        (index, entry.val)
        for index, entry in enumerate(plan.values)
        if isinstance(entry.val, m.Tensor)
        and (entry.val.allocation_info is not None) is planned
        and (planned or entry.val.data_buffer_idx > 0)
    )
    order = tuple(range(len(sizes)))
    values = list(plan.values)
    values[index] = replace(values[index], val=replace(tensor, sizes=sizes, dim_order=order))
    plans = (replace(plan, values=tuple(values)), *program.plans[1:])
    return replace(program, table=replace(program.table, execution_plan=plans)), index


@pytest.mark.parametrize("sizes", SIZES)
def test_constant_with_size_below_zero_is_unknown(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    program, index = _with_sizes(sizes, planned=False)
    path = tmp_path / "model.pte"
    path.write_bytes(encode(program))
    session = load_session([path])
    told = [issue.message for issue in session.all_issues() if "below zero" in issue.message]
    assert any(str(list(sizes)) in message for message in told)
    found = next(one for one in stored_tensors(session, "forward") if one.value == index)
    assert (found.nbytes, found.data) == (None, None)
    assert "sizes of zero and more" in found.missing
    rows = valid(run("tensors", path, "--format", "json"), "tensors")["data"]["stored"]
    assert next(row for row in rows if row["value"] == index)["bytes"] is None
    tensor = program.plans[0].values[index].val
    assert isinstance(tensor, m.Tensor)
    with pytest.raises(FormatError, match="sizes of zero and more"):
        program.constant_data(tensor)


@pytest.mark.parametrize("sizes", SIZES)
def test_activation_with_size_below_zero_is_not_planned(sizes: tuple[int, ...]) -> None:
    program, index = _with_sizes(sizes, planned=True)
    memory = analyse_memory(program, "forward")
    assert index not in {value.value for arena in memory.arenas for value in arena.values}
    assert any("impossible size" in issue.message for issue in memory.issues)


@pytest.mark.parametrize("sizes", SIZES)
def test_bytes_of_a_size_below_zero_are_unknown(sizes: tuple[int, ...]) -> None:
    assert known_nbytes(6, sizes) is None
    assert TensorMeta(6, sizes).nbytes is None


@pytest.mark.parametrize(
    ("sizes", "nbytes"), [((), 4), ((0,), 0), ((2, 3), 24), ((2**40, 2**40), 2**82)]
)
def test_bytes_of_a_shape_are_counted(sizes: tuple[int, ...], nbytes: int) -> None:
    assert known_nbytes(6, sizes) == nbytes


def test_bytes_of_an_unknown_type_are_unknown() -> None:
    assert known_nbytes(99, (2, 3)) is None
