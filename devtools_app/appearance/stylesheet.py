"""The style sheet: differences from Fusion with our palette."""

from __future__ import annotations

from devtools_app.appearance.colours import Palette, mix
from devtools_app.appearance.icon_set import ICON_SIDE

_SHEET = """
* { outline: 0; }
QMainWindow, QDialog { background: %(raised)s; }
QMainWindow::separator { background: %(line)s; width: 1px; height: 1px; }
QMainWindow::separator:hover { background: %(accent)s; }
QDialog#palette { border: 1px solid %(edge)s; }
QToolTip { background: %(raised)s; color: %(text)s; border: 1px solid %(edge)s; padding: 4px 6px; }

QMenuBar { background: %(raised)s; border-bottom: 1px solid %(line)s; padding: 0 8px; }
QMenuBar::item { padding: 5px 10px; background: transparent; }
QMenuBar::item:selected { background: %(hover)s; border-radius: 4px; }
QMenu { background: %(raised)s; border: 1px solid %(edge)s; padding: 4px; }
QMenu::item { padding: 5px 28px 5px 8px; border-radius: 3px; }
QMenu::item:selected { background: %(selection)s; color: %(text)s; }
QMenu::item:disabled { color: %(muted)s; }
QMenu::separator { height: 1px; background: %(line)s; margin: 4px 8px; }
QMenu::icon { padding-left: 6px; }

QToolBar { background: %(raised)s; border: 0; border-bottom: 1px solid %(line)s;
    padding: 7px; spacing: 8px; }
QStatusBar { background: %(sunken)s; border-top: 1px solid %(line)s; }
QStatusBar::item { border: 0; }

QDockWidget { color: %(muted)s; }
QWidget#dockTitle { background: %(raised)s; }
QWidget#panel, QWidget#panel QScrollArea, QScrollArea > QWidget > QWidget#page
    { background: %(raised)s; }
QWidget#canvasGround { background: %(surface)s; }
QFrame#rule { background: %(line)s; border: 0; max-height: 1px; min-height: 1px; }
QFrame#rule { background: %(line)s; border: 0; }
QFrame#card { background: %(raised)s; border: 1px solid %(line)s; border-radius: 4px; }
QFrame#notice { background: %(plain)s; border: 0; border-left: 3px solid %(plain_edge)s;
    border-radius: 3px; }

QTabBar, QFrame#tabRow { background: %(sunken)s; }
QFrame#foldBar QToolButton { padding: 2px; }
QFrame#foldBar { background: %(raised)s; border-top: 1px solid %(line)s; }
QTabBar::tab { background: transparent; color: %(muted)s; padding: 8px 7px 7px 7px;
    border: 0; border-top: 2px solid transparent; border-right: 1px solid transparent; }
QTabBar::tab:hover { color: %(text)s; }
QTabBar::tab:selected { background: %(surface)s; color: %(text)s;
    border-top: 2px solid %(accent)s; border-right: 1px solid %(line)s; }
QTabBar::tab:focus:selected { text-decoration: underline; }
QMainWindow > QTabBar::tab { padding: 5px 10px; }

QLineEdit, QPlainTextEdit, QTextEdit, QTextBrowser {
    background: %(field)s; border: 1px solid %(edge)s; border-radius: 4px;
    selection-background-color: %(accent)s; selection-color: %(on_accent)s; }
QLineEdit { padding: 3px 6px; }
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QTextBrowser:focus
    { border-color: %(accent)s; }
QComboBox QLineEdit, QAbstractSpinBox QLineEdit { border: 0; padding: 0; background: transparent; }
QLineEdit[wrong="true"] { border-color: %(bad)s; }
QPlainTextEdit#plain, QTextBrowser#plain { border: 0; border-radius: 0;
    background: %(raised)s; }
QPlainTextEdit#command { background: %(sunken)s; border: 1px solid %(line)s; }
QPlainTextEdit#code { border: 0; border-radius: 0; background: %(surface)s; }

QPushButton { background: %(raised)s; border: 1px solid %(edge)s; border-radius: 4px;
    padding: 4px 12px; }
QPushButton:hover { background: %(hover)s; }
QPushButton:pressed { background: %(selection)s; }
QPushButton:focus { border-color: %(accent)s; }
QPushButton:disabled { color: %(faint)s; border-color: %(line)s; }
QPushButton:default, QPushButton[primary="true"] { background: %(accent)s;
    color: %(on_accent)s; border-color: %(accent)s; }
QPushButton:default:hover, QPushButton[primary="true"]:hover { background: %(accent_hover)s; }
QPushButton:default:focus, QPushButton[primary="true"]:focus { border: 1px solid %(text)s; }
QPushButton:default:disabled, QPushButton[primary="true"]:disabled {
    background: %(raised)s; color: %(faint)s; border-color: %(line)s; }
QPushButton[link="true"] { background: transparent; border: 1px solid transparent;
    color: %(accent)s; padding: 2px 4px; text-align: left; }
QPushButton[link="true"]:hover { text-decoration: underline; }
QPushButton[link="true"]:focus { border-color: %(accent)s; }
QFrame#segments { background: %(surface)s; border: 1px solid %(line)s; border-radius: 5px; }
QPushButton[segment="true"] { background: transparent; border-color: transparent;
    color: %(muted)s; padding: 3px 10px; text-align: left; }
QPushButton[segment="true"]:hover { color: %(text)s; }
QPushButton[segment="true"]:checked { background: %(selection)s; color: %(text)s; }
QPushButton[segment="true"]:focus { border-color: %(accent)s; }
QPushButton#goto { background: %(surface)s; color: %(muted)s; text-align: left;
    padding: 4px 10px; }
QPushButton#goto:hover, QPushButton#goto:focus { border-color: %(accent)s; }

QToolButton { background: transparent; border: 1px solid transparent; border-radius: 4px;
    padding: 3px; }
QToolButton:hover { background: %(hover)s; }
QToolButton:pressed, QToolButton:checked { background: %(selection)s; }
QToolButton:focus { border-color: %(accent)s; }
QToolButton::menu-indicator { image: none; }

QAbstractItemView { background: %(raised)s; alternate-background-color: %(raised)s;
    border: 0; selection-background-color: %(selection)s; selection-color: %(text)s; }
QTableView { gridline-color: %(line)s; }
QTableView::item { padding: 0 8px; border: 0; border-bottom: 1px solid %(line)s; }
QTreeView::item { padding: 4px 2px; border: 0; }
QListView::item { border: 0; }
QAbstractScrollArea::corner { background: transparent; border: 0; }
QAbstractItemView::item:selected { background: %(selection)s; color: %(text)s; }
QAbstractItemView::item:hover:!selected { background: %(hover)s; }
QAbstractItemView:focus { border: 0; }
QComboBox QAbstractItemView, QComboBox QAbstractItemView:focus { border: 1px solid %(edge)s; }
QHeaderView { background: %(sunken)s; border: 0; }
QHeaderView::section { background: %(sunken)s; color: %(muted)s; border: 0;
    border-bottom: 1px solid %(line)s; padding: 5px 8px; }
QHeaderView::section:hover { color: %(text)s; }
QTableCornerButton::section { background: %(sunken)s; border: 0; }

QScrollBar { background: transparent; border: 0; }
QScrollBar:vertical { width: 10px; margin: 0; }
QScrollBar:horizontal { height: 10px; margin: 0; }
QScrollBar::handle { background: %(edge)s; border-radius: 3px; margin: 2px; }
QScrollBar::handle:hover { background: %(muted)s; }
QScrollBar::handle:vertical { min-height: 28px; }
QScrollBar::handle:horizontal { min-width: 28px; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QSplitter::handle { background: %(line)s; }
QSplitter::handle:hover { background: %(accent)s; }
QProgressBar { background: %(sunken)s; border: 0; border-radius: 2px; max-height: 4px; }
QProgressBar::chunk { background: %(accent)s; border-radius: 2px; }

QLabel[role="muted"] { color: %(muted)s; }
QLabel[role="bad"] { color: %(bad)s; }
QLabel[role="warn"] { color: %(warn)s; }
QLabel[role="good"] { color: %(good)s; }
QLabel[role="accent"] { color: %(accent)s; }
"""


_ICONS = """
QToolButton, QPushButton, QTabBar, QAbstractItemView { icon-size: %dpx; }
QWidget#dockTitle QToolButton { icon-size: %dpx; }
"""  # those of panels at the sides would widen their column


def style_sheet(palette: Palette, icon_side: int = ICON_SIDE) -> str:
    """Return the style sheet of the application for a palette and a size of icons in pixels."""
    roles = {
        name: getattr(palette, name) for name in palette.__dataclass_fields__ if name != "backends"
    }
    roles["faint"] = mix(palette.muted, palette.raised, 0.6)
    roles["field"] = palette.sunken if palette.dark else palette.raised
    roles["accent_hover"] = mix(palette.accent, palette.text, 0.85)
    return _SHEET % roles + (_ICONS % (icon_side, ICON_SIDE) if icon_side != ICON_SIDE else "")
