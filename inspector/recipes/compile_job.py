"""Compile requests, as frozen data that is sent to the worker as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from inspector.recipes.emission import config_of, file_of, in_file
from inspector.recipes.options import (
    EDGE,
    MEMORY,
    OUTPUT,
    PARTITION,
    PRECISION,
    QUANTIZE,
    RULES,
    SOURCE,
    TOOLCHAIN,
    FieldNames,
    option,
)
from inspector.recipes.source import Source, SourceKind
from schema.backends import DEFAULT
from schema.recipe.passes import recipe_passes

PROGRAM, RECORD, REPORT = "model.pte", "model.etrecord", "compile.json"
BUILT_IN, EXECUTORCH = "built-in", "executorch"
TOOLCHAINS = (BUILT_IN, EXECUTORCH)
GRANULARITIES = ("maximal", "module", "operator")
QUANTIZING_MODES = ("static", "dynamic", "weight-only")
NOT_QUANTIZED = "none"  # of a mode: only what is named is quantized
# weights of layers, by torchao: bits, and scales by group of inputs
_GROUPS = (32, 64, 128, 256)
WEIGHT_KINDS = ("8da4w", "8da8w", "4w", "int8")
WEIGHT_WORDS = tuple(
    word for kind in WEIGHT_KINDS for word in (kind, *(f"{kind}:group={size}" for size in _GROUPS))
)
EMBEDDING_WORDS = tuple(
    word for bits in (8, 4, 2) for word in (f"{bits}", *(f"{bits}:group={g}" for g in _GROUPS))
)
OVERRIDES = (*QUANTIZING_MODES, NOT_QUANTIZED, *WEIGHT_WORDS)
MODULE_WORDS = (*OVERRIDES, *EMBEDDING_WORDS)  # of what is in a module
PRECISIONS = ("float16", "bfloat16", "float32", "float64")


def _listed(  # noqa: PLR0913 - of a field
    group: str,
    names: FieldNames,
    help: str,
    flag: str,
    *,
    metavar: str = "NAME",
    label: str = "",
    empty: str = "",
) -> Any:  # noqa: ANN401
    """Return a field of names, none of them by default."""
    return option(
        (), help, flag=flag, metavar=metavar, label=label, empty=empty, group=group, names=names
    )


def _rule(names: FieldNames, help: str, flag: str) -> Any:  # noqa: ANN401
    return _listed(RULES, names, help, flag)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for all partitioners; empty rules allow everything."""

    deny_ops: tuple[str, ...] = _rule(
        FieldNames.OPERATOR,
        "no partitioner may take this operator, edge or ATen, nor operators that decompose into it;"
        " a pattern such as 'aten.conv*' is possible",
        "deny-op",
    )
    allow_ops: tuple[str, ...] = _rule(
        FieldNames.OPERATOR,
        "partitioners may take only this operator; patterns likewise",
        "allow-op",
    )
    deny_nodes: tuple[str, ...] = _rule(
        FieldNames.NODE,
        "no partitioner may take this node of the edge graph or of the exported one; patterns"
        " likewise",
        "deny-node",
    )
    allow_nodes: tuple[str, ...] = _rule(
        FieldNames.NODE, "partitioners may take only this node; patterns likewise", "allow-node"
    )
    deny_modules: tuple[str, ...] = _rule(
        FieldNames.MODULE,
        "no partitioner may take a node in this module, by path or class; patterns likewise",
        "deny-module",
    )
    allow_modules: tuple[str, ...] = _rule(
        FieldNames.MODULE,
        "partitioners may take only nodes in this module; patterns likewise",
        "allow-module",
    )
    deny_dtypes: tuple[str, ...] = _rule(
        FieldNames.DTYPE,
        "no partitioner may take a node that reads or writes a tensor of this dtype, as float16",
        "deny-dtype",
    )
    min_nodes: int = option(
        1,
        "smallest number of nodes in a partition; smaller ones are not delegated; auto: as many as"
        " cost what a delegate call does on the calibrated target (etscope roofline"
        " --calibrate-calls), auto:TARGET for another of them",
        flag="min-nodes",
        metavar="N|auto",
        group=PARTITION,
        automatic=True,
    )
    min_work: int | None = option(
        None,
        "FLOPs from which a partition may be smaller than --min-nodes",
        flag="min-work",
        metavar="N",
        group=PARTITION,
        empty="none",
    )
    max_partitions: int | None = option(
        None,
        "largest number of partitions of a method; any number by default",
        flag="max-partitions",
        metavar="N",
        group=PARTITION,
        empty="any",
    )
    granularity: str = option(
        GRANULARITIES[0],
        "how large partitions are",
        flag="granularity",
        choices=tuple((name, name) for name in GRANULARITIES),
        group=PARTITION,
    )
    force_nodes: tuple[str, ...] = _rule(
        FieldNames.NODE,
        "take this node regardless of other rules, if the partitioner supports it;"
        " NODE=PARTITIONER restricts it to one",
        "force-node",
    )
    cut_before: tuple[str, ...] = _rule(
        FieldNames.NODE, "separate this node from the nodes it reads", "cut-before"
    )
    cut_after: tuple[str, ...] = _rule(
        FieldNames.NODE, "separate this node from the nodes that read it", "cut-after"
    )
    alone_nodes: tuple[str, ...] = _rule(
        FieldNames.NODE, "put this node into a separate partition", "alone-node"
    )
    alone_ops: tuple[str, ...] = _rule(
        FieldNames.OPERATOR, "put each node of this operator into a separate partition", "alone-op"
    )
    deny_rules: tuple[str, ...] = _rule(
        FieldNames.RULE, "disable a rule of the partitioners, by its name in verdicts", "deny-rule"
    )


