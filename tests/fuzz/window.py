"""Random clicks and keys on the window: python -m tests.fuzz.window --steps 2500.

The events are Qt's own, sent to whatever can be seen, in dialogs and menus too. What fails is an
exception that reaches the window's hook, an error in the log, no answer for seconds, or a window
that is not painted any more. Dialogs for files give names in a folder that is deleted at the end;
no other program is started.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QContextMenuEvent, QDesktopServices, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QWidget
from shiboken6 import isValid
from typing_extensions import override

PAUSE_MS = 12  # between two events
PAINT_MS = 5000  # in which a window is painted that was asked to
HANG_S = 20.0
_SIZES = ((1280, 720), (1440, 900), (800, 600), (2000, 1200))
_KEYS = (
    "Escape Return Space Tab Backtab Up Down Left Right Home End PageDown F W A S D J M R X Z E C "
    "BracketLeft BracketRight Slash F3 F6 Plus Minus Backspace Delete B Comma Period Question F1"
)
_WITH_CONTROL = "P J Z Y D F Period Backslash Tab R E C Plus Minus B S A"
_LEFT, _CONTROL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier
_SHIFT, _NONE = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.NoModifier


class Errors(logging.Handler):
    """Keeps what was logged as an error, with the event before it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.event = ""
        self.found: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        text = logging.Formatter("%(message)s").format(record)
        self.found.append(f"after {self.event}: {text}")


