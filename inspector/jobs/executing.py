"""Requests to run, verify or bundle programs, as frozen data for the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from inspector.files.run_report import REPORT as REPORT
from inspector.recipes.data_source import GENERATED as MADE_INPUTS

OUTPUTS, TRACE = "outputs.pt", "run.etdp"
VALUES, BUFFER = "values.etdp", "values.debug"  # of the run that logs values
RUN_BUFFER = "run.debug"  # as folders written by older versions have it
TRACES = (TRACE, RUN_BUFFER, VALUES, BUFFER)
INPUTS = "inputs.pt"
DEBUG_LEVELS = ("none", "outputs", "intermediate")
PRINTED = ("off", "summary", "all")
STOPPABLE = ("run", "warm up", "measure")  # stages of a run that may end with partial results
ENGINES = ("auto", "native", "torch")
PROCESSOR, WALL = "processor time of one thread", "wall clock"
RTOL, ATOL = 1e-5, 1e-8  # the defaults of torch.allclose


def trace_files(folder: str | Path, report: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths of the traces and the debug buffer that a run has written.

    Args:
        folder: of the run
        report: content of its ``run.json``
    """
    written = {one["path"] for one in report["files"]}
    return tuple(str(Path(folder) / name) for name in TRACES if name in written)


@dataclass(frozen=True, slots=True)
class RunJob:
    """A request to run a method: the first inference, a warm-up, then passes apart from each other.

    Runs with a trace (``TRACE``) and without alternate; one more run logs values, if requested,
    into a trace of its own (``VALUES`` and ``BUFFER``), whose times are not used.

    Attributes:
        program: a ``.pte`` or ``.bpte``
        method: empty for ``forward``, or for the only one
        inputs: random, ones, zeros, or a file of tensors
        case: index of the bundled case whose inputs are used instead; or None
        bundle: bundled program with the case; empty for the program itself
        seed: of random inputs
        runs: measured with and without a trace; None until the mean is known well
        warmup: runs before them; None until their times are alike
        debug_level: which values are recorded: none, outputs or intermediate
        only: regular expression of the operators whose values are recorded, empty for all
        only_module: regular expression of the modules whose values are recorded, empty for all
        only_handles: debug handles whose values are recorded, empty for all
        timed: whether to measure; without, only the run that logs values is made
        traced: whether to record
        record: an ETRecord of the program, may be empty
        data_files: ``.ptd`` files
        libraries: files that register operators with torch, which the program calls
        threads: of torch, 0 for its default; the times of one are the steadiest
        sweep_threads: measure 1, 2, 4, … threads side by side first, and run with the best number
        engine: for delegates whose backend has several engines
        backend_options: of backends, each ``NAME:OPTION=VALUE``
        toolchain: of the runtime, empty for ours; ``executorch`` for that of an interpreter
        python: the interpreter with it, empty for the current one
        print_output: how much of the outputs the report shows: off, summary (the first and last
            ten elements) or all
        device: name of the device it runs on, empty for this machine
        tidy: whether what was pushed to the device is removed afterwards
        sequence: data source whose items are the inputs of one call each, in one pass that keeps
            the state; empty for the same inputs each run
    """

    program: str
    method: str = ""
    inputs: str = MADE_INPUTS[0]
    case: int | None = None
    bundle: str = ""
    seed: int = 0
    runs: int | None = None
    warmup: int | None = None
    debug_level: str = DEBUG_LEVELS[0]
    only: str = ""
    only_module: str = ""
    only_handles: tuple[int, ...] = ()
    timed: bool = True
    traced: bool = True
    record: str = ""
    data_files: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    threads: int = 1
    sweep_threads: bool = False
    engine: str = ENGINES[0]
    backend_options: tuple[str, ...] = ()
    toolchain: str = ""
    python: str = ""
    print_output: str = PRINTED[0]
    device: str = ""
    tidy: bool = False
    sequence: str = ""

    @property
    def logs_values(self) -> bool:
        """Return whether one run logs values; ``INPUTS`` is written too, to compare them later."""
        return self.traced and self.debug_level != DEBUG_LEVELS[0]

    @property
    def records_times(self) -> bool:
        """Return whether there is a trace of timed runs."""
        return self.traced and self.timed


