"""Names and source lines of planned values, where a record says them."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.join_index import join_index
from inspector.session import Session
from inspector.source import user_frame
from schema.identity_cache import identity_cache


@dataclass(frozen=True, slots=True)
class ValueSource:
    """What a value is in the recorded graph.

    Attributes:
        name: name of the recorded value or node that makes it
        module: dotted module path, empty when unknown
        source: ``file:line``, empty when unknown
    """

    name: str
    module: str
    source: str


@identity_cache
def value_sources(session: Session, method: str) -> dict[int, ValueSource]:
    """Return value index -> source of each value the record can name; never a guess.

    Outputs are named by the node that is known to be the instruction that writes them: a node of
    its own, or the last of several that share its handle. Inputs are named by position.
    """
    program, record = session.program, session.record
    if program is None or record is None or method not in session.methods:
        return {}
    index = join_index(session, method)
    graph = index.graph
    if graph is None or graph.source != "record":
        return {}
    found: dict[int, ValueSource] = {}
    for step, touched in enumerate(index.operands):
        names = index.instruction_nodes.get(step, ())
        if not names:
            continue
        node = graph.nodes[graph.by_name[names[-1]]]
        frame = user_frame(node.node.stack_trace)
        place = frame.label if frame is not None else ""
        outputs = node.node.outputs
        several = len(touched.writes) > 1
        if several and len(outputs) != len(touched.writes):
            continue  # a delegate with several outputs: which node makes which is not recorded
        for position, value in enumerate(touched.writes):
            name = outputs[position] if several else node.name
            found.setdefault(value, ValueSource(name, node.node.module_path, place))
    plan = program.plan(method)
    recorded = record.edge_graph(method)
    if recorded is not None and len(recorded.inputs) == len(plan.inputs):
        for name, value in zip(recorded.inputs, plan.inputs, strict=True):
            found[value] = ValueSource(name, "", "")
    return found
