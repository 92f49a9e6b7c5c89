"""Text that is cut without a sign: widgets that are too small for their words."""

from __future__ import annotations

import re

from PySide6.QtGui import QFontMetrics, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QComboBox,
    QLabel,
    QPushButton,
    QToolButton,
    QWidget,
)

from devtools_app.widgets.elided_label import ElidedLabel
from devtools_app.widgets.link_button import LinkButton
from devtools_app.widgets.link_row import LinkRow
from devtools_app.widgets.toolbar_combo import ToolbarCombo

_SLACK = 2  # pixels by which a hint may round


def cut_texts(root: QWidget) -> list[str]:
    """Return the words of visible widgets below one that do not fit, and are not elided by it."""
    found = []
    for widget in root.findChildren(QWidget):
        if not widget.isVisible() or widget.visibleRegion().isEmpty():
            continue
        if (isinstance(widget, QLabel) and _label_is_cut(widget)) or (
            isinstance(widget, QAbstractButton) and _button_is_cut(widget)
        ):
            found.append(f"{type(widget).__name__} {widget.text()[:40]!r}")
        elif isinstance(widget, QComboBox) and _combo_is_cut(widget):
            found.append(f"{type(widget).__name__} {widget.currentText()[:40]!r}")
    return found


def _label_is_cut(label: QLabel) -> bool:
    whole = label.text().replace("\u200b", "")
    if isinstance(label, ElidedLabel) or not whole or label.toolTip() == whole:
        return False
    if label.wordWrap():
        if whole.startswith("<"):  # rich text
            return label.heightForWidth(label.width()) > label.height() + _SLACK
        words = re.split(r"[\s\u200b]+", label.text())
        longest = max(map(QFontMetrics(label.font()).horizontalAdvance, words))
        low = label.heightForWidth(label.width()) > label.height() + _SLACK
        return low or longest > label.width() + _SLACK
    return label.sizeHint().width() > label.width() + _SLACK


def _button_is_cut(button: QAbstractButton) -> bool:
    if isinstance(button, LinkRow) or not button.text():
        return False
    if isinstance(button, LinkButton):  # wraps
        return button.heightForWidth(button.width()) > button.height() + _SLACK
    if isinstance(button, QToolButton):
        shown = button.toolButtonStyle() is not Qt.ToolButtonStyle.ToolButtonIconOnly
        return (shown or button.icon().isNull()) and _too_narrow(button)
    return isinstance(button, (QPushButton, QCheckBox)) and _too_narrow(button)


def _too_narrow(button: QAbstractButton) -> bool:
    words = button.text().replace("&&", "&")
    needs = QFontMetrics(button.font()).horizontalAdvance(words)
    low = QFontMetrics(button.font()).height() > button.height() + _SLACK
    return low or needs > button.width() + _SLACK


def _combo_is_cut(combo: QComboBox) -> bool:
    if isinstance(combo, ToolbarCombo):  # elides
        return False
    needs = QFontMetrics(combo.font()).horizontalAdvance(combo.currentText())
    return needs > combo.width() - 24 and not combo.toolTip()