def _mode_of(names: FieldNames, help: str, flag: str) -> Any:  # noqa: ANN401
    """Return a field of words ``NAME=MODE``, none of them by default."""
    return option(
        (),
        help,
        flag=flag,
        label=f"quantize {names.value}s",
        pair="MODE",
        group=QUANTIZE,
        names=names,
        values=MODULE_WORDS if names is FieldNames.MODULE else OVERRIDES,
    )


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a program is quantized before lowering; empty does not quantize."""

    mode: str = option(
        "",
        f"quantize for {DEFAULT.name} before lowering; none: only what other options name; needs"
        " torchao",
        flag="quantize",
        choices=(
            ("", "no"),
            *((name, name) for name in QUANTIZING_MODES),
            (NOT_QUANTIZED, "none: only what is named"),
            *((name, f"{name}: weights") for name in WEIGHT_WORDS),
        ),
        label="quantize",
        group=QUANTIZE,
        more="VENDOR[:MODE]",
    )
    calibration: str = option(
        "",
        "inputs to calibrate with: a list, saved by torch.save, of the arguments of each call, a"
        " folder of tensors, or FILE.py:NAME, an iterable of inputs whose code is run; the example"
        " inputs by default",
        flag="calibration",
        metavar="DATA",
        empty="the example inputs",
        group=QUANTIZE,
        names=FieldNames.DATA,
    )
    per_tensor: bool = option(
        False,
        "weights have one scale, not one for each channel",
        flag="per-tensor",
        group=QUANTIZE,
    )
    modules: tuple[str, ...] = _mode_of(
        FieldNames.MODULE,
        "another mode, or none, for the nodes in a module, as blocks.0=none",
        "quantize-module",
    )
    operators: tuple[str, ...] = _mode_of(
        FieldNames.OPERATOR,
        "another mode, or none, for an operator, as aten.linear=dynamic",
        "quantize-op",
    )
    nodes: tuple[str, ...] = _mode_of(
        FieldNames.NODE,
        "another mode, or none, for a node of the exported program, as linear_1=none",
        "quantize-node",
    )
    quantizer: str = option(
        "",
        "a PT2E quantizer, its class, or a function that returns one, or that of a vendor as"
        " VENDOR[:MODE], instead of a mode",
        flag="quantizer",
        metavar="FILE.PY:NAME",
        empty="none: quantized by the mode",
        group=QUANTIZE,
        names=FieldNames.QUANTIZER,
    )

    embedding: str = option(
        "",
        "bits of the tables of embeddings; without --quantize nothing else is quantized",
        flag="quantize-embedding",
        choices=(("", "no"), *((name, name) for name in EMBEDDING_WORDS)),
        label="embeddings",
        group=QUANTIZE,
    )

    @property
    def requested(self) -> bool:
        """Return whether the program is to be quantized."""
        return bool(self.mode or self.quantizer or self.embedding)

    @property
    def by_weights(self) -> bool:
        """Return whether weights of layers are quantized, without observing a call."""
        weights = self.mode in WEIGHT_WORDS or bool(self.embedding)
        ends = tuple(f"={word}" for word in (*WEIGHT_WORDS, *EMBEDDING_WORDS))
        return weights or any(text.endswith(ends) for text in self.modules)


_TYPES = ", ".join(PRECISIONS)


def _type_of(names: FieldNames, help: str, flag: str) -> Any:  # noqa: ANN401
    """Return a field of words ``NAME=TYPE``, none of them by default."""
    return option(
        (),
        f"{help} in {_TYPES}",
        flag=flag,
        label=f"precision of {names.value}s",
        pair="TYPE",
        group=PRECISION,
        names=names,
        values=PRECISIONS,
    )


@dataclass(frozen=True, slots=True)
class Precision:
    """Parts to compute in another floating-point type; empty changes nothing.

    Overrides of a node precede those of its module, and these those of its operator.
    """

    modules: tuple[str, ...] = _type_of(
        FieldNames.MODULE, "compute the nodes in this module, by path or class,", "precision-module"
    )
    operators: tuple[str, ...] = _type_of(
        FieldNames.OPERATOR, "compute the nodes of this operator", "precision-op"
    )
    nodes: tuple[str, ...] = _type_of(
        FieldNames.NODE,
        "compute this node, of the edge graph or of the exported one,",
        "precision-node",
    )


@dataclass(frozen=True, slots=True)
class CompileJob:
    """One compile; its parts have fields too."""

    source: Source
    python: str = option(
        "",
        "interpreter that runs the function and exports; the current one by default",
        flag="python",
        metavar="PATH",
        label="interpreter",
        empty="the one ETScope runs in",
        group=TOOLCHAIN,
        names=FieldNames.INTERPRETER,
    )
    backend_python: str = option(
        "",
        "interpreter whose packages partition and preprocess, for partitioners that are not"
        " ETScope's own: a path, the name of an environment of `etscope backends list`, or auto;"
        " default: an environment for what the current interpreter lacks",
        flag="backend-python",
        metavar="PATH|NAME|auto",
        label="interpreter of backends",
        empty="the one ETScope runs in, or an environment that has the packages",
        group=TOOLCHAIN,
        names=FieldNames.INTERPRETER,
    )
    methods: tuple[str, ...] = _listed(
        SOURCE, FieldNames.METHOD, "only this method; all by default", "method", empty="all"
    )
    partitioners: tuple[str, ...] = _listed(
        PARTITION,
        FieldNames.PARTITIONER,
        "alias, class name or file.py:Class, in order of priority; default: no delegation",
        "partitioner",
        metavar="NAME[:OPTION=VALUE…]",
        empty="none: portable kernels only",
    )
    rules: Rules = field(default_factory=Rules)
    memory_planner: str = option(
        "",
        "a name, or an algorithm or pass as file.py:NAME; the smallest of all plans by default",
        flag="memory-planner",
        empty="the smallest of all plans",
        group=MEMORY,
        names=FieldNames.PLANNER,
    )
    external_constants: bool = option(
        False,
        "store constants in a .ptd next to the .pte",
        flag="external-constants",
        group=OUTPUT,
    )
    quantising: Quantization = field(default_factory=Quantization)
    precision: Precision = field(default_factory=Precision)
    toolchain: str = option(
        "",
        "which toolchain compiles; the interpreter has the other one",
        choices=(("", BUILT_IN), *((name, name) for name in TOOLCHAINS)),
        group=TOOLCHAIN,
    )
    passes: tuple[str, ...] = _listed(
        EDGE,
        FieldNames.PASS,
        f"run before partitioning: {', '.join(recipe_passes())}, or file.py:NAME",
        "pass",
    )
    backend_config: tuple[str, ...] = option(
        (),
        "how the program is planned and written, as segment_alignment=64",
        flag="backend-config",
        pair="VALUE",
        group=OUTPUT,
        names=FieldNames.SETTING,
    )
    libraries: tuple[str, ...] = option(
        (),
        "a .py file or a shared library that registers operators with torch; its code is run before"
        " the source",
        metavar="FILE",
        label="operator libraries",
        empty="none: the operators of torch",
        group=SOURCE,
        names=FieldNames.FILE,
    )
    edge_config: tuple[str, ...] = option(
        (),
        "how the edge program is built, as preserve_ops=aten.linear.default",
        flag="edge-config",
        pair="VALUE",
        group=EDGE,
        names=FieldNames.EDGE_SETTING,
    )


def settings_of(job: CompileJob) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return fields of the backend config, and options of memory planning.

    Quantized weights are read as they are stored, unless a setting switches it off: without it a
    program would compute whole tables of floats in each call.

    Raises: WordError
    """
    config, planning = config_of(job.backend_config)
    fused = {"do_quant_fusion_and_const_prop": True} if job.quantising.by_weights else {}
    return {**fused, **config}, planning


def registering_code(job: CompileJob) -> tuple[str, ...]:
    """Return the files a compile loads before it resolves operators, in order.

    A Python source registers custom operators, or imports code that does.
    """
    own = (job.source.path,) if job.source.kind is SourceKind.PYTHON else ()
    return tuple(dict.fromkeys((*job.libraries, *own)))


def reported_options(job: CompileJob) -> dict[str, Any]:
    """Return the options of a job as ``compile.json`` has them."""
    return {
        "partitioners": list(job.partitioners),
        **asdict(job.rules),
        "memory_planner": job.memory_planner,
        "external_constants": job.external_constants,
        "quantising": asdict(job.quantising),
        "precision": asdict(job.precision),
        "passes": list(job.passes),
        "backend_config": list(job.backend_config),
        "libraries": list(job.libraries),
        "edge_config": list(job.edge_config),
    }


def code_files(job: CompileJob) -> tuple[str, ...]:
    """Return the files whose code a compile runs."""
    how = job.quantising
    words = (*job.partitioners, *job.passes, job.memory_planner, how.quantizer, how.calibration)
    return tuple(dict.fromkeys((*registering_code(job), *map(file_of, filter(in_file, words)))))
