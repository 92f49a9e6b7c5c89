"""The view of a document: images are fitted once for each width."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage

from devtools_app.widgets.document_view import DocumentView

pytestmark = pytest.mark.gui


def _view(theme, qtbot, folder, colour: str, image: tuple[int, int], size: tuple[int, int]):
    """Return a shown view of a size, in a folder with one image a.png of a colour."""
    drawn = QImage(*image, QImage.Format.Format_RGB32)
    drawn.fill(QColor(colour))
    assert drawn.save(str(folder / "a.png"))
    view = DocumentView(theme, folder, "page")
    qtbot.addWidget(view)
    view.resize(*size)
    view.show()
    return view


def test_document_with_images_is_rendered_once_for_a_width(theme, qtbot, tmp_path) -> None:
    view = _view(theme, qtbot, tmp_path, "white", (1200, 700), (300, 400))
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


@pytest.mark.parametrize("width", [200, 1200])
def test_images_are_read_in_a_thread_and_have_their_room_at_once(
    theme, qtbot, tmp_path, width: int
) -> None:
    view = _view(theme, qtbot, tmp_path, "red", (width, width // 2), (500, 900))
    view.show_markdown("# Title\n\n![a](a.png)\n")
    height = view.document().size().height()
    assert height > min(width, 400) // 2
    assert not _red(view)

    def is_seen() -> bool:
        return _red(view) > 1000

    qtbot.waitUntil(is_seen)
    assert view.document().size().height() == pytest.approx(height, abs=2)
    view.show_markdown("no image\n")
    view.show_markdown("# Again\n\n![a](a.png)\n")
    assert _red(view) > 1000  # it is kept
    view.resize(350, 900)
    qtbot.waitUntil(is_seen)


def _red(view: DocumentView) -> int:
    """Return how many pixels of a view are red."""
    shown = view.viewport().grab().toImage()
    points = ((x, y) for x in range(0, shown.width(), 2) for y in range(0, shown.height(), 2))
    return sum(shown.pixelColor(x, y) == QColor("red") for x, y in points)


@pytest.mark.parametrize("widths", [(60,), (60, 290), (300, 200), (20, 120, 400)])
@pytest.mark.parametrize("image", ["", "![a](a.png)\n\n"])
def test_document_begins_at_its_top_while_its_panel_slides_in(
    theme, qtbot, tmp_path, image: str, widths: tuple[int, ...]
) -> None:
    view = DocumentView(theme, tmp_path, "page")
    qtbot.addWidget(view)
    view.show_markdown("# Title\n\n" + image + "words and more words\n\n" * 60)
    for width in widths:
        view.resize(width, 400)
        view.show()
        qtbot.wait(20)
        assert view.verticalScrollBar().value() == 0
