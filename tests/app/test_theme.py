"""Colours that can be read, maps that rise evenly, a look that switches while open."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtGui import QFontInfo, QIcon, QImage, QPalette, QRawFont
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QSpinBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot
from typing_extensions import override

from devtools_app.appearance import slices
from devtools_app.appearance.colours import (
    CONTRAST_SHAPE,
    CONTRAST_TEXT,
    DARK,
    LIGHT,
    backend_index,
    contrast,
    hexadecimal,
    ink_on,
    luminance,
    mix,
    rgb,
)
from devtools_app.appearance.icon_set import draw_icon, icon_names, icon_pixmap
from devtools_app.appearance.look import BASE_SIZE, LARGEST, SMALLEST, ThemeMode
from devtools_app.appearance.stylesheet import style_sheet
from devtools_app.appearance.theme import FontSize, Theme, load_fonts
from devtools_app.shell.status_bar import StatusLine
from devtools_app.state.state import OVERLAYS
from devtools_app.widgets.badge import Badge
from devtools_app.widgets.fields import PushButton, ToolButton
from devtools_app.widgets.toolbar_combo import ToolbarCombo

pytestmark = pytest.mark.gui
PALETTES = [LIGHT, DARK]
GROUNDS = ["surface", "raised", "sunken", "hover", "selection", "plain"]
BACKENDS = ["XnnpackBackend", "VulkanBackend", "CoreMLBackend", "QnnBackend", "MPSBackend", "x", ""]


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("ink", ["text", "muted", "accent", "good", "warn", "bad"])
def test_text_can_be_read_on_every_ground(palette, ground, ink):
    assert contrast(getattr(palette, ink), getattr(palette, ground)) >= CONTRAST_TEXT


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_backend_names_can_be_read_and_outlines_seen(palette, backend):
    ink = palette.backend_ink(backend)
    for ground in (palette.raised, palette.surface, palette.sunken, palette.backend_fill(backend)):
        assert contrast(ink, ground) >= CONTRAST_TEXT
    assert contrast(palette.backend(backend), palette.raised) >= CONTRAST_SHAPE


def test_words_on_the_accent_can_be_read():
    for palette in PALETTES:
        assert contrast(palette.on_accent, palette.accent) >= CONTRAST_TEXT


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
def test_sequential_map_changes_lightness_evenly_and_stands_out_at_its_end(palette):
    table = palette.sequential
    assert table.shape == (256, 3)
    assert table.dtype == np.uint8
    light = np.array([luminance(hexadecimal(row)) for row in table.tolist()]) ** (1 / 3)
    steps = np.diff(light[::5])  # neighbours may differ by less than 8 bits can say
    assert (steps > 0).all() if palette.dark else (steps < 0).all()
    assert np.abs(steps).max() < 4 * np.abs(steps).mean()
    assert contrast(hexadecimal(table[255].tolist()), palette.surface) > 7


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
def test_diverging_map_has_a_neutral_middle_and_two_even_arms(palette):
    table = palette.diverging.astype(int)
    middle = table[127:129]
    assert np.ptp(middle, axis=1).max() <= 12
    assert table[0, 2] > table[0, 0]
    assert table[255, 0] > table[255, 2]
    arms = [luminance(hexadecimal(table[n].tolist())) for n in (0, 255)]
    assert abs(arms[0] - arms[1]) < 0.15


def test_maps_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        LIGHT.sequential[0, 0] = 1


@pytest.mark.parametrize("name", ["XnnpackBackend", "NewBackend", "", "π"])
def test_backend_index_is_stable_and_inside(name):
    assert backend_index(name) == backend_index(name)
    assert 0 <= backend_index(name) < len(LIGHT.backends)


def test_colour_arithmetic():
    assert rgb("#0a10ff") == (10, 16, 255)
    assert hexadecimal((10, 16, 300)) == "#0a10ff"
    assert mix("#000000", "#ffffff", 0.5) == "#808080"
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert ink_on("#ffffff") != ink_on("#000000")


def test_bundled_fonts_are_used(theme: Theme):
    assert {"Inter", "JetBrains Mono"} <= set(load_fonts())
    assert QFontInfo(theme.sans()).family() == "Inter"
    assert QFontInfo(theme.mono()).family() == "JetBrains Mono"
    assert QFontInfo(theme.mono()).fixedPitch()


@pytest.mark.parametrize("letters", ["0123456789.", "abcµ", "áßçЖΩ→≤…–·×"])
def test_bundled_fonts_have_the_letters(theme: Theme, letters):
    for font in (theme.sans(), theme.sans(strong=True), theme.mono()):
        raw = QRawFont.fromFont(font)
        assert [letter for letter in letters if not raw.supportsCharacter(ord(letter))] == []


def test_theme_switches_while_open(theme: Theme, qtbot, qapp):
    label = QLabel("x")
    qtbot.addWidget(label)
    label.show()
    with qtbot.waitSignal(theme.changed):
        theme.set_mode(ThemeMode.DARK)
    assert theme.palette is DARK
    qtbot.waitUntil(lambda: not theme.busy)
    assert label.palette().color(QPalette.ColorRole.WindowText).name() == DARK.text
    assert DARK.raised in qapp.styleSheet()
    with qtbot.waitSignal(theme.changed):
        theme.set_mode(ThemeMode.LIGHT)
    qtbot.waitUntil(lambda: not theme.busy)
    assert label.palette().color(QPalette.ColorRole.WindowText).name() == LIGHT.text


@pytest.mark.parametrize("change", ["mode", "size"])
def test_each_widget_is_restyled_at_most_twice(theme: Theme, qtbot, qapp, change: str) -> None:
    """Qt restyles a widget once for each of its ancestors where a style sheet is replaced."""
    nested = [QWidget()]
    qtbot.addWidget(nested[0])
    for _ in range(12):
        nested.append(QWidget(nested[-1]))
    label = QLabel("words", nested[-1])
    nested[0].show()
    theme.set_mode(ThemeMode.LIGHT)
    qtbot.waitUntil(lambda: not theme.busy)
    seen = Counter[QObject]()

    class Restyled(QObject):
        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            seen[watched] += event.type() == QEvent.Type.StyleChange
            return False

    counting = Restyled()
    qapp.installEventFilter(counting)
    theme.set_mode(ThemeMode.DARK) if change == "mode" else theme.set_size(BASE_SIZE + 4)
    qtbot.waitUntil(lambda: not theme.busy)
    qapp.removeEventFilter(counting)
    assert [0 < seen[one] <= 2 for one in (*nested, label)] == [True] * 14
    shown = theme.palette
    assert label.palette().color(QPalette.ColorRole.WindowText).name() == shown.text
    theme.set_mode(ThemeMode.LIGHT)
    theme.set_size(BASE_SIZE)


@pytest.mark.parametrize("change", ["mode", "size"])
def test_what_is_seen_is_not_laid_out_for_each_that_is_restyled(
    theme: Theme, qtbot, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Each restyled child asks for it; the layout of the window measures every panel again."""
    qtbot.waitUntil(lambda: not theme.busy)
    laid_out = Counter[str]()

    class Page(QWidget):
        @override
        def event(self, event: QEvent) -> bool:
            laid_out["times"] += event.type() == QEvent.Type.LayoutRequest
            return super().event(event)

    page = Page()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    stack = QStackedWidget()
    column.addWidget(stack)
    for _ in range(2):  # one of them is seen
        part = QWidget()
        rows = QVBoxLayout(part)
        stack.addWidget(part)
        for _ in range(150):
            one = QLabel("words")
            rows.addWidget(one)
    page.show()
    qtbot.waitExposed(page)
    height = page.minimumSizeHint().height()
    monkeypatch.setattr(slices, "_SECONDS", 0.0)  # each widget is a slice
    laid_out.clear()
    theme.set_mode(ThemeMode.DARK) if change == "mode" else theme.set_size(BASE_SIZE + 6)
    qtbot.waitUntil(lambda: not theme.busy)
    assert 1 <= laid_out["times"] <= 10
    if change == "size":
        assert page.minimumSizeHint().height() > height
    theme.set_mode(ThemeMode.LIGHT)
    theme.set_size(BASE_SIZE)


