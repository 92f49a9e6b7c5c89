"""The Qt binding in use does not lose references to None (PySide6 6.12.0 on Python 3.11 did).

See docs/decisions.md. The test runs in a child process, since the fault ends the process.
"""

from __future__ import annotations

from tests.architecture.tree import run_python

CALLS = 2000
COUNT = f"""
import sys
from PySide6.QtGui import QImage, QPainter, QPen
image = QImage(8, 8, QImage.Format.Format_ARGB32)
with QPainter(image) as painter:
    pen = QPen()
    before = sys.getrefcount(None)
    for _ in range({CALLS}):
        painter.setPen(pen)
    print(before - sys.getrefcount(None))
"""


def test_binding_calls_that_return_none_keep_its_references() -> None:
    assert abs(int(run_python(COUNT))) < CALLS // 10
