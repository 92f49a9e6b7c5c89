"""Names and source lines of planned values, where a record has them."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.files.session import Session
from inspector.graph.source import user_frame
from inspector.numerics.join import join_method
from inspector.numerics.state_names import state_names
from inspector.numerics.traced import instruction_outputs
from inspector.profile.join_index import join_index
from schema.graph import GraphNode
from schema.objects.identity_cache import identity_cache


@dataclass(frozen=True, slots=True)
class ValueSource:
    """The identity of a value in the recorded graph.

    Attributes:
        name: name of the recorded value or of its node
        module: dotted module path, empty when unknown
        source: ``file:line``, empty when unknown
    """

    name: str
    module: str
    source: str


@identity_cache
def value_sources(session: Session, method: str) -> dict[int, ValueSource]:
    """Return value index -> source of each value the record can name; never a guess.

    An operator of the user's may become several nodes and instructions of one debug handle. Which
    of them computes a value follows from its operands, as in the numeric gap; where that is not
    known a value has the name of the only node there is, or none. Inputs are named by position,
    state by its buffer.
    """
    program, record = session.program, session.record
    if program is None or record is None or method not in session.methods:
        return {}
    index, join = join_index(session, method), join_method(session, method)
    graph = index.graph
    if graph is None or graph.source != "record":
        return {}
    found: dict[int, ValueSource] = {}
    for output in instruction_outputs(program, method):
        target = join.targets.get((output.instruction, output.slot))
        names = index.instruction_nodes.get(output.instruction, ())
        if target is not None and target.same and join.graph is not None:
            maker = join.graph.producers.get(target.value)
            node, name = maker[0].node if maker is not None else None, target.value[1]
        elif (
            target is None
            and len(names) == 1
            and len(index.operands[output.instruction].writes) == 1
        ):
            node, name = graph.nodes[graph.by_name[names[0]]].node, names[0]
        else:
            continue
        found.setdefault(output.value, _source(name, node))
    plan = program.plan(method)
    recorded = record.edge_graph(method)
    if recorded is not None and len(recorded.inputs) == len(plan.inputs):
        for name, value in zip(recorded.inputs, plan.inputs, strict=True):
            found[value] = ValueSource(name, "", "")
    for value, name in state_names(session, method).items():
        found.setdefault(value, ValueSource(name, "", ""))
    return found


def _source(name: str, node: GraphNode | None) -> ValueSource:
    if node is None:
        return ValueSource(name, "", "")
    frame = user_frame(node.stack_trace)
    return ValueSource(name, node.module_path, frame.label if frame is not None else "")
