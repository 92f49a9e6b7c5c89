"""Vulkan, WebGPU, which writes the same payloads, and native, whose partitioner has no settings."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from compiler.backends.vendors.options import Creator, VendorOptions
from compiler.backends.vendors.package import backend_part
from compiler.interface.inherited_handles import handle_of
from schema.payloads.vulkan.graph import node_names

_FLAGS = (
    *("force_fp16", "require_dynamic_shapes", "small_texture_limits", "skip_bool_tensors"),
    *("skip_tag_memory_metadata", "downcast_64_bit", "skip_memory_planning"),
    "alias_buffer_mutations",
)
_NUMBERS = ("buffer_limit", "external_constants_max_data_bytes")


def partitioner(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of Vulkan."""
    home = backend_part("vulkan.partitioner.vulkan_partitioner")
    return _creating(home.VulkanPartitioner, options)


def web_partitioner(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of WebGPU."""
    return _creating(backend_part("webgpu.partitioner.partitioner").WebGPUPartitioner, options)


def _creating(cls: Any, options: VendorOptions) -> Creator:  # noqa: ANN401
    schema = backend_part("vulkan.serialization.vulkan_graph_schema")
    found: dict[str, Any] = {name: options.flag(name, None) for name in _FLAGS}
    found.update({name: options.number(name) for name in _NUMBERS})
    found["storage_type_override"] = options.member("storage_type", schema.VkStorageType)
    found["memory_layout_override"] = options.member("memory_layout", schema.VkMemoryLayout)
    limits = options.words("texture_limits")
    if limits:
        if len(limits) != 3 or not all(one.isdigit() for one in limits):
            expected = "three numbers, as 2048,2048,2048"
            raise options.refused("texture_limits", ",".join(limits), expected)
        found["texture_limits"] = tuple(map(int, limits))
    given = {name: value for name, value in found.items() if value is not None}
    modules = options.words("nn_module_blocklist")
    return lambda: cls(given, nn_module_blocklist=modules or None)


def quantizer(options: VendorOptions) -> Creator:
    """Return the factory of the quantizer of Vulkan."""
    home = backend_part("vulkan.quantizer.vulkan_quantizer")
    mode = options.text("mode", "weight-only", ("weight-only", "dynamic"))
    bits = options.number("weight_bits", 8)
    return lambda: home.VulkanQuantizer().set_global(
        home.get_symmetric_quantization_config(is_dynamic=mode == "dynamic", weight_bits=bits)
    )


def operators() -> list[tuple[str, str]]:
    """Return the operators of the vendor's registry, with the dtypes of their inputs."""
    home = backend_part("vulkan.op_registry")
    every = backend_part("vulkan.utils").ALL_T
    return [
        (_name(key), _dtypes(one.inputs_dtypes, every))
        for key, one in home.vulkan_supported_ops.items()
    ]


def _dtypes(sets: Any, every: Set[Any]) -> str:  # noqa: ANN401 - of the package
    """Return the dtypes of the first input; empty sets are of other arguments."""
    taken = next((one for one in sets.vals if one), every)
    return "any" if taken >= every else ", ".join(sorted(str(one)[6:] for one in taken))


def _name(key: Any) -> str:  # noqa: ANN401
    return key if isinstance(key, str) else str(getattr(key, "__name__", key))


@dataclass(slots=True)
class WrittenVulkan:
    """The graph that the builder has written.

    Attributes:
        graph: the builder
        nodes: the node that an operator has the value of, by its place in the graph
    """

    graph: Any = None
    nodes: dict[int, Any] = field(default_factory=dict[int, Any])

    def of_payload(self, backend_id: str, data: bytes) -> None:
        """Return nothing: the vendor has a map."""

    def calls(self) -> Mapping[str, Any]:
        """Return the node that each operator of the payload computes."""
        names = () if self.graph is None else node_names(self.graph)
        return {names[place]: node for place, node in self.nodes.items()}


@contextlib.contextmanager
def joining() -> Generator[WrittenVulkan, None, None]:
    """Give the graph builder the debug handles of nodes, over which it writes a counter."""
    builder = backend_part("vulkan.serialization.vulkan_graph_builder").VkGraphBuilder
    process = builder.process_node
    written = WrittenVulkan()

    def processing(graph: Any, node: Any, counter: int) -> Any:  # noqa: ANN401
        if graph is not written.graph:
            written.graph, written.nodes = graph, {}
        own, before = handle_of(node), len(graph.chain)
        found = process(graph, node, counter if own is None else own)
        if len(graph.chain) > before:  # what it wrote before the last one prepares it
            written.nodes[len(graph.chain) - 1] = node
        return found

    builder.process_node = processing
    try:
        yield written
    finally:
        builder.process_node = process


def native(options: VendorOptions) -> Creator:
    """Return the factory of the partitioner of native."""
    home = backend_part("native.partitioner")
    tag = options.text("external_constants_tag", "")
    return lambda: home.NativePartitioner(external_constants_tag=tag or None)
