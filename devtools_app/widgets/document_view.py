"""Shows a section of the packaged documents: text, tables, code, images of its width."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QImage,
    QImageReader,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import QTextBrowser
from typing_extensions import override

from devtools_app.appearance.theme import Theme
from devtools_app.jobs.latest import Latest, Token

_MARGIN = 10
_EDGE = 4  # beside an image
_LINE_PERCENT = 118.0
_IMAGE = "!["
_KEPT = 24  # images that have been read, of a megabyte or two


class _Image(NamedTuple):
    path: str
    room: int  # pixels of its largest width
    ratio: float  # of those to the pixels of the window


def _read(folder: Path, wanted: _Image, token: Token) -> QImage:
    token.check()
    image = QImage(str(folder / wanted.path))
    if image.width() > wanted.room:  # Qt itself would leave out rows to shrink it
        image = image.scaledToWidth(wanted.room, Qt.TransformationMode.SmoothTransformation)
    image.setDevicePixelRatio(wanted.ratio)
    return image


class DocumentView(QTextBrowser):
    """A page of Markdown without network access; links are reported.

    Signals:
        followed(link): the user chose a link
    """

    followed = Signal(str)

    def __init__(self, theme: Theme, folder: Path, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._folder = folder
        self._markdown = ""
        self._fitted = 0  # the width that images are shrunk to
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._refit)
        self._images: dict[_Image, QImage] = {}
        self._wanted: list[_Image] = []  # of the page, not read yet
        self._ask = QTimer(self, singleShot=True, interval=0)
        self._ask.timeout.connect(self._read_images)
        self._reading = Latest("images of the guide", self)
        self._reading.ready.connect(self._show_images)
        self.setObjectName("plain")
        self.setAccessibleName(name)
        self.setOpenLinks(False)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.anchorClicked.connect(lambda url: self.followed.emit(url.toString()))
        theme.follow(self._render_again)

    def show_markdown(self, text: str) -> None:
        """Show a document from its beginning."""
        self._markdown = text
        # a bar that comes and goes while images are fitted would change the width they fit
        fixed = _IMAGE in text
        policies = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policies.ScrollBarAlwaysOn if fixed else policies.ScrollBarAsNeeded
        )
        self._render()
        self.verticalScrollBar().setValue(0)

    @override
    def loadResource(self, type: int, name: QUrl | str) -> object:
        url = QUrl(name) if isinstance(name, str) else name
        if type == QTextDocument.ResourceType.ImageResource.value and url.isRelative():
            return self._image(url.path())
        return None

    @property
    def _room(self) -> int:
        """Return the largest width of an image, in pixels of the screen."""
        within = max(self.viewport().width() - 2 * (_MARGIN + _EDGE), 1)
        return round(within * self.devicePixelRatioF())

    def _image(self, path: str) -> QImage:
        """Return an image no wider than the view, at first an empty one of its size.

        To read and to shrink one takes 40 ms, for which a thread is there.
        """
        ratio = self.devicePixelRatioF()
        key, room = _Image(path, self._room, ratio), self._room
        if key in self._images:
            return self._images[key]
        self._wanted.append(key)
        self._ask.start()
        size = QImageReader(str(self._folder / path)).size()
        if size.width() > room:
            size = QSize(room, max(round(size.height() * room / size.width()), 1))
        empty = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
        empty.fill(Qt.GlobalColor.transparent)
        empty.setDevicePixelRatio(ratio)
        return empty

    def _read_images(self) -> None:
        wanted, folder = tuple(dict.fromkeys(self._wanted)), self._folder
        self._reading.submit(lambda token: [(one, _read(folder, one, token)) for one in wanted])

    def _show_images(self, found: list[tuple[_Image, QImage]]) -> None:
        kind = QTextDocument.ResourceType.ImageResource.value
        for key, image in found:
            self._images[key] = image
            if len(self._images) > _KEPT:
                self._images.pop(next(iter(self._images)))
            self.document().addResource(kind, QUrl(key[0]), image)
        self._wanted.clear()
        self.document().markContentsDirty(0, self.document().characterCount())

    @override
    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        if _IMAGE in self._markdown and e.oldSize().width() != e.size().width():
            self._later.start(0)

    def _refit(self) -> None:
        """Shrink images to the width of the view, at the same place of the text."""
        if self.viewport().width() != self._fitted:
            self._render_again()

    def _render_again(self) -> None:
        """Render at the same place of the text."""
        bar = self.verticalScrollBar()
        share = bar.value() / max(bar.maximum(), 1)
        self._render()
        bar.setValue(round(share * bar.maximum()))

    def _render(self) -> None:
        self._fitted = self.viewport().width()
        self._wanted.clear()
        self._reading.cancel()
        document = self.document()
        document.setDocumentMargin(_MARGIN)
        document.setDefaultFont(self._theme.sans())
        document.clear()  # and what it has loaded
        document.setMarkdown(self._markdown)
        # Qt leaves the cursor at the end, and scrolls there when the size changes
        self.moveCursor(QTextCursor.MoveOperation.Start)
        self._style()

    def _style(self) -> None:
        """Use the mono font for code and the accent for links, as everywhere in the window."""
        for at, length, style in self._fragments():
            changed = QTextCharFormat()
            if style.fontFixedPitch():
                changed.setFont(self._theme.mono())
            if style.isAnchor():
                changed.setForeground(QColor(self._theme.palette.accent))
            if changed.propertyCount():
                self._merge(at, length, changed)
        block = self.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel():
                self._merge(block.position(), block.length() - 1, _bold(self._theme.sans()))
            self._space(block)
            block = block.next()

    def _space(self, block: QTextBlock) -> None:
        """Set the space around a paragraph, heading or entry; not in tables and code."""
        cursor, style = QTextCursor(block), block.blockFormat()
        if cursor.currentTable() is not None or style.nonBreakableLines():
            return
        line = self._theme.sans().pixelSize()
        heading, in_list = bool(style.headingLevel()), block.textList() is not None
        spaced = QTextBlockFormat()
        spaced.setTopMargin(line if heading and block.position() else 0)
        spaced.setBottomMargin(line * (0.25 if in_list else 0.4 if heading else 0.7))
        spaced.setLineHeight(
            _LINE_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value
        )
        cursor.mergeBlockFormat(spaced)

    def _merge(self, at: int, length: int, style: QTextCharFormat) -> None:
        cursor = QTextCursor(self.document())
        cursor.setPosition(at)
        cursor.setPosition(at + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(style)

    def _fragments(self) -> list[tuple[int, int, QTextCharFormat]]:
        """Return place, length and style of each run of letters of one style."""
        found: list[tuple[int, int, QTextCharFormat]] = []
        block: QTextBlock = self.document().begin()
        while block.isValid():
            part = block.begin()
            while not part.atEnd():
                fragment = part.fragment()
                found.append((fragment.position(), fragment.length(), fragment.charFormat()))
                part += 1
            block = block.next()
        return found


def _bold(font: QFont) -> QTextCharFormat:
    style = QTextCharFormat()
    style.setFontWeight(QFont.Weight.DemiBold)
    style.setProperty(QTextCharFormat.Property.FontPixelSize, round(font.pixelSize() * 1.15))
    return style
