"""Sessions of programs that are compiled and run here, with the compiler's own exact map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.emit import method as emission
from inspector.files.load import load_session
from inspector.files.session import Session
from runtime import Runtime
from tests.compiler.compare import calls_of, exported, flat, module_of
from tests.compiler.programs import Sample


@dataclass(frozen=True)
class Made:
    """A program that was compiled and run.

    Attributes:
        session: program, record, trace and debug buffer
        sources: instruction -> the node of the edge graph that it was emitted for
        folder: where the files are
        runs: arguments of each run
    """

    session: Session
    sources: Sequence[Any]
    folder: Path
    runs: Sequence[tuple[Any, ...]]


def made(sample: Sample, folder: Path, *, delegated: bool = False) -> Made:
    """Compile a sample, run it with all intermediate values, and open it."""
    program = exported(sample, module_of(sample))
    with _sources() as sources:
        partitioner = [XnnpackPartitioner()] if delegated else None
        manager = to_edge_transform_and_lower(
            program, partitioner=partitioner, generate_etrecord=True
        )
        done = manager.to_executorch()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.pte").write_bytes(done.buffer)
        done.get_etrecord().save(folder / "model.etrecord")
    runs = [flat(given) for given in calls_of(sample)]
    run(folder / "model.pte", folder, runs)
    return Made(load_session([str(folder)]), sources, folder, runs)


def run(
    model: Path,
    folder: Path,
    runs: Sequence[Sequence[Any]],
    method: str = "forward",
    engine: str = "torch",
) -> None:
    """Run a program on our runtime and write what it logged."""
    program = Runtime.get().load_program(str(model), enable_etdump=True, debug_buffer_size=1)
    loaded = program.load_method(method, engine=engine)
    for given in runs:
        loaded.execute(list(given))
    program.write_etdump_result_to_file(str(folder / "run.etdp"), str(folder / "run.debug"))


@contextmanager
def _sources() -> Iterator[list[Any]]:
    """Keep the nodes that instructions are emitted for."""
    kept: list[Any] = []
    whole = emission._Emission.run

    def spy(self: Any) -> None:
        whole(self)
        kept.extend(self.sources)

    emission._Emission.run = spy
    try:
        yield kept
    finally:
        emission._Emission.run = whole
