"""A signal from the terminal ends the window as a close does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_CHILD = """
import os, signal, sys
from PySide6.QtCore import QTimer
from devtools_app import app
app.create_application()
QTimer.singleShot(300, lambda: os.kill(os.getpid(), getattr(signal, sys.argv[1])))
sys.exit(app.run(()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without a signal")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_signal_while_window_is_open_saves_layout(tmp_path: Path, name: str, code: int) -> None:
    settings = tmp_path / "settings.json"
    place = {"ETSCOPE_SETTINGS": str(settings), "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, name],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        env={**os.environ, **place},
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert json.loads(settings.read_text())["geometry"]
