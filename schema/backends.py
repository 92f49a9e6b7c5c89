"""The backends that ETScope knows: one table with the traits of each.

Everything in an entry is data or a dotted name, ``module:attribute``, resolved by the package that
uses it; reading the table imports nothing. No other file names a backend.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionerTraits:
    """A partitioner that users name.

    Attributes:
        alias: short name
        place: dotted name of the class; the class name is accepted as well
        summary: description for lists of partitioners
    """

    alias: str
    place: str
    summary: str

    @property
    def class_name(self) -> str:
        """Return the name of the class."""
        return self.place.partition(":")[2]


@dataclass(frozen=True, slots=True)
class PayloadChecks:
    """Facts that prove that a payload matches a trace, or a record.

    Attributes:
        matmul_events: pattern of the events that convolutions and matmuls log, which are never
            merged or dropped; its group ``types`` holds the dtypes
        matmul_nodes: targets of the payload nodes that log exactly one such event
        unchanged_ranks: by target, the ranks of constants whose bytes are those of the program
    """

    matmul_events: str
    matmul_nodes: frozenset[str]
    unchanged_ranks: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Backend:
    """The traits of a backend; an unknown one has the defaults.

    Attributes:
        id: as in program files
        short_name: in labels and tables; empty for the id without ``Backend``
        colour: its index in the backend colours of a palette; None computes one from its id
        decoder: of payloads
        marks: offset and bytes by which payloads are recognised under an unknown id
        model_suffixes: of its own model files, which open as programs
        model_reader: a function from the path of one to the bytes of a program
        spec_readers: a mapping from a compile spec's key to the function that reads its value
        default_spec_reader: for all other keys
        partitioners: of the compiler
        quantizer: a function that returns a PT2E quantizer and its configurations by mode
        stock_quantizer: the class of the ``executorch`` package, below its root
        recipes: class of the provider of export recipes
        rule_meta: key of the rules that the partitioner of the stock package notes at a node
        border_moves: a function from a program to the inputs and results that are transposed
        executor: class of the runtime's backend
        keeper: a function from compile specs and a folder to specs with which the vendor's tools
            leave their files there
        estimates: a function from a payload and the files that the vendor's tools left to what they
            estimate of it
        executed: a function from the files that the vendor's tools left and the compile specs to
            the payload that runs here in place of one that only the hardware runs
        tables: with which the names of its tables of estimates began in former releases
        has_engines: it runs on native kernels or torch's
        steps: it runs node by node
        has_options: a run may set options of it
        probes: values of its layers are of a second import, in which each one is an output
        bytes_read_past_end: bytes that kernels may read past the end of a tensor
        holds_half_bytes_as_floats: it multiplies weights of 4 bits by quantized activations only
        has_program_handles: debug handles inside payloads are those of the edge program
        logs_kernel_layout: tensors logged inside have the layout of the kernels
        start_times_synthesized: it logs durations only, laid one after the other
        logs_cycles: it logs processor cycles
        event_names: a regular expression of the names of its events, whose group ``node`` is the
            node of the program; empty where an event has the name of its node
        value_suffixes: what it may add to the name of a node in that of its value in a payload
        work_rules: a mapping from a kind of payload node to the rule of its FLOPs and bytes
        size_rules: a mapping from a kind of payload node to the rule of the sizes of its results;
            empty where payloads have the upper bounds of dynamic sizes
        clock_ns: step of the clock of its own profiler in nanoseconds, 0 for that of the runtime
        checks: None if nothing inside payloads is comparable
    """

    id: str
    short_name: str = ""
    colour: int | None = None
    decoder: str = ""
    marks: tuple[tuple[int, bytes], ...] = ()
    model_suffixes: tuple[str, ...] = ()
    model_reader: str = ""
    spec_readers: str = ""
    default_spec_reader: str = ""
    partitioners: tuple[PartitionerTraits, ...] = ()
    quantizer: str = ""
    stock_quantizer: str = ""
    recipes: str = ""
    rule_meta: str = ""
    border_moves: str = ""
    executor: str = ""
    keeper: str = ""
    estimates: str = ""
    executed: str = ""
    tables: str = ""
    has_engines: bool = False
    steps: bool = False
    has_options: bool = False
    probes: bool = False
    bytes_read_past_end: int = 0
    holds_half_bytes_as_floats: bool = False
    has_program_handles: bool = False
    logs_kernel_layout: bool = False
    start_times_synthesized: bool = False
    logs_cycles: bool = False
    event_names: str = ""
    value_suffixes: tuple[str, ...] = ()
    work_rules: str = ""
    size_rules: str = ""
    clock_ns: int = 0
    checks: PayloadChecks | None = None

    @property
    def name(self) -> str:
        """Return the short name, as in ``Vulkan``."""
        return self.short_name or self.id.removesuffix("Backend") or self.id


_P = "schema.payloads."
_SPECS = f"{_P}settings.compile_specs:"
_C = "compiler.backends."
_XNNPACK = Backend(
    "XnnpackBackend",
    "XNNPACK",
    colour=0,
    decoder=f"{_P}xnnpack:decode_payload",
    marks=((4, b"XH00"), (4, b"XN01"), (4, b"XN00")),
    spec_readers=f"{_SPECS}XNNPACK",
    partitioners=(
        PartitionerTraits(
            "xnnpack",
            f"{_C}xnnpack:XnnpackPartitioner",
            "XNNPACK, the kernels for processors of the stock runtime",
        ),
    ),
    quantizer=f"{_C}xnnpack.quantizer:quantizer_and_configs",
    stock_quantizer="backends.xnnpack.quantizer.xnnpack_quantizer:XNNPACKQuantizer",
    recipes="compiler.compat.xnnpack.recipes:XNNPACKRecipeProvider",
    rule_meta="xnn_partitioner_config",
    border_moves=f"{_C}xnnpack.placement:border_moves",
    executor="runtime.backends.xnnpack:XnnpackBackend",
    has_engines=True,
    steps=True,
    bytes_read_past_end=64,
    holds_half_bytes_as_floats=True,
    has_program_handles=True,
    logs_kernel_layout=True,
    start_times_synthesized=True,
    work_rules="inspector.roofline.payload_nodes:RULES",
    size_rules="inspector.roofline.payload_sizes:RULES",
    clock_ns=1000,  # xnn_get_runtime_profiling_info counts microseconds
    checks=PayloadChecks(
        r"(?:Convolution|(?:Dynamic )?Fully Connected|Batch Matrix Multiply) \((?P<types>[^)]*)\)",
        frozenset(("Conv2d", "DepthwiseConv2d", "FullyConnected", "BatchMatrixMultiply")),
        {"FullyConnected": (1, 2), "Conv2d": (1,), "DepthwiseConv2d": (1,)},
    ),
)
_ADD_MUL = PartitionerTraits(
    "demo-add-mul",
    f"{_C}demo:AddMulPartitionerDemo",
    "the demonstration backend of the documents: additions and matrix products",
)
_ALL_NODES = PartitionerTraits(
    "demo-all",
    f"{_C}demo:AllNodesPartitionerDemo",
    "demonstration for entire graphs: all nodes, as a program inside the program",
)
_ENTRIES = (  # marks are looked up in this order
    _XNNPACK,
    Backend(
        "VulkanBackend",
        colour=1,
        decoder=f"{_P}vulkan:decode_payload",
        marks=((4, b"VH00"), (4, b"VK00")),
        spec_readers=f"{_SPECS}VULKAN",
        executor="runtime.backends.vulkan:VulkanBackend",
        steps=True,
    ),
    Backend(
        "CoreMLBackend",
        colour=2,
        decoder=f"{_P}coreml:decode_payload",
        marks=((0, b"CMJR"),),
        model_suffixes=(".mlpackage", ".mlmodel"),
        model_reader=f"{_P}coreml.package:program_of",
        spec_readers=f"{_SPECS}COREML",
        executor="runtime.backends.coreml:CoreMLBackend",
        steps=True,
        value_suffixes=("_cast_fp16",),
    ),
    Backend(
        "OpenvinoBackend",
        short_name="OpenVINO",
        colour=5,
        decoder=f"{_P}openvino:decode_payload",
        marks=((0, b"RR_UPCVO"),),
        executor="runtime.backends.openvino:OpenvinoBackend",
        steps=True,
        has_options=True,
        probes=True,
    ),
    Backend(
        "TOSABackend",
        colour=6,
        decoder=f"{_P}tosa:decode_payload",
        marks=((4, b"TOSA"),),
        spec_readers=f"{_SPECS}ARM",
        executor="runtime.backends.tosa:TosaBackend",
        steps=True,
        logs_kernel_layout=True,
    ),
    Backend(
        "EthosUBackend",
        colour=6,
        decoder=f"{_P}ethosu:decode_payload",
        marks=((0, b"vela_bin_stream"),),
        spec_readers=f"{_SPECS}ARM",
        executor="runtime.backends.ethosu:EthosUBackend",
        keeper=f"{_C}ethosu:leaving_files",
        estimates=f"{_P}ethosu.estimates:read_estimates",
        executed=f"{_P}ethosu.executed:executed_graph",
        tables="vela",
        steps=True,
        logs_kernel_layout=True,
    ),
    Backend(
        "VgfBackend",
        "VGF",
        colour=6,
        decoder=f"{_P}vgf:decode_payload",
        marks=((0, b"VGF1"),),
        spec_readers=f"{_SPECS}ARM",
        executor="runtime.backends.vgf:VgfBackend",
        keeper=f"{_C}vgf:leaving_files",
        steps=True,
        logs_kernel_layout=True,
    ),
    # of old releases: it wrote Vela streams or TOSA, distinguished only by their marks
    Backend("ArmBackend", spec_readers=f"{_SPECS}ARM"),
    Backend(
        "MPSBackend",
        colour=4,
        decoder=f"{_P}mps:decode_payload",
        marks=((4, b"MP00"),),
        spec_readers=f"{_SPECS}MPS",
        executor="runtime.backends.mps:MpsBackend",
        steps=True,
    ),
    Backend(
        "NativeBackend",
        decoder=f"{_P}native:decode_payload",
        marks=((4, b"NPTG"),),
        executor="runtime.backends.native:NativeBackend",
        steps=True,
    ),
    Backend("MLXBackend", decoder=f"{_P}mlx:decode_payload", marks=((4, b"MLX0"),)),
    Backend("CudaBackend", decoder=f"{_P}plain.aoti:decode_payload"),
    Backend("MetalBackend", decoder=f"{_P}plain.aoti:decode_payload"),
    Backend("CoreAIBackend", "Core AI"),
    Backend(
        "QnnBackend",
        "QNN",
        colour=3,
        decoder=f"{_P}qnn:decode_payload",
        marks=((0, b"\xcd\xab\x78\x56"), (0, b"\xcd\xab\x34\x12")),
        default_spec_reader=f"{_P}settings.options:qnn_options",
        logs_cycles=True,
        # as in aten_relu_default:OpId_3 (cycles)
        event_names=r"(?P<node>.+):OpId_\d+(?: \(\w+\))?",
    ),
    Backend("NeuropilotBackend", decoder=f"{_P}plain.vendor:decode_mediatek"),
    Backend("NeutronBackend", decoder=f"{_P}plain.neutron:decode_payload", logs_cycles=True),
    Backend(
        "EnnBackend", decoder=f"{_P}plain.vendor:decode_samsung", spec_readers=f"{_SPECS}SAMSUNG"
    ),
    Backend(
        "BackendWithCompilerDemo",
        decoder=f"{_P}plain.demo:decode_text",
        spec_readers=f"{_SPECS}DEMO",
        partitioners=(_ADD_MUL,),
        executor="runtime.backends.demo:BackendWithCompilerDemo",
    ),
    Backend("BackendWithDelegateMappingDemo", decoder=f"{_P}plain.demo:decode_text"),
    Backend("DemoBackend", decoder=f"{_P}plain.demo:decode_plain_text"),
    Backend("ExampleBackend", decoder=f"{_P}plain.demo:decode_plain_text"),
    Backend(
        "ExecutorBackend",
        decoder=f"{_P}plain.demo:decode_program",
        marks=((4, b"ET12"),),
        partitioners=(_ALL_NODES,),
        executor="runtime.backends.demo:ExecutorBackend",
    ),
)
BACKENDS: dict[str, Backend] = {one.id: one for one in _ENTRIES}
PACKAGES = {"ethosu": "ethos-u-vela", "tosa": "tosa-tools", "tosa_serializer": "tosa-tools"}
"""Packages of vendors by the modules they provide, where the names differ."""
DEFAULT = _XNNPACK
"""The backend of examples, of the demo, and of quantization: the one for processors."""


def backend_of(backend_id: str) -> Backend:
    """Return the traits of a backend, the defaults for an unknown one."""
    return BACKENDS.get(backend_id) or _unknown(backend_id)


@lru_cache(maxsize=256)
def _unknown(backend_id: str) -> Backend:
    return Backend(backend_id)


def short_backend(backend_id: str) -> str:
    """Return the short name of a backend, as in ``Vulkan``."""
    return backend_of(backend_id).name


def event_node(backend_id: str, name: str) -> str:
    """Return the name that an event of a backend has for its node, without what is added to it."""
    pattern = backend_of(backend_id).event_names
    found = re.fullmatch(pattern, name) if pattern else None
    return found["node"] if found else name


_MODULES: dict[str, ModuleType] = {}  # that were imported by name


def partitioners() -> tuple[PartitionerTraits, ...]:
    """Return the partitioners of all backends by alias."""
    found = [one for backend in BACKENDS.values() for one in backend.partitioners]
    return tuple(sorted(found, key=lambda one: one.alias))


def resolve(place: str) -> Any:  # noqa: ANN401 - a class, a function or a table
    """Return the object that a dotted name of the table refers to.

    A module is imported once: a process that removes our packages from the module table, since
    the user's modules may have their names, resolves what it needs before that.

    Args:
        place: ``module:attribute``

    Raises: ImportError, AttributeError
    """
    module, _, name = place.partition(":")
    if module not in _MODULES:
        _MODULES[module] = importlib.import_module(module)
    return getattr(_MODULES[module], name)


def engine_backends() -> str:
    """Return the short names of the backends that have engines, for help and labels."""
    return ", ".join(one.name for one in BACKENDS.values() if one.has_engines)