def test_rules_that_were_used_again_meanwhile_restyle_nobody_at_once(
    theme: Theme, qtbot, qapp
) -> None:
    """Qt restyles every widget that it has cached rules for as it takes new ones."""
    qtbot.waitUntil(lambda: not theme.busy)
    page = QWidget()
    labels = [QLabel("words", page) for _ in range(30)]
    qtbot.addWidget(page)
    page.show()
    restyled = Counter[str]()

    class Restyled(QObject):
        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            restyled["times"] += event.type() == QEvent.Type.StyleChange
            return False

    counting = Restyled()
    first, second = list(theme._restyling._replace(style_sheet(DARK)))  # pyright: ignore[reportPrivateUsage]
    first()
    for one in labels:  # as between two slices
        one.ensurePolished()
        qapp.style().polish(one)
    qapp.installEventFilter(counting)
    second()
    qapp.removeEventFilter(counting)
    theme.set_mode(ThemeMode.DARK)
    theme.set_mode(ThemeMode.LIGHT)
    qtbot.waitUntil(lambda: not theme.busy)
    assert restyled["times"] == 0


class _Sample(QLabel):
    """Draws in a colour of its own, and fails if asked to."""

    def __init__(self, theme: Theme, *, fails: bool = False) -> None:
        super().__init__("words")
        self._theme = theme
        self._fails = fails
        self.colours: list[str] = []
        self.sizes: list[int] = []
        theme.follow(self._restyle)
        theme.follow(self._refit, size_only=True)

    def _restyle(self) -> None:
        self.colours.append(self._theme.palette.text)
        if self._fails:
            raise ValueError("what a follower may do wrong")

    def _refit(self) -> None:
        self.sizes.append(self._theme.size)


