"""Light or dark, fonts and icons; switches while the window is open."""

from __future__ import annotations

import logging
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory, QWidget

from devtools_app.appearance.colours import DARK, LIGHT, Palette, mix
from devtools_app.appearance.icon_set import ICON_SIDE, draw_icon
from devtools_app.appearance.look import BASE_SIZE, LARGEST, SMALLEST, ThemeMode
from devtools_app.appearance.restyling import Call, Restyling
from devtools_app.appearance.stylesheet import style_sheet

if TYPE_CHECKING:  # brings numpy along, which no widget of the window itself needs
    from devtools_app.appearance.paint_theme import CanvasColours

_LOG = logging.getLogger(__name__)
FONTS = Path(__file__).parent / "fonts"
_SANS = ("Inter", "Segoe UI", "SF Pro Text", "Noto Sans", "DejaVu Sans", "JetBrains Mono")
_OUTLINED = ("QCheckBox", "QAbstractSpinBox", "QComboBox")  # by Fusion, not the style sheet
_FUSION_OUTLINE = 140  # percent by which an outline is darker than the ground
_MONO = ("JetBrains Mono", "Cascadia Mono", "SF Mono", "DejaVu Sans Mono")
_EFFECTS = (  # of menus, lists and tips: nothing moves by itself
    Qt.UIEffect.UI_AnimateMenu,
    Qt.UIEffect.UI_FadeMenu,
    Qt.UIEffect.UI_AnimateCombo,
    Qt.UIEffect.UI_AnimateTooltip,
    Qt.UIEffect.UI_FadeTooltip,
    Qt.UIEffect.UI_AnimateToolBox,
)


class FontSize(str, Enum):
    """The text sizes; one figure of a page at most is a headline."""

    SMALL = "small"
    NORMAL = "normal"
    LARGE = "large"
    HEADLINE = "headline"


_SCALE = {
    FontSize.SMALL: 11 / 13,
    FontSize.NORMAL: 1.0,
    FontSize.LARGE: 16 / 13,
    FontSize.HEADLINE: 24 / 13,
}


class Theme(QObject):
    """The look of the application.

    Signals:
        changed(): palette or font size have changed; read colours and icons again. Emitted once
            what can be seen is restyled, soon after the change

    Attributes:
        palette: the colours in use
    """

    changed = Signal()

    def __init__(
        self, app: QApplication, mode: ThemeMode = ThemeMode.SYSTEM, size: int = BASE_SIZE
    ) -> None:
        super().__init__(app)
        self._app = app
        self._mode = mode
        self._size = _clamped(size)
        self._icons: dict[tuple[str, str, int], QIcon] = {}  # by name, colour and size
        self._used: dict[tuple[str, str], None] = {}  # names and tones, drawn ahead in a new theme
        self._canvas: CanvasColours | None = None
        self._restyling = Restyling(app, self)
        self.palette: Palette = LIGHT
        load_fonts()
        for effect in _EFFECTS:
            QApplication.setEffectEnabled(effect, False)
        app.setStyle(QStyleFactory.create("Fusion"))
        self._take_palette()
        self._restyling.begin(style_sheet(self.palette, self.icon_side))
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._system_changed)

    @property
    def mode(self) -> ThemeMode:
        """Return how light or dark is chosen."""
        return self._mode

    @property
    def size(self) -> int:
        """Return the size of normal text in logical pixels."""
        return self._size

    @property
    def scale(self) -> float:
        """Return the size of normal text beside that of the design."""
        return self._size / BASE_SIZE

    @property
    def canvas(self) -> CanvasColours:
        """Return colours and fonts for the canvases."""
        if self._canvas is None:
            self._canvas = _canvas_colours(self.palette, self.sans(), self.mono())
        return self._canvas

    def set_mode(self, mode: ThemeMode) -> None:
        """Use the light palette, the dark one, or that of the system."""
        if mode is not self._mode:
            self._mode = mode
            self._change()

    def set_size(self, size: int) -> None:
        """Change the size of normal text; small and large text follow."""
        size = _clamped(size)
        if size != self._size:
            self._size = size
            self._change(size=True)

    def sans(self, size: FontSize = FontSize.NORMAL, *, strong: bool = False) -> QFont:
        """Return the font of the interface."""
        return _font(_SANS, self.pixels(size), strong, QFont.StyleHint.SansSerif)

    def mono(self, size: FontSize = FontSize.NORMAL, *, strong: bool = False) -> QFont:
        """Return the font for code, names and numbers; slightly smaller, since it is wider."""
        pixels = max(SMALLEST, self.pixels(size) - 1)
        return _font(_MONO, pixels, strong, QFont.StyleHint.Monospace)

    def pixels(self, size: FontSize = FontSize.NORMAL) -> int:
        """Return a text size in logical pixels."""
        return round(self._size * _SCALE[size])

    @property
    def icon_side(self) -> int:
        """Return the width and height of icons in logical pixels.

        They grow half as much as the text: buttons beside a list have no more room.
        """
        return round(ICON_SIDE * (1 + (self.scale - 1) / 2))

    def icon(self, name: str, tone: str = "") -> QIcon:
        """Return an icon in the colour of a tone, by default that of text."""
        colour = self.palette.tone(tone)
        self._used[name, tone] = None
        key = (name, colour, self.icon_side)
        if key not in self._icons:
            faint = mix(colour, self.palette.raised, 0.4)
            self._icons[key] = draw_icon(name, colour, faint, self.icon_side, _ratios())
        return self._icons[key]

    def _system_changed(self) -> None:
        if self._mode is ThemeMode.SYSTEM:
            self._change()

    @property
    def busy(self) -> bool:
        """Return whether widgets, above all those not on the screen, still follow a change."""
        return self._restyling.busy

    def follow(self, call: Call, *, size_only: bool = False) -> None:
        """Call a method of a widget soon after each change, first if it can be seen.

        What is cheap, or belongs to no widget, is connected to ``changed`` instead.

        Args:
            call: the method
            size_only: after a change of the text size, whatever the colours
        """
        self._restyling.follow(call, size_only=size_only)

    def _change(self, *, size: bool = False) -> None:
        self._take_palette()
        then = (*(partial(self.icon, *one) for one in self._used), self.changed.emit)
        self._restyling.set_rules(style_sheet(self.palette, self.icon_side), then, size=size)

    def _take_palette(self) -> None:
        self.palette = DARK if self._is_dark() else LIGHT
        self._canvas = None
        self._app.setPalette(qt_palette(self.palette))
        for name in _OUTLINED:
            self._app.setPalette(_with_outlines(self.palette), name)  # pyright: ignore[reportArgumentType]  # the stub wants bytes, Qt takes str
        self._app.setFont(self.sans())

    def _is_dark(self) -> bool:
        if self._mode is ThemeMode.SYSTEM:
            scheme = QGuiApplication.styleHints().colorScheme()
            return scheme == Qt.ColorScheme.Dark
        return self._mode is ThemeMode.DARK