@dataclass(frozen=True, slots=True)
class MeasureJob:
    """A request to measure programs side by side, in blocks of runs.

    In a block each program is loaded again, warmed up and run several times, one after the other;
    every other block has the reverse order. One thread is timed by CPU time, several by the wall
    clock.

    Attributes:
        programs: to run, with inputs and options; their runs, warm-up and
            recording are ignored, and 0 threads mean 1, whose times vary least
        blocks: number of blocks
        seconds: duration per program and block, within the limits of runs
        least_runs: of a program in a block
        most_runs: likewise
        first_block: to resume at, for each program; empty for the beginning
        clock: ``WALL`` for the wall clock also with one thread; empty otherwise
    """

    programs: tuple[RunJob, ...]
    blocks: int = 16
    seconds: float = 0.1
    least_runs: int = 5
    most_runs: int = 200
    first_block: tuple[int, ...] = ()
    clock: str = ""


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """A request to run all cases of a bundled program and compare the outputs.

    Attributes:
        program: a ``.bpte``
        method: only this; empty for all
        rtol: relative tolerance
        atol: absolute tolerance
        record: an ETRecord of the program, may be empty
        data_files: ``.ptd`` files
        libraries: files that register operators with torch, which the program calls
        threads: of torch, 0 for its default
        engine: for delegates whose backend has several engines
        backend_options: of backends, each ``NAME:OPTION=VALUE``
    """

    program: str
    method: str = ""
    rtol: float = RTOL
    atol: float = ATOL
    record: str = ""
    data_files: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    threads: int = 0
    engine: str = ENGINES[0]
    backend_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BundleJob:
    """A request to create a bundled program.

    Attributes:
        source: a ``.pte`` or ``.bpte``, ``file.py:function`` or a ``.pt2`` file; a
            source is compiled for portable kernels
        module: ``file.py:function`` or a ``.pt2`` file that computes expected outputs; may be
            empty. By default a source that is not a program
        method: of the cases, empty for ``forward`` or the only one
        inputs: of each case: random, ones, zeros, or a file of tensors, which may contain a list of
            cases; empty for the example inputs of the module
        expected: files of tensors, one for each of the inputs; empty runs the
            module
        libraries: files that register operators with torch
    """

    source: str
    module: str = ""
    method: str = ""
    inputs: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepJob:
    """A request to run one delegate call node by node.

    Attributes:
        program: a ``.pte`` or ``.bpte``
        method: empty for ``forward``, or for the only one
        call: index of the delegate call in the run, from 0
        stop: node before which recording of values stops; or None
        values: ids of recorded values; empty for all
        replacements: id of a value and its replacement once computed: ``zeros``, ``ones``,
            a scalar, or a file of one tensor
        inputs: random, ones, zeros, or a file of tensors
        case: index of the bundled case whose inputs are used instead; or None
        seed: of random inputs
        record: an ETRecord of the program, may be empty
        save: whether the values are written to a file
        data_files: ``.ptd`` files
        libraries: files that register operators with torch, which the program calls
        threads: of torch, 0 for its default
        engine: for delegates whose backend has several engines
        backend_options: of backends, each ``NAME:OPTION=VALUE``
    """

    program: str
    method: str = ""
    call: int = 0
    stop: int | None = None
    values: tuple[int, ...] = ()
    replacements: tuple[tuple[int, str], ...] = ()
    inputs: str = MADE_INPUTS[0]
    case: int | None = None
    seed: int = 0
    record: str = ""
    save: bool = False
    data_files: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    threads: int = 0
    engine: str = ENGINES[0]
    backend_options: tuple[str, ...] = ()


ExecutingJob: TypeAlias = RunJob | VerifyJob | BundleJob | MeasureJob | StepJob
