"""The numeric gap begins with the state that the program begins with, not with that of the record.

An exported module shares its buffers with what is compiled afterwards: one that was called once
in between leaves their content in the record, while the program stores none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch

from compiler import ExecutorchBackendConfig, to_edge
from inspector.files.load import load_session
from inspector.memory.plan import state_values
from inspector.numerics.replay.analysis import Options, analyse_gap
from runtime import Runtime
from schema.program import codec, model

FILES = "model.pte", "model.etrecord", "run.etdp", "run.debug"


class Counter(torch.nn.Module):
    """Two buffers of other shapes, and one of the shape of the first."""

    count: torch.Tensor
    held: torch.Tensor
    other: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("held", torch.zeros(2, 4))
        self.register_buffer("other", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        self.other.sub_(2)
        self.held.copy_(torch.tanh(x + self.held))
        return self.held * self.count + self.other


def _changed(data: bytes, change: Callable[[model.Tensor], model.Tensor]) -> bytes:
    """Return a program with other tensors of its state."""
    program = codec.decode(data)
    plan = program.plan("forward")
    values = [*plan.values]
    for index in state_values(program, "forward"):
        values[index] = model.EValue(val=change(cast("model.Tensor", values[index].val)))
    table = replace(program.table, execution_plan=(replace(plan, values=tuple(values)),))
    return codec.encode(replace(program, table=table))


def _name(tensor: model.Tensor) -> str:
    assert tensor.extra_tensor_info is not None
    return tensor.extra_tensor_info.fully_qualified_name


def _made(folder: Path, *, names: bool, stored: tuple[str, ...]) -> Path:
    """Compile after one call of the exported module; run with values."""
    torch.manual_seed(0)
    inputs = (torch.randn(2, 4),)
    program = torch.export.export(Counter(), inputs, strict=True)
    program.module()(*inputs)
    edge = to_edge(program, generate_etrecord=True)
    made = edge.to_executorch(ExecutorchBackendConfig(emit_mutable_buffer_names=True))
    data = _changed(  # as stock ones, which store no content unless they are told to
        bytes(made.buffer), lambda t: t if _name(t) in stored else replace(t, data_buffer_idx=0)
    )
    data = data if names else _changed(data, lambda t: replace(t, extra_tensor_info=None))
    (folder / "model.pte").write_bytes(data)
    made.get_etrecord().save(str(folder / "model.etrecord"))
    loaded = Runtime.get().load_program(
        str(folder / "model.pte"), enable_etdump=True, debug_buffer_size=1
    )
    loaded.load_method("forward").execute([*inputs])
    loaded.write_etdump_result_to_file(str(folder / "run.etdp"), str(folder / "run.debug"))
    return folder


@pytest.mark.parametrize("names", [True, False], ids=["named", "nameless"])
@pytest.mark.parametrize(
    "stored",
    [(), ("count",), ("count", "other"), ("held",), ("count", "held", "other")],
    ids=["none", "one_of_two_alike", "two_alike", "another", "all"],
)
def test_state_that_is_not_stored_begins_with_zeros(
    tmp_path: Path, *, names: bool, stored: tuple[str, ...]
) -> None:
    home = _made(tmp_path, names=names, stored=stored)
    run = analyse_gap(load_session([str(home / one) for one in FILES]), Options()).runs[0]
    compared = [row for row in run.rows if row.total is not None]
    assert len(compared) >= 4
    assert run.first_divergence() is None
    assert max(row.total.max_abs for row in compared if row.total is not None) < 1e-6
    said = [note for note in run.notes if "stores no content" in note]
    empty = sorted({"count", "held", "other"} - set(stored))
    wanted = f"the program stores no content of {', '.join(empty)}: "
    assert [note[: len(wanted)] for note in said] == ([wanted] if empty else [])