class Painted(QObject):
    """Counts how often a window is painted."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.count = 0
        window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.Paint
        return False


class RandomEvents:
    """Sends events to a window, one after the other, each from Qt's event loop.

    Attributes:
        errors: what came of them
    """

    def __init__(self, seed: int, steps: int, folder: Path) -> None:
        self._random = random.Random(seed)
        self._left = steps
        self._folder = folder
        self._window: QWidget | None = None
        self._front: QWidget | None = None
        self.errors = Errors()
        logging.getLogger().addHandler(self.errors)
        self._kinds: Sequence[tuple[int, Callable[[QWidget], str]]] = (
            (45, self._click), (7, self._double_click), (8, self._menu), (6, self._wheel),
            (4, self._drag), (16, self._key), (8, self._control), (2, self._workspace),
            (3, self._view), (1, self._resize),
        )  # fmt: skip

    def start(self, groups: Sequence[Sequence[str]]) -> None:
        """Open each group of files as a session once there is a window, and begin."""
        from devtools_app.shell.window import MainWindow

        windows = [one for one in QApplication.topLevelWidgets() if isinstance(one, MainWindow)]
        if not windows:
            QTimer.singleShot(100, lambda: self.start(groups))
            return
        window = self._window = windows[0]
        saved = str(self._folder / "saved")
        for name, answer in (
            ("getOpenFileNames", ([], "")), ("getExistingDirectory", ""),
            ("getSaveFileName", (saved, "")),
        ):  # fmt: skip
            setattr(QFileDialog, name, lambda *_given, answer=answer, **_named: answer)
        for group in groups:
            window.controller.open(group)
        QTimer.singleShot(1500, self._next)

    def _next(self) -> None:
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        if self._left <= 0:
            self._finish()
            return
        self._left -= 1
        QTimer.singleShot(PAUSE_MS, self._next)  # before the event, which may open a dialog
        self._act()

    def _finish(self) -> None:
        """Ask for one more picture of the window, and end."""
        assert self._window is not None
        painted = Painted(self._window)
        self._window.update()

        def end() -> None:
            if painted.count == 0:
                self.errors.found.append("at the end the window was not painted any more")
            os._exit(self.report())  # jobs that run are not waited for

        QTimer.singleShot(PAINT_MS, end)

    def report(self) -> int:
        """Print the errors; return the exit code."""
        sys.stdout.write("".join(f"{one}\n" for one in self.errors.found))
        sys.stdout.write(f"{len(self.errors.found)} errors\n")
        sys.stdout.flush()
        shutil.rmtree(self._folder, ignore_errors=True)
        return 1 if self.errors.found else 0

    def _act(self) -> None:
        popup = QApplication.activePopupWidget()
        if isinstance(popup, QMenu) and self._random.random() < 0.8:
            self.errors.event = self._in_menu(popup)
            return
        weights, kinds = zip(*self._kinds, strict=True)
        act = self._random.choices(kinds, weights)[0]
        target = self._target()
        self.errors.event = f"{act.__name__} on {type(target).__name__}"
        self.errors.event += f" {act(target)}"
        modal = QApplication.activeModalWidget()
        if modal is not None and self._random.random() < 0.15:
            QTest.keyClick(modal, Qt.Key.Key_Escape)

    def _target(self) -> QWidget:
        front = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        if front is None:
            seen = (one for one in QApplication.topLevelWidgets() if one.isVisible())
            front = self._random.choice([one for one in seen if not isinstance(one, QMenu)])
        self._front = front  # Qt's own dialogs: their children's wrappers end with this one
        inside = front.findChildren(QWidget)
        usable = [one for one in inside if one.isVisible() and one.isEnabled() and one.width() > 3]
        return self._random.choice(usable or [front])

    def _place(self, target: QWidget) -> QPoint:
        width, height = max(target.width(), 1), max(target.height(), 1)
        return QPoint(self._random.randrange(width), self._random.randrange(height))

    def _in_menu(self, menu: QMenu) -> str:
        actions = [one for one in menu.actions() if one.isEnabled() and not one.isSeparator()]
        actions = [one for one in actions if one.text().replace("&", "") != "Quit"]
        if not actions or self._random.random() < 0.2:
            QTest.keyClick(menu, Qt.Key.Key_Escape)
            return "Esc in a menu"
        action = self._random.choice(actions)
        name = f"the menu's {action.text()}"
        if action.menu() is not None:
            menu.setActiveAction(action)
        else:
            QTest.mouseClick(menu, _LEFT, pos=menu.actionGeometry(action).center())
        return name

    def _click(self, target: QWidget) -> str:
        modifier = self._random.choices((_NONE, _CONTROL, _SHIFT), (85, 7, 8))[0]
        QTest.mouseClick(target, _LEFT, modifier, self._place(target))
        return ""

    def _double_click(self, target: QWidget) -> str:
        at = self._place(target)
        QTest.mouseClick(target, _LEFT, _NONE, at)
        if isValid(target):  # the first click may have ended it
            QTest.mouseDClick(target, _LEFT, _NONE, at)  # Qt's sends the second press alone
        return ""

    def _menu(self, target: QWidget) -> str:
        at, by_mouse = self._place(target), QContextMenuEvent.Reason.Mouse
        QApplication.sendEvent(target, QContextMenuEvent(by_mouse, at, target.mapToGlobal(at)))
        return ""

    def _wheel(self, target: QWidget) -> str:
        at, turn = QPointF(self._place(target)), QPoint(0, self._random.choice((-360, -120, 120)))
        phase, button = Qt.ScrollPhase.NoScrollPhase, Qt.MouseButton.NoButton
        where = QPointF(target.mapToGlobal(at))
        event = QWheelEvent(at, where, QPoint(), turn, button, _NONE, phase, False)
        QApplication.sendEvent(target, event)
        return ""

    def _drag(self, target: QWidget) -> str:
        start, end = self._place(target), self._place(target)
        QTest.mousePress(target, _LEFT, _NONE, start)
        if isValid(target):
            QTest.mouseMove(target, end)
            QTest.mouseRelease(target, _LEFT, _NONE, end)
        return ""

    def _key(self, target: QWidget) -> str:
        name = self._random.choice(_KEYS.split())
        modifier = _SHIFT if self._random.random() < 0.1 else _NONE
        QTest.keyClick(
            QApplication.focusWidget() or target, getattr(Qt.Key, f"Key_{name}"), modifier
        )
        return name

    def _control(self, target: QWidget) -> str:
        name = self._random.choice(_WITH_CONTROL.split())
        more = _SHIFT if name != "S" and self._random.random() < 0.2 else _NONE
        key = getattr(Qt.Key, f"Key_{name}")
        QTest.keyClick(QApplication.focusWidget() or target, key, _CONTROL | more)
        return f"Ctrl+{name}"

    def _workspace(self, _target: QWidget) -> str:
        key = self._random.choice((Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3))
        QTest.keyClick(self._window, key, _CONTROL | Qt.KeyboardModifier.AltModifier)
        return key.name

    def _view(self, _target: QWidget) -> str:
        window = self._window
        names = [name for tabs in window.tabs.values() for name in tabs]
        name = self._random.choice([*names, *window.docks.by_name])
        window.open_view(name)
        return name

    def _resize(self, _target: QWidget) -> str:
        self._window.resize(*self._random.choice(_SIZES))
        return ""


def main() -> int:
    """Copy the files, open the window and send it events."""
    parser = argparse.ArgumentParser(description="Send random events to the window.")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*", help="a session each; the sample by default")
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    folder = Path(tempfile.mkdtemp(prefix="window"))
    os.environ["ETSCOPE_SETTINGS"], os.environ["HOME"] = str(folder / "settings.json"), str(folder)
    groups = [(str(_copied(Path(one), folder)),) for one in options.files]
    os.chdir(folder)
    from devtools_app import app
    from devtools_app.sample_data import SAMPLE

    QDesktopServices.openUrl = lambda _address: True
    app.create_application()
    events = RandomEvents(options.seed, options.steps, folder)
    opened = groups or [(str(_copied(SAMPLE, folder)),)]
    QTimer.singleShot(0, lambda: events.start(opened))
    app.run(())
    return events.report()


def _copied(path: Path, folder: Path) -> Path:
    target = folder / str(len(list(folder.iterdir()))) / path.name
    target.parent.mkdir()
    return Path(shutil.copytree(path, target) if path.is_dir() else shutil.copy(path, target))


if __name__ == "__main__":
    sys.exit(main())
