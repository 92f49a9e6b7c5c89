"""Graphs of the same kind of several sessions, so that names in one mean the same in the other."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.files.session import Session
from inspector.graph.model_graph import COMPILED, ModelGraph, model_graph
from inspector.join.record_maps import edge_graph


def common_graphs(sessions: Sequence[Session], method: str) -> tuple[list[ModelGraph | None], str]:
    """Return graphs of one kind: the recorded ones if all have one, else those of programs."""
    recorded = [
        session.record is not None and edge_graph(session.record, method) is not None
        for session in sessions
    ]
    if all(recorded):
        return [model_graph(session, method, COMPILED) for session in sessions], ""
    note = "not all have a recorded graph: the instructions of the programs are compared"
    graphs = [
        model_graph(session, method, "instructions") if session.program is not None else None
        for session in sessions
    ]
    if sum(graph is not None for graph in graphs) < 2:
        note = "graphs are missing: neither all records nor two programs have one"
    return graphs, note
