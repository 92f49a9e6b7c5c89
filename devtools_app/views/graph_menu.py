"""The menu of the graph view: it names the clicked item and offers its actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from devtools_app.viewmodels.layout.cluster_tree import ROOT, collapse_others
from devtools_app.viewmodels.layout.placed import Placed
from devtools_app.views.editing import item_menu, named_menu
from devtools_app.views.graph_boxes import GraphBoxes
from devtools_app.views.graph_focus import GraphFocus
from devtools_app.views.spec import ViewContext
from devtools_app.widgets.graph_canvas import GraphCanvas
from devtools_app.widgets.graph_canvas_labels import edge_text
from devtools_app.widgets.graph_canvas_pick import NOTHING, holder_of
from inspector.tables.selection import NOTHING as NO_SELECTION
from inspector.tables.selection import Selection

_COPY = 1  # the place of the copy of the name, before which the commands of the graph are


@dataclass(frozen=True, slots=True)
class Clicked:
    """The subject of the menu.

    Attributes:
        name: its first line
        item: box, or NOTHING
        edge: visible edge, or NOTHING
    """

    name: str
    item: int = NOTHING
    edge: int = NOTHING


def clicked(canvas: GraphCanvas) -> Clicked:
    """Return what was last clicked with the right button; of the keyboard the selection."""
    placed, item = canvas.placed, canvas.selected_item
    if placed is None:
        return Clicked("Graph")
    if canvas.clicked_edge != NOTHING:
        edge = canvas.clicked_edge
        source, target = (placed.title_of(end) for end in placed.edges[edge].tolist())
        text = edge_text(placed, edge)
        name = f"{source} → {target}" + (f" · {text}" if text else "")
        return Clicked(name, edge=edge)
    if item == NOTHING or canvas.clicked_ground:
        return Clicked("Graph")
    return Clicked(_box_name(placed, item), item)


def _box_name(placed: Placed, item: int) -> str:
    title = placed.title_of(item)
    if item >= placed.node_count or placed.scene.labels[item] == title:
        return title
    return f"{placed.scene.labels[item]} · {title}"


def graph_menu(
    canvas: GraphCanvas,
    selection: Selection,
    focus: GraphFocus,
    boxes: GraphBoxes,
    context: ViewContext,
    parent: QWidget,
) -> QMenu:
    """Return the menu of the clicked item.

    Args:
        canvas: that was clicked
        selection: of the window
        focus: commands on parts of the graph
        boxes: which are open
        context: of the view
        parent: of the menu
    """
    found, placed = clicked(canvas), canvas.placed
    if found.item == found.edge == NOTHING:
        return _menu_of_all(canvas, focus, boxes, parent)
    own = selection if found.item != NOTHING else NO_SELECTION
    menu = item_menu(parent, found.name, own, "graph", context, _module(placed, found.item))
    if placed is None:
        return menu
    copy = menu.actions()[_COPY]
    groups = (_own_commands(canvas, placed, found, boxes), *focus.groups())
    for group in filter(None, groups):
        for text, act, on in group:
            action = QAction(text, menu)
            action.triggered.connect(lambda _on=False, act=act: act())
            action.setEnabled(on)
            menu.insertAction(copy, action)
        menu.insertSeparator(copy)
    return menu


def _module(placed: Placed | None, item: int) -> str:
    """Return the path of the module that a box stands for, empty for others."""
    if placed is None or item < placed.node_count:
        return ""
    return placed.scene.cluster_info(placed.path_of(item)).module


def _menu_of_all(
    canvas: GraphCanvas, focus: GraphFocus, boxes: GraphBoxes, parent: QWidget
) -> QMenu:
    menu = named_menu(parent, "Graph")
    menu.addAction("Show everything\tSpace", canvas.fit)
    menu.addAction("Show the whole graph again\tShift+X", focus.whole).setEnabled(
        focus.part is not None
    )
    menu.addSeparator()
    menu.addAction("Open all boxes\tShift+E", boxes.open_all)
    menu.addAction("Close all boxes\tShift+C", boxes.close_all)
    return menu


def _own_commands(
    canvas: GraphCanvas, placed: Placed, found: Clicked, boxes: GraphBoxes
) -> list[tuple[str, Callable[[], None], bool]]:
    if found.edge != NOTHING:
        source, target = placed.edges[found.edge].tolist()
        return [
            (f"Go to {placed.title_of(source)}", lambda: canvas.select_item(source), True),
            (f"Go to {placed.title_of(target)}", lambda: canvas.select_item(target), True),
        ]
    item, is_box = found.item, found.item >= placed.node_count
    around = holder_of(placed, item)
    outer = ROOT if around == NOTHING else placed.path_of(around)
    path = placed.path_of(item) if is_box else outer
    is_open = is_box and path in placed.expanded
    lines: list[tuple[str, Callable[[], None], bool]] = []
    if is_box:
        words = "Close the box" if is_open else "Open the box"
        lines.append((f"{words}\tReturn", lambda: boxes.toggle(path), True))
    if outer:
        key = "" if is_open else "\tC"  # of an open box that key closes the box
        words = f"Close {placed.title_of(around)} around it{key}"
        lines.append((words, lambda: boxes.toggle(outer), True))
    kept = collapse_others(placed.expanded, path, inside=is_box)
    others = len(kept) < len(placed.expanded)
    lines.append(("Close all other boxes", lambda: boxes.put(kept, path or None), others))
    return lines