_Pages = tuple[QStackedWidget, _Sample, _Sample]


def _pages(theme: Theme, qtbot: QtBot, *, fails: bool = False) -> _Pages:
    qtbot.waitUntil(lambda: not theme.busy)  # what is made meanwhile is told of that, too
    pages = QStackedWidget()
    qtbot.addWidget(pages)
    samples = (_Sample(theme, fails=fails), _Sample(theme))
    for one in samples:
        pages.addWidget(one)
    qtbot.waitUntil(lambda: not theme.busy)
    pages.show()
    samples[1].ensurePolished()
    return pages, *samples


def test_what_is_seen_follows_a_theme_before_what_is_not(theme: Theme, qtbot, qapp) -> None:
    pages, seen, hidden = _pages(theme, qtbot)
    order: list[QObject] = []

    class Restyled(QObject):
        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.StyleChange and watched in (seen, hidden):
                order.append(watched)
            return False

    watching = Restyled()
    qapp.installEventFilter(watching)
    theme.set_mode(ThemeMode.DARK)
    assert not pages.updatesEnabled()  # no picture of half of the change
    assert (seen.colours, order) == ([], [])  # the event that changed it took no time for them
    qtbot.waitUntil(lambda: not theme.busy)
    qapp.removeEventFilter(watching)
    assert order == [seen, hidden]
    assert seen.colours == hidden.colours == [DARK.text]
    assert pages.updatesEnabled()
    assert (seen.sizes, hidden.sizes) == ([], [])
    theme.set_size(BASE_SIZE + 3)
    theme.set_size(BASE_SIZE + 4)  # before the first is done: what is left of it is left out
    qtbot.waitUntil(lambda: not theme.busy)
    assert seen.sizes == hidden.sizes == [BASE_SIZE + 4]
    assert pages.updatesEnabled()
    theme.set_size(BASE_SIZE)


def test_a_window_asked_to_paint_amid_a_change_is_painted_after_it(theme: Theme, qtbot) -> None:
    pages, seen, _ = _pages(theme, qtbot)
    qtbot.waitExposed(pages)
    paints: list[QEvent.Type] = []

    class Painted(QObject):
        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            paints.extend([event.type()] if event.type() == QEvent.Type.Paint else [])
            return False

    watching = Painted()
    seen.installEventFilter(watching)
    seen.update()
    theme.set_mode(ThemeMode.DARK)
    QCoreApplication.sendPostedEvents(pages, QEvent.Type.UpdateRequest.value)
    assert not paints  # the request is spent
    qtbot.waitUntil(lambda: not theme.busy)
    seen.update()
    qtbot.waitUntil(lambda: bool(paints))


def test_a_widget_that_fails_keeps_no_other_from_following_a_theme(theme: Theme, qtbot) -> None:
    pages, _, hidden = _pages(theme, qtbot, fails=True)
    with qtbot.captureExceptions() as failures:
        theme.set_mode(ThemeMode.DARK)
        qtbot.waitUntil(lambda: not theme.busy)
    assert [one[0] for one in failures] == [ValueError]
    assert hidden.colours == [DARK.text]
    assert pages.updatesEnabled()


