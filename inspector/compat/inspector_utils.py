"""Names of ``executorch.devtools.inspector._inspector_utils`` that are used but not documented.

Arguments and results are those of the stock functions; the work is done by ``compat.devtools``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from inspector.compat.devtools.etrecord import EDGE_GRAPH as EDGE_DIALECT_GRAPH_KEY
from inspector.compat.devtools.etrecord import ETRecord
from inspector.compat.devtools.event import Event
from inspector.compat.devtools.metrics import METRICS, compare_pair
from inspector.compat.devtools.numerical_comparator import as_doubles
from inspector.compat.devtools.time_scale import TimeScale
from inspector.compat.devtools.time_scale import divisor as calculate_time_scale_factor
from inspector.compat.devtools.traces import is_inference_output_equal
from inspector.compat.numeric_gap.groups import EventGroup, group_pairs, merged_groups
from inspector.compat.numeric_gap.recorded import (
    NodeValue,
    Recorded,
    handles_of_exported,
    own_copy,
)
from inspector.rebuild.torch_bridge import Torch, load_torch

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.fx import GraphModule, Node

__all__ = [
    "EDGE_DIALECT_GRAPH_KEY",
    "IntermediateOutputCapturer",
    "NodeFilter",
    "TimeScale",
    "calculate_cosine_similarity",
    "calculate_mse",
    "calculate_snr",
    "calculate_time_scale_factor",
    "convert_to_float_tensor",
    "create_debug_handle_to_op_node_mapping",
    "find_op_names",
    "find_populated_event",
    "get_aot_debug_handle_to_op_name_mapping",
    "is_inference_output_equal",
    "map_runtime_aot_intermediate_outputs",
    "merge_runtime_overlapping_debug_handles",
    "propagate_back_debug_handle",
]
Handles = tuple[int, ...]
_HANDLE = "debug_handle"
_DIGITS = 2  # to which the stock functions round


@dataclass
class NodeFilter:
    """Selects the nodes of a graph that count.

    Attributes:
        metadata_key: required key of their metadata
        op_type: their ``op``, such as ``call_function``
        exclude_ops: substrings of names to exclude
    """

    metadata_key: str
    op_type: str
    exclude_ops: Sequence[str] | None = None

    def matches(self, node: Node) -> bool:
        """Return whether a node counts."""
        return (
            node.meta.get(self.metadata_key) is not None
            and node.op == self.op_type
            and not any(part in node.name for part in self.exclude_ops or ())
        )


_COMPUTING = NodeFilter(_HANDLE, "call_function", ("getitem",))


class IntermediateOutputCapturer:
    """Runs a graph module and captures the results of its nodes.

    Attributes:
        module: the graph module
        node_filters: select captured nodes, one per debug handle
    """

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self.node_filters = [_COMPUTING]

    def run_and_capture(self, *args: Any) -> dict[Handles, Any]:  # noqa: ANN401
        """Return debug handles -> a copy of the value of the last node that has them."""
        fx: Any = load_torch().fx
        filters, found = self.node_filters, dict[Handles, Any]()

        class Capture(fx.Interpreter):
            def run_node(self, n: Node) -> Any:  # noqa: ANN401
                result: Any = fx.Interpreter.run_node(self, n)
                if all(each.matches(n) for each in filters):
                    found[_key(n.meta[_HANDLE])] = own_copy(result)
                return result

        Capture(self.module).run(*args)
        return found


def _key(handles: Any) -> Handles:  # noqa: ANN401
    return (handles,) if isinstance(handles, int) else tuple(handles)


# ---- values
def _metric(name: str) -> Callable[[Iterable[object], Iterable[object]], list[float | None]]:
    def calculate(ref_values: Iterable[object], values: Iterable[object]) -> list[float | None]:
        found = [
            compare_pair(one, two, (name,))[1][name] if _are_tensors(one, two) else None
            for one, two in zip(ref_values, values, strict=False)
        ]
        return [None if value is None else round(value, _DIGITS) for value in found]

    calculate.__doc__ = f"Return the {name} of each pair of tensors, None for other values."
    return calculate


def _are_tensors(*values: object) -> bool:
    return all(isinstance(value, load_torch().Tensor) for value in values)


calculate_mse, calculate_snr, calculate_cosine_similarity = (
    _metric(name) for name in ("mse", "snr", "cosine_similarity")
)
assert set(METRICS) == {"mse", "snr", "cosine_similarity"}


def convert_to_float_tensor(input_data: Any) -> Torch:  # noqa: ANN401
    """Return a scalar or a tensor in double precision; if it has NaN, infinities become finite.

    Raises: AssertionError for a list; ValueError for anything but a scalar or tensor
    """
    assert not isinstance(input_data, Sequence), "expected a tensor or a number, found a list"
    try:
        return as_doubles(input_data)
    except (TypeError, RuntimeError, ValueError) as error:
        kind = type(cast("object", input_data))
        raise ValueError(f"Cannot convert value of type {kind} to a tensor: {error}") from error


# ---- traces
def find_populated_event(event: Any) -> Any:  # noqa: ANN401 - of the stock schema
    """Return the profile event that an event of a trace holds, else its debug event.

    Raises: ValueError if it holds neither
    """
    for found in (event.profile_event, event.debug_event):
        if found is not None:
            return found
    raise ValueError("the event holds neither a profile event nor a debug event")


def merge_runtime_overlapping_debug_handles(
    runtime_intermediate_outputs: Mapping[Handles, tuple[int, Any, int]],
) -> dict[Handles, tuple[int, Any, int]]:
    """Return outputs whose keys have no debug handle in common.

    Args:
        runtime_intermediate_outputs: debug handles -> instruction, value, number of outputs; of
            overlapping ones, the value of the latest instruction is used, its handles last
    """
    given = runtime_intermediate_outputs
    groups = [
        _group(handles, value, count, step) for handles, (step, value, count) in given.items()
    ]
    merged = merged_groups(groups)
    by_event = {id(group.event): value for group, value in zip(groups, given.values(), strict=True)}
    return {group.handles: by_event[id(group.event)] for group in merged}


def map_runtime_aot_intermediate_outputs(
    aot_intermediate_outputs: Mapping[Handles, Any],
    runtime_intermediate_outputs: Mapping[Handles, tuple[Any, int]],
) -> dict[tuple[Handles, Any], tuple[Handles, Any]]:
    """Return pairs of values of a recorded program and of the run.

    Args:
        aot_intermediate_outputs: (debug handle,) -> value
        runtime_intermediate_outputs: debug handles -> values, number of outputs among them
    """
    nodes = {
        handles[0]: [NodeValue("", value, None)]
        for handles, value in aot_intermediate_outputs.items()
    }
    found = Recorded("", nodes)
    mapping: dict[tuple[Handles, Any], tuple[Handles, Any]] = {}
    for handles, (value, count) in runtime_intermediate_outputs.items():
        pairs = group_pairs(_group(handles, value, count), found)
        for pair in pairs:
            if pair is not None:
                mapping[handles, pair[0]] = handles, pair[1]
    return mapping


def _group(handles: Handles, value: Any, count: int, step: int = 0) -> EventGroup:  # noqa: ANN401
    logged = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else [value]
    event = Event("", debug_data=logged, num_outputs=count)
    return EventGroup(handles, step, event)


# ---- graphs
def get_aot_debug_handle_to_op_name_mapping(graph_module: GraphModule) -> dict[Handles, list[str]]:
    """Return the names of the nodes that compute, by their debug handles."""
    found: dict[Handles, list[str]] = {}
    for node in graph_module.graph.nodes:
        if _COMPUTING.matches(node):
            found.setdefault(_key(node.meta[_HANDLE]), []).append(node.name)
    return found


def find_op_names(
    target_debug_handle: Handles, debug_handle_to_op_names: Mapping[Handles, Sequence[str]]
) -> list[str]:
    """Return the names whose debug handles are all included, in order."""
    requested = set(target_debug_handle)
    keys = [key for key in debug_handle_to_op_names if requested.issuperset(key)]
    return [name for key in keys for name in debug_handle_to_op_names[key]]


def create_debug_handle_to_op_node_mapping(op_graph: Any) -> dict[int, list[Any]]:  # noqa: ANN401
    """Return the nodes of a graph of the stock debug format by debug handle, those inside too."""
    found: dict[int, list[Any]] = {}
    for element in op_graph.elements:
        if hasattr(element, "elements"):
            for handle, nodes in create_debug_handle_to_op_node_mapping(element).items():
                found.setdefault(handle, []).extend(nodes)
            continue
        metadata: dict[str, Any] = getattr(element, "metadata", None) or {}
        handle = metadata.get(_HANDLE)
        if handle is not None and hasattr(element, "op"):
            found.setdefault(handle, []).append(element)
    return found


def propagate_back_debug_handle(
    exported_program: ExportedProgram,
    exported_program_graph_id: int,
    edge_dialect_program: ExportedProgram,
    disable_debug_handle_valdiation: bool = False,
) -> bool:
    """Set the debug handles of edge nodes on their source nodes in an exported program.

    Nodes without edge nodes get 0.

    Args:
        exported_program: gets ``meta["debug_handle"]``
        exported_program_graph_id: id of its graph in edge nodes
        edge_dialect_program: lowered from it
        disable_debug_handle_valdiation: accept edge nodes without a source node

    Returns: False, without changes, if an edge node has no source node
    """
    record = ETRecord(exported_program, exported_program_graph_id, edge_dialect_program)
    handles = handles_of_exported(record, "forward", best_effort=disable_debug_handle_valdiation)
    if not handles:
        return False
    graph_module: Any = load_torch().fx.GraphModule
    modules: Any = exported_program.graph_module.modules()
    for part in modules:
        for node in part.graph.nodes if isinstance(part, graph_module) else ():
            if node.op not in ("placeholder", "output"):
                node.meta[_HANDLE] = handles.get(node.name, 0)
    return True
