"""The page of a view about a job: a bar, the error and the output of the job, stacked."""

from __future__ import annotations

from PySide6.QtWidgets import QLayout, QStackedWidget, QVBoxLayout, QWidget


def set_job_page(view: QWidget, pages: QStackedWidget, empty: QWidget, page: QWidget) -> None:
    """Fill a view with two pages, one without and one with a job."""
    pages.addWidget(empty)
    pages.addWidget(page)
    layout = QVBoxLayout(view)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(pages)


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
