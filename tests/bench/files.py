"""Large files made on the spot: a million events, two sparse gigabytes, real models."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

from schema import etdump, program
from schema.etdump.build import synthetic
from schema.program import model as m
from schema.program.program import ProgramFile
from tests.app.sessions import chain_session

MODELS = ("mv2_portable", "gpt2_portable")


def million_events(folder: Path, *, runs: int) -> Path:
    """Return a trace of a million events in so many runs."""
    path = folder / f"million_{runs}.etdp"
    if not path.exists():
        path.write_bytes(etdump.encode(synthetic(1_000_000, runs=runs)))
    return path


def large_session(folder: Path) -> tuple[Path, Path]:
    """Return a program of 50,000 operators one after another, and a trace of five runs of it."""
    model, trace = folder / "chain_50000.pte", folder / "chain_50000_runs.etdp"
    if not model.exists():
        model.write_bytes(chain_session(50_000).files[0].data)
    if not trace.exists():
        kernels = ("native_call_relu.out", "native_call_sin.out")
        trace.write_bytes(etdump.encode(synthetic(500_005, runs=5, kernels=kernels)))
    return model, trace


def two_gigabytes(folder: Path) -> Path:
    """Return a program with one constant of two gigabytes; the file is sparse."""
    path = folder / "sparse.pte"
    if path.exists():
        return path
    size = 2 << 30
    tensor = m.Tensor(6, 0, (size // 4,), (0,), False, 1, None, 0, 0, None)
    plan = m.ExecutionPlan("forward", None, (m.EValue(tensor),), (), (0,), (), (), (), (0,), None)
    table = m.ProgramTable(
        0,
        (plan,),
        None,
        None,
        (m.DataSegment(0, 16),),
        m.SubsegmentOffsets(0, (0, 0)),
        None,
        None,
    )
    data = bytearray(program.encode(ProgramFile(table, None, (memoryview(bytes(16)),))))
    base = struct.unpack_from("<Q", data, 24)[0]
    # The segment table says 16 bytes; both places that say so are made to say two gigabytes.
    at = data.rindex(struct.pack("<Q", 16), 0, base)
    struct.pack_into("<Q", data, at, size)
    struct.pack_into("<Q", data, 32, size)
    with path.open("wb") as stream:
        stream.write(data)
        stream.truncate(base + size)
    return path


def model_sessions(folder: Path) -> dict[str, Path]:
    """Return the sessions of real models, written by the stock tool when they are missing."""
    missing = [name for name in MODELS if not (folder / name / "run.etdp").exists()]
    if missing:
        recipe = Path(__file__).resolve().parents[1] / "data/zoo/large.py"
        subprocess.run([sys.executable, str(recipe), str(folder), *missing], check=True)
    return {name: folder / name for name in MODELS}