def test_theme_same_mode_tells_nobody(theme: Theme, qtbot):
    with qtbot.assertNotEmitted(theme.changed):
        theme.set_mode(ThemeMode.LIGHT)
        theme.set_size(BASE_SIZE)


def test_theme_canvas_colours_follow(theme: Theme):
    light = theme.canvas
    theme.set_mode(ThemeMode.DARK)
    assert (light.surface, theme.canvas.surface) == (LIGHT.surface, DARK.surface)
    assert theme.canvas is theme.canvas


@pytest.mark.parametrize(("asked", "given"), [(3, SMALLEST), (15, 15), (99, LARGEST)])
def test_theme_size_stays_readable(theme: Theme, asked, given):
    theme.set_size(asked)
    assert theme.size == given
    small, large = theme.pixels(FontSize.SMALL), theme.pixels(FontSize.LARGE)
    assert small < given < large


def test_theme_sizes_are_those_of_the_design(theme: Theme):
    assert [theme.pixels(size) for size in FontSize] == [
        11,
        13,
        16,
        24,
    ]  # the last of one figure of a page


@pytest.mark.parametrize("name", icon_names())
@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_icon_is_drawn_in_the_colour_asked_for(qapp, name, ratio):
    pixmap = icon_pixmap(name, "#ff0000", 16, ratio)
    assert pixmap.width() == round(16 * ratio)
    image = pixmap.toImage()
    size = range(image.width())
    solid = [image.pixelColor(x, y) for x in size for y in size]
    solid = [colour for colour in solid if colour.alpha() > 200]
    assert solid
    if name != "etscope":
        assert all(colour.red() > 200 and colour.green() < 60 for colour in solid)


def test_icons_follow_the_theme(theme: Theme):
    light = theme.icon("open").pixmap(16, 16).toImage()
    theme.set_mode(ThemeMode.DARK)
    assert theme.icon("open").pixmap(16, 16).toImage() != light


def test_tones_have_colours():
    for tone in ("good", "warn", "bad", "accent", "muted", "backend:XnnpackBackend"):
        assert LIGHT.tone(tone) != LIGHT.text
    assert LIGHT.tone("") == LIGHT.text
    assert len({name for name, _ in OVERLAYS}) == len(OVERLAYS)


@pytest.mark.qt_log_ignore("This plugin does not support")  # raising and grabbing, without a screen
@pytest.mark.parametrize("mode", [ThemeMode.LIGHT, ThemeMode.DARK])
@pytest.mark.parametrize("kind", [QCheckBox, QSpinBox, QDoubleSpinBox])
def test_outlines_of_fields_are_seen_on_their_ground(qapp, qtbot, mode, kind):
    theme = Theme(qapp, mode)
    ground = QWidget()
    qtbot.addWidget(ground)
    field = kind(ground)
    field.setGeometry(10, 10, 120, 30)
    ground.setObjectName("panel")
    ground.resize(140, 50)
    ground.show()
    picture = ground.grab().toImage()
    middle = [picture.pixelColor(x, 25).name() for x in range(8, 30)]
    seen = max(contrast(colour, theme.palette.raised) for colour in middle)
    assert seen >= contrast(theme.palette.edge, theme.palette.raised) * 0.9


def test_status_line_and_menu_headings_keep_their_contrast_after_a_switch(qtbot, theme) -> None:
    line = StatusLine(theme)
    qtbot.addWidget(line)
    for mode, palette in ((ThemeMode.DARK, DARK), (ThemeMode.LIGHT, LIGHT)):
        theme.set_mode(mode)
        qtbot.waitUntil(lambda: not theme.busy)
        for label in line.findChildren(QLabel):
            inks = re.findall(r"color:(#[0-9a-f]{6})", label.text())
            assert all(contrast(ink, palette.sunken) >= CONTRAST_TEXT for ink in inks)
        job = next(one for one in line.findChildren(QLabel) if "idle" in one.text())
        assert palette.muted in job.text()
        heading = re.search(r"QMenu::item:disabled [^}]*color: (#\w+)", style_sheet(palette))
        assert heading is not None
        assert contrast(heading[1], palette.raised) >= CONTRAST_TEXT
    line.shut_down()


