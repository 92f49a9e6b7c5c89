"""The page of a view about a job: a bar, the error and the output of the job, stacked."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLayout, QStackedWidget, QVBoxLayout, QWidget

from devtools_app.widgets.first_focus import first_focus


def set_job_page(
    view: QWidget, pages: QStackedWidget, empty: QWidget, bar: QLayout, *rows: QWidget
) -> None:
    """Fill a view with two pages: one without a job, one of a bar and rows, the last stretched.

    Called before the bar and the rows are filled: Qt styles all that is inside of a widget again
    whenever the widget is put into another one.
    """
    layout = QVBoxLayout(view)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(pages)
    page = QWidget()
    pages.addWidget(empty)
    pages.addWidget(page)
    inside = QVBoxLayout(page)
    inside.setContentsMargins(0, 0, 0, 0)
    inside.setSpacing(0)
    inside.addLayout(bar)
    for row in rows[:-1]:
        inside.addWidget(row)
    inside.addWidget(rows[-1], 1)


def show_job_page(pages: QStackedWidget, number: int) -> None:
    """Bring a page to the front; the keyboard goes along to what the page is for."""
    focus = QApplication.focusWidget()
    moved = focus is not None and pages.isAncestorOf(focus) and number != pages.currentIndex()
    pages.setCurrentIndex(number)
    page = pages.currentWidget() if moved else None
    if page is not None and (found := first_focus(page)) is not None:
        found.setFocus(Qt.FocusReason.OtherFocusReason)
