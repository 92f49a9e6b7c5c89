"""The number of recipe edits beside the button that compiles them; what they are on hover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize
from PySide6.QtGui import QPainter, QPaintEvent
from typing_extensions import override

from devtools_app.appearance.theme import FontSize, Theme
from devtools_app.state.state import State
from devtools_app.state.variant_steps import shown_variant
from devtools_app.widgets.badge import paint_badge
from devtools_app.widgets.fields import PushButton
from schema.objects.plural import plural

if TYPE_CHECKING:  # the window is on the screen before anything of the inspector is loaded
    from inspector.recipes.compile_job import CompileJob

_PAD = 10
_MOST_LINES = 24


class EditChip(PushButton):
    """Counts the edits that are not compiled yet; pressing it shows the recipe."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[CompileJob, CompileJob] | None = None
        self.count = 0
        self.setObjectName("chip")
        theme.changed.connect(self.updateGeometry)

    def show_state(self, state: State) -> int:
        """Count the edits of the recipe of a state; return how many there are."""
        one = shown_variant(state)
        pair = None if one is None or not one.changed else (one.recipe.job, one.draft.present)
        if pair != self._shown:
            self._shown = pair
            self._describe(pair)
        return self.count

    def _describe(self, pair: tuple[CompileJob, CompileJob] | None) -> None:
        self.count = 0
        if pair is not None:
            from devtools_app.viewmodels.recipe_form import diff_lines, differences

            self.count = len(differences(*pair))
            lines = diff_lines(*pair)
            more = [f"and {len(lines) - _MOST_LINES:,} more"] if len(lines) > _MOST_LINES else []
            diff = "\n".join((*lines[:_MOST_LINES], *more))
            self.setText(plural(self.count, "edit"))
            self.setToolTip(f"Not compiled yet:\n{diff}")
            self.setAccessibleName(f"{plural(self.count, 'edit')} of the recipe, not compiled yet")
            self.setAccessibleDescription(diff)
        self.updateGeometry()
        self.update()

    @override
    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + 2 * _PAD, metrics.height() + 8)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            box = self.rect().adjusted(1, 1, -1, -1).toRectF()
            paint_badge(painter, box, self.text(), self._theme, "accent")
            if self.hasFocus() or self.underMouse():
                painter.setPen(self._theme.palette.accent)
                painter.setFont(self._theme.sans(FontSize.SMALL))
                painter.drawRoundedRect(box.adjusted(1.5, 1.5, -1.5, -1.5), 3, 3)
