"""What a run, a verification or a bundling is asked to do, as frozen data for the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias, cast

OUTPUTS, TRACE, BUFFER, REPORT = "outputs.pt", "run.etdp", "run.debug", "run.json"
MADE_INPUTS = ("random", "ones", "zeros")
DEBUG_LEVELS = ("none", "outputs", "intermediate")
ENGINES = ("auto", "native", "torch")
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
        traced: whether anything is recorded; without, nothing slows the runs down
        record: an ETRecord of the program, empty for none
        data_files: ``.ptd`` files
        threads: of torch, 0 for as many as it takes by itself
        engine: what runs delegates whose backend has several engines
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
    traced: bool = True
    record: str = ""
    data_files: tuple[str, ...] = ()
    threads: int = 0
    engine: str = ENGINES[0]


@dataclass(frozen=True, slots=True)
class VerifyJob:
    """All cases of a bundled program, run and compared with what they should give.

    Attributes:
        program: a ``.bpte``
        method: only this; empty for all
        rtol: relative tolerance
        atol: absolute tolerance
        data_files: ``.ptd`` files
        threads: of torch, 0 for as many as it takes by itself
        engine: what runs delegates whose backend has several engines
    """

    program: str
    method: str = ""
    rtol: float = RTOL
    atol: float = ATOL
    data_files: tuple[str, ...] = ()
    threads: int = 0
    engine: str = ENGINES[0]


@dataclass(frozen=True, slots=True)
class BundleJob:
    """A bundled program to be made.

    Attributes:
        source: a ``.pte`` or ``.bpte``, ``file.py:function`` or a ``.pt2`` file; what is no program
            yet is compiled for portable kernels
        module: ``file.py:function`` or a ``.pt2`` file that says what outputs are right; empty for
            none. A source that is no program is its own
        method: the method the cases are for, empty for ``forward`` or the only one
        inputs: of each case: random, ones, zeros, or a file of tensors; none for the example
            inputs of the module
        expected: files of tensors, one for each case; none to ask the module
    """

    source: str
    module: str = ""
    method: str = ""
    inputs: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()


ExecutingJob: TypeAlias = RunJob | VerifyJob | BundleJob
_KINDS: dict[str, type[RunJob] | type[VerifyJob] | type[BundleJob]] = {
    "run": RunJob,
    "verify": VerifyJob,
    "bundle": BundleJob,
}


def executing_content(job: ExecutingJob) -> dict[str, Any]:
    """Return a job as a JSON object."""
    kind = next(name for name, kind in _KINDS.items() if isinstance(job, kind))
    return {"kind": kind, **asdict(job)}


def executing_from(content: Mapping[str, Any]) -> ExecutingJob:
    """Return the job in a JSON object that ``executing_content`` made."""
    given: dict[str, Any] = {
        key: tuple(cast("list[str]", value)) if isinstance(value, list) else value
        for key, value in content.items()
        if key != "kind"
    }
    return _KINDS[content["kind"]](**given)
