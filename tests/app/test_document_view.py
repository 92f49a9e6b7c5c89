"""The view of a document: images are fitted once for each width."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage

from devtools_app.widgets.document_view import DocumentView

pytestmark = pytest.mark.gui


def test_document_with_images_is_rendered_once_for_a_width(theme, qtbot, tmp_path) -> None:
    image = QImage(1200, 700, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    assert image.save(str(tmp_path / "a.png"))
    view = DocumentView(theme, tmp_path, "page")
    qtbot.addWidget(view)
    view.resize(300, 400)
    view.show()
    rendered = []
    render = view._render
    view._render = lambda: (rendered.append(view.viewport().width()), render())
    view.show_markdown("# Title\n\n" + "words and more words\n\n" * 30 + "![a](a.png)\n\n" * 3)
    qtbot.wait(200)
    assert len(rendered) <= 2
    view.resize(360, 400)
    qtbot.waitUntil(lambda: rendered[-1] > rendered[0])
    qtbot.wait(200)
    assert len(rendered) <= 3
    assert view.horizontalScrollBar().maximum() == 0
