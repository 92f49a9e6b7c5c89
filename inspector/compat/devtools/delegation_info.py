"""Delegated and non-delegated operators, with the documented counts and wording.

The counting rules are the documented tool's: calls of the outer graph only, operators distinguished
by node name without its number. `inspector.graph.delegation` has honest counts beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inspector.compat.devtools.fx_nodes import Fx, is_lowered, lowered_graph, lowered_module
from inspector.compat.devtools.tables import grid
from inspector.export.pandas_bridge import DataFrame, load_pandas
from inspector.graph.delegation import summary_text
from inspector.join.operator_names import op_type
from schema.etrecord import node_list
from schema.graph import Graph, NodeKind

_CALL = "executorch_call_delegate"
_COLUMNS = (
    "op_type",
    "occurrences_in_delegated_graphs",
    "occurrences_in_non_delegated_graphs",
)


@dataclass(frozen=True)
class DelegationBreakdown:
    """Occurrences of one operator.

    Attributes:
        op_type: node name without its suffix
        delegated: inside delegates
        non_delegated: outside
    """

    op_type: str = ""
    delegated: int = 0
    non_delegated: int = 0


@dataclass(frozen=True)
class DelegationInfo:
    """Delegation of one graph.

    Attributes:
        num_delegated_subgraphs: lowered modules
        num_delegated_nodes: calls inside them
        num_non_delegated_nodes: calls outside
        delegation_by_operator: operator type -> both counts
    """

    num_delegated_subgraphs: int
    num_delegated_nodes: int
    num_non_delegated_nodes: int
    delegation_by_operator: Mapping[str, DelegationBreakdown]

    def get_summary(self) -> str:
        """Return the counts as three lines."""
        return summary_text(
            self.num_delegated_subgraphs, self.num_delegated_nodes, self.num_non_delegated_nodes
        )

    def get_operator_delegation_dataframe(self) -> DataFrame:
        """Return one row per operator type, by name, and a last row named Total."""
        rows = sorted(self.delegation_by_operator.values(), key=lambda row: row.op_type)
        cells = [(row.op_type, row.delegated, row.non_delegated) for row in rows]
        total = ("Total", self.num_delegated_nodes, self.num_non_delegated_nodes)
        return load_pandas().DataFrame([*cells, total], columns=list(_COLUMNS))


def get_delegation_info(graph_module: object) -> DelegationInfo:
    """Return the delegation of a lowered graph.

    Args:
        graph_module: a torch.fx.GraphModule, or a schema.graph.Graph of an ETRecord

    Raises: TypeError for anything else
    """
    if isinstance(graph_module, Graph):
        outside, inside = _of_snapshot(graph_module)
    elif hasattr(graph_module, "graph"):
        outside, inside = _of_module(graph_module)
    else:
        found = type(graph_module).__name__
        raise TypeError(f"expected a torch.fx.GraphModule or a recorded Graph, found {found}")
    return _counted([name for name in outside if op_type(name) != _CALL], inside)


def print_delegation_info(graph_module: object) -> None:
    """Print the summary and the table of operators."""
    info = get_delegation_info(graph_module)
    print(info.get_summary())  # noqa: T201 - the documented output
    print(grid(info.get_operator_delegation_dataframe()))  # noqa: T201


Names = tuple[list[str], list[list[str]]]  # calls outside, calls inside each delegate


def _of_module(module: Fx) -> Names:
    nodes = list(module.graph.nodes)
    lowered = [lowered_module(module, node) for node in nodes if is_lowered(node)]
    return _calls(nodes), [_calls(lowered_graph(part).nodes) for part in lowered]


def _calls(nodes: Iterable[Fx]) -> list[str]:
    return [node.name for node in nodes if node.op == "call_function"]


def _of_snapshot(graph: Graph) -> Names:
    inside: list[list[str]] = []
    for node in graph.nodes:
        if node.kind is NodeKind.DELEGATE:
            part = graph.subgraphs.get(node.subgraphs[0]) if node.subgraphs else None
            inside.append(_calls(node_list(part)) if part is not None else [])
    return _calls(node_list(graph)), inside


def _counted(outside: list[str], inside: list[list[str]]) -> DelegationInfo:
    without = Counter(op_type(name) for name in outside)
    within = Counter(op_type(name) for names in inside for name in names)
    operators = [*without, *(name for name in within if name not in without)]
    return DelegationInfo(
        num_delegated_subgraphs=len(inside),
        num_delegated_nodes=within.total(),
        num_non_delegated_nodes=without.total(),
        delegation_by_operator={
            name: DelegationBreakdown(name, within[name], without[name]) for name in operators
        },
    )
