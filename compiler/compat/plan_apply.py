"""Runs a planning algorithm over a graph with specs, as `executorch.exir.memory_planning` does."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch.export.graph_signature import ExportGraphSignature

from compiler.compat.delegated_graphs import get_control_flow_submodules
from compiler.compat.plan_checks import collect_specs_from_nodes
from compiler.dialect.delegate_call import get_lowered_submodules
from compiler.errors import UnsupportedError
from compiler.memory.graph_specs import specs_to_plan
from compiler.memory.tensor_spec import DeviceType, TensorSpec
from schema.backends import backend_of
from schema.program.model import NonConstBufferDevice

_HOST = (DeviceType.CPU, 0)


def apply_algo(  # noqa: PLR0913 - as documented
    algo: Callable[..., list[int]],
    graph_module: torch.fx.GraphModule,
    alignment: int,
    graph_signature: ExportGraphSignature | None = None,
    alloc_graph_input: bool = True,
    alloc_graph_output: bool = True,
    alloc_mutable_buffers: bool = True,
    enable_non_cpu_memory_planning: bool = False,
) -> list[int]:
    """Assign offsets to the specs of a graph and return the bytes of the planned buffers.

    The metadata of the graph has these as well, and the devices of buffers other than the host's.

    Args:
        algo: such as a `MemoryPlanningAlgorithmSuite`
        graph_module: with specs in the metadata of its nodes
        alignment: of tensor offsets, in bytes
        graph_signature: with inputs that are weights
        alloc_graph_input: whether inputs need memory
        alloc_graph_output: whether results do
        alloc_mutable_buffers: whether mutable buffers do
        enable_non_cpu_memory_planning: plan separate buffers for each device

    Raises:
        UnsupportedError: the graph has branches or loops; `to_executorch` plans those
        NotImplementedError: devices other than the host with buffers chosen by hand
    """
    _check_one_graph(graph_module)
    specs_to_plan(graph_module, graph_signature, inputs=True, outputs=True)  # sets the lifetimes
    specs = [
        *collect_specs_from_nodes(
            graph_module.graph.nodes,
            graph_signature,
            ignore_graph_input=not alloc_graph_input,
            ignore_graph_output=not alloc_graph_output,
            ignore_mutable_buffers=not alloc_mutable_buffers,
        )
    ]
    padding = _bytes_read_past_end(graph_module)
    sizes, devices = [0], [_HOST]
    for device, own in _by_device(specs, enable_non_cpu_memory_planning).items():
        behind = len(sizes) - 1
        built = algo(alignment, own, graph_module, graph_signature, padding)[1:]
        sizes += built
        devices += [device] * len(built)
        for spec in own:
            if spec.mem_id is not None:
                spec.mem_id += behind
    if len(sizes) == 1:
        sizes.append(0)
    graph_module.meta["non_const_buffer_sizes"] = sizes
    others = [
        NonConstBufferDevice(place, *device)
        for place, device in enumerate(devices)
        if device != _HOST
    ]
    if others:
        graph_module.meta["non_const_buffer_device"] = others
    return sizes


def _check_one_graph(graph_module: torch.fx.GraphModule) -> None:
    bodies = [name for name, _, _ in get_control_flow_submodules(graph_module)]
    if bodies:
        raise UnsupportedError(
            f"apply_algo expected one graph, found bodies {', '.join(bodies)}; to_executorch plans "
            "programs with branches and loops"
        )


def _by_device(
    specs: Collection[TensorSpec], apart: bool
) -> dict[tuple[DeviceType, int], list[TensorSpec]]:
    """Return the specs of each device, those of the host first."""
    if not apart:
        return {_HOST: [*specs]}
    others = any(spec.device != DeviceType.CPU for spec in specs)
    if others and any(spec.mem_id is not None for spec in specs):
        raise NotImplementedError(
            "buffers chosen by hand (spec.mem_id) with a device other than the host: plan with "
            "enable_non_cpu_memory_planning=False, or leave mem_id None"
        )
    found: dict[tuple[DeviceType, int], list[TensorSpec]] = {}
    for spec in specs:
        found.setdefault((spec.device, spec.device_index), []).append(spec)
    return {device: found[device] for device in sorted(found, key=lambda one: (one != _HOST, one))}


def _bytes_read_past_end(graph_module: torch.fx.GraphModule) -> int:
    modules: list[Any] = [module for _, module, _ in get_lowered_submodules(graph_module)]
    return max((backend_of(one.backend_id).bytes_read_past_end for one in modules), default=0)
