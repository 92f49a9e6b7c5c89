"""The GUI thread imports nothing while a session is opened and shown: it would wait for others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devtools_app.sample_data import LOOP

pytestmark = [pytest.mark.gui, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
SHOWN = """
import sys, threading
from importlib.abc import MetaPathFinder
from pathlib import Path

from PySide6.QtCore import QTimer
from devtools_app.app import create_application, make_window
from devtools_app.jobs.latest import Latest
from devtools_app.shell.warm_imports import Warming
from devtools_app.state.settings import SettingsFile

class Noted(MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if threading.current_thread() is threading.main_thread():
            print(fullname)

app = create_application()
window = make_window(app, SettingsFile(Path(sys.argv[1])))
Warming(window.context.imports, window).start_after_first_paint()
window.show()
app.processEvents()
sys.meta_path.insert(0, Noted())
overview = next(host for host in window.hosts if host.spec.name == "overview")
looks = []

def look():
    looks.append(1)
    busy = window.controller.opener.busy or any(one.busy for one in window.findChildren(Latest))
    if overview.view is not None and not busy and not overview.view.working:
        app.quit()
    elif len(looks) == 2000:
        print("not shown")
        app.quit()

window.controller.open(tuple(sys.argv[2:]))
timer = QTimer(interval=20)
timer.timeout.connect(look)
timer.start()
app.exec()
window.close()
"""


@pytest.mark.parametrize("files", [LOOP[:2], LOOP[1:2]], ids=["folder and record", "record"])
def test_gui_thread_imports_nothing_while_a_session_is_opened(
    tmp_path: Path, files: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOWN, str(tmp_path / "settings.json"), *files],
        env={**os.environ, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "", done.stderr
