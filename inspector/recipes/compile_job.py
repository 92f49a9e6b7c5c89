"""What a compile is asked to do, as frozen data that travels to the worker as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, cast

from inspector.recipes.emission import file_of, in_file

PROGRAM, RECORD, REPORT = "model.pte", "model.etrecord", "compile.json"
BUILT_IN, EXECUTORCH = "built-in", "executorch"
TOOLCHAINS = (BUILT_IN, EXECUTORCH)
GRANULARITIES = ("maximal", "module", "operator")
QUANTISING_MODES = ("static", "dynamic", "weight-only")
PRECISIONS = ("float16", "bfloat16", "float32", "float64")


class SourceKind(str, Enum):
    """Where a program comes from."""

    PYTHON = "python"  # a function in a file, which runs the user's code
    EXPORTED = "exported"  # a .pt2 file
    RECORD = "record"  # an ETRecord


class SourceError(ValueError):
    """A source that names nothing to compile; says what was expected."""


@dataclass(frozen=True, slots=True)
class Source:
    """A program to compile.

    Attributes:
        path: the file
        function: name in a Python file, empty for the other kinds
    """

    path: str
    function: str = ""

    @property
    def kind(self) -> SourceKind:
        """Return where the program comes from, by the name of the file."""
        suffix = Path(self.path).suffix
        if suffix == ".py":
            return SourceKind.PYTHON
        return SourceKind.EXPORTED if suffix == ".pt2" else SourceKind.RECORD

    def __str__(self) -> str:
        return f"{self.path}:{self.function}" if self.function else self.path


def parse_source(text: str) -> Source:
    """Return the source that a user wrote.

    Args:
        text: ``file.py:function``, a ``.pt2`` file or an ETRecord

    Raises: SourceError if a Python file comes without a function
    """
    path, colon, function = text.rpartition(":")
    if colon and path.endswith(".py"):
        if not function.isidentifier():
            raise SourceError(f"{text} names no function; expected {path}:function")
        return Source(path, function)
    if text.endswith(".py"):
        raise SourceError(f"{text} names no function; expected {text}:function")
    return Source(text)


@dataclass(frozen=True, slots=True)
class Rules:
    """What partitioners may take, whichever they are; the empty rules allow everything.

    Operators, nodes and modules are names or patterns such as ``aten.conv*``.

    Attributes:
        deny_ops: operators, edge or ATen; one that decomposes into such an operator counts
        allow_ops: only these
        deny_nodes: nodes of the edge graph or of the exported one
        allow_nodes: only these
        deny_modules: paths of modules, or names of their classes
        allow_modules: only these
        deny_dtypes: element types of tensors that a node reads or makes, as ``float16``
        min_nodes: fewest nodes of a partition
        max_partitions: most partitions; None for any number
        granularity: ``maximal``, ``module`` or ``operator``: how large partitions are
        force_nodes: nodes that are taken whatever other rules say, if the partitioner has a rule
            for them; as ``NODE=PARTITIONER`` where not any of them may
        cut_before: nodes that are not in one partition with what they read
        cut_after: nodes that are not in one partition with what reads them
        alone_nodes: nodes that get a partition of their own
        alone_ops: operators each node of which gets a partition of its own
        deny_rules: rules of partitioners that are turned off, by the name verdicts have for them
    """

    deny_ops: tuple[str, ...] = ()
    allow_ops: tuple[str, ...] = ()
    deny_nodes: tuple[str, ...] = ()
    allow_nodes: tuple[str, ...] = ()
    deny_modules: tuple[str, ...] = ()
    allow_modules: tuple[str, ...] = ()
    deny_dtypes: tuple[str, ...] = ()
    min_nodes: int = 1
    max_partitions: int | None = None
    granularity: str = GRANULARITIES[0]
    force_nodes: tuple[str, ...] = ()
    cut_before: tuple[str, ...] = ()
    cut_after: tuple[str, ...] = ()
    alone_nodes: tuple[str, ...] = ()
    alone_ops: tuple[str, ...] = ()
    deny_rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a program is quantised before it is lowered; the empty one leaves it as it is.

    Attributes:
        mode: one of ``QUANTISING_MODES``, empty to leave the program as it is, or ``none`` where
            only what the members below name is quantised
        calibration: file of inputs to calibrate with; empty for the example inputs
        per_tensor: weights have one scale instead of one for each channel
        modules: another mode, or ``none``, for what is in a module, as ``blocks.0=none``
        operators: likewise for operators, as ``aten.linear=dynamic``
        nodes: likewise for nodes of the exported program, as ``linear_1=none``
        quantizer: a PT2E quantizer as ``file.py:NAME``, instead of the mode
    """

    mode: str = ""
    calibration: str = ""
    per_tensor: bool = False
    modules: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    quantizer: str = ""

    @property
    def wanted(self) -> bool:
        """Return whether the program is to be quantized."""
        return bool(self.mode or self.quantizer)


