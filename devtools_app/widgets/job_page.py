"""The page of a view about a job: a bar, the error and the output of the job, stacked."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLayout, QStackedWidget, QVBoxLayout, QWidget

from devtools_app.widgets.first_focus import first_focus


def set_job_page(view: QWidget, pages: QStackedWidget, empty: QWidget, page: QWidget) -> None:
    """Fill a view with two pages, one without and one with a job."""
    pages.addWidget(empty)
    pages.addWidget(page)
    layout = QVBoxLayout(view)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(pages)


def show_job_page(pages: QStackedWidget, number: int) -> None:
    """Bring a page to the front; the keyboard goes along to what the page is for."""
    focus = QApplication.focusWidget()
    moved = focus is not None and pages.isAncestorOf(focus) and number != pages.currentIndex()
    pages.setCurrentIndex(number)
    page = pages.currentWidget() if moved else None
    if page is not None and (found := first_focus(page)) is not None:
        found.setFocus(Qt.FocusReason.OtherFocusReason)


def job_page(bar: QLayout, *rows: QWidget) -> QWidget:
    """Return a page of a bar and rows; the last row is stretched."""
    page = QWidget()
    inside = QVBoxLayout(page)
    inside.setContentsMargins(0, 0, 0, 0)
    inside.setSpacing(0)
    inside.addLayout(bar)
    for row in rows[:-1]:
        inside.addWidget(row)
    inside.addWidget(rows[-1], 1)
    return page
