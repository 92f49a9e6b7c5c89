"""The `etscope` command as a process: quick to start, and free of what could crash it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import schema.version
from tests.architecture.tree import ROOT, run_python

START = """
import json, sys
sys.argv = ["etscope"]
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
import devtools_app.__main__ as command
application = QApplication(["etscope"])
QTimer.singleShot(300, application.quit)
code = command.main([])
print(json.dumps([code, sorted({name.split(".")[0] for name in sys.modules})]))
"""

FIRST_PAINT = """
import json, sys
sys.argv = ["etscope"]
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication
import devtools_app.__main__ as command
found = []
class Eye(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            found.append("pyqtgraph" in sys.modules)
        return False
application = QApplication(["etscope"])
eye = Eye()
application.installEventFilter(eye)
look = QTimer()
def end_when_imported():
    if hasattr(sys.modules.get("devtools_app.widgets.chart"), "Chart"):
        application.quit()
look.timeout.connect(end_when_imported)
look.start(20)
command.main([])
print(json.dumps([found[0], "pyqtgraph" in sys.modules]))
"""


def test_version_prints_the_version_alone() -> None:
    command = [sys.executable, "-m", "devtools_app", "--version"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["etscope", schema.version.__version__]


def test_window_start_loads_neither_torch_nor_compiler_nor_runtime() -> None:
    code, loaded = json.loads(run_python(START).splitlines()[-1])
    assert code == 0
    assert "PySide6" in loaded
    assert {"torch", "compiler", "runtime", "pandas", "executorch"}.isdisjoint(loaded)


@pytest.mark.slow
def test_plots_are_imported_after_the_first_paint_and_before_anybody_wants_one() -> None:
    assert json.loads(run_python(FIRST_PAINT).splitlines()[-1]) == [False, True]


@pytest.mark.slow
def test_worker_that_runs_programs_loads_no_lowering() -> None:
    code = "import inspector.worker.executing, json, sys; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(run_python(code).splitlines()[-1])
    assert "torch" in loaded
    assert {"compiler.dialect", "compiler.emit", "sympy", "PySide6"}.isdisjoint(loaded)  # 0.6 s
