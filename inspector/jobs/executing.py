"""What a run, a verification or a bundling has to do, as frozen data for the worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

OUTPUTS, TRACE, BUFFER, REPORT = "outputs.pt", "run.etdp", "run.debug", "run.json"
INPUTS = "inputs.pt"
MADE_INPUTS = ("random", "ones", "zeros")
DEBUG_LEVELS = ("none", "outputs", "intermediate")
PRINTED = ("off", "summary", "all")
ENGINES = ("auto", "native", "torch")
PROCESSOR, WALL = "processor time of one thread", "wall clock"
RTOL, ATOL = 1e-5, 1e-8


@dataclass(frozen=True, slots=True)
class RunJob:
    """One run of a method, or several one after the other.

    Attributes:
        program: a ``.pte`` or ``.bpte``
        method: empty for ``forward``, or for the only one there is
        inputs: random, ones, zeros, or a file of tensors
        case: number of the bundled case whose inputs are taken instead; None for none
        bundle: bundled program the case is in; empty for the program itself
        seed: of random inputs
        runs: how many are measured and recorded
        warmup: how many come before them
        debug_level: whose values are recorded: none, outputs or intermediate
        only: regular expression of the operators whose values are recorded, empty for all
        only_module: regular expression of the modules whose values are recorded, empty for all
        only_handles: debug handles whose values are recorded, none for all
        traced: whether anything is recorded; without, nothing slows the runs down
        record: an ETRecord of the program, empty for none
        data_files: ``.ptd`` files
        libraries: files that register operators with torch, which the program calls
        threads: of torch, 0 for as many as it takes by itself
        engine: what runs delegates whose backend has several engines
        toolchain: whose runtime, empty for our own; ``executorch`` for that of an interpreter
        python: the interpreter that has it, empty for the one we run in
        print_output: how much of the outputs the report shows: off, summary (the first and last
            ten elements) or all
    """

    program: str
    method: str = ""
    inputs: str = MADE_INPUTS[0]
    case: int | None = None
    bundle: str = ""
    seed: int = 0
    runs: int = 1
    warmup: int = 0
    debug_level: str = DEBUG_LEVELS[0]
    only: str = ""
    only_module: str = ""
    only_handles: tuple[int, ...] = ()
    traced: bool = True
    record: str = ""
    data_files: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    threads: int = 0
    engine: str = ENGINES[0]
    toolchain: str = ""
    python: str = ""
    print_output: str = PRINTED[0]

    @property
    def keeps_inputs(self) -> bool:
        """Return whether ``INPUTS`` is written: wherever values are, to compare them later."""
        return self.traced and self.debug_level != DEBUG_LEVELS[0]


@dataclass(frozen=True, slots=True)
class MeasureJob:
    """Programs that are measured side by side, in blocks of runs.

    In a block each program is loaded again, warmed up and run several times, one after the other;
    every other block goes through them backwards. One thread is timed by the time it has the
    processor, several by the wall clock.

    Attributes:
        programs: what is run, on which inputs and how; their runs, warm-up and
            recording do not apply here, and 0 threads are one, whose times are the steadiest
        blocks: how many
        seconds: how long a program is measured in a block, as far as the number of runs allows
        least_runs: of a program in a block
        most_runs: likewise
        first_block: where to go on, for each program; empty for the beginning
    """

    programs: tuple[RunJob, ...]
    blocks: int = 16
    seconds: float = 0.1
    least_runs: int = 5
    most_runs: int = 200
    first_block: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """All cases of a bundled program, run and compared with what they should give.

    Attributes:
        program: a ``.bpte``
        method: only this; empty for all
        rtol: relative tolerance
        atol: absolute tolerance
        record: an ETRecord of the program, empty for none
        data_files: ``.ptd`` files
        libraries: files that register operators with torch, which the program calls
        threads: of torch, 0 for as many as it takes by itself
        engine: what runs delegates whose backend has several engines
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


@dataclass(frozen=True, slots=True)
class BundleJob:
    """A bundled program to be made.

    Attributes:
        source: a ``.pte`` or ``.bpte``, ``file.py:function`` or a ``.pt2`` file; what is not yet a
            program is compiled for portable kernels
        module: ``file.py:function`` or a ``.pt2`` file with the expected outputs; empty for
            none. A source that is not a program is its own
        method: the method the cases are for, empty for ``forward`` or the only one
        inputs: of each case: random, ones, zeros, or a file of tensors, which may hold a list of
            cases; none for the example inputs of the module
        expected: files of tensors, one for each of the inputs; none, or an empty one, to ask the
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
    """One delegate call, run node by node.

    Attributes:
        program: a ``.pte`` or ``.bpte``
        method: empty for ``forward``, or for the only one there is
        call: which delegate call of the run, from 0
        stop: node before which values are no longer looked at; None for none
        values: ids of those that are wanted; none for all
        replacements: id of a value and what it holds as soon as it is there: ``zeros``, ``ones``,
            a number, or a file of one tensor
        inputs: random, ones, zeros, or a file of tensors
        case: number of the bundled case whose inputs are taken instead; None for none
        seed: of random inputs
        record: an ETRecord of the program, empty for none
        save: whether the values are written to a file
        data_files: ``.ptd`` files
        libraries: files that register operators with torch, which the program calls
        threads: of torch, 0 for as many as it takes by itself
        engine: what runs delegates whose backend has several engines
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


ExecutingJob: TypeAlias = RunJob | VerifyJob | BundleJob | MeasureJob | StepJob
