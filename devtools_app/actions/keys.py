"""The keys of the window by heading, generated from the table of actions."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence

from devtools_app.actions.table import ACTIONS, MENUS

# keys that belong to a widget and not to the window; (key, what it does)
LOCAL_KEYS = {
    "Everywhere": (
        ("Tab  Menu", "next control; what a right click opens"),
        ("Ctrl+1 … Ctrl+0", "go to a bookmark"),
    ),
    "Tables and trees": (
        ("↑ ↓", "move; the other views follow"),
        ("Return", "go to the row in its view"),
        ("S", "sort by the column here; a tree by the next"),
        ("Shift+S", "reverse the order of a tree"),
        ("Ctrl+C", "copy the selected rows, unrounded"),
        ("← →", "close and open a node of a tree"),
    ),
    "Canvases": (
        ("← ↑ → ↓", "select the next item"),
        ("W A S D", "pan"),
        ("Wheel + -", "zoom at the pointer"),
        ("F", "go to the selection"),
        ("Space", "fit everything"),
    ),
    "Timeline": (
        ("W S", "zoom; A D pan"),
        ("Shift+drag  R", "select a range; range tool"),
        ("F M P", "zoom to it, mark it, pin its name"),
        ("/  F3  Shift+F3", "find, next, previous"),
        ("J  Shift+J", "slowest call, slowest run"),
        ("[  ]", "run before, run after"),
    ),
    "Graph": (
        ("Return  C", "open or close a box; close the one around"),
        ("Backspace", "select the box around"),
        ("Shift+E  Shift+C", "open all boxes, close all"),
        ("Shift+M", "hide the boxes of modules"),
        ("Shift+R", "open the boxes around the selection"),
        ("[  ]", "highlight what leads here, what follows"),
        ("Ctrl+click", "highlight the path from the selection"),
        ("X  Z", "show only this; with its neighbours"),
        ("Shift+X", "show the whole graph again"),
        ("Shift+T", "nodes, edges and boundaries as tables"),
        ("F3  Shift+F3", "next and previous match"),
    ),
    "Other views": (
        ("E", "operators: every event of the trace"),
        ("Shift+D", "size: find duplicates"),
        ("Ctrl+Return", "source: open in editor; generate: start"),
        ("Ctrl+G", "structure: go to an offset"),
        ("Del", "remove a gate, close a session"),
    ),
}


def named_keys() -> set[str]:
    """Return every key of the sheet on its own, such as `Ctrl+B`."""
    return {key for lines in sheet_sections().values() for keys, _ in lines for key in keys.split()}


def sheet_sections() -> dict[str, list[tuple[str, str]]]:
    """Return (key, description) pairs by heading, generated from the table of actions."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for menu in MENUS:
        lines = [
            ("  ".join(native(key) for key in spec.keys), spec.text.rstrip("…"))
            for spec in ACTIONS
            if spec.menu == menu and spec.keys
        ]
        sections[menu] = lines
        if menu == "View":
            sections["Views"] = [("Alt+1 … Alt+0", "a tab of the group in front")]
    sections.update({title: list(lines) for title, lines in LOCAL_KEYS.items()})
    return {title: lines for title, lines in sections.items() if lines}


def native(key: str) -> str:
    """Return a key as this system writes it."""
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)
