"""The context menus of the timeline: each begins with the name of the clicked item."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QMenu

from devtools_app.state.requests import ShowView
from devtools_app.state.state import State
from devtools_app.viewmodels.timeline_counters import IN_USE
from devtools_app.views.editing import item_menu, named_menu
from devtools_app.views.spec import ViewContext
from devtools_app.views.timeline_find import EventSearch
from devtools_app.views.timeline_range import RangePanel
from devtools_app.widgets.canvas import NOTHING
from devtools_app.widgets.timeline_canvas import TimelineCanvas
from devtools_app.widgets.timeline_places import Pin
from devtools_app.widgets.toolbar_combo import ToolbarCombo
from inspector.tables.selection import Selection
from inspector.units import format_quantity


class TimelineParts(Protocol):
    """What the menus act on: the timeline view."""

    canvas: TimelineCanvas
    range: RangePanel
    runs: ToolbarCombo
    search: EventSearch
    context: ViewContext

    @property
    def state(self) -> State:
        """Return the state of the window."""
        ...

    def row_of(self, event: int) -> int:
        """Return the row of an event, negative for a gap between events."""
        ...

    def export_range(self) -> None:
        """Ask for a file and write the range."""
        ...

    def show_slowest_run(self) -> None:
        """Show the slowest run."""
        ...

    def go_to_slowest(self) -> None:
        """Select the slowest call."""
        ...


def timeline_menu(pane: TimelineParts, at: QPoint) -> QMenu | None:
    """Return the menu of what is at a pixel of the canvas, None without events."""
    canvas, point = pane.canvas, pane.canvas.spot(at)
    if canvas.data is None:
        return None
    if canvas.clicked != NOTHING:
        return _of_event(pane, canvas.clicked)
    flag = canvas.flag_at(point)
    if flag != NOTHING:
        return _of_mark(pane, flag)
    counter = canvas.counter_at(point)
    if counter != NOTHING:
        return _of_counter(pane, counter)
    if canvas.in_span(point):
        return _of_range(pane)
    lane = canvas.lane_at(point)
    if lane != NOTHING and canvas.beside_lanes(point):
        return _of_lane(pane, lane)
    return _of_all(pane)


def _length(pane: TimelineParts, span: tuple[float, float]) -> str:
    data = pane.canvas.data
    return "" if data is None else format_quantity(span[1] - span[0], data.quantity)


def _of_event(pane: TimelineParts, event: int) -> QMenu:
    canvas, data = pane.canvas, pane.canvas.data
    if data is None:
        return QMenu(canvas)
    name = data.names[int(data.label[event])]
    known = pane.row_of(event) >= 0  # a gap between events has no row
    selection = pane.state.selection if known else Selection()
    menu = item_menu(canvas, name, selection, "timeline", pane.context)
    after = menu.actions()[2]  # behind the name and its copy
    span = (float(data.start[event]), float(data.end[event]))
    own = QMenu(menu)
    own.addAction(
        f"Select its time as range: {_length(pane, span)}", lambda: canvas.select_span(span)
    )
    ranged = canvas.marks.span is not None  # of which the keys are then
    own.addAction("Zoom to it" if ranged else "Zoom to it\tF", lambda: canvas.zoom_to(*span))
    own.addAction("Mark its time" if ranged else "Mark its time\tM", lambda: canvas.mark(span))
    own.addAction(_pin_text(pane, canvas.pin_of_event(event)), canvas.toggle_selected_pin)
    if known:
        own.addAction(f"Find all “{name.replace('&', '&&')}”", lambda: pane.search.search(name))
    for action in own.actions():
        menu.insertAction(after, action)
    flow = _flow_menu(pane, menu)
    if not flow.isEmpty():
        menu.insertMenu(after, flow)
    return menu


def _flow_menu(pane: TimelineParts, parent: QMenu) -> QMenu:
    """Return the calls that wrote what the selected one reads, and those that read its results."""
    canvas, data = pane.canvas, pane.canvas.data
    menu = QMenu("Go along the flow of data", parent)
    ends = {event for pair in canvas.marks.flow for event in pair}
    here = canvas.current if canvas.current in ends else canvas.holder(canvas.current)
    for source, target in canvas.marks.flow if data is not None else ():
        other, way = (source, "Writer") if target == here else (target, "Reader")
        name = data.names[int(data.label[other])].replace("&", "&&") if data is not None else ""
        menu.addAction(f"{way}: {name}", partial(canvas.go_to, other))
    return menu


def _pin_text(pane: TimelineParts, pin: Pin) -> str:
    if pin.name:
        name = f"all “{pin.name.replace('&', '&&')}”"
        return f"Unpin {name}\tP" if pin in pane.canvas.pins else f"Pin {name} at the top\tP"
    return "Unpin the lane" if pin in pane.canvas.pins else "Pin the lane at the top"


def _of_counter(pane: TimelineParts, number: int) -> QMenu:
    canvas, data = pane.canvas, pane.canvas.data
    counter = data.counters[number] if data is not None else None
    menu = named_menu(pane.canvas, f"Counter: {counter.label if counter is not None else ''}")
    if counter is None or counter.missing:
        return menu
    place = int(np.nanargmax(counter.value))
    time = float(counter.start[place])
    words = format_quantity(float(counter.value[place]), counter.quantity)
    menu.addAction(f"Go to its largest value: {words}", lambda: canvas.show_time(time))
    view = "memory" if counter.label == IN_USE else "partitions"
    menu.addAction(f"Show in {view.title()}", lambda: pane.context.ask(ShowView(view)))
    return menu


def _of_range(pane: TimelineParts) -> QMenu:
    canvas = pane.canvas
    span = canvas.selected_extent() or (0.0, 0.0)
    menu = named_menu(pane.canvas, f"Range of {_length(pane, span)}")
    menu.addAction("Zoom to it\tF", canvas.focus_selection)
    menu.addAction("Mark it\tM", canvas.toggle_mark)
    if pane.range.content is not None:
        menu.addAction("Export it…", pane.export_range)
    menu.addAction("Close it\tEsc", canvas.clear_selection)
    return menu


def _of_mark(pane: TimelineParts, flag: int) -> QMenu:
    canvas = pane.canvas
    flags = canvas.marks.flags
    span = flags[flag]
    menu = named_menu(pane.canvas, f"Mark {flag + 1}: {_length(pane, span)}")
    menu.addAction("Select as range", lambda: canvas.select_span(span))
    menu.addAction("Zoom to it", lambda: canvas.zoom_to(*span))
    menu.addSeparator()
    for number, other in enumerate(flags):
        if number != flag:
            ends = (min(span[0], other[0]), max(span[0], other[0]))
            text = f"Measure to the start of mark {number + 1}: {_length(pane, ends)}"
            menu.addAction(text, partial(canvas.select_span, ends))
    menu.addSeparator()
    kept = tuple(one for one in flags if one != span)
    menu.addAction("Remove the mark", lambda: canvas.set_flags(kept))
    if kept:
        menu.addAction("Remove all marks", lambda: canvas.set_flags(()))
    return menu


def _of_lane(pane: TimelineParts, lane: int) -> QMenu:
    canvas = pane.canvas
    menu = named_menu(pane.canvas, f"Lane: {canvas.lane_name(lane)}")
    pin = canvas.pin_of_lane(lane)
    menu.addAction(_pin_text(pane, pin), lambda: canvas.toggle_pin(pin))
    if canvas.pins:
        menu.addAction("Unpin everything", lambda: canvas.set_pins(()))
    menu.addAction("Go to its longest event", lambda: canvas.go_to(canvas.longest_in(lane)))
    return menu


def _of_all(pane: TimelineParts) -> QMenu:
    canvas = pane.canvas
    menu = named_menu(pane.canvas, f"Timeline: {pane.runs.currentText()}")
    menu.addAction("Go to the slowest call\tJ", pane.go_to_slowest)
    menu.addAction("Show the slowest run\tShift+J", pane.show_slowest_run)
    menu.addAction("Select what is seen as range", lambda: canvas.select_span(canvas.seen()))
    menu.addAction("Show all of the time\tSpace", canvas.fit)
    return menu
