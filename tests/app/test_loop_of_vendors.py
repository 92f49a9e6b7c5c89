"""The loop on the real window with backends of vendors: why, change, Ctrl+R, run, compare."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from devtools_app.shell.window import MainWindow
from devtools_app.views.compare import ComparePane
from devtools_app.views.node import NodePane
from inspector.jobs.messages import Ended
from inspector.jobs.run import JobRun
from inspector.recipes.compile_job import CompileJob, Quantization, Rules
from inspector.recipes.source import Source
from inspector.toolchain.backend_cards import backend_cards
from tests.app.test_loop import (
    CONV,
    PATIENCE,
    SOURCE,
    click,
    in_front,
    open_files,
    open_menu,
    point_at,
    recompiled,
    window,  # noqa: F401 - a fixture
    words,
)

MISSING = {card.name: card.missing for card in backend_cards()}
SHOTS = os.environ.get("LOOP_SHOTS", "")
pytestmark = [pytest.mark.gui, pytest.mark.slow, pytest.mark.vendor]


def _shot(shown: MainWindow, name: str) -> None:
    if SHOTS:
        shown.grab().save(str(Path(SHOTS) / f"{name}.png"))


@pytest.mark.parametrize(("backend", "quantizer"), [("openvino", ""), ("ethos-u", "ethos-u")])
@pytest.mark.qt_log_ignore("This plugin does not support")  # menus without a screen
def test_story_of_a_vendor_from_a_verdict_to_a_compared_variant(
    window: MainWindow,  # noqa: F811 - the fixture
    qtbot,
    tmp_path: Path,
    backend: str,
    quantizer: str,
) -> None:
    if MISSING[backend]:
        pytest.skip(MISSING[backend])
    source = tmp_path / "net.py"
    shutil.copy(SOURCE, source)
    job = CompileJob(
        Source(str(source), "build"),
        partitioners=(backend,),
        rules=Rules(deny_ops=(CONV,)),
        quantising=Quantization(quantizer=quantizer),
    )
    run = JobRun(job, tmp_path / "net")
    outcome = run.wait(PATIENCE / 1000)
    run.close()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED, outcome
    base = tmp_path / "net"
    open_files(window, qtbot, base / "model.pte", base / "model.etrecord")
    _shot(window, f"{backend}-1-opened")
    click(window, qtbot, "aten_convolution_default")
    window.show_view("node")
    node = in_front(window, NodePane)
    qtbot.waitUntil(lambda: "Vetoed by the user" in words(node), timeout=PATIENCE)
    _shot(window, f"{backend}-2-why")
    window.bound["change"].trigger()
    menu = open_menu()
    edits, chosen = point_at(menu, "let-in", "operator")
    qtbot.waitUntil(lambda: not window.jobs.previews.busy, timeout=PATIENCE)
    assert "gains" in edits.effect.text()
    chosen.trigger()
    menu.close()
    assert window.recipe_store.job.rules == Rules()
    qtbot.keyClick(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    recompiled(window, qtbot)
    pane = in_front(window, ComparePane)
    qtbot.waitUntil(lambda: not window.jobs["measure"].running, timeout=PATIENCE)
    measuring = window.jobs["measure"].current
    assert measuring is not None
    assert measuring.state is not None, measuring.outcome
    qtbot.waitUntil(lambda: "bootstrap" in pane.about.text(), timeout=PATIENCE)
    _shot(window, f"{backend}-3-compared")
    rows = pane.summary.rows
    assert any("latency, measured here" in map(str, one.values) for one in rows.columns)
    named = (list(one.values) for one in pane.details.rows.columns)
    assert any("aten_convolution_default" in values for values in named)
    assert window.store.state.current == "B"
