"""The tour of the sample: five steps from where the time goes to whether a change is better."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.files.session import Session
from inspector.graph.model_graph import model_graph
from inspector.tables.operators import operators_table
from inspector.tables.selection import AUTOMATIC, Selection, SelectionKind


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step.

    Attributes:
        title: its heading
        text: what is seen there and what it is for
        view: brought to the front
        selects: whether the slowest node outside of delegates is selected
        panel: brought to the front of those in its place
    """

    title: str
    text: str
    view: str
    selects: bool = False
    panel: str = ""


STEPS = (
    TourStep(
        "Where the time goes",
        "The large number is the time of one run, the bar its parts: delegates, operators outside"
        " of them, and the rest. Findings below are ordered by what they would save, and What to"
        " do next has the actions that bring most.",
        "overview",
    ),
    TourStep(
        "What is not delegated, and why",
        "Boxes with a bold brown outline run outside of delegates. The slowest of them is selected"
        " now: the Node panel at the right has the reason, its time, tensors and source line. A"
        " selection is shown in all views.",
        "graph",
        selects=True,
        panel="node",
    ),
    TourStep(
        "Change the program",
        "A right click on a node offers changes, each previewed while the pointer is on it. They"
        " are edits of this recipe: it can also be filled in here, and Ctrl+Z takes an edit back.",
        "recipe",
    ),
    TourStep(
        "How it is compiled",
        "Ctrl+R compiles the recipe, runs the program and opens it beside the former one, in some"
        " seconds. Stages has what each pass did to the graph, node by node. Of the sample there"
        " is a variant already: the second session.",
        "stages",
    ),
    TourStep(
        "Is it better?",
        "Compare measures both side by side and weighs latency, size, memory and error: better,"
        " worse, or not distinguishable. That is the whole loop. F1 opens the guide at the view"
        " you are in, ? has all keys.",
        "compare",
    ),
)


def slowest_outside(session: Session, method: str) -> Selection:
    """Return the slowest node outside of delegates, nothing where there is none."""
    found = operators_table(session, method, AUTOMATIC)
    columns = {column.title: column for column in found.table.columns}
    graph = model_graph(session, method)
    if graph is None or "backend" not in columns or "mean" not in columns:
        return Selection()
    means, backends = columns["mean"].values, columns["backend"].values
    rows = [row for row in range(found.table.length) if backends[row] == "not delegated"]
    rows.sort(key=lambda row: -float(means[row]) if means[row] == means[row] else 0.0)
    names = columns["node"].values if "node" in columns else [""] * found.table.length
    for row in rows:
        name = str(names[row] or "").split(", ")[0]
        if name in graph.by_name:
            return Selection(SelectionKind.NODE, method=method, node=name)
    return Selection()