def _with_outlines(palette: Palette) -> QPalette:
    """Return the palette of fields that Fusion outlines in a darker tone of the ground.

    On a dark background that tone is invisible.
    """
    found = qt_palette(palette)
    found.setColor(QPalette.ColorRole.Window, QColor(palette.edge).lighter(_FUSION_OUTLINE))
    return found


def _clamped(size: int) -> int:
    return min(LARGEST, max(SMALLEST, size))


def _ratios() -> tuple[float, ...]:
    screens = {screen.devicePixelRatio() for screen in QGuiApplication.screens()}
    return tuple(sorted({1.0, 2.0, *screens}))


def _font(families: tuple[str, ...], pixels: int, strong: bool, hint: QFont.StyleHint) -> QFont:
    return QFont(_shared_font(families, pixels, strong, hint))  # one's own to change


@cache
def _shared_font(
    families: tuple[str, ...], pixels: int, strong: bool, hint: QFont.StyleHint
) -> QFont:
    font = QFont()
    font.setFamilies(list(families))
    font.setStyleHint(hint)
    font.setPixelSize(pixels)
    for feature in ("calt", "liga"):  # in both fonts they make a multiplication sign of 0x
        font.setFeature(QFont.Tag(feature), 0)
    if strong:
        font.setWeight(QFont.Weight.DemiBold)
    return font


def load_fonts() -> tuple[str, ...]:
    """Register the bundled fonts with Qt; return the families that were loaded."""
    families: list[str] = []
    for path in sorted(FONTS.glob("*.[ot]tf")):
        number = QFontDatabase.addApplicationFont(str(path))
        if number < 0:
            _LOG.warning("the font %s cannot be used", path.name)
            continue
        families += QFontDatabase.applicationFontFamilies(number)
    return tuple(dict.fromkeys(families))


def qt_palette(palette: Palette) -> QPalette:
    """Return our colours as Qt's roles, for everything the style sheet does not define."""
    result = QPalette()
    role = QPalette.ColorRole
    colours = {
        role.Window: palette.raised,
        role.WindowText: palette.text,
        role.Base: palette.raised,
        role.AlternateBase: palette.sunken,
        role.Text: palette.text,
        role.Button: palette.raised,
        role.ButtonText: palette.text,
        role.BrightText: palette.on_accent,
        role.ToolTipBase: palette.raised,
        role.ToolTipText: palette.text,
        role.PlaceholderText: palette.muted,
        role.Highlight: palette.accent,
        role.HighlightedText: palette.on_accent,
        role.Link: palette.accent,
        role.LinkVisited: palette.accent,
        role.Light: palette.hover,
        role.Midlight: palette.line,
        role.Mid: palette.edge,
        role.Dark: palette.edge,
        role.Shadow: palette.edge,
        role.Accent: palette.accent,
    }
    for which, colour in colours.items():
        result.setColor(which, QColor(colour))
    faint = QColor(mix(palette.muted, palette.raised, 0.6))
    for which in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, which, faint)
    return result


def _canvas_colours(palette: Palette, font: QFont, mono: QFont) -> CanvasColours:
    from devtools_app.appearance.paint_theme import CanvasColours

    return CanvasColours(
        surface=palette.surface,
        raised=palette.raised,
        line=palette.line,
        text=palette.text,
        muted=palette.muted,
        accent=palette.accent,
        good=palette.good,
        warn=palette.warn,
        bad=palette.bad,
        not_delegated=palette.plain_edge,
        backends=palette.backends,
        sequential=palette.sequential,
        diverging=palette.diverging,
        font=font,
        mono=mono,
    )


def set_role(widget: QWidget, name: str, value: object) -> None:
    """Set a property used by the style sheet and reapply the style."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return  # it is styled when it is first measured or shown
    widget.style().unpolish(widget)
    widget.style().polish(widget)
