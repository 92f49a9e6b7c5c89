"""The command ``etscope``: verbs without Qt, a window only where one can be."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devtools_app import __main__ as entry
from devtools_app.views import VIEWS as VIEW_TABLE
from inspector.cli import VERBS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "devtools_app" / "sample_data" / "keyword_net"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    values = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        env=values,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def windows(monkeypatch) -> list:
    """Calls that would have opened a window."""
    from devtools_app import app

    calls = []

    def run(paths, watch=False, tick=""):
        calls.append((paths, watch, tick) if tick else (paths, watch))
        return 0

    monkeypatch.setattr(app, "run", run)
    return calls


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        ([], ([], False)),
        (["open"], ([], False)),
        (["--watch"], ([], True)),
        (["x.pte", "y.etdp"], (["x.pte", "y.etdp"], False)),
        (["open", "x.pte", "--watch"], (["x.pte"], True)),
        ([str(SAMPLE)], ([str(SAMPLE)], False)),
        (["--source-time-scale", "us"], ([], False, "us")),
        (["x.etdp", "--source-time-scale=cycles", "--watch"], (["x.etdp"], True, "cycles")),
    ],
)
def test_main_opens_the_window(windows, arguments, call):
    assert entry.main(arguments) == 0
    assert windows == [call]


@pytest.mark.parametrize("said", [[], ["fortnights"], ["="], ["x.pte"]])
def test_main_needs_a_unit_that_there_is(windows, capsys, said):
    assert entry.main(["x.pte", "--source-time-scale", *said]) == 2
    assert "ns, us, ms, s, cycles" in capsys.readouterr().err
    assert windows == []


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_main_hands_verbs_over(windows, monkeypatch, verb):
    from inspector import cli

    handed = []
    monkeypatch.setattr(cli, "main", lambda arguments, extra: handed.append(arguments) or 7)
    assert entry.main([verb, "x.pte"]) == 7
    assert handed == [[verb, "x.pte"]]
    assert windows == []


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["--version"], ["sumary"], ["--nonsense"]]
)
def test_main_hands_questions_and_near_misses_over(windows, monkeypatch, arguments):
    from inspector import cli

    monkeypatch.setattr(cli, "main", lambda _arguments, _extra: 2)
    assert entry.main(arguments) == 2
    assert windows == []


def test_main_unknown_option_of_the_window_is_refused(windows, capsys):
    assert entry.main(["open", "--fast"]) == 2
    assert "unknown option --fast" in capsys.readouterr().err
    assert windows == []


def test_main_without_display_says_so_in_one_sentence(windows, monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert entry.main([]) == 2
    error = capsys.readouterr().err
    assert error.startswith("etscope: no display")
    assert error.count("\n") == 1
    assert windows == []


@pytest.mark.parametrize(
    ("version", "python_version", "refused"),
    [
        ("6.12.0", (3, 11), True),
        ("6.13.1", (3, 10), True),
        ("6.12.0", (3, 12), False),
        ("6.11.3", (3, 11), False),
    ],
)
def test_main_refuses_the_qt_that_corrupts_memory(monkeypatch, version, python_version, refused):
    monkeypatch.setattr(entry, "_qt_version", lambda: version)
    monkeypatch.setattr(sys, "version_info", (*python_version, 0, "final", 0))
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert ("corrupts memory" in entry.why_no_window()) is refused


def test_main_without_qt_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(entry, "_qt_version", lambda: "")
    assert "pip install" in entry.why_no_window()


def test_verbs_do_not_import_qt():
    code = (
        "import sys; from devtools_app.__main__ import main\n"
        f"code = main(['summary', {str(SAMPLE / 'model.pte')!r}])\n"
        "assert code == 0, code\n"
        "assert not [name for name in sys.modules if name.startswith(('PySide6', 'shiboken6'))]\n"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.gui
def test_window_process_imports_nothing_heavy():
    code = (
        "import sys; from devtools_app.app import create_application, make_window\n"
        "app = create_application(); window = make_window(app)\n"
        "window.show(); app.processEvents()\n"
        "heavy = {'torch', 'pandas', 'pyqtgraph', 'networkx', 'compiler', 'runtime'}\n"
        "found = heavy & set(sys.modules)\n"
        "window.close()\n"
        "assert not found, found\n"
    )
    done = python(code, QT_QPA_PLATFORM="offscreen", ETSCOPE_SETTINGS="/nonexistent/settings.json")
    assert done.returncode == 0, done.stderr


@pytest.mark.gui
@pytest.mark.parametrize(
    "paths", [[], [str(SAMPLE)], ["/nowhere/x.pte"]], ids=["none", "sample", "bad"]
)
def test_window_process_ends_cleanly(paths, tmp_path):
    code = (
        "import sys; from PySide6.QtCore import QTimer\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from devtools_app import app\n"
        "from devtools_app.__main__ import main\n"
        "QTimer.singleShot(0, lambda: None)\n"
        "make = app.make_window\n"
        "def timed(*args, **kwargs):\n"
        "    window = make(*args, **kwargs)\n"
        "    QTimer.singleShot(700, window.close)\n"
        "    return window\n"
        "app.make_window = timed\n"
        f"sys.exit(main({paths!r}))\n"
    )
    done = python(
        code, QT_QPA_PLATFORM="offscreen", ETSCOPE_SETTINGS=str(tmp_path / "settings.json")
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "settings.json").exists()


@pytest.mark.gui
def test_types_of_qt_are_created_by_the_import_and_not_by_threads():
    code = (
        "import devtools_app.__main__; from PySide6 import QtCore, QtGui, QtWidgets\n"
        "print(*(name in vars(module) for module, name in ("
        "(QtCore, 'QBuffer'), (QtGui, 'QPdfWriter'), (QtWidgets, 'QWizard'))))\n"
    )
    assert python(code).stdout.split() == ["True"] * 3
    assert python(code, PYSIDE6_OPTION_LAZY="1").stdout.split() == ["False"] * 3


@pytest.mark.gui
def test_window_process_ends_while_a_thread_is_stuck(tmp_path):
    code = (
        "import sys, threading; from PySide6.QtCore import QTimer\n"
        "from devtools_app import app\n"
        "from devtools_app.__main__ import main\n"
        "app._JOIN_SECONDS = 0.2\n"
        "make = app.make_window\n"
        "def timed(*args, **kwargs):\n"
        "    window = make(*args, **kwargs)\n"
        "    stuck = threading.Event()\n"
        "    threading.Thread(target=stuck.wait, daemon=True, name='slow disk').start()\n"
        "    QTimer.singleShot(100, window.close)\n"
        "    return window\n"
        "app.make_window = timed\n"
        "import atexit; atexit.register(lambda: print('took Qt down'))\n"
        "sys.exit(main([]))\n"
    )
    done = python(
        code, QT_QPA_PLATFORM="offscreen", ETSCOPE_SETTINGS=str(tmp_path / "settings.json")
    )
    assert done.returncode == 0, done.stderr
    assert "slow disk" in done.stderr
    assert not done.stdout


@pytest.mark.gui
def test_qt_keeps_its_references_to_none():
    code = (
        "import sys; from PySide6.QtGui import QColor, QImage, QPainter, QPen\n"
        "image = QImage(8, 8, QImage.Format.Format_RGB32)\n"
        "before = sys.getrefcount(None)\n"
        "with QPainter(image) as painter:\n"
        "    for _ in range(300): painter.setPen(QPen(QColor('red')))\n"
        "lost = before - sys.getrefcount(None)\n"
        "assert lost < 100 or sys.version_info >= (3, 12), lost\n"
    )
    done = python(code, QT_QPA_PLATFORM="offscreen")
    assert done.returncode == 0, done.stderr


@pytest.mark.gui
def test_window_is_shown_before_readers_and_numpy_are_imported():
    code = (
        "import sys; from devtools_app.app import create_application, make_window\n"
        "app = create_application(); window = make_window(app)\n"
        "window.show(); app.processEvents()\n"
        "early = [name for name in sys.modules if name.split('.')[0] in ('numpy', 'inspector')]\n"
        "early += [name for name in sys.modules if name.startswith('devtools_app.views.')]\n"
        "window.close()\n"
        "light = {'inspector', 'inspector.tables', 'inspector.tables.selection',"
        " 'inspector.files', 'inspector.files.workspace_file', 'inspector.units'}\n"
        "assert {*early} - light == {'devtools_app.views.spec'}, early\n"
    )
    done = python(code, QT_QPA_PLATFORM="offscreen", ETSCOPE_SETTINGS="/nonexistent/settings.json")
    assert done.returncode == 0, done.stderr


@pytest.mark.gui
@pytest.mark.parametrize("view", VIEW_TABLE, ids=lambda view: view.name)
def test_view_table_says_what_the_modules_say(view):
    spec = importlib.import_module(f"devtools_app.views.{view.name}").SPEC
    for name in ("name", "title", "area", "icon", "without_session", "action"):
        assert getattr(spec, name) == getattr(view, name)
