"""Sessions for view tests: recorded ones, and generated programs of any size."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from inspector.files.load import load_session
from inspector.files.session import LoadedFile, Session
from schema.program import decode, encode
from schema.program import model as m
from schema.program.program import ProgramFile

DATA = Path(__file__).resolve().parent.parent / "data"


def folders() -> list[str]:
    """Return the recorded sessions, as paths below the data folder."""
    corpus = DATA / "corpus"
    found = [*corpus.glob("v1.*/*"), *corpus.glob("special/*"), *(DATA / "extra").glob("*")]
    kept = [path for path in found if path.is_dir() and any(path.glob("model.*"))]
    return sorted(str(path.relative_to(DATA)) for path in kept)


@lru_cache(maxsize=64)
def opened(*names: str) -> Session:
    """Return a session of files or folders below the data folder."""
    return load_session([DATA / name for name in names])


def _tensor(place: int) -> m.EValue:
    allocation = m.AllocationDetails(1, 64 * (place % 3), 0)
    return m.EValue(
        m.Tensor(
            scalar_type=6,
            storage_offset=0,
            sizes=(4, 4),
            dim_order=(0, 1),
            requires_grad=False,
            data_buffer_idx=0,
            allocation_info=allocation,
            layout=0,
            shape_dynamism=0,
            extra_tensor_info=None,
        )
    )


@lru_cache(maxsize=8)
def chain_session(operators: int) -> Session:
    """Return a program of that many operators one after another, without a trace."""
    calls = tuple(
        m.Instruction(m.KernelCall(index % 2, (index, index + 1, index + 1)))
        for index in range(operators)
    )
    plan = m.ExecutionPlan(
        name="forward",
        container_meta_type=None,
        values=tuple(_tensor(index) for index in range(operators + 1)),
        inputs=(0,),
        outputs=(operators,),
        chains=(m.Chain((0,), (operators,), calls, None),),
        operators=(m.Operator("aten::relu", "out"), m.Operator("aten::sin", "out")),
        delegates=(),
        non_const_buffer_sizes=(0, 192),
        non_const_buffer_device=None,
    )
    table = m.ProgramTable(0, (plan,), None, None, None, None, None, None)
    data = memoryview(encode(ProgramFile(table, None, ())))
    file = LoadedFile("chain.pte", "pte", len(data), data, decode(data, file="chain.pte"))
    return Session(f"chain {operators}", (file,))