@dataclass(frozen=True, slots=True)
class Precision:
    """What is computed in another floating-point type; the empty one leaves all as it is.

    What is said of a node counts before what is said of its module, and that before its operator.

    Attributes:
        modules: a type by path or class of a module, as ``head=float16``
        operators: likewise by operator, as ``aten.mm=float64``
        nodes: likewise by node of the edge graph or of the exported one
    """

    modules: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompileJob:
    """One compile.

    Attributes:
        source: file, with a function for Python
        python: interpreter that runs the function and exports; empty for our own
        methods: only these; empty for all
        partitioners: names with options, first choice first; none for portable kernels only
        rules: what all of them may take
        memory_planner: name of a planner, or ``file.py:NAME``; empty for the smallest of all plans
        external_constants: write the constants into a file of their own
        quantising: what is done to the program before
        precision: what is computed in another type
        toolchain: one of ``TOOLCHAINS``, empty for the built-in one; ``python`` is then the
            interpreter that has the other
        passes: run over the program before partitioners look at it, by name or as
            ``file.py:NAME``, in their order
        backend_config: how the program is planned and written, as ``segment_alignment=64``
        libraries: Python files and shared libraries that register operators with torch; loaded
            before the source
        edge_config: how the program becomes an edge program, as
            ``preserve_ops=aten.linear.default``
    """

    source: Source
    python: str = ""
    methods: tuple[str, ...] = ()
    partitioners: tuple[str, ...] = ()
    rules: Rules = field(default_factory=Rules)
    memory_planner: str = ""
    external_constants: bool = False
    quantising: Quantization = field(default_factory=Quantization)
    precision: Precision = field(default_factory=Precision)
    toolchain: str = ""
    passes: tuple[str, ...] = ()
    backend_config: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    edge_config: tuple[str, ...] = ()


def registering_code(job: CompileJob) -> tuple[str, ...]:
    """Return the files a compile has loaded before it knew its operators, in that order.

    A Python source registers operators of its own, or imports what does.
    """
    own = (job.source.path,) if job.source.kind is SourceKind.PYTHON else ()
    return tuple(dict.fromkeys((*job.libraries, *own)))


def code_files(job: CompileJob) -> tuple[str, ...]:
    """Return the files whose code a compile runs."""
    words = (*job.partitioners, *job.passes, job.memory_planner, job.quantising.quantizer)
    return tuple(dict.fromkeys((*registering_code(job), *map(file_of, filter(in_file, words)))))


def job_content(job: CompileJob) -> dict[str, Any]:
    """Return a job as a JSON object."""
    return asdict(job)


def job_from(content: Mapping[str, Any]) -> CompileJob:
    """Return the job in a JSON object that ``job_content`` made."""
    found = _with_tuples(content)
    found["source"] = Source(**content["source"])
    found["rules"] = Rules(**_with_tuples(content.get("rules", {})))
    found["quantising"] = Quantization(**_with_tuples(content.get("quantising", {})))
    found["precision"] = Precision(**_with_tuples(content.get("precision", {})))
    return CompileJob(**found)


def _with_tuples(content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(cast("list[str]", value)) if isinstance(value, list) else value
        for key, value in content.items()
    }