@pytest.mark.parametrize("tone", ["good", "warn", "bad"])
def test_badges_of_a_meaning_differ_without_colour(qtbot, theme, tone) -> None:
    def shape(one: str) -> bytes:
        badge = Badge(theme, "12 %", one)
        qtbot.addWidget(badge)
        image = badge.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)
        rows = range(image.height())
        dark = [[image.pixelColor(x, y).value() < 190 for x in range(4, 14)] for y in rows]
        return repr(dark).encode()

    others = {shape(one) for one in ("good", "warn", "bad", "") if one != tone}
    assert shape(tone) not in others


def test_icons_in_use_are_drawn_before_those_who_show_them_are_told(
    qtbot, theme: Theme, monkeypatch
) -> None:
    used = [("pin", ""), ("plus", "muted")]
    before = [theme.icon(*one).pixmap(16).toImage() for one in used]
    order: list[str] = []

    def draw(name: str, *rest) -> QIcon:
        order.append(name)
        return draw_icon(name, *rest)

    monkeypatch.setattr("devtools_app.appearance.theme.draw_icon", draw)
    theme.changed.connect(lambda: order.append("told"))
    theme.set_mode(ThemeMode.DARK if theme.palette is LIGHT else ThemeMode.LIGHT)
    qtbot.waitUntil(lambda: not theme.busy)
    after = [theme.icon(*one).pixmap(16).toImage() for one in used]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert {order.index(name) < order.index("told") for name, _tone in used} == {True}
    assert [order.count(name) for name, _tone in used] == [1, 1]


@pytest.mark.qt_log_ignore("This plugin does not support")  # raising and grabbing, without a screen
@pytest.mark.parametrize("mode", [ThemeMode.LIGHT, ThemeMode.DARK])
@pytest.mark.parametrize("kind", ["plain", "editable", "toolbar"])
def test_lists_of_choices_have_a_frame(qtbot, theme: Theme, mode: ThemeMode, kind: str) -> None:
    theme.set_mode(mode)
    qtbot.waitUntil(lambda: not theme.busy)
    box = ToolbarCombo(theme, "show", "what is shown") if kind == "toolbar" else QComboBox()
    box.setEditable(kind == "editable")
    for text in ("one", "two", "three"):
        box.addItem(text)
    qtbot.addWidget(box)
    box.show()
    box.showPopup()
    shown = box.view().window().grab().toImage()
    box.hidePopup()
    right, low = shown.width() - 1, shown.height() - 1
    edges = [(right // 2, 0), (right // 2, low), (0, low // 2), (right, low // 2)]
    assert {shown.pixelColor(*at).name() for at in edges} == {theme.palette.edge}


def test_icons_grow_with_the_text(qtbot, theme: Theme) -> None:
    buttons = (ToolButton(), PushButton("pinned"))
    for button in buttons:
        qtbot.addWidget(button)
        button.setIcon(theme.icon("pin"))
        button.show()
    assert {button.iconSize().width() for button in buttons} == {16}
    theme.set_size(2 * theme.size)
    qtbot.waitUntil(lambda: not theme.busy)
    assert {button.iconSize().width() for button in buttons} == {24}
    drawn = theme.icon("pin").pixmap(24, 24)
    assert drawn.width() == 24 * drawn.devicePixelRatio()  # drawn at that size, not enlarged
    theme.set_size(theme.size // 2)
    qtbot.waitUntil(lambda: not theme.busy)
    assert {button.iconSize().width() for button in buttons} == {16}


class _Sized(PushButton):
    """Sets its font and then calls another one's method."""

    def __init__(self, theme: Theme, then: Callable[[], object]) -> None:
        super().__init__("words")
        self._theme, self._then = theme, then
        theme.follow(self._fit)
        self._fit()

    def _fit(self) -> None:
        self.setFont(self._theme.sans())
        self._then()


def test_what_appears_while_the_text_size_changes_has_the_new_size(qtbot, theme: Theme) -> None:
    whole = QWidget()
    qtbot.addWidget(whole)
    hidden = QWidget(whole)
    seen = _Sized(theme, hidden.show)  # once its rules are replaced, before those of the hidden one
    late = _Sized(theme, bool)
    QVBoxLayout(hidden).addWidget(late)
    column = QVBoxLayout(whole)
    column.addWidget(seen)
    column.addWidget(hidden)
    whole.show()
    hidden.hide()
    theme.set_size(BASE_SIZE + 5)
    qtbot.waitUntil(lambda: not theme.busy and hidden.isVisible())
    assert {one.font().pixelSize() for one in (seen, late)} == {BASE_SIZE + 5}
