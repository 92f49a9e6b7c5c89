"""The start page: open files, recent sessions, what each file contains."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QShowEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from devtools_app.appearance.look import BASE_SIZE
from devtools_app.appearance.theme import FontSize, Theme, set_role
from devtools_app.sample_data import MODULE
from devtools_app.viewmodels.recent_list import recent_titles
from devtools_app.widgets.fields import PushButton
from devtools_app.widgets.flow_layout import FlowLayout
from devtools_app.widgets.text_label import text_label

_SHOWN_RECENTS = 6
_BELOW_LESSON = 7  # pixels
_WIDEST = 760  # of the page, for text of the usual size

# file, what it contains, how to get it
LESSONS = (
    (
        "program  .pte",
        "what runs: operators, delegates, memory plan, size",
        "program.write_to_file(open('model.pte', 'wb'))",
    ),
    (
        "ETRecord  .etrecord",
        "where it came from: graphs, modules, source lines",
        "to_edge_transform_and_lower(…, generate_etrecord=True)",
    ),
    (
        "trace  .etdp",
        "where the time went: events of each run",
        "load_program(…, enable_etdump=True).write_etdump_result_to_file(…)",
    ),
    (
        "debug buffer",
        "intermediate values of a traced run",
        "opened together with its trace",
    ),
    (
        "external data  .ptd",
        "weights kept outside the program",
        "opened together with its program",
    ),
    (
        "bundled program  .bpte",
        "a program with inputs and expected outputs",
        "serialize_from_bundled_program_to_flatbuffer(…)",
    ),
)


class StartPage(QScrollArea):
    """Shown while nothing is open.

    Args:
        theme: look of the window
        actions: of the buttons: open, open_folder, compile, sample
        open_recent: opens one of the recent sessions
    """

    def __init__(
        self,
        theme: Theme,
        actions: dict[str, Callable[[], object]],
        open_recent: Callable[[tuple[str, ...]], object],
    ) -> None:
        super().__init__()
        self._theme = theme
        self._actions = actions
        self._open_recent = open_recent
        self._recents: tuple[tuple[str, ...], ...] = ()
        self._stale = False  # the page offers others than those
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setAccessibleName("Start page")
        theme.follow(self._rebuild, size_only=True)
        self._rebuild()

    def show_recents(self, recents: tuple[tuple[str, ...], ...]) -> None:
        """Offer other recent sessions; the page is built again once it is seen."""
        if recents == self._recents:
            return
        self._recents = recents
        if self.isVisible():
            self._rebuild()
        else:  # a session is being opened, and the page is behind it
            self._stale = True

    @override
    def showEvent(self, event: QShowEvent) -> None:
        if self._stale:
            self._rebuild()
        super().showEvent(event)

    def _rebuild(self) -> None:
        self._stale = False
        page = QWidget()
        page.setObjectName("canvasGround")
        page.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        inner = QWidget()
        inner.setMaximumWidth(_WIDEST * self._theme.size // BASE_SIZE)
        layout = QVBoxLayout(inner)
        layout.setSpacing(8)
        layout.addStretch(1)
        layout.addWidget(text_label(self._theme, "ETScope", FontSize.LARGE, strong=True))
        layout.addWidget(
            self._quiet("Drop ExecuTorch files here, one or all of a run together. Any release.")
        )
        layout.addSpacing(4)
        layout.addLayout(self._buttons())
        if self._recents:
            layout.addSpacing(16)
            layout.addWidget(text_label(self._theme, "Recent", strong=True))
            shown = self._recents[:_SHOWN_RECENTS]
            for paths, title in zip(shown, recent_titles(shown), strict=True):
                layout.addWidget(self._recent(paths, title))
        layout.addSpacing(16)
        layout.addWidget(text_label(self._theme, "What each file contains", strong=True))
        layout.addLayout(self._lessons())
        layout.addStretch(2)
        outer = QHBoxLayout(page)
        outer.addStretch(1)
        outer.addWidget(inner, 10)
        outer.addStretch(1)
        self.setWidget(page)

    def _buttons(self) -> FlowLayout:
        line = FlowLayout(space=8, line_space=8)
        offers = [
            ("Open files…", "open"),
            ("Open folder…", "open_folder"),
            ("Compile…", "compile"),
        ]
        if MODULE.is_file():
            offers.append(("Open the sample", "sample"))
            offers.append(("Take the tour", "tour"))
        for text, name in offers:
            button = PushButton(text)
            button.setAccessibleName(text)
            set_role(button, "primary", "true" if name == "open" else None)
            button.clicked.connect(lambda _on=False, name=name: self._actions[name]())
            line.addWidget(button)
        return line

    def _recent(self, paths: tuple[str, ...], title: str) -> QWidget:
        button = PushButton(title.replace("&", "&&"))
        button.setAccessibleName(f"Open {title}")
        button.setToolTip("\n".join(paths))
        button.setMaximumWidth((_WIDEST - 40) * self._theme.size // BASE_SIZE)
        set_role(button, "link", "true")
        button.clicked.connect(lambda: self._open_recent(paths))
        return button

    def _lessons(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(20)
        grid.setVerticalSpacing(1)
        grid.setColumnStretch(1, 1)
        for number, (file, content, call) in enumerate(LESSONS):
            name = text_label(self._theme, file)
            name.setWordWrap(False)
            code = self._quiet(call, self._theme.mono(FontSize.SMALL))
            code.setContentsMargins(0, 0, 0, _BELOW_LESSON)
            row = 2 * number
            grid.addWidget(name, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(text_label(self._theme, content), row, 1)
            grid.addWidget(code, row + 1, 1)
        return grid

    def _quiet(self, text: str, font: QFont | None = None) -> QLabel:
        label = text_label(self._theme, text)
        if font is not None:
            label.setFont(font)
        set_role(label, "role", "muted")
        return label
